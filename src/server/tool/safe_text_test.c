/* safe_text_test.c - whatever a store holds, what is printed is text. */
#include "test_support.h"

#include <errno.h>

#include "base/rng.h"
#include "base/utf8.h"
#include "safe_text.h"

static void assert_safe(struct vg_slice in, enum vg_safe_form form, const char *want)
{
    VG_AUTO(buf) out = {0};
    assert_int_equal(vg_safe_append(&out, in, form), 0);
    assert_int_equal(out.n, strlen(want));
    assert_memory_equal(out.p ? out.p : "", want, out.n);
}

static void a_line_stays_one_line_and_can_be_read_back(void **state)
{
    (void)state;
    assert_safe(VG_SLICE_LIT("plain /key-1"), VG_SAFE_LINE, "plain /key-1");
    assert_safe(VG_SLICE_LIT("a\nb\tc\rd\\e"), VG_SAFE_LINE, "a\\nb\\tc\\rd\\\\e");
    assert_safe(VG_SLICE_LIT("\0\x1b[31m\x7f"), VG_SAFE_LINE, "\\x00\\x1b[31m\\x7f");
    assert_safe(VG_SLICE_LIT(""), VG_SAFE_LINE, "");
}

static void letters_of_all_languages_stay(void **state)
{
    (void)state;
    assert_safe(VG_SLICE_LIT("gr\xc3\xbc\xc3\x9f \xe6\x97\xa5 \xf0\x9f\x90\xa7"), VG_SAFE_LINE,
                "gr\xc3\xbc\xc3\x9f \xe6\x97\xa5 \xf0\x9f\x90\xa7");
}

static void broken_utf8_and_hidden_controls_are_shown_as_bytes(void **state)
{
    (void)state;
    assert_safe(VG_SLICE_LIT("\xff\xc3"), VG_SAFE_LINE, "\\xff\\xc3");
    assert_safe(VG_SLICE_LIT("\xc2\x9b"), VG_SAFE_LINE, "\\xc2\\x9b");
    assert_safe(VG_SLICE_LIT("\xe2\x80\xae"), VG_SAFE_DISPLAY, "\\xe2\\x80\\xae");
}

static void a_display_keeps_lines_and_backslashes(void **state)
{
    (void)state;
    assert_safe(VG_SLICE_LIT("{\n\t\"a\\n\"\r}"), VG_SAFE_DISPLAY, "{\n\t\"a\\n\"\\x0d}");
}

static void json_stays_json(void **state)
{
    (void)state;
    assert_safe(VG_SLICE_LIT("{\n  \"a\\\\\": \"\xc2\x9b\x7f\"\n}"), VG_SAFE_JSON,
                "{\n  \"a\\\\\": \"\\u009b\\u007f\"\n}");
}

static void no_bytes_make_an_unsafe_line(void **state)
{
    struct vg_rng rng;
    char bytes[64];
    (void)state;
    vg_rng_seed(&rng, vg_test_seed());
    for (int round = 0; round < 1000; round++) {
        VG_AUTO(buf) out = {0};
        vg_rng_bytes(&rng, bytes, sizeof bytes);
        assert_int_equal(vg_safe_append(&out, vg_slice(bytes, sizeof bytes), VG_SAFE_LINE), 0);
        assert_true(vg_utf8_is_valid(vg_buf_slice(&out)));
        for (size_t i = 0; i < out.n; i++)
            assert_true((unsigned char)out.p[i] >= 0x20 && out.p[i] != 0x7f);
    }
}

static void times_are_those_of_the_calendar(void **state)
{
    char text[VG_TIME_TEXT_SIZE];
    (void)state;
    vg_time_text(0, text);
    assert_string_equal(text, "1970-01-01T00:00:00.000Z");
    vg_time_text(INT64_C(1709210096789), text);
    assert_string_equal(text, "2024-02-29T12:34:56.789Z");
    vg_time_text(-1, text);
    assert_string_equal(text, "1969-12-31T23:59:59.999Z");
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        VG_AUTO(buf) out = {0};
        int r = vg_safe_append(&out, VG_SLICE_LIT("a\n\xff\x1b"), VG_SAFE_LINE);
        assert_int_equal(r, vg_test_alloc_failed() ? -ENOMEM : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_stays_one_line_and_can_be_read_back),
        cmocka_unit_test(letters_of_all_languages_stay),
        cmocka_unit_test(broken_utf8_and_hidden_controls_are_shown_as_bytes),
        cmocka_unit_test(a_display_keeps_lines_and_backslashes),
        cmocka_unit_test(json_stays_json),
        cmocka_unit_test(no_bytes_make_an_unsafe_line),
        cmocka_unit_test(times_are_those_of_the_calendar),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
