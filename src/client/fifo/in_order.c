/* in_order.c - entries in the order in which they came, in a ring; see fifo.h. */
#include <errno.h>

#include "base/alloc.h"
#include "fifo_int.h"

#define RING_FIRST 64u

static struct vg_delta *entry(const struct vg_fifo *f, size_t i)
{
    return &f->ring[(f->head + i) & (f->cap - 1)];
}

/* Room for so many more. The ring doubles; it shrinks when it is empty. */
static int reserve(struct vg_fifo *f, size_t more)
{
    size_t cap = f->cap ? f->cap : RING_FIRST;
    if (more > SIZE_MAX / 4 - f->n)
        return -ENOMEM;
    while (cap < f->n + more)
        cap *= 2;
    if (cap == f->cap)
        return 0;
    struct vg_delta *ring = vg_reallocarray(NULL, cap, sizeof(*ring));
    if (!ring)
        return -ENOMEM;
    for (size_t i = 0; i < f->n; i++)
        ring[i] = *entry(f, i);
    vg_free(f->ring);
    f->ring = ring;
    f->cap = cap;
    f->head = 0;
    return 0;
}

/* Reserved before. */
static void push(struct vg_fifo *f, struct vg_delta d)
{
    f->n++;
    *entry(f, f->n - 1) = d;
}

static void push_object(struct vg_fifo *f, enum vg_delta_type type, const struct vigil_object *o,
                        bool is_tombstone)
{
    push(f, (struct vg_delta){
                .type = (uint8_t)type, .is_tombstone = is_tombstone, .o = vigil_object_ref(o)});
}

int vg_ordered_put(struct vg_fifo *f, enum vg_delta_type type, const struct vigil_object *o)
{
    int r = reserve(f, 1);
    if (r == 0)
        push_object(f, type, o, false);
    return r;
}

int vg_ordered_put_all(struct vg_fifo *f, enum vg_delta_type type, struct vg_delta_all *take_all)
{
    struct vg_delta d = {.type = (uint8_t)type, .all = take_all};
    int r = reserve(f, 1);
    if (r == 0)
        push(f, d);
    else
        vg_delta_done(&d);
    return r;
}

/* ---- a list, entry by entry ---- */

/* The last entry of each queued key. */
static int map_queued(const struct vg_fifo *f, struct vg_map *ret)
{
    int r = 0;
    for (size_t i = 0; i < f->n && r >= 0; i++)
        r = vg_map_put(ret, vg_object_key(entry(f, i)->o), entry(f, i), NULL);
    return r < 0 ? r : 0;
}

static int map_objects(const struct vigil_object *const *objects, size_t n, struct vg_map *ret)
{
    int r = 0;
    for (size_t i = 0; i < n && r >= 0; i++)
        r = vg_map_put(ret, vg_object_key(objects[i]), (void *)(uintptr_t)objects[i], NULL);
    return r < 0 ? r : 0;
}

/* Tombstones for queued keys that are not in the list and whose last entry is no deletion. */
static void bury_queued(struct vg_fifo *f, const struct vg_map *listed, struct vg_map *queued)
{
    size_t n = f->n;
    for (size_t i = 0; i < n; i++) {
        struct vg_delta *d = entry(f, i);
        struct vg_slice key = vg_object_key(d->o);
        /* At the last entry of each key, which is the state that nobody saw go. */
        if (vg_map_get(queued, key) == d && d->type != VG_DELTA_DELETED &&
            !vg_map_find(listed, key))
            push_object(f, VG_DELTA_DELETED, d->o, true);
    }
}

/* And for known ones that are neither in the list nor queued. */
static void bury_known(struct vg_fifo *f, const struct vg_ctree *known, const struct vg_map *listed,
                       const struct vg_map *queued)
{
    struct vg_ctree_cursor c;
    const struct vg_ctree_entry *e;
    vg_ctree_seek(&c, known, NULL);
    while ((e = vg_ctree_next(&c))) {
        struct vg_slice key = vg_object_key(e->o);
        if (!vg_map_find(listed, key) && !vg_map_find(queued, key))
            push_object(f, VG_DELTA_DELETED, e->o, true);
    }
}

int vg_ordered_replace(struct vg_fifo *f, const struct vigil_object *const *objects, size_t n)
{
    VG_AUTO(map) queued = {0};
    VG_AUTO(map) listed = {0};
    struct vg_ctree known = vg_store_state(f->opts.known);
    int r = reserve(f, f->n + known.count + n); /* first: the maps point into the ring */
    if (r == 0)
        r = map_queued(f, &queued);
    if (r == 0)
        r = map_objects(objects, n, &listed);
    if (r == 0) {
        bury_queued(f, &listed, &queued);
        bury_known(f, &known, &listed, &queued);
        for (size_t i = 0; i < n; i++)
            push_object(f, VG_DELTA_REPLACED, objects[i], false);
    }
    vg_ctree_done(&known);
    return r;
}

int vg_ordered_resync(struct vg_fifo *f)
{
    VG_AUTO(map) queued = {0};
    struct vg_ctree known = vg_store_state(f->opts.known);
    int r = reserve(f, known.count);
    if (r == 0)
        r = map_queued(f, &queued);
    struct vg_ctree_cursor c;
    const struct vg_ctree_entry *e;
    vg_ctree_seek(&c, &known, NULL);
    while (r == 0 && (e = vg_ctree_next(&c)))
        if (!vg_map_find(&queued, vg_object_key(e->o)))
            push_object(f, VG_DELTA_SYNC, e->o, false);
    vg_ctree_done(&known);
    return r;
}

/* ---- a batch ---- */

static bool is_single(const struct vg_delta *d)
{
    return d->type >= VG_DELTA_REPLACED_ALL;
}

/* How many of the next entries go together: at least one. Without memory to tell keys apart, or to
 * hold more, fewer. */
static size_t batch_length(struct vg_fifo *f)
{
    size_t max = VG_MIN(f->n, f->opts.batch_max), n = 1;
    if (f->initial)
        max = VG_MIN(max, f->initial);
    if (max == 1 || is_single(entry(f, 0)) || vg_delta_run_reserve(&f->batch, max) < 0)
        return 1;
    vg_map_clear(&f->batch_keys);
    for (size_t i = 0; i < max && !is_single(entry(f, i)); i++) {
        if (vg_map_put(&f->batch_keys, vg_object_key(entry(f, i)->o), f, NULL) != 0)
            break; /* there already */
        n = i + 1;
    }
    return n;
}

void vg_ordered_take(struct vg_fifo *f)
{
    size_t n = batch_length(f);
    for (size_t i = 0; i < n; i++)
        f->batch.v[i] = *entry(f, i);
    f->batch.n = n;
    f->head = (f->head + n) & (f->cap - 1);
    f->n -= n;
    if (f->n == 0 && f->cap > 16 * RING_FIRST) { /* a large list has passed */
        vg_free(f->ring);
        f->ring = NULL;
        f->cap = f->head = 0;
    }
}

void vg_ordered_done(struct vg_fifo *f)
{
    for (size_t i = 0; i < f->n; i++)
        vg_delta_done(entry(f, i));
    vg_free(f->ring);
    vg_map_done(&f->batch_keys);
    f->n = 0;
}
