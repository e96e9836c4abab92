/* alloc_test.c - what allocations promise, and the faults that other tests ask for. */
#include "test_support.h"

#include <string.h>

#include "alloc.h"

static void zero_bytes_are_an_allocation_too(void **state)
{
    (void)state;
    char *a = vg_malloc(0), *b = vg_calloc(0, 8), *c = vg_realloc(NULL, 0);
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    vg_free(a);
    vg_free(b);
    vg_free(c);
    vg_free(NULL);
}

static void new_is_zeroed(void **state)
{
    (void)state;
    struct pair {
        int a;
        void *b;
    } *p = vg_new(struct pair);
    assert_non_null(p);
    assert_int_equal(p->a, 0);
    assert_null(p->b);
    vg_free(p);
}

static void reallocarray_refuses_an_overflow_and_keeps_the_block(void **state)
{
    (void)state;
    char *p = vg_malloc(4);
    assert_non_null(p);
    memcpy(p, "abc", 4);
    volatile size_t half = SIZE_MAX / 2;
    assert_null(vg_reallocarray(p, half, 4));
    assert_string_equal(p, "abc");
    char *q = vg_reallocarray(p, 2, 4);
    assert_non_null(q);
    assert_string_equal(q, "abc");
    vg_free(q);
}

static void strndup_copies_exactly_n_bytes(void **state)
{
    (void)state;
    char *s = vg_strndup("abcdef", 3), *all = vg_strdup("abc"), *none = vg_strndup(NULL, 0);
    assert_string_equal(s, "abc");
    assert_string_equal(all, "abc");
    assert_string_equal(none, "");
    volatile size_t huge = SIZE_MAX;
    assert_null(vg_strndup("abc", huge));
    vg_free(s);
    vg_free(all);
    vg_free(none);
}

static void the_nth_allocation_fails_once(void **state)
{
    (void)state;
    vg_alloc_fail_at(2, 0);
    void *a = vg_malloc(1), *b = vg_malloc(1), *c = vg_malloc(1);
    assert_int_equal(vg_alloc_fail_at(0, 0), 3);
    assert_non_null(a);
    assert_null(b);
    assert_non_null(c);
    vg_free(a);
    vg_free(c);
}

static void a_failed_realloc_leaves_the_block(void **state)
{
    (void)state;
    char *p = vg_strdup("kept");
    vg_alloc_fail_at(1, 0);
    char *q = vg_realloc(p, 100);
    vg_alloc_fail_at(0, 0);
    assert_null(q);
    assert_string_equal(p, "kept");
    vg_free(p);
}

static void count_one(unsigned index, void *arg)
{
    (void)index;
    void **slot = arg;
    *slot = vg_malloc(1);
}

static void another_thread_does_not_meet_the_fault_of_this_one(void **state)
{
    (void)state;
    void *theirs = NULL;
    vg_alloc_fail_at(1, 0);
    vg_test_threads(1, count_one, &theirs);
    void *mine = vg_malloc(1);
    assert_int_equal(vg_alloc_fail_at(0, 0), 1);
    assert_non_null(theirs);
    assert_null(mine);
    vg_free(theirs);
}

static void all_threads_meets_the_fault_of_another_thread(void **state)
{
    (void)state;
    void *theirs = NULL;
    vg_alloc_fail_at(1, 1);
    vg_test_threads(1, count_one, &theirs);
    assert_int_equal(vg_alloc_fail_at(0, 0), 1);
    assert_null(theirs);
}

static void the_fail_loop_fails_each_allocation_in_turn(void **state)
{
    (void)state;
    uint64_t runs = 0, failed = 0;
    VG_ALLOC_FAIL_LOOP (n) {
        void *a = vg_malloc(1), *b = vg_malloc(1);
        assert_int_equal(n, ++runs);
        assert_int_equal(!a, n == 1);
        assert_int_equal(!b, n == 2);
        failed += vg_test_alloc_failed();
        vg_free(a);
        vg_free(b);
    }
    assert_int_equal(runs, 3);
    assert_int_equal(failed, 2);
}

static void touching_ahead_changes_no_block(void **state)
{
    (void)state;
    enum { N = 4096, SIZE = 3000 };
    static char *blocks[N];
    vg_alloc_touch_ahead(NULL);
    for (int i = 0; i < N; i++) {
        blocks[i] = vg_malloc(SIZE);
        assert_non_null(blocks[i]);
        memset(blocks[i], i & 0xFF, SIZE);
        vg_alloc_touch_ahead(blocks[i]);
    }
    for (int i = 0; i < N; i++) {
        assert_int_equal((unsigned char)blocks[i][0], i & 0xFF);
        assert_int_equal((unsigned char)blocks[i][SIZE - 1], i & 0xFF);
        vg_free(blocks[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_bytes_are_an_allocation_too),
        cmocka_unit_test(new_is_zeroed),
        cmocka_unit_test(reallocarray_refuses_an_overflow_and_keeps_the_block),
        cmocka_unit_test(strndup_copies_exactly_n_bytes),
        cmocka_unit_test(the_nth_allocation_fails_once),
        cmocka_unit_test(a_failed_realloc_leaves_the_block),
        cmocka_unit_test(another_thread_does_not_meet_the_fault_of_this_one),
        cmocka_unit_test(all_threads_meets_the_fault_of_another_thread),
        cmocka_unit_test(the_fail_loop_fails_each_allocation_in_turn),
        cmocka_unit_test(touching_ahead_changes_no_block),
    };
    return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}
