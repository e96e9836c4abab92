/* Tests of level.c: seats, queues, fairness, and those who leave. A fake clock; requests of the
 * model run for as long as the test says. */
#include "test_support.h"

#include <stdio.h>

#include "base/rng.h"
#include "flow_int.h"

#define REQUESTS_MAX 4096

struct request {
    struct vg_flow_ticket t;
    struct vg_flow_wait w;
    struct rig *rig;
    unsigned flow;
    bool is_running, is_waiting, is_rejected;
    uint64_t ends_ns;
};

struct rig {
    struct vg_fake_clock clock;
    struct vg_loop *loop;
    struct vg_flow *flow;
    struct vg_flow_loop *l;
    struct vg_flow_level *level;
    struct request *v;
    unsigned n_went;
};

static void rig_open(struct rig *g, unsigned seats, unsigned queues, unsigned hand, unsigned length)
{
    static const char schema[] =
        "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"priorityLevelConfiguration\":{\"name\":\"v\"},"
        "\"matchingPrecedence\":5,\"distinguisherMethod\":{\"type\":\"ByUser\"},\"rules\":[{"
        "\"subjects\":[{\"kind\":\"User\",\"user\":{\"name\":\"*\"}}],\"nonResourceRules\":[{"
        "\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}]}]}}";
    char level[512], response[256] = "{\"type\":\"Reject\"}";
    memset(g, 0, sizeof *g);
    if (queues)
        snprintf(response, sizeof response,
                 "{\"type\":\"Queue\",\"queuing\":{\"queues\":%u,\"handSize\":%u,"
                 "\"queueLengthLimit\":%u}}",
                 queues, hand, length);
    snprintf(level, sizeof level,
             "{\"metadata\":{\"name\":\"v\"},\"spec\":{\"type\":\"Limited\",\"limited\":{"
             "\"nominalConcurrencyShares\":1000,\"borrowingLimitPercent\":0,"
             "\"limitResponse\":%s}}}",
             response);
    vg_fake_clock_init(&g->clock);
    assert_int_equal(vg_loop_new(&g->clock.clock, &g->loop), 0);
    struct vg_flow_opts o = {.clock = &g->clock.clock, .seats = 100};
    assert_int_equal(vg_flow_new(&o, &g->flow), 0);
    /* Flows are dealt to queues by a random key. With this one no two of a test share a queue. */
    memset(&g->flow->hash_key, 0x5a, sizeof g->flow->hash_key);
    struct vg_slice s = vg_slice_str(schema), v = vg_slice_str(level);
    assert_int_equal(vg_flow_configure(g->flow, &s, 1, &v, 1), 0);
    assert_int_equal(vg_flow_loop_open(g->flow, g->loop, &g->l), 0);
    VG_LIST_FOREACH (n, &g->flow->levels) {
        struct vg_flow_level *at = VG_CONTAINER_OF(n, struct vg_flow_level, link);
        if (vg_slice_eq(at->name, VG_SLICE_LIT("v")))
            g->level = at;
    }
    assert_non_null(g->level);
    vg_flow_level_set_limit(g->level, seats);
    g->v = vg_calloc(REQUESTS_MAX, sizeof *g->v);
    assert_non_null(g->v);
}

static void rig_close(struct rig *g)
{
    vg_flow_loop_close(g->l);
    vg_flow_free(g->flow);
    vg_loop_free(g->loop);
    vg_fake_clock_done(&g->clock);
    vg_free(g->v);
}

static void went(struct vg_flow_wait *w)
{
    struct request *q = VG_CONTAINER_OF(w, struct request, w);
    assert_true(q->is_waiting);
    q->is_waiting = false;
    q->is_running = true;
    q->rig->n_went++;
}

static const char names[26][2] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m",
                                  "n", "o", "p", "q", "r", "s", "t", "u", "v", "w", "x", "y", "z"};

static enum vg_flow_answer begin(struct rig *g, struct request *q, unsigned flow, unsigned seats)
{
    struct vg_flow_attributes a = {
        .user = vg_slice(names[flow], 1), .verb = VG_SLICE_LIT("get"), .path = VG_SLICE_LIT("/x")};
    struct vg_flow_subject_cache cache = {0};
    struct vg_flow_likeness like = {0};
    struct vg_flow_work work = {.initial = seats};
    *q = (struct request){.rig = g, .flow = flow};
    vg_flow_classify(g->l, &a, &like, &cache, &q->t);
    enum vg_flow_answer r = vg_flow_take(&q->t, &work);
    if (r == VG_FLOW_MUST_WAIT) {
        q->w = (struct vg_flow_wait){.loop = g->loop, .go = went, .attributes = a};
        r = vg_flow_enqueue(&q->t, &work, &q->w);
    }
    q->is_running = r == VG_FLOW_GO;
    q->is_waiting = r == VG_FLOW_MUST_WAIT;
    q->is_rejected = r == VG_FLOW_REJECT;
    if (q->is_rejected)
        vg_flow_ticket_done(g->l, &q->t);
    return r;
}

static void end(struct rig *g, struct request *q)
{
    assert_true(q->is_running);
    q->is_running = false;
    vg_flow_ticket_done(g->l, &q->t);
    while (vg_loop_turn(g->loop, false))
        continue;
}

static void leave(struct rig *g, struct request *q)
{
    assert_true(vg_flow_cancel(&q->w));
    q->is_waiting = false;
    vg_flow_ticket_done(g->l, &q->t);
    while (vg_loop_turn(g->loop, false))
        continue;
}

/* ---- one at a time ---- */

static void free_seats_are_taken_and_the_next_waits(void **state)
{
    struct rig g;
    (void)state;
    rig_open(&g, 2, 4, 2, 10);
    assert_int_equal(begin(&g, &g.v[0], 0, 1), VG_FLOW_GO);
    assert_int_equal(begin(&g, &g.v[1], 0, 1), VG_FLOW_GO);
    assert_int_equal(begin(&g, &g.v[2], 0, 1), VG_FLOW_MUST_WAIT);
    assert_int_equal(begin(&g, &g.v[3], 0, 1), VG_FLOW_MUST_WAIT);
    end(&g, &g.v[0]);
    assert_true(g.v[2].is_running || g.v[3].is_running);
    assert_int_equal(g.n_went, 1);
    end(&g, &g.v[1]);
    assert_int_equal(g.n_went, 2);
    end(&g, &g.v[2]);
    end(&g, &g.v[3]);
    assert_true(vg_flow_level_is_idle(g.level));
    rig_close(&g);
}

static void a_full_queue_refuses(void **state)
{
    struct rig g;
    (void)state;
    rig_open(&g, 1, 1, 1, 2);
    assert_int_equal(begin(&g, &g.v[0], 0, 1), VG_FLOW_GO);
    assert_int_equal(begin(&g, &g.v[1], 0, 1), VG_FLOW_MUST_WAIT);
    assert_int_equal(begin(&g, &g.v[2], 1, 1), VG_FLOW_MUST_WAIT);
    assert_int_equal(begin(&g, &g.v[3], 2, 1), VG_FLOW_REJECT);
    leave(&g, &g.v[1]);
    assert_int_equal(begin(&g, &g.v[4], 2, 1), VG_FLOW_MUST_WAIT);
    end(&g, &g.v[0]);
    assert_true(g.v[2].is_running);
    end(&g, &g.v[2]);
    end(&g, &g.v[4]);
    assert_true(vg_flow_level_is_idle(g.level));
    rig_close(&g);
}

static void without_queues_the_next_is_refused(void **state)
{
    struct rig g;
    (void)state;
    rig_open(&g, 2, 0, 0, 0);
    assert_int_equal(begin(&g, &g.v[0], 0, 2), VG_FLOW_GO);
    assert_int_equal(begin(&g, &g.v[1], 0, 1), VG_FLOW_REJECT);
    end(&g, &g.v[0]);
    assert_int_equal(begin(&g, &g.v[1], 0, 1), VG_FLOW_GO);
    end(&g, &g.v[1]);
    rig_close(&g);
}

/* Whoever needs more than there is runs alone, and nobody who is narrower passes it by. */
static void wide_requests_are_not_starved(void **state)
{
    struct rig g;
    (void)state;
    rig_open(&g, 4, 1, 1, 100);
    assert_int_equal(begin(&g, &g.v[0], 0, 1), VG_FLOW_GO);
    assert_int_equal(begin(&g, &g.v[1], 1, 9), VG_FLOW_MUST_WAIT);
    assert_int_equal(begin(&g, &g.v[2], 2, 1), VG_FLOW_MUST_WAIT); /* three seats are free */
    end(&g, &g.v[0]);
    assert_true(g.v[1].is_running && !g.v[2].is_running);
    end(&g, &g.v[1]);
    assert_true(g.v[2].is_running);
    end(&g, &g.v[2]);
    rig_close(&g);
}

static void one_that_leaves_lets_others_in(void **state)
{
    struct rig g;
    (void)state;
    rig_open(&g, 4, 1, 1, 100);
    assert_int_equal(begin(&g, &g.v[0], 0, 2), VG_FLOW_GO);
    assert_int_equal(begin(&g, &g.v[1], 1, 4), VG_FLOW_MUST_WAIT);
    assert_int_equal(begin(&g, &g.v[2], 2, 1), VG_FLOW_MUST_WAIT);
    leave(&g, &g.v[1]);
    assert_true(g.v[2].is_running);
    end(&g, &g.v[0]);
    end(&g, &g.v[2]);
    assert_true(vg_flow_level_is_idle(g.level));
    rig_close(&g);
}

/* The mail is on its way: too late to leave, and the seat is the request's. */
static void who_was_chosen_cannot_leave(void **state)
{
    struct rig g;
    (void)state;
    rig_open(&g, 1, 1, 1, 100);
    assert_int_equal(begin(&g, &g.v[0], 0, 1), VG_FLOW_GO);
    assert_int_equal(begin(&g, &g.v[1], 1, 1), VG_FLOW_MUST_WAIT);
    g.v[0].is_running = false;
    vg_flow_ticket_done(g.l, &g.v[0].t); /* the loop has not turned yet */
    assert_false(vg_flow_cancel(&g.v[1].w));
    assert_int_equal(vg_flow_level_used(g.level), 1);
    while (vg_loop_turn(g.loop, false))
        continue;
    end(&g, &g.v[1]);
    rig_close(&g);
}

static void more_seats_let_waiting_requests_in(void **state)
{
    struct rig g;
    (void)state;
    rig_open(&g, 1, 1, 1, 100);
    for (int i = 0; i < 5; i++)
        (void)begin(&g, &g.v[i], 0, 1);
    vg_flow_level_set_limit(g.level, 3);
    while (vg_loop_turn(g.loop, false))
        continue;
    assert_int_equal(g.n_went, 2);
    for (int i = 0; i < 5; i++)
        end(&g, &g.v[i]);
    rig_close(&g);
}

static void seats_that_linger_are_free_later(void **state)
{
    struct rig g;
    struct vg_flow_attributes a = {
        .user = VG_SLICE_LIT("a"), .verb = VG_SLICE_LIT("get"), .path = VG_SLICE_LIT("/x")};
    struct vg_flow_subject_cache cache = {0};
    struct vg_flow_likeness like = {0};
    struct vg_flow_work work = {.initial = 1, .final = 2, .linger_us = 5000};
    struct vg_flow_ticket t = {0};
    (void)state;
    rig_open(&g, 2, 1, 1, 100);
    vg_flow_classify(g.l, &a, &like, &cache, &t);
    assert_int_equal(vg_flow_take(&t, &work), VG_FLOW_GO);
    assert_int_equal(begin(&g, &g.v[1], 1, 1), VG_FLOW_MUST_WAIT);
    vg_flow_ticket_done(g.l, &t);
    (void)vg_loop_turn(g.loop, false);
    assert_true(g.v[1].is_waiting);
    vg_fake_clock_advance(&g.clock, 5 * VG_NS_PER_MS);
    while (vg_loop_turn(g.loop, false))
        continue;
    assert_true(g.v[1].is_running);
    end(&g, &g.v[1]);
    assert_true(vg_flow_level_is_idle(g.level));
    rig_close(&g);
}

/* ---- fairness ---- */

struct demand {
    unsigned flow, in_flight; /* so many at a time, as soon as one ends the next comes */
    unsigned service_ms, seats;
    double seat_seconds;
    unsigned served, waited_most_ms;
};

/* Clients that ask again at once, each flow with its number of them, for some virtual seconds. */
static void simulate(struct rig *g, struct demand *d, size_t n, unsigned ms)
{
    unsigned owner[REQUESTS_MAX], born[REQUESTS_MAX], used = 0;
    for (size_t i = 0; i < n; i++)
        for (unsigned k = 0; k < d[i].in_flight; k++, used++) {
            owner[used] = (unsigned)i;
            born[used] = 0;
            (void)begin(g, &g->v[used], d[i].flow, d[i].seats);
        }
    for (unsigned now = 0; now < ms; now++) {
        for (unsigned k = 0; k < used; k++) {
            struct request *q = &g->v[k];
            struct demand *of = &d[owner[k]];
            if (q->is_running && q->ends_ns == 0) {
                q->ends_ns = now + of->service_ms;
                of->waited_most_ms = VG_MAX(of->waited_most_ms, now - born[k]);
            }
            bool is_over = q->is_running && q->ends_ns <= now;
            if (is_over) {
                of->seat_seconds += of->seats * of->service_ms / 1e3;
                of->served++;
                end(g, q);
            }
            if (is_over || q->is_rejected) {
                born[k] = now;
                (void)begin(g, q, of->flow, of->seats);
            }
        }
        vg_fake_clock_advance(&g->clock, VG_NS_PER_MS);
    }
    for (unsigned k = 0; k < used; k++)
        if (g->v[k].is_waiting)
            leave(g, &g->v[k]);
    for (unsigned k = 0; k < used; k++)
        if (g->v[k].is_running)
            end(g, &g->v[k]);
    assert_true(vg_flow_level_is_idle(g->level));
}

/* A flow with 20 times the clients gets no more than its half, once both want more than that. */
static void greedy_flows_get_their_share(void **state)
{
    struct rig g;
    struct demand d[] = {{.flow = 0, .in_flight = 200, .service_ms = 5, .seats = 1},
                         {.flow = 1, .in_flight = 10, .service_ms = 5, .seats = 1}};
    (void)state;
    rig_open(&g, 10, 256, 1, 1000);
    simulate(&g, d, 2, 4000);
    double ratio = d[0].seat_seconds / d[1].seat_seconds;
    assert_true(ratio > 0.8 && ratio < 1.25);
    assert_true(d[0].seat_seconds + d[1].seat_seconds > 0.9 * 10 * 4);
    rig_close(&g);
}

/* By seat-seconds, not by requests: long and wide ones come less often. */
static void long_and_wide_requests_pay_for_what_they_take(void **state)
{
    struct rig g;
    struct demand d[] = {{.flow = 0, .in_flight = 50, .service_ms = 2, .seats = 1},
                         {.flow = 1, .in_flight = 50, .service_ms = 40, .seats = 1},
                         {.flow = 2, .in_flight = 50, .service_ms = 10, .seats = 3}};
    (void)state;
    rig_open(&g, 12, 256, 1, 1000);
    simulate(&g, d, 3, 6000);
    for (int i = 0; i < 3; i++)
        assert_true(d[i].seat_seconds > 12 * 6 / 3.0 * 0.7);
    rig_close(&g);
}

/* A flow that asks for less than its share gets all of it, and soon. */
static void modest_flows_do_not_wait_long(void **state)
{
    struct rig g;
    struct demand d[] = {{.flow = 0, .in_flight = 300, .service_ms = 5, .seats = 1},
                         {.flow = 1, .in_flight = 1, .service_ms = 5, .seats = 1}};
    (void)state;
    rig_open(&g, 10, 256, 1, 1000);
    simulate(&g, d, 2, 4000);
    assert_true(d[1].waited_most_ms <= 10);
    assert_true(d[1].served > 250);
    rig_close(&g);
}

/* 25 flows and a flood: shuffle sharding leaves each some queue that the flood is not in. */
static void nobody_starves_beside_a_flood(void **state)
{
    struct rig g;
    struct demand d[26] = {{.flow = 0, .in_flight = 500, .service_ms = 5, .seats = 1}};
    (void)state;
    for (unsigned i = 1; i < 26; i++)
        d[i] = (struct demand){.flow = i, .in_flight = 1, .service_ms = 5, .seats = 1};
    rig_open(&g, 20, 128, 6, 50);
    simulate(&g, d, 26, 3000);
    for (unsigned i = 1; i < 26; i++)
        assert_true(d[i].served > 50);
    rig_close(&g);
}

/* Any order of coming, ending, leaving and changing: the checks of level.c hold, nobody is lost. */
static void any_order_of_events_keeps_the_invariants(void **state)
{
    struct rig g;
    struct vg_rng rng;
    unsigned rounds = vg_test_is_long() ? 200000 : 20000;
    (void)state;
    vg_rng_seed(&rng, vg_test_seed());
    rig_open(&g, 5, 8, 3, 5);
    for (unsigned i = 0; i < rounds; i++) {
        struct request *q = &g.v[vg_rng_below(&rng, 60)];
        uint64_t what = vg_rng_below(&rng, 40);
        if (what == 0)
            vg_flow_level_set_limit(g.level, (uint32_t)vg_rng_below(&rng, 9));
        else if (what == 1)
            assert_int_equal(vg_flow_level_set_queues(g.level, (uint32_t)vg_rng_below(&rng, 12), 3,
                                                      (uint32_t)vg_rng_below(&rng, 7)),
                             0);
        else if (q->is_running)
            end(&g, q);
        else if (q->is_waiting && what < 10)
            leave(&g, q);
        else if (!q->is_waiting)
            (void)begin(&g, q, (unsigned)vg_rng_below(&rng, 26),
                        1 + (unsigned)vg_rng_below(&rng, 3));
        vg_fake_clock_advance(&g.clock, vg_rng_below(&rng, 3) * VG_NS_PER_MS);
        while (vg_loop_turn(g.loop, false))
            continue;
    }
    vg_flow_level_set_limit(g.level, 1000);
    while (vg_loop_turn(g.loop, false))
        continue;
    for (unsigned k = 0; k < 60; k++) {
        assert_false(g.v[k].is_waiting);
        if (g.v[k].is_running)
            end(&g, &g.v[k]);
    }
    assert_true(vg_flow_level_is_idle(g.level));
    rig_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_seats_are_taken_and_the_next_waits),
        cmocka_unit_test(a_full_queue_refuses),
        cmocka_unit_test(without_queues_the_next_is_refused),
        cmocka_unit_test(wide_requests_are_not_starved),
        cmocka_unit_test(one_that_leaves_lets_others_in),
        cmocka_unit_test(who_was_chosen_cannot_leave),
        cmocka_unit_test(more_seats_let_waiting_requests_in),
        cmocka_unit_test(seats_that_linger_are_free_later),
        cmocka_unit_test(greedy_flows_get_their_share),
        cmocka_unit_test(long_and_wide_requests_pay_for_what_they_take),
        cmocka_unit_test(modest_flows_do_not_wait_long),
        cmocka_unit_test(nobody_starves_beside_a_flood),
        cmocka_unit_test(any_order_of_events_keeps_the_invariants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
