/* cacher_watch_test.c - where a watch starts, what it is told, and who is found by the index. */
#include "test_support.h"

#include <stdio.h>
#include <stdlib.h>

#include "cacher_driver.h"

static const struct vg_pod a1 = {.ns = "a", .name = "p1", .node = "n1", .labels = "\"app\":\"x\""};
static const struct vg_pod a1_y = {.ns = "a", .name = "p1", .labels = "\"app\":\"y\"", .n = 1};
static const struct vg_pod a1_n2 = {.ns = "a", .name = "p1", .node = "n2", .n = 2};
static const struct vg_pod b1 = {.ns = "b", .name = "p1", .node = "n2"};
static const struct vg_pod b0 = {.ns = "b", .name = "p0"};

static struct vg_obj_predicate *everything(void)
{
    return vg_cdrv_predicate(KIND_PODS, NULL, NULL, NULL, NULL);
}

static struct vg_cdrv d;
static struct vg_csink s;

static int open_driver(void **state)
{
    (void)state;
    vg_cdrv_open(&d, NULL);
    vg_csink_init(&s);
    return 0;
}

static int close_driver(void **state)
{
    (void)state;
    vg_csink_done(&s);
    vg_cdrv_close(&d);
    return 0;
}

static void a_watch_from_now_gets_what_follows(void **state)
{
    (void)state;
    vg_cdrv_put(&d, KIND_PODS, &a1);
    vg_cdrv_sync(&d);
    vg_cdrv_watch(&d, &s, everything(), (struct vg_cache_watch_opts){.start = VG_WATCH_NOW});
    vg_cdrv_put(&d, KIND_PODS, &a1);
    vg_cdrv_delete(&d, KIND_PODS, "a", "p1");
    vg_cdrv_sync(&d);
    vg_csink_expect(&s, "MODIFIED a/p1@3", "DELETED a/p1@4", NULL);
}

static void a_watch_from_now_begins_at_the_store_when_the_cache_is_behind(void **state)
{
    (void)state;
    vg_cdrv_put(&d, KIND_PODS, &a1); /* the feed has not seen it */
    vg_cdrv_watch(&d, &s, everything(), (struct vg_cache_watch_opts){.start = VG_WATCH_NOW});
    vg_cdrv_put(&d, KIND_PODS, &b1);
    vg_cdrv_sync(&d);
    vg_csink_expect(&s, "ADDED b/p1@3", NULL);
}

static void a_watch_from_a_revision_replays_and_goes_on(void **state)
{
    (void)state;
    vg_rev first = vg_cdrv_put(&d, KIND_PODS, &a1);
    vg_cdrv_put(&d, KIND_PODS, &b1);
    vg_cdrv_sync(&d);
    vg_cdrv_watch(&d, &s, everything(),
                  (struct vg_cache_watch_opts){.start = VG_WATCH_AFTER, .rev = first});
    vg_cdrv_turn_ports(&d);
    vg_csink_expect(&s, "ADDED b/p1@3", NULL);
    vg_cdrv_put(&d, KIND_PODS, &b0);
    vg_cdrv_sync(&d);
    vg_csink_expect(&s, "ADDED b/p1@3", "ADDED b/p0@4", NULL);
    assert_int_equal(vg_cdrv_stats(&d).events_replayed, 1);
}

static void a_watch_from_the_future_is_silent_until_then(void **state)
{
    (void)state;
    vg_cdrv_watch(&d, &s, everything(),
                  (struct vg_cache_watch_opts){.start = VG_WATCH_AFTER, .rev = 3});
    vg_cdrv_put(&d, KIND_PODS, &a1);
    vg_cdrv_sync(&d);
    vg_cdrv_put(&d, KIND_PODS, &b1);
    vg_cdrv_put(&d, KIND_PODS, &b0);
    vg_cdrv_sync(&d);
    vg_csink_expect(&s, "ADDED b/p0@4", NULL);
}

static void a_state_comes_in_key_order_and_ends_with_a_bookmark(void **state)
{
    (void)state;
    vg_cdrv_put(&d, KIND_PODS, &b1);
    vg_cdrv_put(&d, KIND_PODS, &a1);
    vg_cdrv_put(&d, KIND_PODS, &b0);
    vg_cdrv_sync(&d);
    vg_cdrv_watch(&d, &s, everything(),
                  (struct vg_cache_watch_opts){.start = VG_WATCH_STATE, .with_end_bookmark = true});
    vg_cdrv_put(&d, KIND_PODS, &a1);
    vg_cdrv_sync(&d);
    vg_csink_expect(&s, "ADDED a/p1@3", "ADDED b/p0@4", "ADDED b/p1@2", "BOOKMARK@4 end",
                    "MODIFIED a/p1@5", NULL);
    assert_int_equal(vg_cdrv_stats(&d).init_events, 3);
}

static void an_end_bookmark_is_an_empty_object(void **state)
{
    (void)state;
    vg_cdrv_watch(&d, &s, everything(),
                  (struct vg_cache_watch_opts){.start = VG_WATCH_STATE, .with_end_bookmark = true});
    vg_cdrv_turn_ports(&d);
    assert_int_equal(s.n, 1);
    assert_string_equal(
        s.frames[0],
        "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{"
        "\"resourceVersion\":\"1\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}},"
        "\"spec\":{\"containers\":null},\"status\":{}}}\n");
}

static void expect_frame(size_t i, const char *type, const struct vg_pod *pod, vg_rev rev)
{
    char *want = vg_cdrv_frame(type, KIND_PODS, pod, rev);
    assert_true(i < s.n);
    assert_string_equal(s.frames[i], want);
    free(want);
}

static void selectors_turn_changes_into_added_modified_and_deleted(void **state)
{
    (void)state;
    vg_cdrv_watch(&d, &s, vg_cdrv_predicate(KIND_PODS, NULL, NULL, "app=x", NULL),
                  (struct vg_cache_watch_opts){.start = VG_WATCH_NOW});
    vg_cdrv_put(&d, KIND_PODS, &a1_y);        /* 2: no -> no */
    vg_cdrv_put(&d, KIND_PODS, &a1);          /* 3: no -> yes */
    vg_cdrv_put(&d, KIND_PODS, &a1);          /* 4: yes -> yes */
    vg_cdrv_put(&d, KIND_PODS, &a1_y);        /* 5: yes -> no */
    vg_cdrv_delete(&d, KIND_PODS, "a", "p1"); /* 6: no -> gone */
    vg_cdrv_put(&d, KIND_PODS, &a1);          /* 7 */
    vg_cdrv_delete(&d, KIND_PODS, "a", "p1"); /* 8: yes -> gone */
    vg_cdrv_sync(&d);
    assert_int_equal(s.n, 5);
    expect_frame(0, "ADDED", &a1, 3);
    expect_frame(1, "MODIFIED", &a1, 4);
    expect_frame(2, "DELETED", &a1, 5); /* what it was, at the revision of the change */
    expect_frame(3, "ADDED", &a1, 7);
    expect_frame(4, "DELETED", &a1, 8);
}

/* ---- the interest index ---- */

static uint64_t dispatched(void)
{
    return vg_cdrv_stats(&d).events_dispatched;
}

static void a_change_finds_those_who_care_and_nobody_else(void **state)
{
    (void)state;
    struct vg_csink sinks[7];
    struct vg_obj_predicate *p[7] = {
        vg_cdrv_predicate(KIND_PODS, "a", NULL, NULL, NULL),
        vg_cdrv_predicate(KIND_PODS, "b", NULL, NULL, NULL),
        vg_cdrv_predicate(KIND_PODS, "a", "p1", NULL, NULL),
        vg_cdrv_predicate(KIND_PODS, "a", "p2", NULL, NULL),
        vg_cdrv_predicate(KIND_PODS, NULL, NULL, NULL, "spec.nodeName=n1"),
        vg_cdrv_predicate(KIND_PODS, NULL, NULL, NULL, "spec.nodeName=n2"),
        everything(),
    };
    for (int i = 0; i < 7; i++) {
        vg_csink_init(&sinks[i]);
        vg_cdrv_watch(&d, &sinks[i], p[i], (struct vg_cache_watch_opts){.start = VG_WATCH_NOW});
    }
    vg_cdrv_turn_ports(&d);
    vg_cdrv_put(&d, KIND_PODS, &a1);
    vg_cdrv_sync(&d);
    assert_int_equal(dispatched(), 4);
    vg_cdrv_put(&d, KIND_PODS, &a1_n2); /* moves from n1 to n2 */
    vg_cdrv_sync(&d);
    assert_int_equal(dispatched(), 4 + 5);
    vg_csink_expect(&sinks[4], "ADDED a/p1@2", "DELETED a/p1@3", NULL);
    vg_csink_expect(&sinks[5], "ADDED a/p1@3", NULL);
    vg_csink_expect(&sinks[1], NULL, NULL);
    for (int i = 0; i < 7; i++)
        vg_csink_done(&sinks[i]);
    vg_cdrv_turn_ports(&d);
    vg_cdrv_put(&d, KIND_PODS, &a1);
    vg_cdrv_sync(&d);
    assert_int_equal(dispatched(), 9); /* the index is empty again */
}

/* Watchers of one value. The one numbered `killer` stops those in `victims` inside its write. */
#define RING 4u

struct ring {
    struct vg_csink sinks[RING];
    unsigned killer, victims;
    char told[2 * RING + 1]; /* in which order: their numbers */
    size_t n_told;
};

static void note_and_kill(struct vg_csink *sink, void *arg)
{
    struct ring *r = arg;
    unsigned me = (unsigned)(sink - r->sinks);
    assert_true(r->n_told < 2 * RING);
    r->told[r->n_told++] = (char)('0' + me);
    for (unsigned i = 0; i < RING && me == r->killer; i++)
        if (r->victims & (1u << i) && r->sinks[i].w)
            vg_cache_watcher_stop(vg_steal(r->sinks[i].w));
}

/* Two events: of the first, victims behind the killer hear nothing; of the second, no victim. */
static void expect_told(const struct ring *r)
{
    char want[2 * RING + 1] = {0};
    size_t n = 0;
    for (unsigned i = 0; i < RING; i++)
        if (i <= r->killer || !(r->victims & (1u << i)))
            want[n++] = (char)('0' + i);
    for (unsigned i = 0; i < RING; i++)
        if (!(r->victims & (1u << i)))
            want[n++] = (char)('0' + i);
    assert_string_equal(r->told, want);
}

static void tell_and_kill(const char *fields, unsigned killer, unsigned victims)
{
    struct ring r = {.killer = killer, .victims = victims};
    for (unsigned i = 0; i < RING; i++) {
        vg_csink_init(&r.sinks[i]);
        r.sinks[i].on_write = note_and_kill;
        r.sinks[i].arg = &r;
        vg_cdrv_watch(&d, &r.sinks[i], vg_cdrv_predicate(KIND_PODS, NULL, NULL, NULL, fields),
                      (struct vg_cache_watch_opts){.start = VG_WATCH_NOW});
    }
    vg_cdrv_turn_ports(&d);
    for (int i = 0; i < 2; i++) {
        vg_cdrv_put(&d, KIND_PODS, &a1);
        vg_cdrv_sync(&d);
    }
    expect_told(&r);
    for (unsigned i = 0; i < RING; i++)
        vg_csink_done(&r.sinks[i]);
    vg_cdrv_turn_ports(&d);
}

static void a_write_may_stop_any_of_those_that_care_for_the_same(void **state)
{
    (void)state;
    for (unsigned killer = 0; killer < RING; killer++)
        for (unsigned victims = 0; victims < 1u << RING; victims++) {
            tell_and_kill("spec.nodeName=n1", killer, victims);
            tell_and_kill(NULL, killer, victims);
        }
}

static void a_thousand_node_watchers_cost_one_wake_up(void **state)
{
    (void)state;
    enum { N = 1000 };
    struct vg_csink *sinks = calloc(N, sizeof *sinks);
    assert_non_null(sinks);
    for (int i = 0; i < N; i++) {
        char field[64];
        snprintf(field, sizeof field, "spec.nodeName=n%d", i);
        vg_csink_init(&sinks[i]);
        vg_cdrv_watch(&d, &sinks[i], vg_cdrv_predicate(KIND_PODS, NULL, NULL, NULL, field),
                      (struct vg_cache_watch_opts){.start = VG_WATCH_NOW});
    }
    vg_cdrv_turn_ports(&d);
    vg_cdrv_put(&d, KIND_PODS, &a1);
    vg_cdrv_sync(&d);
    assert_int_equal(dispatched(), 1);
    assert_int_equal(sinks[1].n, 1);
    for (int i = 0; i < N; i++)
        vg_csink_done(&sinks[i]);
    free(sinks);
}

/* What it was spared it goes through with the next batch that is for it, or at the next tick. */
static void a_loop_is_woken_for_what_concerns_it(void **state)
{
    (void)state;
    vg_cdrv_watch(&d, &s, vg_cdrv_predicate(KIND_PODS, NULL, NULL, NULL, "spec.nodeName=n1"),
                  (struct vg_cache_watch_opts){.start = VG_WATCH_NOW});
    vg_cdrv_sync(&d);
    vg_rev before = vg_cache_port_revision(d.ports[0]);
    vg_cdrv_put(&d, KIND_PODS, &b1);
    vg_cdrv_sync_feed(&d);
    assert_false(vg_loop_turn(d.loops[0], false));
    assert_int_equal(vg_cache_port_revision(d.ports[0]), before);
    vg_cdrv_put(&d, KIND_PODS, &a1);
    vg_cdrv_sync_feed(&d);
    assert_true(vg_loop_turn(d.loops[0], false));
    vg_cdrv_put(&d, KIND_PODS, &a1_n2); /* for those of the node that it was on */
    vg_cdrv_sync_feed(&d);
    assert_true(vg_loop_turn(d.loops[0], false));
    vg_csink_expect(&s, "ADDED a/p1@3", "DELETED a/p1@4", NULL);
    vg_rev last = vg_cdrv_delete(&d, KIND_PODS, "b", "p1");
    vg_cdrv_sync_feed(&d);
    assert_false(vg_loop_turn(d.loops[0], false));
    vg_cdrv_advance_ms(&d, 1000);
    assert_int_equal(vg_cache_port_revision(d.ports[0]), last);
}

/* What its loop was spared is in the tail still. */
static void who_comes_to_a_spared_loop_misses_nothing(void **state)
{
    (void)state;
    vg_rev before = vg_cdrv_put(&d, KIND_PODS, &b1);
    vg_cdrv_sync(&d);
    vg_cdrv_put(&d, KIND_PODS, &a1);
    vg_cdrv_sync_feed(&d);
    vg_cdrv_watch(&d, &s, everything(),
                  (struct vg_cache_watch_opts){.start = VG_WATCH_AFTER, .rev = before});
    while (vg_loop_turn(d.loops[0], false))
        ;
    vg_csink_expect(&s, "ADDED a/p1@3", NULL);
}

static void replay_by_links_looks_at_what_it_delivers(void **state)
{
    (void)state;
    for (int i = 0; i < 2000; i++) {
        char node[16];
        snprintf(node, sizeof node, "n%d", i % 100);
        struct vg_pod pod = {.ns = "a", .name = "p", .node = node, .n = i};
        char name[16];
        snprintf(name, sizeof name, "p%d", i % 100);
        pod.name = name;
        vg_cdrv_put(&d, KIND_PODS, &pod);
    }
    vg_cdrv_sync(&d);
    vg_cdrv_watch(&d, &s, vg_cdrv_predicate(KIND_PODS, NULL, NULL, NULL, "spec.nodeName=n7"),
                  (struct vg_cache_watch_opts){.start = VG_WATCH_AFTER, .rev = 1});
    vg_cdrv_turn_ports(&d);
    assert_int_equal(s.n, 20);
    assert_int_equal(vg_cdrv_stats(&d).events_replayed, 20);
}

static void kinds_do_not_see_each_other(void **state)
{
    (void)state;
    static const struct vg_pod n1 = {.name = "n1"};
    vg_cdrv_watch(&d, &s, vg_cdrv_predicate(KIND_NODES, NULL, NULL, NULL, NULL),
                  (struct vg_cache_watch_opts){.kind = KIND_NODES, .start = VG_WATCH_NOW});
    vg_cdrv_put(&d, KIND_PODS, &a1);
    vg_cdrv_put(&d, KIND_NODES, &n1);
    vg_drv_put(&d.store, "/registry/other/thing", "no object");
    vg_drv_put(&d.store, "/registry/pods/a/raw", "no header");
    vg_cdrv_sync(&d);
    vg_csink_expect(&s, "ADDED n1@3", NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_driver, close_driver)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_watch_from_now_gets_what_follows),
        TEST(a_watch_from_now_begins_at_the_store_when_the_cache_is_behind),
        TEST(a_watch_from_a_revision_replays_and_goes_on),
        TEST(a_watch_from_the_future_is_silent_until_then),
        TEST(a_state_comes_in_key_order_and_ends_with_a_bookmark),
        TEST(an_end_bookmark_is_an_empty_object),
        TEST(selectors_turn_changes_into_added_modified_and_deleted),
        TEST(a_change_finds_those_who_care_and_nobody_else),
        TEST(a_write_may_stop_any_of_those_that_care_for_the_same),
        TEST(a_thousand_node_watchers_cost_one_wake_up),
        TEST(a_loop_is_woken_for_what_concerns_it),
        TEST(who_comes_to_a_spared_loop_misses_nothing),
        TEST(replay_by_links_looks_at_what_it_delivers),
        TEST(kinds_do_not_see_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
