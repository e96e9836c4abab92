/* by_key.c - the deltas of one object together, in the order of the objects' first; see fifo.h.
 * A key that is queued keeps its place and collects. Of two deletions in a row one stays: the
 * older, which somebody saw, unless it is a tombstone. */
#include <errno.h>

#include "base/alloc.h"
#include "fifo_int.h"

struct vg_keyed {
    struct vg_list link; /* in f->order */
    struct vg_delta_run run;
    size_t key_n;
    char key[]; /* of its own: deltas come and go. The map borrows it */
};

static struct vg_slice key_of(const struct vg_keyed *k)
{
    return vg_slice(k->key, k->key_n);
}

static struct vg_keyed *first_of(struct vg_fifo *f)
{
    return VG_CONTAINER_OF(f->order.next, struct vg_keyed, link);
}

static void keyed_free(struct vg_keyed *k)
{
    vg_delta_run_done(&k->run);
    vg_free(k);
}

static struct vg_keyed *keyed_new(struct vg_fifo *f, struct vg_slice key)
{
    struct vg_keyed *k = vg_malloc(sizeof(*k) + key.n);
    if (!k)
        return NULL;
    k->run = (struct vg_delta_run){0};
    k->key_n = key.n;
    memcpy(k->key, key.p, key.n);
    if (vg_delta_run_reserve(&k->run, 1) < 0 || vg_map_put(&f->by_key, key_of(k), k, NULL) < 0) {
        keyed_free(k);
        return NULL;
    }
    vg_list_push_back(&f->order, &k->link);
    return k;
}

/* The last two are deletions? */
static void drop_repeated_deletion(struct vg_delta_run *run)
{
    if (run->n < 2)
        return;
    struct vg_delta *older = &run->v[run->n - 2], *newer = &run->v[run->n - 1];
    if (older->type != VG_DELTA_DELETED || newer->type != VG_DELTA_DELETED)
        return;
    if (older->is_tombstone) {
        struct vg_delta t = *older;
        *older = *newer;
        *newer = t;
    }
    vg_delta_done(newer);
    run->n--;
}

static int collect(struct vg_fifo *f, enum vg_delta_type type, const struct vigil_object *o,
                   bool is_tombstone)
{
    struct vg_keyed *k = vg_map_get(&f->by_key, vg_object_key(o));
    if (!k)
        k = keyed_new(f, vg_object_key(o));
    if (!k)
        return -ENOMEM;
    if (k->run.n == k->run.cap && vg_delta_run_reserve(&k->run, k->run.cap * 2) < 0)
        return -ENOMEM;
    k->run.v[k->run.n++] = (struct vg_delta){
        .type = (uint8_t)type, .is_tombstone = is_tombstone, .o = vigil_object_ref(o)};
    drop_repeated_deletion(&k->run);
    return 0;
}

static bool is_known(struct vg_fifo *f, const struct vigil_object *o)
{
    const struct vigil_object *known = vigil_store_get(f->opts.known, vg_text_of(vg_object_key(o)));
    vigil_object_unref(known);
    return known;
}

int vg_keyed_put(struct vg_fifo *f, enum vg_delta_type type, const struct vigil_object *o)
{
    if (type == VG_DELTA_DELETED && !vg_map_find(&f->by_key, vg_object_key(o)) && !is_known(f, o))
        return 0; /* nobody ever heard of it */
    return collect(f, type, o, false);
}

/* ---- a list ---- */

/* Queued keys that are not in the list: the newest state is what nobody saw go. */
static int bury_queued(struct vg_fifo *f, const struct vg_map *listed)
{
    int r = 0;
    VG_LIST_FOREACH (n, &f->order) {
        struct vg_keyed *k = VG_CONTAINER_OF(n, struct vg_keyed, link);
        if (r == 0 && !vg_map_find(listed, key_of(k)))
            r = collect(f, VG_DELTA_DELETED, k->run.v[k->run.n - 1].o, true);
    }
    return r;
}

static int bury_known(struct vg_fifo *f, const struct vg_ctree *known, const struct vg_map *listed)
{
    struct vg_ctree_cursor c;
    const struct vg_ctree_entry *e;
    int r = 0;
    vg_ctree_seek(&c, known, NULL);
    while (r == 0 && (e = vg_ctree_next(&c))) {
        struct vg_slice key = vg_object_key(e->o);
        if (!vg_map_find(listed, key) && !vg_map_find(&f->by_key, key))
            r = collect(f, VG_DELTA_DELETED, e->o, true);
    }
    return r;
}

int vg_keyed_replace(struct vg_fifo *f, const struct vigil_object *const *objects, size_t n)
{
    VG_AUTO(map) listed = {0};
    struct vg_ctree known = vg_store_state(f->opts.known);
    int r = 0;
    for (size_t i = 0; i < n && r >= 0; i++) {
        r = vg_map_put(&listed, vg_object_key(objects[i]), (void *)(uintptr_t)objects[i], NULL);
        if (r >= 0)
            r = collect(f, VG_DELTA_REPLACED, objects[i], false);
    }
    if (r >= 0)
        r = bury_queued(f, &listed);
    if (r >= 0)
        r = bury_known(f, &known, &listed);
    vg_ctree_done(&known);
    return r < 0 ? r : 0;
}

int vg_keyed_resync(struct vg_fifo *f)
{
    struct vg_ctree known = vg_store_state(f->opts.known);
    struct vg_ctree_cursor c;
    const struct vg_ctree_entry *e;
    int r = 0;
    vg_ctree_seek(&c, &known, NULL);
    while (r == 0 && (e = vg_ctree_next(&c)))
        if (!vg_map_find(&f->by_key, vg_object_key(e->o)))
            r = collect(f, VG_DELTA_SYNC, e->o, false);
    vg_ctree_done(&known);
    return r;
}

/* ---- a batch ---- */

void vg_keyed_take(struct vg_fifo *f)
{
    struct vg_keyed *k = first_of(f);
    vg_map_remove(&f->by_key, key_of(k));
    vg_list_remove(&k->link);
    vg_delta_run_done(&f->batch);
    f->batch = k->run;
    vg_free(k);
}

void vg_keyed_done(struct vg_fifo *f)
{
    while (!vg_list_is_empty(&f->order)) {
        struct vg_keyed *k = first_of(f);
        vg_list_remove(&k->link);
        keyed_free(k);
    }
    vg_map_done(&f->by_key);
}
