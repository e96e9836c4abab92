/* options_parse_test.c - numbers and durations of the command line: all or nothing. */
#include "test_support.h"

#include "options.h"

static void a_revision_is_all_digits_and_not_below_its_least(void **state)
{
    vg_rev rev = 7;
    (void)state;
    assert_int_equal(vg_parse_rev("42", 1, &rev, NULL), 0);
    assert_int_equal(rev, 42);
    assert_int_equal(vg_parse_rev("0", 0, &rev, NULL), 0);
    assert_int_equal(rev, 0);
    assert_int_equal(vg_parse_rev("9223372036854775807", 1, &rev, NULL), 0);
    assert_int_equal(rev, VG_REV_MAX);
}

static void what_is_not_wholly_a_revision_is_refused_and_named(void **state)
{
    static const char *const bad[] = {"",
                                      "0",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "1x",
                                      "0x10",
                                      "9223372036854775808",
                                      "99999999999999999999"};
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(bad); i++) {
        struct vg_status status = {0};
        vg_rev rev = 7;
        assert_int_equal(vg_parse_rev(bad[i], 1, &rev, &status), VIGIL_E_INVALID);
        assert_int_equal(rev, 7);
        assert_non_null(strstr(status.message, bad[i]));
    }
}

static void a_duration_adds_its_parts(void **state)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } good[] = {{"1ms", 1},       {"30s", 30000},    {"5m", 300000},
                {"2h", 7200000},  {"7d", 604800000}, {"1h30m", 5400000},
                {"1m1ms", 60001}, {"1s1s", 2000},    {"36500d", VG_TTL_MAX_MS}};
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(good); i++) {
        uint64_t ms = 0;
        assert_int_equal(vg_parse_duration(good[i].text, &ms, NULL), 0);
        assert_int_equal(ms, good[i].ms);
    }
}

static void what_is_not_wholly_a_duration_is_refused(void **state)
{
    static const char *const bad[] = {"",    "5",      "0s",  "0ms",   "-5s",
                                      "5 s", "5x",     "s",   "1.5s",  "5s5",
                                      "5S",  "36501d", "5s ", "1h-1m", "18446744073709551615d"};
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(bad); i++) {
        struct vg_status status = {0};
        uint64_t ms;
        assert_int_equal(vg_parse_duration(bad[i], &ms, &status), VIGIL_E_INVALID);
        assert_non_null(strstr(status.message, "30s"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_revision_is_all_digits_and_not_below_its_least),
        cmocka_unit_test(what_is_not_wholly_a_revision_is_refused_and_named),
        cmocka_unit_test(a_duration_adds_its_parts),
        cmocka_unit_test(what_is_not_wholly_a_duration_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
