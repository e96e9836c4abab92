/* scan_test.c - finding things in bytes: paths, iteration, raw strings, and safety on broken bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "json/scan.h"
#include "json/skip.h"

static struct vg_slice the_pod(void)
{
    return VG_SLICE_LIT(
        "{\"kind\":\"Pod\",\"metadata\":{\"labels\":{\"a/b\":\"c\"},\"name\":\"web-1\"},"
        "\"spec\":{\"containers\":[{\"name\":\"x\",\"args\":[\"}\",\"]\",\"\\\"{\"]},"
        "{\"name\":\"y\"}]},\"esc\\u0061ped\":-1.5e3}");
}

/* n steps; a step that starts with '#' is an index. */
static int find(struct vg_slice text, size_t n, const char *const *steps, struct vg_slice *ret)
{
    struct vg_json_step path[8];
    assert_true(n <= VG_ARRAY_LEN(path));
    for (size_t i = 0; i < n; i++)
        path[i] = steps[i][0] == '#' ? vg_json_step_index((size_t)strtoul(steps[i] + 1, NULL, 10))
                                     : vg_json_step_key(steps[i]);
    return vg_json_find(text, path, n, ret);
}

#define STEPS(...)                                                                                 \
    VG_ARRAY_LEN(((const char *[]){__VA_ARGS__})), (const char *[])                                \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static void assert_found(struct vg_slice text, size_t n, const char *const *steps, const char *want)
{
    struct vg_slice v;
    assert_int_equal(find(text, n, steps, &v), 0);
    if (!vg_slice_eq(v, vg_slice_str(want)))
        fail_msg("found %.*s, not %s", VG_SLICE_ARG(v), want);
}

static void paths_of_keys_and_indexes_find_their_values(void **state)
{
    (void)state;
    assert_found(the_pod(), STEPS("kind"), "\"Pod\"");
    assert_found(the_pod(), STEPS("metadata", "name"), "\"web-1\"");
    assert_found(the_pod(), STEPS("metadata", "labels"), "{\"a/b\":\"c\"}");
    assert_found(the_pod(), STEPS("metadata", "labels", "a/b"), "\"c\"");
    assert_found(the_pod(), STEPS("spec", "containers", "#1", "name"), "\"y\"");
    assert_found(the_pod(), STEPS("spec", "containers", "#0", "args", "#2"), "\"\\\"{\"");
    assert_found(the_pod(), STEPS("escaped"), "-1.5e3");
    struct vg_slice whole;
    assert_int_equal(vg_json_find(the_pod(), NULL, 0, &whole), 0);
    assert_int_equal(whole.n, the_pod().n);
}

static void what_is_not_there_is_not_found(void **state)
{
    (void)state;
    struct vg_slice v;
    assert_int_equal(find(the_pod(), STEPS("absent"), &v), VIGIL_E_NOT_FOUND);
    assert_int_equal(find(the_pod(), STEPS("kin"), &v), VIGIL_E_NOT_FOUND);
    assert_int_equal(find(the_pod(), STEPS("kind", "x"), &v), VIGIL_E_NOT_FOUND);
    assert_int_equal(find(the_pod(), STEPS("#0"), &v), VIGIL_E_NOT_FOUND);
    assert_int_equal(find(the_pod(), STEPS("spec", "containers", "name"), &v), VIGIL_E_NOT_FOUND);
    assert_int_equal(find(the_pod(), STEPS("spec", "containers", "#2"), &v), VIGIL_E_NOT_FOUND);
}

static void white_space_is_passed_and_not_returned(void **state)
{
    (void)state;
    struct vg_slice text = VG_SLICE_LIT(" \n{ \"a\" :\t[ 1 , { \"b\" : null } ] , \"c\" : 2 } ");
    assert_found(text, STEPS("a", "#0"), "1");
    assert_found(text, STEPS("a", "#1", "b"), "null");
    assert_found(text, STEPS("c"), "2");
    assert_found(text, STEPS("a"), "[ 1 , { \"b\" : null } ]");
}

static void members_come_in_order_with_raw_keys(void **state)
{
    (void)state;
    struct vg_json_iter it;
    struct vg_json_raw raw;
    const char *keys[] = {"kind", "metadata", "spec", "esc\\u0061ped"};
    assert_int_equal(vg_json_iter_init(&it, the_pod()), 0);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(vg_json_iter_next(&it, &raw), 1);
        assert_true(vg_slice_eq(raw.key, vg_slice_str(keys[i])));
        assert_int_equal(raw.key_is_escaped, i == 3);
    }
    assert_true(vg_json_raw_key_eq(raw.key, VG_SLICE_LIT("escaped")));
    assert_false(vg_json_raw_key_eq(raw.key, VG_SLICE_LIT("escape")));
    assert_false(vg_json_raw_key_eq(raw.key, VG_SLICE_LIT("escapedd")));
    assert_int_equal(vg_json_iter_next(&it, &raw), 0);
    assert_ptr_equal(it.p, the_pod().p + the_pod().n);
}

static void going_down_and_up_sees_the_same_members(void **state)
{
    (void)state;
    struct vg_slice text = VG_SLICE_LIT("{\"a\":{\"b\":{\"c\":\"}\"},\"d\":[{}]},\"e\":1}");
    for (int seen = 0; seen <= 3; seen++) { /* of the inner members, before we go up again */
        struct vg_json_iter it, inner;
        struct vg_json_raw raw;
        int r = 1;
        assert_int_equal(vg_json_iter_init(&it, text), 0);
        assert_int_equal(vg_json_iter_key(&it, &raw), 1);
        assert_true(vg_json_iter_down(&it, &inner));
        for (int i = 0; i < seen; i++)
            r = vg_json_iter_next(&inner, &raw);
        assert_int_equal(r, seen < 3);
        assert_int_equal(vg_json_iter_up(&it, &inner, r == 0), 0);
        assert_int_equal(vg_json_iter_key(&it, &raw), 1);
        assert_true(vg_slice_eq(raw.key, VG_SLICE_LIT("e")));
        assert_false(vg_json_iter_down(&it, &inner));
        assert_int_equal(vg_json_iter_value(&it, &raw.value), 0);
        assert_true(vg_slice_eq(raw.value, VG_SLICE_LIT("1")));
        assert_int_equal(vg_json_iter_key(&it, &raw), 0);
    }
}

static void items_come_in_order_without_keys(void **state)
{
    (void)state;
    struct vg_json_iter it;
    struct vg_json_raw raw;
    assert_int_equal(vg_json_iter_init(&it, VG_SLICE_LIT("[1,\"a\",[],{}]")), 0);
    const char *values[] = {"1", "\"a\"", "[]", "{}"};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(vg_json_iter_next(&it, &raw), 1);
        assert_null(raw.key.p);
        assert_true(vg_slice_eq(raw.value, vg_slice_str(values[i])));
    }
    assert_int_equal(vg_json_iter_next(&it, &raw), 0);
    assert_int_equal(vg_json_iter_init(&it, VG_SLICE_LIT("\"a\"")), VIGIL_E_JSON_TYPE);
    assert_int_equal(vg_json_iter_init(&it, VG_SLICE_LIT(" ")), VIGIL_E_JSON_SYNTAX);
    assert_int_equal(vg_json_iter_init(&it, (struct vg_slice){NULL, 0}), VIGIL_E_JSON_SYNTAX);
}

static void raw_strings_are_unescaped_only_when_they_must(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_slice s, plain = VG_SLICE_LIT("\"abc\"");
    assert_int_equal(vg_json_raw_text(&a, plain, &s), 0);
    assert_ptr_equal(s.p, plain.p + 1);
    assert_int_equal(s.n, 3);
    assert_int_equal(vg_json_raw_text(&a, VG_SLICE_LIT("\"a\\n\\ud83d\\ude00\""), &s), 0);
    assert_true(vg_slice_eq(s, VG_SLICE_LIT("a\n\xf0\x9f\x98\x80")));
    assert_int_equal(vg_json_raw_text(&a, VG_SLICE_LIT("\"\""), &s), 0);
    assert_int_equal(s.n, 0);
    assert_int_equal(vg_json_raw_text(&a, VG_SLICE_LIT("1"), &s), VIGIL_E_JSON_TYPE);
    assert_int_equal(vg_json_raw_text(&a, VG_SLICE_LIT(""), &s), VIGIL_E_JSON_TYPE);
    assert_int_equal(vg_json_raw_text(&a, VG_SLICE_LIT("\"a"), &s), VIGIL_E_JSON_SYNTAX);
    assert_int_equal(vg_json_raw_text(&a, VG_SLICE_LIT("\"a\"b"), &s), VIGIL_E_JSON_SYNTAX);
    assert_int_equal(vg_json_raw_text(&a, VG_SLICE_LIT("\"\\x\""), &s), VIGIL_E_JSON_SYNTAX);
    vg_arena_done(&a);
    vg_alloc_fail_at(1, 0);
    assert_int_equal(vg_json_raw_text(&a, VG_SLICE_LIT("\"\\n\""), &s), -ENOMEM);
    vg_alloc_fail_at(0, 0);
}

static void malformed_bytes_are_reported(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",         " ",        "{",          "{\"a\"",       "{\"a\":",     "{\"a\" 1}",
        "{\"b\":1", "{\"b\":[", "{\"b\":\"x", "{\"b\":\"x\\", "{\"b\":1 2}", "{,\"a\":1}",
        "{a:1}",    "{\"b\":}", "{\"b\":{]",  "{\"b\":,}",    "{\"b\\",      "{\"b\\\"",
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(bad); i++) {
        size_t n = strlen(bad[i]);
        char *copy = malloc(n ? n : 1);
        assert_non_null(copy);
        memcpy(copy, bad[i], n);
        struct vg_slice v;
        int r = find(vg_slice(copy, n), STEPS("a"), &v);
        if (r != VIGIL_E_JSON_SYNTAX)
            fail_msg("%s: %s", bad[i], vg_err_name(r));
        free(copy);
    }
}

/* Brackets, quotes and runs of backslashes at every offset of the 64-byte blocks. */
static void containers_end_at_the_same_place_wherever_blocks_fall(void **state)
{
    (void)state;
    for (size_t pad = 0; pad < 140; pad++) {
        for (size_t slashes = 0; slashes < 6; slashes += 2) {
            VG_AUTO(buf) b = {0};
            assert_int_equal(vg_buf_append(&b, "[{\"k\":\"", 7), 0);
            for (size_t i = 0; i < pad; i++)
                assert_int_equal(vg_buf_append_byte(&b, i % 3 ? '}' : ']'), 0);
            for (size_t i = 0; i < slashes; i++)
                assert_int_equal(vg_buf_append_byte(&b, '\\'), 0);
            assert_int_equal(vg_buf_append(&b, "\\\"]}\",\"l\":[[{}]]}", 17), 0);
            size_t inner = b.n - 1;
            assert_int_equal(vg_buf_append(&b, ",7]", 3), 0);
            char *copy = malloc(b.n);
            assert_non_null(copy);
            memcpy(copy, b.p, b.n);
            struct vg_slice v;
            assert_int_equal(find(vg_slice(copy, b.n), STEPS("#0"), &v), 0);
            assert_int_equal(v.n, inner);
            for (int way = VG_JSON_SKIP_PLAIN; way <= VG_JSON_SKIP_AVX2; way++)
                assert_ptr_equal(
                    vg_json_skip_container_by((enum vg_json_skip_way)way, copy + 1, copy + b.n),
                    copy + 1 + inner);
            assert_found(vg_slice(copy, b.n), STEPS("#1"), "7");
            assert_found(vg_slice(copy, b.n), STEPS("#0", "l"), "[[{}]]");
            free(copy);
        }
    }
}

static void deep_nesting_costs_no_stack(void **state)
{
    (void)state;
    size_t depth = 2000000;
    char *p = malloc(2 * depth);
    assert_non_null(p);
    memset(p, '[', depth);
    memset(p + depth, ']', depth);
    struct vg_slice v;
    assert_int_equal(vg_json_find(vg_slice(p, 2 * depth), NULL, 0, &v), 0);
    assert_int_equal(v.n, 2 * depth);
    assert_int_equal(vg_json_find(vg_slice(p, 2 * depth - 1), NULL, 0, &v), VIGIL_E_JSON_SYNTAX);
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_of_keys_and_indexes_find_their_values),
        cmocka_unit_test(what_is_not_there_is_not_found),
        cmocka_unit_test(white_space_is_passed_and_not_returned),
        cmocka_unit_test(members_come_in_order_with_raw_keys),
        cmocka_unit_test(going_down_and_up_sees_the_same_members),
        cmocka_unit_test(items_come_in_order_without_keys),
        cmocka_unit_test(raw_strings_are_unescaped_only_when_they_must),
        cmocka_unit_test(malformed_bytes_are_reported),
        cmocka_unit_test(containers_end_at_the_same_place_wherever_blocks_fall),
        cmocka_unit_test(deep_nesting_costs_no_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
