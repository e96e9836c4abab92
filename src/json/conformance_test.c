/* conformance_test.c - RFC 8259 as a table: what is JSON, what it means, and what is not.
 * A(text, meaning): accepted; written compactly without HTML escaping it reads `meaning`.
 * R(text): refused as syntax. U(text): refused as UTF-8, and accepted when bad bytes are replaced.
 * Each case is parsed from an exact-size copy on the heap, with 0 to 17 spaces in front so that
 * every byte meets every position of a 16-byte step, by the parser and by the skip-scanner. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "json/json.h"
#include "json/scan.h"
#include "json/write.h"

struct conf {
    struct vg_slice text;
    struct vg_slice meaning; /* accepted cases */
    int err;                 /* 0: accepted */
};

#define LIT(s)                                                                                     \
    {                                                                                              \
        (s), sizeof(s) - 1                                                                         \
    }
#define A(text, meaning)                                                                           \
    {                                                                                              \
        LIT(text), LIT(meaning), 0                                                                 \
    }
#define R(text)                                                                                    \
    {                                                                                              \
        LIT(text), {NULL, 0}, VIGIL_E_JSON_SYNTAX                                                  \
    }
#define U(text)                                                                                    \
    {                                                                                              \
        LIT(text), {NULL, 0}, VIGIL_E_JSON_UTF8                                                    \
    }
#define SAME(text) A(text, text)

/* clang-format off */
static const struct conf structure[] = {
    /* section 2: any value is a text */
    SAME("null"), SAME("true"), SAME("false"), SAME("0"), SAME("\"\""), SAME("[]"), SAME("{}"),
    R(""), R(" "), R("\t\r\n"), R("\0"), R("null\0"), R("\0null"), R("nul"), R("nulll"), R("Null"), R("NULL"),
    R("tru"), R("truee"), R("True"), R("fals"), R("False"), R("t"), R("f"), R("n"), R("nan"), R("NaN"),
    R("Infinity"), R("-Infinity"), R("undefined"), R("None"), R("true false"), R("1 2"), R("[] []"),
    R("{}{}"), R("null,"), R(",null"), R("]"), R("}"), R("["), R("{"), R(":"), R(","), R("'a'"), R("a"),
    R("\xef\xbb\xbf" "null"), R("\xef\xbb\xbf"), R("null\xef\xbb\xbf"), R("\xff" "null"), R("null//c"), R("/**/null"), R("#\nnull"),
    /* white space: space, tab, line feed, carriage return, and nothing else */
    A(" null", "null"), A("null ", "null"), A("\tnull", "null"), A("\nnull\n", "null"), A("\rnull\r\n", "null"),
    A(" \t\r\n [ \t\r\n 1 \t\r\n , \t\r\n 2 \t\r\n ] \t\r\n ", "[1,2]"),
    A("{ \"a\" \n:\t1\r, \"b\" : 2 }", "{\"a\":1,\"b\":2}"), A("[ ]", "[]"), A("{ }", "{}"), A("[\n]", "[]"),
    A("                                  1                                  ", "1"),
    A("[\n                                        1,\n                                        2\n]", "[1,2]"),
    R("\fnull"), R("\vnull"), R("null\f"), R("[1\v]"), R("\xc2\xa0" "1"), R("1\xc2\xa0"), R("\xe2\x80\xa8" "1"), R("\x01" "1"), R("1\x1f"),
    R("[1,\x7f" "2]"), R("\b1"), R("\x85" "1"),
    /* arrays */
    SAME("[1]"), SAME("[1,2,3]"), SAME("[[]]"), SAME("[[],[]]"), SAME("[{}]"), SAME("[[[[[[[[[[1]]]]]]]]]]"),
    SAME("[null,true,false,1,\"a\",[],{}]"), SAME("[[1,[2,[3,[4]]]],5]"),
    R("[1"), R("[1,"), R("[1,]"), R("[,1]"), R("[,]"), R("[1,,2]"), R("[1 2]"), R("[1}"), R("[1]]"), R("[[1]"),
    R("[1;2]"), R("[a]"), R("[\"a\" \"b\"]"), R("[1:2]"), R("[\"a\":1]"), R("[true false]"), R("[}"), R("[\0]"), R("[1\0]"),
    R("[-]"), R("[ , ]"), R("[1,\n"), R("[\"a\",\n4\n,1,"), R("[][]"), R("[*]"), R("['a']"), R("[nul]"),
    /* objects */
    SAME("{\"a\":1}"), SAME("{\"a\":1,\"b\":2}"), SAME("{\"\":0}"), SAME("{\"a\":{}}"), SAME("{\"a\":{\"a\":{\"a\":1}}}"),
    SAME("{\"b\":1,\"a\":2}"), SAME("{\"a\":[{\"b\":[{\"c\":null}]}]}"), SAME("{\"a b\":1}"),
    A("{\"\\u0061\":1}", "{\"a\":1}"), A("{\"a\":1,\"a\":2}", "{\"a\":2}"), A("{\"a\":1,\"\\u0061\":2}", "{\"a\":2}"),
    A("{\"a\":1,\"b\":2,\"a\":3}", "{\"b\":2,\"a\":3}"), A("{\"\":1,\"\":2}", "{\"\":2}"),
    R("{\"a\""), R("{\"a\":"), R("{\"a\":1"), R("{\"a\":1,"), R("{\"a\":1,}"), R("{,}"), R("{,\"a\":1}"), R("{\"a\":1,,\"b\":2}"),
    R("{\"a\" 1}"), R("{\"a\",1}"), R("{\"a\":}"), R("{:1}"), R("{a:1}"), R("{1:1}"), R("{'a':1}"), R("{null:1}"),
    R("{\"a\":1]"), R("{\"a\"::1}"), R("{\"a\":1 \"b\":2}"), R("{\"a\":1;\"b\":2}"), R("{[]:1}"), R("{{}:1}"), R("{\"a\":1}}"),
    R("{\"a\"}"), R("{\"a"), R("{]"), R("{\"a\":1,2}"), R("{\"a\":1 1}"), R("{\"a\":\0}"), R("{\"a\":1,\"b\"}"), R("{\"a\"=1}"),
    R("{\"a\":b}"), R("{\"x\":1,\"y\":[}"), R("{\"a\":/*c*/1}"), R("{\"a\":1}#"), R("{true:1}"), R("{\"a\"\n\"b\":1}"),
};

static const struct conf numbers[] = {
    SAME("0"), SAME("-0"), SAME("1"), SAME("-1"), SAME("9"), SAME("10"), SAME("1234567890"), SAME("-1234567890"),
    SAME("0.0"), SAME("-0.0"), SAME("0.1"), SAME("1.5"), SAME("10.01"), SAME("1.0000000000000000000000000000001"),
    SAME("1e1"), SAME("1E1"), SAME("1e+1"), SAME("1e-1"), SAME("1E+01"), SAME("1e00"), SAME("0e0"), SAME("0e+5"), SAME("0.0e-0"),
    SAME("1.5e300"), SAME("-1.5E-300"), SAME("1e999"), SAME("-1e999"), SAME("1e-999"), SAME("123456789012345678901234567890"),
    SAME("9223372036854775807"), SAME("-9223372036854775808"), SAME("18446744073709551615"), SAME("18446744073709551616"),
    SAME("0.00000000000000000000000000000000000000000000000001"), SAME("100"), SAME("[0,-0,0.0]"), SAME("[1e5,2E-5]"), SAME("{\"a\":-0.5e+2}"),
    SAME("1.100"), SAME("0.10"), SAME("20e1"), SAME("-10"), SAME("99999999999999999999999999999999999999"),
    R("00"), R("01"), R("-01"), R("-00"), R("0001"), R("01.5"), R("+1"), R("+0"), R("-"), R("--1"), R("-+1"), R("+-1"), R("- 1"),
    R("."), R(".5"), R("-.5"), R("1."), R("0."), R("-0."), R("1.e1"), R("1.+1"), R("1..5"), R("1.5.5"), R(".e1"), R("1.e"),
    R("e"), R("e1"), R("1e"), R("1E"), R("1e+"), R("1e-"), R("1e+-1"), R("1e1.5"), R("1e1e1"), R("1ee1"), R("1e 1"), R("1 e1"), R("-e1"),
    R("0x1"), R("0x"), R("0b1"), R("0o7"), R("1_000"), R("1,000"), R("1f"), R("1L"), R("1a"), R("-a"), R("-Infinity"), R("-NaN"), R("inf"),
    R("[1-]"), R("[-]"), R("[1.]"), R("[1e]"), R("[01]"), R("[1+2]"), R("[1e1 2]"), R("[-1-1]"), R("{\"a\":.1}"), R("{\"a\":1.}"),
    R("\xef\xbc\x91"), R("1\0"), R("1\xff"), R("0-"), R("0e"), R("0e+"), R("0.1.2"), R("1.2a"), R("123\0" "4"), R("\xd9\xa1"), R("1/2"), R("(1)"),
};

static const struct conf strings[] = {
    SAME("\"a\""), SAME("\"abc def\""), SAME("\"0123456789abcde\""), SAME("\"0123456789abcdef\""), SAME("\"0123456789abcdef0\""),
    SAME("\"0123456789abcdef0123456789abcdef\""), SAME("\"/\""), SAME("\"'\""), SAME("\"\x7f\""), SAME("\"<>&\""), SAME("\"{[]}:,\""),
    SAME("\"\\\"\""), SAME("\"\\\\\""), A("\"\\/\"", "\"/\""), SAME("\"\\b\""), SAME("\"\\f\""), SAME("\"\\n\""), SAME("\"\\r\""), SAME("\"\\t\""),
    SAME("\"\\\"\\\\\\b\\f\\n\\r\\t\""), A("\"a\\/b\\/c\"", "\"a/b/c\""), SAME("\"\\\\\\\\\""), SAME("\"\\\\\\\"\""), SAME("\"\\\\n\""), SAME("\"a\\\\\""),
    SAME("\"0123456789abcde\\\"\""), SAME("\"0123456789abcdef\\\\\""), SAME("\"0123456789abcd\\n0123456789abcdef\\n\""),
    A("\"\\u0041\"", "\"A\""), A("\"\\u0022\"", "\"\\\"\""), A("\"\\u005c\"", "\"\\\\\""), A("\"\\u005C\"", "\"\\\\\""), A("\"\\u002f\"", "\"/\""),
    SAME("\"\\u0000\""), SAME("\"a\\u0000b\""), SAME("\"\\u0001\""), SAME("\"\\u001f\""), A("\"\\u001F\"", "\"\\u001f\""), A("\"\\u0008\"", "\"\\b\""),
    A("\"\\u000a\"", "\"\\n\""), A("\"\\u007f\"", "\"\x7f\""), A("\"\\u0080\"", "\"\xc2\x80\""), A("\"\\u00e9\"", "\"\xc3\xa9\""),
    A("\"\\u00E9\"", "\"\xc3\xa9\""), A("\"\\u07ff\"", "\"\xdf\xbf\""), A("\"\\u0800\"", "\"\xe0\xa0\x80\""), A("\"\\u20ac\"", "\"\xe2\x82\xac\""),
    A("\"\\uD7FF\"", "\"\xed\x9f\xbf\""), A("\"\\uE000\"", "\"\xee\x80\x80\""), A("\"\\ufffd\"", "\"\xef\xbf\xbd\""), A("\"\\uFFFE\"", "\"\xef\xbf\xbe\""),
    A("\"\\uffff\"", "\"\xef\xbf\xbf\""), A("\"\\ufdd0\"", "\"\xef\xb7\x90\""), A("\"\\u0065\\u0301\"", "\"e\xcc\x81\""), A("\"\\u00410\"", "\"A0\""),
    SAME("\"\\u2028\""), SAME("\"\\u2029\""), A("\"\xe2\x80\xa8\"", "\"\\u2028\""), A("\"\xe2\x80\xa9\"", "\"\\u2029\""), SAME("\"\xe2\x80\xa7\xe2\x80\xaa\""),
    /* surrogates: pairs join, lone ones become U+FFFD */
    A("\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\""), A("\"\\uD83D\\uDE00\"", "\"\xf0\x9f\x98\x80\""), A("\"\\ud800\\udc00\"", "\"\xf0\x90\x80\x80\""),
    A("\"\\udbff\\udfff\"", "\"\xf4\x8f\xbf\xbf\""), A("\"\\ud834\\udd1e\"", "\"\xf0\x9d\x84\x9e\""), A("\"\\ud800\"", "\"\xef\xbf\xbd\""),
    A("\"\\udbff\"", "\"\xef\xbf\xbd\""), A("\"\\udc00\"", "\"\xef\xbf\xbd\""), A("\"\\udfff\"", "\"\xef\xbf\xbd\""), A("\"\\ud800a\"", "\"\xef\xbf\xbd" "a\""),
    A("\"\\ud800\\u0041\"", "\"\xef\xbf\xbd" "A\""), A("\"\\ud800\\n\"", "\"\xef\xbf\xbd\\n\""), A("\"\\ud800\\ud800\"", "\"\xef\xbf\xbd\xef\xbf\xbd\""),
    A("\"\\ud800\\ud800\\udc00\"", "\"\xef\xbf\xbd\xf0\x90\x80\x80\""), A("\"\\udc00\\ud800\"", "\"\xef\xbf\xbd\xef\xbf\xbd\""),
    A("\"\\ud800\xc3\xa9\"", "\"\xef\xbf\xbd\xc3\xa9\""), A("\"a\\ud83d\\ude00z\"", "\"a\xf0\x9f\x98\x80z\""),
    R("\""), R("\"a"), R("a\""), R("\"\\\""), R("\"\\"), R("\"a\\"), R("\"\\u"), R("\"\\u0"), R("\"\\u00"), R("\"\\u004"), R("\"\\u0041"), R("\"\\u004\""), R("\"\\u00 41\""),
    R("\"\\u00g1\""), R("\"\\uZZZZ\""), R("\"\\u-041\""), R("\"\\u+041\""), R("\"\\U0041\""), R("\"\\x41\""), R("\"\\a\""), R("\"\\v\""), R("\"\\e\""), R("\"\\0\""), R("\"\\1\""), R("\"\\'\""),
    R("\"\\ \""), R("\"\\\n\""), R("\"\\N\""), R("\"\\B\""), R("\"\\\0\""), R("\"\\\xc3\xa9\""), R("\"\\ud800\\u\""), R("\"\\ud800\\u1\""), R("\"\\ud800\\x\""), R("\"\\ud800\\\""), R("\"\\u{41}\""),
    R("\"\0\""), R("\"\x01\""), R("\"\x08\""), R("\"\t\""), R("\"\n\""), R("\"\r\""), R("\"\x1b\""), R("\"\x1f\""), R("\"abc\ndef\""), R("\"0123456789abcdef\n\""), R("\"0123456789abcde\0\""),
    R("\"a\"b"), R("\"a\"\"b\""), R("'a'"), R("\"a'"), R("[\"a]"), R("[\"a\\\"]"), R("[\"a\n\"]"), R("{\"a\n\":1}"), R("{\"\\x\":1}"), R("`a`"), R("\xe2\x80\x9c" "a\xe2\x80\x9d"),
};

static const struct conf utf8[] = {
    /* the edges of each length */
    SAME("\"\xc2\x80\""), SAME("\"\xdf\xbf\""), SAME("\"\xe0\xa0\x80\""), SAME("\"\xec\xbf\xbf\""), SAME("\"\xed\x9f\xbf\""), SAME("\"\xee\x80\x80\""),
    SAME("\"\xef\xbf\xbf\""), SAME("\"\xf0\x90\x80\x80\""), SAME("\"\xf3\xbf\xbf\xbf\""), SAME("\"\xf4\x8f\xbf\xbf\""), SAME("\"\xef\xbb\xbf\""),
    SAME("\"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\""), SAME("\"\xd0\xbf\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82\""), SAME("\"a\xc3\xa9" "b\xe2\x82\xac" "c\xf0\x9f\x98\x80" "d\""),
    SAME("{\"\xc3\xa9\":\"\xc3\xa8\"}"), SAME("\"0123456789abcd\xf0\x9f\x98\x80\""), SAME("\"0123456789abcde\xc3\xa9\""), SAME("\"\xef\xbf\xbd\""), SAME("\"\xc3\xa9\\n\xc3\xa9\""),
    /* continuation bytes alone */
    U("\"\x80\""), U("\"\xbf\""), U("\"\x80\x80\""), U("\"a\x80" "b\""), U("\"\xc3\xa9\x80\""), U("\"0123456789abcdef\x80\""),
    /* cut off */
    U("\"\xc3\""), U("\"\xe2\x82\""), U("\"\xe2\""), U("\"\xf0\x9f\x98\""), U("\"\xf0\x9f\""), U("\"\xf0\""), U("\"\xc3" "a\""), U("\"\xe2\x82" "a\""), U("\"\xe2" "a\xac\""),
    U("\"\xf0\x9f\x98" "a\""), U("\"\xf0\x9f" "a\x80\""), U("\"\xf0" "a\x98\x80\""), U("\"\xc3\xc3\xa9\""), U("\"\xe2\x82\xc3\xa9\""),
    /* overlong */
    U("\"\xc0\x80\""), U("\"\xc0\xaf\""), U("\"\xc1\xbf\""), U("\"\xe0\x80\x80\""), U("\"\xe0\x9f\xbf\""), U("\"\xe0\x80\xaf\""), U("\"\xf0\x80\x80\x80\""), U("\"\xf0\x8f\xbf\xbf\""), U("\"\xf0\x80\x80\xaf\""),
    /* surrogates */
    U("\"\xed\xa0\x80\""), U("\"\xed\xad\xbf\""), U("\"\xed\xae\x80\""), U("\"\xed\xaf\xbf\""), U("\"\xed\xb0\x80\""), U("\"\xed\xbf\xbf\""), U("\"\xed\xa0\xbd\xed\xb8\x80\""),
    /* beyond U+10FFFF, and bytes that never occur */
    U("\"\xf4\x90\x80\x80\""), U("\"\xf5\x80\x80\x80\""), U("\"\xf7\xbf\xbf\xbf\""), U("\"\xf8\x88\x80\x80\x80\""), U("\"\xfc\x84\x80\x80\x80\x80\""), U("\"\xfe\""), U("\"\xff\""), U("\"\xff\xfe\""), U("\"\xfe\xff\""),
    /* elsewhere than in a value */
    U("{\"\xff\":1}"), U("{\"a\xc3\":1}"), U("[\"a\",\"\xe9\"]"), U("{\"a\":\"\\n\x80\"}"), U("[1,\"\\u0041\xc0\xaf\"]"),
    R("[\xc3\xa9]"), R("{\xc3\xa9:1}"), R("\xff"), R("[\xff]"), R("\"\xc3\xa9"), R("\"\xe2\x82\xac\\\""),
};
/* clang-format on */

static const struct {
    const struct conf *v;
    size_t n;
} tables[] = {{structure, VG_ARRAY_LEN(structure)},
              {numbers, VG_ARRAY_LEN(numbers)},
              {strings, VG_ARRAY_LEN(strings)},
              {utf8, VG_ARRAY_LEN(utf8)}};

static void fail_case(const struct conf *c, size_t pad, const char *what, int r)
{
    fail_msg("case \"%.*s\" with %zu spaces before: %s (%s)", VG_SLICE_ARG(c->text), pad, what,
             vg_err_name(r));
}

/* An exact-size copy: ASan sees a read of one byte too many. */
static char *padded(struct vg_slice text, size_t pad)
{
    char *p = malloc(pad + text.n ? pad + text.n : 1);
    assert_non_null(p);
    memset(p, ' ', pad);
    memcpy(p + pad, text.p, text.n);
    return p;
}

static void check_accepted(const struct conf *c, size_t pad, struct vg_slice text)
{
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) out = {0};
    struct vg_json *root = NULL;
    struct vg_slice found;
    int r = vg_json_parse(&a, text, NULL, &root, NULL);
    if (r < 0)
        fail_case(c, pad, "was refused", r);
    assert_int_equal(vg_json_write(&out, root, 0), 0);
    if (!vg_slice_eq(vg_buf_slice(&out), c->meaning))
        fail_msg("case \"%.*s\" reads \"%.*s\", not \"%.*s\"", VG_SLICE_ARG(c->text),
                 VG_SLICE_ARG(vg_buf_slice(&out)), VG_SLICE_ARG(c->meaning));
    r = vg_json_find(text, NULL, 0, &found);
    if (r < 0)
        fail_case(c, pad, "the scanner refused it", r);
    assert_int_equal(found.n, root->end - root->begin);
    assert_ptr_equal(found.p, text.p + root->begin);
}

static void check_refused(const struct conf *c, size_t pad, struct vg_slice text)
{
    VG_AUTO(arena) a = {0};
    struct vg_json *root = NULL;
    struct vg_status st = {0};
    struct vg_slice found;
    int r = vg_json_parse(&a, text, NULL, &root, &st);
    if (r != c->err)
        fail_case(c, pad, "was not refused as it should", r);
    assert_null(root);
    assert_int_equal(st.err, r);
    assert_non_null(strstr(st.message, "line "));
    struct vg_json_opts replace = {.replace_bad_utf8 = true};
    r = vg_json_parse(&a, text, &replace, &root, NULL);
    if (r != (c->err == VIGIL_E_JSON_UTF8 ? 0 : c->err))
        fail_case(c, pad, "replacing UTF-8 changed more than it should", r);
    (void)!vg_json_find(text, NULL, 0, &found); /* only safe, not strict */
}

static void check_case(const struct conf *c)
{
    for (size_t pad = 0; pad < 18; pad++) {
        char *copy = padded(c->text, pad);
        struct vg_slice text = vg_slice(copy, pad + c->text.n);
        if (c->err)
            check_refused(c, pad, text);
        else
            check_accepted(c, pad, text);
        free(copy);
    }
}

static void every_case_is_accepted_or_refused_as_rfc_8259_says(void **state)
{
    (void)state;
    size_t accepted = 0, refused = 0;
    for (size_t t = 0; t < VG_ARRAY_LEN(tables); t++) {
        for (size_t i = 0; i < tables[t].n; i++) {
            check_case(&tables[t].v[i]);
            accepted += tables[t].v[i].err == 0;
            refused += tables[t].v[i].err != 0;
        }
    }
    print_message("%zu accepted and %zu refused cases\n", accepted, refused);
    assert_true(accepted >= 100);
    assert_true(accepted + refused >= 250);
}

/* Every proper prefix of a valid object or array is refused: nothing is accepted half-read. */
static void every_prefix_of_a_text_is_refused(void **state)
{
    (void)state;
    const struct vg_slice whole = VG_SLICE_LIT(
        "{\"a\":[1,-2.5e+3,true,false,null,\"x\\u00e9\\ud83d\\ude00\xc3\xa9\"],\"b\":{\"c\":{}}}");
    for (size_t n = 0; n < whole.n; n++) {
        VG_AUTO(arena) a = {0};
        struct vg_json *root = NULL;
        char *copy = padded(vg_slice(whole.p, n), 0);
        assert_true(vg_json_parse(&a, vg_slice(copy, n), NULL, &root, NULL) < 0);
        free(copy);
    }
}

/* Each of the 256 bytes as the only content of a string, and as a text of its own. */
static void every_byte_is_judged_alone(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        VG_AUTO(arena) a = {0};
        struct vg_json *root = NULL;
        char text[3] = {'"', (char)c, '"'};
        bool plain = c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
        int want = plain ? 0 : c >= 0x80 ? VIGIL_E_JSON_UTF8 : VIGIL_E_JSON_SYNTAX;
        assert_int_equal(vg_json_parse(&a, vg_slice(text, 3), NULL, &root, NULL), want);
        want = c >= '0' && c <= '9' ? 0 : VIGIL_E_JSON_SYNTAX;
        assert_int_equal(vg_json_parse(&a, vg_slice(text + 1, 1), NULL, &root, NULL), want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_is_accepted_or_refused_as_rfc_8259_says),
        cmocka_unit_test(every_prefix_of_a_text_is_refused),
        cmocka_unit_test(every_byte_is_judged_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
