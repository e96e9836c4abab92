/* suite_life.c - the life of a store: a full queue, closing with work under way, reopening,
 * counting.
 */
#include "storage_suite.h"

#include <errno.h>

/* A transaction that keeps the commit thread busy for a while. */
struct heavy {
    struct vg_txn txn;
    struct vg_op ops[64];
};

static void make_heavy(struct heavy *h, unsigned first)
{
    for (unsigned i = 0; i < VG_ARRAY_LEN(h->ops); i++)
        h->ops[i] = vg_drv_put_op(vg_suite_key(first + i), "v", VG_EXPECT_ANY);
    h->txn = (struct vg_txn){.ops = h->ops, .n_ops = VG_ARRAY_LEN(h->ops)};
}

/* Submit n of them; how many were taken, the others were refused as busy and changed nothing. */
static unsigned flood(struct vg_drv *d, struct heavy *h, unsigned n)
{
    vg_rev before = vg_storage_revision(d->store);
    unsigned taken = 0;
    for (unsigned i = 0; i < n; i++) {
        int err = vg_drv_submit_txn(d, &h[i].txn);
        if (err < 0)
            assert_err(err, VIGIL_E_BUSY);
        taken += err == 0;
    }
    for (unsigned i = 0; i < n; i++) {
        int err = vg_drv_wait(d, &h[i].txn.req);
        assert_err(err, h[i].txn.req.rev ? 0 : VIGIL_E_BUSY);
    }
    assert_int_equal(vg_storage_revision(d->store), before + taken);
    return taken;
}

/* The commit thread may keep up with one flood, not with all of them. */
static void a_full_queue_is_busy_and_later_takes_the_same_request(void **state)
{
    struct vg_drv *d = *state;
    enum { N = 64 };
    vg_suite_fresh(d, &(struct vg_storage_opts){.queue_max = 2});
    struct heavy *h = vg_calloc(N, sizeof *h);
    assert_non_null(h);
    unsigned taken = N;
    for (unsigned round = 0; taken == N; round++) {
        assert_true(round < 1000);
        for (unsigned i = 0; i < N; i++)
            make_heavy(&h[i], i);
        taken = flood(d, h, N);
        for (unsigned i = 0; i < N; i++) {
            if (h[i].txn.req.err == VIGIL_E_BUSY)
                assert_err(vg_drv_txn(d, &h[i].txn), 0);
            vg_txn_done(&h[i].txn);
        }
    }
    vg_free(h);
}

static void a_store_that_was_busy_has_no_holes(void **state)
{
    struct vg_drv *d = *state;
    enum { N = 64 };
    vg_suite_fresh(d, &(struct vg_storage_opts){.queue_max = 1});
    struct vg_drv_watch *w = vg_drv_watch_all(d, 0);
    struct heavy *h = vg_calloc(N, sizeof *h);
    assert_non_null(h);
    for (unsigned i = 0; i < N; i++)
        make_heavy(&h[i], i);
    size_t taken = flood(d, h, N);
    vg_drv_watch_sync(w);
    assert_int_equal(w->n_events, taken * 64);
    for (size_t i = 0; i < w->n_events; i++)
        assert_int_equal(w->events[i].rec->rev, 2 + i / 64);
    for (unsigned i = 0; i < N; i++)
        vg_txn_done(&h[i].txn);
    vg_free(h);
}

/* ---- closing ---- */

enum { CLOSE_N = 100 };
struct under_way {
    struct vg_op ops[CLOSE_N];
    struct vg_txn txns[CLOSE_N];
    struct vg_range ranges[CLOSE_N];
    struct vg_compact compact;
};

static void submit_all(struct vg_drv *d, struct under_way *u)
{
    for (unsigned i = 0; i < CLOSE_N; i++) {
        u->ops[i] = vg_drv_put_op(vg_suite_key(i), "v", 0);
        u->txns[i] = (struct vg_txn){.ops = &u->ops[i], .n_ops = 1};
        u->ranges[i] = (struct vg_range){.keys = vg_drv_all()};
        assert_err(vg_drv_submit_txn(d, &u->txns[i]), 0);
        assert_err(vg_drv_submit_range(d, &u->ranges[i]), 0);
    }
    u->compact = (struct vg_compact){.at = 1};
    (void)!vg_drv_submit_compact(d, &u->compact);
}

/* Answered, and either done or closed; returns the transactions that were done. They are the first
 * ones where a loop's transactions happen in order. */
static unsigned check_answers(const struct vg_drv *d, struct under_way *u)
{
    bool is_ordered = vg_drv_engine_has(d->engine, VG_DRV_ORDERED);
    unsigned n = 0;
    for (unsigned i = 0; i < CLOSE_N; i++) {
        assert_true(vg_drv_is_answered(&u->txns[i].req));
        assert_true(vg_drv_is_answered(&u->ranges[i].req));
        if (u->txns[i].req.err < 0)
            assert_err(u->txns[i].req.err, VIGIL_E_CLOSED);
        else if (is_ordered)
            assert_int_equal(u->txns[i].req.rev, 2 + n);
        n += u->txns[i].req.err == 0;
        if (u->ranges[i].req.err != 0)
            assert_err(u->ranges[i].req.err, VIGIL_E_CLOSED);
        vg_txn_done(&u->txns[i]);
        vg_range_done(&u->ranges[i]);
    }
    assert_true(vg_drv_is_answered(&u->compact.req));
    return n;
}

static void closing_answers_everything_that_is_under_way(void **state)
{
    struct vg_drv *d = *state;
    struct under_way *u = vg_new(struct under_way);
    assert_non_null(u);
    submit_all(d, u);
    vg_drv_close_store(d);
    unsigned n = check_answers(d, u);
    vg_free(u);
    if (!vg_drv_engine_has(d->engine, VG_DRV_DURABLE))
        return;
    vg_drv_reopen(d);
    struct vg_range range = {.keys = vg_drv_all(), .flags = VG_RANGE_COUNT_ONLY};
    assert_err(vg_drv_range(d, &range), 0);
    assert_int_equal(range.count, n);
    assert_int_equal(vg_storage_revision(d->store), 1 + n);
    vg_range_done(&range);
}

static void closing_ends_every_watch(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_put_many(d, 50);
    struct vg_drv_watch *w[] = {vg_drv_watch_all(d, 0), vg_drv_watch_all(d, 2),
                                vg_drv_watch_all(d, 1000), vg_drv_watch_all(d, 2)};
    vg_watch_pause(w[3]->watch);
    vg_drv_put(d, "a", "1");
    vg_drv_watch_events(w[0], 1);
    struct vg_drv_watch *fresh = vg_drv_watch_all(d, 2);
    vg_drv_close_store(d);
    for (size_t i = 0; i < VG_ARRAY_LEN(w); i++) {
        assert_true(w[i]->is_ended);
        assert_err(w[i]->err, VIGIL_E_CLOSED);
    }
    assert_true(fresh->is_ended);
    assert_err(fresh->err, VIGIL_E_CLOSED);
}

static void a_watch_cancelled_before_closing_hears_nothing(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_put_many(d, 50);
    struct vg_drv_watch *w = vg_drv_watch_all(d, 2), *turned = vg_drv_watch_all(d, 2);
    vg_loop_turn(d->loop, false);
    vg_drv_watch_cancel(w);
    vg_drv_watch_cancel(turned);
    vg_drv_close_store(d);
    assert_false(w->is_ended);
    assert_false(turned->is_ended);
}

/* What a loop has not got round to may be cancelled after the store is gone. */
static void a_watch_may_be_cancelled_after_closing(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_put_many(d, 50);
    struct vg_drv_watch *w = vg_drv_watch_all(d, 2), *live = vg_drv_watch_all(d, 0);
    vg_storage_close(d->store);
    d->store = NULL;
    vg_drv_watch_cancel(w);
    vg_drv_watch_cancel(live);
    vg_drv_close_store(d);
    assert_false(w->is_ended);
    assert_false(live->is_ended);
}

static void a_store_may_be_closed_right_after_opening(void **state)
{
    struct vg_drv *d = *state;
    for (int i = 0; i < 10; i++)
        vg_suite_fresh(d, NULL);
    vg_storage_close(NULL);
}

static void opening_works_or_says_that_memory_is_lacking(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_need(d, VG_DRV_LOCAL);
    VG_ALLOC_FAIL_LOOP_ALL (n) {
        struct vg_drv other;
        int err = vg_drv_try_open(&other, d->engine, NULL, NULL);
        bool has_failed = vg_test_alloc_failed();
        assert_true(err == 0 || (err == -ENOMEM && has_failed));
        if (err == 0)
            vg_drv_close(&other);
    }
}

/* ---- reopening ---- */

static void a_reopened_store_is_the_same(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_need(d, VG_DRV_DURABLE);
    vg_drv_reopen(d);
    assert_int_equal(vg_storage_revision(d->store), 1);
    vg_drv_put(d, "a", "1");
    vg_drv_put(d, "a", "2");
    vg_drv_put(d, "b", "3");
    vg_drv_reopen(d);
    assert_int_equal(vg_storage_revision(d->store), 4);
    vg_drv_delete(d, "b");
    vg_drv_put(d, "a", "4");
    vg_drv_reopen(d);
    vg_drv_reopen(d);
    assert_state(d, 2, "a=1@2");
    assert_state(d, 4, "a=2@3 b=3@4");
    assert_state(d, 0, "a=4@6");
    struct vg_rec *r = vg_drv_get(d, "a", 0);
    assert_int_equal(r->create_rev, 2);
    assert_int_equal(r->version, 3);
    vg_rec_unref(r);
    assert_int_equal(vg_drv_put(d, "c", "5"), 7);
}

static void a_watch_resumes_where_it_was_before_reopening(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_need(d, VG_DRV_DURABLE);
    vg_drv_put(d, "a", "1");
    struct vg_drv_watch *w = vg_drv_watch_all(d, 2);
    vg_drv_watch_events(w, 1);
    struct vg_op ops[] = {vg_drv_put_op("a", "2", 2), vg_drv_put_op("b", "3", 0)};
    assert_err(vg_drv_run(d, ops, 2, NULL), 0);
    vg_drv_delete(d, "a");
    vg_rev seen = w->events[0].rec->rev;
    vg_drv_reopen(d);
    struct vg_drv_watch *again = vg_drv_watch_all(d, seen + 1);
    vg_drv_put(d, "a", "5");
    vg_drv_watch_events(again, 4);
    assert_events(again, "3:a=2(1) 3.1:b=3 4:a-(2) 5:a=5");
}

/* So many checkpoints spread the history over everything that an engine has. */
static void history_is_whole_across_checkpoints_and_reopening(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_need(d, VG_DRV_DURABLE);
    vg_suite_fresh(d, &(struct vg_storage_opts){.checkpoint_ms = 10});
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < 50; i++) {
            vg_drv_put(d, vg_suite_key(i), "v");
            vg_drv_advance_ms(d, 1);
        }
        vg_drv_reopen(d);
    }
    for (vg_rev at = 1; at <= 201; at += 10) {
        struct vg_range range = {.keys = vg_drv_all(), .at = at};
        assert_err(vg_drv_range(d, &range), 0);
        assert_int_equal(range.n_recs, VG_MIN(at - 1, (vg_rev)50));
        for (size_t i = 0; i < range.n_recs; i++)
            assert_int_equal(range.recs[i]->rev, 2 + i + (at - 2 - i) / 50 * 50);
        vg_range_done(&range);
    }
    struct vg_drv_watch *w = vg_drv_watch_all(d, 2);
    vg_drv_watch_events(w, 200);
    for (size_t i = 0; i < 200; i++)
        assert_int_equal(w->events[i].rec->rev, 2 + i);
}

/* The log has it all and the base nothing, where there is such a difference. */
static void what_was_acknowledged_is_there_after_a_kill(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_need(d, VG_DRV_DURABLE);
    vg_drv_put(d, "a", "1");
    struct vg_op ops[] = {vg_drv_put_op("b", "2", 0), vg_drv_delete_op("a", 2),
                          vg_drv_put_op("c", "3", 0)};
    assert_err(vg_drv_run(d, ops, 3, NULL), 0);
    vg_drv_put_ttl(d, "b", "4", 1000);
    vg_drv_reopen_killed(d);
    assert_int_equal(vg_storage_revision(d->store), 4);
    assert_state(d, 0, "b=4@4 c=3@3");
    assert_state(d, 2, "a=1@2");
    struct vg_drv_watch *w = vg_drv_watch_all(d, 2);
    vg_drv_advance_ms(d, 1000);
    vg_drv_watch_events(w, 6);
    assert_events(w, "2:a=1 3:b=2 3.1:a-(1) 3.2:c=3 4:b=4(2) 5:b-(4)");
    assert_int_equal(vg_drv_put(d, "d", "5"), 6);
}

static void a_compaction_that_was_acknowledged_holds_after_a_kill(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_need(d, VG_DRV_DURABLE);
    vg_suite_put_many(d, 20);
    vg_suite_put_many(d, 20);
    assert_err(vg_drv_compact(d, 30, NULL), 0);
    vg_drv_reopen_killed(d);
    assert_int_equal(vg_storage_compacted(d->store), 30);
    struct vg_range range = {.keys = vg_drv_all(), .at = 29};
    assert_fails(&range.req, vg_drv_range(d, &range), VIGIL_E_COMPACTED);
    range = (struct vg_range){.keys = vg_drv_one(vg_suite_key(19)), .at = 30};
    assert_err(vg_drv_range(d, &range), 0);
    assert_recs(&range, "key0019=v@21");
    vg_range_done(&range);
}

static void two_stores_know_nothing_of_each_other(void **state)
{
    struct vg_drv *d = *state, other;
    vg_drv_open(&other, d->engine, NULL);
    vg_drv_put(d, "a", "1");
    vg_drv_put(&other, "b", "2");
    assert_state(d, 0, "a=1@2");
    assert_state(&other, 0, "b=2@2");
    vg_drv_close(&other);
}

/* ---- counting ---- */

static void the_counters_say_what_was_done(void **state)
{
    struct vg_drv *d = *state;
    struct vg_storage_stats st;
    vg_drv_put(d, "a", "1");
    vg_drv_put(d, "b", "2");
    vg_drv_delete(d, "a");
    assert_err(vg_drv_put_if(d, "b", "x", 0, NULL), VIGIL_E_CONFLICT);
    vg_storage_stats(d->store, &st);
    assert_int_equal(st.puts, 2);
    assert_int_equal(st.deletes, 1);
    assert_int_equal(st.conflicts, 1);
    assert_true(st.txns >= 3);
    assert_in_range(st.commits, 1, 4);
    assert_int_equal(st.pending, 0);
    assert_int_equal(st.expired, 0);
    assert_false(st.read_only);
}

static void expired_keys_are_counted(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_need(d, VG_DRV_FAKE_CLOCK);
    struct vg_drv_watch *w = vg_drv_watch_all(d, 0);
    struct vg_storage_stats st;
    vg_drv_put_ttl(d, "a", "1", 1000);
    vg_drv_put_ttl(d, "b", "2", 1000);
    vg_drv_advance_ms(d, 1000);
    vg_drv_watch_events(w, 4);
    vg_storage_stats(d->store, &st);
    assert_int_equal(st.expired, 2);
}

static const struct CMUnitTest tests[] = {
    VG_SUITE_TEST(a_full_queue_is_busy_and_later_takes_the_same_request),
    VG_SUITE_TEST(a_store_that_was_busy_has_no_holes),
    VG_SUITE_TEST(closing_answers_everything_that_is_under_way),
    VG_SUITE_TEST(closing_ends_every_watch),
    VG_SUITE_TEST(a_watch_cancelled_before_closing_hears_nothing),
    VG_SUITE_TEST(a_watch_may_be_cancelled_after_closing),
    VG_SUITE_TEST(a_store_may_be_closed_right_after_opening),
    VG_SUITE_TEST(opening_works_or_says_that_memory_is_lacking),
    VG_SUITE_TEST(a_reopened_store_is_the_same),
    VG_SUITE_TEST(a_watch_resumes_where_it_was_before_reopening),
    VG_SUITE_TEST(history_is_whole_across_checkpoints_and_reopening),
    VG_SUITE_TEST(what_was_acknowledged_is_there_after_a_kill),
    VG_SUITE_TEST(a_compaction_that_was_acknowledged_holds_after_a_kill),
    VG_SUITE_TEST(two_stores_know_nothing_of_each_other),
    VG_SUITE_TEST(the_counters_say_what_was_done),
    VG_SUITE_TEST(expired_keys_are_counted),
};
VG_SUITE_TOPIC(vg_suite_life, tests);
