/* unreadable.c - what lies in storage and cannot be read here: encrypted, damaged, of a form that
 * is not known. It has no place in a tree, and a state without it would be a lie; so each kind
 * keeps the keys, lists and watches that they concern are refused, and whoever watches when one
 * appears is ended. The feed alone changes them, under the kind's lock. */
#include <errno.h>

#include "cacher_int.h"

int vg_unreadable_note(struct vg_watch_cache *wc, struct vg_slice key)
{
    vg_mutex_lock(&wc->mu);
    int r = vg_map_put(&wc->unreadable, key, NULL, NULL);
    atomic_store_explicit(&wc->n_unreadable, vg_map_count(&wc->unreadable), memory_order_release);
    vg_mutex_unlock(&wc->mu);
    return r < 0 ? r : 0;
}

void vg_unreadable_forget(struct vg_watch_cache *wc, struct vg_slice key)
{
    if (VG_LIKELY(atomic_load_explicit(&wc->n_unreadable, memory_order_relaxed) == 0))
        return;
    vg_mutex_lock(&wc->mu);
    (void)vg_map_remove(&wc->unreadable, key);
    atomic_store_explicit(&wc->n_unreadable, vg_map_count(&wc->unreadable), memory_order_release);
    vg_mutex_unlock(&wc->mu);
}

void vg_unreadable_clear(struct vg_watch_cache *wc)
{
    vg_mutex_lock(&wc->mu);
    vg_map_clear(&wc->unreadable);
    atomic_store_explicit(&wc->n_unreadable, 0, memory_order_release);
    vg_mutex_unlock(&wc->mu);
}

bool vg_cache_key_is_unreadable(struct vg_cacher *c, size_t kind, struct vg_slice key)
{
    struct vg_watch_cache *wc = &c->kinds[kind];
    if (VG_LIKELY(atomic_load_explicit(&wc->n_unreadable, memory_order_acquire) == 0))
        return false;
    vg_mutex_lock(&wc->mu);
    bool has = vg_map_find(&wc->unreadable, key) != NULL;
    vg_mutex_unlock(&wc->mu);
    return has;
}

/* Could what lies under the key match? Its labels and fields nobody knows; its name is in the key.
 */
static bool may_match(struct vg_slice key, struct vg_slice prefix, const struct vg_slice *name)
{
    if (!vg_slice_has_prefix(key, prefix))
        return false;
    if (!name)
        return true;
    size_t at = key.n;
    while (at > 0 && key.p[at - 1] != '/')
        at--;
    return vg_slice_eq(vg_slice(key.p + at, key.n - at), *name);
}

bool vg_cache_unreadable(struct vg_cacher *c, size_t kind, const struct vg_obj_predicate *p,
                         struct vg_obj_key *ret_key)
{
    struct vg_watch_cache *wc = &c->kinds[kind];
    struct vg_obj_key room;
    struct vg_slice name, first = {NULL, 0};
    if (VG_LIKELY(atomic_load_explicit(&wc->n_unreadable, memory_order_acquire) == 0))
        return false;
    struct vg_slice prefix = vg_walk_prefix(wc, p, &room);
    bool has_name = p && vg_obj_predicate_name(p, &name);
    vg_mutex_lock(&wc->mu);
    VG_MAP_FOREACH (e, &wc->unreadable) {
        if (may_match(e->key, prefix, has_name ? &name : NULL) &&
            (!first.p || vg_slice_cmp(e->key, first) < 0))
            first = e->key;
    }
    if (first.p) {
        ret_key->n = (uint32_t)VG_MIN(first.n, sizeof ret_key->bytes);
        memcpy(ret_key->bytes, first.p, ret_key->n);
    }
    vg_mutex_unlock(&wc->mu);
    return first.p;
}
