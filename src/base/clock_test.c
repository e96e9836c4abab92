/* clock_test.c - the fake clock that tests turn by hand, and the system's. */
#include "test_support.h"

#include <errno.h>

#include "clock.h"

static void the_system_clock_goes_forward(void **state)
{
    (void)state;
    const struct vg_clock *c = vg_clock_system();
    uint64_t before = vg_clock_mono_ns(c);
    assert_true(vg_clock_mono_ns(c) >= before);
    assert_true(before > 0);
    assert_true(vg_clock_wall_ms(c) > INT64_C(1704067200000));
    assert_false(vg_clock_is_fake(c));
}

static void a_fake_clock_stands_still_until_moved(void **state)
{
    (void)state;
    struct vg_fake_clock f;
    vg_fake_clock_init(&f);
    assert_true(vg_clock_is_fake(&f.clock));
    assert_int_equal(vg_clock_mono_ns(&f.clock), VG_NS_PER_S);
    assert_int_equal(vg_clock_wall_ms(&f.clock), INT64_C(1704067200000));
    vg_fake_clock_advance(&f, 1500 * VG_NS_PER_US);
    assert_int_equal(vg_clock_mono_ns(&f.clock), VG_NS_PER_S + 1500 * VG_NS_PER_US);
    assert_int_equal(vg_clock_wall_ms(&f.clock), INT64_C(1704067200001));
    vg_fake_clock_advance(&f, 500 * VG_NS_PER_US);
    assert_int_equal(vg_clock_wall_ms(&f.clock), INT64_C(1704067200002));
    vg_fake_clock_done(&f);
}

static void wall_time_jumps_without_moving_monotonic_time(void **state)
{
    (void)state;
    struct vg_fake_clock f;
    vg_fake_clock_init(&f);
    vg_fake_clock_set_wall(&f, -1);
    assert_int_equal(vg_clock_wall_ms(&f.clock), -1);
    assert_int_equal(vg_clock_mono_ns(&f.clock), VG_NS_PER_S);
    vg_fake_clock_advance(&f, 1);
    assert_int_equal(vg_clock_wall_ms(&f.clock), -1);
    vg_fake_clock_advance(&f, VG_NS_PER_MS);
    assert_int_equal(vg_clock_wall_ms(&f.clock), 0);
    vg_fake_clock_done(&f);
}

static void count_call(void *arg)
{
    ++*(int *)arg;
}

static void hooks_run_on_every_move_until_removed(void **state)
{
    (void)state;
    struct vg_fake_clock f;
    int a = 0, b = 0;
    vg_fake_clock_init(&f);
    assert_int_equal(vg_clock_on_advance(&f.clock, count_call, &a), 0);
    assert_int_equal(vg_clock_on_advance(&f.clock, count_call, &b), 0);
    vg_fake_clock_advance(&f, 1);
    vg_fake_clock_set_wall(&f, 5);
    vg_clock_off_advance(&f.clock, count_call, &a);
    vg_clock_off_advance(&f.clock, count_call, &a);
    vg_fake_clock_advance(&f, 1);
    assert_int_equal(a, 2);
    assert_int_equal(b, 3);
    vg_fake_clock_done(&f);
}

static void too_many_hooks_are_refused(void **state)
{
    (void)state;
    struct vg_fake_clock f;
    int n[VG_CLOCK_HOOKS_MAX + 1] = {0};
    vg_fake_clock_init(&f);
    for (size_t i = 0; i < VG_CLOCK_HOOKS_MAX; i++)
        assert_int_equal(vg_clock_on_advance(&f.clock, count_call, &n[i]), 0);
    assert_int_equal(vg_clock_on_advance(&f.clock, count_call, &n[VG_CLOCK_HOOKS_MAX]), -ENOSPC);
    vg_fake_clock_done(&f);
}

static void the_system_clock_accepts_hooks_and_never_calls(void **state)
{
    (void)state;
    int a = 0;
    assert_int_equal(vg_clock_on_advance(vg_clock_system(), count_call, &a), 0);
    vg_clock_off_advance(vg_clock_system(), count_call, &a);
    assert_int_equal(a, 0);
}

static void move_and_read(unsigned index, void *arg)
{
    struct vg_fake_clock *f = arg;
    uint64_t last = 0;
    for (int i = 0; i < 1000; i++) {
        if (index % 2 == 0)
            vg_fake_clock_advance(f, 3);
        uint64_t now = vg_clock_mono_ns(&f->clock);
        assert_true(now >= last);
        last = now;
    }
}

static void many_threads_may_move_and_read_it(void **state)
{
    (void)state;
    struct vg_fake_clock f;
    int calls = 0; /* hooks run under the clock's lock, so a plain int will do */
    vg_fake_clock_init(&f);
    assert_int_equal(vg_clock_on_advance(&f.clock, count_call, &calls), 0);
    vg_test_threads(4, move_and_read, &f);
    assert_int_equal(vg_clock_mono_ns(&f.clock), VG_NS_PER_S + 2 * 1000 * 3);
    assert_int_equal(calls, 2000);
    vg_fake_clock_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_system_clock_goes_forward),
        cmocka_unit_test(a_fake_clock_stands_still_until_moved),
        cmocka_unit_test(wall_time_jumps_without_moving_monotonic_time),
        cmocka_unit_test(hooks_run_on_every_move_until_removed),
        cmocka_unit_test(too_many_hooks_are_refused),
        cmocka_unit_test(the_system_clock_accepts_hooks_and_never_calls),
        cmocka_unit_test(many_threads_may_move_and_read_it),
    };
    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
