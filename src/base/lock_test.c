/* lock_test.c - mutexes know their owner, their order is checked, and waits end at their time. */
#include "test_support.h"

#include "clock.h"
#include "lock.h"

struct counted {
    struct vg_mutex mu;
    int n VG_GUARDED_BY(mu);
};

static void add_many(unsigned index, void *arg)
{
    (void)index;
    struct counted *c = arg;
    for (int i = 0; i < 5000; i++) {
        vg_mutex_lock(&c->mu);
        vg_mutex_assert_held(&c->mu);
        c->n++;
        vg_mutex_unlock(&c->mu);
    }
}

static void one_thread_at_a_time_is_inside(void **state)
{
    (void)state;
    struct counted c = {.n = 0};
    vg_mutex_init(&c.mu, VG_RANK_LOOP);
    vg_test_threads(4, add_many, &c);
    assert_int_equal(c.n, 4 * 5000);
    vg_mutex_done(&c.mu);
}

static void look_from_another_thread(unsigned index, void *arg)
{
    (void)index;
    struct vg_mutex *m = arg;
    assert_false(vg_mutex_is_held(m));
    assert_false(vg_mutex_try_lock(m));
}

static void a_mutex_knows_which_thread_holds_it(void **state)
{
    (void)state;
    struct vg_mutex m;
    vg_mutex_init(&m, VG_RANK_TAIL);
    assert_false(vg_mutex_is_held(&m));
    vg_mutex_lock(&m);
    assert_true(vg_mutex_is_held(&m));
    vg_test_threads(1, look_from_another_thread, &m);
    vg_mutex_unlock(&m);
    assert_false(vg_mutex_is_held(&m));
    bool got = vg_mutex_try_lock(&m);
    assert_true(got);
    if (got)
        vg_mutex_unlock(&m);
    vg_mutex_done(&m);
}

static void locks_in_order_may_be_released_in_any_order(void **state)
{
    (void)state;
    struct vg_mutex first, second, third;
    vg_mutex_init(&first, VG_RANK_STORE_STATE);
    vg_mutex_init(&second, VG_RANK_TAIL);
    vg_mutex_init(&third, VG_RANK_LOG);
    for (int i = 0; i < 100; i++) {
        vg_mutex_lock(&first);
        vg_mutex_lock(&second);
        vg_mutex_lock(&third);
        vg_mutex_unlock(&first);
        vg_mutex_unlock(&third);
        vg_mutex_unlock(&second);
    }
    vg_mutex_done(&first);
    vg_mutex_done(&second);
    vg_mutex_done(&third);
}

static void every_rank_has_a_name_and_a_meaning(void **state)
{
    (void)state;
    for (int i = 0; i < VG_RANK_COUNT; i++) {
        assert_true(vg_lock_rank_name((enum vg_lock_rank)i)[0] != '\0');
        assert_true(vg_lock_rank_guards((enum vg_lock_rank)i)[0] != '\0');
    }
    assert_string_equal(vg_lock_rank_name(VG_RANK_STORE_STATE), "STORE_STATE");
    assert_string_equal(vg_lock_rank_name(VG_RANK_COUNT), "unknown");
}

#ifdef VG_DEBUG_CHECKS
VG_NO_THREAD_SAFETY static void take_backwards(void *arg)
{
    (void)arg;
    struct vg_mutex low, high;
    vg_mutex_init(&low, VG_RANK_STORE_STATE);
    vg_mutex_init(&high, VG_RANK_LOOP);
    vg_mutex_lock(&high);
    vg_mutex_lock(&low);
}

VG_NO_THREAD_SAFETY static void take_backwards_below_a_released_one(void *arg)
{
    (void)arg;
    struct vg_mutex a, b, c;
    vg_mutex_init(&a, VG_RANK_STORE_STATE);
    vg_mutex_init(&b, VG_RANK_LOOP);
    vg_mutex_init(&c, VG_RANK_STORE_BASE);
    vg_mutex_lock(&a);
    vg_mutex_lock(&b);
    vg_mutex_unlock(&a);
    bool got = vg_mutex_try_lock(&c);
    (void)got;
}

VG_NO_THREAD_SAFETY static void take_twice(void *arg)
{
    (void)arg;
    struct vg_mutex m;
    vg_mutex_init(&m, VG_RANK_TAIL);
    vg_mutex_lock(&m);
    vg_mutex_lock(&m);
}

VG_NO_THREAD_SAFETY static void release_a_free_one(void *arg)
{
    (void)arg;
    struct vg_mutex m;
    vg_mutex_init(&m, VG_RANK_TAIL);
    vg_mutex_unlock(&m);
}

VG_NO_THREAD_SAFETY static void assert_a_free_one(void *arg)
{
    (void)arg;
    struct vg_mutex m;
    vg_mutex_init(&m, VG_RANK_TAIL);
    vg_mutex_assert_held(&m);
}

VG_NO_THREAD_SAFETY static void wait_on_a_free_one(void *arg)
{
    (void)arg;
    struct vg_mutex m;
    struct vg_cond c;
    vg_mutex_init(&m, VG_RANK_TAIL);
    vg_cond_init(&c);
    vg_cond_wait(&c, &m);
}

static void a_breach_of_the_order_aborts_naming_both(void **state)
{
    (void)state;
    vg_test_dies(take_backwards, NULL, "taking STORE_STATE while holding LOOP");
    vg_test_dies(take_backwards_below_a_released_one, NULL, "taking STORE_BASE while holding LOOP");
    vg_test_dies(take_twice, NULL, "taking TAIL while holding TAIL (the same lock)");
}

static void what_is_not_held_cannot_be_released_asserted_or_waited_on(void **state)
{
    (void)state;
    vg_test_dies(release_a_free_one, NULL, "unlocking TAIL");
    vg_test_dies(assert_a_free_one, NULL, "asserting TAIL");
    vg_test_dies(wait_on_a_free_one, NULL, "waiting on TAIL");
}
#endif

struct baton {
    struct vg_mutex mu;
    struct vg_cond cond;
    struct vg_fake_clock fake;
    unsigned turn VG_GUARDED_BY(mu);
    unsigned waiting VG_GUARDED_BY(mu);
    bool timed_out VG_GUARDED_BY(mu);
};

static void baton_init(struct baton *b)
{
    vg_mutex_init(&b->mu, VG_RANK_LOOP);
    vg_cond_init(&b->cond);
    vg_fake_clock_init(&b->fake);
    b->turn = b->waiting = 0;
    b->timed_out = false;
}

static void baton_done(struct baton *b)
{
    vg_fake_clock_done(&b->fake);
    vg_cond_done(&b->cond);
    vg_mutex_done(&b->mu);
}

static void pass_baton(unsigned index, void *arg)
{
    struct baton *b = arg;
    for (int i = 0; i < 200; i++) {
        vg_mutex_lock(&b->mu);
        while (b->turn % 3 != index)
            vg_cond_wait(&b->cond, &b->mu);
        vg_mutex_assert_held(&b->mu);
        b->turn++;
        vg_cond_broadcast(&b->cond);
        vg_mutex_unlock(&b->mu);
    }
}

static void threads_wake_each_other_in_turn(void **state)
{
    (void)state;
    struct baton b;
    baton_init(&b);
    vg_test_threads(3, pass_baton, &b);
    assert_int_equal(b.turn, 600);
    baton_done(&b);
}

static void a_wait_ends_at_its_deadline_on_the_monotonic_clock(void **state)
{
    (void)state;
    struct baton b;
    baton_init(&b);
    uint64_t deadline = vg_clock_mono_ns(vg_clock_system()) + 2 * VG_NS_PER_MS;
    vg_mutex_lock(&b.mu);
    while (vg_cond_wait_until_ns(&b.cond, &b.mu, deadline))
        ; /* spurious wakes */
    assert_true(vg_mutex_is_held(&b.mu));
    assert_false(vg_cond_wait_on_clock(&b.cond, &b.mu, vg_clock_system(), 0));
    vg_mutex_unlock(&b.mu);
    assert_true(vg_clock_mono_ns(vg_clock_system()) >= deadline);
    baton_done(&b);
}

static void wake_sleeper(void *arg)
{
    struct baton *b = arg;
    vg_mutex_lock(&b->mu);
    vg_cond_broadcast(&b->cond);
    vg_mutex_unlock(&b->mu);
}

static void sleep_until_ten_seconds(struct baton *b)
{
    uint64_t deadline = 10 * VG_NS_PER_S;
    vg_mutex_lock(&b->mu);
    b->waiting = 1;
    vg_cond_broadcast(&b->cond);
    while (vg_cond_wait_on_clock(&b->cond, &b->mu, &b->fake.clock, deadline))
        ;
    b->timed_out = true;
    vg_mutex_unlock(&b->mu);
}

static void move_clock_when_asleep(struct baton *b)
{
    vg_mutex_lock(&b->mu);
    while (!b->waiting)
        vg_cond_wait(&b->cond, &b->mu);
    vg_mutex_unlock(&b->mu);
    vg_fake_clock_advance(&b->fake, 5 * VG_NS_PER_S);
    vg_mutex_lock(&b->mu);
    assert_false(b->timed_out);
    vg_mutex_unlock(&b->mu);
    vg_fake_clock_advance(&b->fake, 5 * VG_NS_PER_S);
}

static void sleep_or_move(unsigned index, void *arg)
{
    if (index == 0)
        sleep_until_ten_seconds(arg);
    else
        move_clock_when_asleep(arg);
}

static void a_fake_clock_wakes_a_sleeper_through_its_hook(void **state)
{
    (void)state;
    struct baton b;
    baton_init(&b);
    assert_int_equal(vg_clock_on_advance(&b.fake.clock, wake_sleeper, &b), 0);
    vg_test_threads(2, sleep_or_move, &b);
    assert_true(b.timed_out);
    baton_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_at_a_time_is_inside),
        cmocka_unit_test(a_mutex_knows_which_thread_holds_it),
        cmocka_unit_test(locks_in_order_may_be_released_in_any_order),
        cmocka_unit_test(every_rank_has_a_name_and_a_meaning),
#ifdef VG_DEBUG_CHECKS
        cmocka_unit_test(a_breach_of_the_order_aborts_naming_both),
        cmocka_unit_test(what_is_not_held_cannot_be_released_asserted_or_waited_on),
#endif
        cmocka_unit_test(threads_wake_each_other_in_turn),
        cmocka_unit_test(a_wait_ends_at_its_deadline_on_the_monotonic_clock),
        cmocka_unit_test(a_fake_clock_wakes_a_sleeper_through_its_hook),
    };
    return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
