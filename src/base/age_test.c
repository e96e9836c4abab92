/* age_test.c - ages as kubectl writes them, times as Kubernetes does. */
#include "test_support.h"

#include "age.h"

static void ages_have_two_units_at_most(void **state)
{
    (void)state;
    static const struct {
        int64_t s;
        const char *text;
    } rows[] = {
        {-2, "<invalid>"},
        {-1, "0s"},
        {0, "0s"},
        {119, "119s"},
        {120, "2m"},
        {121, "2m1s"},
        {599, "9m59s"},
        {600, "10m"},
        {659, "10m"},
        {10799, "179m"},
        {10800, "3h"},
        {10860, "3h1m"},
        {28799, "7h59m"},
        {28800, "8h"},
        {172799, "47h"},
        {172800, "2d"},
        {176400, "2d1h"},
        {691199, "7d23h"},
        {691200, "8d"},
        {63071999, "729d"},
        {63072000, "2y"},
        {63158400, "2y1d"},
        {252287999, "7y364d"},
        {252288000, "8y"},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        char text[VG_AGE_SIZE];
        vg_age_text(rows[i].s, text);
        assert_string_equal(text, rows[i].text);
    }
}

static void an_age_of_any_size_fits(void **state)
{
    char text[VG_AGE_SIZE];
    (void)state;
    vg_age_text(INT64_MAX, text);
    assert_string_equal(text, "292471208677y");
    vg_age_text(INT64_MIN, text);
    assert_string_equal(text, "<invalid>");
}

static void times_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t s;
    } rows[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2024-02-29T12:34:56Z", 1709210096},
        {"2024-02-29T12:34:56.123456Z", 1709210096},
        {"2024-02-29T14:34:56+02:00", 1709210096},
        {"2024-02-29T07:04:56-05:30", 1709210096},
        {"1969-12-31T23:59:59Z", -1},
        {"2100-03-01T00:00:00Z", 4107542400},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        int64_t s = 42;
        assert_true(vg_age_parse(vg_slice_str(rows[i].text), &s));
        assert_int_equal(s, rows[i].s);
    }
}

static void what_is_no_time_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "2024",
        "2024-13-01T00:00:00Z",
        "2024-01-01T24:00:00Z",
        "2024-01-01T00:00:00",
        "2024-01-01T00:00:00Zx",
        "2024-01-01T00:00:00+1:00",
        "yyyy-01-01T00:00:00Z",
    };
    int64_t s;
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(texts); i++)
        assert_false(vg_age_parse(vg_slice_str(texts[i]), &s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ages_have_two_units_at_most),
        cmocka_unit_test(an_age_of_any_size_fits),
        cmocka_unit_test(times_are_read),
        cmocka_unit_test(what_is_no_time_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
