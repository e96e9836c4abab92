/* cacher_state_test.c - reading the cache: ready or not, snapshots, walks, pages, freshness, and
 * forms. */
#include "test_support.h"

#include <stdio.h>

#include "cacher_driver.h"

static struct vg_cdrv d;

static int close_driver(void **state)
{
    (void)state;
    vg_cdrv_close(&d);
    return 0;
}

static void put_pods(int n)
{
    for (int i = 0; i < n; i++) {
        char name[16], node[16], labels[32];
        snprintf(name, sizeof name, "p%03d", i);
        snprintf(node, sizeof node, "n%d", i % 7);
        snprintf(labels, sizeof labels, "\"app\":\"%c\"", 'x' + i % 3);
        vg_cdrv_put(&d, KIND_PODS,
                    &(struct vg_pod){
                        .ns = i % 2 ? "a" : "b", .name = name, .node = node, .labels = labels});
    }
    vg_cdrv_sync(&d);
}

/* ---- the ready gate ---- */

static void before_it_is_ready_everything_asks_to_come_again(void **state)
{
    (void)state;
    struct vg_cache_snapshot snap;
    struct vg_csink s;
    vg_csink_init(&s);
    vg_cdrv_open_cold(&d, NULL);
    vg_cdrv_open_ports(&d);
    assert_false(vg_cacher_is_ready(d.c));
    assert_int_equal(vg_cache_newest(d.c, KIND_PODS, &snap), VIGIL_E_BUSY);
    assert_int_equal(vg_cache_exact(d.c, KIND_PODS, 1, &snap), VIGIL_E_BUSY);
    assert_int_equal(vg_cdrv_try_watch(&d, 0, &s,
                                       vg_cdrv_predicate(KIND_PODS, NULL, NULL, NULL, NULL),
                                       (struct vg_cache_watch_opts){.start = VG_WATCH_NOW}),
                     VIGIL_E_BUSY);
    assert_int_equal(vg_cacher_retry_after_s(d.c), 1);
    vg_drv_advance_ms(&d.store, 30000);
    assert_int_equal(vg_cacher_retry_after_s(d.c), 6); /* e^1.8 */
    vg_drv_advance_ms(&d.store, 300000);
    assert_int_equal(vg_cacher_retry_after_s(d.c), 30);
    vg_cdrv_wait_ready(&d);
    assert_int_equal(vg_cache_newest(d.c, KIND_PODS, &snap), 0);
    vg_cache_snapshot_done(&snap);
    assert_int_equal(vg_cache_newest(d.c, KIND_EVENTS, &snap), VIGIL_E_UNSUPPORTED);
    vg_csink_done(&s);
}

static void a_cacher_may_close_before_its_first_turn(void **state)
{
    (void)state;
    vg_cdrv_open_cold(&d, NULL);
    vg_cdrv_close_cacher(&d);
}

/* ---- walks ---- */

/* Walking with a predicate equals filtering everything. */
static size_t compare_walks(const struct vg_cache_snapshot *snap, struct vg_obj_predicate *take_p)
{
    struct vg_cache_walk all, some;
    struct vg_obj_key buf;
    size_t n = 0;
    vg_cache_walk_init(&all, d.c, KIND_PODS, snap, NULL, vg_slice(NULL, 0), &buf);
    vg_cache_walk_init(&some, d.c, KIND_PODS, snap, take_p, vg_slice(NULL, 0), &buf);
    for (const struct vg_rec *rec; (rec = vg_cache_walk_next(&all));) {
        struct vg_obj_header h;
        vg_obj_header_read(vg_rec_header(rec), vg_rec_value(rec), &h);
        if (!vg_obj_predicate_matches(take_p, &h))
            continue;
        assert_ptr_equal(vg_cache_walk_next(&some), rec);
        n++;
    }
    assert_null(vg_cache_walk_next(&some));
    vg_obj_predicate_unref(take_p);
    return n;
}

static void a_walk_with_a_selector_equals_a_filter(void **state)
{
    (void)state;
    struct vg_cache_snapshot snap;
    vg_cdrv_open(&d, NULL);
    put_pods(210);
    assert_int_equal(vg_cache_newest(d.c, KIND_PODS, &snap), 0);
    assert_int_equal(vg_root_count(snap.root), 210);
    assert_int_equal(compare_walks(&snap, vg_cdrv_predicate(KIND_PODS, NULL, NULL, NULL, NULL)),
                     210);
    assert_int_equal(compare_walks(&snap, vg_cdrv_predicate(KIND_PODS, "a", NULL, NULL, NULL)),
                     105);
    assert_int_equal(compare_walks(&snap, vg_cdrv_predicate(KIND_PODS, "c", NULL, NULL, NULL)), 0);
    assert_int_equal(compare_walks(&snap, vg_cdrv_predicate(KIND_PODS, NULL, NULL, "app=x", NULL)),
                     70);
    assert_int_equal(
        compare_walks(&snap, vg_cdrv_predicate(KIND_PODS, NULL, NULL, NULL, "spec.nodeName=n3")),
        30);
    assert_int_equal(
        compare_walks(&snap, vg_cdrv_predicate(KIND_PODS, "b", NULL, "app!=x", "spec.nodeName=n3")),
        10);
    vg_cache_snapshot_done(&snap);
}

/* More than two pages of the feed's list: trees are loaded, not grown, the index by a thread. */
static void a_state_that_was_listed_in_pages_equals_a_filter(void **state)
{
    (void)state;
    struct vg_cache_snapshot snap;
    vg_cdrv_open(&d, &(struct vg_cdrv_opts){.engine = "lmdb", .cacher = {.refill_max = 7}});
    put_pods(4200);
    vg_cdrv_close_cacher(&d);
    vg_drv_reopen(&d.store);
    vg_cdrv_open_again(&d);
    assert_int_equal(vg_cache_newest(d.c, KIND_PODS, &snap), 0);
    assert_int_equal(vg_root_count(snap.root), 4200);
    assert_int_equal(compare_walks(&snap, vg_cdrv_predicate(KIND_PODS, "a", NULL, NULL, NULL)),
                     2100);
    assert_int_equal(
        compare_walks(&snap, vg_cdrv_predicate(KIND_PODS, NULL, NULL, NULL, "spec.nodeName=n3")),
        600);
    vg_cache_snapshot_done(&snap);
}

static void pages_continue_after_the_last_key(void **state)
{
    (void)state;
    static const char *const fields[] = {NULL, "spec.nodeName=n3"};
    static const size_t want[] = {105, 15};
    struct vg_cache_snapshot snap;
    vg_cdrv_open(&d, NULL);
    put_pods(210);
    assert_int_equal(vg_cache_newest(d.c, KIND_PODS, &snap), 0);
    for (int i = 0; i < 2; i++) {
        struct vg_obj_predicate *p = vg_cdrv_predicate(KIND_PODS, "a", NULL, NULL, fields[i]);
        struct vg_slice after = {0};
        size_t n = 0;
        for (bool more = true; more;) { /* pages of four */
            struct vg_cache_walk walk;
            struct vg_obj_key buf;
            vg_cache_walk_init(&walk, d.c, KIND_PODS, &snap, p, after, &buf);
            for (int k = 0; k < 4 && more; k++) {
                const struct vg_rec *rec = vg_cache_walk_next(&walk);
                more = rec != NULL;
                if (!rec)
                    continue;
                assert_true(!after.n || vg_slice_cmp(after, vg_rec_key(rec)) < 0);
                after = vg_rec_key(rec);
                n++;
            }
        }
        assert_int_equal(n, want[i]);
        vg_obj_predicate_unref(p);
    }
    vg_cache_snapshot_done(&snap);
}

static void an_older_revision_is_read_exactly(void **state)
{
    (void)state;
    struct vg_cache_snapshot snap;
    vg_cdrv_open(&d, NULL);
    for (int i = 0; i < 20; i++)
        put_pods(i + 1); /* a batch each time the feed turns */
    vg_rev now = vg_cacher_revision(d.c);
    size_t found = 0;
    for (vg_rev rev = 2; rev <= now; rev++) {
        int err = vg_cache_exact(d.c, KIND_PODS, rev, &snap);
        if (err == VIGIL_E_NOT_FOUND)
            continue; /* inside a batch */
        assert_int_equal(err, 0);
        assert_int_equal(snap.rev, rev);
        struct vg_range range = {.keys = vg_drv_span("/registry/pods/", "/registry/pods0"),
                                 .at = rev};
        assert_int_equal(vg_drv_range(&d.store, &range), 0);
        assert_int_equal(vg_root_count(snap.root), range.n_recs);
        for (size_t i = 0; i < range.n_recs; i++) {
            struct vg_tree_key key = {.minor = vg_rec_key(range.recs[i])};
            const struct vg_rec *rec = vg_root_get(snap.root, key);
            assert_non_null(rec);
            assert_int_equal(rec->rev, range.recs[i]->rev);
        }
        vg_range_done(&range);
        vg_cache_snapshot_done(&snap);
        found++;
    }
    assert_true(found >= 20);
    assert_int_equal(vg_cache_exact(d.c, KIND_PODS, now + 1, &snap), VIGIL_E_FUTURE);
}

/* ---- freshness ---- */

static int answers[4];
static int n_answers;

static void on_fresh(struct vg_cache_wait *wait, int err)
{
    (void)wait;
    answers[n_answers++] = err;
}

static void a_wait_ends_when_the_cache_is_fresh_or_time_is_up(void **state)
{
    (void)state;
    struct vg_cache_wait at_once, later, never, cancelled;
    vg_cdrv_open(&d, NULL);
    n_answers = 0;
    vg_cache_wait_consistent(d.ports[0], &at_once, on_fresh);
    assert_int_equal(n_answers, 0); /* never from within */
    vg_cdrv_turn_ports(&d);
    assert_int_equal(n_answers, 1);
    vg_cache_wait_fresh(d.ports[0], 2, &later, on_fresh);
    vg_cache_wait_fresh(d.ports[0], 1000, &never, on_fresh);
    vg_cache_wait_fresh(d.ports[0], 1000, &cancelled, on_fresh);
    vg_cache_wait_cancel(&cancelled);
    vg_cdrv_turn_ports(&d);
    assert_int_equal(n_answers, 1);
    put_pods(1);
    assert_int_equal(n_answers, 2);
    vg_cdrv_advance_ms(&d, 2900);
    assert_int_equal(n_answers, 2);
    vg_cdrv_advance_ms(&d, 200);
    assert_int_equal(n_answers, 3);
    assert_int_equal(answers[0], 0);
    assert_int_equal(answers[1], 0);
    assert_int_equal(answers[2], VIGIL_E_FUTURE);
}

/* ---- forms ---- */

static int make_form(void *arg, uint32_t form, const struct vg_rec *rec, vg_rev rev,
                     struct vg_buf *out)
{
    (void)arg;
    struct vg_obj_header h;
    vg_obj_header_read(vg_rec_header(rec), vg_rec_value(rec), &h);
    struct vg_slice name = vg_obj_name(&h);
    return vg_buf_printf(out, "{\"form\":%u,\"name\":\"%.*s\",\"resourceVersion\":\"%llu\"}", form,
                         (int)name.n, name.p, (unsigned long long)rev);
}

/* Three forms; two watchers see MODIFIED, two ADDED, two DELETED of one and the same change. */
static void one_body_is_made_per_event_form_and_content(void **state)
{
    (void)state;
    enum { WATCHERS = 18 };
    static const char *const selectors[] = {"app in (x,y)", "app=y", "app=x"};
    struct vg_csink sinks[WATCHERS];
    struct vg_pod pod = {.ns = "a", .name = "p", .labels = "\"app\":\"x\""};
    vg_cdrv_open(&d, &(struct vg_cdrv_opts){.cacher = {.make_form = make_form}});
    vg_cdrv_put(&d, KIND_PODS, &pod);
    vg_cdrv_sync(&d);
    for (uint32_t i = 0; i < WATCHERS; i++) {
        uint8_t form = (uint8_t)(1 + i / 3 % 3);
        vg_csink_init(&sinks[i]);
        vg_cdrv_watch(&d, &sinks[i],
                      vg_cdrv_predicate(KIND_PODS, NULL, NULL, selectors[i % 3], NULL),
                      (struct vg_cache_watch_opts){.start = VG_WATCH_NOW, .form = form});
    }
    vg_cdrv_turn_ports(&d);
    pod.labels = "\"app\":\"y\"";
    vg_cdrv_put(&d, KIND_PODS, &pod);
    vg_cdrv_sync(&d);
    struct vg_cacher_stats stats = vg_cdrv_stats(&d);
    assert_int_equal(stats.bodies_made, 3 * 2); /* the new content and the old one */
    assert_int_equal(stats.bodies_shared, WATCHERS - 6);
    for (uint32_t i = 0; i < WATCHERS; i++) {
        static const char *const types[] = {"MODIFIED", "ADDED", "DELETED"};
        char want[128];
        snprintf(
            want, sizeof want,
            "{\"type\":\"%s\",\"object\":{\"form\":%u,\"name\":\"p\",\"resourceVersion\":\"3\"}}\n",
            types[i % 3], 1 + i / 3 % 3);
        assert_int_equal(sinks[i].n, 1);
        assert_string_equal(sinks[i].frames[0], want);
        vg_csink_done(&sinks[i]);
    }
}

/* Form 1 is kept, once somebody asked for it as part of a state. */
static bool is_kept;

static struct vg_slice kept_form(void *arg, uint32_t form, const struct vg_rec *rec, bool again)
{
    (void)arg;
    (void)rec;
    is_kept |= form == 1 && again;
    return is_kept ? VG_SLICE_LIT("{\"kept\":true}") : VG_SLICE_LIT("");
}

static int frame_form(void *arg, uint32_t form, enum vg_obj_change change, struct vg_slice body,
                      struct vg_obj_splice *ret)
{
    (void)arg;
    (void)form;
    vg_obj_splice_frame_of(ret, change, body);
    ret->v[0] = VG_SLICE_LIT("<");
    ret->v[2] = VG_SLICE_LIT(">\n");
    return 0;
}

/* Not so an object that is gone: it is shown at another revision than its own. */
static void what_is_kept_with_a_record_is_told_as_it_is(void **state)
{
    (void)state;
    struct vg_csink live, begun;
    struct vg_pod pod = {.ns = "a", .name = "p"};
    is_kept = false;
    vg_cdrv_open(&d, &(struct vg_cdrv_opts){.cacher = {.make_form = make_form,
                                                       .kept_form = kept_form,
                                                       .frame_form = frame_form}});
    vg_csink_init(&live);
    vg_csink_init(&begun);
    vg_cdrv_watch(&d, &live, vg_cdrv_predicate(KIND_PODS, NULL, NULL, NULL, NULL),
                  (struct vg_cache_watch_opts){.start = VG_WATCH_NOW, .form = 1});
    vg_cdrv_turn_ports(&d);
    vg_cdrv_put(&d, KIND_PODS, &pod);
    vg_cdrv_sync(&d);
    assert_int_equal(live.n, 1);
    assert_string_equal(live.frames[0],
                        "<{\"form\":1,\"name\":\"p\",\"resourceVersion\":\"2\"}>\n");
    assert_false(is_kept);
    vg_cdrv_watch(&d, &begun, vg_cdrv_predicate(KIND_PODS, NULL, NULL, NULL, NULL),
                  (struct vg_cache_watch_opts){.start = VG_WATCH_STATE, .form = 1});
    vg_cdrv_turn_ports(&d);
    assert_int_equal(begun.n, 1);
    assert_string_equal(begun.frames[0], "<{\"kept\":true}>\n");
    vg_cdrv_put(&d, KIND_PODS, &pod);
    vg_cdrv_delete(&d, KIND_PODS, "a", "p");
    vg_cdrv_sync(&d);
    assert_int_equal(live.n, 3);
    assert_string_equal(live.frames[1], "<{\"kept\":true}>\n");
    assert_string_equal(live.frames[2],
                        "<{\"form\":1,\"name\":\"p\",\"resourceVersion\":\"4\"}>\n");
    vg_csink_done(&live);
    vg_csink_done(&begun);
}

/* The other port comes for the form while it is being made. */
static int make_form_slowly(void *arg, uint32_t form, const struct vg_rec *rec, vg_rev rev,
                            struct vg_buf *out)
{
    for (int i = 0; i < 3; i++)
        vg_loop_turn(d.loops[1], false);
    return make_form(arg, form, rec, rev, out);
}

static void a_form_that_is_being_made_is_waited_for_without_holding_the_loop(void **state)
{
    (void)state;
    struct vg_csink sinks[2];
    vg_cdrv_open(&d,
                 &(struct vg_cdrv_opts){.n_ports = 2, .cacher = {.make_form = make_form_slowly}});
    for (size_t i = 0; i < 2; i++) {
        vg_csink_init(&sinks[i]);
        assert_int_equal(
            vg_cdrv_try_watch(&d, i, &sinks[i],
                              vg_cdrv_predicate(KIND_PODS, i ? "a" : NULL, NULL, NULL, NULL),
                              (struct vg_cache_watch_opts){.start = VG_WATCH_NOW, .form = 1}),
            0);
    }
    vg_cdrv_turn_ports(&d);
    vg_cdrv_put(&d, KIND_PODS, &(struct vg_pod){.ns = "a", .name = "p"});
    vg_cdrv_sync_feed(&d);
    vg_loop_turn(d.loops[0], false);
    assert_int_equal(sinks[0].n, 1);
    assert_int_equal(sinks[1].n, 0); /* it was told to come again */
    vg_cdrv_turn_ports(&d);
    assert_int_equal(sinks[1].n, 1);
    assert_string_equal(sinks[0].frames[0], sinks[1].frames[0]);
    assert_int_equal(vg_cdrv_stats(&d).bodies_made, 1);
    assert_int_equal(vg_cdrv_stats(&d).bodies_shared, 1);
    for (int i = 0; i < 2; i++)
        vg_csink_done(&sinks[i]);
}

static void forms_beyond_the_budget_are_made_for_each(void **state)
{
    (void)state;
    struct vg_csink sinks[3];
    struct vg_pod pod = {.ns = "a", .name = "p"};
    vg_cdrv_open(&d,
                 &(struct vg_cdrv_opts){.cacher = {.make_form = make_form, .form_bytes_max = 1}});
    for (int i = 0; i < 3; i++) {
        vg_csink_init(&sinks[i]);
        vg_cdrv_watch(&d, &sinks[i], vg_cdrv_predicate(KIND_PODS, NULL, NULL, NULL, NULL),
                      (struct vg_cache_watch_opts){.start = VG_WATCH_NOW, .form = 1});
    }
    vg_cdrv_put(&d, KIND_PODS, &pod);
    vg_cdrv_sync(&d);
    assert_int_equal(vg_cdrv_stats(&d).bodies_made, 3);
    for (int i = 0; i < 3; i++) {
        vg_csink_expect(&sinks[i], "ADDED p@2", NULL);
        vg_csink_done(&sinks[i]);
    }
}

#define TEST(f) cmocka_unit_test_teardown(f, close_driver)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(before_it_is_ready_everything_asks_to_come_again),
        TEST(a_cacher_may_close_before_its_first_turn),
        TEST(a_walk_with_a_selector_equals_a_filter),
        TEST(a_state_that_was_listed_in_pages_equals_a_filter),
        TEST(pages_continue_after_the_last_key),
        TEST(an_older_revision_is_read_exactly),
        TEST(a_wait_ends_when_the_cache_is_fresh_or_time_is_up),
        TEST(one_body_is_made_per_event_form_and_content),
        TEST(what_is_kept_with_a_record_is_told_as_it_is),
        TEST(a_form_that_is_being_made_is_waited_for_without_holding_the_loop),
        TEST(forms_beyond_the_budget_are_made_for_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
