/* utf8_test.c - what is UTF-8 and what is not. */
#include "test_support.h"

#include "utf8.h"

static size_t encode(uint32_t code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)(unsigned char)((0xF00u >> n & 0xFFu) | code);
    return n;
}

static void every_code_but_surrogates_is_read_back(void **state)
{
    (void)state;
    for (uint32_t code = 0; code <= 0x110000; code++) {
        char bytes[4];
        uint32_t got = 0;
        size_t n = encode(code, bytes), read = vg_utf8_next(vg_slice(bytes, n), &got);
        bool is_legal = code < 0x110000 && (code < 0xD800 || code > 0xDFFF);
        assert_int_equal(read, is_legal ? n : 0);
        assert_int_equal(got, is_legal ? code : 0);
        if (n > 1)
            assert_int_equal(vg_utf8_next(vg_slice(bytes, n - 1), &got), 0);
    }
}

static void broken_sequences_are_refused(void **state)
{
    (void)state;
    const char *const bad[] = {
        "\x80",         "\xBF",         "\xC0\x80",         "\xC1\xBF",
        "\xC3",         "\xC3(",        "\xE0\x80\x80",     "\xE0\x9F\xBF",
        "\xE2\x82",     "\xE2(\xA1",    "\xED\xA0\x80",     "\xF0\x80\x80\x80",
        "\xF0\x8F\xBF", "\xF0\x9F\x98", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80",
        "\xFE",         "\xFF"};
    for (size_t i = 0; i < VG_ARRAY_LEN(bad); i++) {
        uint32_t code;
        assert_int_equal(vg_utf8_next(vg_slice_str(bad[i]), &code), 0);
        assert_false(vg_utf8_is_valid(vg_slice_str(bad[i])));
    }
}

static void a_text_is_valid_when_all_its_characters_are(void **state)
{
    (void)state;
    assert_true(vg_utf8_is_valid(vg_slice(NULL, 0)));
    assert_true(vg_utf8_is_valid(VG_SLICE_LIT("a\0\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80")));
    assert_false(vg_utf8_is_valid(VG_SLICE_LIT("abc\xC3")));
    assert_false(vg_utf8_is_valid(VG_SLICE_LIT("abc\xFFxyz")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_but_surrogates_is_read_back),
        cmocka_unit_test(broken_sequences_are_refused),
        cmocka_unit_test(a_text_is_valid_when_all_its_characters_are),
    };
    return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
