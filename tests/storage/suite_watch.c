/* suite_watch.c - watches: where they start, what they deliver, how they end. The flow of batches
 * is in suite_flow.c. */
#include "storage_suite.h"

static struct vg_drv_watch *watch_keys(struct vg_drv *d, struct vg_keys keys, vg_rev from)
{
    return vg_drv_watch_open(d, &(struct vg_watch_opts){.keys = keys, .from = from});
}

static void a_watch_from_now_gets_what_follows(void **state)
{
    struct vg_drv *d = *state;
    vg_drv_put(d, "a", "1");
    struct vg_drv_watch *w = vg_drv_watch_all(d, 0);
    vg_drv_put(d, "a", "2");
    vg_drv_delete(d, "a");
    vg_drv_put(d, "a", "3");
    vg_drv_watch_events(w, 3);
    assert_events(w, "3:a=2(1) 4:a-(2) 5:a=3");
}

static void callbacks_do_not_come_from_within_the_call(void **state)
{
    struct vg_drv *d = *state;
    vg_drv_put(d, "a", "1");
    struct vg_drv_watch *w = vg_drv_watch_all(d, 2);
    assert_int_equal(w->n_batches, 0);
    vg_watch_progress(w->watch);
    assert_int_equal(w->n_batches, 0);
    vg_drv_watch_events(w, 1);
    assert_events(w, "2:a=1");
}

static void a_watch_from_the_past_replays_it_and_goes_on(void **state)
{
    struct vg_drv *d = *state;
    vg_drv_put(d, "a", "1");
    vg_drv_put(d, "a", "2");
    vg_drv_put(d, "b", "3");
    struct vg_drv_watch *w = vg_drv_watch_all(d, 3);
    vg_drv_watch_events(w, 2);
    assert_events(w, "3:a=2(1) 4:b=3");
    vg_drv_delete(d, "b");
    vg_drv_watch_events(w, 3);
    assert_events(w, "3:a=2(1) 4:b=3 5:b-(3)");
}

static void a_watch_from_each_revision_gets_exactly_the_rest(void **state)
{
    struct vg_drv *d = *state;
    static const char *const rests[] = {
        [1] = "2:a=1 3:b=2 4:a=3(1) 5:b-(2) 6:b=4",
        [2] = "2:a=1 3:b=2 4:a=3(1) 5:b-(2) 6:b=4",
        [3] = "3:b=2 4:a=3(1) 5:b-(2) 6:b=4",
        [4] = "4:a=3(1) 5:b-(2) 6:b=4",
        [5] = "5:b-(2) 6:b=4",
        [6] = "6:b=4",
        [7] = "",
    };
    vg_drv_put(d, "a", "1");
    vg_drv_put(d, "b", "2");
    vg_drv_put(d, "a", "3");
    vg_drv_delete(d, "b");
    vg_drv_put(d, "b", "4");
    for (vg_rev from = 1; from < VG_ARRAY_LEN(rests); from++) {
        struct vg_drv_watch *w = vg_drv_watch_all(d, from);
        vg_drv_watch_sync(w);
        assert_events(w, rests[from]);
    }
}

static void a_watch_from_the_future_waits_for_it(void **state)
{
    struct vg_drv *d = *state;
    vg_drv_put(d, "a", "1");
    struct vg_drv_watch *next = vg_drv_watch_all(d, 3), *later = vg_drv_watch_all(d, 5);
    for (vg_rev rev = 3; rev <= 6; rev++)
        assert_int_equal(vg_drv_put(d, "a", "x"), rev);
    vg_drv_watch_sync(next);
    vg_drv_watch_sync(later);
    assert_events(next, "3:a=x(1) 4:a=x(x) 5:a=x(x) 6:a=x(x)");
    assert_events(later, "5:a=x(x) 6:a=x(x)");
}

static void a_watch_from_the_compacted_revision_or_below_ends_at_once(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_put_many(d, 8); /* up to 9 */
    assert_err(vg_drv_compact(d, 6, NULL), 0);
    for (vg_rev from = 1; from <= 6; from++) {
        struct vg_drv_watch *w = vg_drv_watch_all(d, from);
        assert_err(vg_drv_watch_end(w), VIGIL_E_COMPACTED);
        assert_int_equal(w->compact_rev, 6);
        assert_int_equal(w->n_events, 0);
    }
    struct vg_drv_watch *w = vg_drv_watch_all(d, 7);
    vg_drv_watch_events(w, 3);
    assert_events(w, "7:key0005=v 8:key0006=v 9:key0007=v");
}

static void compaction_does_not_end_a_watch_that_is_up_to_date(void **state)
{
    struct vg_drv *d = *state;
    struct vg_drv_watch *w = vg_drv_watch_all(d, 0), *idle = watch_keys(d, vg_drv_one("idle"), 0);
    vg_suite_put_many(d, 5);
    vg_drv_watch_events(w, 5);
    vg_drv_watch_sync(idle);
    assert_err(vg_drv_compact(d, 6, NULL), 0);
    vg_drv_put(d, "idle", "1");
    vg_drv_watch_events(idle, 1);
    vg_drv_watch_events(w, 6);
    assert_events(idle, "7:idle=1");
    assert_int_equal(w->n_events, 6);
    assert_false(w->is_ended);
}

static void a_watch_from_the_future_outlives_compaction_before_it(void **state)
{
    struct vg_drv *d = *state;
    struct vg_drv_watch *w = vg_drv_watch_all(d, 8);
    vg_suite_put_many(d, 5);
    assert_err(vg_drv_compact(d, 6, NULL), 0);
    vg_suite_put_many(d, 3);
    vg_drv_watch_sync(w);
    assert_events(w, "8:key0001=v(v) 9:key0002=v(v)");
}

static void a_watch_gets_the_keys_it_asked_for_and_no_others(void **state)
{
    struct vg_drv *d = *state;
    struct vg_keys from_c = {.kind = VG_KEYS_FROM, .start = vg_slice_str("c")};
    struct vg_drv_watch *live[] = {watch_keys(d, vg_drv_one("b"), 0),
                                   watch_keys(d, vg_drv_span("b", "d"), 0),
                                   watch_keys(d, from_c, 0)};
    struct vg_op ops[] = {vg_drv_put_op("a", "1", 0), vg_drv_put_op("b", "2", 0),
                          vg_drv_put_op("c", "3", 0), vg_drv_put_op("d", "4", 0),
                          vg_drv_put_op("bb", "5", 0)};
    assert_err(vg_drv_run(d, ops, 5, NULL), 0);
    vg_drv_delete(d, "c");
    struct vg_drv_watch *replayed[] = {watch_keys(d, vg_drv_one("b"), 2),
                                       watch_keys(d, vg_drv_span("b", "d"), 2),
                                       watch_keys(d, from_c, 2)};
    static const char *const want[] = {"2.1:b=2", "2.1:b=2 2.2:c=3 2.4:bb=5 3:c-(3)",
                                       "2.2:c=3 2.3:d=4 3:c-(3)"};
    for (size_t i = 0; i < VG_ARRAY_LEN(want); i++) {
        vg_drv_watch_sync(live[i]);
        vg_drv_watch_sync(replayed[i]);
        assert_events(live[i], want[i]);
        assert_events(replayed[i], want[i]);
    }
}

static void the_keys_of_a_watch_are_copied(void **state)
{
    struct vg_drv *d = *state;
    char start[] = "b", end[] = "d";
    struct vg_drv_watch *w = watch_keys(d, vg_drv_span(start, end), 0);
    start[0] = end[0] = '\0';
    vg_drv_put(d, "a", "1");
    vg_drv_put(d, "c", "2");
    vg_drv_watch_sync(w);
    assert_events(w, "3:c=2");
}

static void live_and_replayed_events_are_the_same_records(void **state)
{
    struct vg_drv *d = *state;
    struct vg_drv_watch *live = vg_drv_watch_all(d, 0);
    struct vg_op op =
        vg_drv_op_put(vg_slice_str("a"), vg_slice_str("head"), vg_slice_str("value"), 0);
    op.ttl_ms = 5000;
    assert_err(vg_drv_run(d, &op, 1, NULL), 0);
    vg_drv_put(d, "a", "2");
    vg_drv_delete(d, "a");
    struct vg_drv_watch *replayed = vg_drv_watch_all(d, 2);
    vg_drv_watch_events(live, 3);
    vg_drv_watch_events(replayed, 3);
    for (size_t i = 0; i < 3; i++) {
        const struct vg_rec *x = live->events[i].rec, *y = replayed->events[i].rec;
        assert_int_equal(vg_rec_encoded_size(x), vg_rec_encoded_size(y));
        char a[256], b[256];
        vg_rec_encode(x, a);
        vg_rec_encode(y, b);
        assert_memory_equal(a, b, vg_rec_encoded_size(x));
    }
    vg_assert_slice_equal(vg_rec_header(live->events[0].rec), VG_SLICE_LIT("head"));
    vg_assert_slice_equal(vg_rec_header(live->events[1].prev), VG_SLICE_LIT("head"));
}

static void a_deleted_record_has_neither_value_nor_history_of_its_own(void **state)
{
    struct vg_drv *d = *state;
    struct vg_drv_watch *w = vg_drv_watch_all(d, 0);
    vg_drv_put(d, "a", "1");
    vg_drv_put(d, "a", "2");
    vg_drv_delete(d, "a");
    vg_drv_watch_events(w, 3);
    const struct vg_rec *r = w->events[2].rec;
    assert_true(vg_rec_is_delete(r));
    assert_int_equal(r->create_rev, 0);
    assert_int_equal(r->version, 0);
    assert_int_equal(r->prev_rev, 3);
    assert_int_equal(r->value_len, 0);
    assert_int_equal(r->header_len, 0);
    assert_int_equal(w->events[2].prev->create_rev, 2);
    assert_int_equal(w->events[2].prev->version, 2);
}

static void a_watch_without_a_callback_or_a_key_is_invalid(void **state)
{
    struct vg_drv *d = *state;
    struct vg_watch *w = NULL;
    struct vg_watch_opts opts = {.loop = d->loop, .keys = vg_drv_all()};
    assert_err(vg_storage_watch(d->store, &opts, &w), VIGIL_E_INVALID);
    assert_null(w);
}

static void many_watches_all_get_everything(void **state)
{
    struct vg_drv *d = *state;
    enum { N = 200 };
    struct vg_drv_watch *watches[N];
    for (unsigned i = 0; i < N; i++) {
        watches[i] = watch_keys(d, vg_drv_one(vg_suite_key(i)), i % 2 ? 2 : 0);
        watches[i]->batch_max = 1000;
    }
    struct vg_drv_watch *all = vg_drv_watch_all(d, 0);
    vg_suite_put_many(d, N);
    vg_suite_put_many(d, N);
    vg_drv_watch_events(all, (size_t)2 * N);
    assert_int_equal(all->n_events, 2 * N);
    for (unsigned i = 0; i < N; i++) {
        vg_drv_watch_sync(watches[i]);
        assert_int_equal(watches[i]->n_events, 2);
        assert_int_equal(watches[i]->events[0].rec->rev, i + 2);
        assert_int_equal(watches[i]->events[1].rec->rev, i + 2 + N);
    }
}

static void put_without_prev(struct vg_drv *d, const char *key, const char *value)
{
    struct vg_op op = vg_drv_put_op(key, value, VG_EXPECT_ANY);
    struct vg_txn txn = {.ops = &op, .n_ops = 1, .no_prev = true};
    assert_err(vg_drv_txn(d, &txn), 0);
    assert_null(op.prev);
    vg_txn_done(&txn);
}

static void a_watch_may_decline_what_was_there_before(void **state)
{
    struct vg_drv *d = *state;
    struct vg_watch_opts opts = {.keys = vg_drv_all(), .no_prev = true};
    struct vg_drv_watch *live = vg_drv_watch_open(d, &opts);
    put_without_prev(d, "a", "1");
    put_without_prev(d, "a", "2");
    vg_drv_delete(d, "a");
    opts.from = 2;
    struct vg_drv_watch *replay = vg_drv_watch_open(d, &opts);
    vg_drv_watch_sync(live);
    vg_drv_watch_sync(replay);
    assert_int_equal(live->n_events, 3);
    assert_int_equal(replay->n_events, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_null(live->events[i].prev);
        assert_null(replay->events[i].prev);
    }
}

/* Nobody wanted it when it was written: it is read when somebody does. */
static void who_wants_it_gets_what_was_there_before_however_it_was_written(void **state)
{
    struct vg_drv *d = *state;
    put_without_prev(d, "a", "1");
    if (vg_drv_engine_has(d->engine, VG_DRV_DURABLE))
        vg_drv_reopen(d); /* from below the tables */
    put_without_prev(d, "a", "2");
    struct vg_drv_watch *past = vg_drv_watch_all(d, 2);
    struct vg_drv_watch *live = vg_drv_watch_all(d, 0);
    put_without_prev(d, "a", "3");
    vg_drv_watch_sync(past);
    vg_drv_watch_sync(live);
    assert_events(past, "2:a=1 3:a=2(1) 4:a=3(2)");
    assert_events(live, "4:a=3(2)");
}

static const struct CMUnitTest tests[] = {
    VG_SUITE_TEST(a_watch_may_decline_what_was_there_before),
    VG_SUITE_TEST(who_wants_it_gets_what_was_there_before_however_it_was_written),
    VG_SUITE_TEST(a_watch_from_now_gets_what_follows),
    VG_SUITE_TEST(callbacks_do_not_come_from_within_the_call),
    VG_SUITE_TEST(a_watch_from_the_past_replays_it_and_goes_on),
    VG_SUITE_TEST(a_watch_from_each_revision_gets_exactly_the_rest),
    VG_SUITE_TEST(a_watch_from_the_future_waits_for_it),
    VG_SUITE_TEST(a_watch_from_the_compacted_revision_or_below_ends_at_once),
    VG_SUITE_TEST(compaction_does_not_end_a_watch_that_is_up_to_date),
    VG_SUITE_TEST(a_watch_from_the_future_outlives_compaction_before_it),
    VG_SUITE_TEST(a_watch_gets_the_keys_it_asked_for_and_no_others),
    VG_SUITE_TEST(the_keys_of_a_watch_are_copied),
    VG_SUITE_TEST(live_and_replayed_events_are_the_same_records),
    VG_SUITE_TEST(a_deleted_record_has_neither_value_nor_history_of_its_own),
    VG_SUITE_TEST(a_watch_without_a_callback_or_a_key_is_invalid),
    VG_SUITE_TEST(many_watches_all_get_everything),
};
VG_SUITE_TOPIC(vg_suite_watch, tests);
