/* apply.c - what the feed does with one batch of storage: trees and history of each kind take it,
 * then readers are shown it. Publishing order: roots and history of each touched kind, then the
 * revision, then the batch. So whoever sees a revision finds what belongs to it, and who is woken
 * finds both. */
#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cacher_int.h"

/* ---- batches ---- */

void vg_cache_batch_free(struct vg_tail_batch *batch)
{
    struct vg_cache_batch *b = VG_CONTAINER_OF(batch, struct vg_cache_batch, tail);
    for (size_t i = 0; i < b->n; i++)
        vg_segment_unref(b->events[i].segment);
    vg_free(b);
}

struct vg_cache_batch *vg_cache_batch_new(size_t room)
{
    struct vg_cache_batch *b = vg_malloc(sizeof *b + room * sizeof b->events[0]);
    if (!b)
        return NULL;
    memset(b, 0, sizeof *b);
    b->tail.free = vg_cache_batch_free;
    return b;
}

/* ---- applying ---- */

/* The index has an object under its trigger value: when that changes, it leaves the old place. A
 * put under the same value replaces it where it is, and one that creates finds nothing. */
static int leave_old_value(struct vg_watch_cache *wc, const struct vg_rec *rec)
{
    struct vg_tree_key key = {.minor = vg_rec_key(rec)};
    const struct vg_rec *old = rec->version == 1 ? NULL : vg_tree_get(wc->tree, key);
    struct vg_obj_header now, before;
    if (!old)
        return 0;
    vg_rec_read(rec, &now);
    vg_rec_read(old, &before);
    key.major = vg_obj_trigger(&before);
    if (vg_slice_eq(key.major, vg_obj_trigger(&now)))
        return 0;
    return vg_tree_remove(wc->by_trigger, key, NULL);
}

/* The state of a kind and its index take a put, or neither does. */
static int put_object(struct vg_watch_cache *wc, const struct vg_rec *rec, struct vg_rec **ret_old)
{
    int r = wc->by_trigger ? leave_old_value(wc, rec) : 0;
    if (r >= 0 && wc->by_trigger)
        r = vg_tree_put(wc->by_trigger, rec, NULL);
    return r < 0 ? r : vg_tree_put(wc->tree, rec, ret_old);
}

static int remove_object(struct vg_watch_cache *wc, struct vg_slice storage_key,
                         struct vg_rec **ret_old)
{
    struct vg_tree_key key = {.minor = storage_key};
    int r = vg_tree_remove(wc->tree, key, ret_old);
    if (r <= 0 || !wc->by_trigger)
        return r;
    struct vg_obj_header h;
    vg_rec_read(*ret_old, &h);
    struct vg_tree_key at = {.major = vg_obj_trigger(&h), .minor = storage_key};
    return vg_tree_remove(wc->by_trigger, at, NULL);
}

static int append_change(struct vg_watch_cache *wc, const struct vg_rec *rec,
                         const struct vg_rec *old, struct vg_cache_batch *b)
{
    int64_t now_ms = (int64_t)(vg_cacher_now_ns(wc->c) / VG_NS_PER_MS);
    struct vg_cache_event *ev = &b->events[b->n];
    vg_mutex_lock(&wc->mu);
    int r = vg_history_append(&wc->history, rec, old, now_ms, &ev->change, &ev->segment);
    ev->seq = wc->history.next - 1;
    vg_mutex_unlock(&wc->mu);
    if (r < 0)
        return r;
    vg_segment_ref(ev->segment);
    ev->wc = wc;
    ev->life = wc->life;
    ev->ends_rev = true;
    if (b->n && b->events[b->n - 1].change->rec->rev == rec->rev)
        b->events[b->n - 1].ends_rev = false;
    b->n++;
    return 0;
}

static void touch(struct vg_watch_cache *wc, struct vg_list *touched)
{
    if (wc->is_touched)
        return;
    wc->is_touched = true;
    vg_list_push_back(touched, &wc->touched);
}

static void count_bytes(struct vg_watch_cache *wc, const struct vg_rec *rec,
                        const struct vg_rec *old)
{
    uint64_t n = atomic_load_explicit(&wc->object_bytes, memory_order_relaxed);
    n += vg_rec_is_delete(rec) ? 0 : rec->value_len;
    n -= old ? old->value_len : 0;
    atomic_store_explicit(&wc->object_bytes, n, memory_order_relaxed);
}

/* What carries no readable header cannot be shown: what was there before leaves the trees without a
 * word, and the tail ends here (publish_kinds), so that who resumes from before it asks storage. */
static int apply_unreadable(struct vg_watch_cache *wc, struct vg_slice key)
{
    struct vg_rec *old = NULL;
    int r = vg_unreadable_note(wc, key);
    if (r == 0)
        r = remove_object(wc, key, &old);
    vg_rec_unref(old);
    wc->is_broken = true;
    vg_warn(wc->c->opts.log, "object_without_header", "kind=%s", wc->kind->name);
    return r < 0 ? r : 0;
}

/* One change of storage. A delete of what could not be read, or was never there, is no change. */
static int apply(struct vg_watch_cache *wc, const struct vg_event *e, struct vg_cache_batch *b,
                 struct vg_list *touched)
{
    struct vg_obj_header h;
    struct vg_rec *old = NULL;
    vg_count(&wc->c->events_received, 1);
    bool is_delete = vg_rec_is_delete(e->rec);
    touch(wc, touched);
    if (!is_delete && !vg_rec_open(e->rec, &h)) {
        b->has_unreadable = true;
        return apply_unreadable(wc, vg_rec_key(e->rec));
    }
    vg_unreadable_forget(wc, vg_rec_key(e->rec));
    int r = is_delete ? remove_object(wc, vg_rec_key(e->rec), &old) : put_object(wc, e->rec, &old);
    if (r >= 0)
        count_bytes(wc, e->rec, old);
    if (r >= 0 && (old || !is_delete))
        r = append_change(wc, e->rec, old, b);
    vg_rec_unref(old);
    return r < 0 ? r : 0;
}

/* ---- filling the history ---- */

/* What a change replaced, a reference: it came before, or is older than all that came. NULL: there
 * was none that can be read. */
static struct vg_rec *replaced_by(struct vg_cacher *c, const struct vg_event *e)
{
    struct vg_obj_header h;
    struct vg_rec *old = vg_known_take(c->known, e->rec->prev_rev, vg_rec_key(e->rec));
    return old || !e->prev || !vg_rec_open(e->prev, &h) ? old : vg_rec_ref(e->prev);
}

/* A change that leads to what will be listed: history takes it, the trees will have what becomes of
 * it. Where it is not known what it replaced, history begins anew behind it. */
static int remember(struct vg_watch_cache *wc, const struct vg_event *e, struct vg_cache_batch *b,
                    struct vg_list *touched)
{
    struct vg_obj_header h;
    bool is_delete = vg_rec_is_delete(e->rec);
    vg_count(&wc->c->events_received, 1);
    touch(wc, touched);
    struct vg_rec *old = replaced_by(wc->c, e);
    bool is_readable = is_delete || vg_rec_open(e->rec, &h);
    int r = 0;
    if (is_readable && (old || !is_delete))
        r = append_change(wc, e->rec, old, b);
    if (!is_readable || (!old && e->rec->prev_rev))
        wc->is_broken = true;
    if (is_readable && !is_delete)
        (void)vg_known_add(wc->c->known, e->rec); /* else it is read again */
    vg_rec_unref(old);
    return r;
}

/* Make the history of a batch of the filling phase readable, as P1 demands before the batch reaches
 * the tail. There is no new root: the trees are loaded by the list that follows. */
static void publish_history(struct vg_watch_cache *wc)
{
    int64_t now_ms = (int64_t)(vg_cacher_now_ns(wc->c) / VG_NS_PER_MS);
    vg_mutex_lock(&wc->mu);
    wc->published = wc->history.next;
    vg_history_evict(&wc->history, now_ms);
    vg_mutex_unlock(&wc->mu);
}

/* ---- publishing ---- */

int vg_publish_kind(struct vg_watch_cache *wc, vg_rev rev)
{
    struct vg_root *root = vg_tree_publish(wc->tree, rev);
    struct vg_root *trigger = wc->by_trigger ? vg_tree_publish(wc->by_trigger, rev) : NULL;
    if (!root || (wc->by_trigger && !trigger)) {
        vg_root_unref(root);
        vg_root_unref(trigger);
        return -ENOMEM;
    }
    int64_t now_ms = (int64_t)(vg_cacher_now_ns(wc->c) / VG_NS_PER_MS);
    vg_mutex_lock(&wc->mu);
    struct vg_root *old = wc->root, *old_trigger = wc->trigger_root;
    vg_history_set_root(&wc->history, vg_root_ref(root));
    wc->root = root;
    wc->trigger_root = trigger;
    wc->published = wc->history.next;
    vg_history_evict(&wc->history, now_ms);
    vg_mutex_unlock(&wc->mu);
    atomic_store_explicit(&wc->objects, vg_root_count(root), memory_order_relaxed);
    atomic_store_explicit(&wc->changed, rev, memory_order_release);
    vg_root_unref(old);
    vg_root_unref(old_trigger);
    return 0;
}

static int cut_history(struct vg_watch_cache *wc, vg_rev rev)
{
    wc->is_broken = false;
    atomic_store_explicit(&wc->broken_rev, rev, memory_order_release);
    vg_mutex_lock(&wc->mu);
    int r = vg_history_restart(&wc->history, rev);
    wc->published = wc->history.next;
    vg_mutex_unlock(&wc->mu);
    return r;
}

/* err: the batch could not be applied as a whole. Then nothing of it is shown: readers keep the
 * state before it, and the list that follows replaces the trees. */
static int publish_kinds(struct vg_cacher *c, struct vg_list *touched, vg_rev rev, int err)
{
    struct vg_list *n;
    while ((n = vg_list_pop_front(touched))) {
        struct vg_watch_cache *wc = VG_CONTAINER_OF(n, struct vg_watch_cache, touched);
        wc->is_touched = false;
        if (err == 0 && c->state == FEED_FILLING)
            publish_history(wc);
        else if (err == 0)
            err = vg_publish_kind(wc, rev);
        if (err == 0 && wc->is_broken)
            err = cut_history(wc, rev);
    }
    return err;
}

int vg_apply_batch(struct vg_cacher *c, const struct vg_watch_batch *in,
                   struct vg_cache_batch **ret_batch)
{
    struct vg_list touched;
    vg_list_init(&touched);
    struct vg_cache_batch *b = vg_cache_batch_new(in->n);
    int r = b ? 0 : -ENOMEM;
    struct vg_watch_cache *wc = NULL;
    for (size_t i = 0; r == 0 && i < in->n; i++) {
        const struct vg_event *e = &in->events[i];
        if (i + VG_FETCH_AHEAD < in->n)
            vg_rec_fetch_open(in->events[i + VG_FETCH_AHEAD].rec);
        wc = vg_cacher_kind_like(c, vg_rec_key(e->rec), wc);
        if (wc && !wc->kind->is_uncached)
            r = c->state == FEED_FILLING ? remember(wc, e, b, &touched) : apply(wc, e, b, &touched);
    }
    r = publish_kinds(c, &touched, in->rev, r);
    if (r < 0 && b)
        vg_cache_batch_free(&b->tail);
    else if (r == 0)
        *ret_batch = b;
    return r;
}

/* P1: whoever finds a change in the tail finds it in the history too. The feed alone writes
 * `published`, so it may read it without the lock. */
static void check_published(const struct vg_cache_batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        assert(b->events[i].seq < b->events[i].wc->published);
    (void)b;
}

void vg_publish_batch(struct vg_cacher *c, struct vg_cache_batch *take_b, vg_rev rev)
{
    struct vg_cache_batch *b = take_b;
    check_published(b);
    b->rev = rev;
    atomic_store_explicit(&c->rev, rev, memory_order_release);
    c->publishing = b;
    vg_tail_publish(&c->tail, &b->tail);
    c->publishing = NULL;
}
