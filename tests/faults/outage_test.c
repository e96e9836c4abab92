/* outage_test.c - a disk that is full, or cannot sync, for a while: writes are refused with the
 * reason, reads go on, and when it is over writes resume without anybody's help. Also what a store
 * may show after a sync that failed and a restart, and, as root, a disk that is really full. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "disk_shim.h"
#include "storage_driver.h"
#include "test_support.h"

#define KEYS_MAX 2000
#define IMAGES 30

static struct vg_storage_opts small_store(const char *dir)
{
    return (struct vg_storage_opts){
        .dir = dir,
        .map_size = (size_t)1 << 26,
        .checkpoint_bytes = 256u << 10,
        .flight_min = 2, /* most groups take the syncer, some do not */
        .checkpoint_ms = 1000,
    };
}

static const char *dir_of(void **state)
{
    static char dir[512];
    snprintf(dir, sizeof dir, "%s/store", (const char *)*state);
    return dir;
}

static const char *key_of(int i)
{
    static char key[16];
    snprintf(key, sizeof key, "key/%04d", i);
    return key;
}

static int put(struct vg_drv *d, int i, struct vg_status *ret_status)
{
    static char value[8000];
    memset(value, 'a' + i % 26, sizeof value);
    struct vg_op op = vg_drv_op_put(vg_slice_str(key_of(i)), vg_slice(NULL, 0),
                                    vg_slice(value, sizeof value), VG_EXPECT_ANY);
    struct vg_txn txn = {.ops = &op, .n_ops = 1};
    int err;
    do
        err = vg_drv_txn(d, &txn);
    while (err == VIGIL_E_BUSY);
    *ret_status = txn.req.status;
    vg_txn_done(&txn);
    return err;
}

/* Exactly the first n keys. */
static void expect_keys(struct vg_drv *d, uint64_t n)
{
    struct vg_range range = {.keys = vg_drv_all(), .flags = VG_RANGE_COUNT_ONLY};
    assert_int_equal(vg_drv_range(d, &range), 0);
    assert_int_equal(range.count, n);
    vg_range_done(&range);
    struct vg_rec *rec = n ? vg_drv_get(d, key_of((int)n - 1), 0) : NULL;
    assert_true(n == 0 || (rec && rec->value_len == 8000));
    vg_rec_unref(rec);
}

/* Writes until one is refused; how many were not. Time goes on, so that checkpoints are tried. */
static int fill(struct vg_drv *d, int from, struct vg_status *ret_status)
{
    for (int i = from; i < KEYS_MAX; i++) {
        vg_drv_advance_ms(d, 100);
        if (put(d, i, ret_status) < 0)
            return i;
    }
    fail_msg("the disk is not full after %d keys", KEYS_MAX);
    return 0;
}

static void wait_until_writable(struct vg_drv *d, int i)
{
    struct vg_status status;
    uint64_t end = vg_clock_mono_ns(vg_clock_system()) + 120 * VG_NS_PER_S;
    while (put(d, i, &status) < 0) {
        vg_drv_advance_ms(d, 1001); /* it looks again every second; its threads need real time */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        if (vg_clock_mono_ns(vg_clock_system()) > end)
            fail_msg("writes do not resume: %s", status.message);
    }
}

static void expect_full(const struct vg_status *status)
{
    assert_int_equal(status->err, VIGIL_E_STORE_FULL);
    assert_non_null(strstr(status->message, "full"));
}

/* ---- on the shim's disk ---- */

static void a_full_disk_refuses_writes_and_serves_reads(void **state)
{
    struct vg_drv d;
    struct vg_status status;
    struct vg_storage_opts opts = small_store(dir_of(state));
    vg_disk_attach(opts.dir, vg_test_seed());
    vg_drv_open(&d, "lmdb", &opts);
    for (int i = 0; i < 20; i++)
        assert_int_equal(put(&d, i, &status), 0);
    vg_disk_fail(&(struct vg_disk_fault){VG_DISK_WRITE, 1, UINT64_MAX, ENOSPC, false, true, false});
    int n = fill(&d, 20, &status);
    expect_full(&status);
    expect_keys(&d, (uint64_t)n);
    assert_int_equal(put(&d, n, &status), VIGIL_E_STORE_FULL); /* still */
    vg_disk_heal();
    wait_until_writable(&d, n);
    expect_keys(&d, (uint64_t)n + 1);
    vg_drv_reopen(&d);
    expect_keys(&d, (uint64_t)n + 1);
    vg_drv_close(&d);
    vg_disk_detach();
}

static void syncs_that_keep_failing_make_it_read_only(void **state)
{
    struct vg_drv d;
    struct vg_status status;
    struct vg_storage_stats stats;
    struct vg_storage_opts opts = small_store(dir_of(state));
    vg_disk_attach(opts.dir, vg_test_seed());
    vg_drv_open(&d, "lmdb", &opts);
    assert_int_equal(put(&d, 0, &status), 0);
    vg_disk_fail(&(struct vg_disk_fault){VG_DISK_SYNC, 1, UINT64_MAX, EIO, false, false, false});
    assert_int_equal(put(&d, 1, &status), VIGIL_E_UNKNOWN_OUTCOME);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(put(&d, 1, &status), VIGIL_E_READ_ONLY);
        vg_drv_advance_ms(&d, 700);
        expect_keys(&d, 1); /* what is not certain is not shown */
    }
    vg_storage_stats(d.store, &stats);
    assert_true(stats.read_only);
    vg_disk_heal();
    wait_until_writable(&d, 1);
    vg_storage_stats(d.store, &stats);
    assert_false(stats.read_only);
    expect_keys(&d, 2);
    vg_drv_close(&d);
    vg_disk_detach();
}

/* ---- after a restart ---- */

/* Does every image of the disk hold the first n keys? */
static void expect_in_images(const char *root, uint64_t n)
{
    char dir[512];
    snprintf(dir, sizeof dir, "%s/image", root);
    for (int i = 0; i < IMAGES; i++) {
        struct vg_drv d;
        struct vg_storage_opts opts = small_store(dir);
        vg_disk_image(dir);
        vg_drv_open(&d, "lmdb", &opts);
        expect_keys(&d, n);
        vg_drv_close(&d);
        vg_test_remove_tree(dir);
    }
}

static uint64_t count_keys(struct vg_drv *d)
{
    struct vg_range range = {.keys = vg_drv_all(), .flags = VG_RANGE_COUNT_ONLY};
    assert_int_equal(vg_drv_range(d, &range), 0);
    vg_range_done(&range);
    return range.count;
}

/* The disk goes away in the middle of a sync and comes back after a restart. The page cache still
 * has the group whose sync failed, and calls it clean: a start that finds it there, shows it, and
 * relies on a sync alone would lose it with the power. */
static void what_a_restart_shows_after_a_failed_sync_is_durable(void **state)
{
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct vg_drv d;
        struct vg_status status;
        struct vg_storage_opts opts = small_store(dir_of(state));
        vg_disk_attach(opts.dir, vg_test_seed() + seed);
        vg_drv_open(&d, "lmdb", &opts);
        assert_int_equal(put(&d, 0, &status), 0);
        vg_disk_fail(&(struct vg_disk_fault){VG_DISK_SYNC, 1, UINT64_MAX, EIO, false, false, true});
        assert_int_equal(put(&d, 1, &status), VIGIL_E_UNKNOWN_OUTCOME);
        vg_drv_close(&d);
        vg_disk_heal();
        vg_drv_open(&d, "lmdb", &opts);
        expect_in_images(*state, count_keys(&d));
        vg_drv_close(&d);
        vg_disk_detach();
        vg_test_remove_tree(opts.dir);
    }
}

/* ---- a real one ---- */

static void make_ballast(const char *path)
{
    static char block[4096];
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    while (write(fd, block, sizeof block) > 0)
        ;
    close(fd);
}

/* In a process and a mount namespace of its own: a tmpfs of 6 MiB, most of it ballast. */
static void a_real_disk_is_full(void **state)
{
    struct vg_drv d;
    struct vg_status status;
    char store[600], ballast[600];
    struct vg_storage_opts opts = small_store(store);
    snprintf(store, sizeof store, "%s/store", (const char *)*state);
    snprintf(ballast, sizeof ballast, "%s/ballast", (const char *)*state);
    if (mount("vigil-test", *state, "tmpfs", 0, "size=6m") < 0) {
        print_message("skipped: cannot mount a tmpfs: %s\n", strerrordesc_np(errno));
        skip();
    }
    vg_drv_open(&d, "lmdb", &opts);
    for (int i = 0; i < 20; i++)
        assert_int_equal(put(&d, i, &status), 0);
    make_ballast(ballast);
    int n = fill(&d, 20, &status);
    expect_full(&status);
    expect_keys(&d, (uint64_t)n);
    assert_int_equal(unlink(ballast), 0);
    wait_until_writable(&d, n);
    vg_drv_reopen(&d);
    expect_keys(&d, (uint64_t)n + 1);
    vg_drv_close(&d);
    umount(*state);
}

static int enter_namespace(void)
{
    if (unshare(CLONE_NEWNS) < 0)
        return -1;
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, vg_test_tmpdir_setup, vg_test_tmpdir_teardown)

/* The namespace ends with the child, and with it the mount. */
static int run_real_disk(void)
{
    const struct CMUnitTest tests[] = {CASE(a_real_disk_is_full)};
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (enter_namespace() < 0) {
            printf("a_real_disk_is_full: skipped, needs root: %s\n", strerrordesc_np(errno));
            exit(0);
        }
        exit(cmocka_run_group_tests(tests, NULL, NULL));
    }
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_full_disk_refuses_writes_and_serves_reads),
        CASE(syncs_that_keep_failing_make_it_read_only),
        CASE(what_a_restart_shows_after_a_failed_sync_is_durable),
    };
    int failed = run_real_disk();
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
