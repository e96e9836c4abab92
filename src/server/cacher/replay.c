/* replay.c - catching up: from a state, from the hot tail, or from storage.
 *
 * FROM_STATE    ADDED for each object of a snapshot, in key order
 *   | vg_replay_finish_state(): the end bookmark, then FROM_TAIL
 * FROM_LIST     the same for a kind without a cache: pages of storage
 *   | vg_replay_finish_state(): then FROM_STORAGE
 * FROM_TAIL     changes of the hot tail, by the links of its trigger or namespace if it has one
 *   | step_tail(): all that its loop has dispatched is told: LIVE
 *   | step_tail(): the tail has moved on past its position: FROM_STORAGE
 * FROM_STORAGE  the log, through a storage watch of its kind's keys
 *   | join_tail(): it has come to where the tail begins: FROM_TAIL; never without a cache
 *   | on_end(): compacted below its position: it ends as expired
 *
 * A step does a bounded amount of work. Nothing here touches other watchers, and what is held (a
 * snapshot, a view of the tail) is let go of between uses or when the watcher goes live. */
#include <errno.h>

#include "base/alloc.h"
#include "replay_int.h"

/* Changes or objects that one step looks at. */
#define STEP_MAX 128

/* ---- letting go ---- */

static void drop_hold(struct replay *r)
{
    vg_history_view_unref(r->hold.view);
    r->hold = (struct vg_tail_hold){0};
    r->n_seqs = 0;
}

static void drop_state(struct replay *r)
{
    struct state_source *s = vg_steal(r->state);
    if (s)
        vg_cache_snapshot_done(&s->snapshot);
    vg_free(s);
}

void vg_replay_free(struct vg_cache_watcher *w)
{
    struct replay *r = vg_steal(w->replay);
    if (!r)
        return;
    drop_hold(r);
    drop_state(r);
    vg_storage_source_free(r->storage);
    vg_free(r->seqs);
    vg_free(r);
}

/* ---- from a state ---- */

/* The newest state of a kind and where its history goes on, taken together. */
static void take_state(struct vg_cache_watcher *w, struct vg_cache_snapshot *ret,
                       uint64_t *ret_next)
{
    struct vg_watch_cache *wc = w->pk->wc;
    vg_rev rev = vg_cacher_revision(w->pk->port->c);
    vg_mutex_lock(&wc->mu);
    ret->root = vg_root_ref(wc->root);
    ret->trigger = wc->trigger_root ? vg_root_ref(wc->trigger_root) : NULL;
    *ret_next = wc->published;
    vg_mutex_unlock(&wc->mu);
    ret->rev = VG_MAX(rev, vg_root_rev(ret->root));
}

static int start_state(struct vg_cache_watcher *w)
{
    struct state_source *s = vg_new(struct state_source);
    if (!s)
        return -ENOMEM;
    w->replay->state = s;
    w->replay->kind = FROM_STATE;
    take_state(w, &s->snapshot, &w->next);
    w->after = w->replay->rev = s->snapshot.rev;
    w->replay->sub = UINT32_MAX;
    vg_cache_walk_init(&s->walk, w->pk->port->c, w->pk->wc->index, &s->snapshot, w->predicate,
                       vg_slice(NULL, 0), &s->key_buf);
    return 0;
}

enum told vg_replay_finish_state(struct vg_cache_watcher *w, enum replay_kind then)
{
    struct replay *r = w->replay;
    drop_state(r);
    r->kind = then;
    return r->with_end_bookmark ? vg_watcher_bookmark(w, w->replay->rev, true) : TOLD_OK;
}

/* A form that another thread is encoding concerns changes alone: objects of a state have none. */
static bool step_state(struct vg_cache_watcher *w)
{
    struct state_source *s = w->replay->state;
    for (int i = 0; i < STEP_MAX; i++) {
        const struct vg_rec *rec = vg_cache_walk_next(&s->walk);
        if (!rec)
            return vg_replay_finish_state(w, FROM_TAIL) == TOLD_OK;
        struct vg_told t;
        vg_told_init_state(&t, rec);
        vg_count(&w->pk->port->c->init_events, 1);
        if (vg_watcher_tell(w, &t) != TOLD_OK)
            return false;
    }
    return true;
}

/* ---- from the hot tail ---- */

static int gather(struct replay *r, uint64_t seq)
{
    if (r->n_seqs == r->seqs_cap) {
        size_t cap = r->seqs_cap ? r->seqs_cap * 2 : 64;
        uint64_t *v = vg_reallocarray(r->seqs, cap, sizeof *v);
        if (!v)
            return -ENOMEM;
        r->seqs = v;
        r->seqs_cap = cap;
    }
    r->seqs[r->n_seqs++] = seq;
    return 0;
}

static struct vg_slice trigger_of(const struct vg_rec *rec)
{
    struct vg_obj_header h;
    vg_rec_read(rec, &h);
    return vg_obj_trigger(&h);
}

/* The link to the change before `c` with the same trigger value. */
static vg_link link_by_trigger(const struct vg_change *c, struct vg_slice value)
{
    if (c->keeps_trigger)
        return c->same_trigger; /* and the record is not touched */
    const struct vg_rec *now = vg_rec_is_delete(c->rec) ? c->prev : c->rec;
    return vg_slice_eq(trigger_of(now), value) ? c->same_trigger : c->same_trigger_old;
}

/* Follow the links from `link` down to the position; the newest comes first in seqs. */
static int follow_links(struct vg_cache_watcher *w, vg_link link, const struct vg_slice *trigger)
{
    struct replay *r = w->replay;
    uint64_t lowest = VG_MAX(w->next, r->hold.view->oldest);
    while (link && link - 1 >= lowest) {
        uint64_t seq = link - 1;
        const struct vg_change *c = vg_history_at(r->hold.view, seq);
        int err = gather(r, seq);
        if (err < 0)
            return err;
        vg_rec_fetch(c->rec);
        link = trigger ? link_by_trigger(c, *trigger) : c->same_namespace;
    }
    return 0;
}

/* Take hold of the tail as it is now, with the newest link of our value. */
static int take_hold(struct vg_cache_watcher *w)
{
    struct replay *r = w->replay;
    struct vg_watch_cache *wc = w->pk->wc;
    struct vg_slice value = {0};
    bool by_trigger = wc->by_trigger && vg_obj_predicate_trigger(w->predicate, &value);
    bool by_ns =
        !by_trigger && wc->kind->is_namespaced && vg_obj_predicate_namespace(w->predicate, &value);
    vg_link link = 0;
    drop_hold(r);
    vg_mutex_lock(&wc->mu);
    r->hold.view = vg_history_view_ref(wc->history.view);
    r->hold.end = wc->published;
    assert(r->hold.end >= w->pk->dispatched); /* P1, P2: the history has what replay must tell */
    if (by_trigger)
        link = vg_history_newest_trigger(&wc->history, value);
    else if (by_ns)
        link = vg_history_newest_namespace(&wc->history, value);
    vg_mutex_unlock(&wc->mu);
    r->use_links = by_trigger || by_ns;
    r->links_decide = by_trigger && vg_obj_predicate_is_trigger(w->predicate);
    return r->use_links ? follow_links(w, link, by_trigger ? &value : NULL) : 0;
}

/* The next change to look at below `end`; UINT64_MAX: none. Links were gathered newest first. */
static uint64_t next_seq(struct vg_cache_watcher *w, uint64_t end)
{
    struct replay *r = w->replay;
    if (!r->use_links)
        return w->next < end ? w->next : UINT64_MAX;
    if (!r->n_seqs || r->seqs[r->n_seqs - 1] >= end)
        return UINT64_MAX;
    return r->seqs[--r->n_seqs];
}

/* A revision is never split over two batches: if none with it follows below `end`, it is whole. */
static void look_at(struct vg_cache_watcher *w, uint64_t seq, const struct vg_rec *rec)
{
    const struct vg_tail_hold *h = &w->replay->hold;
    bool has_more = seq + 1 < h->end && vg_history_at(h->view, seq + 1)->rev == rec->rev;
    w->next = seq + 1;
    w->replay->rev = rec->rev;
    w->replay->sub = has_more ? rec->sub : UINT32_MAX;
}

/* A node's kubelet asks for its pods and nothing else: what its links lead to need not be asked. */
static void init_told(const struct replay *r, struct vg_change *c, struct vg_told *t)
{
    if (r->links_decide && c->keeps_trigger && !vg_rec_is_delete(c->rec))
        vg_told_init_matching(t, c);
    else
        vg_told_init(t, c->rec, c->prev, c);
}

/* Tell changes up to `end`. TOLD_OK: all of them, or as many as a step may. */
static enum told tell_tail(struct vg_cache_watcher *w, uint64_t end)
{
    struct replay *r = w->replay;
    for (int i = 0; i < STEP_MAX; i++) {
        uint64_t seq = next_seq(w, end);
        if (seq == UINT64_MAX) {
            w->next = VG_MAX(w->next, end);
            return TOLD_OK;
        }
        struct vg_change *c = vg_history_at(r->hold.view, seq);
        struct vg_told t;
        init_told(r, c, &t);
        vg_count(&w->pk->port->c->events_replayed, 1);
        enum told told = c->rev <= w->after ? TOLD_OK : vg_watcher_tell(w, &t);
        if (told == TOLD_ENDED)
            return told;
        if (told == TOLD_AGAIN) {
            if (r->use_links)
                r->n_seqs++; /* not yet */
            return told;
        }
        look_at(w, seq, c->rec);
        if (told == TOLD_FULL)
            return told;
    }
    return TOLD_OK;
}

static bool step_tail(struct vg_cache_watcher *w)
{
    struct replay *r = w->replay;
    if (!r->hold.view || (w->next >= r->hold.end && w->next < w->pk->dispatched)) {
        if (take_hold(w) < 0) {
            vg_watcher_end(w, VG_END_INTERNAL, 0);
            return false;
        }
    }
    if (w->next < r->hold.view->oldest) { /* it has moved on past us */
        drop_hold(r);
        if (vg_replay_start_storage(w) < 0)
            vg_watcher_end(w, VG_END_INTERNAL, 0);
        return false;
    }
    uint64_t end = VG_MIN(r->hold.end, w->pk->dispatched);
    enum told told = tell_tail(w, end);
    if (told == TOLD_AGAIN) {
        w->pk->port->yields = true;
        return true;
    }
    if (told != TOLD_OK) {
        if (told == TOLD_FULL)
            drop_hold(r); /* pins nothing while it waits */
        return false;
    }
    if (w->next < w->pk->dispatched)
        return true;
    if (vg_watcher_go_live(w) < 0)
        vg_watcher_end(w, VG_END_INTERNAL, 0);
    else if (w->sink->ops->live)
        w->sink->ops->live(w->sink);
    return false;
}

/* ---- the way in ---- */

bool vg_replay_step(struct vg_cache_watcher *w)
{
    if (w->state != WATCHER_BEHIND || w->is_full)
        return false;
    switch (w->replay->kind) {
    case FROM_STATE:
        return step_state(w);
    case FROM_LIST:
        return vg_replay_step_list(w);
    case FROM_TAIL:
        return step_tail(w);
    case FROM_STORAGE:
        return vg_replay_step_storage(w);
    }
    return false;
}

void vg_replay_progress(struct vg_cache_watcher *w)
{
    w->replay->progress_ns = vg_cacher_now_ns(w->pk->port->c);
}

uint64_t vg_replay_progress_ns(const struct vg_cache_watcher *w)
{
    return w->replay->progress_ns;
}

static int new_replay(struct vg_cache_watcher *w)
{
    w->replay = vg_new(struct replay);
    if (!w->replay)
        return -ENOMEM;
    w->replay->kind = FROM_TAIL;
    return 0;
}

int vg_replay_resume(struct vg_cache_watcher *w, vg_rev rev, uint32_t sub)
{
    int err = new_replay(w);
    if (err < 0)
        return err;
    w->replay->rev = rev;
    w->replay->sub = sub;
    return 0;
}

vg_rev vg_replay_revision(const struct vg_cache_watcher *w)
{
    return w->replay ? w->replay->rev : w->after;
}

/* What follows a revision, of a kind with a cache. */
static void start_after(struct vg_cache_watcher *w, vg_rev rev)
{
    struct vg_tail_hold h = vg_watch_cache_hold(w->pk->wc);
    w->after = w->replay->rev = rev;
    w->replay->sub = UINT32_MAX;
    if (rev >= h.view->oldest_rev) {
        w->next = vg_history_after(h.view, h.end, rev);
    } else {
        w->next = 0;
        w->replay->kind = FROM_STORAGE;
    }
    vg_history_view_unref(h.view);
}

int vg_replay_start(struct vg_cache_watcher *w, const struct vg_cache_watch_opts *opts)
{
    struct vg_cacher *c = w->pk->port->c;
    bool is_uncached = w->pk->wc->kind->is_uncached;
    w->state = WATCHER_BEHIND;
    int err = new_replay(w);
    if (err < 0)
        return err;
    w->replay->with_end_bookmark = opts->with_end_bookmark;
    if (opts->start == VG_WATCH_STATE) {
        err = is_uncached ? vg_replay_start_list(w) : start_state(w);
    } else {
        vg_rev rev =
            opts->start == VG_WATCH_AFTER ? opts->rev : vg_storage_revision(c->opts.storage);
        if (is_uncached) {
            w->after = w->replay->rev = rev;
            w->replay->sub = UINT32_MAX;
            w->replay->kind = FROM_STORAGE;
        } else {
            start_after(w, rev);
        }
    }
    if (err < 0)
        vg_replay_free(w);
    return err;
}
