/* test_support_test.c - the helpers that the other tests trust. */
#include "test_support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static void make_file(const char *dir, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_CREAT | O_WRONLY | O_EXCL, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static void a_directory_is_removed_with_all_that_is_in_it(void **state)
{
    (void)state;
    char sub[4096], path[4096], link[4096];
    const char *dir = vg_test_tmpdir(), *other = vg_test_tmpdir();
    assert_string_not_equal(dir, other);
    snprintf(path, sizeof path, "%s", dir);
    snprintf(sub, sizeof sub, "%s/sub", dir);
    snprintf(link, sizeof link, "%s/sub/link", dir);
    assert_int_equal(mkdir(sub, 0700), 0);
    make_file(sub, "file");
    make_file(other, "kept");
    assert_int_equal(symlink(other, link), 0); /* is removed, not followed */
    vg_test_tmpdir_remove(dir);
    assert_false(exists(path));
    snprintf(path, sizeof path, "%s/kept", other);
    assert_true(exists(path));
    vg_test_remove_tree("/nonexistent/path");
}

static void a_fixture_gives_the_path_as_state(void **state)
{
    assert_true(exists(*state));
    make_file(*state, "file");
}

static void a_child_that_exits_leaves_its_parents_directory(void **state)
{
    (void)state;
    const char *dir = vg_test_tmpdir();
    int status = -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        exit(0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(exists(dir));
}

static void the_seed_stays_the_same_in_one_run(void **state)
{
    (void)state;
    assert_int_equal(vg_test_seed(), vg_test_seed());
}

static void say_and_abort(void *arg)
{
    fprintf(stderr, "said: %s\n", (const char *)arg);
    abort();
}

static void a_death_is_recognised_by_what_it_says(void **state)
{
    (void)state;
    char word[] = "farewell";
    vg_test_dies(say_and_abort, word, "said: farewell");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_directory_is_removed_with_all_that_is_in_it),
        cmocka_unit_test_setup_teardown(a_fixture_gives_the_path_as_state, vg_test_tmpdir_setup,
                                        vg_test_tmpdir_teardown),
        cmocka_unit_test(a_child_that_exits_leaves_its_parents_directory),
        cmocka_unit_test(the_seed_stays_the_same_in_one_run),
        cmocka_unit_test(a_death_is_recognised_by_what_it_says),
    };
    return cmocka_run_group_tests_name("test_support", tests, NULL, NULL);
}
