/* gojson_test.c - what Go says of broken JSON. The sentences are those of encoding/json. */
#include "gojson.h"
#include "test_support.h"

static void says(const char *text, const char *wanted)
{
    struct vg_status s;
    assert_true(vg_gojson_complain(vg_slice_str(text), 512, &s));
    assert_string_equal(s.message, wanted);
}

static void ends_too_early(void **state)
{
    (void)state;
    static const char *const texts[] = {"",        " ",        "{",   "[",     "{\"a\"",
                                        "{\"a\":", "{\"a\":1", "\"a", "\"a\\", "\"\\u00",
                                        "-",       "1.",       "1e",  "tru",   "[1,"};
    for (size_t i = 0; i < VG_ARRAY_LEN(texts); i++)
        says(texts[i], "unexpected end of JSON input");
}

static void says_where_a_character_does_not_belong(void **state)
{
    (void)state;
    says("}", "invalid character '}' looking for beginning of value");
    says("{,}", "invalid character ',' looking for beginning of object key string");
    says("{'a':1}", "invalid character '\\'' looking for beginning of object key string");
    says("{\"a\" 1}", "invalid character '1' after object key");
    says("{\"a\":01}", "invalid character '1' after object key:value pair");
    says("[1 2]", "invalid character '2' after array element");
    says("{}x", "invalid character 'x' after top-level value");
    says("\"\\x\"", "invalid character 'x' in string escape code");
    says("\"\\u00g0\"", "invalid character 'g' in \\u hexadecimal character escape");
    says("\"a\nb\"", "invalid character '\\n' in string literal");
    says("trux", "invalid character 'x' in literal true (expecting 'e')");
    says("-x", "invalid character 'x' in numeric literal");
    says("1.x", "invalid character 'x' after decimal point in numeric literal");
    says("1ex", "invalid character 'x' in exponent of numeric literal");
    says("\xef\xbb\xbf{}", "invalid character '\xc3\xaf' looking for beginning of value");
    says("\x01", "invalid character '\\x01' looking for beginning of value");
}

static void depth_is_bounded(void **state)
{
    (void)state;
    char text[600];
    memset(text, '[', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    says(text, "invalid character '[' exceeded max depth");
}

static void has_nothing_to_say_of_json(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}", " [1, -0.5e+3, true, null, {\"a\": [\"\\u00e9\\n\"]}] ", "0", "\"\"", "[[],{}]"};
    struct vg_status s;
    for (size_t i = 0; i < VG_ARRAY_LEN(texts); i++)
        assert_false(vg_gojson_complain(vg_slice_str(texts[i]), 512, &s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_too_early),
        cmocka_unit_test(says_where_a_character_does_not_belong),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(has_nothing_to_say_of_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
