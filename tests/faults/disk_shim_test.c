/* disk_shim_test.c - is the shim itself to be trusted? Plain files and plain LMDB under it: what is
 * synced survives every cut, what is not gets lost in some, and LMDB without its sync is caught. */
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "disk_shim.h"
#include "test_support.h"

#define CUTS 60
#define COMMITS 25
#define IMAGES_MAX 400

static char path_buf[8][512];

static const char *path_of(int slot, const char *dir, const char *name)
{
    snprintf(path_buf[slot], sizeof path_buf[slot], "%s/%s", dir, name);
    return path_buf[slot];
}

static char first_byte(const char *path)
{
    char c = '?';
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return '-';
    if (read(fd, &c, 1) != 1)
        c = '0';
    close(fd);
    return c;
}

/* How often each outcome is seen in many images of one state. */
struct seen {
    int absent, empty, a, b, zero;
};

static struct seen look(const char *root, const char *name)
{
    struct seen s = {0};
    for (int i = 0; i < CUTS; i++) {
        const char *image = path_of(6, root, "image");
        vg_disk_image(image);
        char c = first_byte(path_of(7, image, name));
        s.absent += c == '-';
        s.empty += c == '0';
        s.a += c == 'a';
        s.b += c == 'b';
        s.zero += c == '\0';
        vg_test_remove_tree(image);
    }
    return s;
}

static int make_file(const char *dir, const char *name, const char *text)
{
    int fd = open(path_of(0, dir, name), O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, text, 1, 0), 1);
    return fd;
}

static void sync_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY);
    assert_int_equal(fsync(fd), 0);
    close(fd);
}

static const char *begin(void **state)
{
    const char *dir = path_of(1, *state, "store");
    assert_int_equal(mkdir(dir, 0700), 0);
    vg_disk_attach(dir, vg_test_seed());
    return dir;
}

static void what_is_synced_is_always_there(void **state)
{
    const char *dir = begin(state);
    int fd = make_file(dir, "f", "a");
    assert_int_equal(fdatasync(fd), 0);
    sync_dir(dir);
    assert_int_equal(look(*state, "f").a, CUTS);
    close(fd);
    vg_disk_detach();
}

static void what_is_not_synced_may_be_there(void **state)
{
    const char *dir = begin(state);
    int fd = make_file(dir, "f", "a");
    struct seen s = look(*state, "f");
    assert_true(s.absent > 0 && s.empty > 0 && s.a > 0);
    assert_int_equal(fdatasync(fd), 0);
    s = look(*state, "f");
    assert_true(s.absent > 0 && s.a > 0 && s.empty == 0); /* the name is not durable yet */
    sync_dir(dir);
    assert_int_equal(pwrite(fd, "b", 1, 0), 1);
    s = look(*state, "f");
    assert_true(s.a > 0 && s.b > 0 && s.a + s.b == CUTS);
    close(fd);
    vg_disk_detach();
}

static void a_dsync_write_needs_no_sync(void **state)
{
    const char *dir = begin(state);
    int fd = make_file(dir, "f", "a");
    sync_dir(dir);
    int dfd = open(path_of(0, dir, "f"), O_WRONLY | O_DSYNC);
    assert_int_equal(pwrite(dfd, "b", 1, 0), 1);
    assert_int_equal(look(*state, "f").b, CUTS);
    close(dfd);
    close(fd);
    vg_disk_detach();
}

static void a_write_may_bring_its_own_sync(void **state)
{
    _Alignas(4096) static char page[2 * 4096] = "b";
    struct iovec iov = {page, 4096};
    const char *dir = begin(state);
    int fd = make_file(dir, "f", "a");
    sync_dir(dir);
    assert_int_equal(pwritev2(fd, &iov, 1, 0, RWF_DSYNC), 4096);
    assert_int_equal(look(*state, "f").b, CUTS);
    close(fd);
    fd = open(path_of(0, dir, "f"), O_RDWR | O_DIRECT);
    assert_true(fd >= 0);
    page[0] = 'a';
    assert_int_equal(pwrite(fd, page, 4096, 0), 4096); /* past the page cache is not yet durable */
    struct seen s = look(*state, "f");
    assert_true(s.a > 0 && s.b > 0);
    assert_int_equal(vg_disk_count_direct(), 1);
    vg_disk_fail(&(struct vg_disk_fault){VG_DISK_SYNC, 1, 1, EIO, false, false, false});
    assert_int_equal(pwritev2(fd, &iov, 1, 0, RWF_DSYNC), -1);
    assert_int_equal(errno, EIO);
    assert_int_equal(pwritev2(fd, &iov, 1, 0, RWF_DSYNC), 4096);
    assert_int_equal(look(*state, "f").a, CUTS);
    close(fd);
    vg_disk_detach();
}

static void direct_writes_are_of_whole_pages(void **state)
{
    _Alignas(4096) static char page[4 * 4096] = "b";
    const char *dir = begin(state);
    close(make_file(dir, "f", "a"));
    int fd = open(path_of(0, dir, "f"), O_RDWR | O_DIRECT);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, page, 100, 0), -1);
    assert_int_equal(pwrite(fd, page + 1, 4096, 0), -1);
    assert_int_equal(pwrite(fd, page, 4096, 512), -1);
    assert_int_equal(errno, EINVAL);
    vg_disk_fail(&(struct vg_disk_fault){VG_DISK_WRITE, 1, 1, 0, true, false, false});
    ssize_t part = pwrite(fd, page, sizeof page, 0);
    assert_true(part > 0 && part < (ssize_t)sizeof page && part % 4096 == 0);
    vg_disk_lacks(VG_DISK_NO_DIRECT_WRITE | VG_DISK_NO_DSYNC | VG_DISK_NO_DIRECT_OPEN);
    assert_int_equal(pwrite(fd, page, 4096, 0), -1);
    assert_int_equal(errno, EINVAL);
    struct iovec iov = {page, 4096};
    assert_int_equal(pwritev2(fd, &iov, 1, 0, RWF_DSYNC), -1);
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(open(path_of(0, dir, "f"), O_RDWR | O_DIRECT), -1);
    close(fd);
    vg_disk_detach();
}

static void a_rename_is_durable_with_its_directory(void **state)
{
    const char *dir = begin(state);
    close(make_file(dir, "f", "a"));
    int fd = make_file(dir, "g", "b");
    fdatasync(fd);
    fd = open(path_of(0, dir, "f"), O_RDWR);
    fdatasync(fd);
    close(fd);
    sync_dir(dir);
    assert_int_equal(rename(path_of(2, dir, "g"), path_of(3, dir, "f")), 0);
    struct seen s = look(*state, "f");
    assert_true(s.a > 0 && s.b > 0 && s.a + s.b == CUTS);
    sync_dir(dir);
    assert_int_equal(look(*state, "f").b, CUTS);
    assert_int_equal(unlink(path_of(2, dir, "f")), 0);
    sync_dir(dir);
    assert_int_equal(look(*state, "f").absent, CUTS);
    vg_disk_detach();
}

static void after_a_failed_sync_no_sync_brings_it_back(void **state)
{
    int lost = 0;
    const char *dir = begin(state);
    int fd = make_file(dir, "f", "a");
    fdatasync(fd);
    sync_dir(dir);
    for (int i = 0; i < CUTS; i++) {
        vg_disk_fail(&(struct vg_disk_fault){VG_DISK_SYNC, 1, 1, EIO, false, false, false});
        assert_int_equal(pwrite(fd, "b", 1, 0), 1);
        assert_int_equal(fdatasync(fd), -1);
        assert_int_equal(errno, EIO);
        assert_int_equal(fdatasync(fd), 0);
        struct seen s = look(*state, "f");
        assert_true(s.a == CUTS || s.b == CUTS);
        lost += s.a == CUTS;
        assert_int_equal(pwrite(fd, "a", 1, 0), 1);
        assert_int_equal(fdatasync(fd), 0);
    }
    assert_true(lost > 0 && lost < CUTS);
    close(fd);
    vg_disk_detach();
}

static void writes_fail_when_told_to(void **state)
{
    char text[100] = "b";
    const char *dir = begin(state);
    int fd = make_file(dir, "f", "a");
    vg_disk_fail(&(struct vg_disk_fault){VG_DISK_WRITE, 2, 1, ENOSPC, true, false, false});
    assert_int_equal(pwrite(fd, text, 100, 0), 100);
    ssize_t part = pwrite(fd, text, 100, 0);
    assert_true(part > 0 && part < 100);
    assert_int_equal(pwrite(fd, text, 100, 0), -1);
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(pwrite(fd, text, 100, 0), 100);
    vg_disk_fail(&(struct vg_disk_fault){VG_DISK_WRITE, 1, UINT64_MAX, EDQUOT, false, true, false});
    assert_int_equal(pwrite(fd, text, 100, 0), 100);
    assert_int_equal(pwrite(fd, text, 100, 50), -1);
    assert_int_equal(ftruncate(fd, 200), -1);
    assert_int_equal(errno, EDQUOT);
    vg_disk_heal();
    assert_int_equal(ftruncate(fd, 200), 0);
    assert_int_equal(vg_disk_struck(), 2);
    close(fd);
    vg_disk_detach();
}

/* ---- LMDB ---- */

struct cutter {
    const char *root;
    struct vg_rng rng;
    uint32_t committed; /* the test's count, read at the cut */
    int n;
    uint32_t must_have[IMAGES_MAX];
};

static uint64_t cut(void *arg)
{
    struct cutter *c = arg;
    char name[32];
    if (c->n == IMAGES_MAX)
        return 0;
    snprintf(name, sizeof name, "cut%d", c->n);
    c->must_have[c->n++] = c->committed;
    vg_disk_image(path_of(6, c->root, name));
    return 1 + vg_rng_below(&c->rng, 9);
}

static MDB_env *open_env(const char *dir, unsigned flags, MDB_dbi *ret_dbi)
{
    MDB_env *env;
    MDB_txn *txn;
    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_set_mapsize(env, 1 << 24), 0);
    if (mdb_env_open(env, path_of(5, dir, "data.mdb"), MDB_NOSUBDIR | flags, 0600) != 0 ||
        mdb_txn_begin(env, NULL, 0, &txn) != 0) {
        mdb_env_close(env);
        return NULL;
    }
    assert_int_equal(mdb_dbi_open(txn, NULL, 0, ret_dbi), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    return env;
}

static void commit_one(MDB_env *env, MDB_dbi dbi, uint32_t i)
{
    char filler[3000] = {0};
    MDB_txn *txn;
    MDB_val key = {sizeof i, &i}, val = {sizeof filler, filler};
    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_put(txn, dbi, &key, &val, 0), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
}

/* Commits in the environment from the first on without a gap; 0 also when it cannot be read. */
static uint32_t count_commits(const char *dir)
{
    MDB_dbi dbi = 0;
    MDB_txn *txn;
    uint32_t i = 0;
    MDB_env *env = access(path_of(5, dir, "data.mdb"), F_OK) == 0 ? open_env(dir, 0, &dbi) : NULL;
    if (!env)
        return 0;
    assert_int_equal(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), 0);
    MDB_val key = {sizeof i, &i}, val;
    while (mdb_get(txn, dbi, &key, &val) == 0)
        i++;
    mdb_txn_abort(txn);
    mdb_env_close(env);
    return i;
}

/* In a child, because LMDB trusts its pages: a tree that was torn can end the process. */
static bool has_lost(const char *image, uint32_t must_have)
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGBUS, SIG_DFL); /* cmocka would carry on with the parent's tests */
        signal(SIGSEGV, SIG_DFL);
        signal(SIGABRT, SIG_DFL);
        alarm(120);
        close(STDERR_FILENO);
        _exit(count_commits(image) < must_have);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static int count_losers(struct cutter *c)
{
    int losers = 0;
    for (int i = 0; i < c->n; i++) {
        char name[32];
        snprintf(name, sizeof name, "cut%d", i);
        const char *image = path_of(6, c->root, name);
        losers += has_lost(image, c->must_have[i]);
        vg_test_remove_tree(image);
    }
    return losers;
}

/* How many of the images lost a commit. */
static int run_lmdb(void **state, unsigned flags, bool lie)
{
    MDB_dbi dbi = 0;
    static struct cutter c;
    c = (struct cutter){.root = *state};
    vg_rng_seed(&c.rng, vg_test_seed());
    const char *dir = begin(state);
    MDB_env *env = open_env(dir, flags, &dbi);
    sync_dir(dir); /* LMDB leaves that to its user */
    vg_disk_lie(lie);
    vg_disk_on_point(1, cut, &c);
    for (uint32_t i = 0; i < COMMITS; i++) {
        commit_one(env, dbi, i);
        c.committed = i + 1;
    }
    mdb_env_close(env);
    vg_disk_detach();
    assert_true(c.n > 30);
    return count_losers(&c);
}

static void lmdb_survives_every_cut(void **state)
{
    assert_int_equal(run_lmdb(state, 0, false), 0);
}

static void lmdb_without_sync_is_caught(void **state)
{
    assert_true(run_lmdb(state, MDB_NOSYNC, false) > 0);
}

static void lmdb_on_a_lying_disk_is_caught(void **state)
{
    assert_true(run_lmdb(state, 0, true) > 0);
}

#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, vg_test_tmpdir_setup, vg_test_tmpdir_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(what_is_synced_is_always_there),
        CASE(what_is_not_synced_may_be_there),
        CASE(a_dsync_write_needs_no_sync),
        CASE(a_write_may_bring_its_own_sync),
        CASE(direct_writes_are_of_whole_pages),
        CASE(a_rename_is_durable_with_its_directory),
        CASE(after_a_failed_sync_no_sync_brings_it_back),
        CASE(writes_fail_when_told_to),
        CASE(lmdb_survives_every_cut),
        CASE(lmdb_without_sync_is_caught),
        CASE(lmdb_on_a_lying_disk_is_caught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
