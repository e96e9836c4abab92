/* notes.c - the ring of one handler; see notes.h. */
#include "notes.h"

#include <errno.h>

#include "base/alloc.h"

#define CAP_MIN 64u
/* A ring larger than this is given back when it is empty: a first list was large. */
#define CAP_KEPT 4096u

void vg_notes_init(struct vg_notes *q, size_t merge_at)
{
    *q = (struct vg_notes){.first = 1, .merge_at = merge_at};
}

void vg_note_done(struct vg_note *note)
{
    vigil_object_unref(note->before);
    vigil_object_unref(note->o);
    *note = (struct vg_note){0};
}

void vg_notes_done(struct vg_notes *q)
{
    for (size_t i = 0; i < q->n; i++)
        vg_note_done(&q->v[(q->head + i) & (q->cap - 1)]);
    vg_map_done(&q->latest);
    vg_free(q->v);
    vg_notes_init(q, q->merge_at);
}

int vg_notes_reserve(struct vg_notes *q, size_t more)
{
    size_t cap = q->cap ? q->cap : CAP_MIN;
    while (cap - q->n < more && cap <= SIZE_MAX / 2)
        cap *= 2;
    q->promised = more;
    if (cap == q->cap)
        return 0;
    struct vg_note *v = cap - q->n < more ? NULL : vg_reallocarray(NULL, cap, sizeof(*v));
    if (!v) {
        q->promised = 0;
        return -ENOMEM;
    }
    for (size_t i = 0; i < q->n; i++)
        v[i] = q->v[(q->head + i) & (q->cap - 1)];
    vg_free(q->v);
    q->v = v;
    q->cap = cap;
    q->head = 0;
    return 0;
}

static void shrink(struct vg_notes *q)
{
    if (q->n > 0 || q->promised > 0 || q->cap <= CAP_KEPT)
        return;
    vg_free(vg_steal(q->v));
    q->cap = q->head = 0;
}

void vg_notes_settle(struct vg_notes *q)
{
    q->promised = 0;
    shrink(q);
}

/* ---- merging ---- */

static struct vg_note *find_latest(struct vg_notes *q, struct vg_slice key)
{
    uint64_t number = (uint64_t)(uintptr_t)vg_map_get(&q->latest, key);
    return number ? &q->v[(q->head + (size_t)(number - q->first)) & (q->cap - 1)] : NULL;
}

/* Without memory a note has no entry, and is not merged with. */
static void set_latest(struct vg_notes *q, const struct vigil_object *o, uint64_t number)
{
    if (vg_map_put(&q->latest, vg_object_key(o), (void *)(uintptr_t)number, NULL) < 0)
        vg_map_remove(&q->latest, vg_object_key(o));
}

static void set_object(struct vg_notes *q, struct vg_note *waits, const struct vigil_object *o)
{
    uint64_t number = (uint64_t)(uintptr_t)vg_map_get(&q->latest, vg_object_key(o));
    set_latest(q, o, number); /* the key was borrowed from the object that goes */
    vigil_object_unref(waits->o);
    waits->o = vigil_object_ref(o);
}

/* Fold a note into the one of its object that waits; as a reader who looks seldom would see it. */
static void merge(struct vg_notes *q, struct vg_note *waits, const struct vg_note *note)
{
    if (waits->kind == VG_NOTE_ADD && note->kind == VG_NOTE_DELETE) { /* never there */
        vg_map_remove(&q->latest, vg_object_key(note->o));
        vg_note_done(waits);
    } else if (waits->kind == VG_NOTE_DELETE && note->kind != VG_NOTE_DELETE) { /* made anew */
        waits->before = vigil_object_ref(waits->o);
        waits->kind = VG_NOTE_UPDATE;
        waits->flag = false;
        set_object(q, waits, note->o);
    } else {
        if (note->kind == VG_NOTE_DELETE) {
            vigil_object_unref(waits->before);
            waits->before = NULL;
            waits->kind = VG_NOTE_DELETE;
            waits->flag = note->flag;
        }
        set_object(q, waits, note->o);
    }
}

/* ---- in and out ---- */

void vg_notes_push(struct vg_notes *q, const struct vg_note *note)
{
    assert(q->promised > 0 && q->v);
    q->promised--;
    bool is_keyed = q->merge_at && note->o;
    struct vg_note *waits =
        is_keyed && q->n >= q->merge_at ? find_latest(q, vg_object_key(note->o)) : NULL;
    if (waits) {
        merge(q, waits, note);
        return;
    }
    struct vg_note *at = &q->v[(q->head + q->n) & (q->cap - 1)];
    *at = *note;
    if (at->before)
        vigil_object_ref(at->before);
    if (at->o)
        vigil_object_ref(at->o);
    if (is_keyed)
        set_latest(q, note->o, q->first + q->n);
    q->n++;
}

static void forget_latest(struct vg_notes *q, const struct vg_note *note, uint64_t number)
{
    if (q->merge_at && note->o &&
        vg_map_get(&q->latest, vg_object_key(note->o)) == (void *)(uintptr_t)number)
        vg_map_remove(&q->latest, vg_object_key(note->o));
}

size_t vg_notes_take(struct vg_notes *q, struct vg_note *ret, size_t max)
{
    size_t n = VG_MIN(max, q->n);
    for (size_t i = 0; i < n; i++) {
        ret[i] = q->v[q->head];
        forget_latest(q, &ret[i], q->first);
        q->head = (q->head + 1) & (q->cap - 1);
        q->first++;
        q->n--;
    }
    shrink(q);
    return n;
}
