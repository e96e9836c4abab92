/* suite_txn.c - transactions: revisions, compare-and-swap, all or nothing. */
#include "storage_suite.h"

#include <inttypes.h>
#include <stdio.h>

/* Of one operation; drop with vg_txn_done. */
static int run_one(struct vg_drv *d, struct vg_txn *txn, struct vg_op *op)
{
    *txn = (struct vg_txn){.ops = op, .n_ops = 1};
    return vg_drv_txn(d, txn);
}

static void a_fresh_store_is_empty_and_at_revision_one(void **state)
{
    struct vg_drv *d = *state;
    struct vg_range range = {.keys = vg_drv_all()};
    assert_int_equal(vg_storage_revision(d->store), VG_REV_EMPTY);
    assert_err(vg_drv_range(d, &range), 0);
    assert_int_equal(range.n_recs, 0);
    assert_int_equal(range.req.rev, 1);
    vg_range_done(&range);
}

static void the_first_change_is_revision_two_and_none_is_left_out(void **state)
{
    struct vg_drv *d = *state;
    for (vg_rev rev = 2; rev <= 50; rev++) {
        if (rev % 7 == 0)
            assert_int_equal(vg_drv_delete(d, "a"), rev);
        else
            assert_int_equal(vg_drv_put(d, "a", "x"), rev);
        assert_int_equal(vg_storage_revision(d->store), rev);
    }
}

static void a_put_creates_a_key_and_the_next_one_updates_it(void **state)
{
    struct vg_drv *d = *state;
    vg_drv_put(d, "other", "x");
    vg_drv_put(d, "a", "1");
    vg_drv_put(d, "a", "2");
    struct vg_rec *r = vg_drv_get(d, "a", 0);
    assert_non_null(r);
    assert_int_equal(r->rev, 4);
    assert_int_equal(r->create_rev, 3);
    if (vg_drv_engine_has(d->engine, VG_DRV_LOCAL))
        assert_int_equal(r->prev_rev, 3);
    assert_int_equal(r->version, 2);
    assert_int_equal(r->op, VG_REC_PUT);
    assert_int_equal(r->expires_ms, 0);
    vg_assert_slice_equal(vg_rec_value(r), VG_SLICE_LIT("2"));
    vg_rec_unref(r);
}

static void a_record_says_when_it_was_committed(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_need(d, VG_DRV_FAKE_CLOCK);
    vg_drv_advance_ms(d, 12345);
    vg_drv_put(d, "a", "1");
    struct vg_rec *r = vg_drv_get(d, "a", 0);
    assert_int_equal(r->time_ms, vg_drv_wall_ms(d));
    vg_rec_unref(r);
}

static void a_key_that_was_deleted_begins_anew(void **state)
{
    struct vg_drv *d = *state;
    vg_drv_put(d, "a", "1");
    vg_drv_put(d, "a", "2");
    vg_drv_delete(d, "a");
    assert_null(vg_drv_get(d, "a", 0));
    vg_drv_put(d, "a", "3");
    struct vg_rec *r = vg_drv_get(d, "a", 0);
    assert_int_equal(r->rev, 5);
    assert_int_equal(r->create_rev, 5);
    assert_int_equal(r->version, 1);
    assert_int_equal(r->prev_rev, 0);
    vg_rec_unref(r);
}

static void a_transaction_returns_what_the_keys_held_before(void **state)
{
    struct vg_drv *d = *state;
    vg_drv_put(d, "a", "1");
    vg_drv_put(d, "b", "2");
    struct vg_op ops[] = {
        vg_drv_put_op("a", "10", VG_EXPECT_ANY),
        vg_drv_delete_op("b", VG_EXPECT_ANY),
        vg_drv_put_op("c", "30", VG_EXPECT_ANY),
        vg_drv_delete_op("d", VG_EXPECT_ANY),
    };
    struct vg_txn txn = {.ops = ops, .n_ops = VG_ARRAY_LEN(ops)};
    assert_err(vg_drv_txn(d, &txn), 0);
    assert_int_equal(txn.req.rev, 4);
    assert_non_null(ops[0].prev);
    vg_assert_slice_equal(vg_rec_value(ops[0].prev), VG_SLICE_LIT("1"));
    assert_int_equal(ops[0].prev->rev, 2);
    assert_non_null(ops[1].prev);
    vg_assert_slice_equal(vg_rec_value(ops[1].prev), VG_SLICE_LIT("2"));
    assert_null(ops[2].prev);
    assert_null(ops[3].prev);
    vg_txn_done(&txn);
    assert_state(d, 0, "a=10@4 c=30@4");
}

static void a_put_that_expects_absence_creates_once(void **state)
{
    struct vg_drv *d = *state;
    vg_rev rev = 0;
    assert_err(vg_drv_put_if(d, "a", "1", 0, &rev), 0);
    assert_int_equal(rev, 2);
    assert_err(vg_drv_put_if(d, "a", "2", 0, NULL), VIGIL_E_CONFLICT);
    assert_state(d, 0, "a=1@2");
    vg_drv_delete(d, "a");
    assert_err(vg_drv_put_if(d, "a", "3", 0, &rev), 0);
    assert_int_equal(rev, 4);
}

static void a_put_that_expects_a_revision_needs_exactly_that(void **state)
{
    struct vg_drv *d = *state;
    vg_rev rev = 0;
    vg_drv_put(d, "a", "1");
    vg_drv_put(d, "a", "2");
    assert_err(vg_drv_put_if(d, "a", "x", 2, NULL), VIGIL_E_CONFLICT);
    assert_err(vg_drv_put_if(d, "a", "x", 4, NULL), VIGIL_E_CONFLICT);
    assert_err(vg_drv_put_if(d, "a", "3", 3, &rev), 0);
    assert_int_equal(rev, 4);
    assert_state(d, 0, "a=3@4");
}

static void a_conflict_names_the_operation_and_shows_the_current_record(void **state)
{
    struct vg_drv *d = *state;
    vg_drv_put(d, "a", "1");
    vg_drv_put(d, "c", "2");
    struct vg_op ops[] = {
        vg_drv_put_op("a", "x", 2),
        vg_drv_put_op("b", "x", 0),
        vg_drv_delete_op("c", 2), /* is at 3 */
        vg_drv_put_op("d", "x", VG_EXPECT_ANY),
    };
    struct vg_txn txn = {.ops = ops, .n_ops = VG_ARRAY_LEN(ops)};
    assert_fails(&txn.req, vg_drv_txn(d, &txn), VIGIL_E_CONFLICT);
    assert_int_equal(txn.failed_op, 2);
    assert_non_null(ops[2].prev);
    assert_int_equal(ops[2].prev->rev, 3);
    vg_assert_slice_equal(vg_rec_value(ops[2].prev), VG_SLICE_LIT("2"));
    vg_txn_done(&txn);
    assert_state(d, 0, "a=1@2 c=2@3");
    assert_int_equal(vg_storage_revision(d->store), 3);
    assert_int_equal(vg_drv_put(d, "z", "z"), 4);
}

static void a_conflict_on_an_absent_key_shows_nothing(void **state)
{
    struct vg_drv *d = *state;
    vg_drv_put(d, "a", "1");
    vg_drv_delete(d, "a");
    struct vg_op op = vg_drv_put_op("a", "x", 2);
    struct vg_txn txn;
    assert_err(run_one(d, &txn, &op), VIGIL_E_CONFLICT);
    assert_int_equal(txn.failed_op, 0);
    assert_null(op.prev);
    vg_txn_done(&txn);
    assert_state(d, 0, "");
}

static void a_transaction_may_be_tried_again_after_a_conflict(void **state)
{
    struct vg_drv *d = *state;
    vg_drv_put(d, "a", "1");
    struct vg_op op = vg_drv_put_op("a", "2", 0);
    struct vg_txn txn;
    assert_err(run_one(d, &txn, &op), VIGIL_E_CONFLICT);
    op.expect = op.prev->rev;
    assert_err(vg_drv_txn(d, &txn), 0);
    assert_int_equal(txn.req.rev, 3);
    assert_int_equal(op.prev->rev, 2);
    vg_txn_done(&txn); /* what the first try returned must not have leaked */
    assert_state(d, 0, "a=2@3");
}

static void a_delete_obeys_its_expectation(void **state)
{
    struct vg_drv *d = *state;
    vg_drv_put(d, "a", "1");
    struct vg_op wrong = vg_drv_delete_op("a", 0), right = vg_drv_delete_op("a", 2);
    struct vg_op absent = vg_drv_delete_op("a", 2);
    vg_rev rev = 0;
    assert_err(vg_drv_run(d, &wrong, 1, NULL), VIGIL_E_CONFLICT);
    assert_state(d, 0, "a=1@2");
    assert_err(vg_drv_run(d, &right, 1, &rev), 0);
    assert_int_equal(rev, 3);
    assert_err(vg_drv_run(d, &absent, 1, NULL), VIGIL_E_CONFLICT);
    assert_state(d, 0, "");
}

static void deleting_an_absent_key_makes_no_revision(void **state)
{
    struct vg_drv *d = *state;
    vg_drv_put(d, "a", "1");
    vg_rev rev = 0;
    assert_int_equal(vg_drv_delete(d, "b"), 2);
    struct vg_op op = vg_drv_delete_op("b", 0);
    assert_err(vg_drv_run(d, &op, 1, &rev), 0);
    assert_int_equal(rev, 2);
    assert_int_equal(vg_storage_revision(d->store), 2);
    assert_int_equal(vg_drv_put(d, "c", "3"), 3);
}

static void checks_guard_the_other_operations(void **state)
{
    struct vg_drv *d = *state;
    vg_rev rev = 0;
    vg_drv_put(d, "lease", "mine");
    struct vg_op good[] = {vg_drv_check_op("lease", 2), vg_drv_check_op("none", 0),
                           vg_drv_put_op("a", "1", VG_EXPECT_ANY)};
    assert_err(vg_drv_run(d, good, 3, &rev), 0);
    assert_int_equal(rev, 3);
    struct vg_op bad[] = {vg_drv_put_op("a", "2", VG_EXPECT_ANY), vg_drv_check_op("lease", 3)};
    struct vg_txn txn = {.ops = bad, .n_ops = 2};
    assert_err(vg_drv_txn(d, &txn), VIGIL_E_CONFLICT);
    assert_int_equal(txn.failed_op, 1);
    assert_int_equal(bad[1].prev->rev, 2);
    vg_txn_done(&txn);
    struct vg_op gone[] = {vg_drv_put_op("a", "2", VG_EXPECT_ANY), vg_drv_check_op("none", 2)};
    assert_err(vg_drv_run(d, gone, 2, NULL), VIGIL_E_CONFLICT);
    assert_state(d, 0, "a=1@3 lease=mine@2");
}

static void a_transaction_of_checks_alone_makes_no_revision(void **state)
{
    struct vg_drv *d = *state;
    vg_rev rev = 0;
    vg_drv_put(d, "a", "1");
    struct vg_op ops[] = {vg_drv_check_op("a", 2), vg_drv_check_op("b", 0)};
    assert_err(vg_drv_run(d, ops, 2, &rev), 0);
    assert_int_equal(rev, 2);
    assert_int_equal(vg_drv_put(d, "a", "2"), 3);
}

static void the_changes_of_a_transaction_share_a_revision_in_order(void **state)
{
    struct vg_drv *d = *state;
    vg_drv_put(d, "x", "0");
    struct vg_drv_watch *w = vg_drv_watch_all(d, 0);
    struct vg_op ops[] = {
        vg_drv_put_op("c", "1", 0),
        vg_drv_put_op("a", "2", 0),
        vg_drv_delete_op("x", VG_EXPECT_ANY),
        vg_drv_put_op("b", "3", 0),
    };
    assert_err(vg_drv_run(d, ops, 4, NULL), 0);
    vg_drv_watch_events(w, 4);
    assert_events(w, "3:c=1 3.1:a=2 3.2:x-(0) 3.3:b=3");
    assert_state(d, 0, "a=2@3 b=3@3 c=1@3");
}

static void operations_without_a_change_take_no_place_in_the_order(void **state)
{
    struct vg_drv *d = *state;
    struct vg_drv_watch *w = vg_drv_watch_all(d, 0);
    struct vg_op ops[] = {
        vg_drv_check_op("q", 0),
        vg_drv_put_op("b", "1", 0),
        vg_drv_delete_op("none", VG_EXPECT_ANY),
        vg_drv_put_op("a", "2", 0),
    };
    assert_err(vg_drv_run(d, ops, 4, NULL), 0);
    vg_drv_watch_events(w, 2);
    assert_events(w, "2:b=1 2.1:a=2");
}

static void transactions_of_one_loop_happen_in_the_order_of_submitting(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_need(d, VG_DRV_ORDERED);
    enum { N = 200 };
    struct vg_op ops[N];
    struct vg_txn txns[N] = {0};
    for (unsigned i = 0; i < N; i++) {
        ops[i] = vg_drv_put_op("a", vg_suite_key(i), VG_EXPECT_ANY);
        txns[i] = (struct vg_txn){.ops = &ops[i], .n_ops = 1};
        assert_err(vg_drv_submit_txn(d, &txns[i]), 0);
    }
    for (unsigned i = 0; i < N; i++) {
        assert_err(vg_drv_wait(d, &txns[i].req), 0);
        assert_int_equal(txns[i].req.rev, i + 2);
        assert_int_equal(i == 0 ? 0 : ops[i].prev->rev, i == 0 ? 0 : i + 1);
        vg_txn_done(&txns[i]);
    }
}

/* Both are in the queue before either is decided: the second must see the first. */
static void of_two_creates_under_way_exactly_one_wins(void **state)
{
    struct vg_drv *d = *state;
    for (unsigned i = 0; i < 50; i++) {
        struct vg_op ops[] = {vg_drv_put_op(vg_suite_key(i), "first", 0),
                              vg_drv_put_op(vg_suite_key(i), "second", 0)};
        struct vg_txn one = {.ops = &ops[0], .n_ops = 1}, two = {.ops = &ops[1], .n_ops = 1};
        assert_err(vg_drv_submit_txn(d, &one), 0);
        assert_err(vg_drv_submit_txn(d, &two), 0);
        bool is_first = vg_drv_wait(d, &one.req) == 0;
        assert_err(vg_drv_wait(d, &two.req), is_first ? VIGIL_E_CONFLICT : 0);
        assert_true(is_first || !vg_drv_engine_has(d->engine, VG_DRV_ORDERED));
        assert_int_equal((is_first ? one : two).req.rev, i + 2);
        assert_non_null(ops[is_first].prev);
        assert_int_equal(ops[is_first].prev->rev, i + 2);
        vg_txn_done(&one);
        vg_txn_done(&two);
    }
}

static void a_pipeline_of_creates_and_deletes_sees_itself(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_need(d, VG_DRV_ORDERED);
    struct vg_op ops[] = {vg_drv_put_op("a", "1", 0), vg_drv_delete_op("a", 2),
                          vg_drv_put_op("a", "2", 0), vg_drv_put_op("a", "3", 4)};
    struct vg_txn txns[4] = {0};
    for (unsigned i = 0; i < 4; i++) {
        txns[i] = (struct vg_txn){.ops = &ops[i], .n_ops = 1};
        assert_err(vg_drv_submit_txn(d, &txns[i]), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        assert_err(vg_drv_wait(d, &txns[i].req), 0);
        assert_int_equal(txns[i].req.rev, i + 2);
        vg_txn_done(&txns[i]);
    }
    struct vg_rec *r = vg_drv_get(d, "a", 0);
    assert_int_equal(r->create_rev, 4);
    assert_int_equal(r->version, 2);
    vg_rec_unref(r);
}

/* D6: visible before acknowledged. */
static void what_was_acknowledged_is_seen_by_the_next_read(void **state)
{
    struct vg_drv *d = *state;
    for (unsigned i = 0; i < 200; i++) {
        char want[64];
        vg_rev rev = vg_drv_put(d, "a", vg_suite_key(i));
        snprintf(want, sizeof want, "a=%s@%" PRIu64, vg_suite_key(i), rev);
        assert_state(d, 0, want);
    }
}

static void a_transaction_may_decline_what_was_there_before(void **state)
{
    struct vg_drv *d = *state;
    vg_rev first = vg_drv_put(d, "a", "1");
    if (vg_drv_engine_has(d->engine, VG_DRV_DURABLE))
        vg_drv_reopen(d); /* from below the tables */
    struct vg_op op = vg_drv_put_op("a", "2", first);
    struct vg_txn txn = {.ops = &op, .n_ops = 1, .no_prev = true};
    assert_err(vg_drv_txn(d, &txn), 0);
    assert_null(op.prev);
    vg_txn_done(&txn);
    struct vg_rec *now = vg_drv_get(d, "a", 0);
    assert_int_equal(now->version, 2);
    assert_int_equal(now->create_rev, first);
    if (vg_drv_engine_has(d->engine, VG_DRV_LOCAL))
        assert_int_equal(now->prev_rev, first);
    vg_rec_unref(now);
}

static void a_conflict_brings_what_is_there_even_when_it_was_declined(void **state)
{
    struct vg_drv *d = *state;
    vg_rev first = vg_drv_put(d, "a", "1");
    struct vg_op ops[2] = {vg_drv_put_op("b", "1", 0), vg_drv_put_op("a", "2", 0)};
    struct vg_txn txn = {.ops = ops, .n_ops = 2, .no_prev = true};
    assert_err(vg_drv_txn(d, &txn), VIGIL_E_CONFLICT);
    assert_int_equal(txn.failed_op, 1);
    assert_null(ops[0].prev);
    assert_int_equal(ops[1].prev->rev, first);
    vg_txn_done(&txn);
}

static const struct CMUnitTest tests[] = {
    VG_SUITE_TEST(a_transaction_may_decline_what_was_there_before),
    VG_SUITE_TEST(a_conflict_brings_what_is_there_even_when_it_was_declined),
    VG_SUITE_TEST(a_fresh_store_is_empty_and_at_revision_one),
    VG_SUITE_TEST(the_first_change_is_revision_two_and_none_is_left_out),
    VG_SUITE_TEST(a_put_creates_a_key_and_the_next_one_updates_it),
    VG_SUITE_TEST(a_record_says_when_it_was_committed),
    VG_SUITE_TEST(a_key_that_was_deleted_begins_anew),
    VG_SUITE_TEST(a_transaction_returns_what_the_keys_held_before),
    VG_SUITE_TEST(a_put_that_expects_absence_creates_once),
    VG_SUITE_TEST(a_put_that_expects_a_revision_needs_exactly_that),
    VG_SUITE_TEST(a_conflict_names_the_operation_and_shows_the_current_record),
    VG_SUITE_TEST(a_conflict_on_an_absent_key_shows_nothing),
    VG_SUITE_TEST(a_transaction_may_be_tried_again_after_a_conflict),
    VG_SUITE_TEST(a_delete_obeys_its_expectation),
    VG_SUITE_TEST(deleting_an_absent_key_makes_no_revision),
    VG_SUITE_TEST(checks_guard_the_other_operations),
    VG_SUITE_TEST(a_transaction_of_checks_alone_makes_no_revision),
    VG_SUITE_TEST(the_changes_of_a_transaction_share_a_revision_in_order),
    VG_SUITE_TEST(operations_without_a_change_take_no_place_in_the_order),
    VG_SUITE_TEST(transactions_of_one_loop_happen_in_the_order_of_submitting),
    VG_SUITE_TEST(of_two_creates_under_way_exactly_one_wins),
    VG_SUITE_TEST(a_pipeline_of_creates_and_deletes_sees_itself),
    VG_SUITE_TEST(what_was_acknowledged_is_seen_by_the_next_read),
};
VG_SUITE_TOPIC(vg_suite_txn, tests);
