/* backup_test.c - a backup taken while writers write, the store made from it, and all that can go
 * wrong on the way: damaged or truncated backups, places that are taken, full or forbidden, and the
 * power that goes while a store is being restored. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "damage_kit.h"
#include "disk_shim.h"
#include "fault_load.h"
#include "test_support.h"

#define BUMP ((vg_rev)1000)
#define CUTS_MAX 120
#define TRIALS 6

static char dir[600], file[600], target[600];

static int setup(void **state)
{
    vg_test_tmpdir_setup(state);
    snprintf(dir, sizeof dir, "%s/store", (const char *)*state);
    snprintf(file, sizeof file, "%s/backups/one", (const char *)*state);
    snprintf(target, sizeof target, "%s/restored", (const char *)*state);
    return mkdir(dk_path(*state, "backups"), 0700);
}

static void on_done(struct vg_store_req *req)
{
    req->done = NULL; /* what vg_drv_wait waits for */
}

static int backup(struct vg_drv *d, const char *path, struct vg_backup *b)
{
    *b = (struct vg_backup){.path = path};
    b->req = (struct vg_store_req){.loop = d->loop, .done = on_done};
    int err = vg_storage_backup(d->store, b);
    return err < 0 ? err : vg_drv_wait(d, &b->req);
}

/* A closed store with DK_KEYS keys, and its backup in `file`. */
static void make_backup(void)
{
    struct vg_drv d;
    struct vg_backup b;
    dk_make_closed(dir);
    struct vg_storage_opts opts = dk_opts(dir);
    vg_drv_open(&d, "lmdb", &opts);
    assert_int_equal(backup(&d, file, &b), 0);
    assert_int_equal(b.req.rev, DK_KEYS + 1);
    assert_int_equal(b.bytes, dk_size(file));
    vg_drv_close(&d);
}

/* Nothing is left where a backup failed. */
static void expect_no_files(const char *path)
{
    char *files = dk_fingerprint(path);
    assert_string_equal(files, "");
    free(files);
}

/* ---- under writes ---- */

struct backing {
    struct fl_load load;
    struct vg_drv d;
};

static void *run_load(void *arg)
{
    struct backing *b = arg;
    fl_run(&b->load);
    return NULL;
}

/* All keys of the store at `at`, as one string of revisions; free it. */
static char *describe_state(struct vg_drv *d, vg_rev at)
{
    struct vg_range range = {.keys = vg_drv_all(), .at = at};
    assert_int_equal(vg_drv_range(d, &range), 0);
    char *text = calloc(range.n_recs + 1, 64), *p = text;
    assert_non_null(text);
    for (size_t i = 0; i < range.n_recs; i++)
        p += snprintf(p, 64, "%.*s@%llu.%u ", VG_SLICE_ARG(vg_rec_key(range.recs[i])),
                      (unsigned long long)range.recs[i]->rev, range.recs[i]->value_len);
    vg_range_done(&range);
    return text;
}

static void check_restored(vg_rev rev, const char *want)
{
    struct vg_drv d;
    struct vg_status status = {0};
    if (vg_storage_restore_lmdb(file, target, BUMP, &status) < 0)
        fail_msg("%s", status.message);
    struct vg_storage_opts opts = dk_opts(target);
    vg_drv_open(&d, "lmdb", &opts);
    assert_int_equal(vg_storage_revision(d.store), rev + BUMP);
    assert_int_equal(vg_storage_compacted(d.store), rev + BUMP);
    char *got = describe_state(&d, 0);
    assert_string_equal(got, want);
    free(got);
    struct vg_range range = {.keys = vg_drv_all(), .at = rev};
    assert_int_equal(vg_drv_range(&d, &range), VIGIL_E_COMPACTED);
    vg_range_done(&range);
    assert_int_equal(vg_drv_put(&d, "after", "1"), rev + BUMP + 1);
    vg_drv_reopen(&d);
    assert_int_equal(vg_storage_revision(d.store), rev + BUMP + 1);
    vg_drv_close(&d);
}

static void a_backup_under_writes_holds_the_state_at_its_revision(void **state)
{
    (void)state;
    struct fm m;
    struct vg_drv d, other;
    struct vg_backup b;
    pthread_t thread;
    struct vg_storage_opts opts = dk_opts(dir);
    static struct backing load;
    opts.checkpoint_bytes = 64u << 10;
    fm_init(&m, vg_test_seed(), 3000);
    vg_drv_open(&d, "lmdb", &opts);
    vg_drv_attach(&other, &d);
    load.load = (struct fl_load){
        .m = &m, .host = &other, .writers = 2, .slots = 8, .txns = 3000, .seed = m.seed};
    assert_int_equal(pthread_create(&thread, NULL, run_load, &load), 0);
    vg_rev before = vg_storage_revision(d.store);
    assert_int_equal(backup(&d, file, &b), 0);
    assert_true(b.req.rev >= before);
    pthread_join(thread, NULL);
    char *want = describe_state(&d, b.req.rev);
    vg_drv_close(&other);
    vg_drv_close(&d);
    check_restored(b.req.rev, want);
    free(want);
    fm_done(&m);
}

/* ---- bad backups, bad places ---- */

static void expect_restore_refused(const char *text)
{
    struct vg_status status = {0};
    int err = vg_storage_restore_lmdb(file, target, BUMP, &status);
    if (err >= 0 || status.err != err || !strstr(status.message, text))
        fail_msg("'%s' expected, got %s: %s", text, vg_err_name(err), status.message);
    char *files = dk_fingerprint(target);
    assert_string_equal(files, "");
    free(files);
}

static void a_truncated_backup_is_refused(void **state)
{
    (void)state;
    make_backup();
    for (size_t n = dk_size(file) - 1; n > 0; n = n > 4096 ? n - 4096 : n / 2) {
        dk_truncate(file, n);
        expect_restore_refused("");
    }
}

static void a_backup_with_a_flipped_bit_in_a_value_is_refused(void **state)
{
    size_t size;
    (void)state;
    make_backup();
    char *bytes = dk_read(file, &size);
    char *at = memmem(bytes, size, "the value of key 011", 20);
    assert_non_null(at);
    dk_flip(file, (size_t)(at - bytes) + 3, 3);
    free(bytes);
    expect_restore_refused("damaged");
}

static void a_target_that_holds_something_is_refused(void **state)
{
    struct vg_status status = {0};
    (void)state;
    make_backup();
    char *before = dk_fingerprint(dir);
    assert_int_equal(vg_storage_restore_lmdb(file, dir, BUMP, &status), VIGIL_E_EXISTS);
    char *after = dk_fingerprint(dir);
    assert_string_equal(before, after);
    free(before);
    free(after);
    assert_int_equal(mkdir(target, 0700), 0);
    dk_write(dk_path(target, "mine.txt"), "x", 1);
    assert_int_equal(vg_storage_restore_lmdb(file, target, BUMP, &status), VIGIL_E_STORE_FOREIGN);
    assert_non_null(strstr(status.message, "mine.txt"));
}

static void a_backup_never_replaces_a_file(void **state)
{
    struct vg_drv d;
    struct vg_backup b;
    (void)state;
    dk_make_closed(dir);
    dk_write(file, "precious", 8);
    struct vg_storage_opts opts = dk_opts(dir);
    vg_drv_open(&d, "lmdb", &opts);
    assert_int_equal(backup(&d, file, &b), VIGIL_E_EXISTS);
    assert_int_equal(dk_size(file), 8);
    vg_drv_close(&d);
}

/* A place where writes fail from the n-th on: full at the beginning, in the middle, at the sync. */
static void a_backup_to_a_full_place_leaves_nothing(void **state)
{
    struct vg_drv d;
    struct vg_backup b;
    char place[600];
    snprintf(place, sizeof place, "%s/backups", (const char *)*state);
    dk_make_closed(dir);
    struct vg_storage_opts opts = dk_opts(dir);
    vg_drv_open(&d, "lmdb", &opts);
    for (int i = 0; i < 3; i++) {
        struct vg_disk_fault fault = {VG_DISK_WRITE, 1, UINT64_MAX, ENOSPC, i == 1, false, false};
        if (i == 2)
            fault = (struct vg_disk_fault){VG_DISK_SYNC, 1, 1, EIO, false, false, false};
        vg_disk_attach(place, vg_test_seed());
        vg_disk_fail(&fault);
        int err = backup(&d, file, &b);
        assert_true(err < 0 && b.req.status.message[0]);
        assert_true(vg_disk_struck() > 0);
        vg_disk_detach();
        expect_no_files(place);
    }
    assert_int_equal(backup(&d, "/proc/no/such/place", &b), -ENOENT);
    assert_int_equal(backup(&d, file, &b), 0); /* the store is none the worse */
    vg_drv_close(&d);
}

/* ---- the power goes while a store is restored ---- */

struct cutter {
    const char *root;
    struct vg_rng rng;
    int n;
};

static const char *image_path(const struct cutter *c, int i)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/image%d", c->root, i);
    return path;
}

static uint64_t on_point(void *arg)
{
    struct cutter *c = arg;
    if (c->n == CUTS_MAX)
        return 0;
    vg_disk_image(image_path(c, c->n++));
    return 1 + vg_rng_below(&c->rng, 3);
}

/* All of it, or a directory that counts as empty; never a part. */
static bool is_whole(const char *image)
{
    struct vg_drv d;
    struct vg_status status = {0};
    struct vg_storage_opts opts = dk_opts(image);
    if (access(image, F_OK) < 0)
        return false;
    if (vg_drv_try_open(&d, "lmdb", &opts, &status) < 0)
        fail_msg("after a cut while restoring: %s", status.message);
    vg_rev rev = vg_storage_revision(d.store);
    assert_true(rev == VG_REV_EMPTY || rev == DK_KEYS + 1 + BUMP);
    char *got = describe_state(&d, 0);
    assert_int_equal(strlen(got) > 0, rev > VG_REV_EMPTY);
    free(got);
    vg_drv_close(&d);
    return rev > VG_REV_EMPTY;
}

static void restore_and_cut(struct cutter *c, uint64_t seed)
{
    struct vg_status status = {0};
    vg_disk_attach(target, seed);
    vg_disk_on_point(1, on_point, c);
    if (vg_storage_restore_lmdb(file, target, BUMP, &status) < 0)
        fail_msg("%s", status.message);
    vg_disk_on_point(0, NULL, NULL);
    for (int i = 0; i < c->n; i++) {
        is_whole(image_path(c, i));
        vg_test_remove_tree(image_path(c, i));
    }
    vg_disk_image(image_path(c, 0)); /* it has returned: now it must be there */
    vg_disk_detach();
    assert_true(is_whole(image_path(c, 0)));
    vg_test_remove_tree(image_path(c, 0));
    vg_test_remove_tree(target);
}

static void a_restore_that_is_cut_off_is_whole_or_nothing(void **state)
{
    make_backup();
    for (uint64_t i = 0; i < TRIALS; i++) {
        struct cutter c = {.root = *state};
        vg_rng_seed(&c.rng, vg_test_seed() + i);
        restore_and_cut(&c, vg_test_seed() + i);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, vg_test_tmpdir_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_backup_under_writes_holds_the_state_at_its_revision),
        CASE(a_truncated_backup_is_refused),
        CASE(a_backup_with_a_flipped_bit_in_a_value_is_refused),
        CASE(a_target_that_holds_something_is_refused),
        CASE(a_backup_never_replaces_a_file),
        CASE(a_backup_to_a_full_place_leaves_nothing),
        CASE(a_restore_that_is_cut_off_is_whole_or_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
