/* storage_model_test.c - random operations on an engine and on a model, compared after each.
 *     storage_model_test <engine>
 * The seed is printed; VG_SEED=<seed> replays a run, VG_LONG=1 makes it far longer. A step is a
 * transaction of any shape, a pipeline of them, a range, a compaction, a jump of the clock, a
 * reopen or something done to one of the watches that live across all this. At quiet points every
 * watch must have got exactly the filtered log, a fresh one from any revision that is still there
 * must get it too, and the state at any such revision must be the model's. */
#include "storage_model_run.h"

static const char *engine;

enum { RETRY_MS = 1000 }; /* an engine tries again after this long at the most */

/* ---- reads and upkeep ---- */

static struct vg_keys random_keys(struct run *r)
{
    struct vg_slice a = run_keys[below(r, RUN_KEYS)], b = run_keys[below(r, RUN_KEYS)];
    switch (below(r, 6)) {
    case 0:
        return (struct vg_keys){VG_KEYS_ONE, a, {0}};
    case 1:
        return (struct vg_keys){VG_KEYS_SPAN, VG_SLICE_LIT("b/"), VG_SLICE_LIT("b0")};
    case 2:
        return (struct vg_keys){VG_KEYS_SPAN, a, b};
    case 3:
        return (struct vg_keys){VG_KEYS_FROM, a, {0}};
    default:
        return vg_drv_all();
    }
}

/* Often now, sometimes gone, sometimes not there yet. */
static vg_rev random_rev(struct run *r)
{
    vg_rev low = VG_MAX(r->m.compacted, VG_REV_EMPTY);
    if (below(r, 8) == 0)
        return 1 + below(r, r->m.rev + 2);
    return low + below(r, r->m.rev - low + 1);
}

static void step_range(struct run *r)
{
    static const unsigned flags[] = {0, VG_RANGE_KEYS_ONLY, VG_RANGE_COUNT,
                                     VG_RANGE_KEYS_ONLY | VG_RANGE_COUNT, VG_RANGE_COUNT_ONLY};
    struct vg_range range = {
        .keys = random_keys(r),
        .at = below(r, 2) ? 0 : random_rev(r),
        .limit = below(r, 2) ? 0 : 1 + below(r, RUN_KEYS),
        .flags = flags[below(r, VG_ARRAY_LEN(flags))],
    };
    starve(r);
    int err = vg_drv_range(&r->d, &range);
    feed(r);
    if (has_starved(r, err)) {
        check_number(r, "what a failed range returned", range.n_recs, 0);
    } else if (range.at > r->m.rev) {
        check_err(r, "a range in the future", err, VIGIL_E_FUTURE);
    } else if (range.at && range.at < r->m.compacted) {
        check_err(r, "a range in the past", err, VIGIL_E_COMPACTED);
        check_number(r, "compact_rev", range.req.compact_rev, r->m.compacted);
    } else {
        check_err(r, "a range", err, 0);
        check_range(r, &range);
    }
    vg_range_done(&range);
}

static unsigned find_key(struct vg_slice key)
{
    unsigned i = 0;
    while (i < RUN_KEYS && !vg_slice_eq(run_keys[i], key))
        i++;
    return i;
}

/* What is due now expires at one revision; in which order the engine decides. */
static void settle_expired(struct run *r)
{
    unsigned due = 0, order[RUN_KEYS] = {0};
    bool is_due[RUN_KEYS + 1] = {false};
    for (unsigned key = 0; key < RUN_KEYS; key++)
        due += is_due[key] = model_is_due(&r->m, key, vg_drv_wall_ms(&r->d));
    if (due == 0)
        return;
    struct vg_drv_watch *w = vg_drv_watch_all(&r->d, r->m.rev + 1);
    vg_drv_watch_events(w, due);
    check_number(r, "how many keys expired", w->n_events, due);
    for (unsigned i = 0; i < due; i++) {
        order[i] = find_key(vg_rec_key(w->events[i].rec));
        if (!is_due[order[i]])
            mismatch(r, "key %u expired early or twice", order[i]);
        is_due[order[i]] = false;
    }
    model_expire(&r->m, order, due, vg_drv_wall_ms(&r->d));
    struct run_watch rw;
    watch_begin(r, &rw, w, vg_drv_all(), r->m.rev);
    check_watch_complete(r, &rw);
    vg_drv_watch_done(w);
}

static void step_time(struct run *r)
{
    if (!r->is_timed)
        return;
    if (below(r, 10) == 0)
        vg_fake_clock_set_wall(r->d.clock, vg_drv_wall_ms(&r->d) - (int64_t)below(r, 5000));
    else
        vg_drv_advance_ms(&r->d, (r->is_starved ? RETRY_MS : 0) + below(r, 8000));
    settle_expired(r);
}

/* What failed for lack of memory in the background is tried again after a while: let it pass. */
static void recover(struct run *r)
{
    if (!r->is_starved)
        return;
    vg_drv_advance_ms(&r->d, RETRY_MS);
    settle_expired(r);
}

static void step_compact(struct run *r)
{
    recover(r);
    /* Where it begins with the empty store nothing is lost, and etcd does not say so later. */
    vg_rev at = VG_MAX(random_rev(r), VG_REV_EMPTY + 1), compact_rev = 0;
    int want = 0;
    if (at <= r->m.compacted)
        want = VIGIL_E_COMPACTED;
    else if (at > r->m.rev)
        want = VIGIL_E_FUTURE;
    else
        r->m.compacted = at;
    check_err(r, "compaction", vg_drv_compact(&r->d, at, &compact_rev), want);
    if (want == VIGIL_E_COMPACTED)
        check_number(r, "compact_rev", compact_rev, r->m.compacted);
    check_number(r, "compacted", vg_storage_compacted(r->d.store), r->m.compacted);
}

/* ---- watches ---- */

static void open_watch(struct run *r, struct run_watch *rw, vg_rev from, struct vg_keys keys)
{
    struct vg_watch_opts opts = {
        .keys = keys,
        .from = from,
        .batch_max = below(r, 2) ? 0 : 1 + below(r, 5),
        .progress = below(r, 2),
    };
    watch_begin(r, rw, vg_drv_watch_open(&r->d, &opts), keys, from);
}

static void close_watch(struct run *r, struct run_watch *rw)
{
    check_watch(r, rw);
    vg_drv_watch_done(rw->w);
    *rw = (struct run_watch){0};
}

static void step_watch(struct run *r)
{
    struct run_watch *rw = &r->watches[below(r, RUN_WATCHES)];
    if (!rw->w) {
        open_watch(r, rw, below(r, 3) ? random_rev(r) : 0, random_keys(r));
        return;
    }
    if (rw->w->is_ended || below(r, 6) == 0) {
        close_watch(r, rw);
        return;
    }
    switch (below(r, 4)) {
    case 0:
        vg_watch_pause(rw->w->watch);
        rw->is_paused = true;
        break;
    case 1:
        vg_watch_resume(rw->w->watch);
        rw->is_paused = false;
        break;
    case 2:
        vg_watch_progress(rw->w->watch);
        break;
    default:
        break;
    }
    check_watch(r, rw);
}

static void step_turn(struct run *r)
{
    starve(r);
    for (uint64_t i = below(r, 5); i > 0; i--)
        vg_loop_turn(r->d.loop, false);
    feed(r);
}

/* Every watch that is not paused is up to date. */
static void settle_watches(struct run *r)
{
    for (unsigned i = 0; i < RUN_WATCHES; i++) {
        struct run_watch *rw = &r->watches[i];
        if (!rw->w)
            continue;
        if (rw->is_paused && rw->w->watch && below(r, 2)) {
            vg_watch_resume(rw->w->watch);
            rw->is_paused = false;
        }
        if (rw->is_paused) {
            check_watch(r, rw);
            continue;
        }
        vg_drv_watch_sync(rw->w);
        check_watch_complete(r, rw);
    }
}

static void step_quiet(struct run *r)
{
    settle_watches(r);
    struct run_watch fresh;
    vg_rev low = VG_MAX(r->m.compacted, VG_REV_EMPTY);
    open_watch(r, &fresh, low + 1 + below(r, r->m.rev - low + 1), random_keys(r));
    vg_drv_watch_sync(fresh.w);
    check_number(r, "whether a fresh watch ended", fresh.w->is_ended, false);
    check_watch_complete(r, &fresh);
    vg_drv_watch_done(fresh.w);
    for (int i = 0; i < 4; i++)
        check_state(r, low + below(r, r->m.rev - low + 1));
    check_state(r, 0);
}

/* Close and open again. Watches end; those that can, go on where they were. */
static void step_reopen(struct run *r)
{
    if (!vg_drv_engine_has(engine, VG_DRV_DURABLE))
        return;
    if (r->is_killed)
        vg_drv_reopen_killed(&r->d);
    else
        vg_drv_reopen(&r->d);
    check_number(r, "the revision after reopening", vg_storage_revision(r->d.store), r->m.rev);
    check_number(r, "compacted after reopening", vg_storage_compacted(r->d.store), r->m.compacted);
    for (unsigned i = 0; i < RUN_WATCHES; i++) {
        struct run_watch *rw = &r->watches[i];
        if (!rw->w)
            continue;
        check_number(r, "whether closing ended a watch", rw->w->is_ended, true);
        vg_rev next = VG_MAX(rw->from, rw->w->rev + 1);
        struct vg_keys keys = rw->keys;
        close_watch(r, rw);
        if (next > r->m.compacted)
            open_watch(r, rw, next, keys);
    }
}

/* ---- the run ---- */

static void step(struct run *r)
{
    static const struct {
        void (*run)(struct run *r);
        unsigned weight;
    } steps[] = {
        {step_txn, 450},   {step_pipeline, 100}, {step_range, 200},
        {step_watch, 120}, {step_turn, 60},      {step_time, 40},
        {step_quiet, 25},  {step_compact, 4},    {step_reopen, 5},
    };
    uint64_t total = 0, at = 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(steps); i++)
        total += steps[i].weight;
    uint64_t pick = below(r, total);
    for (size_t i = 0; i < VG_ARRAY_LEN(steps); i++) {
        at += steps[i].weight;
        if (pick < at) {
            steps[i].run(r);
            return;
        }
    }
}

enum mode { GENTLE, KILLED, STARVED };

static void run_model(const struct vg_storage_opts *opts, uint64_t salt, enum mode mode)
{
    bool is_local = vg_drv_engine_has(engine, VG_DRV_LOCAL);
    uint64_t steps = (vg_test_is_long() ? UINT64_C(60000) : UINT64_C(4000)) / (is_local ? 1 : 5);
    struct run *r = vg_new(struct run);
    assert_non_null(r);
    r->seed = vg_test_seed();
    r->is_killed = mode == KILLED;
    r->is_starved = mode == STARVED;
    r->is_local = is_local;
    r->is_ordered = vg_drv_engine_has(engine, VG_DRV_ORDERED);
    r->is_timed = vg_drv_engine_has(engine, VG_DRV_FAKE_CLOCK);
    vg_rng_seed(&r->rng, r->seed + salt);
    model_init(&r->m, run_keys, RUN_KEYS);
    vg_drv_open(&r->d, engine, opts);
    for (r->step = 0; r->step < steps; r->step++)
        step(r);
    step_quiet(r);
    print_message("%llu steps, %llu revisions, compacted at %llu, starved %llu times\n",
                  (unsigned long long)steps, (unsigned long long)r->m.rev,
                  (unsigned long long)r->m.compacted, (unsigned long long)r->n_starved);
    vg_drv_close(&r->d);
    model_done(&r->m);
    vg_free(r);
}

static void the_engine_does_what_the_model_does(void **state)
{
    (void)state;
    run_model(NULL, 1, GENTLE);
}

/* A checkpoint whenever time moves, so that the history is spread over all that an engine has. */
static void the_engine_does_what_the_model_does_with_many_checkpoints(void **state)
{
    (void)state;
    if (!vg_drv_engine_has(engine, VG_DRV_LOCAL))
        skip();
    struct vg_storage_opts opts = {.checkpoint_ms = 1, .flight_min = 1, .unsafe_no_fsync = true};
    run_model(&opts, 2, GENTLE);
}

/* No checkpoint ever: what is opened again comes from the log. */
static void the_engine_does_what_the_model_does_when_it_is_killed(void **state)
{
    (void)state;
    if (!vg_drv_engine_has(engine, VG_DRV_DURABLE))
        skip();
    struct vg_storage_opts opts = {.checkpoint_ms = 1000000000,
                                   .checkpoint_bytes = (size_t)1 << 30};
    run_model(&opts, 3, KILLED);
}

/* A request that fails for lack of memory changes nothing, and the engine recovers. */
static void the_engine_does_what_the_model_does_when_memory_runs_out(void **state)
{
    (void)state;
    if (!vg_drv_engine_has(engine, VG_DRV_LOCAL))
        skip();
    struct vg_storage_opts opts = {.checkpoint_ms = 1000, .flight_min = 1, .unsafe_no_fsync = true};
    run_model(&opts, 4, STARVED);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_engine_does_what_the_model_does),
        cmocka_unit_test(the_engine_does_what_the_model_does_with_many_checkpoints),
        cmocka_unit_test(the_engine_does_what_the_model_does_when_it_is_killed),
        cmocka_unit_test(the_engine_does_what_the_model_does_when_memory_runs_out),
    };
    engine = vg_drv_args(argc, argv);
    return cmocka_run_group_tests_name("storage_model", tests, NULL, NULL);
}
