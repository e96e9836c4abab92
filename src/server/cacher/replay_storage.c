/* replay_storage.c - catching up from storage: the log through a storage watch of the kind's keys,
 * paused while what it brought is being told; and the state of a kind without a cache, in pages.
 * The states and their edges are in replay.c. */
#include <errno.h>

#include "base/alloc.h"
#include "replay_int.h"

/* Changes that a storage watch brings at a time: what a full sink makes wait. */
#define STORAGE_BATCH 64
#define LIST_PAGE 500

/* ---- life ---- */

static void drop_pending(struct storage_source *s)
{
    for (size_t i = s->pending_at; i < s->n_pending; i++) {
        vg_rec_unref(s->pending[i].rec);
        vg_rec_unref(s->pending[i].prev);
    }
    s->n_pending = s->pending_at = 0;
}

static void really_free(struct storage_source *s)
{
    drop_pending(s);
    vg_range_done(&s->list);
    vg_free(s->pending);
    vg_free(s);
}

void vg_storage_source_free(struct storage_source *s)
{
    if (!s)
        return;
    if (s->watch)
        vg_watch_cancel(s->watch);
    s->watch = NULL;
    s->w = NULL;
    if (!s->is_listing)
        really_free(s);
}

/* The watcher's source, made when it is first needed, with the keys that concern it. */
static int open_source(struct vg_cache_watcher *w, struct storage_source **ret_source)
{
    struct replay *r = w->replay;
    struct vg_slice ns = {0};
    if (!w->pk->wc->kind->is_namespaced || !vg_obj_predicate_namespace(w->predicate, &ns))
        ns.n = 0;
    if (!r->storage)
        r->storage = vg_new(struct storage_source);
    if (!r->storage)
        return -ENOMEM;
    r->storage->w = w;
    *ret_source = r->storage;
    return vg_obj_key_range(w->pk->wc->prefix, ns, &r->storage->keys);
}

/* ---- from storage ---- */

static bool is_behind_us(const struct vg_cache_watcher *w, const struct vg_rec *rec)
{
    return rec->rev < w->replay->rev ||
           (rec->rev == w->replay->rev && rec->sub <= w->replay->sub) || rec->rev <= w->after;
}

/* False: it cannot be told, or it replaced what cannot be told: then nobody knows whether the
 * watcher had it. */
static bool is_readable(const struct vg_event *e)
{
    struct vg_obj_header h;
    if (e->prev ? !vg_rec_open(e->prev, &h) : vg_rec_is_delete(e->rec))
        return false;
    return vg_rec_is_delete(e->rec) || vg_rec_open(e->rec, &h);
}

/* Tell what is pending. TOLD_OK: all of it. */
static enum told tell_pending(struct vg_cache_watcher *w)
{
    struct storage_source *s = w->replay->storage;
    while (s->pending_at < s->n_pending) {
        struct vg_event e = s->pending[s->pending_at];
        bool is_new = !is_behind_us(w, e.rec);
        enum told told = TOLD_OK;
        if (is_new && !is_readable(&e)) {
            vg_watcher_end(w, VG_END_EXPIRED, e.rec->rev); /* a new list tells what there is */
            return TOLD_ENDED;
        }
        if (is_new) {
            struct vg_told t;
            vg_told_init(&t, e.rec, e.prev, NULL);
            vg_count(&w->pk->port->c->events_from_storage, 1);
            told = vg_watcher_tell(w, &t);
        }
        if (told == TOLD_ENDED || told == TOLD_AGAIN)
            return told; /* ended: s may be gone with the watcher's replay */
        if (is_new) {    /* what was told before must not move the position back */
            w->replay->rev = e.rec->rev;
            w->replay->sub = e.rec->sub;
        }
        vg_rec_unref(s->pending[s->pending_at].rec);
        vg_rec_unref(s->pending[s->pending_at].prev);
        s->pending_at++;
        if (told == TOLD_FULL)
            return told;
    }
    s->n_pending = s->pending_at = 0;
    w->replay->rev = VG_MAX(w->replay->rev, s->pending_rev);
    w->replay->sub = UINT32_MAX;
    return TOLD_OK;
}

/* Has the log brought us to where the hot tail begins? Then go on from there. */
static bool join_tail(struct vg_cache_watcher *w)
{
    struct replay *r = w->replay;
    if (w->pk->wc->kind->is_uncached)
        return false;
    struct vg_tail_hold h = vg_watch_cache_hold(w->pk->wc);
    bool can_join = w->replay->rev >= h.view->oldest_rev;
    if (can_join) {
        w->next = vg_history_after(h.view, h.end, w->replay->rev);
        w->after = VG_MAX(w->after, w->replay->rev); /* storage may be ahead of the cache */
    }
    vg_history_view_unref(h.view);
    if (!can_join)
        return false;
    vg_storage_source_free(vg_steal(r->storage));
    r->kind = FROM_TAIL;
    return true;
}

/* Pending changes are told: join the tail, or let storage go on. True: more can be done at once. */
static bool after_pending(struct vg_cache_watcher *w)
{
    if (join_tail(w))
        return true;
    struct storage_source *s = w->replay->storage;
    if (s->watch && s->is_paused) {
        s->is_paused = false;
        vg_watch_resume(s->watch);
    }
    return false;
}

static int keep_pending(struct storage_source *s, const struct vg_watch_batch *b)
{
    struct vg_event *v = vg_reallocarray(s->pending, VG_MAX(b->n, (size_t)1), sizeof *v);
    if (!v)
        return -ENOMEM;
    s->pending = v;
    for (size_t i = 0; i < b->n; i++) {
        v[i].rec = vg_rec_ref(b->events[i].rec);
        v[i].prev = b->events[i].prev ? vg_rec_ref(b->events[i].prev) : NULL;
    }
    s->n_pending = b->n;
    s->pending_at = 0;
    s->pending_rev = b->rev;
    return 0;
}

/* The storage watch is paused until what it brought has been told, in the watcher's own turn. */
static void on_batch(struct vg_watch *watch, const struct vg_watch_batch *b, void *arg)
{
    struct storage_source *s = arg;
    struct vg_cache_watcher *w = s->w;
    if (keep_pending(s, b) < 0) {
        vg_watcher_end(w, VG_END_INTERNAL, 0);
        return;
    }
    vg_watch_pause(watch);
    s->is_paused = true;
    vg_watcher_queue(w);
}

static void on_end(struct vg_watch *watch, int err, vg_rev compact_rev, void *arg)
{
    struct storage_source *s = arg;
    (void)watch;
    s->watch = NULL;
    vg_watcher_end(s->w, err == VIGIL_E_COMPACTED ? VG_END_EXPIRED : VG_END_INTERNAL, compact_rev);
}

int vg_replay_start_storage(struct vg_cache_watcher *w)
{
    struct storage_source *s;
    int err = open_source(w, &s);
    if (err < 0)
        return err;
    struct vg_watch_opts o = {
        .loop = w->pk->port->loop,
        .keys = {.kind = VG_KEYS_SPAN,
                 .start = vg_obj_key_slice(&s->keys.start),
                 .end = vg_obj_key_slice(&s->keys.end)},
        /* Its last revision may be half told: begin with it, and skip what is behind us. */
        .from = w->replay->sub == UINT32_MAX ? w->replay->rev + 1 : w->replay->rev,
        .batch_max = STORAGE_BATCH,
        .progress = true,
        .unreadable = true,
        .on_batch = on_batch,
        .on_end = on_end,
        .arg = s,
    };
    w->replay->kind = FROM_STORAGE;
    s->is_paused = false;
    return vg_storage_watch(w->pk->port->c->opts.storage, &o, &s->watch);
}

bool vg_replay_step_storage(struct vg_cache_watcher *w)
{
    const struct storage_source *s = w->replay->storage;
    if (!s || !s->watch) {
        if (vg_replay_start_storage(w) < 0)
            vg_watcher_end(w, VG_END_INTERNAL, 0);
        return false;
    }
    if (!s->is_paused)
        return false; /* nothing has come yet */
    enum told told = tell_pending(w);
    if (told != TOLD_OK)
        return told == TOLD_AGAIN;
    return after_pending(w);
}

/* ---- a state from storage ---- */

static void on_page(struct vg_store_req *req)
{
    struct storage_source *s =
        VG_CONTAINER_OF(VG_CONTAINER_OF(req, struct vg_range, req), struct storage_source, list);
    s->is_listing = false;
    if (!s->w) {
        really_free(s);
        return;
    }
    if (req->err < 0) {
        vg_watcher_end(s->w, req->err == VIGIL_E_COMPACTED ? VG_END_EXPIRED : VG_END_INTERNAL,
                       req->compact_rev);
        return;
    }
    s->w->replay->rev = s->w->after = req->rev;
    s->w->replay->sub = UINT32_MAX;
    s->list_at = 0;
    vg_watcher_queue(s->w);
}

static int next_page(struct vg_cache_watcher *w, vg_rev at)
{
    struct storage_source *s = w->replay->storage;
    s->list = (struct vg_range){
        .req = {.loop = w->pk->port->loop, .done = on_page},
        .keys = {.kind = VG_KEYS_SPAN,
                 .start = vg_obj_key_slice(&s->keys.start),
                 .end = vg_obj_key_slice(&s->keys.end)},
        .at = at,
        .limit = LIST_PAGE,
        .flags = VG_RANGE_UNREADABLE,
    };
    int err = vg_storage_range(w->pk->port->c->opts.storage, &s->list);
    s->is_listing = err == 0;
    return err;
}

int vg_replay_start_list(struct vg_cache_watcher *w)
{
    struct storage_source *s;
    int err = open_source(w, &s);
    w->replay->kind = FROM_LIST;
    return err < 0 ? err : next_page(w, 0);
}

static bool finish_page(struct vg_cache_watcher *w)
{
    struct storage_source *s = w->replay->storage;
    bool more = s->list.more;
    int err = 0;
    if (more)
        err = vg_obj_key_next(vg_rec_key(s->list.recs[s->list.n_recs - 1]), &s->keys.start);
    vg_rev at = w->replay->rev;
    vg_range_done(&s->list);
    if (err == 0 && more)
        err = next_page(w, at);
    if (err < 0) {
        vg_watcher_end(w, VG_END_INTERNAL, 0);
        return false;
    }
    return !more && vg_replay_finish_state(w, FROM_STORAGE) == TOLD_OK;
}

bool vg_replay_step_list(struct vg_cache_watcher *w)
{
    struct storage_source *s = w->replay->storage;
    if (s->is_listing)
        return false;
    for (; s->list_at < s->list.n_recs; s->list_at++) {
        struct vg_event e = {.rec = s->list.recs[s->list_at]};
        struct vg_told t;
        if (!is_readable(&e)) {
            vg_watcher_end(w, VG_END_UNREADABLE, 0);
            return false;
        }
        vg_told_init_state(&t, e.rec);
        vg_count(&w->pk->port->c->init_events, 1);
        enum told told = vg_watcher_tell(w, &t);
        if (told == TOLD_OK)
            continue;
        if (told == TOLD_FULL)
            s->list_at++;
        return false;
    }
    return finish_page(w);
}
