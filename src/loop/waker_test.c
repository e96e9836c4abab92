/* waker_test.c - a wake is never lost, a sleep never ends early. */
#include "test_support.h"

#include <signal.h>
#include <sys/time.h>

#include "waker.h"

/* A wake that waits would end this sleep before its time. */
static bool has_pending_wake(struct vg_waker *w)
{
    uint64_t deadline = vg_clock_mono_ns(vg_clock_system()) + VG_NS_PER_MS;
    vg_waker_wait(w, deadline);
    return vg_clock_mono_ns(vg_clock_system()) < deadline;
}

static uint64_t real_now(void)
{
    return vg_clock_mono_ns(vg_clock_system());
}

static void a_wake_before_the_sleep_ends_it_at_once(void **state)
{
    (void)state;
    struct vg_waker w;
    vg_waker_init(&w, vg_clock_system());
    vg_waker_wake(&w);
    vg_waker_wait(&w, VG_WAIT_FOREVER);
    assert_false(has_pending_wake(&w));
}

static void several_wakes_before_a_sleep_are_one(void **state)
{
    (void)state;
    struct vg_waker w;
    vg_waker_init(&w, vg_clock_system());
    for (int i = 0; i < 3; i++)
        vg_waker_wake_cb(&w);
    vg_waker_wait(&w, VG_WAIT_FOREVER);
    assert_false(has_pending_wake(&w));
}

static void a_deadline_that_has_passed_does_not_sleep_but_takes_the_wake(void **state)
{
    (void)state;
    struct vg_waker w;
    vg_waker_init(&w, vg_clock_system());
    vg_waker_wait(&w, 0);
    vg_waker_wake(&w);
    vg_waker_wait(&w, 0);
    assert_false(has_pending_wake(&w));
}

static void a_deadline_ends_the_sleep_and_not_before(void **state)
{
    (void)state;
    struct vg_waker w;
    vg_waker_init(&w, vg_clock_system());
    uint64_t deadline = real_now() + 2 * VG_NS_PER_MS + 1;
    vg_waker_wait(&w, deadline);
    assert_true(real_now() >= deadline);
}

static void a_deadline_at_the_end_of_time_is_waited_for(void **state)
{
    (void)state;
    struct vg_waker w;
    vg_waker_init(&w, vg_clock_system());
    vg_waker_wake(&w);
    vg_waker_wait(&w, UINT64_MAX - 1);
    assert_false(has_pending_wake(&w));
}

static volatile sig_atomic_t alarms;

static void on_sigalrm(int number)
{
    (void)number;
    alarms = alarms + 1;
}

static void set_sigalrm(suseconds_t every_us, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    struct itimerval timer = {{0, every_us}, {0, every_us}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void a_signal_does_not_end_the_sleep(void **state)
{
    (void)state;
    struct vg_waker w;
    vg_waker_init(&w, vg_clock_system());
    set_sigalrm(500, on_sigalrm);
    uint64_t deadline = real_now() + 20 * VG_NS_PER_MS;
    vg_waker_wait(&w, deadline);
    uint64_t woken = real_now();
    set_sigalrm(0, SIG_IGN);
    assert_true(alarms > 0);
    assert_true(woken >= deadline);
}

/* Thread 0 sleeps for a fake minute, thread 1 moves the clock second by second. */
struct nap {
    struct vg_fake_clock clock;
    struct vg_waker waker;
    uint64_t deadline;
    unsigned sleeps;
};

static void nap_or_advance(unsigned index, void *arg)
{
    struct nap *n = arg;
    if (index) {
        for (int i = 0; i < 60; i++)
            vg_fake_clock_advance(&n->clock, VG_NS_PER_S);
        return;
    }
    while (vg_clock_mono_ns(&n->clock.clock) < n->deadline) {
        vg_waker_wait(&n->waker, n->deadline);
        n->sleeps++;
    }
}

static void a_fake_clock_that_moves_ends_the_sleep(void **state)
{
    (void)state;
    struct nap n = {0};
    vg_fake_clock_init(&n.clock);
    vg_waker_init(&n.waker, &n.clock.clock);
    assert_int_equal(vg_clock_on_advance(&n.clock.clock, vg_waker_wake_cb, &n.waker), 0);
    n.deadline = vg_clock_mono_ns(&n.clock.clock) + 60 * VG_NS_PER_S;
    vg_test_threads(2, nap_or_advance, &n);
    assert_in_range(n.sleeps, 0, 60);
    vg_waker_wait(&n.waker, n.deadline); /* due: does not sleep */
    vg_clock_off_advance(&n.clock.clock, vg_waker_wake_cb, &n.waker);
    vg_fake_clock_done(&n.clock);
}

struct table {
    struct vg_waker player[2];
    unsigned hits[2]; /* each written by the one and read by the other, in turn */
};

static void hit(unsigned index, void *arg)
{
    struct table *t = arg;
    for (int i = 0; i < 10000; i++) {
        vg_waker_wait(&t->player[index], VG_WAIT_FOREVER);
        t->hits[index] = t->hits[1 - index] + 1;
        vg_waker_wake(&t->player[1 - index]);
    }
}

static void two_threads_that_wake_each_other_never_both_sleep(void **state)
{
    (void)state;
    struct table t = {0};
    for (int i = 0; i < 2; i++)
        vg_waker_init(&t.player[i], vg_clock_system());
    vg_waker_wake(&t.player[0]);
    vg_test_threads(2, hit, &t);
    assert_int_equal(t.hits[1], 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wake_before_the_sleep_ends_it_at_once),
        cmocka_unit_test(several_wakes_before_a_sleep_are_one),
        cmocka_unit_test(a_deadline_that_has_passed_does_not_sleep_but_takes_the_wake),
        cmocka_unit_test(a_deadline_ends_the_sleep_and_not_before),
        cmocka_unit_test(a_deadline_at_the_end_of_time_is_waited_for),
        cmocka_unit_test(a_signal_does_not_end_the_sleep),
        cmocka_unit_test(a_fake_clock_that_moves_ends_the_sleep),
        cmocka_unit_test(two_threads_that_wake_each_other_never_both_sleep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
