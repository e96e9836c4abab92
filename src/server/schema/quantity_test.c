/* quantity_test.c - quantities: parsing, canonical form, comparison, arithmetic. */
#include "test_support.h"

#include <errno.h>

#include "quantity.h"

static struct vg_quantity read(const char *text)
{
    struct vg_quantity q;
    if (vg_quantity_parse(vg_slice_str(text), &q, NULL) < 0)
        fail_msg("%s does not parse", text);
    return q;
}

static void assert_prints(const char *in, const char *want)
{
    char room[VG_QUANTITY_TEXT_MAX];
    struct vg_quantity q = read(in);
    struct vg_slice got = vg_quantity_text(&q, room);
    if (!vg_slice_eq(got, vg_slice_str(want)))
        fail_msg("%s prints as %.*s, not %s", in, VG_SLICE_ARG(got), want);
}

struct row {
    const char *in, *out;
};

static void amounts_are_printed_in_canonical_form(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"0", "0"},
        {"0Ki", "0"},
        {"0.0", "0"},
        {"1000m", "1"},
        {"0.1", "100m"},
        {"0.5", "500m"},
        {"1.08", "1080m"},
        {"1080000000n", "1080m"},
        {"1000M", "1G"},
        {"0.001T", "1G"},
        {"1e3", "1e3"},
        {".001e12", "1e9"},
        {"0.001e0", "1e-3"},
        {"1000e-12", "1e-9"},
        {"1.3E+6", "1300e3"},
        {"1.53E12", "1530e9"},
        {"12E", "12E"},
        {"1024Mi", "1Gi"},
        {"1.5Gi", "1536Mi"},
        {"307200Ki", "300Mi"},
        {"1025024Mi", "1001Gi"},
        {"0.5Mi", "512Ki"},
        {"100.035Ki", "102435840m"},
        {".001Ki", "1024m"},
        {"4Pi", "4Pi"},
        {".0001k", "100m"},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        assert_prints(rows[i].in, rows[i].out);
        char in[32] = "-", out[32] = "-";
        strncat(in, rows[i].in, sizeof in - 2);
        strncat(out, rows[i].out, sizeof out - 2);
        assert_prints(in, strcmp(rows[i].out, "0") == 0 ? "0" : out);
        assert_prints(rows[i].out, rows[i].out); /* a fixed point */
    }
}

static void too_small_is_rounded_up_and_too_large_is_capped(void **state)
{
    (void)state;
    assert_prints("3.001n", "4n");
    assert_prints("0.9n", "1n");
    assert_prints("-0.9n", "-1n");
    assert_prints("0.0000000001", "1n");
    assert_prints("0.00000012345", "124n");
    assert_prints("0.5e-9", "1e-9");
    assert_prints("1e-400", "1e-9");
    assert_prints("0.000000000001Ki", "2n");
    assert_prints("9Ei", "9223372036854775807");
    assert_prints("-9Ei", "-9223372036854775807");
    assert_prints("9223372036854775807Ki", "9223372036854775807");
    assert_prints("100000000000000000000Ei", "9223372036854775807");
}

static void the_original_s_oddities_are_kept(void **state)
{
    (void)state;
    assert_prints("+1", "+1");
    assert_prints("007", "007");
    assert_prints("01Ki", "01Ki");
    assert_prints("1.234", "1.234");
    assert_prints("10.035M", "10.035M");
    assert_prints("1E3", "1E3");
    assert_prints("1000E", "1"); /* no suffix above E */
    assert_prints("-", "0");
    assert_prints(".", "0");
    assert_prints("Ki", "0");
}

static void what_is_no_quantity_is_refused(void **state)
{
    (void)state;
    static const char format[] = "quantities must match the regular expression "
                                 "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    static const char suffix[] = "unable to parse quantity's suffix";
    static const char number[] = "unable to parse numeric part of quantity";
    static const struct row rows[] = {
        {"", format},
        {" 1", format},
        {"1 ", format},
        {"1.1.M", format},
        {"1+1.0M", format},
        {"0.1am", format},
        {"aoeu", format},
        {"0.1mi", suffix},
        {".5i", suffix},
        {"1i", suffix},
        {"-3.01e-", suffix},
        {"1e99999999999999999999", suffix},
        {"Pi", number},
        {"1234567890123456789012345678901234567", number},
        {"0.123456789012345678901Ki", number},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        struct vg_quantity q;
        struct vg_status status = {0};
        int r = vg_quantity_parse(vg_slice_str(rows[i].in), &q, &status);
        assert_int_equal(r, VIGIL_E_INVALID);
        assert_string_equal(status.message, rows[i].out);
    }
}

static void amounts_compare_by_value(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        int want;
    } rows[] = {
        {"0", "0Ki", 0},     {"100m", "50m", 1},    {"10000T", "100Gi", 1}, {"1", "1000m", 0},
        {"1Ki", "1024", 0},  {"800m", "790m", 1},   {"-1", "1n", -1},       {"-2", "-1", -1},
        {"1e30", "1e-9", 1}, {"1e999", "1e998", 1}, {"0", "-1n", 1},        {"9.01", "9010m", 0},
        {"1E", "1001P", -1},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        struct vg_quantity a = read(rows[i].a), b = read(rows[i].b);
        assert_int_equal(vg_quantity_cmp(&a, &b), rows[i].want);
        assert_int_equal(vg_quantity_cmp(&b, &a), -rows[i].want);
    }
}

static void assert_sum(const char *x, const char *y, const char *sum, const char *difference)
{
    char room[VG_QUANTITY_TEXT_MAX];
    struct vg_quantity a = read(x), b = read(y);
    assert_int_equal(vg_quantity_add(&a, &b), 0);
    vg_assert_slice_equal(vg_quantity_text(&a, room), vg_slice_str(sum));
    a = read(x);
    assert_int_equal(vg_quantity_sub(&a, &b), 0);
    vg_assert_slice_equal(vg_quantity_text(&a, room), vg_slice_str(difference));
}

static void amounts_are_added_in_the_first_ones_format(void **state)
{
    (void)state;
    assert_sum("1", "100m", "1100m", "900m");
    assert_sum("1Gi", "1Mi", "1025Mi", "1023Mi");
    assert_sum("0", "1Gi", "1Gi", "-1Gi");
    assert_sum("100m", "0", "100m", "100m");
    assert_sum("1Gi", "1500m", "1073741825500m", "1073741822500m");
    assert_sum("-5", "7", "2", "-12");
    assert_sum("1", "1", "2", "0");
    struct vg_quantity a = read("1e40"), b = read("1n"), was = a;
    assert_int_equal(vg_quantity_add(&a, &b), -ERANGE);
    assert_int_equal(vg_quantity_cmp(&a, &was), 0);
}

static void amounts_become_whole_numbers_rounded_up(void **state)
{
    (void)state;
    int64_t v;
    bool exact;
    struct vg_quantity q = read("9.01");
    assert_int_equal(vg_quantity_scaled(&q, 0, &v, &exact), 0);
    assert_true(v == 10 && !exact);
    assert_int_equal(vg_quantity_scaled(&q, -3, &v, &exact), 0);
    assert_true(v == 9010 && exact);
    q = read("-9.01");
    assert_int_equal(vg_quantity_scaled(&q, -1, &v, NULL), 0);
    assert_true(v == -91);
    q = read("9223372036854775807");
    assert_int_equal(vg_quantity_scaled(&q, 0, &v, &exact), 0);
    assert_true(v == INT64_MAX && exact);
    assert_int_equal(vg_quantity_scaled(&q, -3, &v, NULL), -ERANGE);
    q = read("1e2000000000");
    assert_int_equal(vg_quantity_scaled(&q, 0, &v, NULL), -ERANGE);
    q = vg_quantity_of(INT64_MIN, 0, VG_QUANTITY_DECIMAL);
    assert_int_equal(vg_quantity_scaled(&q, 0, &v, NULL), 0);
    assert_true(v == INT64_MIN);
    q = vg_quantity_of(2048, 0, VG_QUANTITY_BINARY);
    char room[VG_QUANTITY_TEXT_MAX];
    vg_assert_slice_equal(vg_quantity_text(&q, room), VG_SLICE_LIT("2Ki"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amounts_are_printed_in_canonical_form),
        cmocka_unit_test(too_small_is_rounded_up_and_too_large_is_capped),
        cmocka_unit_test(the_original_s_oddities_are_kept),
        cmocka_unit_test(what_is_no_quantity_is_refused),
        cmocka_unit_test(amounts_compare_by_value),
        cmocka_unit_test(amounts_are_added_in_the_first_ones_format),
        cmocka_unit_test(amounts_become_whole_numbers_rounded_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
