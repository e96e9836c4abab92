/* cacher_start_test.c - ports that open at every step of a start see every change once.
 * The history has a quiet kind, whose changes lie in the first batches that a start reads, and a
 * busy one, which is in all of them. The start is repeated: each time a port opens one turn of the
 * feed later, until the cache is ready. Then both kinds are watched from before the first change,
 * and compared with what was written. The engine is the test's argument. */
#include "test_support.h"

#include <stdio.h>
#include <stdlib.h>

#include "cacher_driver.h"
#include "server/cacher/cacher_int.h"

#define QUIET 20
#define BUSY 2300     /* a start reads batches of 1,000 */
#define TURNS_MAX 200 /* a start takes about ten */

static const char *engine;
static struct vg_cdrv d;
static struct vg_csink sinks[KINDS];
static vg_rev first_rev;
static int extra; /* changes of the busy kind after the first BUSY */

static void put(size_t kind, int n)
{
    char name[16];
    snprintf(name, sizeof name, "o%d", n % 7);
    vg_cdrv_put(&d, kind, &(struct vg_pod){.ns = "a", .name = name, .n = n});
}

static int set_up(void **state)
{
    (void)state;
    vg_cdrv_open(&d, &(struct vg_cdrv_opts){.engine = engine});
    first_rev = vg_storage_revision(d.store.store);
    for (int i = 0; i < QUIET; i++)
        put(KIND_NODES, i);
    for (int i = 0; i < BUSY; i++)
        put(KIND_PODS, i);
    vg_cdrv_sync(&d);
    for (size_t k = 0; k < KINDS; k++)
        vg_csink_init(&sinks[k]);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++)
        vg_csink_done(&sinks[k]);
    vg_cdrv_close(&d);
    return 0;
}

/* The revision of a frame of ours: the last number of the resourceVersion in it. */
static vg_rev revision_of(const char *frame)
{
    const char *at = strstr(frame, "\"resourceVersion\":\"");
    assert_non_null(at);
    return strtoull(at + strlen("\"resourceVersion\":\""), NULL, 10);
}

/* n changes, at the revisions that follow `after` without a gap. All of them are in memory: nothing
 * has to be waited for. */
static void expect_changes(struct vg_csink *s, size_t n, vg_rev after)
{
    vg_cdrv_turn_ports(&d);
    assert_false(s->is_ended);
    assert_int_equal(s->n, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(revision_of(s->frames[i]), after + 1 + i);
}

static void watch(size_t kind, vg_rev after)
{
    struct vg_cache_watch_opts o = {.kind = kind, .start = VG_WATCH_AFTER, .rev = after};
    vg_csink_clear(&sinks[kind]);
    vg_cdrv_watch(&d, &sinks[kind], vg_cdrv_predicate(kind, NULL, NULL, NULL, NULL), o);
}

/* Both kinds from before the first change; then one change more, which is told live. */
static void both_kinds_are_whole(void)
{
    watch(KIND_NODES, first_rev);
    watch(KIND_PODS, first_rev + QUIET);
    expect_changes(&sinks[KIND_NODES], QUIET, first_rev);
    put(KIND_PODS, BUSY + ++extra);
    vg_cdrv_sync(&d);
    expect_changes(&sinks[KIND_PODS], (size_t)(BUSY + extra), first_rev + QUIET);
    for (size_t k = 0; k < KINDS; k++)
        if (sinks[k].w)
            vg_cache_watcher_stop(vg_steal(sinks[k].w));
    vg_cdrv_turn_ports(&d);
}

/* Turn the feed `turns` times, open the port, and go on until ready. False: it was ready before. */
static bool open_port_after(size_t turns)
{
    bool was_ready = false;
    for (size_t i = 0; i < turns && !was_ready; i++) {
        vg_loop_turn(d.feed, true);
        was_ready = vg_cacher_is_ready(d.c);
    }
    vg_cdrv_open_ports(&d);
    vg_cdrv_wait_ready(&d);
    return !was_ready;
}

static void open_cold_again(void)
{
    assert_int_equal(vg_cacher_open(&d.opts, d.feed, &d.c), 0);
}

static void a_port_that_opens_at_any_step_of_a_start_misses_nothing(void **state)
{
    (void)state;
    bool more = true;
    size_t turns = 0;
    for (; more && turns < TURNS_MAX; turns++) {
        vg_cdrv_close_cacher(&d);
        open_cold_again();
        more = open_port_after(turns);
        both_kinds_are_whole();
    }
    assert_false(more);
    assert_true(turns > 3); /* else the start was one step, and this test shows nothing */
}

/* The same, and the port has turns of its own while the feed goes on. */
static void a_port_that_pulls_during_a_start_misses_nothing(void **state)
{
    (void)state;
    for (size_t turns = 0; turns < 8; turns++) {
        vg_cdrv_close_cacher(&d);
        open_cold_again();
        for (size_t i = 0; i < turns && !vg_cacher_is_ready(d.c); i++)
            vg_loop_turn(d.feed, true);
        vg_cdrv_open_ports(&d);
        while (!vg_cacher_is_ready(d.c)) {
            vg_loop_turn(d.feed, true);
            vg_cdrv_turn_ports(&d);
        }
        both_kinds_are_whole();
    }
}

/* Continuity is lost, and the history is read again under the same cacher: sequences go on. */
static void a_port_that_opens_at_any_step_of_a_refill_misses_nothing(void **state)
{
    (void)state;
    if (!vg_drv_engine_has(engine, VG_DRV_FAKE_CLOCK)) /* the feed waits for a second each time */
        skip();
    for (size_t turns = 0; turns < 10; turns++) {
        put(KIND_PODS, BUSY + ++extra);
        (void)vg_alloc_fail_at(1, 0);
        while (vg_cacher_is_ready(d.c))
            vg_loop_turn(d.feed, true);
        (void)vg_alloc_fail_at(0, 0);
        vg_cache_port_close(vg_steal(d.ports[0]));
        vg_cdrv_turn_ports(&d);
        vg_drv_advance_ms(&d.store, 1000);
        (void)open_port_after(turns);
        both_kinds_are_whole();
    }
}

/* One kind changes while the other is quiet, and the cache follows: nothing of a start is left. */
static void a_port_that_opens_later_misses_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        put(KIND_PODS, BUSY + ++extra); /* not applied yet */
        vg_cache_port_close(vg_steal(d.ports[0]));
        vg_cdrv_open_ports(&d);
        both_kinds_are_whole();
    }
}

int main(int argc, char **argv)
{
    engine = vg_drv_args(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_that_opens_at_any_step_of_a_start_misses_nothing),
        cmocka_unit_test(a_port_that_pulls_during_a_start_misses_nothing),
        cmocka_unit_test(a_port_that_opens_later_misses_nothing),
        cmocka_unit_test(a_port_that_opens_at_any_step_of_a_refill_misses_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
