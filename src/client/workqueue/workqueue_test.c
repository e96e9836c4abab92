/* workqueue_test.c - work queues on a fake clock; the numbers are those of the scenarios of the
 * client's contract. */
#include "test_support.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#include "limiter.h"
#include "workqueue.h"

struct world {
    struct vg_fake_clock clock;
    struct vigil_workqueue *q;
};

static void world_open(struct world *w, const struct vigil_workqueue_opts *opts)
{
    vg_fake_clock_init(&w->clock);
    assert_int_equal(vg_workqueue_new(opts, &w->clock.clock, &w->q), 0);
}
static void world_close(struct world *w)
{
    vigil_workqueue_free(w->q);
    vg_fake_clock_done(&w->clock);
}
static void advance(struct world *w, uint64_t ms)
{
    vg_fake_clock_advance(&w->clock, ms * VG_NS_PER_MS);
}
static void add(struct world *w, const char *key)
{
    assert_int_equal(vigil_workqueue_add(w->q, vigil_text(key)), 0);
}
static void add_after(struct world *w, const char *key, uint64_t ms)
{
    assert_int_equal(vigil_workqueue_add_after(w->q, vigil_text(key), ms), 0);
}
static void done(struct world *w, const char *key)
{
    vigil_workqueue_done(w->q, vigil_text(key));
}
static size_t length(struct world *w)
{
    return vigil_workqueue_length(w->q);
}
/* There is one. */
static void get(struct world *w, const char *want)
{
    char key[64];
    assert_true(length(w) > 0);
    assert_int_equal(vigil_workqueue_get(w->q, key, sizeof(key), 0), strlen(want));
    assert_string_equal(key, want);
}
/* What a get would give on a queue that is shut down. */
static void get_closed(struct world *w)
{
    char key[64];
    assert_int_equal(vigil_workqueue_get(w->q, key, sizeof(key), 0), VIGIL_E_CLOSED);
}

static void s57_a_key_is_never_worked_on_twice_at_a_time(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, NULL);
    add(&w, "foo");
    get(&w, "foo");
    add(&w, "foo");
    add(&w, "foo");
    assert_int_equal(length(&w), 0); /* a get would wait */
    done(&w, "foo");
    assert_int_equal(length(&w), 1);
    get(&w, "foo");
    done(&w, "foo");
    assert_int_equal(length(&w), 0);
    world_close(&w);
}

static void s58_a_key_is_queued_once(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, NULL);
    add(&w, "x");
    add(&w, "x");
    add(&w, "y");
    assert_int_equal(length(&w), 2);
    get(&w, "x");
    get(&w, "y");
    world_close(&w);
}

static void shut_down_hands_out_what_is_queued(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, NULL);
    add(&w, "a");
    add_after(&w, "late", 5);
    add_after(&w, "due", 1);
    advance(&w, 2);
    vigil_workqueue_shut_down(w.q, false);
    add(&w, "b");
    add_after(&w, "c", 1);
    assert_int_equal(vigil_workqueue_add_limited(w.q, vigil_text("d")), 0);
    advance(&w, 1000);
    get(&w, "a");
    get(&w, "due");
    get_closed(&w);
    done(&w, "a");
    done(&w, "due");
    vigil_workqueue_shut_down(w.q, true); /* nothing is under way: returns */
    world_close(&w);
}

static void s59_of_two_delays_the_earlier_counts(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, NULL);
    add_after(&w, "foo", 50);
    add_after(&w, "foo", 70);
    advance(&w, 49);
    assert_int_equal(length(&w), 0);
    advance(&w, 1);
    get(&w, "foo");
    done(&w, "foo");
    advance(&w, 100);
    assert_int_equal(length(&w), 0); /* once */
    add_after(&w, "foo", 50);
    add_after(&w, "foo", 30);
    advance(&w, 30);
    get(&w, "foo");
    done(&w, "foo");
    advance(&w, 100);
    assert_int_equal(length(&w), 0);
    add_after(&w, "now", 0);
    get(&w, "now");
    add_after(&w, "never", UINT64_MAX);
    advance(&w, 1000 * 1000);
    assert_int_equal(length(&w), 0);
    world_close(&w);
}

static void delays_end_in_the_order_of_their_times(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, NULL);
    for (unsigned i = 0; i < 100; i++) {
        char key[8];
        unsigned n = (i * 37) % 100;
        snprintf(key, sizeof(key), "%02u", n);
        add_after(&w, key, n + 1);
    }
    for (unsigned i = 0; i < 100; i++) {
        char key[8];
        advance(&w, 1);
        snprintf(key, sizeof(key), "%02u", i);
        assert_int_equal(length(&w), 1);
        get(&w, key);
    }
    world_close(&w);
}

static void s60_delays_double_for_each_key_on_its_own(void **state)
{
    (void)state;
    struct vigil_workqueue_opts opts = VIGIL_INIT(struct vigil_workqueue_opts);
    opts.base_delay_ms = 1;
    opts.qps = -1;
    struct world w;
    world_open(&w, &opts);
    for (uint64_t ms = 1; ms <= 16; ms *= 2) {
        assert_int_equal(vigil_workqueue_add_limited(w.q, vigil_text("one")), 0);
        advance(&w, ms - 1);
        assert_int_equal(length(&w), 0);
        advance(&w, 1);
        get(&w, "one");
        done(&w, "one");
    }
    assert_int_equal(vigil_workqueue_failures(w.q, vigil_text("one")), 5);
    assert_int_equal(vigil_workqueue_failures(w.q, vigil_text("two")), 0);
    assert_int_equal(vigil_workqueue_add_limited(w.q, vigil_text("two")), 0);
    advance(&w, 1);
    get(&w, "two");
    vigil_workqueue_forget(w.q, vigil_text("one"));
    assert_int_equal(vigil_workqueue_failures(w.q, vigil_text("one")), 0);
    assert_int_equal(vigil_workqueue_add_limited(w.q, vigil_text("one")), 0);
    vigil_workqueue_forget(w.q, vigil_text("one")); /* not the queue */
    vigil_workqueue_forget(w.q, vigil_text("unknown"));
    advance(&w, 1);
    get(&w, "one");
    world_close(&w);
}

static void s60_delays_end_at_the_cap(void **state)
{
    (void)state;
    struct vg_limiter l;
    struct vigil_workqueue_opts opts = {.base_delay_ms = 1, .max_delay_ms = 1000};
    assert_int_equal(vg_limiter_init(&l, &opts, 0), 0);
    assert_int_equal(vg_limiter_by_failures(&l, 0), VG_NS_PER_MS);
    assert_int_equal(vg_limiter_by_failures(&l, 9), 512 * VG_NS_PER_MS);
    assert_int_equal(vg_limiter_by_failures(&l, 10), 1000 * VG_NS_PER_MS);
    assert_int_equal(vg_limiter_by_failures(&l, 1000), 1000 * VG_NS_PER_MS);
    opts = (struct vigil_workqueue_opts){.max_delay_ms = UINT64_MAX};
    assert_int_equal(vg_limiter_init(&l, &opts, 0), 0);
    assert_int_equal(vg_limiter_by_failures(&l, 1), 10 * VG_NS_PER_MS);
    assert_true(vg_limiter_by_failures(&l, 1000) >= UINT64_C(1) << 61);
}

static void fast_tries_then_slow_ones(void **state)
{
    (void)state;
    struct vg_limiter l;
    struct vigil_workqueue_opts opts = {.fast_tries = 3, .fast_delay_ms = 5, .slow_delay_ms = 3000};
    assert_int_equal(vg_limiter_init(&l, &opts, 0), 0);
    assert_int_equal(vg_limiter_by_failures(&l, 2), 5 * VG_NS_PER_MS);
    assert_int_equal(vg_limiter_by_failures(&l, 3), 3000 * VG_NS_PER_MS);
}

static void the_bucket_gives_a_burst_and_then_its_rate(void **state)
{
    (void)state;
    struct vg_limiter l;
    struct vigil_workqueue_opts opts = {.qps = 2, .burst = 3};
    uint64_t now = 77;
    assert_int_equal(vg_limiter_init(&l, &opts, now), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(vg_limiter_by_bucket(&l, now), 0);
    assert_int_equal(vg_limiter_by_bucket(&l, now), VG_NS_PER_S / 2);
    assert_int_equal(vg_limiter_by_bucket(&l, now), VG_NS_PER_S);
    now += 2 * VG_NS_PER_S; /* four tokens: two were taken in advance */
    assert_int_equal(vg_limiter_by_bucket(&l, now), 0);
    assert_int_equal(vg_limiter_by_bucket(&l, now), 0);
    assert_int_equal(vg_limiter_by_bucket(&l, now), VG_NS_PER_S / 2);
    now += 1000 * VG_NS_PER_S; /* no more than the burst */
    for (int i = 0; i < 3; i++)
        assert_int_equal(vg_limiter_by_bucket(&l, now), 0);
    assert_true(vg_limiter_by_bucket(&l, now) > 0);
    opts.qps = 1e-300;
    assert_int_equal(vg_limiter_init(&l, &opts, now), 0);
    for (int i = 0; i < 3; i++)
        (void)vg_limiter_by_bucket(&l, now);
    assert_int_equal(vg_limiter_by_bucket(&l, now), UINT64_C(1) << 62);
    opts.qps = (double)NAN;
    assert_int_equal(vg_limiter_init(&l, &opts, now), VIGIL_E_INVALID);
}

static void the_longer_of_both_limits_counts(void **state)
{
    (void)state;
    struct vigil_workqueue_opts opts = VIGIL_INIT(struct vigil_workqueue_opts);
    opts.qps = 10;
    opts.burst = 1;
    struct world w;
    world_open(&w, &opts);
    assert_int_equal(vigil_workqueue_add_limited(w.q, vigil_text("a")), 0); /* 5 ms */
    assert_int_equal(vigil_workqueue_add_limited(w.q, vigil_text("b")), 0); /* 100 ms */
    advance(&w, 5);
    get(&w, "a");
    advance(&w, 94);
    assert_int_equal(length(&w), 0);
    advance(&w, 1);
    get(&w, "b");
    world_close(&w);
}

static void keys_and_buffers_have_limits(void **state)
{
    (void)state;
    struct world w;
    char key[VG_WORKQUEUE_KEY_MAX + 2], buf[VG_WORKQUEUE_KEY_MAX + 1];
    world_open(&w, NULL);
    memset(key, 'k', sizeof(key));
    struct vigil_text longest = {key, VG_WORKQUEUE_KEY_MAX}, too_long = {key, longest.n + 1};
    assert_int_equal(vigil_workqueue_add(w.q, too_long), VIGIL_E_INVALID);
    assert_int_equal(vigil_workqueue_add_limited(w.q, too_long), VIGIL_E_INVALID);
    assert_int_equal(vigil_workqueue_add(w.q, longest), 0);
    assert_int_equal(vigil_workqueue_get(w.q, buf, longest.n, 0), VIGIL_E_TOO_LARGE);
    assert_int_equal(vigil_workqueue_get(w.q, buf, sizeof(buf), 0), longest.n);
    assert_int_equal(strlen(buf), longest.n);
    done(&w, "what nobody works on");
    world_close(&w);
}

static void nothing_is_kept_of_a_key_that_is_done(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, NULL);
    for (unsigned i = 0; i < 1000; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%u", i);
        assert_int_equal(vigil_workqueue_add_limited(w.q, vigil_text(key)), 0);
        advance(&w, 200);
        get(&w, key);
        vigil_workqueue_forget(w.q, vigil_text(key));
        done(&w, key);
    }
    assert_int_equal(length(&w), 0);
    world_close(&w);
}

static void options_of_another_size_are_read(void **state)
{
    (void)state;
    struct world w;
    struct vigil_workqueue *q;
    struct vigil_error err;
    struct vigil_workqueue_opts opts = {.size = offsetof(struct vigil_workqueue_opts, fast_tries),
                                        .base_delay_ms = 7,
                                        .fast_tries = 1,
                                        .fast_delay_ms = 1};
    world_open(&w, &opts); /* what lies beyond the size is not looked at */
    assert_int_equal(vigil_workqueue_add_limited(w.q, vigil_text("a")), 0);
    advance(&w, 6);
    assert_int_equal(length(&w), 0);
    advance(&w, 1);
    get(&w, "a");
    world_close(&w);
    opts.size = 0;
    assert_int_equal(vigil_workqueue_new(&opts, &q, &err), VIGIL_E_INVALID);
    assert_true(err.message[0]);
    vigil_workqueue_free(NULL);
}

static void without_memory_a_key_is_refused(void **state)
{
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        struct vigil_workqueue *q = NULL;
        char buf[8];
        int r = vigil_workqueue_new(NULL, &q, NULL);
        int a = r == 0 ? vigil_workqueue_add(q, vigil_text("a")) : r;
        int b = r == 0 ? vigil_workqueue_add_after(q, vigil_text("b"), 1000000) : r;
        int c = r == 0 ? vigil_workqueue_add_limited(q, vigil_text("c")) : r;
        if (vg_test_alloc_failed())
            assert_true(a == VIGIL_E_MEMORY || b == VIGIL_E_MEMORY || c == VIGIL_E_MEMORY);
        if (q && a == 0)
            assert_int_equal(vigil_workqueue_get(q, buf, sizeof(buf), 0), 1);
        vigil_workqueue_free(q);
    }
}

/* ---- waiting, with the fake clock moved by another thread ---- */

struct waiting {
    struct world w;
    _Atomic bool is_over;
    uint64_t timeout_ms;
    long got;
    uint64_t at_ns;
};

static void wait_or_advance(unsigned index, void *arg)
{
    struct waiting *t = arg;
    char key[16];
    if (index == 0) {
        t->got = vigil_workqueue_get(t->w.q, key, sizeof(key), t->timeout_ms);
        t->at_ns = vg_clock_mono_ns(&t->w.clock.clock);
        atomic_store(&t->is_over, true);
        return;
    }
    while (!atomic_load(&t->is_over))
        advance(&t->w, 1);
}

static void a_get_wakes_when_a_key_is_due(void **state)
{
    (void)state;
    struct waiting t = {.timeout_ms = 0};
    world_open(&t.w, NULL);
    uint64_t start = vg_clock_mono_ns(&t.w.clock.clock);
    add_after(&t.w, "a", 50);
    vg_test_threads(2, wait_or_advance, &t);
    assert_int_equal(t.got, 1);
    assert_true(t.at_ns - start >= 50 * VG_NS_PER_MS);
    world_close(&t.w);
}

static void a_get_ends_at_its_timeout(void **state)
{
    (void)state;
    struct waiting t = {.timeout_ms = 30};
    world_open(&t.w, NULL);
    uint64_t start = vg_clock_mono_ns(&t.w.clock.clock);
    add_after(&t.w, "a", UINT64_MAX / 2);
    vg_test_threads(2, wait_or_advance, &t);
    assert_int_equal(t.got, VIGIL_E_TIMEOUT);
    assert_true(t.at_ns - start >= 30 * VG_NS_PER_MS);
    world_close(&t.w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s57_a_key_is_never_worked_on_twice_at_a_time),
        cmocka_unit_test(s58_a_key_is_queued_once),
        cmocka_unit_test(shut_down_hands_out_what_is_queued),
        cmocka_unit_test(s59_of_two_delays_the_earlier_counts),
        cmocka_unit_test(delays_end_in_the_order_of_their_times),
        cmocka_unit_test(s60_delays_double_for_each_key_on_its_own),
        cmocka_unit_test(s60_delays_end_at_the_cap),
        cmocka_unit_test(fast_tries_then_slow_ones),
        cmocka_unit_test(the_bucket_gives_a_burst_and_then_its_rate),
        cmocka_unit_test(the_longer_of_both_limits_counts),
        cmocka_unit_test(keys_and_buffers_have_limits),
        cmocka_unit_test(nothing_is_kept_of_a_key_that_is_done),
        cmocka_unit_test(options_of_another_size_are_read),
        cmocka_unit_test(without_memory_a_key_is_refused),
        cmocka_unit_test(a_get_wakes_when_a_key_is_due),
        cmocka_unit_test(a_get_ends_at_its_timeout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
