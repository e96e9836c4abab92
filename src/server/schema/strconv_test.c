/* strconv_test.c - numbers and durations as Go reads them. */
#include "strconv.h"

#include "test_support.h"

static struct vg_arena arena;

static void expect_why(struct vg_slice why, const char *wanted)
{
    assert_int_equal(why.n, strlen(wanted));
    assert_memory_equal(why.p, wanted, why.n);
}

static void integers(void **state)
{
    (void)state;
    int64_t i;
    uint64_t u;
    struct vg_slice why;
    assert_int_equal(vg_strconv_int(&arena, VG_SLICE_LIT("-9223372036854775808"), &i, &why), 0);
    assert_true(i == INT64_MIN);
    assert_int_equal(vg_strconv_int(&arena, VG_SLICE_LIT("+7"), &i, &why), 0);
    assert_true(i == 7);
    assert_int_equal(vg_strconv_int(&arena, VG_SLICE_LIT("9223372036854775808"), &i, &why),
                     VIGIL_E_INVALID);
    expect_why(why, "strconv.ParseInt: parsing \"9223372036854775808\": value out of range");
    assert_int_equal(vg_strconv_int(&arena, VG_SLICE_LIT(""), &i, &why), VIGIL_E_INVALID);
    expect_why(why, "strconv.ParseInt: parsing \"\": invalid syntax");
    assert_int_equal(vg_strconv_uint(&arena, VG_SLICE_LIT("18446744073709551615"), &u, &why), 0);
    assert_true(u == UINT64_MAX);
    assert_int_equal(vg_strconv_uint(&arena, VG_SLICE_LIT("-1"), &u, &why), VIGIL_E_INVALID);
    expect_why(why, "strconv.ParseUint: parsing \"-1\": invalid syntax");
    assert_int_equal(vg_strconv_uint(&arena, VG_SLICE_LIT("99999999999999999999x"), &u, &why),
                     VIGIL_E_INVALID);
    expect_why(why, "strconv.ParseUint: parsing \"99999999999999999999x\": invalid syntax");
}

static void durations(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ns;
    } good[] = {
        {"0", 0},           {"5s", 5000000000}, {"1h2m", 3720000000000}, {"1.5s", 1500000000},
        {".5s", 500000000}, {"-2ms", -2000000}, {"1\xc2\xb5s", 1000}};
    static const struct {
        const char *text, *why;
    } bad[] = {{"", "time: invalid duration \"\""},
               {"x", "time: invalid duration \"x\""},
               {"5", "time: missing unit in duration \"5\""},
               {"5x", "time: unknown unit \"x\" in duration \"5x\""},
               {".s", "time: invalid duration \".s\""},
               {"9223372036854775808ns", "time: invalid duration \"9223372036854775808ns\""}};
    int64_t ns;
    struct vg_slice why;
    for (size_t i = 0; i < VG_ARRAY_LEN(good); i++) {
        assert_int_equal(vg_duration_parse(&arena, vg_slice_str(good[i].text), &ns, &why), 0);
        assert_true(ns == good[i].ns);
    }
    for (size_t i = 0; i < VG_ARRAY_LEN(bad); i++) {
        assert_int_equal(vg_duration_parse(&arena, vg_slice_str(bad[i].text), &ns, &why),
                         VIGIL_E_INVALID);
        expect_why(why, bad[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(integers), cmocka_unit_test(durations)};
    vg_arena_init(&arena, 0, 0);
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    vg_arena_done(&arena);
    return r;
}
