/* suite_compact.c - compaction: what is forgotten, what stays, and when it happens by itself. */
#include "storage_suite.h"

/* a: put 2, put 4, deleted 6; b: put 3, put 8; c: put 5; d: put 7, deleted 9. */
static void write_history(struct vg_drv *d)
{
    vg_drv_put(d, "a", "1");
    vg_drv_put(d, "b", "2");
    vg_drv_put(d, "a", "3");
    vg_drv_put(d, "c", "4");
    vg_drv_delete(d, "a");
    vg_drv_put(d, "d", "5");
    vg_drv_put(d, "b", "6");
    vg_drv_delete(d, "d");
}

static void assert_compacted(struct vg_drv *d, vg_rev at, vg_rev compact_rev)
{
    struct vg_range range = {.keys = vg_drv_all(), .at = at};
    assert_fails(&range.req, vg_drv_range(d, &range), VIGIL_E_COMPACTED);
    assert_int_equal(range.req.compact_rev, compact_rev);
    vg_range_done(&range);
}

static void reads_below_the_compacted_revision_fail_and_name_it(void **state)
{
    struct vg_drv *d = *state;
    write_history(d);
    assert_err(vg_drv_compact(d, 6, NULL), 0);
    assert_int_equal(vg_storage_compacted(d->store), 6);
    for (vg_rev at = 1; at < 6; at++)
        assert_compacted(d, at, 6);
    assert_state(d, 6, "b=2@3 c=4@5");
}

static void compaction_keeps_what_lived_at_its_revision_and_later(void **state)
{
    struct vg_drv *d = *state;
    write_history(d);
    assert_err(vg_drv_compact(d, 7, NULL), 0);
    assert_state(d, 7, "b=2@3 c=4@5 d=5@7");
    assert_state(d, 8, "b=6@8 c=4@5 d=5@7");
    assert_state(d, 9, "b=6@8 c=4@5");
    assert_state(d, 0, "b=6@8 c=4@5");
}

static void compaction_makes_no_revision(void **state)
{
    struct vg_drv *d = *state;
    write_history(d);
    assert_err(vg_drv_compact(d, 9, NULL), 0);
    assert_int_equal(vg_storage_revision(d->store), 9);
    assert_int_equal(vg_drv_put(d, "e", "7"), 10);
}

static void compacting_again_or_lower_is_already_done(void **state)
{
    struct vg_drv *d = *state;
    vg_rev compact_rev = 0;
    write_history(d);
    assert_err(vg_drv_compact(d, 5, NULL), 0);
    assert_err(vg_drv_compact(d, 5, &compact_rev), VIGIL_E_COMPACTED);
    assert_int_equal(compact_rev, 5);
    assert_err(vg_drv_compact(d, 3, &compact_rev), VIGIL_E_COMPACTED);
    assert_int_equal(compact_rev, 5);
    assert_state(d, 5, "a=3@4 b=2@3 c=4@5");
    assert_err(vg_drv_compact(d, 8, NULL), 0);
    assert_compacted(d, 7, 8);
    assert_state(d, 8, "b=6@8 c=4@5 d=5@7");
}

static void the_future_cannot_be_compacted(void **state)
{
    struct vg_drv *d = *state;
    write_history(d);
    assert_err(vg_drv_compact(d, 10, NULL), VIGIL_E_FUTURE);
    assert_state(d, 2, "a=1@2");
    assert_err(vg_drv_compact(d, 9, NULL), 0);
    assert_state(d, 9, "b=6@8 c=4@5");
}

static void the_present_is_no_less_readable_after_compacting_it(void **state)
{
    struct vg_drv *d = *state;
    vg_drv_put(d, "a", "1");
    for (vg_rev rev = 3; rev < 30; rev++) {
        assert_int_equal(vg_drv_put(d, rev % 2 ? "b" : "c", "x"), rev);
        assert_err(vg_drv_compact(d, rev, NULL), 0);
    }
    assert_state(d, 0, "a=1@2 b=x@29 c=x@28");
    assert_state(d, 29, "a=1@2 b=x@29 c=x@28");
}

/* The record that a change replaces lived at the compacted revision, so it was kept. */
static void previous_values_are_known_right_after_compaction(void **state)
{
    struct vg_drv *d = *state;
    write_history(d);
    assert_err(vg_drv_compact(d, 9, NULL), 0);
    struct vg_drv_watch *w = vg_drv_watch_all(d, 10);
    struct vg_op ops[] = {vg_drv_put_op("b", "7", 8), vg_drv_delete_op("c", 5),
                          vg_drv_put_op("a", "8", 0)};
    struct vg_txn txn = {.ops = ops, .n_ops = 3};
    assert_err(vg_drv_txn(d, &txn), 0);
    vg_assert_slice_equal(vg_rec_value(ops[0].prev), VG_SLICE_LIT("6"));
    vg_txn_done(&txn);
    vg_drv_watch_events(w, 3);
    assert_events(w, "10:b=7(6) 10.1:c-(4) 10.2:a=8");
    struct vg_rec *r = vg_drv_get(d, "b", 0);
    assert_int_equal(r->create_rev, 3);
    assert_int_equal(r->version, 3);
    vg_rec_unref(r);
}

static void history_above_the_compacted_revision_has_its_previous_values(void **state)
{
    struct vg_drv *d = *state;
    write_history(d);
    assert_err(vg_drv_compact(d, 5, NULL), 0);
    struct vg_drv_watch *w = vg_drv_watch_all(d, 6);
    vg_drv_watch_events(w, 4);
    assert_events(w, "6:a-(3) 7:d=5 8:b=6(2) 9:d-(5)");
}

static void the_compacted_revision_survives_reopening(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_need(d, VG_DRV_DURABLE);
    write_history(d);
    assert_err(vg_drv_compact(d, 7, NULL), 0);
    vg_drv_reopen(d);
    assert_int_equal(vg_storage_compacted(d->store), 7);
    assert_compacted(d, 6, 7);
    assert_state(d, 7, "b=2@3 c=4@5 d=5@7");
    assert_err(vg_drv_compact(d, 7, NULL), VIGIL_E_COMPACTED);
    assert_int_equal(vg_drv_put(d, "e", "7"), 10);
}

/* ---- space ---- */

static uint64_t bytes_held(struct vg_drv *d)
{
    struct vg_storage_stats st;
    vg_storage_stats(d->store, &st);
    return st.disk_bytes + st.overlay_bytes;
}

/* 100 keys of 400 bytes, with values of `value_len`, come and go. */
static void put_and_delete(struct vg_drv *d, unsigned round, size_t value_len)
{
    struct vg_op puts[100], deletes[100];
    char key[400], *value = vg_calloc(1, value_len);
    assert_non_null(value);
    memset(key, 'k', sizeof key);
    for (unsigned i = 0; i < 100; i++) {
        memcpy(key, vg_suite_key(round * 100 + i), 7);
        struct vg_slice k = vg_slice(key, sizeof key);
        puts[i] = vg_drv_op_put(k, vg_slice(NULL, 0), vg_slice(value, value_len), 0);
        deletes[i] = vg_drv_op_delete(k, VG_EXPECT_ANY);
    }
    vg_free(value);
    assert_err(vg_drv_run(d, puts, 100, NULL), 0);
    assert_err(vg_drv_run(d, deletes, 100, NULL), 0);
}

/* 30 MB of values and 10 MB of keys pass through; hardly anything may stay. */
static void compaction_gives_the_space_back(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_need(d, VG_DRV_FAKE_CLOCK);
    vg_suite_fresh(d, &(struct vg_storage_opts){.checkpoint_ms = 10});
    for (unsigned round = 0; round < 100; round++) {
        put_and_delete(d, round, 3000);
        vg_drv_advance_ms(d, 10);
        assert_err(vg_drv_compact(d, vg_storage_revision(d->store), NULL), 0);
    }
    assert_in_range(bytes_held(d), 0, 8 << 20);
}

/* ---- by itself ---- */

/* One more revision and a second; enough of both makes any automatic compaction due. */
static void one_more_second(struct vg_drv *d)
{
    vg_drv_put(d, "tick", "x");
    vg_drv_advance_ms(d, 1000);
}

static void without_being_asked_nothing_is_compacted(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_need(d, VG_DRV_FAKE_CLOCK);
    write_history(d);
    for (int i = 0; i < 50; i++) {
        one_more_second(d);
        vg_drv_advance_ms(d, 3600 * 1000);
    }
    assert_state(d, 2, "a=1@2");
}

/* With a revision per second and an age of 60 s, what is 60 s old must stay readable, and what is
 * older must go in the end. */
static void automatic_compaction_keeps_at_least_the_age(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_need(d, VG_DRV_FAKE_CLOCK);
    vg_suite_fresh(d, &(struct vg_storage_opts){.compact_age_ms = 60 * 1000});
    write_history(d);
    int seconds = 0;
    for (; vg_storage_compacted(d->store) < 60; seconds++) {
        assert_true(seconds < 2000);
        one_more_second(d);
        vg_rev now = vg_storage_revision(d->store), compacted = vg_storage_compacted(d->store);
        assert_true(compacted <= 1 || compacted + 60 <= now + 1);
    }
    assert_compacted(d, 2, vg_storage_compacted(d->store));
    struct vg_range range = {.keys = vg_drv_one("c"), .at = vg_storage_compacted(d->store)};
    assert_err(vg_drv_range(d, &range), 0);
    assert_recs(&range, "c=4@5");
    vg_range_done(&range);
}

static void automatic_compaction_keeps_at_most_the_count(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_need(d, VG_DRV_FAKE_CLOCK);
    vg_suite_fresh(d, &(struct vg_storage_opts){.compact_count = 100});
    write_history(d);
    for (int i = 0; vg_storage_compacted(d->store) < 300; i++) {
        assert_true(i < 5000);
        one_more_second(d);
        vg_rev compacted = vg_storage_compacted(d->store);
        assert_true(compacted <= 1 || compacted + 100 <= vg_storage_revision(d->store));
    }
    assert_compacted(d, 200, vg_storage_compacted(d->store));
    struct vg_rec *r = vg_drv_get(d, "c", vg_storage_compacted(d->store));
    assert_int_equal(r->rev, 5);
    vg_rec_unref(r);
}

static const struct CMUnitTest tests[] = {
    VG_SUITE_TEST(reads_below_the_compacted_revision_fail_and_name_it),
    VG_SUITE_TEST(compaction_keeps_what_lived_at_its_revision_and_later),
    VG_SUITE_TEST(compaction_makes_no_revision),
    VG_SUITE_TEST(compacting_again_or_lower_is_already_done),
    VG_SUITE_TEST(the_future_cannot_be_compacted),
    VG_SUITE_TEST(the_present_is_no_less_readable_after_compacting_it),
    VG_SUITE_TEST(previous_values_are_known_right_after_compaction),
    VG_SUITE_TEST(history_above_the_compacted_revision_has_its_previous_values),
    VG_SUITE_TEST(the_compacted_revision_survives_reopening),
    VG_SUITE_TEST(compaction_gives_the_space_back),
    VG_SUITE_TEST(without_being_asked_nothing_is_compacted),
    VG_SUITE_TEST(automatic_compaction_keeps_at_least_the_age),
    VG_SUITE_TEST(automatic_compaction_keeps_at_most_the_count),
};
VG_SUITE_TOPIC(vg_suite_compact, tests);
