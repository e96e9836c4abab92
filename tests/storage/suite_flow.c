/* suite_flow.c - how a watch flows: batches, progress, pause, cancel, and the hand-over from replay
 * to live while writers are busy. Of every batch the driver itself checks order and completeness.
 */
#include "storage_suite.h"

/* A transaction that puts keys [0, n). */
static void put_together(struct vg_drv *d, unsigned n)
{
    struct vg_op ops[VG_STORAGE_TXN_OPS_MAX];
    for (unsigned i = 0; i < n; i++)
        ops[i] = vg_drv_put_op(vg_suite_key(i), "v", VG_EXPECT_ANY);
    assert_err(vg_drv_run(d, ops, n, NULL), 0);
}

static struct vg_drv_watch *watch_with(struct vg_drv *d, vg_rev from, size_t batch_max)
{
    return vg_drv_watch_open(
        d, &(struct vg_watch_opts){.keys = vg_drv_all(), .from = from, .batch_max = batch_max});
}

/* One event per revision, first to last, none left out. */
static void assert_every_revision(const struct vg_drv_watch *w, vg_rev first, vg_rev last)
{
    assert_int_equal(w->n_events, last - first + 1);
    for (size_t i = 0; i < w->n_events; i++)
        assert_int_equal(w->events[i].rec->rev, first + i);
}

static void a_revision_stays_whole_in_batches_of_one(void **state)
{
    struct vg_drv *d = *state;
    static const unsigned sizes[] = {1, 5, 1, 128, 2, 1, 1, 40, 3};
    struct vg_drv_watch *live = watch_with(d, 0, 1);
    for (size_t i = 0; i < VG_ARRAY_LEN(sizes); i++)
        put_together(d, sizes[i]);
    struct vg_drv_watch *replayed = watch_with(d, 2, 1), *both[] = {live, replayed};
    for (size_t k = 0; k < 2; k++) {
        vg_drv_watch_sync(both[k]);
        size_t whole = 0;
        for (size_t i = 0; i < both[k]->n_batches; i++)
            if (both[k]->batches[i].n)
                assert_int_equal(both[k]->batches[i].n, sizes[whole++]);
        assert_int_equal(whole, VG_ARRAY_LEN(sizes));
    }
}

static void batches_hold_no_more_than_was_asked_for(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_put_many(d, 100);
    struct vg_drv_watch *w = watch_with(d, 2, 7);
    vg_drv_watch_events(w, 100);
    assert_every_revision(w, 2, 101);
    for (size_t i = 0; i < w->n_batches; i++)
        assert_true(w->batches[i].n <= 7);
}

/* Thousands of changes in revisions of all sizes: pieces of the log that are read at a time end in
 * the middle of some. */
static void a_long_replay_is_exact(void **state)
{
    struct vg_drv *d = *state;
    enum { N = 60 };
    size_t total = 0;
    for (unsigned i = 0; i < N; i++)
        put_together(d, 1 + i * 2);
    struct vg_drv_watch *both[] = {watch_with(d, 2, 3), watch_with(d, 2, 0)};
    for (size_t k = 0; k < 2; k++) {
        vg_drv_watch_sync(both[k]);
        total = 0;
        for (unsigned i = 0; i < N; i++) {
            for (unsigned sub = 0; sub < 1 + i * 2; sub++, total++) {
                assert_true(total < both[k]->n_events);
                assert_int_equal(both[k]->events[total].rec->rev, 2 + i);
                assert_int_equal(both[k]->events[total].rec->sub, sub);
            }
        }
        assert_int_equal(both[k]->n_events, total);
    }
}

/* ---- progress ---- */

static void progress_comes_when_foreign_keys_move_the_revision(void **state)
{
    struct vg_drv *d = *state;
    struct vg_drv_watch *w =
        vg_drv_watch_open(d, &(struct vg_watch_opts){.keys = vg_drv_one("mine"), .progress = true});
    vg_rev rev = vg_drv_put(d, "other", "x");
    while (w->rev < rev)
        vg_drv_turn(d, "progress by itself");
    assert_int_equal(w->n_events, 0);
    vg_drv_put(d, "mine", "1");
    vg_drv_watch_events(w, 1);
    assert_events(w, "3:mine=1");
}

static void without_asking_for_progress_there_is_none(void **state)
{
    struct vg_drv *d = *state;
    struct vg_drv_watch *w =
        vg_drv_watch_open(d, &(struct vg_watch_opts){.keys = vg_drv_one("mine")});
    struct vg_drv_watch *all = vg_drv_watch_all(d, 0);
    vg_suite_put_many(d, 20);
    vg_drv_watch_events(all, 20);
    vg_drv_put(d, "mine", "1");
    vg_drv_watch_events(w, 1);
    assert_int_equal(w->n_batches, 1);
    assert_int_equal(w->rev, 22);
}

static void asked_for_progress_comes_even_when_nothing_happened(void **state)
{
    struct vg_drv *d = *state;
    struct vg_drv_watch *w = vg_drv_watch_all(d, 0);
    for (size_t i = 1; i <= 5; i++) {
        vg_drv_watch_sync(w);
        assert_true(w->n_batches >= i);
        assert_int_equal(w->rev, 1);
    }
    assert_int_equal(w->n_events, 0);
}

static void asked_for_progress_comes_after_all_events(void **state)
{
    struct vg_drv *d = *state;
    struct vg_drv_watch *live = vg_drv_watch_all(d, 0);
    for (unsigned round = 1; round <= 20; round++) {
        vg_suite_put_many(d, 20);
        struct vg_drv_watch *fresh = vg_drv_watch_all(d, 2);
        vg_drv_watch_sync(live);
        assert_every_revision(live, 2, 1 + round * 20);
        vg_drv_watch_sync(fresh);
        assert_every_revision(fresh, 2, 1 + round * 20);
        vg_drv_watch_done(fresh);
    }
}

static void asked_for_progress_counts_foreign_keys(void **state)
{
    struct vg_drv *d = *state;
    struct vg_drv_watch *w =
        vg_drv_watch_open(d, &(struct vg_watch_opts){.keys = vg_drv_one("mine")});
    vg_suite_put_many(d, 10);
    vg_drv_watch_sync(w);
    assert_true(w->rev >= 11);
    assert_int_equal(w->n_events, 0);
}

/* ---- cancel ---- */

static void cancel_it(struct vg_drv_watch *w, void *arg)
{
    (void)arg;
    vg_drv_watch_cancel(w);
}

static void nothing_comes_after_a_cancel_inside_a_batch(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_put_many(d, 10);
    struct vg_drv_watch *replayed = watch_with(d, 2, 1), *live = watch_with(d, 0, 1);
    struct vg_drv_watch *witness = vg_drv_watch_all(d, 2);
    replayed->after_batch = live->after_batch = cancel_it;
    vg_suite_put_many(d, 10);
    vg_drv_watch_events(witness, 20);
    vg_drv_watch_events(live, 1);
    vg_drv_watch_events(replayed, 1);
    vg_suite_put_many(d, 10);
    vg_drv_watch_events(witness, 30);
    assert_int_equal(replayed->n_batches, 1);
    assert_int_equal(live->n_batches, 1);
    assert_false(replayed->is_ended);
}

static void a_watch_may_be_cancelled_at_any_moment(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_put_many(d, 50);
    for (unsigned turns = 0; turns < 20; turns++) {
        struct vg_drv_watch *w = watch_with(d, turns % 2 ? 2 : 0, 5);
        if (turns % 3 == 0)
            vg_watch_pause(w->watch);
        if (turns % 5 == 0)
            vg_watch_progress(w->watch);
        for (unsigned i = 0; i < turns; i++)
            vg_loop_turn(d->loop, false);
        vg_drv_watch_done(w);
        vg_drv_put(d, "a", "x");
    }
}

static void cancel_the_other(struct vg_drv_watch *w, void *arg)
{
    (void)w;
    vg_drv_watch_cancel(arg);
}

static void a_batch_may_cancel_another_watch(void **state)
{
    struct vg_drv *d = *state;
    struct vg_drv_watch *a = vg_drv_watch_all(d, 0), *b = vg_drv_watch_all(d, 0);
    struct vg_drv_watch *witness = vg_drv_watch_all(d, 0);
    a->after_batch = b->after_batch = cancel_the_other;
    a->arg = b;
    b->arg = a;
    vg_suite_put_many(d, 10);
    vg_drv_watch_events(witness, 10);
    vg_drv_watch_sync(a->watch ? a : b);
    assert_true(!a->watch != !b->watch);
    assert_every_revision(a->watch ? a : b, 2, 11);
    assert_int_equal((a->watch ? b : a)->n_events, 0);
}

static void open_another(struct vg_drv_watch *w, void *arg)
{
    struct vg_drv_watch **other = arg;
    if (!*other)
        *other = vg_drv_watch_all(w->d, 2);
}

static void a_batch_may_open_another_watch(void **state)
{
    struct vg_drv *d = *state;
    struct vg_drv_watch *a = vg_drv_watch_all(d, 0), *b = NULL;
    a->after_batch = open_another;
    a->arg = &b;
    vg_suite_put_many(d, 10);
    vg_drv_watch_sync(a);
    vg_drv_watch_sync(b);
    assert_every_revision(b, 2, 11);
}

/* ---- pause ---- */

static void a_paused_watch_gets_nothing_and_later_everything(void **state)
{
    struct vg_drv *d = *state;
    struct vg_drv_watch *w = vg_drv_watch_all(d, 0), *witness = vg_drv_watch_all(d, 0);
    vg_suite_put_many(d, 10);
    vg_drv_watch_events(w, 10);
    vg_watch_pause(w->watch);
    vg_watch_pause(w->watch);
    vg_suite_put_many(d, 1500);
    vg_drv_watch_events(witness, 1510);
    assert_int_equal(w->n_events, 10);
    vg_watch_resume(w->watch);
    vg_watch_resume(w->watch);
    vg_drv_watch_events(w, 1510);
    assert_every_revision(w, 2, 1511);
    vg_suite_put_many(d, 10);
    vg_drv_watch_sync(w);
    assert_every_revision(w, 2, 1521);
}

static void a_watch_may_be_paused_before_its_first_batch(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_put_many(d, 10);
    struct vg_drv_watch *w = vg_drv_watch_all(d, 2), *witness = vg_drv_watch_all(d, 2);
    vg_watch_pause(w->watch);
    vg_suite_put_many(d, 10);
    vg_drv_watch_events(witness, 20);
    assert_int_equal(w->n_batches, 0);
    vg_watch_resume(w->watch);
    vg_drv_watch_sync(w);
    assert_every_revision(w, 2, 21);
}

static void pause_it(struct vg_drv_watch *w, void *arg)
{
    (void)arg;
    vg_watch_pause(w->watch);
}

static void a_watch_that_pauses_in_every_batch_gets_all_in_single_steps(void **state)
{
    struct vg_drv *d = *state;
    struct vg_drv_watch *w = watch_with(d, 0, 3);
    w->after_batch = pause_it;
    vg_suite_put_many(d, 60);
    while (w->n_events < 60) {
        size_t batches = w->n_batches;
        vg_watch_resume(w->watch);
        while (w->n_batches == batches)
            vg_drv_turn(d, "one batch after resume");
        assert_int_equal(w->n_batches, batches + 1);
        if (w->n_events % 2)
            vg_drv_put(d, "zz", "more");
    }
    w->after_batch = NULL;
    vg_watch_resume(w->watch);
    vg_drv_watch_sync(w);
    assert_every_revision(w, 2, vg_storage_revision(d->store));
}

static void pause_now_and_then(struct vg_drv_watch *w, void *arg)
{
    (void)arg;
    if (w->n_batches % 5 == 0)
        vg_watch_pause(w->watch);
}

/* Far from the end the next piece is read while one is delivered: a pause in the middle leaves the
 * watch behind what has been read. */
static void pausing_in_the_middle_of_a_long_replay_loses_nothing(void **state)
{
    struct vg_drv *d = *state;
    enum { N = 5500 };
    vg_suite_put_many(d, N / 2); /* all at once would be more than may wait */
    vg_suite_put_many(d, N / 2);
    struct vg_drv_watch *w = watch_with(d, 2, 3);
    w->after_batch = pause_now_and_then;
    for (unsigned turns = 0; w->n_events < N; turns++) {
        vg_loop_turn(d->loop, false);
        if (turns % 3 == 0)
            vg_watch_resume(w->watch);
    }
    w->after_batch = NULL;
    vg_watch_resume(w->watch);
    vg_drv_watch_sync(w);
    assert_every_revision(w, 2, N + 1);
}

/* Either is honest: what it missed is still known, or the watch ends and says below what. */
static void a_paused_watch_that_compaction_passes_is_exact_or_ends(void **state)
{
    struct vg_drv *d = *state;
    struct vg_drv_watch *w = vg_drv_watch_all(d, 0);
    vg_drv_put(d, "a", "1");
    vg_drv_watch_events(w, 1);
    vg_watch_pause(w->watch);
    vg_suite_put_many(d, 100);
    assert_err(vg_drv_compact(d, 90, NULL), 0);
    if (w->watch)
        vg_watch_resume(w->watch);
    vg_drv_watch_sync(w);
    if (!w->is_ended) {
        assert_every_revision(w, 2, 102);
        return;
    }
    assert_err(w->err, VIGIL_E_COMPACTED);
    assert_int_equal(w->compact_rev, 90);
    assert_int_equal(w->events[w->n_events - 1].rec->rev, 1 + w->n_events);
}

static void a_paused_watch_outlives_compaction_of_what_it_has_seen(void **state)
{
    struct vg_drv *d = *state;
    struct vg_drv_watch *w = vg_drv_watch_all(d, 0);
    vg_suite_put_many(d, 50);
    vg_drv_watch_events(w, 50);
    vg_watch_pause(w->watch);
    assert_err(vg_drv_compact(d, 51, NULL), 0);
    vg_suite_put_many(d, 50);
    vg_watch_resume(w->watch);
    vg_drv_watch_sync(w);
    assert_every_revision(w, 2, 101);
}

/* ---- hand-over ---- */

/* Watches start from old and new revisions while hundreds of transactions are in the queue. */
static void watches_started_under_writers_miss_nothing_and_repeat_nothing(void **state)
{
    struct vg_drv *d = *state;
    enum { N = 1000, W = 40 };
    struct vg_op *ops = vg_calloc(N, sizeof *ops);
    struct vg_txn *txns = vg_calloc(N, sizeof *txns);
    struct vg_drv_watch *watches[W];
    vg_rev from[W];
    size_t n = 0;
    assert_non_null(ops);
    assert_non_null(txns);
    for (unsigned i = 0; i < N; i++) {
        ops[i] = vg_drv_put_op(vg_suite_key(i % 100), "v", VG_EXPECT_ANY);
        txns[i] = (struct vg_txn){.ops = &ops[i], .n_ops = 1};
        assert_err(vg_drv_submit_txn(d, &txns[i]), 0);
        if (i % 25 == 24) {
            from[n] = n % 4 == 0 ? 2 : vg_storage_revision(d->store) + n % 4; /* next or later */
            watches[n] = watch_with(d, from[n], n % 3 ? 4 : 0);
            n++;
            vg_loop_turn(d->loop, false);
        }
    }
    for (unsigned i = 0; i < N; i++) {
        assert_err(vg_drv_wait(d, &txns[i].req), 0);
        vg_txn_done(&txns[i]);
    }
    for (size_t i = 0; i < W; i++) {
        vg_drv_watch_sync(watches[i]);
        assert_every_revision(watches[i], from[i], N + 1);
    }
    vg_free(ops);
    vg_free(txns);
}

/* ---- answers and events ---- */

struct asked {
    struct vg_txn txn;
    const struct vg_drv_watch *watch;
    size_t n_events; /* that the watch had when the answer came */
    bool is_answered;
};

static void on_answer(struct vg_store_req *req)
{
    struct asked *a = VG_CONTAINER_OF(req, struct asked, txn.req);
    a->n_events = a->watch->n_events;
    a->is_answered = true;
}

/* A loop with many to tell would keep the writer waiting for the last of them. */
static void a_write_is_answered_before_it_is_told(void **state)
{
    struct vg_drv *d = *state;
    enum { N = 100 };
    vg_suite_need(d, VG_DRV_LOCAL);
    struct vg_drv_watch *w = vg_drv_watch_all(d, 0);
    for (size_t i = 0; i < N; i++) {
        struct vg_op op = vg_drv_put_op("k", "v", VG_EXPECT_ANY);
        struct asked a = {
            .watch = w,
            .txn = {.req = {.loop = d->loop, .done = on_answer}, .ops = &op, .n_ops = 1}};
        assert_err(vg_storage_txn(d->store, &a.txn), 0);
        while (!a.is_answered)
            vg_drv_turn(d, "the answer");
        assert_int_equal(a.n_events, i);
        vg_drv_watch_events(w, i + 1);
        vg_txn_done(&a.txn);
    }
}

static const struct CMUnitTest tests[] = {
    VG_SUITE_TEST(a_write_is_answered_before_it_is_told),
    VG_SUITE_TEST(a_revision_stays_whole_in_batches_of_one),
    VG_SUITE_TEST(batches_hold_no_more_than_was_asked_for),
    VG_SUITE_TEST(a_long_replay_is_exact),
    VG_SUITE_TEST(progress_comes_when_foreign_keys_move_the_revision),
    VG_SUITE_TEST(without_asking_for_progress_there_is_none),
    VG_SUITE_TEST(asked_for_progress_comes_even_when_nothing_happened),
    VG_SUITE_TEST(asked_for_progress_comes_after_all_events),
    VG_SUITE_TEST(asked_for_progress_counts_foreign_keys),
    VG_SUITE_TEST(nothing_comes_after_a_cancel_inside_a_batch),
    VG_SUITE_TEST(a_watch_may_be_cancelled_at_any_moment),
    VG_SUITE_TEST(a_batch_may_cancel_another_watch),
    VG_SUITE_TEST(a_batch_may_open_another_watch),
    VG_SUITE_TEST(a_paused_watch_gets_nothing_and_later_everything),
    VG_SUITE_TEST(a_watch_may_be_paused_before_its_first_batch),
    VG_SUITE_TEST(a_watch_that_pauses_in_every_batch_gets_all_in_single_steps),
    VG_SUITE_TEST(pausing_in_the_middle_of_a_long_replay_loses_nothing),
    VG_SUITE_TEST(a_paused_watch_that_compaction_passes_is_exact_or_ends),
    VG_SUITE_TEST(a_paused_watch_outlives_compaction_of_what_it_has_seen),
    VG_SUITE_TEST(watches_started_under_writers_miss_nothing_and_repeat_nothing),
};
VG_SUITE_TOPIC(vg_suite_flow, tests);
