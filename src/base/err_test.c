/* err_test.c - every code has its text, status and reason. */
#include "test_support.h"

#include <errno.h>
#include <string.h>

#include "err.h"

static const int codes[] = {
#define VG_ERR(name, number, http, reason, retriable, text) VIGIL_E_##name,
#define VG_ERRNO(name, http, reason, retriable) -(name),
#include "err.def"
#undef VG_ERR
#undef VG_ERRNO
};

static void every_code_has_a_name_a_text_a_status_and_a_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(codes); i++) {
        assert_true(codes[i] < 0);
        assert_true(vg_err_text(codes[i])[0] != '\0');
        assert_true(vg_err_reason(codes[i])[0] != '\0');
        assert_in_range(vg_err_http(codes[i]), 400, 599);
        const char *name = vg_err_name(codes[i]);
        const char *prefix = codes[i] < VIGIL_E_BASE ? "VIGIL_E_" : "E";
        assert_true(strncmp(name, prefix, strlen(prefix)) == 0);
        assert_string_not_equal(name, "E_OTHER");
    }
}

static void no_code_and_no_name_is_used_twice(void **state)
{
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(codes); i++) {
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(codes[i], codes[j]);
            assert_string_not_equal(vg_err_name(codes[i]), vg_err_name(codes[j]));
        }
    }
}

static void the_table_is_read_by_column(void **state)
{
    (void)state;
    assert_string_equal(vg_err_name(VIGIL_E_CONFLICT), "VIGIL_E_CONFLICT");
    assert_string_equal(vg_err_text(VIGIL_E_CONFLICT), "the object has been modified");
    assert_string_equal(vg_err_reason(VIGIL_E_CONFLICT), "Conflict");
    assert_int_equal(vg_err_http(VIGIL_E_CONFLICT), 409);
    assert_false(vg_err_is_retriable(VIGIL_E_CONFLICT));
    assert_true(vg_err_is_retriable(VIGIL_E_BUSY));
    assert_string_equal(vg_err_name(-ENOSPC), "ENOSPC");
    assert_string_equal(vg_err_text(-ENOSPC), "No space left on device");
    assert_int_equal(vg_err_http(-ENOSPC), 507);
}

static void success_is_zero_or_positive(void **state)
{
    (void)state;
    for (int ok = 0; ok < 3; ok++) {
        assert_string_equal(vg_err_name(ok), "OK");
        assert_string_equal(vg_err_text(ok), "success");
        assert_string_equal(vg_err_reason(ok), "");
        assert_int_equal(vg_err_http(ok), 200);
        assert_false(vg_err_is_retriable(ok));
    }
}

static void a_code_without_a_row_is_an_internal_error(void **state)
{
    (void)state;
    const int strange[] = {VIGIL_E_BASE, VIGIL_E_BASE - 9999, -99999, INT32_MIN};
    for (size_t i = 0; i < VG_ARRAY_LEN(strange); i++) {
        assert_string_equal(vg_err_name(strange[i]), "E_OTHER");
        assert_string_equal(vg_err_text(strange[i]), "internal error");
        assert_string_equal(vg_err_reason(strange[i]), "InternalError");
        assert_int_equal(vg_err_http(strange[i]), 500);
    }
    assert_string_equal(vg_err_name(-EXDEV), "EXDEV");
    assert_string_equal(vg_err_text(-EXDEV), "Invalid cross-device link");
    assert_int_equal(vg_err_http(-EXDEV), 500);
}

static void fail_fills_the_status_and_returns_the_code(void **state)
{
    (void)state;
    struct vg_status s;
    assert_int_equal(vg_fail(&s, VIGIL_E_CONFLICT, "key %s at %d", "a/b", 7), VIGIL_E_CONFLICT);
    assert_int_equal(s.err, VIGIL_E_CONFLICT);
    assert_string_equal(s.message, "key a/b at 7");
    assert_int_equal(vg_fail(NULL, -EIO, "nobody listens"), -EIO);
}

static void a_message_may_quote_itself(void **state)
{
    (void)state;
    struct vg_status s;
    vg_fail(&s, -EIO, "disk gone");
    vg_fail(&s, -EIO, "cannot open the store: %s", s.message);
    assert_string_equal(s.message, "cannot open the store: disk gone");
}

/* `ascii` bytes and then the character over and over; the cut falls inside one of them or not. */
static void check_cut(size_t ascii, const char *character, size_t expected)
{
    struct vg_status s;
    char text[2 * VG_STATUS_MESSAGE_MAX];
    size_t n = ascii, width = strlen(character);
    memset(text, 'x', ascii);
    for (; n + width < sizeof text; n += width)
        memcpy(text + n, character, width);
    text[n] = '\0';
    vg_fail(&s, -EIO, "%s", text);
    assert_int_equal(strlen(s.message), expected);
    assert_memory_equal(s.message, text, expected);
}

static void a_long_message_is_cut_between_characters(void **state)
{
    (void)state;
    check_cut(600, "y", 511);
    check_cut(0, "\xC3\xA9", 510);           /* 255 whole ones, then half of one */
    check_cut(1, "\xC3\xA9", 511);           /* fits exactly: nothing to drop */
    check_cut(0, "\xE2\x82\xAC", 510);       /* 170 whole ones and one byte */
    check_cut(2, "\xE2\x82\xAC", 509);       /* two bytes of one */
    check_cut(1, "\xE2\x82\xAC", 511);       /* exactly */
    check_cut(0, "\xF0\x9F\x98\x80", 508);   /* three bytes of one */
    check_cut(3, "\xF0\x9F\x98\x80", 511);   /* exactly */
    check_cut(511, "\xF0\x9F\x98\x80", 511); /* none of it */
    check_cut(0, "\x80", 511);               /* not UTF-8 at all: cut where it is */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_a_name_a_text_a_status_and_a_reason),
        cmocka_unit_test(no_code_and_no_name_is_used_twice),
        cmocka_unit_test(the_table_is_read_by_column),
        cmocka_unit_test(success_is_zero_or_positive),
        cmocka_unit_test(a_code_without_a_row_is_an_internal_error),
        cmocka_unit_test(fail_fills_the_status_and_returns_the_code),
        cmocka_unit_test(a_message_may_quote_itself),
        cmocka_unit_test(a_long_message_is_cut_between_characters),
    };
    return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
