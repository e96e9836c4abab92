/* port.c - one loop's door to the cache: pulls batches, finds the watchers that care, gives those
 * that are behind their turns.
 * A turn: batches of the tail first (live watchers), then catching up. Catching up is free in turns
 * that had nothing live to do; beside live work it may use the time budget alone, which grows by 50
 * ms each second up to 100 ms: watchers that are behind never delay those that are not. */
#include <errno.h>

#include "base/alloc.h"
#include "cacher_int.h"

/* The longest that catching up holds the loop in one turn. */
#define TURN_MAX_NS ((int64_t)(5 * VG_NS_PER_MS))

/* Events: enough for a miss to be served meanwhile. */
#define FETCH_AHEAD 4

/* ---- waking ---- */

/* Thread: any. */
void vg_port_wake(struct vg_cache_port *p)
{
    if (!atomic_exchange_explicit(&p->woken, true, memory_order_acq_rel))
        vg_loop_post(p->loop, &p->wake_mail);
}

/* Thread: the feed. */
static void on_publish(void *arg)
{
    struct vg_cache_port *p = arg;
    if (vg_port_is_concerned(p, p->c->publishing))
        vg_port_wake(p);
}

/* ---- dispatching ---- */

static void tell_live(struct vg_cache_watcher *w, const struct vg_cache_event *ev,
                      struct vg_told *t)
{
    if (ev->seq < w->next || t->rev <= w->after)
        return;
    __builtin_prefetch(w->sink); /* meanwhile its predicate is read */
    switch (vg_watcher_tell(w, t)) {
    case TOLD_OK:
        break;
    case TOLD_FULL:
        vg_watcher_fall_behind(w, ev, true);
        break;
    case TOLD_AGAIN:
        vg_watcher_fall_behind(w, ev, false);
        break;
    case TOLD_ENDED:
        break;
    }
}

/* The ring may lose the watcher under way, and those after it by what its sink does. */
static void tell_ring(struct vg_cache_port *p, struct vg_list *last,
                      const struct vg_cache_event *ev, struct vg_told *t, uint64_t *told)
{
    if (!last)
        return;
    struct vg_walking walk = {.next = last->next, .last = last};
    p->walking = &walk;
    while (walk.next) {
        struct vg_cache_watcher *w = VG_CONTAINER_OF(walk.next, struct vg_cache_watcher, link);
        walk.next = walk.next == walk.last ? NULL : walk.next->next;
        tell_live(w, ev, t);
        (*told)++;
    }
    p->walking = NULL;
}

static void tell_value(struct vg_cache_port *p, struct vg_map *map, struct vg_slice value,
                       const struct vg_cache_event *ev, struct vg_told *t, uint64_t *told)
{
    if (vg_map_count(map))
        tell_ring(p, vg_map_get(map, value), ev, t, told);
}

/* Those of the value that the object has now, and if it had another before, of that one. A node's
 * kubelet asks for its pods and nothing else: of a pod that stays, what it was need not be read. */
static void tell_triggers(struct vg_cache_port *p, struct vg_port_kind *pk,
                          const struct vg_obj_header *h, const struct vg_cache_event *ev,
                          struct vg_told *t, uint64_t *told)
{
    bool keeps = ev->change->keeps_trigger;
    if (!vg_map_count(&pk->by_trigger))
        return;
    t->keeps_trigger = keeps && t->rec; /* who asks for the trigger alone is found here alone */
    tell_value(p, &pk->by_trigger, vg_obj_trigger(h), ev, t, told);
    if (!keeps)
        tell_value(p, &pk->by_trigger, vg_obj_trigger(vg_told_before(t)), ev, t, told);
}

static void dispatch(struct vg_cache_port *p, const struct vg_cache_event *ev)
{
    struct vg_port_kind *pk = &p->kinds[ev->wc->index];
    struct vg_told t;
    uint64_t told = 0;
    if (ev->seq < pk->dispatched)
        return;
    assert(ev->seq == pk->dispatched || ev->life != pk->life); /* P3 */
    pk->dispatched = ev->seq + 1;
    pk->life = ev->life;
    vg_told_init(&t, ev->change->rec, ev->change->prev, ev->change);
    const struct vg_obj_header *h = t.rec ? &t.now : vg_told_before(&t);
    tell_value(p, &pk->by_name, vg_obj_name(h), ev, &t, &told);
    tell_value(p, &pk->by_namespace, vg_obj_namespace(h), ev, &t, &told);
    tell_triggers(p, pk, h, ev, &t, &told);
    tell_ring(p, pk->all, ev, &t, &told);
    vg_count(&p->c->events_dispatched, told);
}

static void free_ended(struct vg_cache_port *p)
{
    VG_LIST_FOREACH_SAFE (n, &p->ended) {
        struct vg_cache_watcher *w = VG_CONTAINER_OF(n, struct vg_cache_watcher, due);
        if (w->in_write)
            continue;
        vg_list_remove(n);
        vg_watcher_free_if_ended(w);
    }
}

/* Continuity was lost: nobody can be told what happened. Kinds without a cache did not lose it. */
static void end_cached(struct vg_cache_watcher *w)
{
    if (!w->pk->wc->kind->is_uncached)
        vg_watcher_end(w, VG_END_CONTINUITY, 0);
}

/* Something has come that cannot be read, and perhaps went again: who watches the kind cannot be
 * told. Whom it does not concern goes on from where it is when it comes again. */
static void end_broken(struct vg_cache_watcher *w)
{
    struct vg_obj_key key;
    struct vg_watch_cache *wc = w->pk->wc;
    if (atomic_load_explicit(&wc->broken_rev, memory_order_acquire) <= w->pk->port->seen)
        return;
    bool concerns = vg_cache_unreadable(w->pk->port->c, wc->index, w->predicate, &key);
    vg_watcher_end(w, concerns ? VG_END_UNREADABLE : VG_END_CONTINUITY, 0);
}

static void each_watcher(struct vg_cache_port *p, void (*visit)(struct vg_cache_watcher *w))
{
    struct vg_list all, *n; /* emptied from the front: a sink that ends may stop other watchers */
    vg_list_init(&all);
    for (size_t i = 0; i < VG_ARRAY_LEN(p->wheel); i++)
        while ((n = vg_list_pop_front(&p->wheel[i])))
            vg_list_push_back(&all, n);
    while ((n = vg_list_pop_front(&all))) {
        struct vg_cache_watcher *w = VG_CONTAINER_OF(n, struct vg_cache_watcher, due);
        vg_port_schedule(w);
        visit(w);
    }
}

/* The feed has written the records on another processor: ask for what dispatching will read of
 * those that come soon, so that their misses overlap with the work on this one. */
static void fetch_ahead(const struct vg_cache_batch *b, size_t i)
{
    if (i + FETCH_AHEAD < b->n)
        vg_rec_fetch(b->events[i + FETCH_AHEAD].change->rec);
}

/* True: there was something live to do. */
static bool pull(struct vg_cache_port *p)
{
    const struct vg_tail_batch *next;
    bool had_work = false;
    while ((next = vg_tail_next(&p->cursor))) {
        const struct vg_cache_batch *b = VG_CONTAINER_OF(next, const struct vg_cache_batch, tail);
        if (b->is_reset)
            each_watcher(p, end_cached);
        for (size_t i = 0; i < b->n; i++) {
            fetch_ahead(b, i);
            dispatch(p, &b->events[i]);
        }
        if (VG_UNLIKELY(b->has_unreadable))
            each_watcher(p, end_broken);
        had_work |= b->n > 0;
        /* After a loss the same revisions come again: they are seen when they are told. */
        p->seen = b->is_reset ? 0 : VG_MAX(p->seen, b->rev);
        free_ended(p);
    }
    return had_work;
}

/* ---- catching up ---- */

static void refill(struct vg_cache_port *p, uint64_t now)
{
    const struct vg_cacher_opts *o = &p->c->opts;
    uint64_t passed = now - p->budget_at_ns;
    uint64_t gained = passed > 60 * VG_NS_PER_S
                          ? o->budget_max_ns
                          : passed * (o->budget_per_s_ns / VG_NS_PER_US) / VG_NS_PER_MS;
    p->budget_ns = VG_MIN(p->budget_ns + (int64_t)gained, (int64_t)o->budget_max_ns);
    p->budget_at_ns = now;
}

/* Idle time is free, a slice of it at most; in a turn that had live work it costs the budget. Live
 * work that comes meanwhile waits for one step. */
static void catch_up(struct vg_cache_port *p, bool had_live_work)
{
    uint64_t start = vg_cacher_now_ns(p->c);
    refill(p, start);
    int64_t used = 0, may_use = TURN_MAX_NS;
    p->yields = false;
    if (had_live_work)
        may_use = VG_MIN(may_use, p->budget_ns);
    while (used < may_use && !vg_list_is_empty(&p->behind)) {
        struct vg_list *n = vg_list_pop_front(&p->behind);
        struct vg_cache_watcher *w = VG_CONTAINER_OF(n, struct vg_cache_watcher, link);
        if (vg_replay_step(w) && w->state == WATCHER_BEHIND)
            vg_list_push_back(&p->behind, &w->link);
        used = (int64_t)(vg_cacher_now_ns(p->c) - start);
        if (vg_tail_has_next(&p->cursor) || p->yields)
            break;
    }
    if (had_live_work)
        p->budget_ns -= used;
    if (!vg_list_is_empty(&p->behind))
        vg_port_wake(p); /* the next turn may be an idle one */
}

/* Before the cursor is looked at. An exchange and no plain store: who publishes links the batch and
 * then exchanges too, so either it finds us wakeable or we find its batch. */
static void be_wakeable(struct vg_cache_port *p)
{
    atomic_exchange_explicit(&p->woken, false, memory_order_acq_rel);
}

static void on_nap_over(struct vg_timer *t)
{
    struct vg_cache_port *p = VG_CONTAINER_OF(t, struct vg_cache_port, nap);
    be_wakeable(p);
    if (vg_tail_has_next(&p->cursor) || !vg_list_is_empty(&p->behind) ||
        !vg_list_is_empty(&p->waits))
        vg_port_wake(p);
}

static void free_port(struct vg_cache_port *p)
{
    struct vg_cacher *c = p->c;
    vg_mutex_done(&p->mu);
    vg_free(p);
    vg_cacher_unref(c);
}

static void on_wake(struct vg_mail *mail)
{
    struct vg_cache_port *p = VG_CONTAINER_OF(mail, struct vg_cache_port, wake_mail);
    if (p->is_closing) {
        free_port(p);
        return;
    }
    if (p->nap_ns)
        vg_timer_start(p->loop, &p->nap, p->nap_ns, on_nap_over);
    else
        be_wakeable(p);
    bool had_live_work = pull(p);
    vg_port_serve_waits(p);
    catch_up(p, had_live_work);
    free_ended(p);
}

/* ---- the wheel: due times in slots of a second ---- */

void vg_port_schedule(struct vg_cache_watcher *w)
{
    struct vg_cache_port *p = w->pk->port;
    uint64_t at = vg_watcher_next_due(w);
    size_t slot = WHEEL_UNDATED;
    if (at != UINT64_MAX)
        slot = VG_MAX((at + VG_NS_PER_S - 1) / VG_NS_PER_S, p->wheel_second + 1) % WHEEL_SLOTS;
    vg_list_remove(&w->due);
    vg_list_push_back(&p->wheel[slot], &w->due);
}

static void turn_slot(struct vg_list *slot, uint64_t now)
{
    struct vg_list due;
    vg_list_init(&due);
    struct vg_list *n;
    while ((n = vg_list_pop_front(slot)))
        vg_list_push_back(&due, n);
    while ((n = vg_list_pop_front(&due))) {
        struct vg_cache_watcher *w = VG_CONTAINER_OF(n, struct vg_cache_watcher, due);
        if (vg_watcher_next_due(w) <= now)
            vg_watcher_due(w, now);
        else
            vg_port_schedule(w); /* a later round of the wheel */
    }
}

/* Slow sinks pin too much: the one that has been full the longest goes first. */
static void relieve(struct vg_cache_port *p)
{
    while (atomic_load(&p->c->pinned) > (int64_t)p->c->opts.pinned_max &&
           !vg_list_is_empty(&p->full)) {
        struct vg_cache_watcher *w = VG_CONTAINER_OF(p->full.next, struct vg_cache_watcher, link);
        vg_watcher_end(w, VG_END_PINNED, 0);
    }
}

static void on_tick(struct vg_timer *t)
{
    struct vg_cache_port *p = VG_CONTAINER_OF(t, struct vg_cache_port, tick);
    (void)pull(p); /* what it was spared: bookmarks tell how far it has come */
    uint64_t now = vg_cacher_now_ns(p->c);
    uint64_t second = now / VG_NS_PER_S;
    uint64_t from =
        VG_MAX(p->wheel_second + 1, second >= WHEEL_SLOTS ? second - WHEEL_SLOTS + 1 : 0);
    for (uint64_t s = from; s <= second; s++) {
        p->wheel_second = s;
        turn_slot(&p->wheel[s % WHEEL_SLOTS], now);
    }
    relieve(p);
    free_ended(p);
    vg_timer_start(p->loop, &p->tick, VG_NS_PER_S, on_tick);
}

/* Who waits is in a hurry. */
void vg_port_hurry(struct vg_cache_port *p)
{
    vg_port_wake(p);
    if (p->nap.armed)
        vg_timer_start(p->loop, &p->nap, 0, on_nap_over);
}

/* ---- life ---- */

/* Before it listens: the feed looks at them then. */
static void init_kinds(struct vg_cache_port *p)
{
    for (size_t i = 0; i < p->c->n_kinds; i++) {
        struct vg_port_kind *pk = &p->kinds[i];
        pk->wc = &p->c->kinds[i];
        pk->port = p;
        vg_map_init(&pk->by_name, VG_MAP_BORROWS_KEYS);
        vg_map_init(&pk->by_trigger, VG_MAP_BORROWS_KEYS);
        vg_map_init(&pk->by_namespace, VG_MAP_BORROWS_KEYS);
    }
}

/* After its cursor is open (P2): what is published in between is then told twice by the tail and
 * the history, and skipped by dispatch(), rather than not at all. */
static void begin_dispatching(struct vg_cache_port *p)
{
    for (size_t i = 0; i < p->c->n_kinds; i++) {
        struct vg_port_kind *pk = &p->kinds[i];
        vg_mutex_lock(&pk->wc->mu);
        pk->dispatched = pk->wc->published;
        pk->life = pk->wc->life;
        vg_mutex_unlock(&pk->wc->mu);
    }
}

static void init_lists(struct vg_cache_port *p)
{
    vg_list_init(&p->waits);
    vg_list_init(&p->behind);
    vg_list_init(&p->full);
    vg_list_init(&p->ended);
    for (size_t i = 0; i < VG_ARRAY_LEN(p->wheel); i++)
        vg_list_init(&p->wheel[i]);
}

int vg_cache_port_open(struct vg_cacher *c, struct vg_loop *loop, struct vg_cache_port **ret_port)
{
    struct vg_cache_port *p = vg_new(struct vg_cache_port);
    if (!p)
        return -ENOMEM;
    p->kinds = vg_calloc(c->n_kinds, sizeof *p->kinds);
    if (!p->kinds || vg_port_fresh_new(p) < 0) {
        vg_free(p->kinds);
        vg_free(p);
        return -ENOMEM;
    }
    p->c = c;
    p->loop = loop;
    vg_mutex_init(&p->mu, VG_RANK_LOOP);
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    init_lists(p);
    uint64_t now = vg_cacher_now_ns(c);
    p->wheel_second = now / VG_NS_PER_S;
    p->budget_at_ns = now;
    uint64_t seed = c->opts.seed;
    if (!seed && vg_random_bytes(&seed, sizeof seed) < 0)
        seed = now;
    vg_rng_seed(&p->rng, seed);
    p->wake_mail.run = on_wake;
    init_kinds(p);
    p->listener = (struct vg_tail_listener){.wake = on_publish, .arg = p};
    vg_tail_listen(&c->tail, &p->listener);
    const struct vg_tail_batch *b = vg_tail_open(&c->tail, &p->cursor);
    p->seen = VG_CONTAINER_OF(b, const struct vg_cache_batch, tail)->rev;
    begin_dispatching(p);
    vg_timer_start(loop, &p->tick, VG_NS_PER_S, on_tick);
    *ret_port = p;
    return 0;
}

static void drain_watcher(struct vg_cache_port *p, struct vg_cache_watcher *w)
{
    if (w->with_bookmarks && w->state == WATCHER_LIVE && p->seen > w->after)
        (void)vg_watcher_bookmark(w, p->seen, false);
    vg_watcher_end(w, VG_END_DRAIN, 0);
}

void vg_cache_port_drain(struct vg_cache_port *p)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(p->wheel); i++)
        while (!vg_list_is_empty(&p->wheel[i]))
            drain_watcher(p, VG_CONTAINER_OF(p->wheel[i].next, struct vg_cache_watcher, due));
    free_ended(p);
}

static void done_kind(struct vg_port_kind *pk)
{
    vg_map_done(&pk->by_name);
    vg_map_done(&pk->by_trigger);
    vg_map_done(&pk->by_namespace);
}

void vg_cache_port_close(struct vg_cache_port *p)
{
    assert(p->n_watchers == 0 && vg_list_is_empty(&p->waits));
    vg_port_fresh_free(p);
    free_ended(p);
    vg_timer_stop(p->loop, &p->tick);
    vg_tail_unlisten(&p->c->tail, &p->listener);
    if (p->nap.armed) { /* its mail has come */
        vg_timer_stop(p->loop, &p->nap);
        be_wakeable(p);
    }
    vg_tail_close(&p->cursor);
    for (size_t i = 0; i < p->c->n_kinds; i++)
        done_kind(&p->kinds[i]);
    vg_free(p->kinds);
    p->is_closing = true;
    if (!atomic_load(&p->woken)) /* else the mail on its way frees it */
        free_port(p);
}

void vg_cache_port_nap(struct vg_cache_port *p, uint64_t ms)
{
    p->nap_ns = ms * VG_NS_PER_MS;
}

vg_rev vg_cache_port_revision(const struct vg_cache_port *p)
{
    return p->seen;
}

size_t vg_cache_port_watchers(const struct vg_cache_port *p)
{
    return p->n_watchers;
}
