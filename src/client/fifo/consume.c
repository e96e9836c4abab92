/* consume.c - from a batch to the store and the callbacks; see consume.h. */
#include "consume.h"

#include <errno.h>

#include "base/alloc.h"

void vg_consumer_init(struct vg_consumer *c, struct vigil_store *store,
                      const struct vg_consumer_calls *calls)
{
    *c = (struct vg_consumer){.store = store, .calls = *calls};
}

void vg_consumer_done(struct vg_consumer *c)
{
    vg_free(c->ops);
    c->ops = NULL;
    c->cap = 0;
}

/* ---- telling ---- */

static void tell_put(const struct vg_consumer *c, const struct vigil_object *before,
                     const struct vigil_object *o, bool is_initial)
{
    if (before && c->calls.on_update)
        c->calls.on_update(c->calls.arg, before, o);
    else if (!before && c->calls.on_add)
        c->calls.on_add(c->calls.arg, o, is_initial);
}

static void tell_delete(const struct vg_consumer *c, const struct vigil_object *o,
                        bool is_tombstone)
{
    if (c->calls.on_delete)
        c->calls.on_delete(c->calls.arg, o, is_tombstone);
}

/* ---- single events ---- */

static int reserve(struct vg_consumer *c, size_t n)
{
    if (n <= c->cap)
        return 0;
    struct vg_store_op *ops = vg_reallocarray(c->ops, n, sizeof(*ops));
    if (!ops)
        return -ENOMEM;
    c->ops = ops;
    c->cap = n;
    return 0;
}

static void tell_op(const struct vg_consumer *c, struct vg_store_op *op, bool is_initial)
{
    if (op->ret_err == 0 && op->verb == VG_STORE_PUT)
        tell_put(c, op->ret_old, op->o, is_initial);
    else if (op->ret_err == 0)
        tell_delete(c, op->o, op->is_tombstone);
    vigil_object_unref(op->ret_old);
}

static int consume_events(struct vg_consumer *c, const struct vg_batch *b)
{
    int r = reserve(c, b->n);
    if (r < 0)
        return r;
    for (size_t i = 0; i < b->n; i++) {
        const struct vg_delta *d = &b->v[i];
        bool deletes = d->type == VG_DELTA_DELETED;
        c->ops[i] = (struct vg_store_op){.verb = deletes ? VG_STORE_DELETE : VG_STORE_PUT,
                                         .is_tombstone = d->is_tombstone,
                                         .o = d->o};
    }
    r = vg_store_transaction(c->store, c->ops, b->n);
    for (size_t i = 0; i < b->n; i++)
        tell_op(c, &c->ops[i], b->is_initial);
    return r;
}

/* ---- a whole list ---- */

static const struct vigil_object *find(const struct vg_ctree *t, const struct vigil_object *o)
{
    struct vg_ctree_key key = {.key = vg_object_key(o)};
    const struct vg_ctree_entry *e = t->count ? vg_ctree_find(t, &key) : NULL;
    return e ? e->o : NULL;
}

/* What was there and is not any more. Both walk in the order of keys. */
static void tell_gone(const struct vg_consumer *c, const struct vg_ctree *before,
                      const struct vg_ctree *after)
{
    struct vg_ctree_cursor b, a;
    vg_ctree_seek(&b, before, NULL);
    vg_ctree_seek(&a, after, NULL);
    const struct vg_ctree_entry *was, *is = vg_ctree_next(&a);
    while ((was = vg_ctree_next(&b))) {
        int cmp = 1;
        while (is && (cmp = vg_slice_cmp(vg_object_key(is->o), vg_object_key(was->o))) < 0)
            is = vg_ctree_next(&a);
        if (!is || cmp != 0)
            tell_delete(c, was->o, true);
    }
}

static int consume_list(struct vg_consumer *c, const struct vg_delta_all *all, bool is_initial)
{
    struct vg_ctree before;
    struct vg_slice version = vg_slice(all->version, all->version_n);
    int r = vg_store_replace(c->store, all->objects, all->n, version, &before);
    if (r < 0)
        return r;
    struct vg_ctree after = vg_store_state(c->store);
    tell_gone(c, &before, &after);
    vg_ctree_done(&after);
    for (size_t i = 0; i < all->n; i++)
        tell_put(c, find(&before, all->objects[i]), all->objects[i], is_initial);
    vg_ctree_done(&before);
    return 0;
}

static void consume_sync(struct vg_consumer *c)
{
    struct vg_ctree t = vg_store_state(c->store);
    struct vg_ctree_cursor at;
    const struct vg_ctree_entry *e;
    vg_ctree_seek(&at, &t, NULL);
    while ((e = vg_ctree_next(&at)))
        tell_put(c, e->o, e->o, false);
    vg_ctree_done(&t);
}

int vg_consume(void *consumer, const struct vg_batch *batch)
{
    struct vg_consumer *c = consumer;
    switch (batch->v[0].type) {
    case VG_DELTA_REPLACED_ALL:
        return consume_list(c, batch->v[0].all, batch->is_initial);
    case VG_DELTA_SYNC_ALL:
        consume_sync(c);
        return 0;
    case VG_DELTA_BOOKMARK:
        vg_store_bookmark(c->store, vg_slice(batch->v[0].all->version, batch->v[0].all->version_n));
        return 0;
    default:
        return consume_events(c, batch);
    }
}
