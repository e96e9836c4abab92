/* storage_model_test.c - random operations on an engine and on a model, compared after each.
 *     storage_model_test <engine>
 * The seed is printed; VG_SEED=<seed> replays a run, VG_LONG=1 makes it far longer. A step is a
 * transaction of any shape, a pipeline of them, a range, a compaction, a jump of the clock, a
 * reopen or something done to one of the watches that live across all this. At quiet points every
 * watch must have got exactly the filtered log, a fresh one from any revision that is still there
 * must get it too, and the state at any such revision must be the model's. */
#include "storage_model_run.h"

#include <stdio.h>

static const char *engine;

/* In byte order. Few, so that operations meet; odd, so that encodings of keys are tried. */
static const struct vg_slice all_keys[] = {
    {"\0", 1},    {"\0\xff", 2}, {"a", 1},        {"a\0", 2}, {"a\0\0", 3}, {"a\xff", 2},
    {"b/1", 3},   {"b/10", 4},   {"b/2", 3},      {"b/3", 3}, {"b/3\0", 4}, {"c/a/x", 5},
    {"c/a/y", 5}, {"c/b/x", 5},  {"c/b/y", 5},    {"d", 1},   {"dd", 2},    {"ddd", 3},
    {"\x80", 1},  {"\xff", 1},   {"\xff\xff", 2},
};
enum { KEYS = VG_ARRAY_LEN(all_keys), OPS_MAX = 6, PIPELINE_MAX = 12, VALUE_MAX = 20000 };

/* ---- transactions ---- */

struct random_txn {
    struct vg_txn txn;
    struct vg_op ops[OPS_MAX];
    struct model_op wanted[OPS_MAX];
};

/* Never the same twice, of all lengths, most of them short. */
static struct vg_slice random_value(struct run *r)
{
    static char bytes[VALUE_MAX + 32];
    int n = snprintf(bytes, sizeof bytes, "%llu:", (unsigned long long)r->next_value++);
    size_t length = (size_t)n + below(r, below(r, 50) == 0 ? VALUE_MAX : 100);
    memset(bytes + n, 'a' + (int)below(r, 26), length - (size_t)n);
    return vg_slice(bytes, length);
}

static vg_rev random_expectation(struct run *r, unsigned key)
{
    switch (below(r, 10)) {
    case 0:
        return below(r, r->m.rev + 2);
    case 1:
        return 0;
    case 2:
    case 3:
    case 4:
        return VG_EXPECT_ANY;
    default:
        return model_key_rev(&r->m, key);
    }
}

static void random_op(struct run *r, struct random_txn *t, unsigned i, unsigned key)
{
    static const enum vg_op_type types[] = {VG_OP_PUT,    VG_OP_PUT,    VG_OP_PUT,
                                            VG_OP_DELETE, VG_OP_DELETE, VG_OP_CHECK};
    struct model_op *w = &t->wanted[i];
    *w = (struct model_op){.type = types[below(r, VG_ARRAY_LEN(types))], .key = key};
    w->expect = random_expectation(r, key);
    struct vg_slice value = random_value(r);
    size_t cut = below(r, 3) == 0 ? below(r, value.n + 1) : 0;
    switch (w->type) {
    case VG_OP_PUT:
        if (r->is_timed && below(r, 5) == 0)
            w->ttl_ms = 1 + below(r, 30000);
        t->ops[i] = vg_drv_op_put(all_keys[key], vg_slice(value.p, cut),
                                  vg_slice(value.p + cut, value.n - cut), w->expect);
        t->ops[i].ttl_ms = w->ttl_ms;
        break;
    case VG_OP_DELETE:
        t->ops[i] = vg_drv_op_delete(all_keys[key], w->expect);
        break;
    case VG_OP_CHECK:
        t->ops[i] = vg_drv_op_check(all_keys[key], w->expect);
        break;
    }
    w->header = vg_rec_header(t->ops[i].rec); /* the txn keeps the record until it is done */
    w->value = vg_rec_value(t->ops[i].rec);
}

static void random_txn(struct run *r, struct random_txn *t)
{
    bool is_used[KEYS] = {false};
    *t = (struct random_txn){.txn.ops = t->ops};
    unsigned wish = below(r, 2) ? 1 : 1 + (unsigned)below(r, OPS_MAX);
    for (unsigned i = 0; i < wish; i++) {
        unsigned key = (unsigned)below(r, KEYS);
        if (!is_used[key])
            random_op(r, t, t->txn.n_ops++, key);
        is_used[key] = true;
    }
}

/* Apply to the model what the engine has answered, and compare. */
static void settle_txn(struct run *r, struct random_txn *t)
{
    size_t before[OPS_MAX];
    unsigned failed = 0;
    for (unsigned i = 0; i < t->txn.n_ops; i++)
        before[i] = model_find(&r->m, t->wanted[i].key, r->m.rev);
    int want = model_txn(&r->m, t->wanted, t->txn.n_ops, vg_drv_wall_ms(&r->d), &failed);
    check_err(r, "a transaction", t->txn.req.err, want);
    if (want == VIGIL_E_CONFLICT) {
        check_number(r, "failed_op", t->txn.failed_op, failed);
        check_rec(r, "what a conflict shows", t->ops[failed].prev, before[failed], false);
    } else {
        check_number(r, "the revision of a transaction", t->txn.req.rev, r->m.rev);
        for (unsigned i = 0; i < t->txn.n_ops; i++)
            check_rec(r, "what a key held before", t->ops[i].prev, before[i], false);
    }
    vg_txn_done(&t->txn);
}

static void step_txn(struct run *r)
{
    struct random_txn t;
    random_txn(r, &t);
    (void)vg_drv_txn(&r->d, &t.txn);
    settle_txn(r, &t);
    check_number(r, "the store's revision", vg_storage_revision(r->d.store), r->m.rev);
}

/* Many in the queue at once: they share a commit and must still see each other in order. */
static void step_pipeline(struct run *r)
{
    struct random_txn t[PIPELINE_MAX];
    unsigned n = 1 + (unsigned)below(r, PIPELINE_MAX);
    for (unsigned i = 0; i < n; i++) {
        random_txn(r, &t[i]);
        check_err(r, "submitting", vg_drv_submit_txn(&r->d, &t[i].txn), 0);
    }
    for (unsigned i = 0; i < n; i++) {
        (void)vg_drv_wait(&r->d, &t[i].txn.req);
        settle_txn(r, &t[i]);
    }
}

/* ---- reads and upkeep ---- */

static struct vg_keys random_keys(struct run *r)
{
    struct vg_slice a = all_keys[below(r, KEYS)], b = all_keys[below(r, KEYS)];
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
        .limit = below(r, 2) ? 0 : 1 + below(r, KEYS),
        .flags = flags[below(r, VG_ARRAY_LEN(flags))],
    };
    int err = vg_drv_range(&r->d, &range);
    if (range.at > r->m.rev) {
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

static void step_compact(struct run *r)
{
    vg_rev at = random_rev(r), compact_rev = 0;
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

static unsigned find_key(struct vg_slice key)
{
    unsigned i = 0;
    while (i < KEYS && !vg_slice_eq(all_keys[i], key))
        i++;
    return i;
}

/* What is due now expires at one revision; in which order the engine decides. */
static void settle_expired(struct run *r)
{
    unsigned due = 0, order[KEYS] = {0};
    bool is_due[KEYS + 1] = {false};
    for (unsigned key = 0; key < KEYS; key++)
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
        vg_drv_advance_ms(&r->d, below(r, 8000));
    settle_expired(r);
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
    for (uint64_t i = below(r, 5); i > 0; i--)
        vg_loop_turn(r->d.loop, false);
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

static void run_model(const struct vg_storage_opts *opts, uint64_t salt, bool is_killed)
{
    uint64_t steps = vg_test_is_long() ? 60000 : 4000;
    struct run *r = vg_new(struct run);
    assert_non_null(r);
    r->seed = vg_test_seed();
    r->is_killed = is_killed;
    r->is_timed = vg_drv_engine_has(engine, VG_DRV_FAKE_CLOCK);
    vg_rng_seed(&r->rng, r->seed + salt);
    model_init(&r->m, all_keys, KEYS);
    vg_drv_open(&r->d, engine, opts);
    for (r->step = 0; r->step < steps; r->step++)
        step(r);
    step_quiet(r);
    print_message("%llu steps, %llu revisions, compacted at %llu\n", (unsigned long long)steps,
                  (unsigned long long)r->m.rev, (unsigned long long)r->m.compacted);
    vg_drv_close(&r->d);
    model_done(&r->m);
    vg_free(r);
}

static void the_engine_does_what_the_model_does(void **state)
{
    (void)state;
    run_model(NULL, 1, false);
}

/* A checkpoint whenever time moves, so that the history is spread over all that an engine has. */
static void the_engine_does_what_the_model_does_with_many_checkpoints(void **state)
{
    (void)state;
    struct vg_storage_opts opts = {.checkpoint_ms = 1, .unsafe_no_fsync = true};
    run_model(&opts, 2, false);
}

/* No checkpoint ever: what is opened again comes from the log. */
static void the_engine_does_what_the_model_does_when_it_is_killed(void **state)
{
    (void)state;
    if (!vg_drv_engine_has(engine, VG_DRV_DURABLE))
        skip();
    struct vg_storage_opts opts = {.checkpoint_ms = 1000000000,
                                   .checkpoint_bytes = (size_t)1 << 30};
    run_model(&opts, 3, true);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_engine_does_what_the_model_does),
        cmocka_unit_test(the_engine_does_what_the_model_does_with_many_checkpoints),
        cmocka_unit_test(the_engine_does_what_the_model_does_when_it_is_killed),
    };
    if (argc < 2) {
        fprintf(stderr, "usage: %s <engine>\n", argv[0]);
        return 2;
    }
    engine = argv[1];
    return cmocka_run_group_tests_name("storage_model", tests, NULL, NULL);
}
