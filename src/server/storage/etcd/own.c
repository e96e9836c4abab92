/* own.c - what was written here is not read again.
 * The event of a write of ours brings bytes that were made from a record a moment ago: instead of
 * taking them apart, header and value are copied from that record. Equal bytes under the same key
 * are enough, whoever wrote them: they mean the same. An entry lives while its transaction is under
 * way and until the feed has told its revision. Thread: the engine's. */
#include "base/alloc.h"
#include "engine.h"

/* 4096: as many as may wait by default; when the feed is away longer, the oldest go. */
#define ANSWERED_MAX 4096u

struct vg_etcd_own {
    struct vg_list link; /* e->own.answered, once it is */
    struct vg_rec *rec;
    struct vg_buf bytes;
    vg_rev rev; /* 0: under way */
};

static void drop(struct vg_etcd_engine *e, struct vg_etcd_own *o)
{
    if (vg_map_get(&e->own.by_key, vg_rec_key(o->rec)) == o)
        (void)vg_map_remove(&e->own.by_key, vg_rec_key(o->rec));
    if (o->rev)
        e->own.n_answered--;
    vg_list_remove(&o->link);
    vg_rec_unref(o->rec);
    vg_buf_done(&o->bytes);
    vg_free(o);
}

struct vg_etcd_own *vg_etcd_own_add(struct vg_etcd_engine *e, const struct vg_rec *rec,
                                    struct vg_buf *take_bytes)
{
    struct vg_etcd_own *o = vg_new(struct vg_etcd_own);
    if (!o) {
        vg_buf_done(take_bytes);
        return NULL;
    }
    o->rec = vg_rec_ref(rec);
    o->bytes = *take_bytes;
    *take_bytes = (struct vg_buf){0};
    vg_list_init(&o->link);
    if (vg_map_put(&e->own.by_key, vg_rec_key(o->rec), o, NULL) >= 0)
        return o;
    drop(e, o);
    return NULL;
}

void vg_etcd_own_answered(struct vg_etcd_engine *e, struct vg_etcd_own *o, vg_rev rev)
{
    if (!o)
        return;
    if (rev <= e->feed.told ||
        e->own.n_answered == ANSWERED_MAX) { /* also when nothing was written */
        drop(e, o);
        return;
    }
    o->rev = rev;
    e->own.n_answered++;
    vg_list_push_back(&e->own.answered, &o->link);
}

const struct vg_rec *vg_etcd_own_find(struct vg_etcd_engine *e, struct vg_slice key,
                                      struct vg_slice bytes)
{
    const struct vg_etcd_own *o = vg_map_get(&e->own.by_key, key);
    return o && vg_slice_eq(vg_buf_slice(&o->bytes), bytes) ? o->rec : NULL;
}

/* In the order of their answers, which is nearly that of their revisions. */
void vg_etcd_own_trim(struct vg_etcd_engine *e)
{
    while (!vg_list_is_empty(&e->own.answered)) {
        struct vg_etcd_own *o = VG_CONTAINER_OF(e->own.answered.next, struct vg_etcd_own, link);
        if (o->rev > e->feed.told)
            return;
        drop(e, o);
    }
}

void vg_etcd_own_stop(struct vg_etcd_engine *e)
{
    while (!vg_list_is_empty(&e->own.answered))
        drop(e, VG_CONTAINER_OF(e->own.answered.next, struct vg_etcd_own, link));
}
