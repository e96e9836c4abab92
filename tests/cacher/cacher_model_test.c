/* cacher_model_test.c - random histories against hundreds of watchers, judged event by event.
 * Every watcher must be told exactly the filtered log, in order, with the right type, bytes and
 * revision, or end for a reason that the model agrees with. Clients whose stream was cut resume
 * where they were. VG_SEED replays a run, VG_LONG=1 makes it longer. Arguments: the engine;
 * "threads" gives every port and the feed a thread of its own. */
#include "test_support.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "cacher_model.h"
#include "storage_driver_int.h"

#define WATCHERS 240
#define FOR_EVER (-1)

struct client {
    struct vg_csink sink;
    size_t port, kind;
    struct model_predicate predicate;
    vg_rev base;   /* told everything up to here, or in the state at it */
    bool is_based; /* the state before the stream has been judged */
    bool is_open;  /* it has, or had, a watch */
    bool is_complete;
    size_t at;   /* in the log: all before has been told */
    vg_rev last; /* revision of the last event that it was told */
    int speed;   /* frames it takes before it is full; 0: any; FOR_EVER: never drains */
};

struct run {
    struct vg_cdrv d;
    struct model m;
    struct vg_rng rng;
    struct client *clients;
    size_t n_clients;
    bool lost; /* continuity was lost on purpose, at least once */
    uint64_t told, resumed, expired;
};

static const char *engine = "mem";
static bool is_threaded;

static uint64_t below(struct run *r, uint64_t n)
{
    return vg_rng_below(&r->rng, n);
}

/* ---- on the loop of a port ---- */

struct call {
    void (*fn)(struct run *r, struct client *c);
    struct run *r;
    struct client *c;
};

static void make_call(void *arg)
{
    struct call *call = arg;
    call->fn(call->r, call->c);
}

static void on_port(struct run *r, struct client *c, void (*fn)(struct run *r, struct client *c))
{
    struct call call = {fn, r, c};
    vg_cdrv_call(&r->d, c->port, make_call, &call);
}

/* ---- judging ---- */

static _Noreturn void wrong(const struct client *c, const char *what, const char *frame)
{
    fprintf(stderr,
            "seed=%llu kind=%zu ns=%d name=%d label=%d node=%d base=%llu last=%llu: %s %s\n",
            (unsigned long long)vg_test_seed(), c->kind, c->predicate.ns, c->predicate.name,
            c->predicate.label, c->predicate.node, (unsigned long long)c->base,
            (unsigned long long)c->last, what, frame ? frame : "");
    abort();
}

/* The frames before the end bookmark are the state at its revision, in key order. */
static void judge_state(struct run *r, struct client *c, size_t n_frames, vg_rev rev)
{
    size_t i = 0;
    for (int key = 0; key < MODEL_KEYS; key++) {
        const struct model_event *e = model_at(&r->m, c->kind, key, rev);
        if (!e || !model_matches(&c->predicate, key, &e->now))
            continue;
        if (i >= n_frames || !model_frame_is(c->sink.frames[i], "ADDED", e->now_text))
            wrong(c, "a state without", e->now_text);
        i++;
    }
    if (i != n_frames)
        wrong(c, "a state with too much", c->sink.frames[i]);
    c->base = c->last = rev;
    c->is_based = true;
    c->at = model_after(&r->m, rev);
}

/* A base in the future is passed silently. */
static const struct model_event *next_event(struct run *r, struct client *c)
{
    while (c->at < r->m.n && r->m.log[c->at].rev <= c->base)
        c->at++;
    return model_next(&r->m, c->kind, &c->predicate, &c->at);
}

static void judge_event(struct run *r, struct client *c, const char *frame)
{
    const struct model_event *e = next_event(r, c);
    if (!e)
        wrong(c, "nothing was to be told, but", frame);
    const char *type = model_type(&c->predicate, e);
    if (!model_frame_is(frame, type, model_text(&c->predicate, e))) {
        fprintf(stderr, "expected %s %s", type, model_text(&c->predicate, e));
        wrong(c, "got", frame);
    }
    c->last = e->rev;
    c->at++;
    r->told++;
}

static void judge_bookmark(struct run *r, struct client *c, const char *frame)
{
    const struct model_event *e = next_event(r, c);
    if (model_rev_of(frame) < c->last || (e && e->rev <= model_rev_of(frame)))
        wrong(c, "a bookmark too early:", frame);
}

static void judge_frames(struct run *r, struct client *c)
{
    for (size_t i = 0; i < c->sink.n; i++) {
        const char *frame = c->sink.frames[i];
        bool is_bookmark = strncmp(frame, "{\"type\":\"BOOKMARK\"", 18) == 0;
        if (is_bookmark && strstr(frame, "initial-events-end"))
            judge_state(r, c, i, model_rev_of(frame));
        else if (!c->is_based)
            continue; /* part of a state: judged at its end */
        else if (is_bookmark)
            judge_bookmark(r, c, frame);
        else
            judge_event(r, c, frame);
    }
    if (c->is_based)
        vg_csink_clear(&c->sink);
}

static void judge_end(struct run *r, struct client *c)
{
    switch (c->sink.why) {
    case VG_END_EXPIRED:
        r->expired++;
        if (c->last - model_is_tie(&r->m, c->last) >= c->sink.oldest)
            wrong(c, "expired without need", NULL);
        break;
    case VG_END_CONTINUITY:
        if (!r->lost || c->kind == KIND_EVENTS)
            wrong(c, "continuity was not lost", NULL);
        break;
    case VG_END_STALLED:
        if (!c->speed)
            wrong(c, "was not stalled", NULL);
        break;
    case VG_END_DRAIN:
        break;
    default:
        wrong(c, "ended as", vg_watch_end_name(c->sink.why));
    }
}

/* ---- what clients do ---- */

static void close_sink(struct client *c)
{
    vg_csink_done(&c->sink);
    vg_csink_init(&c->sink);
}

static void open_watch(struct run *r, struct client *c, enum vg_watch_start start, vg_rev rev)
{
    struct vg_cache_watch_opts o = {
        .kind = c->kind,
        .start = start,
        .rev = rev,
        .with_bookmarks = true,
        .with_end_bookmark = true,
        .form = (uint8_t)below(r, 3), /* all of them look alike */
    };
    close_sink(c);
    c->sink.full_after = c->speed == FOR_EVER ? 2 : (size_t)c->speed;
    int err =
        vg_cdrv_try_watch(&r->d, c->port, &c->sink, model_predicate(c->kind, &c->predicate), o);
    c->is_open = err == 0;
    c->is_based = start != VG_WATCH_STATE;
    c->base = c->last = rev;
    c->at = model_after(&r->m, rev);
    if (err == VIGIL_E_COMPACTED && rev >= vg_storage_compacted(r->d.store.store))
        wrong(c, "refused without need", NULL);
    if (err < 0 && err != VIGIL_E_COMPACTED && err != VIGIL_E_BUSY)
        wrong(c, "refused:", vg_err_name(err));
}

static void open_some(struct run *r, struct client *c)
{
    vg_rev now = vg_storage_revision(r->d.store.store);
    vg_rev compacted = vg_storage_compacted(r->d.store.store);
    c->kind = below(r, 4) ? KIND_PODS : KIND_EVENTS;
    c->predicate = model_random_predicate(&r->rng);
    uint64_t speed = below(r, 10);
    c->speed = speed == 0 ? FOR_EVER : speed < 5 ? (int)below(r, 7) + 1 : 0;
    switch (below(r, 4)) {
    case 0:
        open_watch(r, c, VG_WATCH_STATE, 0);
        break;
    case 1:
        open_watch(r, c, VG_WATCH_AFTER, now + (is_threaded ? 0 : below(r, 5)));
        break;
    case 2:
        open_watch(r, c, VG_WATCH_NOW, now); /* nobody writes meanwhile */
        break;
    default:
        open_watch(r, c, VG_WATCH_AFTER,
                   compacted + below(r, now - compacted + 1)); /* anywhere that is left */
    }
}

/* A client whose stream was cut goes on from what it has seen. Half of a revision counts as none of
 * it. */
static void resume(struct run *r, struct client *c)
{
    vg_rev from = c->last;
    if (c->at < r->m.n && c->at > 0 && r->m.log[c->at].rev == from)
        from--;
    r->resumed++;
    open_watch(r, c, VG_WATCH_AFTER, VG_MAX(from, c->base));
}

static void look(struct run *r, struct client *c)
{
    if (!c->is_open)
        return;
    if (c->speed > 0)
        vg_csink_drain(&c->sink);
    judge_frames(r, c);
    if (!c->sink.is_ended)
        return;
    if (c->speed) { /* what it had taken is still to be read */
        vg_csink_drain(&c->sink);
        judge_frames(r, c);
    }
    judge_end(r, c);
    bool is_cut = c->sink.why == VG_END_CONTINUITY || c->sink.why == VG_END_DRAIN;
    c->is_open = false;
    if (is_cut && c->is_based)
        resume(r, c);
}

static void visit(struct run *r, struct client *c)
{
    look(r, c);
    if (!c->is_open && below(r, 2))
        open_some(r, c);
    else if (c->sink.w && below(r, 40) == 0) {
        vg_cache_watcher_stop(vg_steal(c->sink.w));
        c->is_open = false;
    }
}

/* ---- what the world does ---- */

static void write_some(struct run *r)
{
    struct vg_op ops[4];
    struct model_content now[4];
    int keys[4];
    size_t kinds[4];
    uint32_t n = 0, want = below(r, 6) ? 1 : 2 + (uint32_t)below(r, 3);
    while (n < want) {
        size_t kind = below(r, 5) ? KIND_PODS : KIND_EVENTS;
        int key = (int)below(r, MODEL_KEYS);
        bool is_taken = false;
        for (uint32_t i = 0; i < n; i++)
            is_taken |= keys[i] == key && kinds[i] == kind;
        if (is_taken)
            continue;
        now[n] = (struct model_content){.node = (int)below(r, 5), .label = (int)below(r, 4)};
        if (model_has(&r->m, kind, key) && below(r, 3) == 0)
            ops[n] = model_delete_op(kind, key);
        else
            ops[n] = model_put_op(&r->m, kind, key, &now[n]);
        keys[n] = key;
        kinds[n++] = kind;
    }
    vg_rev rev = 0;
    if (vg_drv_run(&r->d.store, ops, n, &rev) < 0)
        abort();
    for (uint32_t i = 0; i < n; i++)
        model_add(&r->m, kinds[i], keys[i], now[i], rev);
}

static void compact_some(struct run *r)
{
    vg_rev now = vg_storage_revision(r->d.store.store);
    vg_rev compacted = vg_storage_compacted(r->d.store.store);
    if (now > compacted + 20)
        (void)vg_drv_compact(&r->d.store, compacted + 1 + below(r, now - compacted - 10), NULL);
}

/* The feed's next batch finds no memory: it loses its place and lists anew. */
static void lose_place(struct run *r)
{
    write_some(r);
    (void)vg_alloc_fail_at(1, 0);
    vg_loop_turn(r->d.feed, true);
    (void)vg_alloc_fail_at(0, 0);
    r->lost |= !vg_cacher_is_ready(r->d.c);
    for (int i = 0; i < 3 && !vg_cacher_is_ready(r->d.c); i++)
        vg_cdrv_advance_ms(&r->d, 1000);
    vg_cdrv_wait_ready(&r->d);
}

static void restart(struct run *r)
{
    vg_cdrv_stop_threads(&r->d);
    for (size_t i = 0; i < r->n_clients; i++)
        vg_csink_look(&r->clients[i].sink);
    vg_cdrv_close_cacher(&r->d);
    if (vg_drv_engine_has(engine, VG_DRV_DURABLE)) {
        if (below(r, 2))
            vg_drv_reopen(&r->d.store);
        else
            vg_drv_reopen_killed(&r->d.store);
    }
    vg_cdrv_open_again(&r->d);
    vg_cdrv_start_threads(&r->d);
}

/* ---- snapshots ---- */

static void judge_snapshot(struct run *r, const struct vg_cache_snapshot *s)
{
    struct client c = {
        .kind = KIND_PODS, .base = s->rev, .predicate = model_random_predicate(&r->rng)};
    struct vg_obj_predicate *p = model_predicate(KIND_PODS, &c.predicate);
    struct vg_cache_walk walk;
    struct vg_obj_key buf;
    vg_cache_walk_init(&walk, r->d.c, KIND_PODS, s, p, vg_slice(NULL, 0), &buf);
    for (int key = 0; key < MODEL_KEYS; key++) {
        const struct model_event *e = model_at(&r->m, KIND_PODS, key, s->rev);
        if (!e || !model_matches(&c.predicate, key, &e->now))
            continue;
        const struct vg_rec *rec = vg_cache_walk_next(&walk);
        if (!rec || rec->rev != e->rev)
            wrong(&c, "a snapshot without", e->now_text);
    }
    if (vg_cache_walk_next(&walk))
        wrong(&c, "a snapshot with too much", NULL);
    vg_obj_predicate_unref(p);
}

static void judge_snapshots(struct run *r)
{
    struct vg_cache_snapshot s;
    if (vg_cache_newest(r->d.c, KIND_PODS, &s) < 0)
        return;
    vg_rev newest = s.rev;
    judge_snapshot(r, &s);
    vg_cache_snapshot_done(&s);
    vg_rev back = newest - below(r, VG_MIN(newest, (vg_rev)400));
    if (vg_cache_exact(r->d.c, KIND_PODS, back, &s) == 0) {
        judge_snapshot(r, &s);
        vg_cache_snapshot_done(&s);
    }
}

/* ---- a run ---- */

static void step(struct run *r)
{
    write_some(r);
    if (!is_threaded && below(r, 3) == 0)
        vg_cdrv_turn_feed(&r->d);
    if (!is_threaded && below(r, 4) == 0)
        vg_loop_turn(r->d.loops[below(r, r->d.n_ports)], false);
    for (int i = 0; i < 6; i++) {
        struct client *c = &r->clients[below(r, r->n_clients)];
        if (below(r, 4) == 0)
            on_port(r, c, visit);
    }
    if (below(r, 30) == 0)
        judge_snapshots(r);
    if (!is_threaded && below(r, 100) == 0)
        model_check_cache(&r->d);
    if (below(r, 300) == 0)
        compact_some(r);
    if (!is_threaded && below(r, 150) == 0)
        vg_cdrv_advance_ms(&r->d, 500 + below(r, 30000));
    if (!is_threaded && below(r, 500) == 0)
        lose_place(r);
    if (below(r, 700) == 0)
        restart(r);
}

static void look_to_the_end(struct run *r, struct client *c)
{
    look(r, c);
    c->is_complete = !c->is_open || c->speed == FOR_EVER || (c->is_based && !next_event(r, c));
}

static void turn_all(struct run *r)
{
    if (is_threaded) {
        sched_yield();
        return;
    }
    vg_loop_turn(r->d.feed, false);
    vg_cdrv_turn_ports(&r->d);
}

static void finish(struct run *r)
{
    vg_drv_watchdog("every stream to be complete");
    for (size_t i = 0; i < r->n_clients; i++) {
        struct client *c = &r->clients[i];
        for (;;) {
            on_port(r, c, look_to_the_end);
            if (c->is_complete)
                break;
            turn_all(r);
        }
    }
    vg_drv_watchdog(NULL);
}

static void every_stream_is_the_filtered_log(void **state)
{
    (void)state;
    static struct run r;
    struct vg_cdrv_opts o = {
        .engine = engine,
        .n_ports = 3,
        .is_threaded = is_threaded,
        .cacher = {.events_min = 100,
                   .events_max = 600,
                   .bytes_max = 256 << 10,
                   .window_ms = 20000,
                   .refill_max = 900,
                   .make_form = model_make_form,
                   .form_bytes_max = 50000},
        .storage = {.unsafe_no_fsync = true},
    };
    vg_rng_seed(&r.rng, vg_test_seed());
    model_init(&r.m);
    r.n_clients = WATCHERS;
    r.clients = calloc(WATCHERS, sizeof *r.clients);
    assert_non_null(r.clients);
    for (size_t i = 0; i < WATCHERS; i++) {
        vg_csink_init(&r.clients[i].sink);
        r.clients[i].port = i % 3;
    }
    vg_cdrv_open(&r.d, &o);
    vg_cdrv_start_threads(&r.d);
    int steps = vg_test_is_long() ? 60000 : is_threaded ? 2500 : 4000;
    for (int i = 0; i < steps; i++)
        step(&r);
    finish(&r);
    vg_cdrv_stop_threads(&r.d);
    struct vg_cacher_stats s = vg_cdrv_stats(&r.d);
    printf("events=%zu told=%llu replayed=%llu from_storage=%llu resumed=%llu expired=%llu\n",
           r.m.n, (unsigned long long)r.told, (unsigned long long)s.events_replayed,
           (unsigned long long)s.events_from_storage, (unsigned long long)r.resumed,
           (unsigned long long)r.expired);
    for (size_t i = 0; i < WATCHERS; i++)
        vg_csink_done(&r.clients[i].sink);
    vg_cdrv_close(&r.d);
    free(r.clients);
    model_done(&r.m);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        engine = argv[1];
    is_threaded = argc > 2 && strcmp(argv[2], "threads") == 0;
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_stream_is_the_filtered_log)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
