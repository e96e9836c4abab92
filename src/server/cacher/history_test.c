/* history_test.c - links, eviction, views and restart of the hot tail. */
#include "test_support.h"

#include <errno.h>
#include <stdio.h>

#include "base/rng.h"
#include "history.h"
#include "tree_testing.h"

/* A record's header is its trigger value, the first byte of its key the namespace. */
static struct vg_slice trigger_of(const struct vg_rec *rec, void *arg)
{
    (void)arg;
    return vg_rec_header(rec);
}

static struct vg_slice ns_of(const struct vg_rec *rec, void *arg)
{
    (void)arg;
    return vg_slice(rec->bytes, 1);
}

static const struct vg_history_limits wide = {
    .events_min = 1, .events_max = 1 << 20, .bytes_max = 1 << 30, .window_ms = 1 << 30};

static void open_history(struct vg_history *h, struct vg_history_limits limits)
{
    vg_tree_must(vg_history_init(h, &limits, 1));
    h->trigger = trigger_of;
    h->ns = ns_of;
}

static struct vg_rec *record(const char *key, const char *trigger, vg_rev rev)
{
    return vg_test_rec(vg_slice_str(trigger), vg_slice_str(key), rev);
}

static int append(struct vg_history *h, struct vg_rec *take_rec, struct vg_rec *take_prev,
                  int64_t now_ms)
{
    struct vg_change *c = NULL;
    struct vg_segment *s = NULL;
    int r = vg_history_append(h, take_rec, take_prev, now_ms, &c, &s);
    vg_rec_unref(take_rec);
    vg_rec_unref(take_prev);
    return r;
}

/* A random change: create, update that may move, or delete. */
static int append_random(struct vg_history *h, struct vg_rng *rng, vg_rev rev, int64_t now_ms)
{
    char key[8] = {(char)('a' + vg_rng_below(rng, 3)), '/', 'p', 0};
    char now[8], before[8];
    snprintf(now, sizeof now, "n%d", (int)vg_rng_below(rng, 5));
    snprintf(before, sizeof before, "n%d", (int)vg_rng_below(rng, 5));
    struct vg_rec *rec = record(key, now, rev), *prev = NULL;
    uint64_t what = vg_rng_below(rng, 3);
    if (what)
        prev = record(key, before, rev - 1);
    if (what == 2) {
        vg_rec_unref(rec);
        vg_tree_must(vg_rec_new(VG_REC_DELETE, vg_slice_str(key), vg_slice(NULL, 0),
                                vg_slice(NULL, 0), &rec));
        rec->rev = rev;
    }
    return append(h, rec, prev, now_ms);
}

static void links_lead_to_the_change_before_with_the_same_value(void **state)
{
    (void)state;
    struct vg_history h;
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed());
    open_history(&h, wide);
    for (vg_rev rev = 2; rev < 700; rev++)
        assert_int_equal(append_random(&h, &rng, rev, 0), 0);
    vg_history_check(&h);
    assert_int_equal(vg_history_newest_trigger(&h, VG_SLICE_LIT("nobody")), 0);
    vg_history_done(&h);
}

static void evicting_keeps_links_and_counts_right(void **state)
{
    (void)state;
    struct vg_history h;
    struct vg_rng rng;
    struct vg_history_limits limits = wide;
    limits.events_max = 600;
    vg_rng_seed(&rng, vg_test_seed());
    open_history(&h, limits);
    for (vg_rev rev = 2; rev < 3000; rev++) {
        assert_int_equal(append_random(&h, &rng, rev, 0), 0);
        vg_history_evict(&h, 0);
        if (rev % 200 == 0)
            vg_history_check(&h);
    }
    assert_true(h.next - h.view->oldest <= 600);
    assert_true(h.shrunk > 5);
    vg_history_done(&h);
}

static size_t left_after(struct vg_history_limits limits, int64_t now_ms)
{
    struct vg_history h;
    open_history(&h, limits);
    for (vg_rev rev = 2; rev < 2 + 5 * VG_SEGMENT_CHANGES; rev++)
        vg_tree_must(
            append(&h, record("a/p", "n", rev), record("a/p", "n", rev - 1), (int64_t)rev));
    vg_history_evict(&h, now_ms);
    vg_history_check(&h);
    size_t left = (size_t)(h.next - h.view->oldest);
    assert_int_equal(h.view->oldest_rev, h.view->oldest + 1);
    vg_history_done(&h);
    return left / VG_SEGMENT_CHANGES;
}

static void age_count_and_bytes_evict_whole_segments(void **state)
{
    (void)state;
    struct vg_history_limits l = wide;
    assert_int_equal(left_after(l, 0), 5);
    l.window_ms = 100;
    assert_int_equal(left_after(l, 2 + 2 * VG_SEGMENT_CHANGES + 100), 3);
    assert_int_equal(left_after(l, 1 << 20), 1); /* the last one stays */
    l.events_min = 300;
    assert_int_equal(left_after(l, 1 << 20), 2);
    l = wide;
    l.events_max = 3 * VG_SEGMENT_CHANGES;
    assert_int_equal(left_after(l, 0), 3);
    l = wide;
    struct vg_rec *rec = record("a/p", "n", 2);
    l.bytes_max = 2 * VG_SEGMENT_CHANGES * vg_rec_size(rec);
    vg_rec_unref(rec);
    assert_int_equal(left_after(l, 0), 2);
}

/* ---- large objects ---- */

static struct vg_rec *heavy(const char *key, const char *trigger, vg_rev rev, size_t size)
{
    static const char value[256 << 10];
    struct vg_rec *rec = NULL;
    assert_true(size <= sizeof value);
    vg_tree_must(vg_rec_new(VG_REC_PUT, vg_slice_str(key), vg_slice_str(trigger),
                            vg_slice(value, size), &rec));
    rec->rev = rev;
    return rec;
}

#define HEAVY ((size_t)20000)

/* Stretches of large objects, with short segments, between stretches of small ones, with full. */
static void append_heavy(struct vg_history *h, struct vg_rng *rng, vg_rev rev)
{
    char key[8] = {(char)('a' + vg_rng_below(rng, 3)), '/', 'p', 0};
    char now[8], before[8];
    snprintf(now, sizeof now, "n%d", (int)vg_rng_below(rng, 5));
    snprintf(before, sizeof before, "n%d", (int)vg_rng_below(rng, 5));
    size_t size = rev / 300 % 2 ? vg_rng_below(rng, HEAVY) : 1;
    vg_tree_must(append(h, record(key, now, rev), heavy(key, before, rev - 1, size), 0));
}

static size_t count_short(const struct vg_history_view *v)
{
    size_t n = 0;
    for (size_t i = 0; i + 1 < v->n; i++)
        n += v->parts[i].segment->n < VG_SEGMENT_CHANGES;
    return n;
}

static void large_objects_stay_within_the_bytes(void **state)
{
    (void)state;
    struct vg_history h;
    struct vg_rng rng;
    struct vg_history_limits limits = wide;
    limits.events_min = 100;
    limits.bytes_max = 2 << 20;
    size_t largest = HEAVY + 1000, share = vg_segment_share(&limits), most = 0;
    assert_int_equal(share, 256 << 10);
    vg_rng_seed(&rng, vg_test_seed());
    open_history(&h, limits);
    bool is_mixed = false;
    for (vg_rev rev = 2; rev < 3000; rev++) {
        append_heavy(&h, &rng, rev);
        assert_true(h.bytes <= limits.bytes_max + largest);
        size_t before = h.bytes;
        vg_history_evict(&h, 0);
        assert_true(h.bytes <= limits.bytes_max);
        assert_true(before - h.bytes <= 2 * share); /* step by step */
        size_t n_short = count_short(h.view);
        is_mixed = is_mixed || (n_short && n_short + 1 < h.view->n);
        most = h.bytes > most ? h.bytes : most;
        if (rev % 100 == 0)
            vg_history_check(&h);
    }
    assert_true(is_mixed);
    assert_true(most > limits.bytes_max - share - largest);
    vg_history_done(&h);
}

static size_t left_of_huge(size_t events_min)
{
    struct vg_history h;
    struct vg_history_limits limits = wide;
    limits.events_min = events_min;
    limits.bytes_max = 256 << 10;
    open_history(&h, limits);
    for (vg_rev rev = 2; rev < 200; rev++) {
        vg_tree_must(append(&h, record("a/p", "n", rev), heavy("a/p", "n", rev - 1, 200 << 10), 0));
        vg_history_evict(&h, 0);
    }
    vg_history_check(&h);
    size_t left = (size_t)(h.next - h.view->oldest);
    vg_history_done(&h);
    return left;
}

/* Bytes win over the least number of events, but for a floor. */
static void a_few_changes_stay_whatever_they_weigh(void **state)
{
    (void)state;
    assert_int_equal(left_of_huge(100), VG_HISTORY_FLOOR);
    assert_int_equal(left_of_huge(4), 4);
}

static void a_view_of_short_segments_finds_each_change(void **state)
{
    (void)state;
    struct vg_history h;
    struct vg_rng rng;
    struct vg_history_limits limits = wide;
    limits.bytes_max = 2 << 20;
    vg_rng_seed(&rng, vg_test_seed());
    open_history(&h, limits);
    for (vg_rev rev = 2; rev < 1000; rev++)
        append_heavy(&h, &rng, rev);
    struct vg_history_view *v = vg_history_view_ref(h.view);
    uint64_t end = h.next;
    for (vg_rev rev = 1000; rev < 3000; rev++)
        append_heavy(&h, &rng, rev);
    vg_history_evict(&h, 0);
    assert_true(h.view->oldest > end);
    assert_true(count_short(v) > 2);
    for (uint64_t seq = 0; seq < end; seq++) {
        assert_int_equal(vg_history_at(v, seq)->rec->rev, seq + 2);
        assert_int_equal(vg_history_after(v, end, seq + 2), seq + 1);
    }
    vg_history_view_unref(v);
    vg_history_done(&h);
}

static void a_view_stays_readable_after_eviction(void **state)
{
    (void)state;
    struct vg_history h;
    struct vg_history_limits limits = wide;
    limits.events_max = 1;
    open_history(&h, limits);
    for (vg_rev rev = 2; rev < 302; rev++)
        vg_tree_must(append(&h, record("a/p", "n", rev), NULL, 0));
    struct vg_history_view *v = vg_history_view_ref(h.view);
    uint64_t end = h.next;
    for (vg_rev rev = 302; rev < 2000; rev++)
        vg_tree_must(append(&h, record("a/p", "n", rev), NULL, 0));
    vg_history_evict(&h, 0);
    assert_true(h.view->oldest > end);
    for (uint64_t seq = 0; seq < end; seq++)
        assert_int_equal(vg_history_at(v, seq)->rec->rev, seq + 2);
    assert_int_equal(vg_history_after(v, end, 100), 99);
    assert_int_equal(vg_history_after(v, end, 5000), end);
    vg_history_view_unref(v);
    vg_history_done(&h);
}

static void a_restart_forgets_everything_and_counts_on(void **state)
{
    (void)state;
    struct vg_history h;
    open_history(&h, wide);
    for (vg_rev rev = 2; rev < 302; rev++)
        vg_tree_must(append(&h, record("a/p", "n", rev), NULL, 0));
    assert_int_equal(vg_history_restart(&h, 250), 0);
    assert_int_equal(h.view->oldest, 300);
    assert_int_equal(h.view->oldest_rev, 250);
    assert_int_equal(vg_history_newest_trigger(&h, VG_SLICE_LIT("n")), 0);
    vg_tree_must(append(&h, record("a/p", "n", 251), NULL, 0));
    assert_int_equal(h.next, 301);
    vg_history_check(&h);
    vg_history_done(&h);
}

static void a_root_is_found_by_the_revision_it_shows(void **state)
{
    (void)state;
    struct vg_history h;
    struct vg_tree *tree = vg_test_tree(NULL);
    open_history(&h, wide);
    for (vg_rev rev = 10; rev <= 50; rev += 10) {
        vg_tree_must(append(&h, record("a/q", "n", rev - 1), NULL, 0)); /* inside the batch */
        struct vg_rec *rec = record("a/p", "n", rev);
        vg_tree_must(vg_tree_put(tree, rec, NULL));
        vg_tree_must(append(&h, rec, NULL, 0));
        vg_history_set_root(&h, vg_tree_publish(tree, rev));
    }
    struct vg_root *root = vg_history_root_at(h.view, h.next, 34);
    assert_non_null(root);
    assert_int_equal(vg_root_rev(root), 30);
    vg_root_unref(root);
    assert_null(vg_history_root_at(h.view, h.next, 29)); /* inside a batch */
    assert_null(vg_history_root_at(h.view, h.next, 5));
    vg_history_done(&h);
    vg_tree_free(tree);
}

static void an_append_without_memory_changes_nothing(void **state)
{
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        struct vg_history h;
        struct vg_rng rng;
        vg_rng_seed(&rng, 7);
        int r = vg_history_init(&h, &wide, 1);
        h.trigger = trigger_of;
        h.ns = ns_of;
        for (vg_rev rev = 2; r == 0 && rev < 20; rev++) {
            struct vg_rec *rec = NULL, *prev = NULL;
            char node[8];
            snprintf(node, sizeof node, "n%d", (int)vg_rng_below(&rng, 100));
            r = vg_rec_new(VG_REC_PUT, VG_SLICE_LIT("a/p"), vg_slice_str(node), VG_SLICE_LIT("v"),
                           &rec);
            if (r == 0)
                r = vg_rec_new(VG_REC_PUT, VG_SLICE_LIT("a/p"), VG_SLICE_LIT("old"),
                               VG_SLICE_LIT("v"), &prev);
            if (r < 0) {
                vg_rec_unref(rec);
                break;
            }
            rec->rev = rev;
            r = append(&h, rec, prev, 0);
        }
        bool failed = vg_test_alloc_failed();
        assert_int_equal(r, failed ? -ENOMEM : 0);
        if (h.view)
            vg_history_check(&h);
        vg_history_done(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_lead_to_the_change_before_with_the_same_value),
        cmocka_unit_test(evicting_keeps_links_and_counts_right),
        cmocka_unit_test(age_count_and_bytes_evict_whole_segments),
        cmocka_unit_test(large_objects_stay_within_the_bytes),
        cmocka_unit_test(a_few_changes_stay_whatever_they_weigh),
        cmocka_unit_test(a_view_of_short_segments_finds_each_change),
        cmocka_unit_test(a_view_stays_readable_after_eviction),
        cmocka_unit_test(a_restart_forgets_everything_and_counts_on),
        cmocka_unit_test(a_root_is_found_by_the_revision_it_shows),
        cmocka_unit_test(an_append_without_memory_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
