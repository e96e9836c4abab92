/* memory_limit_test.c - limits on memory are found and named. */
#include "test_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory_limit.h"

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void make_dir(const char *dir, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

/* The lowest limit counts, of a group or of one above it. */
static void a_group_has_the_lowest_limit_above_it(void **state)
{
    (void)state;
    char dir[] = "/tmp/vigil-memory-XXXXXX", groups[64], command[64];
    assert_non_null(mkdtemp(dir));
    snprintf(groups, sizeof groups, "%s/groups", dir);
    make_dir(dir, "a");
    make_dir(dir, "a/b");
    write_file(dir, "groups", "0::/a/b\n");
    assert_true(vg_memory_limit_of_group(groups, dir) == VG_MEMORY_NO_LIMIT);
    write_file(dir, "a/b/memory.max", "max\n");
    assert_true(vg_memory_limit_of_group(groups, dir) == VG_MEMORY_NO_LIMIT);
    write_file(dir, "a/memory.max", "3000000\n");
    assert_int_equal(vg_memory_limit_of_group(groups, dir), 3000000);
    write_file(dir, "a/b/memory.max", "1000000\n");
    assert_int_equal(vg_memory_limit_of_group(groups, dir), 1000000);
    write_file(dir, "groups", "0::/\n");
    write_file(dir, "memory.max", "2000000\n");
    assert_int_equal(vg_memory_limit_of_group(groups, dir), 2000000);
    make_dir(dir, "memory");
    write_file(dir, "memory/memory.limit_in_bytes", "9223372036854771712\n");
    write_file(dir, "groups", "5:cpu:/x\n4:memory:/\n");
    assert_true(vg_memory_limit_of_group(groups, dir) == VG_MEMORY_NO_LIMIT);
    write_file(dir, "memory/memory.limit_in_bytes", "4000000\n");
    assert_int_equal(vg_memory_limit_of_group(groups, dir), 4000000);
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a test's own folder */
}

static void a_limit_is_named(void **state)
{
    (void)state;
    char text[512];
    struct rlimit was, set;
    getrlimit(RLIMIT_DATA, &was);
    set = was;
    set.rlim_cur = (rlim_t)1 << 50;
    if (set.rlim_cur > was.rlim_max)
        skip();
    assert_int_equal(setrlimit(RLIMIT_DATA, &set), 0);
    assert_true(vg_memory_limit_describe(text, sizeof text));
    assert_non_null(strstr(text, "data to 1073741824 MiB (RLIMIT_DATA, ulimit -d)"));
    setrlimit(RLIMIT_DATA, &was);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_has_the_lowest_limit_above_it),
        cmocka_unit_test(a_limit_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
