/* number_test.c - numbers out of text and into it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>

#include "json/json.h"

static struct vg_json number(struct vg_arena *a, const char *text)
{
    struct vg_json *root = NULL;
    assert_int_equal(vg_json_parse(a, vg_slice_str(text), NULL, &root, NULL), 0);
    return *root;
}

static void int64_covers_its_whole_range_and_no_more(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int r;
        int64_t want;
    } cases[] = {
        {"0", 0, 0},
        {"-0", 0, 0},
        {"42", 0, 42},
        {"-42", 0, -42},
        {"9223372036854775807", 0, INT64_MAX},
        {"-9223372036854775808", 0, INT64_MIN},
        {"9223372036854775808", -ERANGE, 7},
        {"-9223372036854775809", -ERANGE, 7},
        {"18446744073709551616", -ERANGE, 7},
        {"99999999999999999999999", -ERANGE, 7},
        {"1.0", VIGIL_E_JSON_TYPE, 7},
        {"1e2", VIGIL_E_JSON_TYPE, 7},
        {"\"1\"", VIGIL_E_JSON_TYPE, 7},
        {"null", VIGIL_E_JSON_TYPE, 7},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(cases); i++) {
        VG_AUTO(arena) a = {0};
        struct vg_json v = number(&a, cases[i].text);
        int64_t got = 7;
        assert_int_equal(vg_json_to_int64(&v, &got), cases[i].r);
        assert_int_equal(got, cases[i].want);
    }
}

static void uint64_covers_its_whole_range_and_no_more(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int r;
        uint64_t want;
    } cases[] = {
        {"0", 0, 0},
        {"-0", 0, 0},
        {"18446744073709551615", 0, UINT64_MAX},
        {"18446744073709551616", -ERANGE, 7},
        {"18446744073709551620", -ERANGE, 7},
        {"-1", -ERANGE, 7},
        {"0.5", VIGIL_E_JSON_TYPE, 7},
        {"[]", VIGIL_E_JSON_TYPE, 7},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(cases); i++) {
        VG_AUTO(arena) a = {0};
        struct vg_json v = number(&a, cases[i].text);
        uint64_t got = 7;
        assert_int_equal(vg_json_to_uint64(&v, &got), cases[i].r);
        assert_true(got == cases[i].want);
    }
    assert_int_equal(vg_json_to_uint64(NULL, &(uint64_t){0}), VIGIL_E_JSON_TYPE);
}

static void doubles_round_to_nearest(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double want;
    } cases[] = {
        {"0", 0.0},
        {"0.1", 0.1},
        {"-1.5e3", -1500.0},
        {"1e-400", 0.0},
        {"1.7976931348623157e308", DBL_MAX},
        {"5e-324", 4.9406564584124654e-324},
        {"9007199254740993", 9007199254740992.0},
        {"123456789012345678901234567890", 123456789012345678901234567890.0},
        {"0."
         "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
         "000000000000000000000000000000000000000000000000001e140",
         10.0},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(cases); i++) {
        VG_AUTO(arena) a = {0};
        struct vg_json v = number(&a, cases[i].text);
        double got = 7;
        assert_int_equal(vg_json_to_double(&v, &got), 0);
        if (got != cases[i].want)
            fail_msg("%s read as %.17g", cases[i].text, got);
    }
}

static void doubles_beyond_the_range_are_refused(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    double d = 7;
    struct vg_json v = number(&a, "1e999");
    assert_int_equal(vg_json_to_double(&v, &d), -ERANGE);
    v = number(&a, "-1e999");
    assert_int_equal(vg_json_to_double(&v, &d), -ERANGE);
    v = number(&a, "true");
    assert_int_equal(vg_json_to_double(&v, &d), VIGIL_E_JSON_TYPE);
    assert_true(d == 7);
}

static const struct {
    double d;
    const char *text;
} as_go[] = {
    {0.0, "0"},
    {-0.0, "-0"},
    {1.0, "1"},
    {-1.5, "-1.5"},
    {0.1, "0.1"},
    {0.3, "0.3"},
    {1.0 / 3, "0.3333333333333333"},
    {2.0 / 3, "0.6666666666666666"},
    {100, "100"},
    {1e20, "100000000000000000000"},
    {1e21, "1e+21"},
    {1.5e21, "1.5e+21"},
    {123456789.125, "123456789.125"},
    {1e-6, "0.000001"},
    {1.5e-6, "0.0000015"},
    {1e-7, "1e-7"},
    {1.25e-10, "1.25e-10"},
    {5e-324, "5e-324"},
    {DBL_MAX, "1.7976931348623157e+308"},
    {9007199254740992.0, "9007199254740992"},
    {0.1 + 0.2, "0.30000000000000004"},
};

static void doubles_are_written_as_go_writes_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(as_go); i++) {
        VG_AUTO(arena) a = {0};
        struct vg_json v;
        assert_int_equal(vg_json_make_double(&a, as_go[i].d, &v), 0);
        if (!vg_slice_eq(vg_json_text(&v), vg_slice_str(as_go[i].text)))
            fail_msg("%.17g written as %.*s", as_go[i].d, VG_SLICE_ARG(vg_json_text(&v)));
    }
    VG_AUTO(arena) a = {0};
    struct vg_json v;
    assert_int_equal(vg_json_make_double(&a, (double)NAN, &v), VIGIL_E_INVALID);
    assert_int_equal(vg_json_make_double(&a, (double)INFINITY, &v), VIGIL_E_INVALID);
}

static void doubles_of_random_bits_survive_the_way_there_and_back(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    uint64_t bits = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < 20000; i++) {
        double d, back;
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        memcpy(&d, &bits, sizeof d);
        struct vg_json v;
        if (!isfinite(d))
            continue;
        assert_int_equal(vg_json_make_double(&a, d, &v), 0);
        assert_int_equal(vg_json_to_double(&v, &back), 0);
        assert_true(back == d);
        vg_arena_reset(&a);
    }
}

/* Only says something where a locale with a decimal comma is installed; the code does not ask. */
static void the_locale_changes_nothing(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    const char *comma[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
    for (size_t i = 0; i < VG_ARRAY_LEN(comma) && !setlocale(LC_ALL, comma[i]); i++)
        continue;
    struct vg_json v = number(&a, "1.5");
    double d;
    assert_int_equal(vg_json_to_double(&v, &d), 0);
    assert_true(d == 1.5);
    assert_int_equal(vg_json_make_double(&a, 2.25, &v), 0);
    assert_true(vg_slice_eq(vg_json_text(&v), VG_SLICE_LIT("2.25")));
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(int64_covers_its_whole_range_and_no_more),
        cmocka_unit_test(uint64_covers_its_whole_range_and_no_more),
        cmocka_unit_test(doubles_round_to_nearest),
        cmocka_unit_test(doubles_beyond_the_range_are_refused),
        cmocka_unit_test(doubles_are_written_as_go_writes_them),
        cmocka_unit_test(doubles_of_random_bits_survive_the_way_there_and_back),
        cmocka_unit_test(the_locale_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
