/* bench_options_test.c - what the command line means, and that slips are refused. */
#include "test_support.h"

#include "options.h"

static int parse(struct vg_bench_options *o, struct vg_status *status, char **argv)
{
    int argc = 0;
    while (argv[argc])
        argc++;
    *status = (struct vg_status){0};
    return vg_bench_options_parse(argc, argv, o, status);
}
#define PARSE(o, status, ...)                                                                      \
    parse(o, status, (char *[]){(char *)"vigil", (char *)"bench", __VA_ARGS__, NULL})
#define S(text) ((char *)(uintptr_t)(text))

static void lists_and_scenarios_are_read(void **state)
{
    (void)state;
    struct vg_bench_options o;
    struct vg_status status;
    assert_int_equal(PARSE(&o, &status, S("fanout"), S("--watchers=10,100"), S("--http"),
                           S("1.1,2"), S("list"), S("--server-pid"), S("17,18")),
                     0);
    assert_true(o.wants[VG_BENCH_FANOUT] && o.wants[VG_BENCH_LIST] && !o.wants[VG_BENCH_FILL]);
    assert_int_equal(o.watchers.n, 2);
    assert_int_equal(o.watchers.v[1], 100);
    assert_int_equal(o.http.v[1], VG_BENCH_H2);
    assert_int_equal(o.n_pids, 2);
    assert_int_equal(o.pids[1], 18);
    assert_int_equal(o.objects.v[0], 10000);
}

static void all_is_everything_that_needs_no_restart(void **state)
{
    (void)state;
    struct vg_bench_options o;
    struct vg_status status;
    assert_int_equal(PARSE(&o, &status, S("all")), 0);
    for (size_t i = 0; i < VG_BENCH_SCENARIOS; i++)
        assert_int_equal(o.wants[i], i != VG_BENCH_RELIST);
}

static void slips_are_refused_with_a_sentence(void **state)
{
    (void)state;
    static const char *const wrong[][3] = {
        {"fnout", NULL},
        {"list", "--watchers=0", NULL},
        {"list", "--watchers=1,,2", NULL},
        {"list", "--watchers=1,2,3,4,5,6,7,8,9", NULL},
        {"list", "--objects=1e3", NULL},
        {"list", "--seconds=nan", NULL},
        {"list", "--media=xml", NULL},
        {"list", "--quick=yes", NULL},
        {"list", "--token=x", NULL},
        {"list", "--nothing", NULL},
        {"list", "--json", NULL},
        {"list", "-x", NULL},
        {"--quick", NULL},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(wrong); i++) {
        struct vg_bench_options o;
        struct vg_status status;
        assert_int_equal(PARSE(&o, &status, S(wrong[i][0]), S(wrong[i][1])), VIGIL_E_INVALID);
        assert_true(status.message[0] != 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_and_scenarios_are_read),
        cmocka_unit_test(all_is_everything_that_needs_no_restart),
        cmocka_unit_test(slips_are_refused_with_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
