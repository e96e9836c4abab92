/* allocfail_test.c - the n-th allocation fails, of any thread, for every n of a small run.
 * The run opens a store with something in its log, writes, reads, watches, compacts and closes.
 * Whatever fails, fails with an answer; what was acknowledged is there afterwards and what was
 * refused is not. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "damage_kit.h"
#include "fault_model.h"
#include "test_support.h"

#define TXNS 12u
#define TXNS_BEFORE 10u
#define DENSE 40u /* the first so many one by one, the others sampled */
#define SAMPLES 60u

struct trial {
    struct fm m;
    struct vg_drv d; /* put together by hand: the driver's own allocations are not to fail */
    struct vg_fake_clock clock;
    struct vg_rng rng;
    char dir[512];
    struct vg_txn txns[TXNS];
    struct vg_op ops[TXNS][FM_OPS_MAX];
    uint64_t ids[TXNS];
    bool was_opened;
    bool watch_is_over;
};

/* ---- all that must not fail, before ---- */

/* A store as a killed process leaves it, and the truth about it. */
static void make_store(struct trial *t)
{
    struct vg_drv d;
    char live[600];
    snprintf(live, sizeof live, "%s.live", t->dir);
    struct vg_storage_opts opts = t->d.opts;
    opts.dir = live;
    opts.checkpoint_bytes = 0; /* many: it stays in the log */
    vg_drv_open(&d, "lmdb", &opts);
    for (unsigned i = 0; i < TXNS_BEFORE; i++) {
        struct vg_op ops[FM_OPS_MAX];
        struct vg_txn txn = {.ops = ops};
        uint64_t id = fm_send(&t->m);
        assert_true(fm_build(&t->m, id, &txn));
        vg_drv_txn(&d, &txn);
        fm_answer(&t->m, id, fm_fate_of(&txn), txn.req.rev);
        vg_txn_done(&txn);
    }
    struct vg_drv_watch *w = vg_drv_watch_all(&d, 2);
    vg_drv_watch_sync(w);
    fm_extend(&t->m, w->events, w->n_events);
    dk_copy_files(live, t->dir);
    vg_drv_close(&d);
    vg_test_remove_tree(live);
}

static void prepare(struct trial *t, const char *root, uint64_t seed)
{
    *t = (struct trial){0};
    snprintf(t->dir, sizeof t->dir, "%s/store", root);
    vg_rng_seed(&t->rng, seed);
    vg_fake_clock_init(&t->clock);
    fm_init(&t->m, seed, TXNS_BEFORE + TXNS);
    t->d.engine = "lmdb";
    t->d.opts = (struct vg_storage_opts){
        .size = sizeof t->d.opts,
        .clock = &t->clock.clock,
        .dir = t->dir,
        .map_size = (size_t)1 << 26,
        .checkpoint_bytes = 32u << 10,
        .flight_min = 2, /* most groups take the syncer, some do not */
    };
    make_store(t);
    assert_int_equal(vg_loop_new(t->d.opts.clock, &t->d.loop), 0);
    vg_loop_turn(t->d.loop, false);
    for (unsigned i = 0; i < TXNS; i++) {
        t->txns[i].ops = t->ops[i];
        t->ids[i] = fm_send(&t->m);
        assert_true(fm_build(&t->m, t->ids[i], &t->txns[i]));
    }
}

/* ---- the run ---- */

static void on_batch(struct vg_watch *w, const struct vg_watch_batch *batch, void *arg)
{
    (void)w, (void)batch, (void)arg;
}

static void on_end(struct vg_watch *w, int err, vg_rev compact_rev, void *arg)
{
    (void)w, (void)compact_rev;
    struct trial *t = arg;
    t->watch_is_over = true;
    if (err != -ENOMEM && err != VIGIL_E_CLOSED)
        fail_msg("the watch ended with %s", vg_err_name(err));
}

static bool is_refusal(int err)
{
    return err == -ENOMEM || err == VIGIL_E_STORE_FULL || err == VIGIL_E_BUSY ||
           err == VIGIL_E_CONFLICT;
}

static void write_all(struct trial *t, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        struct vg_txn *txn = &t->txns[i];
        int err = vg_drv_txn(&t->d, txn);
        if (err < 0 && !is_refusal(err) && err != VIGIL_E_UNKNOWN_OUTCOME)
            fail_msg("a write was answered with %s", vg_err_name(err));
        fm_answer(&t->m, t->ids[i], fm_fate_of(txn), txn->req.rev);
    }
}

static void read_all(struct trial *t)
{
    struct vg_range range = {.keys = vg_drv_all()};
    int err = vg_drv_range(&t->d, &range);
    if (err < 0 && err != -ENOMEM)
        fail_msg("a range was answered with %s", vg_err_name(err));
    vg_range_done(&range);
}

static void compact_some(struct trial *t)
{
    struct vg_compact c = {.at = t->m.rev};
    fm_compacting(&t->m, c.at, false);
    if (vg_drv_submit_compact(&t->d, &c) < 0)
        return;
    while (!vg_drv_is_answered(&c.req)) { /* a failed checkpoint is tried again after a second */
        vg_fake_clock_advance(&t->clock, VG_NS_PER_S);
        vg_loop_turn(t->d.loop, false);
    }
    if (c.req.err == 0)
        fm_compacting(&t->m, c.at, true);
}

static void run(struct trial *t)
{
    struct vg_watch *watch = NULL;
    struct vg_status status = {0};
    int err = vg_storage_open_lmdb(&t->d.opts, &t->d.store, &status);
    if (err < 0) {
        if (err != -ENOMEM || !status.message[0])
            fail_msg("open failed with %s: %s", vg_err_name(err), status.message);
        return;
    }
    t->was_opened = true;
    struct vg_watch_opts opts = {.loop = t->d.loop,
                                 .keys = vg_drv_all(),
                                 .from = 2,
                                 .on_batch = on_batch,
                                 .on_end = on_end,
                                 .arg = t};
    err = vg_storage_watch(t->d.store, &opts, &watch);
    assert_true(err == 0 || err == -ENOMEM);
    write_all(t, 0, TXNS / 2);
    read_all(t);
    compact_some(t);
    write_all(t, TXNS / 2, TXNS);
    read_all(t);
    vg_drv_close_store(&t->d);
    assert_true(err < 0 || t->watch_is_over);
}

/* ---- after ---- */

static void check(struct trial *t)
{
    struct vg_drv d;
    struct fm_cut all = fm_cut_now(&t->m);
    struct vg_storage_opts opts = t->d.opts;
    opts.clock = NULL;
    vg_drv_open(&d, "lmdb", &opts);
    fm_check(&t->m, &all, FM_IN_FLIGHT, &d, &t->rng);
    fm_check_acknowledged(&t->m);
    vg_drv_close(&d);
}

static void end(struct trial *t)
{
    for (unsigned i = 0; i < TXNS; i++)
        vg_txn_done(&t->txns[i]);
    vg_loop_free(t->d.loop);
    fm_done(&t->m);
    vg_fake_clock_done(&t->clock);
    vg_test_remove_tree(t->dir);
}

/* How many allocations the run made. */
static uint64_t one_trial(const char *root, uint64_t n)
{
    struct trial *t = calloc(1, sizeof *t);
    assert_non_null(t);
    prepare(t, root, vg_test_seed());
    vg_alloc_fail_at(n, 1);
    run(t);
    uint64_t made = vg_alloc_fail_at(0, 1);
    if (!t->was_opened) /* nothing was sent */
        for (unsigned i = 0; i < TXNS; i++)
            fm_answer(&t->m, t->ids[i], FM_REFUSED, 0);
    check(t);
    end(t);
    free(t);
    return made;
}

static void every_allocation_may_fail(void **state)
{
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed());
    uint64_t total = one_trial(*state, UINT64_MAX), trials = 0;
    uint64_t step = vg_test_is_long() ? 1 : VG_MAX(2 * total / SAMPLES, (uint64_t)1);
    for (uint64_t n = 1; n <= total; trials++) {
        one_trial(*state, n);
        n += n < DENSE ? 1 : 1 + vg_rng_below(&rng, step);
    }
    print_message("of %llu allocations %llu were made to fail\n", (unsigned long long)total,
                  (unsigned long long)trials);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, vg_test_tmpdir_setup,
                                        vg_test_tmpdir_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
