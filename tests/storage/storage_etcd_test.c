/* storage_etcd_test.c - what only the etcd engine does: two servers on one etcd, bringing a watch
 * to a revision by progress requests or by the barrier, leases, members that die or stand still,
 * answers that are lost, compaction by turns, and what it says when there is no etcd.
 *     storage_etcd_test <engine>
 * Counters prove which way was taken. */
#include "test_support.h"

#include <inttypes.h>
#include <stdio.h>

#include "etcd_member.h"
#include "storage_driver.h"
#include "storage_driver_int.h"

static const char *engine;

static bool has_barrier(void)
{
    return strcmp(engine, "etcd34") == 0; /* Debian's 3.4.23 */
}

/* A second server on the etcd of the first, with these options. */
static void open_second(struct vg_drv *d, const struct vg_drv *first, const char *prefix,
                        const struct vg_etcd_opts *more)
{
    struct vg_status status = {0};
    *d = (struct vg_drv){.engine = engine, .is_guest = false};
    d->opts = (struct vg_storage_opts){.size = sizeof d->opts, .clock = vg_clock_system()};
    d->servers[0] = first->etcd->url;
    d->etcd_opts = more ? *more : (struct vg_etcd_opts){0};
    d->etcd_opts.servers = d->servers;
    d->etcd_opts.n_servers = 1;
    d->etcd_opts.root = "";
    d->etcd_opts.prefix = prefix;
    d->opts.etcd = &d->etcd_opts;
    if (vg_loop_new(vg_clock_system(), &d->loop) < 0 ||
        vg_storage_open_etcd(&d->opts, &d->store, &status) < 0)
        vg_drv_die(status.message, status.err);
    vg_loop_turn(d->loop, false);
}

struct answer {
    struct vg_store_req req;
    bool is_there;
};

static void on_answer(struct vg_store_req *req)
{
    VG_CONTAINER_OF(req, struct answer, req)->is_there = true;
}

/* How new must a state be to be current? */
static vg_rev ask_fresh(struct vg_drv *d)
{
    struct answer a = {.req = {.loop = d->loop, .done = on_answer}};
    assert_int_equal(vg_storage_fresh(d->store, &a.req), 0);
    while (!a.is_there)
        vg_drv_turn(d, "the newest revision");
    assert_int_equal(a.req.err, 0);
    return a.req.rev;
}

static struct vg_storage_stats stats_of(struct vg_drv *d)
{
    struct vg_storage_stats st;
    vg_storage_stats(d->store, &st);
    return st;
}

static int setup(void **state)
{
    struct vg_drv *d = vg_new(struct vg_drv);
    if (!d)
        return -1;
    vg_drv_open(d, engine, NULL);
    *state = d;
    return 0;
}

static int teardown(void **state)
{
    vg_drv_close(*state);
    vg_free(*state);
    return 0;
}

/* ---- two servers ---- */

static void what_another_server_writes_is_seen_and_told(void **state)
{
    struct vg_drv *d = *state, other;
    open_second(&other, d, "/test/", NULL);
    struct vg_drv_watch *w = vg_drv_watch_all(d, 0);
    vg_rev rev = vg_drv_put(&other, "a", "1");
    assert_int_equal(ask_fresh(d), rev);
    vg_drv_watch_events(w, 1);
    assert_int_equal(w->events[0].rec->rev, rev);
    assert_int_equal(vg_drv_put_if(d, "a", "2", 0, NULL), VIGIL_E_CONFLICT);
    assert_int_equal(vg_drv_put_if(d, "a", "2", rev, NULL), 0);
    vg_drv_close(&other);
}

/* A change outside the prefix moves the revision, and no event tells of it. */
static void a_watch_is_brought_to_a_revision_that_no_event_tells(void **state)
{
    struct vg_drv *d = *state, other;
    open_second(&other, d, "/elsewhere/", NULL);
    struct vg_drv_watch *w =
        vg_drv_watch_open(d, &(struct vg_watch_opts){.keys = vg_drv_all(), .progress = true});
    vg_drv_put(d, "a", "1");
    vg_rev rev = vg_drv_put(&other, "b", "2");
    assert_true(ask_fresh(d) >= rev);
    while (w->rev < rev)
        vg_drv_turn(d, "a revision that no event tells");
    assert_int_equal(w->n_events, 1);
    struct vg_storage_stats st = stats_of(d);
    assert_true(has_barrier() ? st.barriers > 0 : st.barriers == 0);
    assert_true(has_barrier() ? st.progress_requests == 0 : st.progress_requests > 0);
    vg_drv_close(&other);
}

/* Nobody lists the barrier, nobody hears of it. */
static void the_barrier_is_nobodys_object(void **state)
{
    struct vg_drv *d = *state, other;
    open_second(&other, d, "/elsewhere/", NULL);
    struct vg_drv_watch *w = vg_drv_watch_all(d, 0);
    for (int i = 0; i < 3; i++) {
        vg_rev rev = vg_drv_put(&other, "b", "2");
        assert_true(ask_fresh(d) >= rev);
        vg_drv_watch_sync(w);
    }
    struct vg_range range = {.keys = vg_drv_all(), .flags = VG_RANGE_COUNT};
    assert_int_equal(vg_drv_range(d, &range), 0);
    assert_int_equal(range.count, 0);
    assert_int_equal(range.n_recs, 0);
    vg_range_done(&range);
    assert_int_equal(w->n_events, 0);
    vg_drv_close(&other);
}

/* ---- leases ---- */

static void a_key_with_a_time_to_live_goes_by_itself(void **state)
{
    struct vg_drv *d = *state;
    struct vg_drv_watch *w = vg_drv_watch_all(d, 0);
    vg_drv_put_ttl(d, "a", "1", 3000); /* a busy machine takes its time to write the others */
    vg_drv_put_ttl(d, "b", "2", 3000);
    vg_drv_put(d, "b", "3"); /* takes the deadline away */
    vg_drv_put_ttl(d, "c", "4", 3600 * 1000);
    vg_drv_watch_events(w, 5);
    const struct vg_event *last = &w->events[4];
    assert_true(vg_rec_is_delete(last->rec));
    vg_assert_slice_equal(vg_rec_key(last->rec), VG_SLICE_LIT("a"));
    vg_assert_slice_equal(vg_rec_value(last->prev), VG_SLICE_LIT("1"));
    struct vg_rec *b = vg_drv_get(d, "b", 0), *c = vg_drv_get(d, "c", 0);
    assert_non_null(b);
    assert_non_null(c);
    vg_rec_unref(b);
    vg_rec_unref(c);
}

/* ---- a member that is gone ---- */

static void watches_go_on_where_they_were_when_etcd_comes_back(void **state)
{
    struct vg_drv *d = *state;
    struct vg_drv_watch *w = vg_drv_watch_all(d, 0);
    vg_drv_put(d, "a", "1");
    vg_drv_watch_events(w, 1);
    vg_test_etcd_kill(d->etcd);
    vg_test_etcd_start(d->etcd);
    struct vg_drv other;
    open_second(&other, d, "/test/", NULL); /* while ours is still looking for it */
    vg_rev rev = vg_drv_put(&other, "a", "2");
    vg_drv_watch_events(w, 2);
    assert_int_equal(w->n_events, 2);
    assert_int_equal(w->events[1].rec->rev, rev);
    assert_false(w->is_ended);
    assert_true(stats_of(d).watch_restarts > 0);
    vg_drv_close(&other);
}

/* History that is gone cannot be told: the watch ends, and says below what. */
static void a_watch_that_was_away_too_long_is_told(void **state)
{
    struct vg_drv *d = *state, other;
    struct vg_drv_watch *w = vg_drv_watch_all(d, 0);
    vg_drv_put(d, "a", "1");
    vg_drv_watch_events(w, 1);
    vg_watch_pause(w->watch);
    struct vg_drv_watch *meanwhile = vg_drv_watch_all(d, 0);
    open_second(&other, d, "/test/", NULL);
    for (int i = 0; i < 10; i++)
        vg_drv_put(&other, "a", "x");
    vg_rev rev = vg_drv_put(&other, "b", "2");
    vg_drv_watch_events(meanwhile, 11); /* else what is still to come would be told live */
    assert_int_equal(vg_drv_compact(&other, rev, NULL), 0);
    vg_watch_resume(w->watch);
    assert_int_equal(vg_drv_watch_end(w), VIGIL_E_COMPACTED);
    assert_int_equal(w->compact_rev, rev);
    assert_int_equal(vg_storage_compacted(d->store), rev);
    vg_drv_close(&other);
}

/* ---- the past ---- */

enum { ROUND = 100, REVISIONS = 13 * ROUND }; /* more than etcd brings a watch at once */

/* Transactions of one and of two changes, ROUND of them under way at once. */
static void write_many(struct vg_drv *d)
{
    struct vg_txn txns[ROUND];
    struct vg_op ops[ROUND][2];
    char key[32];
    for (unsigned at = 0; at < REVISIONS; at += ROUND) {
        for (unsigned i = 0; i < ROUND; i++) {
            snprintf(key, sizeof key, "k%u", at + i);
            ops[i][0] = vg_drv_put_op(key, "first", 0);
            snprintf(key, sizeof key, "k%u-too", at + i);
            ops[i][1] = vg_drv_put_op(key, "second", 0);
            txns[i] = (struct vg_txn){.ops = ops[i], .n_ops = 2};
            assert_int_equal(vg_drv_submit_txn(d, &txns[i]), 0);
        }
        for (unsigned i = 0; i < ROUND; i++) {
            assert_int_equal(vg_drv_wait(d, &txns[i].req), 0);
            vg_txn_done(&txns[i]);
        }
    }
    vg_drv_delete(d, "k1");
}

static void assert_same_events(const struct vg_drv_watch *a, const struct vg_drv_watch *b)
{
    assert_int_equal(a->n_events, b->n_events);
    for (size_t i = 0; i < a->n_events; i++) {
        const struct vg_rec *x = a->events[i].rec, *y = b->events[i].rec;
        assert_int_equal(x->rev, y->rev);
        assert_int_equal(x->sub, y->sub);
        assert_int_equal(x->op, y->op);
        assert_true(vg_slice_eq(vg_rec_key(x), vg_rec_key(y)));
        assert_true(vg_slice_eq(vg_rec_value(x), vg_rec_value(y)));
    }
}

/* Whole stretches of the history are somebody else's. */
static void write_a_long_history(struct vg_drv *d)
{
    struct vg_drv elsewhere;
    open_second(&elsewhere, d, "/elsewhere/", NULL);
    write_many(d);
    write_many(&elsewhere);
    for (int i = 0; i < ROUND; i++)
        vg_drv_put(d, "again", i % 2 ? "x" : "y");
    vg_drv_put(&elsewhere, "last", "z");
    vg_drv_close(&elsewhere);
}

/* A watch that saw all of it, and one elsewhere that begins to read it. */
static void begin_replay(struct vg_drv *d, struct vg_drv *ret_other, struct vg_drv_watch **ret_live,
                         struct vg_drv_watch **ret_replay)
{
    vg_rev before = vg_storage_revision(d->store);
    *ret_live = vg_drv_watch_all(d, 0);
    write_a_long_history(d);
    vg_drv_watch_sync(*ret_live);
    open_second(ret_other, d, "/test/", NULL);
    *ret_replay = vg_drv_watch_all(ret_other, before + 1);
}

static void a_long_history_is_told_exactly(void **state)
{
    struct vg_drv *d = *state, other;
    struct vg_drv_watch *live, *replay;
    begin_replay(d, &other, &live, &replay);
    vg_drv_watch_sync(replay);
    assert_same_events(live, replay);
    assert_true(stats_of(&other).past_watches > 2); /* they went side by side */
    vg_drv_close(&other);
}

static void kill_once(struct vg_drv_watch *w, void *arg)
{
    struct vg_test_etcd **etcd = arg;
    (void)w;
    if (!*etcd)
        return;
    vg_test_etcd_kill(*etcd);
    vg_test_etcd_start(*etcd);
    *etcd = NULL;
}

static void a_long_history_goes_on_when_etcd_comes_back(void **state)
{
    struct vg_drv *d = *state, other;
    struct vg_test_etcd *etcd = d->etcd;
    struct vg_drv_watch *live, *replay;
    begin_replay(d, &other, &live, &replay);
    replay->after_batch = kill_once;
    replay->arg = &etcd;
    vg_drv_watch_sync(replay);
    assert_null(etcd);
    assert_false(replay->is_ended);
    assert_same_events(live, replay);
    vg_drv_close(&other);
}

/* ---- answers that are lost ---- */

static void open_hasty(struct vg_drv *d, const struct vg_drv *first)
{
    open_second(d, first, "/test/", &(struct vg_etcd_opts){.request_ms = 500});
}

/* It stood still until our patience was over, and then did what it had been asked. */
static void a_write_without_an_answer_is_unknown_and_never_a_false_success(void **state)
{
    struct vg_drv *d = *state, hasty;
    open_hasty(&hasty, d);
    vg_rev rev = vg_drv_put(d, "a", "1");
    vg_test_etcd_pause(d->etcd);
    struct vg_op op = vg_drv_put_op("a", "2", rev);
    struct vg_txn txn = {.ops = &op, .n_ops = 1};
    int err = vg_drv_txn(&hasty, &txn);
    vg_test_etcd_go_on(d->etcd);
    assert_int_equal(err, VIGIL_E_UNKNOWN_OUTCOME);
    assert_true(strstr(txn.req.status.message, "may or may not have happened") != NULL);
    assert_int_equal(stats_of(&hasty).unknown_outcomes, 1);
    vg_txn_done(&txn);
    vg_drv_close(&hasty);
}

struct lost {
    struct vg_drv *d;
    struct vg_test_etcd *etcd;
    struct vg_txn txn;
    struct vg_op op;
};

/* Send a write to an etcd that stands still, and let it go on only after the write is given up;
 * then what became of it is found by reading, which is let through. */
static int lose_answer(struct lost *l)
{
    vg_test_etcd_pause(l->etcd);
    assert_int_equal(vg_drv_submit_txn(l->d, &l->txn), 0);
    uint64_t end = vg_clock_mono_ns(vg_clock_system()) + 700 * VG_NS_PER_MS;
    while (vg_clock_mono_ns(vg_clock_system()) < end && !vg_drv_is_answered(&l->txn.req))
        vg_loop_turn(l->d->loop, false);
    vg_test_etcd_go_on(l->etcd);
    return vg_drv_wait(l->d, &l->txn.req);
}

/* Whether etcd did it before or after we read decides: done or unknown, and never done twice. */
static void a_lost_create_of_unique_bytes_is_found_or_unknown(void **state)
{
    struct vg_drv *d = *state, hasty;
    open_hasty(&hasty, d);
    struct lost l = {.d = &hasty, .etcd = d->etcd, .op = vg_drv_put_op("a", "uid-1", 0)};
    l.op.is_unique = true;
    l.txn = (struct vg_txn){.ops = &l.op, .n_ops = 1};
    int err = lose_answer(&l);
    struct vg_rec *now = vg_drv_get(d, "a", 0);
    if (err == 0) {
        assert_non_null(now);
        assert_int_equal(now->rev, l.txn.req.rev);
    } else {
        assert_int_equal(err, VIGIL_E_UNKNOWN_OUTCOME);
    }
    vg_rec_unref(now);
    vg_txn_done(&l.txn);
    vg_drv_close(&hasty);
}

/* Bytes that another may put too prove nothing: a counter must not be raised once for two. */
static void a_lost_update_is_never_taken_for_done_by_its_bytes(void **state)
{
    struct vg_drv *d = *state, hasty;
    int err = 0;
    open_hasty(&hasty, d);
    /* On a machine that is busy enough it is sent so late that its answer comes. */
    while (err == 0 && stats_of(&hasty).resolved_outcomes == 0) {
        vg_rev rev = vg_drv_put(d, "a", "5");
        struct lost l = {.d = &hasty, .etcd = d->etcd, .op = vg_drv_put_op("a", "6", rev)};
        l.txn = (struct vg_txn){.ops = &l.op, .n_ops = 1};
        err = lose_answer(&l);
        vg_txn_done(&l.txn);
    }
    assert_int_equal(err, VIGIL_E_UNKNOWN_OUTCOME);
    vg_drv_close(&hasty);
}

/* ---- compaction by turns ---- */

static void servers_compact_by_turns(void **state)
{
    struct vg_drv *d = *state, a, b;
    struct vg_etcd_opts turns = {.compact_ms = 100};
    open_second(&a, d, "/test/", &turns);
    open_second(&b, d, "/test/", &turns);
    vg_rev first = vg_drv_put(d, "a", "1");
    while (vg_storage_compacted(a.store) < first || vg_storage_compacted(b.store) < first) {
        vg_drv_put(d, "a", "x");
        vg_loop_turn(a.loop, false);
        vg_loop_turn(b.loop, false);
    }
    struct vg_range range = {.keys = vg_drv_all(), .at = first - 1};
    assert_int_equal(vg_drv_range(d, &range), VIGIL_E_COMPACTED);
    vg_drv_close(&a);
    vg_drv_close(&b);
}

/* ---- no etcd ---- */

static int try_open(const char *server, const char *prefix, struct vg_status *status)
{
    struct vg_storage *store = NULL;
    struct vg_etcd_opts eo = {
        .servers = &server, .n_servers = 1, .root = "", .prefix = prefix, .open_ms = 300};
    struct vg_storage_opts o = {.size = sizeof o, .etcd = &eo};
    *status = (struct vg_status){0};
    int err = vg_storage_open_etcd(&o, &store, status);
    if (err == 0)
        vg_storage_close(store);
    return err;
}

static void where_no_etcd_is_the_message_says_what_was_tried(void **state)
{
    struct vg_status status;
    (void)state;
    assert_true(try_open("http://127.0.0.1:1", "/test/", &status) < 0);
    assert_non_null(strstr(status.message, "http://127.0.0.1:1"));
    assert_non_null(strstr(status.message, "--etcd-servers"));
    assert_int_equal(try_open("ftp://x", "/test/", &status), VIGIL_E_INVALID);
    assert_int_equal(try_open("http://127.0.0.1:1", "", &status), VIGIL_E_INVALID);
}

static void health_tells_when_etcd_is_gone_and_when_it_is_back(void **state)
{
    struct vg_drv *d = *state, watcher;
    struct vg_status status = {0};
    open_second(&watcher, d, "/test/", &(struct vg_etcd_opts){.health_ms = 100});
    while (vg_storage_health(watcher.store, &status) < 0) /* a busy machine may miss the first */
        uv_sleep(5);
    vg_test_etcd_kill(d->etcd);
    while (vg_storage_health(watcher.store, &status) == 0)
        uv_sleep(5);
    assert_non_null(strstr(status.message, d->etcd->url));
    vg_test_etcd_start(d->etcd);
    while (vg_storage_health(watcher.store, &status) < 0)
        uv_sleep(5);
    vg_drv_close(&watcher);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        T(what_another_server_writes_is_seen_and_told),
        T(a_watch_is_brought_to_a_revision_that_no_event_tells),
        T(the_barrier_is_nobodys_object),
        T(a_key_with_a_time_to_live_goes_by_itself),
        T(watches_go_on_where_they_were_when_etcd_comes_back),
        T(a_watch_that_was_away_too_long_is_told),
        T(a_long_history_is_told_exactly),
        T(a_long_history_goes_on_when_etcd_comes_back),
        T(a_write_without_an_answer_is_unknown_and_never_a_false_success),
        T(a_lost_create_of_unique_bytes_is_found_or_unknown),
        T(a_lost_update_is_never_taken_for_done_by_its_bytes),
        T(servers_compact_by_turns),
        T(health_tells_when_etcd_is_gone_and_when_it_is_back),
        cmocka_unit_test(where_no_etcd_is_the_message_says_what_was_tried),
    };
    engine = vg_drv_args(argc, argv);
    return cmocka_run_group_tests_name("storage_etcd", tests, NULL, NULL);
}
