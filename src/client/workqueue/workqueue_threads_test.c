/* workqueue_threads_test.c - drains, and many producers and workers at once. */
#include "test_support.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "workqueue.h"

/* ---- drains ---- */

struct draining {
    struct vigil_workqueue *q;
    _Atomic bool is_draining, is_drained;
    bool gives_up;
};

/* 0 drains; 1 works on a key that is dirty again, or shuts down without a drain. */
static void drain_or_work(unsigned index, void *arg)
{
    struct draining *d = arg;
    char key[8];
    if (index == 0) {
        atomic_store(&d->is_draining, true);
        vigil_workqueue_shut_down(d->q, true);
        atomic_store(&d->is_drained, true);
        return;
    }
    while (!atomic_load(&d->is_draining))
        sched_yield();
    for (unsigned i = 0; i < 1000; i++)
        sched_yield();
    assert_false(atomic_load(&d->is_drained));
    if (d->gives_up) {
        vigil_workqueue_shut_down(d->q, false);
        return;
    }
    vigil_workqueue_done(d->q, vigil_text("x"));
    for (unsigned i = 0; i < 1000; i++)
        sched_yield();
    assert_false(atomic_load(&d->is_drained));
    assert_int_equal(vigil_workqueue_get(d->q, key, sizeof(key), 0), 1);
    vigil_workqueue_done(d->q, vigil_text("x"));
    assert_int_equal(vigil_workqueue_get(d->q, key, sizeof(key), 0), VIGIL_E_CLOSED);
}

static void drain(bool gives_up)
{
    struct draining d = {.gives_up = gives_up};
    char key[8];
    assert_int_equal(vigil_workqueue_new(NULL, &d.q, NULL), 0);
    assert_int_equal(vigil_workqueue_add(d.q, vigil_text("x")), 0);
    assert_int_equal(vigil_workqueue_get(d.q, key, sizeof(key), 0), 1);
    assert_int_equal(vigil_workqueue_add(d.q, vigil_text("x")), 0);
    vg_test_threads(2, drain_or_work, &d);
    assert_true(atomic_load(&d.is_drained));
    vigil_workqueue_free(d.q);
}

static void s58_a_drain_waits_for_a_key_that_is_dirty_again(void **state)
{
    (void)state;
    drain(false);
}

static void a_shut_down_without_drain_releases_one_with(void **state)
{
    (void)state;
    drain(true);
}

/* ---- many at once ---- */

#define KEYS 20u
#define PRODUCERS 3u
#define WORKERS 3u
#define ADDS 3000u

struct factory {
    struct vigil_workqueue *q;
    _Atomic unsigned wanted[KEYS]; /* bumped before each add */
    _Atomic unsigned seen[KEYS];   /* wanted, as the last worker of the key saw it */
    _Atomic bool is_worked_on[KEYS];
    _Atomic unsigned producing, bad;
};

static void produce(struct factory *f, unsigned index)
{
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed() + index);
    for (unsigned i = 0; i < ADDS; i++) {
        char key[8];
        unsigned k = (unsigned)vg_rng_below(&rng, KEYS);
        snprintf(key, sizeof(key), "%u", k);
        atomic_fetch_add(&f->wanted[k], 1);
        if (vg_rng_below(&rng, 50) == 0)
            assert_int_equal(vigil_workqueue_add_after(f->q, vigil_text(key), 1), 0);
        else
            assert_int_equal(vigil_workqueue_add(f->q, vigil_text(key)), 0);
    }
    if (atomic_fetch_sub(&f->producing, 1) != 1)
        return;
    for (unsigned k = 0; k < KEYS; k++) { /* delayed ones are dropped at the end: say it again */
        char key[8];
        snprintf(key, sizeof(key), "%u", k);
        assert_int_equal(vigil_workqueue_add(f->q, vigil_text(key)), 0);
    }
    vigil_workqueue_shut_down(f->q, true);
}

static void work(struct factory *f)
{
    char key[8];
    long n;
    unsigned turns = 0;
    while ((n = vigil_workqueue_get(f->q, key, sizeof(key), 0)) >= 0) {
        unsigned k = (unsigned)strtoul(key, NULL, 10);
        if (atomic_exchange(&f->is_worked_on[k], true))
            atomic_fetch_add(&f->bad, 1);
        atomic_store(&f->seen[k], atomic_load(&f->wanted[k]));
        if (++turns % 16 == 0)
            sched_yield();
        atomic_store(&f->is_worked_on[k], false);
        vigil_workqueue_done(f->q, (struct vigil_text){key, (size_t)n});
    }
    assert_int_equal(n, VIGIL_E_CLOSED);
}

static void produce_or_work(unsigned index, void *arg)
{
    if (index < PRODUCERS)
        produce(arg, index);
    else
        work(arg);
}

static void no_key_is_lost_and_none_is_worked_on_twice_at_a_time(void **state)
{
    (void)state;
    static struct factory f;
    memset(&f, 0, sizeof(f));
    atomic_store(&f.producing, PRODUCERS);
    (void)vg_test_seed();
    assert_int_equal(vigil_workqueue_new(NULL, &f.q, NULL), 0);
    vg_test_threads(PRODUCERS + WORKERS, produce_or_work, &f);
    assert_int_equal(atomic_load(&f.bad), 0);
    for (unsigned k = 0; k < KEYS; k++)
        assert_int_equal(atomic_load(&f.seen[k]), atomic_load(&f.wanted[k]));
    assert_int_equal(vigil_workqueue_length(f.q), 0);
    vigil_workqueue_free(f.q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s58_a_drain_waits_for_a_key_that_is_dirty_again),
        cmocka_unit_test(a_shut_down_without_drain_releases_one_with),
        cmocka_unit_test(no_key_is_lost_and_none_is_worked_on_twice_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
