/* cacher_life_test.c - restarts, lost continuity, kinds without a cache, leaks, lack of memory. */
#include "test_support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cacher_driver.h"
#include "server/cacher/cacher_int.h"

static struct vg_cdrv d;
static struct vg_csink s, other;

static struct vg_obj_predicate *everything(size_t kind)
{
    return vg_cdrv_predicate(kind, NULL, NULL, NULL, NULL);
}

static void open_with(const struct vg_cdrv_opts *opts)
{
    vg_cdrv_open(&d, opts);
    vg_csink_init(&s);
    vg_csink_init(&other);
}

static int close_all(void **state)
{
    (void)state;
    vg_csink_done(&s);
    vg_csink_done(&other);
    vg_cdrv_close(&d);
    return 0;
}

static void put(size_t kind, const char *name)
{
    vg_cdrv_put(&d, kind, &(struct vg_pod){.ns = "a", .name = name});
}

/* ---- restarts ---- */

static void resume_over(void (*reopen)(struct vg_drv *drv))
{
    open_with(&(struct vg_cdrv_opts){.engine = "lmdb"});
    vg_cdrv_watch(&d, &s, everything(KIND_PODS),
                  (struct vg_cache_watch_opts){.start = VG_WATCH_NOW});
    put(KIND_PODS, "p1");
    vg_cdrv_sync(&d);
    put(KIND_PODS, "p2"); /* nobody has seen it yet */
    vg_cdrv_close_cacher(&d);
    vg_csink_expect(&s, "ADDED a/p1@2", NULL);
    assert_int_equal(s.why, VG_END_DRAIN);
    reopen(&d.store);
    vg_cdrv_open_again(&d);
    vg_cdrv_watch(&d, &other, everything(KIND_PODS),
                  (struct vg_cache_watch_opts){.start = VG_WATCH_AFTER, .rev = 2});
    vg_cdrv_turn_ports(&d);
    vg_csink_expect(&other, "ADDED a/p2@3", NULL);
    put(KIND_PODS, "p1");
    vg_cdrv_sync(&d);
    vg_csink_expect(&other, "ADDED a/p2@3", "MODIFIED a/p1@4", NULL);
    struct vg_cacher_stats stats = vg_cdrv_stats(&d);
    assert_int_equal(stats.relists, 0);
    assert_int_equal(stats.events_from_storage, 0); /* the hot tail was refilled */
    assert_int_equal(stats.init_events, 0);
}

static void a_watcher_resumes_after_a_restart_without_a_list(void **state)
{
    (void)state;
    resume_over(vg_drv_reopen);
}

static void a_watcher_resumes_after_a_kill_without_a_list(void **state)
{
    (void)state;
    resume_over(vg_drv_reopen_killed);
}

static void an_old_revision_resumes_from_storage_when_the_refill_is_short(void **state)
{
    (void)state;
    open_with(&(struct vg_cdrv_opts){.engine = "lmdb", .cacher = {.refill_max = 10}});
    for (int i = 0; i < 50; i++)
        put(KIND_PODS, "p");
    vg_cdrv_close_cacher(&d);
    vg_drv_reopen(&d.store);
    vg_cdrv_open_again(&d);
    struct vg_cache_kind_stats stats;
    vg_cacher_kind_stats(d.c, KIND_PODS, &stats);
    assert_int_equal(stats.events, 10);
    assert_int_equal(stats.objects, 1);
    vg_cdrv_watch(&d, &s, everything(KIND_PODS),
                  (struct vg_cache_watch_opts){.start = VG_WATCH_AFTER, .rev = 1});
    vg_cdrv_wait_frames(&d, &s, 50);
    assert_int_equal(s.n, 50);
    assert_true(vg_cdrv_stats(&d).events_from_storage >= 40);
}

/* What a change replaced is older than the refill, or part of it; the content of both is told. */
static void a_refilled_tail_knows_what_each_change_replaced(void **state)
{
    (void)state;
    struct vg_pod old = {.ns = "a", .name = "p1", .labels = "\"app\":\"web\""};
    open_with(&(struct vg_cdrv_opts){.engine = "lmdb", .cacher = {.refill_max = 5}});
    vg_cdrv_put(&d, KIND_PODS, &old); /* 2 */
    put(KIND_PODS, "p2");
    put(KIND_PODS, "p3");                     /* 4: from here on it is read back */
    put(KIND_PODS, "p1");                     /* no longer matches */
    vg_cdrv_put(&d, KIND_PODS, &old);         /* matches again */
    vg_cdrv_delete(&d, KIND_PODS, "a", "p2"); /* 7 */
    put(KIND_PODS, "p4");
    vg_cdrv_delete(&d, KIND_PODS, "a", "p1"); /* 9: in the refill, all of it */
    vg_cdrv_close_cacher(&d);
    vg_drv_reopen(&d.store);
    vg_cdrv_open_again(&d);
    vg_cdrv_watch(&d, &s, everything(KIND_PODS),
                  (struct vg_cache_watch_opts){.start = VG_WATCH_AFTER, .rev = 4});
    vg_cdrv_watch(&d, &other, vg_cdrv_predicate(KIND_PODS, NULL, NULL, "app=web", NULL),
                  (struct vg_cache_watch_opts){.start = VG_WATCH_AFTER, .rev = 4});
    vg_cdrv_turn_ports(&d);
    vg_csink_expect(&s, "MODIFIED a/p1@5", "MODIFIED a/p1@6", "DELETED a/p2@7", "ADDED a/p4@8",
                    "DELETED a/p1@9", NULL);
    vg_csink_expect(&other, "DELETED a/p1@5", "ADDED a/p1@6", "DELETED a/p1@9", NULL);
    struct vg_cache_kind_stats stats;
    vg_cacher_kind_stats(d.c, KIND_PODS, &stats);
    assert_int_equal(stats.objects, 2);
    assert_int_equal(vg_cdrv_stats(&d).events_from_storage, 0);
    vg_history_check(&d.c->kinds[KIND_PODS].history);
}

/* Two objects in one transaction, and then a change of each. */
static void changes_of_one_revision_are_all_known_to_the_refill(void **state)
{
    (void)state;
    open_with(&(struct vg_cdrv_opts){.engine = "lmdb"});
    struct vg_op ops[] = {
        vg_cdrv_put_op(KIND_PODS, &(struct vg_pod){.ns = "a", .name = "p1"}),
        vg_cdrv_put_op(KIND_PODS, &(struct vg_pod){.ns = "a", .name = "p2"}),
    };
    assert_int_equal(vg_drv_run(&d.store, ops, 2, NULL), 0); /* 2 */
    put(KIND_PODS, "p1");
    put(KIND_PODS, "p2");
    vg_cdrv_close_cacher(&d);
    vg_drv_reopen(&d.store);
    vg_cdrv_open_again(&d);
    vg_cdrv_watch(&d, &s, everything(KIND_PODS),
                  (struct vg_cache_watch_opts){.start = VG_WATCH_AFTER, .rev = 1});
    vg_cdrv_turn_ports(&d);
    vg_csink_expect(&s, "ADDED a/p1@2", "ADDED a/p2@2", "MODIFIED a/p1@3", "MODIFIED a/p2@4", NULL);
    assert_int_equal(vg_cdrv_stats(&d).events_from_storage, 0);
    vg_history_check(&d.c->kinds[KIND_PODS].history);
}

/* ---- losing the place ---- */

static void lose_place(void)
{
    put(KIND_PODS, "lost");
    (void)vg_alloc_fail_at(1, 0);
    while (vg_cacher_is_ready(d.c))
        vg_loop_turn(d.feed, true);
    (void)vg_alloc_fail_at(0, 0);
}

static void lost_continuity_ends_cached_watchers_only(void **state)
{
    (void)state;
    struct vg_cache_snapshot snap;
    open_with(NULL);
    vg_cdrv_watch(&d, &s, everything(KIND_PODS),
                  (struct vg_cache_watch_opts){.start = VG_WATCH_NOW});
    vg_cdrv_watch(&d, &other, everything(KIND_EVENTS),
                  (struct vg_cache_watch_opts){.kind = KIND_EVENTS, .start = VG_WATCH_NOW});
    put(KIND_PODS, "p1");
    vg_cdrv_sync(&d);
    lose_place();
    assert_int_equal(vg_cache_newest(d.c, KIND_PODS, &snap), VIGIL_E_BUSY);
    vg_cdrv_turn_ports(&d);
    assert_true(s.is_ended);
    assert_int_equal(s.why, VG_END_CONTINUITY);
    assert_false(other.is_ended);
    vg_cdrv_advance_ms(&d, 1000); /* the feed lists anew */
    vg_cdrv_wait_ready(&d);
    assert_int_equal(vg_cdrv_stats(&d).relists, 1);
    assert_int_equal(vg_cache_newest(d.c, KIND_PODS, &snap), 0);
    assert_int_equal(vg_root_count(snap.root), 2);
    assert_int_equal(snap.rev, 3);
    vg_cache_snapshot_done(&snap);
    put(KIND_EVENTS, "e1");
    vg_cdrv_sync(&d);
    vg_cdrv_wait_frames(&d, &other, 1);
    vg_csink_expect(&other, "ADDED a/e1@4", NULL);
}

static void what_was_lost_is_resumed_exactly(void **state)
{
    (void)state;
    open_with(NULL);
    put(KIND_PODS, "p1");
    vg_cdrv_sync(&d);
    lose_place();
    vg_cdrv_advance_ms(&d, 1000);
    vg_cdrv_wait_ready(&d);
    vg_cdrv_turn_ports(&d);
    vg_cdrv_watch(&d, &s, everything(KIND_PODS),
                  (struct vg_cache_watch_opts){.start = VG_WATCH_AFTER, .rev = 2});
    vg_cdrv_turn_ports(&d);
    vg_csink_expect(&s, "ADDED a/lost@3", NULL);
}

/* The storage watch is about to read the log, and its reader finds no memory: the watch ends. */
static void break_storage_watch(void)
{
    enum feed_state before = d.c->state;
    (void)vg_alloc_fail_at(1, 1);
    while (d.c->state == before)
        vg_loop_turn(d.feed, true);
    (void)vg_alloc_fail_at(0, 0);
    assert_int_equal(d.c->state, FEED_WAITING);
    assert_null(d.c->watch);
}

static void a_storage_watch_that_ends_with_its_place_kept_ends_nobody(void **state)
{
    (void)state;
    open_with(NULL);
    vg_cdrv_watch(&d, &s, everything(KIND_PODS),
                  (struct vg_cache_watch_opts){.start = VG_WATCH_NOW});
    put(KIND_PODS, "p1");
    vg_cdrv_sync(&d);
    vg_watch_pause(d.c->watch);
    put(KIND_PODS, "p2");
    put(KIND_NODES, "n"); /* answered when p2 can be watched: it has to be read */
    vg_watch_resume(d.c->watch);
    break_storage_watch();
    put(KIND_PODS, "p1");
    vg_cdrv_turn_ports(&d);
    assert_true(vg_cacher_is_ready(d.c)); /* what it has is old, not wrong */
    vg_csink_expect(&s, "ADDED a/p1@2", NULL);
    vg_cdrv_advance_ms(&d, 1000);
    vg_cdrv_sync(&d);
    vg_csink_expect(&s, "ADDED a/p1@2", "ADDED a/p2@3", "MODIFIED a/p1@5", NULL);
    assert_false(s.is_ended);
    assert_int_equal(vg_cdrv_stats(&d).relists, 0);
    assert_int_equal(vg_cdrv_stats(&d).resumes, 2);
    vg_history_check(&d.c->kinds[KIND_PODS].history);
}

static void a_storage_watch_that_ends_during_the_refill_goes_on_with_it(void **state)
{
    (void)state;
    struct vg_cache_kind_stats stats;
    open_with(NULL);
    for (int i = 0; i < 20; i++)
        put(KIND_PODS, i % 2 ? "p1" : "p2");
    vg_cdrv_close_cacher(&d);
    assert_int_equal(vg_cacher_open(&d.opts, d.feed, &d.c), 0);
    while (d.c->state != FEED_FILLING)
        vg_loop_turn(d.feed, true);
    break_storage_watch();
    assert_false(vg_cacher_is_ready(d.c));
    vg_cdrv_advance_ms(&d, 1000);
    vg_cdrv_wait_ready(&d);
    vg_cacher_kind_stats(d.c, KIND_PODS, &stats);
    assert_int_equal(stats.events, 20); /* the window is full, as if nothing had happened */
    assert_int_equal(stats.objects, 2);
    assert_int_equal(vg_cdrv_stats(&d).relists, 0);
    vg_cdrv_open_ports(&d);
}

static void compaction_during_the_refill_lists_anew(void **state)
{
    (void)state;
    struct vg_cache_snapshot snap;
    open_with(NULL);
    for (int i = 0; i < 20; i++)
        put(KIND_PODS, i % 2 ? "p1" : "p2");
    vg_cdrv_close_cacher(&d);
    d.opts.storage = d.store.store;
    assert_int_equal(vg_cacher_open(&d.opts, d.feed, &d.c), 0);
    while (d.c->state != FEED_FILLING)
        vg_loop_turn(d.feed, true);
    assert_int_equal(vg_drv_compact(&d.store, 15, NULL), 0); /* what it is about to read */
    while (d.c->state == FEED_FILLING)
        vg_loop_turn(d.feed, true);
    assert_int_equal(d.c->state, FEED_WAITING);
    assert_false(vg_cacher_is_ready(d.c));
    vg_cdrv_advance_ms(&d, 1000);
    vg_cdrv_wait_ready(&d);
    assert_int_equal(vg_cdrv_stats(&d).relists, 1);
    assert_int_equal(vg_cache_newest(d.c, KIND_PODS, &snap), 0);
    assert_int_equal(snap.rev, 21);
    assert_int_equal(vg_root_count(snap.root), 2);
    vg_cache_snapshot_done(&snap);
    vg_cdrv_open_ports(&d);
}

/* ---- kinds without a cache ---- */

static void play(bool is_uncached, struct vg_csink *sinks, size_t n)
{
    vg_cdrv_open(&d, &(struct vg_cdrv_opts){.pods_uncached = is_uncached});
    for (int i = 0; i < 10; i++)
        vg_cdrv_put(
            &d, KIND_PODS,
            &(struct vg_pod){.ns = i % 2 ? "a" : "b", .name = "p", .labels = "\"k\":\"x\""});
    vg_cdrv_sync(&d);
    struct vg_obj_predicate *p[] = {
        everything(KIND_PODS), vg_cdrv_predicate(KIND_PODS, "a", NULL, NULL, NULL),
        vg_cdrv_predicate(KIND_PODS, NULL, NULL, "k=x", NULL), everything(KIND_PODS)};
    static const struct vg_cache_watch_opts opts[] = {
        {.start = VG_WATCH_STATE, .with_end_bookmark = true},
        {.start = VG_WATCH_AFTER, .rev = 4},
        {.start = VG_WATCH_NOW},
        {.start = VG_WATCH_AFTER, .rev = 13}};
    for (size_t i = 0; i < n; i++) {
        vg_csink_init(&sinks[i]);
        vg_cdrv_watch(&d, &sinks[i], p[i], opts[i]);
    }
    if (sinks[0].n == 0 && is_uncached)
        vg_cdrv_wait_frames(&d, &sinks[0], 3); /* its list is read before the next write */
    vg_cdrv_put(&d, KIND_PODS, &(struct vg_pod){.ns = "a", .name = "p"});
    vg_cdrv_delete(&d, KIND_PODS, "b", "p");
    vg_cdrv_put(&d, KIND_PODS, &(struct vg_pod){.ns = "b", .name = "q"});
    vg_cdrv_sync(&d);
}

static void results_are_equal_with_the_cache_on_and_off(void **state)
{
    (void)state;
    enum { N = 4 };
    struct vg_csink on[N], off[N];
    play(false, on, N);
    vg_cdrv_close(&d);
    play(true, off, N);
    for (int i = 0; i < N; i++) {
        vg_cdrv_wait_frames(&d, &off[i], on[i].n);
        assert_int_equal(on[i].n, off[i].n);
        for (size_t k = 0; k < on[i].n; k++)
            assert_string_equal(on[i].frames[k], off[i].frames[k]);
        assert_true(on[i].n > 0);
    }
    vg_cdrv_close(&d);
    for (int i = 0; i < N; i++) {
        vg_csink_done(&on[i]);
        vg_csink_done(&off[i]);
    }
}

/* ---- leaks and lack ---- */

static void a_thousand_slow_readers_pin_a_frame_each_and_no_more(void **state)
{
    (void)state;
    enum { N = 1000 };
    struct vg_csink *sinks = calloc(N, sizeof *sinks);
    assert_non_null(sinks);
    open_with(&(struct vg_cdrv_opts){.cacher = {.events_min = 1, .events_max = 256}});
    for (int i = 0; i < N; i++) {
        vg_csink_init(&sinks[i]);
        sinks[i].full_after = 1;
        vg_cdrv_watch(&d, &sinks[i], everything(KIND_PODS),
                      (struct vg_cache_watch_opts){.start = VG_WATCH_NOW});
    }
    vg_cdrv_turn_ports(&d);
    put(KIND_PODS, "p");
    vg_cdrv_sync(&d);
    uint64_t pinned = vg_cdrv_stats(&d).pinned_bytes;
    for (int i = 0; i < 3000; i++)
        put(KIND_PODS, "p");
    vg_cdrv_sync(&d);
    vg_cdrv_sync_feed(&d); /* takes back what the port has let go of */
    struct vg_cache_kind_stats stats;
    vg_cacher_kind_stats(d.c, KIND_PODS, &stats);
    assert_int_equal(vg_cdrv_stats(&d).pinned_bytes, pinned);
    assert_true(stats.events <= 512);
    assert_true(stats.tree.roots <= 512 + 2);
    assert_true(stats.tree.recs_retired <= 512 + 2);
    for (int i = 0; i < N; i++)
        vg_csink_done(&sinks[i]);
    free(sinks);
}

static void a_hundred_thousand_watchers_come_and_go(void **state)
{
    (void)state;
    enum { ROUNDS = 100, N = 1000 };
    struct vg_csink *sinks = calloc(N, sizeof *sinks);
    assert_non_null(sinks);
    open_with(NULL);
    put(KIND_PODS, "p1");
    vg_cdrv_sync(&d);
    for (int r = 0; r < ROUNDS; r++) {
        for (int i = 0; i < N; i++) {
            vg_csink_init(&sinks[i]);
            vg_cdrv_watch(&d, &sinks[i], everything(i % 10 ? KIND_PODS : KIND_EVENTS),
                          (struct vg_cache_watch_opts){.kind = i % 10 ? KIND_PODS : KIND_EVENTS,
                                                       .start = (enum vg_watch_start)(i % 3),
                                                       .rev = 1,
                                                       .with_bookmarks = true,
                                                       .timeout_ms = 5000});
        }
        if (r % 2)
            vg_cdrv_turn_ports(&d);
        for (int i = 0; i < N; i++)
            vg_csink_done(&sinks[i]);
        vg_cdrv_turn_ports(&d);
    }
    assert_int_equal(vg_cache_port_watchers(d.ports[0]), 0);
    free(sinks);
}

/* Watch, write and read on with the n-th allocation of the loops failing. True: it struck. */
static bool strike(bool is_uncached, enum vg_watch_start start, uint64_t n)
{
    open_with(&(struct vg_cdrv_opts){.pods_uncached = is_uncached});
    put(KIND_PODS, "p1");
    vg_cdrv_sync(&d);
    struct vg_cache_watch_opts o = {.start = start, .rev = 1};
    struct vg_obj_predicate *p = vg_cdrv_predicate(KIND_PODS, "a", NULL, NULL, NULL);
    struct vg_op op = vg_cdrv_put_op(KIND_PODS, &(struct vg_pod){.ns = "a", .name = "p2"});
    s.full_after = 1;
    (void)vg_alloc_fail_at(n, 0);
    int err = vg_cdrv_try_watch(&d, 0, &s, p, o);
    if (err == 0)
        vg_cdrv_wait_frames(&d, &s, 1);
    assert_int_equal(vg_drv_run(&d.store, &op, 1, NULL), 0); /* allocates elsewhere */
    while (vg_cacher_revision(d.c) < 3 && vg_cacher_is_ready(d.c))
        vg_loop_turn(d.feed, true);
    while (err == 0 && !s.is_ended && s.n < 2) {
        vg_csink_drain(&s);
        vg_cdrv_wait_frames(&d, &s, s.n + (s.n < 2));
    }
    bool has_struck = vg_alloc_fail_at(0, 0) >= n;
    assert_true(err == 0 || (err == -ENOMEM && has_struck));
    if (err == 0 && !s.is_ended)
        vg_csink_expect(&s, "ADDED a/p1@2", "ADDED a/p2@3", NULL);
    else if (err == 0)
        assert_true(s.why == VG_END_INTERNAL || s.why == VG_END_CONTINUITY);
    close_all(NULL);
    return has_struck;
}

static void lack_of_memory_ends_streams_or_leaves_them_exact(void **state)
{
    (void)state;
    static const enum vg_watch_start starts[] = {VG_WATCH_AFTER, VG_WATCH_STATE};
    for (int k = 0; k < 4; k++) {
        uint64_t n = 1;
        while (strike(k / 2, starts[k % 2], n))
            n++;
        assert_true(n > 3);
    }
    open_with(NULL); /* for the teardown */
}

/* The feed's n-th allocation fails while it lists and fills: it tries again and gets there. */
static void a_start_without_memory_is_tried_again(void **state)
{
    (void)state;
    uint64_t n_struck = 0;
    open_with(NULL);
    for (int i = 0; i < 30; i++)
        vg_cdrv_put(&d, KIND_PODS,
                    &(struct vg_pod){.ns = "a", .name = i % 3 ? "p" : "q", .node = "n", .n = i});
    for (uint64_t n = 1; n < 60; n++) {
        struct vg_cache_snapshot snap;
        vg_cdrv_close_cacher(&d);
        assert_int_equal(vg_cacher_open(&d.opts, d.feed, &d.c), 0);
        (void)vg_alloc_fail_at(n, 0);
        while (!vg_cacher_is_ready(d.c) && d.c->state != FEED_WAITING)
            vg_loop_turn(d.feed, true);
        n_struck += vg_alloc_fail_at(0, 0) >= n;
        while (!vg_cacher_is_ready(d.c))
            if (d.c->state == FEED_WAITING)
                vg_cdrv_advance_ms(&d, 1000);
            else
                vg_loop_turn(d.feed, true);
        assert_int_equal(vg_cache_newest(d.c, KIND_PODS, &snap), 0);
        assert_int_equal(vg_root_count(snap.root), 2);
        assert_int_equal(vg_root_count(snap.trigger), 2);
        assert_int_equal(snap.rev, 31);
        vg_cache_snapshot_done(&snap);
        vg_history_check(&d.c->kinds[KIND_PODS].history);
    }
    assert_true(n_struck > 5);
}

static void opening_without_memory_says_so(void **state)
{
    (void)state;
    open_with(NULL);
    VG_ALLOC_FAIL_LOOP (n) {
        struct vg_cacher *c = NULL;
        struct vg_cache_port *p = NULL;
        bool is_done = false;
        int err = vg_cacher_open(&d.opts, d.feed, &c);
        int port_err = err < 0 ? err : vg_cache_port_open(c, d.loops[0], &p);
        if (vg_test_alloc_failed())
            assert_true(err == -ENOMEM || port_err == -ENOMEM);
        else
            assert_int_equal(port_err, 0);
        if (p)
            vg_cache_port_close(p);
        if (c)
            vg_cacher_close(c, &is_done);
        while (c && !is_done)
            vg_loop_turn(d.feed, true);
    }
}

#define TEST(f) cmocka_unit_test_teardown(f, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_watcher_resumes_after_a_restart_without_a_list),
        TEST(a_watcher_resumes_after_a_kill_without_a_list),
        TEST(an_old_revision_resumes_from_storage_when_the_refill_is_short),
        TEST(a_refilled_tail_knows_what_each_change_replaced),
        TEST(changes_of_one_revision_are_all_known_to_the_refill),
        TEST(lost_continuity_ends_cached_watchers_only),
        TEST(a_storage_watch_that_ends_with_its_place_kept_ends_nobody),
        TEST(a_storage_watch_that_ends_during_the_refill_goes_on_with_it),
        TEST(compaction_during_the_refill_lists_anew),
        TEST(a_thousand_slow_readers_pin_a_frame_each_and_no_more),
        TEST(what_was_lost_is_resumed_exactly),
        cmocka_unit_test(results_are_equal_with_the_cache_on_and_off),
        TEST(a_hundred_thousand_watchers_come_and_go),
        TEST(lack_of_memory_ends_streams_or_leaves_them_exact),
        TEST(a_start_without_memory_is_tried_again),
        TEST(opening_without_memory_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
