/* directory_test.c - the directory of a store: one with something else in it is refused, and so is
 * one that another process has or that may not be read; its files are for the owner alone. --open
 * says what another process would hear. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "damage_kit.h"
#include "test_support.h"

static void a_directory_with_something_else_is_refused(void **state)
{
    const char *dir = dk_dir(state);
    assert_int_equal(mkdir(dir, 0700), 0);
    dk_write(dk_path(dir, "holiday.jpg"), "x", 1);
    dk_expect_refused(dir, VIGIL_E_STORE_FOREIGN, "holiday.jpg");
}

static void a_file_in_the_place_of_a_directory_is_refused(void **state)
{
    const char *dir = dk_dir(state);
    dk_write(dir, "x", 1);
    dk_expect_refused(dir, -ENOTDIR, "cannot open the directory");
    assert_int_equal(dk_size(dir), 1);
}

static void expect_modes(const char *dir)
{
    struct stat st;
    static const char *const names[] = {"data.mdb", "data.mdb-lock", "wal-0",
                                        "wal-1",    "durable",       "lock"};
    assert_int_equal(stat(dir, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    for (size_t i = 0; i < VG_ARRAY_LEN(names); i++) {
        assert_int_equal(stat(dk_path(dir, names[i]), &st), 0);
        if ((st.st_mode & 07777) != 0600)
            fail_msg("%s has mode %o", names[i], st.st_mode & 07777);
    }
}

static void files_are_for_the_owner_alone_whatever_the_umask(void **state)
{
    static const mode_t masks[] = {0, 022, 0277};
    for (size_t i = 0; i < VG_ARRAY_LEN(masks); i++) {
        struct vg_drv d;
        char dir[600];
        snprintf(dir, sizeof dir, "%s/store%zu", (const char *)*state, i);
        struct vg_storage_opts opts = dk_opts(dir);
        mode_t old = umask(masks[i]);
        vg_drv_open(&d, "lmdb", &opts);
        vg_drv_put(&d, "a", "1");
        umask(old);
        expect_modes(dir);
        vg_drv_close(&d);
    }
}

static void a_directory_that_others_may_read_is_narrowed(void **state)
{
    struct vg_drv d;
    const char *dir = dk_dir(state);
    struct vg_storage_opts opts = dk_opts(dir);
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(chmod(dir, 0755), 0);
    vg_drv_open(&d, "lmdb", &opts);
    expect_modes(dir);
    vg_drv_close(&d);
}

/* ---- processes ---- */

static void a_second_opener_is_refused_with_the_pid_of_the_first(void **state)
{
    struct vg_drv d;
    char said[1024], pid[64];
    const char *dir = dk_dir(state);
    struct vg_storage_opts opts = dk_opts(dir);
    snprintf(pid, sizeof pid, "process %d", (int)getpid());
    vg_drv_open(&d, "lmdb", &opts);
    vg_drv_put(&d, "a", "1");
    dk_expect_refused(dir, VIGIL_E_STORE_LOCKED, pid);
    assert_int_equal(dk_run_self("--open", dir, said, sizeof said), 1);
    if (!strstr(said, "VIGIL_E_STORE_LOCKED") || !strstr(said, pid))
        fail_msg("another process says: %s", said);
    vg_drv_put(&d, "a", "2"); /* the first one did not notice */
    vg_drv_close(&d);
    assert_int_equal(dk_run_self("--open", dir, said, sizeof said), 0);
}

static void a_directory_that_may_not_be_read_is_refused(void **state)
{
    char said[1024];
    const char *dir = dk_dir(state);
    dk_make_closed(dir);
    if (geteuid() != 0) {
        print_message("not root: made unreadable instead of another user's\n");
        assert_int_equal(chmod(dir, 0), 0);
    } else {
        assert_int_equal(chmod(*state, 0755), 0);
    }
    int status = dk_run_self("--open-as-nobody", dir, said, sizeof said);
    chmod(dir, 0700);
    assert_int_equal(status, 1);
    if (!strstr(said, "EACCES"))
        fail_msg("it says: %s", said);
}

static int say_open(const char *dir)
{
    struct vg_drv d;
    struct vg_status status = {0};
    struct vg_storage_opts opts = dk_opts(dir);
    int err = vg_drv_try_open(&d, "lmdb", &opts, &status);
    printf("%s: %s\n", vg_err_name(err), status.message);
    if (err == 0)
        vg_drv_close(&d);
    fflush(stdout);
    _exit(err < 0); /* LeakSanitizer cannot look at a process that became another user's */
}

#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, vg_test_tmpdir_setup, vg_test_tmpdir_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(a_directory_with_something_else_is_refused),
        CASE(a_file_in_the_place_of_a_directory_is_refused),
        CASE(files_are_for_the_owner_alone_whatever_the_umask),
        CASE(a_directory_that_others_may_read_is_narrowed),
        CASE(a_second_opener_is_refused_with_the_pid_of_the_first),
        CASE(a_directory_that_may_not_be_read_is_refused),
    };
    if (argc == 3 && strcmp(argv[1], "--open") == 0)
        return say_open(argv[2]);
    if (argc == 3 && strcmp(argv[1], "--open-as-nobody") == 0)
        return geteuid() == 0 && seteuid(65534) < 0 ? 3 : say_open(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
