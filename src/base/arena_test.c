/* arena_test.c - alignment, growth, reset and the cap of an arena. */
#include "test_support.h"

#include <string.h>

#include "arena.h"

static bool is_aligned(const void *p, size_t align)
{
    return (uintptr_t)p % align == 0;
}

static void every_alignment_up_to_sixteen_is_kept(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    for (size_t i = 0; i < 5000; i++) {
        size_t align = (size_t)1 << (i % 5), size = i % 37 + 1;
        char *p = vg_arena_alloc(&a, size, align);
        assert_non_null(p);
        assert_true(is_aligned(p, align));
        memset(p, 0x5A, size); /* ASan sees overlap with the end of a chunk */
    }
}

static void allocations_do_not_overlap(void **state)
{
    (void)state;
    VG_AUTO(arena) a;
    char *p[300];
    vg_arena_init(&a, 64, 0);
    for (size_t i = 0; i < 300; i++) {
        p[i] = vg_arena_alloc(&a, i % 50 + 1, 1);
        assert_non_null(p[i]);
        memset(p[i], (int)(i % 256), i % 50 + 1);
    }
    for (size_t i = 0; i < 300; i++) {
        for (size_t k = 0; k < i % 50 + 1; k++)
            assert_int_equal((unsigned char)p[i][k], i % 256);
    }
}

static void a_request_larger_than_a_chunk_gets_its_own(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    size_t size = (size_t)3 << 20;
    char *small = vg_arena_alloc(&a, 10, 1), *big = vg_arena_alloc(&a, size, 16);
    char *after = vg_arena_alloc(&a, 10, 1);
    assert_non_null(small);
    assert_non_null(big);
    assert_non_null(after);
    assert_true(is_aligned(big, 16));
    memset(big, 1, size);
    assert_in_range(a.used, size, 2 * size);
}

static void a_size_that_overflows_is_refused(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    volatile size_t huge = SIZE_MAX;
    assert_null(vg_arena_alloc(&a, huge, 1));
    assert_null(vg_arena_array(&a, uint64_t, huge / 2));
    uint64_t *ok = vg_arena_array(&a, uint64_t, (size_t)10);
    assert_non_null(ok);
    assert_true(is_aligned(ok, _Alignof(uint64_t)));
}

static void the_cap_bounds_all_that_is_held(void **state)
{
    (void)state;
    VG_AUTO(arena) a;
    vg_arena_init(&a, 1024, 10000);
    size_t got = 0;
    while (vg_arena_alloc(&a, 100, 1)) {
        got += 100;
        assert_in_range(a.used, 1, 10000);
    }
    assert_in_range(got, 6000, 10000); /* most of it can be used */
    assert_null(vg_arena_alloc(&a, 9000, 1));
}

static void a_request_that_fits_the_cap_exactly_is_served(void **state)
{
    (void)state;
    VG_AUTO(arena) a;
    vg_arena_init(&a, 4096, 1000);
    char *p = vg_arena_alloc(&a, 900, 1);
    assert_non_null(p);
    memset(p, 1, 900);
    assert_null(vg_arena_alloc(&a, 900, 1));
}

static void reset_keeps_the_newest_chunk_and_stops_allocating(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    vg_arena_reset(&a);
    for (int round = 0; round < 20; round++) {
        if (round == 10)
            vg_alloc_fail_at(1, 0); /* from here on it may not allocate */
        for (int i = 0; i < 1000; i++) {
            char *p = vg_arena_alloc(&a, 16, 16);
            assert_non_null(p);
            memset(p, round, 16);
        }
        vg_arena_reset(&a);
    }
    assert_int_equal(vg_alloc_fail_at(0, 0), 0);
}

static void copies_are_the_same_bytes_elsewhere(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    const char text[] = "bytes";
    char *copy = vg_arena_copy(&a, text, sizeof text), *none = vg_arena_copy(&a, NULL, 0);
    assert_string_equal(copy, text);
    assert_ptr_not_equal(copy, text);
    assert_non_null(none);
    int *one = vg_arena_new(&a, int);
    assert_non_null(one);
    *one = 1;
}

static void no_memory_is_null_and_the_arena_stays_usable(void **state)
{
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        VG_AUTO(arena) a = {0};
        int failed = 0;
        for (int i = 0; i < 100; i++)
            failed += vg_arena_alloc(&a, 300, 8) == NULL;
        assert_int_equal(failed, vg_test_alloc_failed());
        assert_non_null(vg_arena_alloc(&a, 300, 8));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_alignment_up_to_sixteen_is_kept),
        cmocka_unit_test(allocations_do_not_overlap),
        cmocka_unit_test(a_request_larger_than_a_chunk_gets_its_own),
        cmocka_unit_test(a_size_that_overflows_is_refused),
        cmocka_unit_test(the_cap_bounds_all_that_is_held),
        cmocka_unit_test(a_request_that_fits_the_cap_exactly_is_served),
        cmocka_unit_test(reset_keeps_the_newest_chunk_and_stops_allocating),
        cmocka_unit_test(copies_are_the_same_bytes_elsewhere),
        cmocka_unit_test(no_memory_is_null_and_the_arena_stays_usable),
    };
    return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
