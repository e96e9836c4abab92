/* suite_ttl.c - time to live: keys expire once, in time and never early, across reopening.
 * A key that must not expire is watched until a canary has: a key whose deadline is now. Everything
 * due before it has then been dealt with. */
#include "storage_suite.h"

static bool is_deleted(const struct vg_event *e, const char *key)
{
    return vg_rec_is_delete(e->rec) && vg_slice_eq(vg_rec_key(e->rec), vg_slice_str(key));
}

static size_t times_deleted(const struct vg_drv_watch *w, const char *key)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n_events; i++)
        n += is_deleted(&w->events[i], key);
    return n;
}

/* Turn until everything that is due now has expired. */
static void let_expire(struct vg_drv *d)
{
    struct vg_drv_watch *w =
        vg_drv_watch_open(d, &(struct vg_watch_opts){.keys = vg_drv_one("canary")});
    vg_drv_put_ttl(d, "canary", "x", 1);
    vg_drv_advance_ms(d, 1);
    vg_drv_watch_events(w, 2);
    assert_int_equal(times_deleted(w, "canary"), 1);
    vg_drv_watch_done(w);
}

static struct vg_drv *timed(void **state)
{
    vg_suite_need(*state, VG_DRV_FAKE_CLOCK);
    return *state;
}

static void a_key_expires_once_and_as_a_delete(void **state)
{
    struct vg_drv *d = timed(state);
    struct vg_drv_watch *w = vg_drv_watch_all(d, 0);
    vg_drv_put_ttl(d, "a", "1", 10000);
    vg_drv_put(d, "b", "2");
    vg_drv_advance_ms(d, 20000);
    vg_drv_watch_events(w, 3);
    assert_events(w, "2:a=1 3:b=2 4:a-(1)");
    vg_drv_advance_ms(d, 3600 * 1000);
    let_expire(d);
    vg_drv_watch_sync(w);
    assert_int_equal(times_deleted(w, "a"), 1);
    assert_range(d, vg_drv_span("a", "c"), 0, "b=2@3");
    assert_range(d, vg_drv_span("a", "c"), 3, "a=1@2 b=2@3");
}

static void a_record_tells_its_deadline(void **state)
{
    struct vg_drv *d = timed(state);
    vg_drv_put_ttl(d, "a", "1", 10000);
    struct vg_rec *r = vg_drv_get(d, "a", 0);
    assert_int_equal(r->expires_ms, vg_drv_wall_ms(d) + 10000);
    vg_rec_unref(r);
}

static void a_key_does_not_expire_early(void **state)
{
    struct vg_drv *d = timed(state);
    vg_drv_put_ttl(d, "a", "1", 10000);
    vg_drv_advance_ms(d, 9000);
    let_expire(d);
    assert_range(d, vg_drv_one("a"), 0, "a=1@2");
    vg_drv_advance_ms(d, 1000);
    let_expire(d);
    assert_range(d, vg_drv_one("a"), 0, "");
}

static void keys_due_at_once_share_a_revision(void **state)
{
    struct vg_drv *d = timed(state);
    struct vg_drv_watch *w = vg_drv_watch_all(d, 0);
    vg_drv_put_ttl(d, "a", "1", 3000);
    vg_drv_put_ttl(d, "b", "2", 1000);
    vg_drv_put_ttl(d, "c", "3", 2000);
    vg_drv_advance_ms(d, 10000);
    vg_drv_watch_events(w, 6);
    assert_int_equal(vg_storage_revision(d->store), 5);
    for (size_t i = 3; i < 6; i++) {
        assert_int_equal(w->events[i].rec->rev, 5);
        assert_int_equal(w->events[i].rec->sub, i - 3);
    }
    assert_int_equal(times_deleted(w, "a"), 1);
    assert_int_equal(times_deleted(w, "b"), 1);
    assert_int_equal(times_deleted(w, "c"), 1);
    assert_int_equal(vg_drv_put(d, "d", "4"), 6);
}

static void keys_expire_in_the_order_of_their_deadlines(void **state)
{
    struct vg_drv *d = timed(state);
    struct vg_drv_watch *w = vg_drv_watch_all(d, 0);
    vg_drv_put_ttl(d, "a", "1", 30000);
    vg_drv_put_ttl(d, "b", "2", 10000);
    vg_drv_put_ttl(d, "c", "3", 20000);
    for (size_t n = 4; n <= 6; n++) {
        vg_drv_advance_ms(d, 10000);
        vg_drv_watch_events(w, n);
    }
    assert_events(w, "2:a=1 3:b=2 4:c=3 5:b-(2) 6:c-(3) 7:a-(1)");
}

static void a_put_without_a_deadline_takes_the_old_one_away(void **state)
{
    struct vg_drv *d = timed(state);
    vg_drv_put_ttl(d, "a", "1", 10000);
    vg_drv_put(d, "a", "2");
    vg_drv_advance_ms(d, 60000);
    let_expire(d);
    assert_range(d, vg_drv_one("a"), 0, "a=2@3");
}

static void a_renewed_key_expires_at_its_new_deadline_only(void **state)
{
    struct vg_drv *d = timed(state);
    struct vg_drv_watch *w =
        vg_drv_watch_open(d, &(struct vg_watch_opts){.keys = vg_drv_one("lease"), .from = 2});
    for (int i = 0; i < 5; i++) {
        vg_drv_put_ttl(d, "lease", "mine", 10000);
        vg_drv_advance_ms(d, 8000);
        let_expire(d);
        vg_drv_watch_sync(w);
        assert_int_equal(times_deleted(w, "lease"), 0);
    }
    vg_drv_advance_ms(d, 8000);
    let_expire(d);
    vg_drv_watch_sync(w);
    assert_int_equal(times_deleted(w, "lease"), 1);
    assert_int_equal(w->n_events, 6);
}

static void a_shortened_deadline_counts(void **state)
{
    struct vg_drv *d = timed(state);
    vg_drv_put_ttl(d, "a", "1", 100000);
    vg_drv_put_ttl(d, "a", "2", 1000);
    vg_drv_advance_ms(d, 2000);
    let_expire(d);
    assert_range(d, vg_drv_one("a"), 0, "");
}

static void a_key_that_was_made_anew_does_not_inherit_a_deadline(void **state)
{
    struct vg_drv *d = timed(state);
    vg_drv_put_ttl(d, "a", "1", 10000);
    vg_drv_delete(d, "a");
    vg_drv_put(d, "a", "2");
    vg_drv_advance_ms(d, 60000);
    let_expire(d);
    assert_range(d, vg_drv_one("a"), 0, "a=2@4");
}

static void an_expired_key_is_absent_to_a_compare(void **state)
{
    struct vg_drv *d = timed(state);
    vg_drv_put_ttl(d, "a", "1", 10000);
    vg_drv_advance_ms(d, 10000);
    let_expire(d);
    assert_err(vg_drv_put_if(d, "a", "2", 2, NULL), VIGIL_E_CONFLICT);
    assert_err(vg_drv_put_if(d, "a", "2", 0, NULL), 0);
    struct vg_rec *r = vg_drv_get(d, "a", 0);
    assert_int_equal(r->version, 1);
    assert_int_equal(r->expires_ms, 0);
    vg_rec_unref(r);
}

static void a_deadline_beyond_the_limit_is_at_the_limit(void **state)
{
    struct vg_drv *d = timed(state);
    vg_drv_put_ttl(d, "a", "1", UINT64_MAX);
    vg_drv_put_ttl(d, "b", "2", INT64_MAX);
    vg_drv_advance_ms(d, VG_TTL_MAX_MS - 1000);
    let_expire(d);
    assert_range(d, vg_drv_span("a", "c"), 0, "a=1@2 b=2@3");
    vg_drv_advance_ms(d, 1000);
    let_expire(d);
    assert_range(d, vg_drv_span("a", "c"), 0, "");
}

static void a_wall_clock_that_jumps_back_delays(void **state)
{
    struct vg_drv *d = timed(state);
    vg_drv_put_ttl(d, "a", "1", 10000);
    vg_fake_clock_set_wall(d->clock, vg_drv_wall_ms(d) - 60000);
    vg_drv_advance_ms(d, 20000);
    let_expire(d);
    assert_range(d, vg_drv_one("a"), 0, "a=1@2");
    vg_drv_advance_ms(d, 50000);
    let_expire(d);
    assert_range(d, vg_drv_one("a"), 0, "");
}

static void a_wall_clock_that_jumps_ahead_expires_at_once(void **state)
{
    struct vg_drv *d = timed(state);
    struct vg_drv_watch *w = vg_drv_watch_all(d, 0);
    vg_drv_put_ttl(d, "a", "1", 10000);
    vg_fake_clock_set_wall(d->clock, vg_drv_wall_ms(d) + 10000);
    vg_drv_watch_events(w, 2);
    assert_events(w, "2:a=1 3:a-(1)");
}

/* In a few transactions, with deadlines that differ by less than `spread` ms. */
static void put_hundreds(struct vg_drv *d, uint64_t spread)
{
    struct vg_op ops[125];
    for (unsigned n = 0; n < 500; n += VG_ARRAY_LEN(ops)) {
        for (unsigned i = 0; i < VG_ARRAY_LEN(ops); i++) {
            ops[i] = vg_drv_put_op(vg_suite_key(n + i), "v", 0);
            ops[i].ttl_ms = 1000 + i % spread;
        }
        assert_err(vg_drv_run(d, ops, VG_ARRAY_LEN(ops), NULL), 0);
    }
}

static void hundreds_of_keys_expire_each_once(void **state)
{
    struct vg_drv *d = timed(state);
    put_hundreds(d, 3);
    struct vg_drv_watch *w = vg_drv_watch_all(d, 0);
    vg_drv_advance_ms(d, 5000);
    vg_drv_watch_events(w, 500);
    let_expire(d);
    vg_drv_watch_sync(w);
    for (unsigned i = 0; i < 500; i++)
        assert_int_equal(times_deleted(w, vg_suite_key(i)), 1);
    assert_state(d, 0, "");
}

static void deadlines_survive_compaction(void **state)
{
    struct vg_drv *d = timed(state);
    vg_drv_put_ttl(d, "a", "1", 10000);
    vg_drv_put(d, "b", "2");
    assert_err(vg_drv_compact(d, 3, NULL), 0);
    vg_drv_advance_ms(d, 10000);
    let_expire(d);
    assert_range(d, vg_drv_span("a", "c"), 0, "b=2@3");
}

static void deadlines_survive_reopening(void **state)
{
    struct vg_drv *d = timed(state);
    vg_suite_need(d, VG_DRV_DURABLE);
    vg_drv_put_ttl(d, "a", "1", 10000);
    vg_drv_put_ttl(d, "b", "2", 30000);
    vg_drv_put_ttl(d, "c", "3", 10000);
    vg_drv_put(d, "c", "4");
    vg_drv_reopen(d);
    vg_drv_advance_ms(d, 5000);
    let_expire(d);
    assert_range(d, vg_drv_one("a"), 0, "a=1@2");
    vg_drv_reopen(d);
    vg_drv_advance_ms(d, 6000);
    let_expire(d);
    assert_range(d, vg_drv_span("a", "ca"), 0, "b=2@3 c=4@5");
}

static void what_fell_due_while_the_store_was_closed_expires_after_opening(void **state)
{
    struct vg_drv *d = timed(state);
    vg_suite_need(d, VG_DRV_DURABLE);
    vg_drv_put_ttl(d, "a", "1", 10000);
    vg_drv_put_ttl(d, "b", "2", 100000);
    vg_drv_close_store(d);
    vg_drv_advance_ms(d, 50000);
    vg_drv_reopen(d);
    struct vg_drv_watch *w = vg_drv_watch_all(d, 2);
    vg_drv_watch_events(w, 3);
    assert_events(w, "2:a=1 3:b=2 4:a-(1)");
}

/* Closing leaves all of them in the base, with one deadline. */
static void hundreds_of_keys_expire_after_reopening(void **state)
{
    struct vg_drv *d = timed(state);
    vg_suite_need(d, VG_DRV_DURABLE);
    put_hundreds(d, 1);
    vg_drv_reopen(d);
    struct vg_drv_watch *w = vg_drv_watch_all(d, 0);
    vg_drv_advance_ms(d, 5000);
    vg_drv_watch_events(w, 500);
    for (unsigned i = 0; i < 500; i++)
        assert_int_equal(times_deleted(w, vg_suite_key(i)), 1);
    assert_state(d, 0, "");
}

/* With a checkpoint after every put most deadlines are in the base, some superseded above it. */
static void deadlines_count_wherever_a_checkpoint_has_put_them(void **state)
{
    struct vg_drv *d = timed(state);
    vg_suite_fresh(d, &(struct vg_storage_opts){.checkpoint_ms = 1});
    for (unsigned i = 0; i < 60; i++) {
        vg_drv_put_ttl(d, vg_suite_key(i), "v", 10000);
        vg_drv_advance_ms(d, 10);
    }
    for (unsigned i = 0; i < 60; i += 3)
        vg_drv_put(d, vg_suite_key(i), "stays");
    for (unsigned i = 1; i < 60; i += 3)
        vg_drv_put_ttl(d, vg_suite_key(i), "later", 50000);
    vg_drv_advance_ms(d, 20000);
    let_expire(d);
    struct vg_range range = {.keys = vg_drv_all(), .flags = VG_RANGE_COUNT_ONLY};
    assert_err(vg_drv_range(d, &range), 0);
    assert_int_equal(range.count, 40);
    vg_drv_advance_ms(d, 50000);
    let_expire(d);
    assert_err(vg_drv_range(d, &range), 0);
    assert_int_equal(range.count, 20);
    vg_range_done(&range);
}

static const struct CMUnitTest tests[] = {
    VG_SUITE_TEST(a_key_expires_once_and_as_a_delete),
    VG_SUITE_TEST(a_record_tells_its_deadline),
    VG_SUITE_TEST(a_key_does_not_expire_early),
    VG_SUITE_TEST(keys_due_at_once_share_a_revision),
    VG_SUITE_TEST(keys_expire_in_the_order_of_their_deadlines),
    VG_SUITE_TEST(a_put_without_a_deadline_takes_the_old_one_away),
    VG_SUITE_TEST(a_renewed_key_expires_at_its_new_deadline_only),
    VG_SUITE_TEST(a_shortened_deadline_counts),
    VG_SUITE_TEST(a_key_that_was_made_anew_does_not_inherit_a_deadline),
    VG_SUITE_TEST(an_expired_key_is_absent_to_a_compare),
    VG_SUITE_TEST(a_deadline_beyond_the_limit_is_at_the_limit),
    VG_SUITE_TEST(a_wall_clock_that_jumps_back_delays),
    VG_SUITE_TEST(a_wall_clock_that_jumps_ahead_expires_at_once),
    VG_SUITE_TEST(hundreds_of_keys_expire_each_once),
    VG_SUITE_TEST(deadlines_survive_compaction),
    VG_SUITE_TEST(deadlines_survive_reopening),
    VG_SUITE_TEST(what_fell_due_while_the_store_was_closed_expires_after_opening),
    VG_SUITE_TEST(hundreds_of_keys_expire_after_reopening),
    VG_SUITE_TEST(deadlines_count_wherever_a_checkpoint_has_put_them),
};
VG_SUITE_TOPIC(vg_suite_ttl, tests);
