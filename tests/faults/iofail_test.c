/* iofail_test.c - the n-th write, sync or change of a name fails, for every n of a small run.
 * Whatever fails, each answer is a named error or true: what is acknowledged stays, what is refused
 * does not appear, and only UNKNOWN_OUTCOME may be either. When the fault is over, writes resume by
 * themselves. Images are cut on the way (disk_shim.h), so a store that believes a failed sync too
 * late, or a refused write too early, is caught as well. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "disk_shim.h"
#include "fault_load.h"
#include "test_support.h"

#define TXNS 50u
#define TXNS_AFTER 15u
#define CUTS 5
#define SAMPLES 14u
#define SAMPLES_LONG 400u

struct trial {
    const char *root;
    char dir[512];
    struct vg_fake_clock clock;
    struct vg_rng rng;     /* the main thread's */
    struct vg_rng cut_rng; /* of whoever holds the shim's lock */
    struct fm m;
    struct vg_drv d;
    int n_cuts;
    struct fm_cut cuts[CUTS];
    unsigned refused, unknown; /* answers with an error */
    bool must_work;            /* no error is expected any more */
    int surprise;              /* an answer that should not have been */
};

/* ---- a trial ---- */

static struct vg_storage_opts small_store(const char *dir, const struct vg_clock *clock)
{
    return (struct vg_storage_opts){
        .dir = dir,
        .clock = clock,
        .map_size = (size_t)1 << 26,
        .checkpoint_bytes = 32u << 10,
        .flight_min = 2, /* most groups take the syncer, some do not */
        .checkpoint_ms = 1000,
    };
}

static const char *image_path(const struct trial *t, int i)
{
    static _Thread_local char path[512];
    snprintf(path, sizeof path, "%s/image%d", t->root, i);
    return path;
}

static uint64_t on_point(void *arg)
{
    struct trial *t = arg;
    t->cuts[t->n_cuts] = fm_cut_now(&t->m);
    vg_disk_image(image_path(t, t->n_cuts));
    return ++t->n_cuts < CUTS - 1 ? 1 + vg_rng_below(&t->cut_rng, 120) : 0;
}

/* On the one writer's thread. */
static void on_answer(const struct fl_report *r, void *arg)
{
    struct trial *t = arg;
    if (r->err == 0 || r->err == VIGIL_E_CONFLICT)
        return;
    bool is_named = r->err == VIGIL_E_STORE_FULL || r->err == VIGIL_E_UNKNOWN_OUTCOME ||
                    r->err == VIGIL_E_READ_ONLY || r->err == -EIO;
    if (t->must_work || !is_named)
        t->surprise = r->err;
    t->unknown += r->err == VIGIL_E_UNKNOWN_OUTCOME;
    t->refused += r->err != VIGIL_E_UNKNOWN_OUTCOME;
}

static void begin(struct trial *t, const char *root, uint64_t seed)
{
    *t = (struct trial){.root = root};
    snprintf(t->dir, sizeof t->dir, "%s/store", root);
    vg_rng_seed(&t->rng, seed);
    vg_rng_seed(&t->cut_rng, seed + 1);
    vg_fake_clock_init(&t->clock);
    fm_init(&t->m, vg_rng_u64(&t->rng), 4000);
    vg_disk_attach(t->dir, vg_rng_u64(&t->rng));
}

static void end(struct trial *t)
{
    vg_disk_detach();
    fm_done(&t->m);
    vg_fake_clock_done(&t->clock);
    vg_test_remove_tree(t->dir);
}

static void run_load(struct trial *t, uint64_t txns)
{
    struct fl_load load = {
        .m = &t->m,
        .host = &t->d,
        .writers = 1,
        .slots = 5,
        .txns = txns,
        .seed = vg_rng_u64(&t->rng),
        .watched = true,
        .compact_every = 20,
        .clock = &t->clock,
        .on_answer = on_answer,
        .arg = t,
    };
    fl_run(&load);
    if (t->surprise)
        fail_msg("a write was answered with %s", vg_err_name(t->surprise));
}

/* A store that cannot be opened because of the fault says so; without it, it opens. */
static void open_store(struct trial *t)
{
    struct vg_status status = {0};
    struct vg_storage_opts opts = small_store(t->dir, &t->clock.clock);
    int err = vg_drv_try_open(&t->d, "lmdb", &opts, &status);
    if (err == 0)
        return;
    assert_true(vg_disk_struck() > 0);
    assert_true(status.message[0] != '\0' && status.err == err);
    vg_disk_heal();
    vg_drv_open(&t->d, "lmdb", &opts);
}

static uint64_t count_checkpoints(struct trial *t)
{
    struct vg_storage_stats stats;
    vg_storage_stats(t->d.store, &stats);
    return stats.checkpoints;
}

/* The fault is over when a write went all the way, to the log and to the base. The store looks
 * again every second of the fake clock; its threads need some of the real one for it. */
static void wait_until_recovered(struct trial *t)
{
    uint64_t end = vg_clock_mono_ns(vg_clock_system()) + 60 * VG_NS_PER_S;
    uint64_t before = count_checkpoints(t);
    while (count_checkpoints(t) == before) {
        run_load(t, 1);
        vg_fake_clock_advance(&t->clock, VG_NS_PER_S + VG_NS_PER_MS);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        if (vg_clock_mono_ns(vg_clock_system()) > end)
            fail_msg("writes do not resume: %u refused, %u unknown", t->refused, t->unknown);
    }
}

static void check_images(struct trial *t)
{
    for (int i = 0; i < t->n_cuts; i++) {
        struct vg_drv d;
        struct vg_status status = {0};
        struct vg_storage_opts opts = small_store(image_path(t, i), NULL);
        if (access(opts.dir, F_OK) < 0) {
            assert_int_equal(fm_cut_must_have(&t->m, &t->cuts[i]), VG_REV_EMPTY);
            continue;
        }
        if (vg_drv_try_open(&d, "lmdb", &opts, &status) < 0)
            fail_msg("the store does not open after a fault and a cut: %s", status.message);
        fm_check(&t->m, &t->cuts[i], FM_OTHER, &d, &t->rng);
        vg_drv_close(&d);
        vg_test_remove_tree(image_path(t, i));
    }
}

static void check_itself(struct trial *t)
{
    struct vg_drv d;
    struct vg_storage_opts opts = small_store(t->dir, NULL);
    struct fm_cut now = fm_cut_now(&t->m);
    vg_drv_open(&d, "lmdb", &opts);
    fm_check(&t->m, &now, FM_NOTHING, &d, &t->rng);
    vg_drv_close(&d);
}

static void cut_now(struct trial *t)
{
    t->cuts[t->n_cuts] = fm_cut_now(&t->m);
    vg_disk_image(image_path(t, t->n_cuts++));
}

/* The whole of it: the fault somewhere in a run, the end of the fault, writes that must succeed. */
static void run_trial(struct trial *t, const struct vg_disk_fault *fault)
{
    vg_disk_on_point(1 + vg_rng_below(&t->rng, 200), on_point, t);
    vg_disk_fail(fault);
    open_store(t);
    run_load(t, TXNS);
    if (fault->dead)
        vg_drv_close(&t->d);
    vg_disk_heal();
    if (fault->dead)
        open_store(t);
    wait_until_recovered(t);
    t->must_work = true;
    wait_until_recovered(t); /* deadlines of an expiry that failed come back with their table's own
                              * checkpoint: then what is due goes with the writes that follow */
    run_load(t, TXNS_AFTER);
    vg_disk_on_point(0, NULL, NULL);
    cut_now(t);
    vg_drv_close(&t->d);
    check_images(t);
    check_itself(t);
}

/* ---- each call in turn ---- */

static void count_calls(const char *root, uint64_t ret_counts[VG_DISK_CLASSES])
{
    struct trial t;
    begin(&t, root, vg_test_seed());
    run_trial(&t, &(struct vg_disk_fault){.class = VG_DISK_WRITE});
    for (int class = 0; class < VG_DISK_CLASSES; class ++)
        ret_counts[class] = vg_disk_count((enum vg_disk_class) class);
    end(&t);
}

/* The first calls all, the others sampled. */
static uint64_t next_call(uint64_t n, uint64_t total, struct vg_rng *rng)
{
    uint64_t samples = vg_test_is_long() ? SAMPLES_LONG : SAMPLES;
    uint64_t step = VG_MAX(2 * total / samples, (uint64_t)1);
    return n < samples / 2 ? n + 1 : n + 1 + vg_rng_below(rng, step);
}

static void fail_each(const char *root, struct vg_disk_fault fault)
{
    uint64_t counts[VG_DISK_CLASSES], n_struck = 0, refused = 0, unknown = 0;
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed());
    count_calls(root, counts);
    for (uint64_t n = 1; n <= counts[fault.class]; n = next_call(n, counts[fault.class], &rng)) {
        struct trial t;
        begin(&t, root, vg_rng_u64(&rng));
        fault.at = n;
        run_trial(&t, &fault);
        n_struck += vg_disk_struck() > 0;
        refused += t.refused;
        unknown += t.unknown;
        end(&t);
    }
    print_message("of %llu calls %llu were made to fail; %llu writes refused, %llu unknown\n",
                  (unsigned long long)counts[fault.class], (unsigned long long)n_struck,
                  (unsigned long long)refused, (unsigned long long)unknown);
    assert_true(n_struck > 0);
}

static void a_write_without_room_is_refused_or_whole(void **state)
{
    fail_each(*state, (struct vg_disk_fault){VG_DISK_WRITE, 0, 1, ENOSPC, true, false, false});
}

static void a_write_over_quota_is_refused(void **state)
{
    fail_each(*state, (struct vg_disk_fault){VG_DISK_WRITE, 0, 3, EDQUOT, false, false, false});
}

static void a_failed_write_is_never_acknowledged(void **state)
{
    fail_each(*state, (struct vg_disk_fault){VG_DISK_WRITE, 0, 1, EIO, true, false, false});
}

static void a_short_write_goes_on(void **state)
{
    fail_each(*state, (struct vg_disk_fault){VG_DISK_WRITE, 0, 1, 0, true, false, false});
}

static void a_failed_sync_is_never_acknowledged(void **state)
{
    fail_each(*state, (struct vg_disk_fault){VG_DISK_SYNC, 0, 1, EIO, false, false, false});
}

static void syncs_that_fail_for_a_while_are_survived(void **state)
{
    fail_each(*state, (struct vg_disk_fault){VG_DISK_SYNC, 0, 4, EIO, false, false, false});
}

static void a_disk_that_dies_in_a_sync_and_is_back_after_a_restart(void **state)
{
    fail_each(*state, (struct vg_disk_fault){VG_DISK_SYNC, 0, UINT64_MAX, EIO, false, false, true});
}

static void a_disk_that_dies_in_a_write_and_is_back_after_a_restart(void **state)
{
    fail_each(*state, (struct vg_disk_fault){VG_DISK_WRITE, 0, UINT64_MAX, EIO, true, false, true});
}

static void a_file_that_cannot_be_made_is_reported(void **state)
{
    fail_each(*state, (struct vg_disk_fault){VG_DISK_NAME, 0, 1, ENOSPC, false, false, false});
}

#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, vg_test_tmpdir_setup, vg_test_tmpdir_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_write_without_room_is_refused_or_whole),
        CASE(a_write_over_quota_is_refused),
        CASE(a_failed_write_is_never_acknowledged),
        CASE(a_short_write_goes_on),
        CASE(a_failed_sync_is_never_acknowledged),
        CASE(syncs_that_fail_for_a_while_are_survived),
        CASE(a_disk_that_dies_in_a_sync_and_is_back_after_a_restart),
        CASE(a_disk_that_dies_in_a_write_and_is_back_after_a_restart),
        CASE(a_file_that_cannot_be_made_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
