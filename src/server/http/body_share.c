/* body_share.c - see body_share.h. */
#include "body_share.h"

#include "base/alloc.h"

void vg_body_shares_init(struct vg_body_shares *s, size_t max)
{
    *s = (struct vg_body_shares){.max = max};
    vg_mutex_init(&s->mu, VG_RANK_BODY_SHARES);
    vg_map_init(&s->map, VG_MAP_BORROWS_KEYS);
}

void vg_body_shares_done(struct vg_body_shares *s)
{
    assert(vg_map_count(&s->map) == 0);
    vg_map_done(&s->map);
    vg_mutex_done(&s->mu);
}

static struct vg_body_share *share_new(struct vg_body_shares *s, struct vg_slice name)
{
    struct vg_body_share *share = vg_calloc(1, sizeof *share + name.n);
    if (!share)
        return NULL;
    memcpy(share + 1, name.p, name.n);
    share->name = vg_slice(share + 1, name.n);
    if (vg_map_put(&s->map, share->name, share, NULL) < 0) {
        vg_free(share);
        return NULL;
    }
    return share;
}

struct vg_body_share *vg_body_share_get(struct vg_body_shares *s, struct vg_slice name)
{
    vg_mutex_lock(&s->mu);
    struct vg_body_share *share = vg_map_get(&s->map, name);
    if (!share)
        share = share_new(s, name);
    if (share)
        share->refs++;
    vg_mutex_unlock(&s->mu);
    return share;
}

void vg_body_share_put(struct vg_body_shares *s, struct vg_body_share *share)
{
    if (!share)
        return;
    vg_mutex_lock(&s->mu);
    if (--share->refs == 0) {
        assert(atomic_load(&share->bytes) == 0);
        vg_map_remove(&s->map, share->name);
        vg_free(share);
    }
    vg_mutex_unlock(&s->mu);
}

bool vg_body_share_take(struct vg_body_share *share, size_t bytes, size_t max)
{
    size_t before = atomic_load_explicit(&share->bytes, memory_order_relaxed);
    do {
        if (before > 0 && (before >= max || bytes > max - before))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&share->bytes, &before, before + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

void vg_body_share_give(struct vg_body_share *share, size_t bytes)
{
    atomic_fetch_sub_explicit(&share->bytes, bytes, memory_order_relaxed);
}
