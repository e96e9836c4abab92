/* write_test.c - text out of trees and calls: golden cases, layout, escapes, misuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "json/write.h"

static void assert_text(struct vg_buf *b, const char *want)
{
    assert_int_equal(vg_buf_append_byte(b, '\0'), 0);
    assert_string_equal(b->p, want);
}

static void assert_writes(const char *text, unsigned flags, const char *want)
{
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) out = {0};
    struct vg_json *root = NULL;
    assert_int_equal(vg_json_parse(&a, vg_slice_str(text), NULL, &root, NULL), 0);
    assert_int_equal(vg_json_write(&out, root, flags), 0);
    assert_text(&out, want);
}

static void assert_quotes(struct vg_slice s, unsigned flags, const char *want)
{
    VG_AUTO(buf) out = {0};
    /* An exact-size copy: ASan sees a read of one byte too many. */
    char *copy = malloc(s.n ? s.n : 1);
    assert_non_null(copy);
    memcpy(copy, s.p, s.n);
    assert_int_equal(vg_json_write_string(&out, vg_slice(copy, s.n), flags), 0);
    free(copy);
    assert_text(&out, want);
}

/* ---- trees ---- */

static void compact_text_has_no_white_space_and_keeps_numbers(void **state)
{
    (void)state;
    assert_writes(" { \"a\" : [ 1 , 2.50 , -0 , 1E+2 ] , \"b\" : { } , \"c\" : [ ] } ", 0,
                  "{\"a\":[1,2.50,-0,1E+2],\"b\":{},\"c\":[]}");
    assert_writes("[null,true,false,\"\"]", 0, "[null,true,false,\"\"]");
    assert_writes("12345678901234567890.10", 0, "12345678901234567890.10");
}

static void indented_text_is_that_of_marshal_indent(void **state)
{
    (void)state;
    assert_writes("{\"a\":[1,{\"b\":null}],\"c\":{},\"d\":[],\"e\":\"x\"}", VG_JSON_INDENT,
                  "{\n"
                  "  \"a\": [\n"
                  "    1,\n"
                  "    {\n"
                  "      \"b\": null\n"
                  "    }\n"
                  "  ],\n"
                  "  \"c\": {},\n"
                  "  \"d\": [],\n"
                  "  \"e\": \"x\"\n"
                  "}");
    assert_writes("[]", VG_JSON_INDENT, "[]");
    assert_writes("{}", VG_JSON_INDENT, "{}");
    assert_writes("1", VG_JSON_INDENT, "1");
    assert_writes("[[]]", VG_JSON_INDENT, "[\n  []\n]");
}

static void html_escapes_reach_keys_and_plain_values(void **state)
{
    (void)state;
    assert_writes("{\"<k>\":\"a&b\"}", VG_JSON_ESCAPE_HTML, "{\"\\u003ck\\u003e\":\"a\\u0026b\"}");
    assert_writes("{\"<k>\":\"a&b\"}", 0, "{\"<k>\":\"a&b\"}");
}

static void text_is_appended_to_what_the_buffer_has(void **state)
{
    (void)state;
    VG_AUTO(buf) out = {0};
    struct vg_json v = vg_json_bool(true);
    assert_int_equal(vg_buf_append(&out, "x=", 2), 0);
    assert_int_equal(vg_json_write(&out, &v, 0), 0);
    assert_text(&out, "x=true");
}

static void a_full_buffer_is_left_as_it_was(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) out = {.max = 10};
    struct vg_json *root = NULL;
    assert_int_equal(vg_json_parse(&a, VG_SLICE_LIT("[1,\"a longer string\"]"), NULL, &root, NULL),
                     0);
    assert_int_equal(vg_buf_append(&out, "keep", 4), 0);
    assert_int_equal(vg_json_write(&out, root, 0), VIGIL_E_TOO_LARGE);
    assert_int_equal(out.n, 4);
    assert_int_equal(vg_json_write_string(&out, VG_SLICE_LIT("\n\n\n\n"), 0), VIGIL_E_TOO_LARGE);
    assert_int_equal(out.n, 4);
}

/* ---- strings ---- */

static void strings_are_escaped_as_go_does(void **state)
{
    (void)state;
    assert_quotes(VG_SLICE_LIT(""), 0, "\"\"");
    assert_quotes(VG_SLICE_LIT("a\"b\\c/d"), 0, "\"a\\\"b\\\\c/d\"");
    assert_quotes(VG_SLICE_LIT("\b\f\n\r\t"), 0, "\"\\b\\f\\n\\r\\t\"");
    assert_quotes(VG_SLICE_LIT("\0\x01\x0b\x1f\x7f"), 0, "\"\\u0000\\u0001\\u000b\\u001f\x7f\"");
    assert_quotes(VG_SLICE_LIT("<>&'"), 0, "\"<>&'\"");
    assert_quotes(VG_SLICE_LIT("<>&'"), VG_JSON_ESCAPE_HTML, "\"\\u003c\\u003e\\u0026'\"");
    assert_quotes(VG_SLICE_LIT("\xe2\x80\xa8\xe2\x80\xa9"), 0, "\"\\u2028\\u2029\"");
    assert_quotes(VG_SLICE_LIT("\xe2\x80\xa8\xe2\x80\xa9"), VG_JSON_ESCAPE_HTML,
                  "\"\\u2028\\u2029\"");
    assert_quotes(VG_SLICE_LIT("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), 0,
                  "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
    assert_quotes(VG_SLICE_LIT("a\xff"
                               "b\xe2\x82"),
                  0, "\"a\\ufffdb\\ufffd\\ufffd\"");
}

/* One special byte at each place of strings of each length, around the steps of 16. */
static void an_escape_is_found_at_every_place(void **state)
{
    (void)state;
    for (size_t n = 1; n < 40; n++) {
        for (size_t at = 0; at < n; at++) {
            char s[40], want[64];
            memset(s, 'a', n);
            memset(want, 'a', sizeof want);
            s[at] = '&';
            want[0] = '"';
            memcpy(want + 1 + at, "\\u0026", 6);
            memcpy(want + 1 + n + 5, "\"", 2);
            assert_quotes(vg_slice(s, n), VG_JSON_ESCAPE_HTML, want);
            s[at] = '\n';
            memset(want, 'a', sizeof want);
            want[0] = '"';
            memcpy(want + 1 + at, "\\n", 2);
            memcpy(want + 1 + n + 1, "\"", 2);
            assert_quotes(vg_slice(s, n), 0, want);
        }
    }
}

/* ---- streaming ---- */

static void a_stream_of_calls_reads_as_told(void **state)
{
    (void)state;
    VG_AUTO(buf) out = {0};
    struct vg_json_writer w;
    struct vg_json t = vg_json_bool(true);
    vg_json_writer_init(&w, &out, 0);
    vg_json_put_begin_object(&w);
    vg_json_put_member(&w, "kind", VG_SLICE_LIT("Status"));
    vg_json_put_key(&w, VG_SLICE_LIT("list"));
    vg_json_put_begin_array(&w);
    vg_json_put_int(&w, INT64_MIN);
    vg_json_put_uint(&w, UINT64_MAX);
    vg_json_put_double(&w, 0.5);
    vg_json_put_bool(&w, false);
    vg_json_put_null(&w);
    vg_json_put_raw(&w, VG_SLICE_LIT("{\"r\": 1}"));
    vg_json_put_value(&w, &t);
    vg_json_put_begin_object(&w);
    vg_json_put_end_object(&w);
    vg_json_put_end_array(&w);
    vg_json_put_end_object(&w);
    assert_int_equal(vg_json_writer_end(&w), 0);
    assert_text(&out,
                "{\"kind\":\"Status\",\"list\":[-9223372036854775808,18446744073709551615,0.5,"
                "false,null,{\"r\": 1},true,{}]}");
}

static void a_tree_inside_a_stream_is_indented_with_it(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) out = {0};
    struct vg_json *root = NULL;
    struct vg_json_writer w;
    assert_int_equal(vg_json_parse(&a, VG_SLICE_LIT("[1,{}]"), NULL, &root, NULL), 0);
    vg_json_writer_init(&w, &out, VG_JSON_INDENT);
    vg_json_put_begin_object(&w);
    vg_json_put_key(&w, VG_SLICE_LIT("v"));
    vg_json_put_value(&w, root);
    vg_json_put_end_object(&w);
    assert_int_equal(vg_json_writer_end(&w), 0);
    assert_text(&out, "{\n  \"v\": [\n    1,\n    {}\n  ]\n}");
}

typedef void (*misuse)(struct vg_json_writer *w);

static void value_without_key(struct vg_json_writer *w)
{
    vg_json_put_begin_object(w);
    vg_json_put_null(w);
}
static void key_in_array(struct vg_json_writer *w)
{
    vg_json_put_begin_array(w);
    vg_json_put_key(w, VG_SLICE_LIT("a"));
}
static void key_at_top(struct vg_json_writer *w)
{
    vg_json_put_key(w, VG_SLICE_LIT("a"));
}
static void key_after_key(struct vg_json_writer *w)
{
    vg_json_put_begin_object(w);
    vg_json_put_key(w, VG_SLICE_LIT("a"));
    vg_json_put_key(w, VG_SLICE_LIT("b"));
}
static void end_after_key(struct vg_json_writer *w)
{
    vg_json_put_begin_object(w);
    vg_json_put_key(w, VG_SLICE_LIT("a"));
    vg_json_put_end_object(w);
}
static void end_of_another_kind(struct vg_json_writer *w)
{
    vg_json_put_begin_object(w);
    vg_json_put_end_array(w);
}
static void end_without_begin(struct vg_json_writer *w)
{
    vg_json_put_end_object(w);
}
static void two_values(struct vg_json_writer *w)
{
    vg_json_put_int(w, 1);
    vg_json_put_int(w, 2);
}
static void left_open(struct vg_json_writer *w)
{
    vg_json_put_begin_array(w);
}
static void nothing_at_all(struct vg_json_writer *w)
{
    (void)w;
}
static void not_finite(struct vg_json_writer *w)
{
    vg_json_put_double(w, (double)NAN);
}

static void misuse_of_the_stream_is_told_at_the_end(void **state)
{
    (void)state;
    static const misuse cases[] = {value_without_key, key_in_array,  key_at_top,
                                   key_after_key,     end_after_key, end_of_another_kind,
                                   end_without_begin, two_values,    left_open,
                                   nothing_at_all,    not_finite};
    for (size_t i = 0; i < VG_ARRAY_LEN(cases); i++) {
        VG_AUTO(buf) out = {0};
        struct vg_json_writer w;
        vg_json_writer_init(&w, &out, 0);
        cases[i](&w);
        assert_int_equal(vg_json_writer_end(&w), VIGIL_E_INVALID);
        size_t n = out.n;
        vg_json_put_begin_array(&w); /* errors stick: nothing more is written */
        vg_json_put_string(&w, VG_SLICE_LIT("x"));
        assert_int_equal(out.n, n);
    }
}

static void nesting_beyond_the_limit_is_an_error(void **state)
{
    (void)state;
    VG_AUTO(buf) out = {0};
    struct vg_json_writer w;
    vg_json_writer_init(&w, &out, 0);
    for (uint32_t i = 0; i < VG_JSON_DEPTH_MAX; i++)
        vg_json_put_begin_array(&w);
    assert_int_equal(w.err, 0);
    vg_json_put_begin_array(&w);
    assert_int_equal(vg_json_writer_end(&w), VIGIL_E_JSON_DEPTH);
}

static int stream_once(void)
{
    VG_AUTO(buf) out = {0};
    struct vg_json_writer w;
    vg_json_writer_init(&w, &out, VG_JSON_INDENT | VG_JSON_ESCAPE_HTML);
    vg_json_put_begin_object(&w);
    for (int i = 0; i < 100; i++)
        vg_json_put_member(&w, "a<b", VG_SLICE_LIT("\n\xe2\x80\xa8 and & more"));
    vg_json_put_end_object(&w);
    return vg_json_writer_end(&w);
}

static void every_failed_allocation_is_told_at_the_end(void **state)
{
    (void)state;
    vg_alloc_fail_at(UINT64_MAX, 0); /* counts, and never fails */
    assert_int_equal(stream_once(), 0);
    uint64_t total = vg_alloc_fail_at(0, 0);
    assert_true(total > 3);
    for (uint64_t n = 1; n <= total; n++) {
        vg_alloc_fail_at(n, 0);
        assert_int_equal(stream_once(), -ENOMEM);
    }
    vg_alloc_fail_at(0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compact_text_has_no_white_space_and_keeps_numbers),
        cmocka_unit_test(indented_text_is_that_of_marshal_indent),
        cmocka_unit_test(html_escapes_reach_keys_and_plain_values),
        cmocka_unit_test(text_is_appended_to_what_the_buffer_has),
        cmocka_unit_test(a_full_buffer_is_left_as_it_was),
        cmocka_unit_test(strings_are_escaped_as_go_does),
        cmocka_unit_test(an_escape_is_found_at_every_place),
        cmocka_unit_test(a_stream_of_calls_reads_as_told),
        cmocka_unit_test(a_tree_inside_a_stream_is_indented_with_it),
        cmocka_unit_test(misuse_of_the_stream_is_told_at_the_end),
        cmocka_unit_test(nesting_beyond_the_limit_is_an_error),
        cmocka_unit_test(every_failed_allocation_is_told_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
