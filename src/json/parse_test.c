/* parse_test.c - what the parser tells beyond yes and no: offsets, duplicates, limits, positions of
 * errors, and that it survives every failed allocation. What is JSON at all: conformance_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "json/json.h"

static struct vg_json *must_parse(struct vg_arena *a, const char *text)
{
    struct vg_json *root = NULL;
    struct vg_status st = {0};
    if (vg_json_parse(a, vg_slice_str(text), NULL, &root, &st) < 0)
        fail_msg("%s: %s", text, st.message);
    return root;
}

/* ---- the tree ---- */

static void a_node_is_24_bytes_and_a_member_40(void **state)
{
    (void)state;
    assert_int_equal(sizeof(struct vg_json), 24);
    assert_int_equal(sizeof(struct vg_json_member), 40);
}

static void assert_span(const struct vg_json *v, uint32_t begin, uint32_t end)
{
    assert_non_null(v);
    assert_int_equal(v->begin, begin);
    assert_int_equal(v->end, end);
}

static void offsets_span_each_value_with_its_quotes_and_brackets(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    /*                               0         1         2         3         4
     *                               01234567890123456789012345678901234567890123456 */
    struct vg_json *o = must_parse(&a, " { \"a\" : \"x\\ny\" , \"b\" : [ 12 , true , { } ] } ");
    assert_span(o, 1, 45);
    assert_span(vg_json_get_str(o, "a"), 9, 15);
    struct vg_json *b = vg_json_get_str(o, "b");
    assert_span(b, 24, 43);
    assert_span(vg_json_at(b, 0), 26, 28);
    assert_span(vg_json_at(b, 1), 31, 35);
    assert_span(vg_json_at(b, 2), 38, 41);
    assert_int_equal(o->members[0].key_begin, 3);
    assert_int_equal(o->members[1].key_begin, 18);
}

static void plain_strings_and_numbers_point_into_the_source(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    const char *text = "{\"key\":\"plain\",\"n\":-1.50e3,\"u\":\"\xc3\xa9\",\"e\":\"a\\tb\"}";
    struct vg_json *o = must_parse(&a, text);
    assert_ptr_equal(o->members[0].key, text + 2);
    assert_ptr_equal(vg_json_get_str(o, "key")->text, text + 8);
    assert_true(vg_json_get_str(o, "key")->flags & VG_JSON_PLAIN);
    struct vg_json *n = vg_json_get_str(o, "n");
    assert_true(vg_slice_eq(vg_json_text(n), VG_SLICE_LIT("-1.50e3")));
    assert_ptr_equal(n->text, text + n->begin);
    struct vg_json *u = vg_json_get_str(o, "u");
    assert_ptr_equal(u->text, text + u->begin + 1);
    struct vg_json *e = vg_json_get_str(o, "e");
    assert_true(vg_slice_eq(vg_json_text(e), VG_SLICE_LIT("a\tb")));
    assert_true(e->text < text || e->text > text + strlen(text));
    assert_false(e->flags & VG_JSON_PLAIN);
}

static void nul_escapes_become_zero_bytes_in_length_delimited_text(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json *v = must_parse(&a, "[\"a\\u0000b\"]");
    assert_true(vg_slice_eq(vg_json_text(vg_json_at(v, 0)), VG_SLICE_LIT("a\0b")));
}

static void key_order_is_the_source_order(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json *o = must_parse(&a, "{\"z\":1,\"a\":2,\"m\":3}");
    assert_int_equal(o->members[0].key[0], 'z');
    assert_int_equal(o->members[1].key[0], 'a');
    assert_int_equal(o->members[2].key[0], 'm');
}

static void bad_utf8_is_replaced_byte_by_byte_when_asked(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json *v = NULL;
    struct vg_json_opts o = {.replace_bad_utf8 = true};
    struct vg_slice text = VG_SLICE_LIT("[\"a\xff\xe2\x82z\\n\xed\xa0\x80\"]");
    assert_int_equal(vg_json_parse(&a, text, &o, &v, NULL), 0);
#define FFFD "\xef\xbf\xbd"
    assert_true(vg_slice_eq(vg_json_text(vg_json_at(v, 0)),
                            VG_SLICE_LIT("a" FFFD FFFD FFFD "z\n" FFFD FFFD FFFD)));
}

/* ---- duplicates ---- */

static void add(struct vg_buf *text, const char *s)
{
    assert_int_equal(vg_buf_append_slice(text, vg_slice_str(s)), 0);
}

static struct vg_json_dups report(struct vg_arena *a, struct vg_slice text, struct vg_json **root)
{
    struct vg_json_dups dups = {0};
    struct vg_json_opts o = {.on_dup = VG_JSON_DUP_REPORT, .ret_dups = &dups};
    assert_int_equal(vg_json_parse(a, text, &o, root, NULL), 0);
    return dups;
}

static void assert_path(const struct vg_json_dups *d, uint32_t i, const char *path)
{
    assert_true(i < d->n);
    if (!vg_slice_eq(d->v[i].path, vg_slice_str(path)))
        fail_msg("path %u is %.*s, not %s", i, VG_SLICE_ARG(d->v[i].path), path);
}

static void duplicates_are_named_as_kubernetes_does(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json *root = NULL;
    struct vg_json_dups d =
        report(&a,
               VG_SLICE_LIT("{\"kind\":1,\"spec\":{\"containers\":[{\"name\":1,\"name\":2},"
                            "{\"x\":[[],[{\"y\":1,\"y\":2}]]}]},\"kind\":2}"),
               &root);
    assert_int_equal(d.n, 3);
    assert_path(&d, 0, "spec.containers[0].name");
    assert_path(&d, 1, "spec.containers[1].x[1][0].y");
    assert_path(&d, 2, "kind");
    assert_int_equal(root->n, 2);
    assert_int_equal(vg_json_get_str(root, "kind")->text[0], '2');
}

static void a_duplicate_inside_an_array_at_the_top_starts_with_its_index(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json *root = NULL;
    struct vg_json_dups d = report(&a, VG_SLICE_LIT("[0,{\"a\":1,\"a\":2}]"), &root);
    assert_int_equal(d.n, 1);
    assert_path(&d, 0, "[1].a");
    d = report(&a, VG_SLICE_LIT("{\"\":{\"a\":1,\"a\":2}}"), &root);
    assert_path(&d, 0, ".a"); /* an empty key is a step too */
}

static void paths_come_in_document_order_and_once_each(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json *root = NULL;
    struct vg_json_dups d = report(
        &a, VG_SLICE_LIT("{\"a\":1,\"a\":{\"b\":1,\"b\":2,\"b\":3},\"a\":{\"b\":1,\"b\":2}}"),
        &root);
    assert_int_equal(d.n, 2);
    assert_path(&d, 0, "a");
    assert_path(&d, 1, "a.b");
    assert_true(d.v[0].offset < d.v[1].offset);
    assert_int_equal(root->n, 1);
}

static void no_more_than_the_cap_of_duplicates_is_listed(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) text = {0};
    struct vg_json *root = NULL;
    assert_int_equal(vg_buf_append_byte(&text, '{'), 0);
    for (int i = 0; i < 300; i++)
        assert_int_equal(vg_buf_printf(&text, "\"k%d\":1,\"k%d\":2,", i, i), 0);
    text.p[text.n - 1] = '}';
    struct vg_json_dups d = report(&a, vg_buf_slice(&text), &root);
    assert_int_equal(d.n, VG_JSON_DUPS_MAX);
    assert_path(&d, 0, "k0");
    assert_path(&d, 99, "k99");
    assert_int_equal(root->n, 300);
}

static void a_long_path_is_cut_at_a_step(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) text = {0};
    struct vg_json *root = NULL;
    add(&text, "{\"top\":{\"");
    for (int i = 0; i < 2000; i++)
        add(&text, "x");
    add(&text, "\":{\"a\":1,\"a\":2}}}");
    struct vg_json_dups d = report(&a, vg_buf_slice(&text), &root);
    assert_int_equal(d.n, 1);
    assert_path(&d, 0, "top...");
}

/* It would be quadratic if each of them were named: half a million duplicates behind a long key. */
static void very_many_duplicates_take_little_time(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) text = {0};
    struct vg_json *root = NULL;
    add(&text, "{\"");
    for (int i = 0; i < 1000000; i++)
        add(&text, "x");
    add(&text, "\":{");
    for (int i = 0; i < 250000; i++)
        add(&text, "\"a\":1,\"b\":{\"a\":1,\"a\":1},");
    text.p[text.n - 1] = '}';
    add(&text, "}");
    struct vg_json_dups d = report(&a, vg_buf_slice(&text), &root);
    assert_int_equal(d.n, 1); /* all of them are cut to the same path */
    assert_int_equal(root->members[0].value.n, 2);
}

static void a_duplicate_fails_with_its_path_when_asked(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json *root = NULL;
    struct vg_status st;
    struct vg_json_where where = {0};
    struct vg_json_opts o = {.on_dup = VG_JSON_DUP_FAIL, .ret_where = &where};
    struct vg_slice text = VG_SLICE_LIT("{\"m\":{\"a\":1,\n \"\\u0061\":2}}");
    assert_int_equal(vg_json_parse(&a, text, &o, &root, &st), VIGIL_E_JSON_DUPLICATE);
    assert_string_equal(st.message, "line 2, column 2 (offset 14): duplicate key \"m.a\"");
    assert_int_equal(where.offset, 14);
    assert_null(root);
}

/* Small objects use a filter, large ones a hash set: both must find a pair wherever it is. */
static void a_pair_of_equal_keys_is_found_at_any_place_and_size(void **state)
{
    (void)state;
    for (uint32_t n = 2; n < 80; n += n < 30 ? 1 : 13) {
        for (uint32_t second = 1; second < n; second++) {
            VG_AUTO(arena) a = {0};
            VG_AUTO(buf) text = {0};
            struct vg_json *root = NULL;
            uint32_t first = second / 2;
            assert_int_equal(vg_buf_append_byte(&text, '{'), 0);
            for (uint32_t i = 0; i < n; i++)
                assert_int_equal(
                    vg_buf_printf(&text, "\"a-longer-key-%u\":%u,", i == second ? first : i, i), 0);
            text.p[text.n - 1] = '}';
            struct vg_json_dups d = report(&a, vg_buf_slice(&text), &root);
            assert_int_equal(d.n, 1);
            assert_int_equal(root->n, n - 1);
            int64_t kept;
            VG_AUTO(buf) key = {0};
            assert_int_equal(vg_buf_printf(&key, "a-longer-key-%u", first), 0);
            struct vg_json *v = vg_json_get(root, vg_buf_slice(&key));
            assert_int_equal(vg_json_to_int64(v, &kept), 0);
            assert_int_equal(kept, second);
        }
    }
}

static void keys_that_only_resemble_each_other_are_kept(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json *root = NULL;
    struct vg_json_dups d = report(
        &a,
        VG_SLICE_LIT("{\"axb\":1,\"bxb\":2,\"cxb\":3,\"\":4,\"\\u0000\":5,\"\\u0000\\u0000\":6}"),
        &root);
    assert_int_equal(d.n, 0);
    assert_int_equal(root->n, 6);
}

/* ---- limits ---- */

static char *nested(size_t depth, char open, char close)
{
    char *p = malloc(2 * depth + 1);
    assert_non_null(p);
    memset(p, open, depth);
    memset(p + depth, close, depth);
    p[2 * depth] = '\0';
    return p;
}

static int parse_nested(size_t depth, uint32_t max_depth)
{
    VG_AUTO(arena) a = {0};
    struct vg_json *root = NULL;
    struct vg_json_opts o = {.max_depth = max_depth};
    char *text = nested(depth, '[', ']');
    int r = vg_json_parse(&a, vg_slice_str(text), &o, &root, NULL);
    free(text);
    return r;
}

static void depth_is_limited_by_default_and_by_option(void **state)
{
    (void)state;
    assert_int_equal(parse_nested(VG_JSON_DEPTH_DEFAULT, 0), 0);
    assert_int_equal(parse_nested(VG_JSON_DEPTH_DEFAULT + 1, 0), VIGIL_E_JSON_DEPTH);
    assert_int_equal(parse_nested(3, 3), 0);
    assert_int_equal(parse_nested(4, 3), VIGIL_E_JSON_DEPTH);
    assert_int_equal(parse_nested(VG_JSON_DEPTH_MAX, UINT32_MAX), 0);
    assert_int_equal(parse_nested(VG_JSON_DEPTH_MAX + 1, UINT32_MAX), VIGIL_E_JSON_DEPTH);
}

static void a_million_open_brackets_are_refused_early(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json *root = NULL;
    char *text = nested(1000000, '[', '[');
    assert_int_equal(vg_json_parse(&a, vg_slice_str(text), NULL, &root, NULL), VIGIL_E_JSON_DEPTH);
    free(text);
}

static void size_is_limited_by_option(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json *root = NULL;
    struct vg_status st;
    struct vg_json_opts o = {.max_bytes = 5};
    assert_int_equal(vg_json_parse(&a, VG_SLICE_LIT("[1,2]"), &o, &root, NULL), 0);
    assert_int_equal(vg_json_parse(&a, VG_SLICE_LIT("[1,23]"), &o, &root, &st), VIGIL_E_TOO_LARGE);
    assert_string_equal(st.message, "the JSON text has 6 bytes, more than the limit of 5");
}

static void the_cap_of_the_arena_is_respected(void **state)
{
    (void)state;
    struct vg_arena a;
    vg_arena_init(&a, 256, 2048);
    struct vg_json *root = NULL;
    VG_AUTO(buf) text = {0};
    for (int i = 0; i < 1000; i++)
        assert_int_equal(vg_buf_append(&text, i ? ",1" : "[1", 2), 0);
    assert_int_equal(vg_buf_append_byte(&text, ']'), 0);
    assert_int_equal(vg_json_parse(&a, vg_buf_slice(&text), NULL, &root, NULL), -ENOMEM);
    assert_null(root);
    vg_arena_done(&a);
}

static void large_containers_outgrow_every_first_size(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) text = {0};
    struct vg_json *root = NULL;
    for (int i = 0; i < 5000; i++)
        assert_int_equal(vg_buf_printf(&text, "%s\"k%d\":[%d,{\"v\":%d}]", i ? "," : "{", i, i, i),
                         0);
    assert_int_equal(vg_buf_append_byte(&text, '}'), 0);
    struct vg_json_opts o = {.on_dup = VG_JSON_DUP_FAIL};
    assert_int_equal(vg_json_parse(&a, vg_buf_slice(&text), &o, &root, NULL), 0);
    assert_int_equal(root->n, 5000);
    int64_t i;
    struct vg_json *v = vg_json_get_str(vg_json_at(vg_json_get_str(root, "k4321"), 1), "v");
    assert_int_equal(vg_json_to_int64(v, &i), 0);
    assert_int_equal(i, 4321);
}

static void kept_scratch_serves_many_texts(void **state)
{
    (void)state;
    VG_AUTO(json_scratch) scratch = {0};
    struct vg_json_opts o = {.scratch = &scratch};
    for (int i = 0; i < 50; i++) {
        VG_AUTO(arena) a = {0};
        struct vg_json *root = NULL;
        struct vg_slice bad = VG_SLICE_LIT("[[[1,{\"a\":");
        struct vg_slice good = VG_SLICE_LIT("[[[1,{\"a\":2}]]]");
        assert_int_equal(vg_json_parse(&a, bad, &o, &root, NULL), VIGIL_E_JSON_SYNTAX);
        assert_int_equal(vg_json_parse(&a, good, &o, &root, NULL), 0);
        assert_int_equal(root->n, 1);
    }
}

/* ---- errors ---- */

static void errors_tell_line_column_offset_and_what_was_found(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "line 1, column 1 (offset 0): expected a value, found the end of the text"},
        {"{\n  \"a\": 1\n  \"b\": 2\n}",
         "line 3, column 3 (offset 13): expected ',' or '}', found '\"'"},
        {"[1, 2", "line 1, column 6 (offset 5): expected ',' or ']', found the end of the text"},
        {"{\"a\" 1}", "line 1, column 6 (offset 5): expected ':' after a key, found '1'"},
        {"{a:1}", "line 1, column 2 (offset 1): expected a key in quotes, found 'a'"},
        {"[1,\n\n  x]", "line 3, column 3 (offset 7): expected a value, found 'x'"},
        {"01", "line 1, column 1 (offset 0): a number has no leading zeros, found '0'"},
        {"[1.]", "line 1, column 4 (offset 3): expected a digit after '.', found ']'"},
        {"[1e]", "line 1, column 4 (offset 3): expected a digit of the exponent, found ']'"},
        {"\"a\\x\"", "line 1, column 3 (offset 2): a string has a malformed escape, found '\\'"},
        {"\"a",
         "line 1, column 3 (offset 2): a string has no closing quote, found the end of the text"},
        {"\"a\n\"", "line 1, column 3 (offset 2): a string has a control character that is not "
                    "escaped, found byte 0x0a"},
        {"\"\xff\"", "line 1, column 2 (offset 1): a string is not valid UTF-8, found byte 0xff"},
        {"null x", "line 1, column 6 (offset 5): text goes on after its value, found 'x'"},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(cases); i++) {
        VG_AUTO(arena) a = {0};
        struct vg_json *root = NULL;
        struct vg_status st = {0};
        assert_true(vg_json_parse(&a, vg_slice_str(cases[i].text), NULL, &root, &st) < 0);
        assert_string_equal(st.message, cases[i].message);
    }
}

/* ---- failed allocations ---- */

static int parse_once(struct vg_slice text)
{
    VG_AUTO(arena) a = {0};
    struct vg_json *root = NULL;
    struct vg_json_dups dups = {0};
    struct vg_json_opts o = {.on_dup = VG_JSON_DUP_REPORT, .ret_dups = &dups};
    vg_arena_init(&a, 64, 0);
    return vg_json_parse(&a, text, &o, &root, NULL);
}

static void every_failed_allocation_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    VG_AUTO(buf) text = {0};
    for (int i = 0; i < 100; i++)
        assert_int_equal(vg_buf_printf(&text, "%s\"k%d\":[\"a\\n%d\",{\"d\":1,\"d\":2}]",
                                       i ? "," : "{", i % 90, i),
                         0);
    assert_int_equal(vg_buf_append_byte(&text, '}'), 0);
    vg_alloc_fail_at(UINT64_MAX, 0); /* counts, and never fails */
    assert_int_equal(parse_once(vg_buf_slice(&text)), 0);
    uint64_t total = vg_alloc_fail_at(0, 0);
    assert_true(total > 10);
    for (uint64_t n = 1; n <= total; n++) {
        vg_alloc_fail_at(n, 0);
        assert_int_equal(parse_once(vg_buf_slice(&text)), -ENOMEM);
    }
    vg_alloc_fail_at(0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_is_24_bytes_and_a_member_40),
        cmocka_unit_test(offsets_span_each_value_with_its_quotes_and_brackets),
        cmocka_unit_test(plain_strings_and_numbers_point_into_the_source),
        cmocka_unit_test(nul_escapes_become_zero_bytes_in_length_delimited_text),
        cmocka_unit_test(key_order_is_the_source_order),
        cmocka_unit_test(bad_utf8_is_replaced_byte_by_byte_when_asked),
        cmocka_unit_test(duplicates_are_named_as_kubernetes_does),
        cmocka_unit_test(a_duplicate_inside_an_array_at_the_top_starts_with_its_index),
        cmocka_unit_test(paths_come_in_document_order_and_once_each),
        cmocka_unit_test(no_more_than_the_cap_of_duplicates_is_listed),
        cmocka_unit_test(a_long_path_is_cut_at_a_step),
        cmocka_unit_test(very_many_duplicates_take_little_time),
        cmocka_unit_test(a_duplicate_fails_with_its_path_when_asked),
        cmocka_unit_test(a_pair_of_equal_keys_is_found_at_any_place_and_size),
        cmocka_unit_test(keys_that_only_resemble_each_other_are_kept),
        cmocka_unit_test(depth_is_limited_by_default_and_by_option),
        cmocka_unit_test(a_million_open_brackets_are_refused_early),
        cmocka_unit_test(size_is_limited_by_option),
        cmocka_unit_test(the_cap_of_the_arena_is_respected),
        cmocka_unit_test(large_containers_outgrow_every_first_size),
        cmocka_unit_test(kept_scratch_serves_many_texts),
        cmocka_unit_test(errors_tell_line_column_offset_and_what_was_found),
        cmocka_unit_test(every_failed_allocation_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
