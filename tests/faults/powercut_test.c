/* powercut_test.c - the power goes at any point, and every acknowledged write is there afterwards.
 * A round is a store on the shim's disk with writers on several loops; at random points of any
 * thread an image of the disk is cut. When the round is over each image is opened and compared with
 * the log of the store that ran on (fault_model.h), written to, closed and opened again. The next
 * round goes on from one of the images, so that recovery is cut, too, and recovery from that.
 * With --no-sync the store is opened without its syncs, and the test must fail. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "disk_shim.h"
#include "fault_load.h"
#include "test_support.h"

#define ROUNDS 14
#define ROUNDS_LONG 300
#define CUTS_PER_ROUND 16
#define TXNS_PER_ROUND 400u
#define TXNS_MAX (TXNS_PER_ROUND * ROUNDS_LONG)

static bool no_sync;

struct cutter {
    const char *root;
    struct fm *m;
    struct vg_rng rng;
    uint64_t gap; /* points between two cuts, on the average */
    int n;
    struct fm_cut cuts[CUTS_PER_ROUND];
};

static const char *path_in(const char *root, const char *name, int number)
{
    static _Thread_local char path[512];
    snprintf(path, sizeof path, number < 0 ? "%s/%s" : "%s/%s%d", root, name, number);
    return path;
}

/* The cut is what was certain before the image is taken. */
static uint64_t on_point(void *arg)
{
    struct cutter *c = arg;
    c->cuts[c->n] = fm_cut_now(c->m);
    vg_disk_image(path_in(c->root, "image", c->n));
    return ++c->n < CUTS_PER_ROUND ? 1 + vg_rng_below(&c->rng, 2 * c->gap) : 0;
}

/* Small, so that checkpoints and switches of the log come often. */
static struct vg_storage_opts small_store(const char *dir, const struct vg_clock *clock)
{
    return (struct vg_storage_opts){
        .dir = dir,
        .clock = clock,
        .map_size = (size_t)1 << 28,
        .checkpoint_bytes = 64u << 10,
        .flight_min = 2, /* most groups take the syncer, some do not */
        .checkpoint_ms = 1000,
        .unsafe_no_fsync = no_sync,
    };
}

/* ---- what comes after a cut ---- */

static void write_three(struct vg_drv *d)
{
    vg_rev rev = vg_storage_revision(d->store);
    assert_int_equal(vg_drv_put(d, "z/1", "one"), rev + 1);
    assert_int_equal(vg_drv_put(d, "z/2", "two"), rev + 2);
    assert_int_equal(vg_drv_delete(d, "z/1"), rev + 3);
    vg_drv_reopen(d);
    assert_int_equal(vg_storage_revision(d->store), rev + 3);
    struct vg_rec *two = vg_drv_get(d, "z/2", 0);
    assert_non_null(two);
    assert_int_equal(two->rev, rev + 2);
    vg_rec_unref(two);
    assert_null(vg_drv_get(d, "z/1", 0));
}

static size_t count_mortal(struct vg_drv *d)
{
    struct vg_range range = {.keys = vg_drv_all()};
    size_t n = 0;
    assert_int_equal(vg_drv_range(d, &range), 0);
    for (size_t i = 0; i < range.n_recs; i++)
        n += range.recs[i]->expires_ms != 0;
    vg_range_done(&range);
    return n;
}

/* Deadlines are durable: all keys with one go when time has passed. */
static void let_keys_expire(struct vg_drv *d)
{
    size_t n = count_mortal(d);
    struct vg_drv_watch *w = vg_drv_watch_all(d, vg_storage_revision(d->store) + 1);
    vg_fake_clock_advance(d->clock, UINT64_C(86400000) * VG_NS_PER_MS * 365);
    vg_drv_watch_events(w, n);
    assert_int_equal(w->n_events, n);
    assert_int_equal(count_mortal(d), 0);
    vg_drv_watch_done(w);
}

/* The verifier's clock stands before all deadlines, so nothing expires while it looks. */
static void open_image(struct vg_drv *d, const char *dir)
{
    struct vg_status status = {0};
    struct vg_storage_opts opts = small_store(dir, NULL);
    if (vg_drv_try_open(d, "lmdb", &opts, &status) < 0)
        fail_msg("the store does not open after a cut: %s", status.message);
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Returns the image's revision and compaction; `keep` leaves it as it is. */
static void check_image(struct cutter *c, int i, bool keep, vg_rev *ret_rev, vg_rev *ret_compacted)
{
    struct vg_drv d;
    char dir[512];
    snprintf(dir, sizeof dir, "%s", path_in(c->root, "image", i));
    *ret_rev = VG_REV_EMPTY;
    *ret_compacted = 0;
    if (!is_there(dir)) { /* the cut took the directory itself */
        assert_int_equal(fm_cut_must_have(c->m, &c->cuts[i]), VG_REV_EMPTY);
        return;
    }
    open_image(&d, dir);
    if (no_sync) {
        fm_check_state(c->m, &c->cuts[i], &d);
        keep = true;
    } else {
        fm_check(c->m, &c->cuts[i], FM_NOTHING, &d, &c->rng);
    }
    *ret_rev = vg_storage_revision(d.store);
    *ret_compacted = vg_storage_compacted(d.store);
    if (!keep) {
        write_three(&d);
        let_keys_expire(&d);
    }
    vg_drv_close(&d);
}

/* ---- rounds ---- */

struct world {
    const char *root;
    struct vg_fake_clock clock;
    struct vg_rng rng;
    struct fm m;
    bool has_model;
    int cuts;
    uint64_t direct, dsync; /* writes of each kind, in all */
};

/* Not every file system knows the short way to the disk; the log finds out and takes another. */
static void pick_disk(struct world *w)
{
    static const unsigned disks[] = {
        0,
        0,
        VG_DISK_NO_DIRECT_OPEN,
        VG_DISK_NO_DIRECT_WRITE,
        VG_DISK_NO_DSYNC,
        VG_DISK_NO_DSYNC | VG_DISK_NO_DIRECT_OPEN,
    };
    vg_disk_lacks(disks[vg_rng_below(&w->rng, VG_ARRAY_LEN(disks))]);
}

static void run_round(struct world *w, struct cutter *c, const char *dir)
{
    struct vg_drv d;
    struct vg_storage_opts opts = small_store(dir, &w->clock.clock);
    vg_disk_attach(dir, vg_rng_u64(&w->rng));
    pick_disk(w);
    vg_disk_on_point(1 + vg_rng_below(&c->rng, c->gap), on_point, c);
    vg_drv_open(&d, "lmdb", &opts);
    struct fl_load load = {
        .m = &w->m,
        .host = &d,
        .writers = 2 + (unsigned)vg_rng_below(&w->rng, 3),
        .slots = 1 + (unsigned)vg_rng_below(&w->rng, 12),
        .txns = TXNS_PER_ROUND,
        .seed = vg_rng_u64(&w->rng),
        .watched = true,
        .compact_every = 40,
        .clock = &w->clock,
    };
    fl_run(&load);
    vg_drv_close(&d);
    w->direct += vg_disk_count_direct();
    w->dsync += vg_disk_count_dsync();
    vg_disk_detach();
}

/* Checks all images and makes one of them the store of the next round; or begins anew. */
static void settle(struct world *w, struct cutter *c, const char *dir)
{
    vg_rev rev, compacted, kept_rev = 0, kept_compacted = 0;
    int kept = vg_rng_below(&w->rng, 5) == 0 ? -1 : (int)vg_rng_below(&w->rng, (uint64_t)c->n);
    for (int i = 0; i < c->n; i++) {
        check_image(c, i, i == kept, &rev, &compacted);
        if (i == kept) {
            kept_rev = rev;
            kept_compacted = compacted;
        } else {
            vg_test_remove_tree(path_in(c->root, "image", i));
        }
    }
    vg_test_remove_tree(dir);
    if (kept >= 0) {
        if (is_there(path_in(c->root, "image", kept)))
            assert_int_equal(rename(path_in(c->root, "image", kept), dir), 0);
        fm_rewind(&w->m, kept_rev, kept_compacted);
    } else {
        fm_done(&w->m);
        w->has_model = false;
    }
}

static void one_round(struct world *w)
{
    struct cutter c = {.root = w->root, .m = &w->m};
    char dir[512];
    snprintf(dir, sizeof dir, "%s", path_in(w->root, "store", -1));
    if (!w->has_model)
        fm_init(&w->m, vg_rng_u64(&w->rng), TXNS_MAX);
    w->has_model = true;
    vg_rng_seed(&c.rng, vg_rng_u64(&w->rng));
    c.gap = 1 + vg_rng_below(&w->rng, 60);
    run_round(w, &c, dir);
    w->cuts += c.n;
    settle(w, &c, dir);
}

static void every_acknowledged_write_survives_any_cut(void **state)
{
    int rounds = vg_test_is_long() ? ROUNDS_LONG : ROUNDS;
    struct world w = {.root = *state};
    vg_rng_seed(&w.rng, vg_test_seed());
    vg_fake_clock_init(&w.clock);
    for (int i = 0; i < rounds; i++)
        one_round(&w);
    print_message("%d cuts in %d rounds; %" PRIu64 " direct writes, %" PRIu64 " durable ones\n",
                  w.cuts, rounds, w.direct, w.dsync);
    assert_true(no_sync || (w.direct > 0 && w.dsync > 0));
    assert_true(w.cuts >= (vg_test_is_long() ? 3000 : 150));
    if (w.has_model)
        fm_done(&w.m);
    vg_fake_clock_done(&w.clock);
}

#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, vg_test_tmpdir_setup, vg_test_tmpdir_teardown)

static const struct CMUnitTest tests[] = {
    CASE(every_acknowledged_write_survives_any_cut),
};

/* LMDB trusts its pages: opening what a cut left of an un-synced store may end the process. */
static int run_in_child(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(cmocka_run_group_tests(tests, NULL, NULL) != 0);
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return 2;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    no_sync = argc > 1 && strcmp(argv[1], "--no-sync") == 0;
    return no_sync ? run_in_child() : cmocka_run_group_tests(tests, NULL, NULL);
}
