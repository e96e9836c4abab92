/* watcher.c - the cache watcher: live without a queue, behind with a cursor.
 *
 * BEHIND  replays a state, the hot tail or the log of storage, in slices (replay.c)
 *   | vg_watcher_go_live(): it has seen all that its loop has dispatched
 * LIVE    holds no position: it is where its loop is, found by the interest index
 *   | vg_watcher_fall_behind(): its sink is full, or a form is being encoded elsewhere
 *   | (any) vg_watcher_end(), vg_cache_watcher_stop()
 * ENDED   freed as soon as no call into its sink is on the stack
 *
 * Invariants:
 *   V1 LIVE: it is in exactly one ring of the interest index, the narrowest; BEHIND: in none.
 *   V2 every change up to the replay's (rev, sub), or below `next`, has been looked at; none above.
 *   V3 while its sink is full nothing is written to it. */
#include <errno.h>

#include "base/alloc.h"
#include "cacher_int.h"

/* ---- the interest index ---- */

/* A ring of the index: its map and its value; no map: the one of all. */
struct place {
    struct vg_map *map;
    struct vg_slice value; /* the predicate's */
};

/* Name before trigger before namespace: the narrowest ring that is sure to see all its changes. */
static struct place narrowest(const struct vg_cache_watcher *w)
{
    struct place at = {0};
    if (vg_obj_predicate_name(w->predicate, &at.value))
        at.map = &w->pk->by_name;
    else if (vg_obj_predicate_trigger(w->predicate, &at.value))
        at.map = &w->pk->by_trigger;
    else if (vg_obj_predicate_namespace(w->predicate, &at.value))
        at.map = &w->pk->by_namespace;
    return at;
}

/* One look-up: the newcomer is the last of its ring and takes the place of the one before it, which
 * is *ret_before. */
static int enter(struct vg_cache_watcher *w, void **ret_before)
{
    struct vg_port_kind *pk = w->pk;
    struct place at = narrowest(w);
    if (at.map)
        return vg_map_put(at.map, at.value, &w->link, ret_before);
    *ret_before = pk->all;
    pk->all = &w->link;
    return 0;
}

int vg_watcher_go_live(struct vg_cache_watcher *w)
{
    struct vg_cache_port *p = w->pk->port;
    void *last = NULL;
    assert(w->next >= w->pk->dispatched); /* P4 */
    vg_mutex_lock(&p->mu);
    int r = enter(w, &last);
    vg_mutex_unlock(&p->mu);
    if (r < 0)
        return r;
    vg_replay_free(w);
    vg_list_remove(&w->link);
    if (last)
        vg_list_insert_before(((struct vg_list *)last)->next, &w->link);
    w->state = WATCHER_LIVE;
    if (vg_tail_has_next(&p->cursor)) /* I2 of interest.c: its loop may have been spared that */
        vg_port_wake(p);
    return 0;
}

static void step_over(struct vg_walking *walk, const struct vg_list *leaving)
{
    if (walk->last != leaving)
        walk->next = walk->next == leaving ? leaving->next : walk->next;
    else if (walk->next == leaving)
        walk->next = NULL;
    else
        walk->last = leaving->prev;
}

/* A ring has lost its last, and with it the key that the map had borrowed. */
static void set_last(struct vg_list *last)
{
    struct place at = narrowest(VG_CONTAINER_OF(last, struct vg_cache_watcher, link));
    int r = vg_map_put(at.map, at.value, last, NULL);
    assert(r == 1); /* replacing takes no memory */
    (void)r;
}

void vg_watcher_leave_live(struct vg_cache_watcher *w)
{
    struct vg_port_kind *pk = w->pk;
    struct vg_list *before = vg_list_is_empty(&w->link) ? NULL : w->link.prev;
    bool is_last_of_all = pk->all == &w->link;
    struct place at = narrowest(w);
    if (pk->port->walking)
        step_over(pk->port->walking, &w->link);
    vg_list_remove(&w->link);
    vg_mutex_lock(&pk->port->mu);
    if (is_last_of_all)
        pk->all = before;
    else if (at.map && !before)
        vg_map_remove(at.map, at.value);
    else if (at.map && vg_map_get(at.map, at.value) == &w->link)
        set_last(before);
    vg_mutex_unlock(&pk->port->mu);
}

void vg_watcher_queue(struct vg_cache_watcher *w)
{
    if (w->state != WATCHER_BEHIND || w->is_full || !vg_list_is_empty(&w->link))
        return;
    vg_list_push_back(&w->pk->port->behind, &w->link);
    vg_port_wake(w->pk->port);
}

/* BEHIND, and its sink takes no more: it waits, and is ended if that takes too long. */
static void wait_for_sink(struct vg_cache_watcher *w)
{
    vg_replay_progress(w);
    vg_list_remove(&w->link);
    vg_list_push_back(&w->pk->port->full, &w->link);
    vg_port_schedule(w);
}

/* LIVE before; all up to (rev, sub) has been looked at. */
static void go_behind(struct vg_cache_watcher *w, vg_rev rev, uint32_t sub)
{
    vg_watcher_leave_live(w);
    w->state = WATCHER_BEHIND;
    if (vg_replay_resume(w, rev, sub) < 0)
        vg_watcher_end(w, VG_END_INTERNAL, 0);
    else if (w->is_full)
        wait_for_sink(w);
    else
        vg_watcher_queue(w);
}

void vg_watcher_fall_behind(struct vg_cache_watcher *w, const struct vg_cache_event *at,
                            bool is_told)
{
    const struct vg_rec *rec = at->change->rec;
    w->next = at->seq + is_told;
    /* Untold: everything before this change has been looked at, the change itself has not. */
    vg_rev rev = is_told ? rec->rev : rec->sub ? rec->rev : rec->rev - 1;
    uint32_t sub = is_told ? rec->sub : rec->sub ? rec->sub - 1 : UINT32_MAX;
    if (is_told && at->ends_rev)
        sub = UINT32_MAX; /* the whole revision, which may then be compacted */
    go_behind(w, rev, sub);
}

/* ---- delivering ---- */

static enum told write_frame(struct vg_cache_watcher *w, const struct vg_frame *f)
{
    w->in_write = true;
    int r = w->sink->ops->write(w->sink, f);
    w->in_write = false;
    if (w->state == WATCHER_ENDED)
        return TOLD_ENDED;
    if (r < 0) {
        vg_watcher_end(w, VG_END_GONE, 0);
        return TOLD_ENDED;
    }
    if (r == VG_SINK_OPEN)
        return TOLD_OK;
    w->is_full = true;
    if (w->state == WATCHER_BEHIND) /* else it goes behind, and waits there */
        wait_for_sink(w);
    return TOLD_FULL;
}

enum told vg_watcher_tell(struct vg_cache_watcher *w, struct vg_told *t)
{
    enum vg_obj_change change = vg_told_change(t, w->predicate);
    if (change == VG_OBJ_NONE)
        return TOLD_OK;
    struct vg_frame own;
    const struct vg_frame *f;
    int r = vg_told_frame(w->pk->port->c, t, change, w->form, &own, &f);
    if (r == 0)
        return TOLD_AGAIN;
    if (r < 0) {
        vg_watcher_end(w, VG_END_INTERNAL, 0);
        return TOLD_ENDED;
    }
    enum told told = write_frame(w, f);
    if (f == &own)
        vg_frame_done(&own);
    return told;
}

enum told vg_watcher_bookmark(struct vg_cache_watcher *w, vg_rev rev, bool is_end)
{
    struct vg_frame f;
    vg_frame_bookmark(&f, w->pk->wc, rev, is_end);
    vg_count(&w->pk->port->c->bookmarks, 1);
    return write_frame(w, &f);
}

/* ---- ending ---- */

void vg_watcher_free_if_ended(struct vg_cache_watcher *w)
{
    if (w->state != WATCHER_ENDED || w->in_write)
        return;
    vg_replay_free(w);
    vg_obj_predicate_unref(w->predicate);
    vg_free(w);
}

static void retire(struct vg_cache_watcher *w)
{
    if (w->state == WATCHER_LIVE)
        vg_watcher_leave_live(w);
    w->state = WATCHER_ENDED;
    if (!w->in_write) /* else the frame in the sink's hands points into what the replay holds */
        vg_replay_free(w);
    vg_list_remove(&w->link);
    vg_list_remove(&w->due);
    atomic_fetch_sub(&w->pk->port->c->pinned, w->pinned);
    w->pinned = 0;
    w->pk->port->n_watchers--;
    /* Whoever is walking a list of watchers frees them when the walk is over. */
    vg_list_push_back(&w->pk->port->ended, &w->due);
    vg_port_wake(w->pk->port);
}

void vg_watcher_end(struct vg_cache_watcher *w, enum vg_watch_end why, vg_rev oldest)
{
    if (w->state == WATCHER_ENDED)
        return;
    vg_count(&w->pk->port->c->ended[why], 1);
    retire(w);
    w->in_write = true;
    w->sink->ops->end(w->sink, why, oldest);
    w->in_write = false;
}

void vg_cache_watcher_stop(struct vg_cache_watcher *w)
{
    if (w->state == WATCHER_ENDED)
        return;
    vg_count(&w->pk->port->c->ended[VG_END_GONE], 1);
    retire(w);
}

/* ---- what the sink says ---- */

void vg_cache_watcher_progress(struct vg_cache_watcher *w)
{
    if (w->state == WATCHER_BEHIND)
        vg_replay_progress(w);
}

void vg_cache_watcher_pins(struct vg_cache_watcher *w, int64_t delta)
{
    w->pinned = (uint32_t)((int64_t)w->pinned + delta);
    atomic_fetch_add(&w->pk->port->c->pinned, delta);
}

uint32_t vg_cache_watcher_pinned(const struct vg_cache_watcher *w)
{
    return w->pinned;
}

const struct vg_obj_predicate *vg_cache_watcher_predicate(const struct vg_cache_watcher *w)
{
    return w->predicate;
}

vg_rev vg_cache_watcher_revision(const struct vg_cache_watcher *w)
{
    return w->state == WATCHER_LIVE ? w->pk->port->seen : vg_replay_revision(w);
}

void vg_cache_watcher_drained(struct vg_cache_watcher *w)
{
    if (!w->is_full || w->state != WATCHER_BEHIND)
        return;
    w->is_full = false;
    vg_list_remove(&w->link);
    vg_watcher_queue(w);
}

/* ---- due times ---- */

/* When a sink that is full will have stalled. */
static uint64_t stalled_ns(const struct vg_cache_watcher *w)
{
    return vg_replay_progress_ns(w) + w->pk->port->c->opts.stall_ms * VG_NS_PER_MS;
}

uint64_t vg_watcher_next_due(const struct vg_cache_watcher *w)
{
    uint64_t at = UINT64_MAX;
    if (w->deadline_ns)
        at = w->deadline_ns;
    if (w->with_bookmarks)
        at = VG_MIN(at, w->bookmark_ns);
    if (w->is_full)
        at = VG_MIN(at, stalled_ns(w));
    return at;
}

/* A minute, and up to a quarter more, so that they do not come all at once; or two seconds before
 * the end, if that is sooner. */
static void plan_bookmark(struct vg_cache_watcher *w, uint64_t now_ns)
{
    uint64_t period = w->pk->port->c->opts.bookmark_ms * VG_NS_PER_MS;
    w->bookmark_ns = now_ns + period + vg_rng_below(&w->pk->port->rng, period / 4 + 1);
    uint64_t last = w->deadline_ns > 2 * VG_NS_PER_S ? w->deadline_ns - 2 * VG_NS_PER_S : 0;
    if (last > now_ns)
        w->bookmark_ns = VG_MIN(w->bookmark_ns, last);
}

/* Only a live watcher knows that it has seen everything up to a revision. The bookmark at the end
 * of a state is at `after`, so that none falls behind the one before. */
static void send_bookmark(struct vg_cache_watcher *w)
{
    vg_rev rev = w->pk->port->seen;
    if (w->state != WATCHER_LIVE || rev <= w->after)
        return;
    if (vg_watcher_bookmark(w, rev, false) == TOLD_FULL) {
        w->next = VG_MAX(w->next, w->pk->dispatched);
        go_behind(w, rev, UINT32_MAX);
    }
}

void vg_watcher_due(struct vg_cache_watcher *w, uint64_t now_ns)
{
    if (w->is_full && now_ns >= stalled_ns(w)) {
        vg_watcher_end(w, VG_END_STALLED, 0);
        return;
    }
    if (w->with_bookmarks && now_ns >= w->bookmark_ns) {
        send_bookmark(w);
        plan_bookmark(w, now_ns);
    }
    if (w->state != WATCHER_ENDED && w->deadline_ns && now_ns >= w->deadline_ns)
        vg_watcher_end(w, VG_END_TIME, 0);
    if (w->state != WATCHER_ENDED)
        vg_port_schedule(w);
}

/* ---- opening ---- */

int vg_cache_watch(struct vg_cache_port *p, const struct vg_cache_watch_opts *opts,
                   struct vg_cache_watcher **ret_watcher, vg_rev *ret_oldest)
{
    struct vg_cacher *c = p->c;
    vg_rev compacted = vg_storage_compacted(c->opts.storage);
    if (!c->kinds[opts->kind].kind->is_uncached && !vg_cacher_is_ready(c))
        return VIGIL_E_BUSY;
    if (opts->start == VG_WATCH_AFTER && opts->rev < compacted) {
        *ret_oldest = compacted;
        return VIGIL_E_COMPACTED;
    }
    struct vg_cache_watcher *w = vg_new(struct vg_cache_watcher);
    if (!w)
        return -ENOMEM;
    uint64_t now = vg_cacher_now_ns(c);
    w->pk = &p->kinds[opts->kind];
    w->predicate = vg_obj_predicate_ref(opts->predicate);
    w->sink = opts->sink;
    w->form = opts->form;
    w->with_bookmarks = opts->with_bookmarks;
    w->deadline_ns = opts->timeout_ms ? now + opts->timeout_ms * VG_NS_PER_MS : 0;
    vg_list_init(&w->link);
    vg_list_init(&w->due);
    int r = vg_replay_start(w, opts);
    if (r < 0) {
        vg_obj_predicate_unref(w->predicate);
        vg_free(w);
        return r;
    }
    plan_bookmark(w, now);
    p->n_watchers++;
    vg_port_schedule(w);
    vg_watcher_queue(w);
    *ret_watcher = w;
    return 0;
}
