/* hist_test.c - quantiles are right to three percent, whatever the size of the values. */
#include "test_support.h"

#include "hist.h"

static bool is_near(double got, double want)
{
    return got >= want * 0.96 && got <= want * 1.04;
}

static void quantiles_are_near(void **state)
{
    (void)state;
    for (uint64_t unit = 1; unit < UINT64_C(1) << 40; unit *= 1000) {
        static struct vg_hist h;
        h = (struct vg_hist){0};
        for (uint64_t i = 1; i <= 1000; i++)
            vg_hist_add(&h, i * unit);
        assert_true(is_near(vg_hist_ns(&h, 0.5), 500.0 * (double)unit));
        assert_true(is_near(vg_hist_ns(&h, 0.99), 990.0 * (double)unit));
        assert_true(vg_hist_ns(&h, 1) == 1000.0 * (double)unit);
    }
}

static void an_empty_one_is_zero(void **state)
{
    (void)state;
    static const struct vg_hist h;
    assert_true(vg_hist_ns(&h, 0.5) == 0);
}

static void merging_is_adding_all(void **state)
{
    (void)state;
    static struct vg_hist a, b, both;
    for (uint64_t i = 0; i < 5000; i++) {
        vg_hist_add(i % 3 ? &a : &b, i * i);
        vg_hist_add(&both, i * i);
    }
    vg_hist_merge(&a, &b);
    assert_memory_equal(&a, &both, sizeof a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_near),
        cmocka_unit_test(an_empty_one_is_zero),
        cmocka_unit_test(merging_is_adding_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
