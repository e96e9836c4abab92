/* rng_test.c - known numbers, bounds, and the kernel's bytes. */
#include "test_support.h"

#include <string.h>

#include "rng.h"

static void the_same_seed_gives_the_same_numbers(void **state)
{
    (void)state;
    struct vg_rng a, b;
    vg_rng_seed(&a, 42);
    vg_rng_seed(&b, 42);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(vg_rng_u64(&a), vg_rng_u64(&b));
    vg_rng_seed(&b, 43);
    assert_int_not_equal(vg_rng_u64(&a), vg_rng_u64(&b));
}

/* The first outputs for the state 1, 2, 3, 4, worked out by hand from the definition. */
static void the_generator_is_xoshiro256_starstar(void **state)
{
    (void)state;
    struct vg_rng r = {{1, 2, 3, 4}};
    assert_int_equal(vg_rng_u64(&r), 11520);
    assert_int_equal(vg_rng_u64(&r), 0);
    assert_int_equal(vg_rng_u64(&r), 1509978240);
}

static void below_stays_below_and_reaches_every_value(void **state)
{
    (void)state;
    struct vg_rng r;
    vg_rng_seed(&r, vg_test_seed());
    unsigned seen[10] = {0};
    for (int i = 0; i < 10000; i++) {
        uint64_t x = vg_rng_below(&r, 10);
        assert_in_range(x, 0, 9);
        seen[x]++;
    }
    for (size_t i = 0; i < 10; i++)
        assert_in_range(seen[i], 700, 1300);
    assert_int_equal(vg_rng_below(&r, 1), 0);
    for (int i = 0; i < 100; i++)
        assert_true(vg_rng_below(&r, UINT64_MAX) < UINT64_MAX);
}

static void bytes_fill_exactly_what_is_asked(void **state)
{
    (void)state;
    struct vg_rng r;
    vg_rng_seed(&r, 7);
    unsigned char out[24];
    for (size_t n = 0; n < 20; n++) {
        memset(out, 0xA5, sizeof out);
        vg_rng_bytes(&r, out, n);
        for (size_t i = n; i < sizeof out; i++)
            assert_int_equal(out[i], 0xA5);
    }
}

static void the_kernel_gives_different_bytes_each_time(void **state)
{
    (void)state;
    unsigned char a[300] = {0}, b[300] = {0};
    assert_int_equal(vg_random_bytes(a, sizeof a), 0);
    assert_int_equal(vg_random_bytes(b, sizeof b), 0);
    assert_memory_not_equal(a, b, sizeof a);
    assert_int_equal(vg_random_bytes(NULL, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_gives_the_same_numbers),
        cmocka_unit_test(the_generator_is_xoshiro256_starstar),
        cmocka_unit_test(below_stays_below_and_reaches_every_value),
        cmocka_unit_test(bytes_fill_exactly_what_is_asked),
        cmocka_unit_test(the_kernel_gives_different_bytes_each_time),
    };
    return cmocka_run_group_tests_name("rng", tests, NULL, NULL);
}
