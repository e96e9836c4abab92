/* cacher_flow_test.c - slow readers: full, behind, from storage, expired, stalled; and time. */
#include "test_support.h"

#include <stdio.h>
#include <stdlib.h>

#include "cacher_driver.h"

static struct vg_cdrv d;
static struct vg_csink s, fast;

static struct vg_obj_predicate *everything(void)
{
    return vg_cdrv_predicate(KIND_PODS, NULL, NULL, NULL, NULL);
}

static void open_with(struct vg_cacher_opts opts)
{
    opts.seed = 1;
    vg_cdrv_open(&d, &(struct vg_cdrv_opts){.cacher = opts});
    vg_csink_init(&s);
    vg_csink_init(&fast);
}

static int close_all(void **state)
{
    (void)state;
    vg_csink_done(&s);
    vg_csink_done(&fast);
    vg_cdrv_close(&d);
    return 0;
}

static vg_rev write_pods(int n)
{
    vg_rev rev = 0;
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i % 10);
        rev = vg_cdrv_put(&d, KIND_PODS, &(struct vg_pod){.ns = "a", .name = name, .n = i});
    }
    return rev;
}

static void watch_now(struct vg_csink *sink, size_t full_after)
{
    sink->full_after = full_after;
    vg_cdrv_watch(&d, sink, everything(), (struct vg_cache_watch_opts){.start = VG_WATCH_NOW});
    vg_cdrv_turn_ports(&d);
}

/* Frames are the changes with revisions from..to, each once. */
static void expect_revs(const struct vg_csink *sink, vg_rev from, vg_rev to)
{
    assert_int_equal(sink->n, to - from + 1);
    for (size_t i = 0; i < sink->n; i++) {
        char want[64];
        unsigned long long rev = from + i;
        snprintf(want, sizeof want, "\"resourceVersion\":\"%llu\"", rev);
        assert_non_null(strstr(sink->frames[i], want));
    }
}

static void a_full_sink_gets_exactly_the_rest_when_it_drains(void **state)
{
    (void)state;
    open_with((struct vg_cacher_opts){0});
    watch_now(&s, 3);
    watch_now(&fast, 0);
    write_pods(20);
    vg_cdrv_sync(&d);
    assert_int_equal(s.n_kept, 3); /* full: nothing more is written to it */
    expect_revs(&fast, 2, 21);
    for (int i = 0; i < 10; i++) {
        vg_csink_drain(&s);
        vg_cdrv_turn_ports(&d);
    }
    expect_revs(&s, 2, 21);
    write_pods(1); /* and it is live again */
    vg_cdrv_sync(&d);
    vg_csink_drain(&s);
    expect_revs(&s, 2, 22);
}

static void whom_the_window_left_behind_continues_from_storage_and_joins_again(void **state)
{
    (void)state;
    open_with((struct vg_cacher_opts){.events_min = 1, .events_max = 256});
    watch_now(&s, 2);
    write_pods(1500);
    vg_cdrv_sync(&d);
    struct vg_cache_kind_stats stats;
    vg_cacher_kind_stats(d.c, KIND_PODS, &stats);
    assert_true(stats.oldest_rev > 100);
    vg_csink_drain(&s);
    s.full_after = 100;
    while (s.n < 1500) {
        vg_cdrv_wait_frames(&d, &s, VG_MIN(s.n + 1, (size_t)1500));
        vg_csink_drain(&s);
    }
    expect_revs(&s, 2, 1501);
    struct vg_cacher_stats before = vg_cdrv_stats(&d);
    assert_true(before.events_from_storage >= 900);
    assert_true(before.events_replayed >= 100); /* the end of it from the tail */
    write_pods(1);
    vg_cdrv_sync(&d);
    vg_csink_drain(&s);
    expect_revs(&s, 2, 1502);
    assert_int_equal(vg_cdrv_stats(&d).events_from_storage, before.events_from_storage);
}

static void what_storage_told_before_the_cache_knew_it_is_not_repeated(void **state)
{
    (void)state;
    open_with((struct vg_cacher_opts){.events_min = 1, .events_max = 256});
    vg_cdrv_put(&d, KIND_PODS, &(struct vg_pod){.ns = "b", .name = "x"});
    write_pods(1500);
    vg_cdrv_sync(&d);
    vg_cdrv_put(&d, KIND_PODS, &(struct vg_pod){.ns = "b", .name = "y"}); /* the feed sleeps */
    vg_cdrv_put(&d, KIND_NODES, &(struct vg_pod){.name = "n"}); /* answered when y can be watched */
    vg_cdrv_watch(&d, &s, vg_cdrv_predicate(KIND_PODS, "b", NULL, NULL, NULL),
                  (struct vg_cache_watch_opts){.start = VG_WATCH_AFTER, .rev = 1});
    vg_cdrv_wait_frames(&d, &s, 2);
    vg_cdrv_turn_ports(&d);
    vg_cdrv_sync(&d);
    vg_cdrv_put(&d, KIND_PODS, &(struct vg_pod){.ns = "b", .name = "z"});
    vg_cdrv_sync(&d);
    vg_csink_expect(&s, "ADDED b/x@2", "ADDED b/y@1503", "ADDED b/z@1505", NULL);
}

static void half_a_revision_is_continued_from_storage_without_a_repeat(void **state)
{
    (void)state;
    open_with((struct vg_cacher_opts){.events_min = 1, .events_max = 256});
    watch_now(&s, 2);
    struct vg_op ops[5];
    char names[5][16];
    for (int i = 0; i < 5; i++) {
        snprintf(names[i], sizeof names[i], "t%d", i);
        ops[i] = vg_cdrv_put_op(KIND_PODS, &(struct vg_pod){.ns = "a", .name = names[i]});
    }
    assert_int_equal(vg_drv_run(&d.store, ops, 5, NULL), 0);
    write_pods(800);
    vg_cdrv_sync(&d);
    assert_int_equal(s.n_kept, 2);
    vg_csink_drain(&s);
    s.full_after = 0;
    vg_cdrv_wait_frames(&d, &s, 805);
    for (int i = 0; i < 5; i++)
        assert_non_null(strstr(s.frames[i], names[i]));
    assert_int_equal(s.n, 805);
}

static void compaction_beyond_a_reader_ends_it_as_expired(void **state)
{
    (void)state;
    open_with((struct vg_cacher_opts){.events_min = 1, .events_max = 256});
    watch_now(&s, 2);
    vg_rev last = write_pods(1000);
    vg_cdrv_sync(&d);
    assert_int_equal(vg_drv_compact(&d.store, last - 10, NULL), 0);
    vg_csink_drain(&s);
    vg_cdrv_wait_end(&d, &s);
    assert_int_equal(s.why, VG_END_EXPIRED);
    assert_int_equal(s.oldest, last - 10);
    assert_int_equal(s.n, 2);
    assert_int_equal(vg_cdrv_stats(&d).ended[VG_END_EXPIRED], 1);
}

static void a_start_below_compaction_is_refused_with_the_oldest(void **state)
{
    (void)state;
    open_with((struct vg_cacher_opts){0});
    write_pods(10);
    vg_cdrv_sync(&d);
    assert_int_equal(vg_drv_compact(&d.store, 8, NULL), 0);
    struct vg_cache_watch_opts o = {.start = VG_WATCH_AFTER, .rev = 7};
    assert_int_equal(vg_cdrv_try_watch(&d, 0, &s, everything(), o), VIGIL_E_COMPACTED);
    assert_int_equal(s.oldest, 8);
    o.rev = 8;
    assert_int_equal(vg_cdrv_try_watch(&d, 0, &s, everything(), o), 0);
    vg_cdrv_turn_ports(&d);
    expect_revs(&s, 9, 11);
}

static void a_sink_without_progress_is_stalled(void **state)
{
    (void)state;
    open_with((struct vg_cacher_opts){.stall_ms = 10000});
    watch_now(&s, 1);
    write_pods(2);
    vg_cdrv_sync(&d);
    vg_cdrv_advance_ms(&d, 8000);
    vg_cache_watcher_progress(s.w); /* a byte went out */
    vg_cdrv_advance_ms(&d, 8000);
    assert_false(s.is_ended);
    vg_cdrv_advance_ms(&d, 5000);
    assert_true(s.is_ended);
    assert_int_equal(s.why, VG_END_STALLED);
    assert_int_equal(vg_cache_port_watchers(d.ports[0]), 0);
}

static void a_deadline_is_announced_by_a_bookmark(void **state)
{
    (void)state;
    open_with((struct vg_cacher_opts){0});
    vg_cdrv_watch(&d, &s, everything(),
                  (struct vg_cache_watch_opts){
                      .start = VG_WATCH_NOW, .with_bookmarks = true, .timeout_ms = 20000});
    vg_drv_put(&d.store, "/registry/other/thing", "x");
    vg_cdrv_sync(&d);
    vg_cdrv_advance_ms(&d, 17000);
    assert_int_equal(s.n, 0);
    vg_cdrv_advance_ms(&d, 2900);
    vg_csink_expect(&s, "BOOKMARK@2", NULL);
    assert_false(s.is_ended);
    vg_cdrv_advance_ms(&d, 2000);
    assert_true(s.is_ended);
    assert_int_equal(s.why, VG_END_TIME);
    vg_csink_expect(&s, "BOOKMARK@2", NULL);
}

static void bookmarks_come_every_minute_and_not_all_at_once(void **state)
{
    (void)state;
    enum { N = 100 };
    struct vg_csink *sinks = calloc(N, sizeof *sinks);
    size_t most = 0, before = 0;
    assert_non_null(sinks);
    open_with((struct vg_cacher_opts){0});
    for (int i = 0; i < N; i++) {
        vg_csink_init(&sinks[i]);
        vg_cdrv_watch(&d, &sinks[i], everything(),
                      (struct vg_cache_watch_opts){.start = VG_WATCH_NOW, .with_bookmarks = true});
    }
    vg_drv_put(&d.store, "/registry/other/thing", "x");
    vg_cdrv_sync(&d);
    vg_cdrv_advance_ms(&d, 59000);
    assert_int_equal(vg_cdrv_stats(&d).bookmarks, 0);
    for (int sec = 59; sec < 78; sec++) {
        vg_cdrv_advance_ms(&d, 1000);
        size_t now = vg_cdrv_stats(&d).bookmarks;
        most = VG_MAX(most, now - before);
        before = now;
    }
    assert_int_equal(before, N);
    assert_true(most < N / 4);
    for (int i = 0; i < N; i++) {
        vg_csink_expect(&sinks[i], "BOOKMARK@2", NULL);
        vg_csink_done(&sinks[i]);
    }
    free(sinks);
}

static void nothing_new_needs_no_bookmark(void **state)
{
    (void)state;
    open_with((struct vg_cacher_opts){0});
    vg_cdrv_watch(&d, &s, everything(),
                  (struct vg_cache_watch_opts){.start = VG_WATCH_NOW, .with_bookmarks = true});
    vg_cdrv_advance_ms(&d, 200000);
    assert_int_equal(s.n, 0);
}

static void draining_sends_bookmarks_and_ends_everybody(void **state)
{
    (void)state;
    open_with((struct vg_cacher_opts){0});
    vg_cdrv_watch(&d, &s, everything(),
                  (struct vg_cache_watch_opts){.start = VG_WATCH_NOW, .with_bookmarks = true});
    watch_now(&fast, 1);
    write_pods(2);
    vg_cdrv_sync(&d);
    vg_cache_port_drain(d.ports[0]);
    vg_csink_expect(&s, "ADDED a/p0@2", "ADDED a/p1@3", "BOOKMARK@3", NULL);
    assert_int_equal(s.why, VG_END_DRAIN);
    assert_int_equal(fast.why, VG_END_DRAIN);
    assert_int_equal(vg_cdrv_stats(&d).ended[VG_END_DRAIN], 2);
}

static void a_millisecond_passes(struct vg_csink *sink, void *arg)
{
    (void)sink;
    (void)arg;
    vg_drv_advance_ms(&d.store, 1);
}

static void catching_up_beside_live_work_is_held_to_its_budget(void **state)
{
    (void)state;
    open_with((struct vg_cacher_opts){0});
    watch_now(&fast, 0);
    write_pods(6000);
    vg_cdrv_sync(&d);
    vg_csink_clear(&fast);
    s.on_write = a_millisecond_passes;
    vg_cdrv_watch(&d, &s, everything(),
                  (struct vg_cache_watch_opts){.start = VG_WATCH_AFTER, .rev = 1});
    for (size_t i = 1; i <= 200; i++) { /* every turn of the port has something live to do */
        write_pods(1);
        vg_cdrv_sync_feed(&d);
        vg_drv_advance_ms(&d.store, 10);
        vg_loop_turn(d.loops[0], false);
        assert_int_equal(fast.n, i);
    }
    assert_true(s.n > 0 && s.n < 800); /* 50 ms of each second, and what the last step overdid */
    vg_cdrv_turn_ports(&d);
    expect_revs(&s, 2, 6201); /* idle time is free */
}

static void who_was_full_the_longest_goes_first_when_too_much_is_pinned(void **state)
{
    (void)state;
    open_with((struct vg_cacher_opts){.pinned_max = 1000});
    watch_now(&s, 4); /* the first that is full */
    write_pods(4);
    vg_cdrv_sync(&d);
    watch_now(&fast, 4);
    write_pods(4);
    vg_cdrv_sync(&d);
    assert_true(vg_cdrv_stats(&d).pinned_bytes > 1000);
    vg_cdrv_advance_ms(&d, 1000);
    assert_true(s.is_ended);
    assert_int_equal(s.why, VG_END_PINNED);
    assert_false(fast.is_ended);
    assert_true(vg_cdrv_stats(&d).pinned_bytes <= 1000);
}

static void a_sink_may_stop_its_watch_inside_write(void **state)
{
    (void)state;
    open_with((struct vg_cacher_opts){0});
    write_pods(3);
    vg_cdrv_sync(&d);
    static const struct vg_cache_watch_opts starts[] = {
        {.start = VG_WATCH_STATE}, {.start = VG_WATCH_AFTER, .rev = 1}, {.start = VG_WATCH_NOW}};
    for (size_t i = 0; i < VG_ARRAY_LEN(starts); i++) {
        s.stops = true;
        vg_cdrv_watch(&d, &s, everything(), starts[i]);
        vg_cdrv_turn_ports(&d);
        write_pods(1);
        vg_cdrv_sync(&d);
        assert_int_equal(s.n, i + 1); /* and nothing after it */
        assert_false(s.is_ended);
    }
    assert_int_equal(vg_cache_port_watchers(d.ports[0]), 0);
}

static void a_sink_whose_other_side_is_gone_is_told_so_once(void **state)
{
    (void)state;
    open_with((struct vg_cacher_opts){0});
    watch_now(&s, 0);
    s.fails = true;
    write_pods(3);
    vg_cdrv_sync(&d);
    assert_true(s.is_ended);
    assert_int_equal(s.why, VG_END_GONE);
}

#define TEST(f) cmocka_unit_test_teardown(f, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_full_sink_gets_exactly_the_rest_when_it_drains),
        TEST(whom_the_window_left_behind_continues_from_storage_and_joins_again),
        TEST(what_storage_told_before_the_cache_knew_it_is_not_repeated),
        TEST(half_a_revision_is_continued_from_storage_without_a_repeat),
        TEST(compaction_beyond_a_reader_ends_it_as_expired),
        TEST(a_start_below_compaction_is_refused_with_the_oldest),
        TEST(a_sink_without_progress_is_stalled),
        TEST(a_deadline_is_announced_by_a_bookmark),
        TEST(bookmarks_come_every_minute_and_not_all_at_once),
        TEST(nothing_new_needs_no_bookmark),
        TEST(draining_sends_bookmarks_and_ends_everybody),
        TEST(catching_up_beside_live_work_is_held_to_its_budget),
        TEST(who_was_full_the_longest_goes_first_when_too_much_is_pinned),
        TEST(a_sink_may_stop_its_watch_inside_write),
        TEST(a_sink_whose_other_side_is_gone_is_told_so_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
