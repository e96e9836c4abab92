/* equal_test.c - values that are equal, and those that only look so. */
#include "test_support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "doc_testing.h"
#include "equal.h"

static int equal_texts(const char *a, const char *b)
{
    VG_AUTO(arena) arena = {0};
    const struct vg_json *x = vg_doc(&arena, a), *y = vg_doc(&arena, b);
    int r = vg_json_equal(x, y);
    assert_int_equal(vg_json_equal(y, x), r);
    return r;
}

struct pair {
    const char *a, *b;
};

static void numbers_of_equal_value_are_equal(void **state)
{
    static const struct pair rows[] = {
        {"1", "1.0"},
        {"1", "1e0"},
        {"1", "10e-1"},
        {"1", "0.1e1"},
        {"1", "0.001E+3"},
        {"100", "1e2"},
        {"0", "-0"},
        {"0", "0.000e99999999999999999999"},
        {"-0.0", "0e-1"},
        {"12.50", "125e-1"},
        {"1200", "12e00002"},
        {"123456789012345678901234567890", "1.2345678901234567890123456789e29"},
        {"1e1000000000000000000000", "10e999999999999999999999"},
        {"1e-1000000000000000000000", "0.1e-999999999999999999999"},
        {"0.01e99999999999999999999", "1e99999999999999999997"},
        {"100e-2", "1e-0"},
        {"0.00012", "1.2e-4"},
    };
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        if (equal_texts(rows[i].a, rows[i].b) != 1)
            fail_msg("%s and %s", rows[i].a, rows[i].b);
    }
}

static void numbers_of_different_value_differ(void **state)
{
    static const struct pair rows[] = {
        {"1", "-1"},
        {"1", "10"},
        {"1", "0.1"},
        {"1", "0"},
        {"12", "21"},
        {"12", "123"},
        {"1.2", "12"},
        {"9007199254740992", "9007199254740993"}, /* the same double */
        {"0.1", "0.1000000000000000055511151231257827"},
        {"1e400", "1e401"}, /* both infinite as doubles */
        {"1e1000000000000000000000", "1e1000000000000000000001"},
        {"1e1000000000000000000000", "1e-1000000000000000000000"},
        {"1e18446744073709551616", "1"}, /* 2^64 */
        {"1e4294967296", "1"},
    };
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        if (equal_texts(rows[i].a, rows[i].b) != 0)
            fail_msg("%s and %s", rows[i].a, rows[i].b);
    }
}

static void values_are_compared_deeply_and_members_unordered(void **state)
{
    static const struct {
        const char *a, *b;
        int equal;
    } rows[] = {
        {"null", "null", 1},
        {"true", "true", 1},
        {"true", "false", 0},
        {"null", "false", 0},
        {"'a'", "'\\u0061'", 1},
        {"'a'", "'A'", 0},
        {"'1'", "1", 0},
        {"'\\u0000'", "''", 0},
        {"[]", "{}", 0},
        {"[]", "[]", 1},
        {"{}", "{}", 1},
        {"[1,2]", "[2,1]", 0},
        {"[1,2]", "[1.0,2.0]", 1},
        {"[1]", "[1,1]", 0},
        {"{'a':1,'b':[{'c':2,'d':3}]}", "{'b':[{'d':3,'c':2}],'a':1}", 1},
        {"{'a':1,'b':2}", "{'a':1,'c':2}", 0},
        {"{'a':null}", "{}", 0},
        {"{'a':null}", "{'b':null}", 0},
        {"[[[1]],[[2]]]", "[[[1]],[[3]]]", 0},
    };
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        if (equal_texts(rows[i].a, rows[i].b) != rows[i].equal)
            fail_msg("%s and %s", rows[i].a, rows[i].b);
    }
}

static void nothing_equals_only_nothing(void **state)
{
    (void)state;
    struct vg_json null = vg_json_null();
    assert_int_equal(vg_json_equal(NULL, NULL), 1);
    assert_int_equal(vg_json_equal(&null, NULL), 0);
    assert_int_equal(vg_json_equal(NULL, &null), 0);
}

static void nested(struct vg_buf *b, uint32_t depth, const char *core)
{
    for (uint32_t i = 0; i < depth; i++)
        assert_int_equal(vg_buf_append(b, i % 2 ? "[" : "{'k':", i % 2 ? 1 : 5), 0);
    assert_int_equal(vg_buf_append(b, core, strlen(core)), 0);
    for (uint32_t i = depth; i-- > 0;)
        assert_int_equal(vg_buf_append(b, i % 2 ? "]" : "}", 1), 0);
    assert_int_equal(vg_buf_append_byte(b, '\0'), 0);
}

static void the_deepest_trees_are_compared(void **state)
{
    (void)state;
    VG_AUTO(buf) one = {0};
    VG_AUTO(buf) two = {0};
    VG_AUTO(arena) arena = {0};
    nested(&one, VG_JSON_DEPTH_MAX, "1");
    nested(&two, VG_JSON_DEPTH_MAX, "2");
    struct vg_json *a = vg_doc(&arena, one.p), *b = vg_doc(&arena, two.p);
    struct vg_json *again = vg_doc(&arena, one.p);
    assert_int_equal(vg_json_equal(a, again), 1);
    assert_int_equal(vg_json_equal(a, b), 0);
}

/* n members "k<i>": i, rising or falling. */
static struct vg_json large_object(struct vg_arena *a, uint32_t n, bool falling)
{
    struct vg_json obj = vg_json_object();
    for (uint32_t i = 0; i < n; i++) {
        char key[16];
        uint32_t which = falling ? n - 1 - i : i;
        int len = snprintf(key, sizeof key, "k%u", which);
        struct vg_json v;
        assert_int_equal(vg_json_make_uint(a, which, &v), 0);
        char *copy = vg_arena_copy(a, key, (size_t)len);
        assert_non_null(copy);
        assert_int_equal(vg_json_object_add(a, &obj, vg_slice(copy, (size_t)len), v), 0);
    }
    return obj;
}

/* Quadratic search would take minutes here. */
static void large_objects_in_opposite_order_are_compared_fast(void **state)
{
    (void)state;
    VG_AUTO(arena) arena = {0};
    struct vg_json a = large_object(&arena, 300000, false), b = large_object(&arena, 300000, true);
    assert_int_equal(vg_json_equal(&a, &b), 1);
    b.members[0].value = vg_json_null();
    assert_int_equal(vg_json_equal(&a, &b), 0);
}

static void a_random_document_equals_its_clone_and_no_change_of_it(void **state)
{
    (void)state;
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed());
    for (int round = 0; round < 2000; round++) {
        VG_AUTO(arena) arena = {0};
        struct vg_random_doc d = {&arena, &rng, true, 5};
        struct vg_json a = vg_random_object(&d, 5), b;
        assert_int_equal(vg_json_clone(&arena, &a, &b), 0);
        assert_int_equal(vg_json_equal(&a, &b), 1);
        assert_int_equal(vg_json_object_add(&arena, &b, VG_SLICE_LIT("one more"), vg_json_null()),
                         0);
        assert_int_equal(vg_json_equal(&a, &b), 0);
    }
}

static void comparing_survives_failing_allocations(void **state)
{
    (void)state;
    VG_AUTO(arena) arena = {0};
    struct vg_json a = large_object(&arena, 50, false), b = large_object(&arena, 50, true);
    VG_ALLOC_FAIL_LOOP (n) {
        int r = vg_json_equal(&a, &b);
        assert_int_equal(r, vg_test_alloc_failed() ? -ENOMEM : 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_equal_value_are_equal),
        cmocka_unit_test(numbers_of_different_value_differ),
        cmocka_unit_test(values_are_compared_deeply_and_members_unordered),
        cmocka_unit_test(nothing_equals_only_nothing),
        cmocka_unit_test(the_deepest_trees_are_compared),
        cmocka_unit_test(large_objects_in_opposite_order_are_compared_fast),
        cmocka_unit_test(a_random_document_equals_its_clone_and_no_change_of_it),
        cmocka_unit_test(comparing_survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
