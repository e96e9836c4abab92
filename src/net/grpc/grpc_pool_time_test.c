/* grpc_pool_time_test.c - what a pool does as time passes, which is driven by hand: servers that
 * are silent are doubted and given up, calls wait for their tokens. */
#include "grpc_pool_testing.h"

/* ---- time ---- */

static void a_silent_server_is_pinged_and_given_up(void **state)
{
    struct grpc_test_world *w = *state;
    struct grpc_test_call t;
    grpc_test_call(w, &t, VG_GRPC_STREAM);
    grpc_test_request(w, &w->servers[0], 1);
    struct grpc_test_conn *c = grpc_test_last(&w->servers[0]);
    for (unsigned i = 1; i <= 3; i++) { /* it answers */
        grpc_test_pass(w, 6001);
        grpc_test_until(w, c->peer.n_pings == i);
        grpc_test_until(w, w->pool->channels[0].current->ping_ns == 0);
        grpc_test_pass(w, 4001);
        assert_false(t.has_ended);
    }
    c->is_mute = true;
    grpc_test_pass(w, 6001);
    assert_false(t.has_ended);
    grpc_test_pass(w, 4001);
    grpc_test_until(w, t.has_ended);
    grpc_test_assert_ended(&t, VG_GRPC_UNAVAILABLE, VG_GRPC_MAYBE,
                           "no answer to a ping for 4000 ms");
    grpc_test_call_done(&t);
}

static void an_idle_connection_is_not_pinged(void **state)
{
    struct grpc_test_world *w = *state;
    grpc_test_until(w, vg_grpc_pool_is_ready(w->pool, 1));
    for (int i = 0; i < 20; i++)
        grpc_test_pass(w, 5000);
    assert_int_equal(grpc_test_last(&w->servers[0])->peer.n_pings, 0);
    assert_true(vg_grpc_pool_is_ready(w->pool, 1));
}

static void a_deadline_ends_a_call_and_doubts_the_server(void **state)
{
    struct grpc_test_world *w = *state;
    struct grpc_test_call t, next;
    grpc_test_call_init(&t, 0, "ask");
    t.call.timeout_ms = 700;
    assert_int_equal(vg_grpc_start(w->pool, &t.call), 0);
    struct grpc_test_request *r = grpc_test_request(w, &w->servers[0], 1);
    assert_non_null(memmem(r->fields.p, r->fields.n, "grpc-timeout: 700000u", 21));
    grpc_test_pass(w, 699);
    assert_false(t.has_ended);
    grpc_test_pass(w, 1);
    grpc_test_assert_ended(&t, VG_GRPC_DEADLINE_EXCEEDED, VG_GRPC_MAYBE,
                           "did not answer within 700 ms");
    grpc_test_until(w, r->reset == NGHTTP2_CANCEL);
    grpc_test_until(w, grpc_test_last(&w->servers[0])->peer.n_pings == 1);
    grpc_test_call(w, &next, 0);
    grpc_test_request(w, &w->servers[1], 1); /* others meanwhile */
    vg_grpc_cancel(&next.call);
    for (int i = 0; i < 6; i++) { /* however many time out: servers count pings */
        grpc_test_call_done(&t);
        grpc_test_call_init(&t, 0, "ask");
        t.call.timeout_ms = 700;
        t.call.endpoint = 1;
        assert_int_equal(vg_grpc_start(w->pool, &t.call), 0);
        grpc_test_pass(w, 700);
        assert_true(t.has_ended);
    }
    grpc_test_until(w, grpc_test_last(&w->servers[0])->peer.n_pings >= 1);
    assert_int_equal(grpc_test_last(&w->servers[0])->peer.n_pings, 1);
    grpc_test_call_done(&t);
}

static void a_server_that_says_nothing_is_given_up(void **state)
{
    struct grpc_test_world w;
    struct grpc_test_call t;
    (void)state;
    grpc_test_world_open(&w, 1);
    w.servers[0].is_mute = true;
    grpc_test_pool_open(&w, NULL);
    grpc_test_call(&w, &t, 0);
    grpc_test_until(&w, w.servers[0].n_conns == 1);
    grpc_test_pass(&w, 5000);
    grpc_test_until(&w, t.has_ended);
    grpc_test_assert_ended(&t, VG_GRPC_UNAVAILABLE, VG_GRPC_NOT_SENT,
                           "timed out after 5000 ms, waiting for its first words of HTTP/2");
    grpc_test_call_done(&t);
    grpc_test_world_close(&w);
}

static void whoever_is_there_instead_is_named(void **state)
{
    static const struct {
        const char *greet;
        size_t n;
        const char *words;
    } rows[] = {
        {"HTTP/1.1 400 Bad Request\r\n\r\n", 28, "answers in HTTP/1.1: not a gRPC endpoint"},
        {"\x15\x03\x01\x00\x02\x02\x0a", 7, "it speaks TLS: use https://"},
        {"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", 32, "breaks the rules of HTTP/2"},
    };
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        struct grpc_test_world w;
        struct grpc_test_call t;
        grpc_test_world_open(&w, 1);
        w.servers[0].greet = rows[i].greet;
        w.servers[0].greet_n = rows[i].n;
        grpc_test_pool_open(&w, NULL);
        grpc_test_call(&w, &t, 0);
        grpc_test_until(&w, t.has_ended);
        grpc_test_assert_ended(&t, VG_GRPC_UNAVAILABLE, VG_GRPC_NOT_SENT, rows[i].words);
        assert_non_null(strstr(w.why, rows[i].words));
        grpc_test_call_done(&t);
        grpc_test_world_close(&w);
    }
}

/* "localhost" is ::1 on most machines too, where nobody listens. */
static void a_name_has_several_addresses(void **state)
{
    struct grpc_test_world w;
    char url[64];
    const char *urls = url;
    (void)state;
    grpc_test_world_open(&w, 1);
    snprintf(url, sizeof url, "http://localhost:%d", w.servers[0].port);
    struct vg_grpc_pool_opts o = {.endpoints = &urls, .n_endpoints = 1};
    grpc_test_pool_open(&w, &o);
    grpc_test_until(&w, vg_grpc_pool_is_ready(w.pool, 1));
    grpc_test_world_close(&w);
}

static void a_server_that_greets_and_closes_is_not_run_at(void **state)
{
    struct grpc_test_world *w = *state;
    for (int ms = 0; ms < 20000; ms += 50) {
        grpc_test_pass(w, 50);
        for (size_t i = 0; i < w->servers[0].n_conns; i++)
            if (w->servers[0].conns[i].fd >= 0 && vg_grpc_pool_is_ready(w->pool, 1))
                grpc_test_hang_up(&w->servers[0].conns[i]);
    }
    assert_in_range(w->servers[0].n_conns, 3, 14); /* 0, .1, .2, .4 ... 5 s apart */
}

/* ---- tokens ---- */

static bool is_refused(const struct vg_grpc_status *s, void *arg)
{
    (void)arg;
    return s->code == VG_GRPC_UNAUTHENTICATED;
}
static void renew(struct vg_grpc_pool *pool, void *arg)
{
    struct grpc_test_world *w = arg;
    (void)pool;
    w->n_renewals++;
}
static const struct vg_grpc_pool_opts with_tokens = {.is_refused = is_refused, .renew = renew};

static bool has_token(const struct grpc_test_request *r, const char *token)
{
    char line[64];
    int n = snprintf(line, sizeof line, "\ntoken: %s\n", token);
    return memmem(r->fields.p, r->fields.n, line, (size_t)n) != NULL;
}

static void calls_wait_for_the_token_and_get_another(void **state)
{
    struct grpc_test_world w;
    struct grpc_test_call a, b, login;
    (void)state;
    grpc_test_world_open(&w, 1);
    grpc_test_pool_open(&w, &with_tokens);
    grpc_test_call(&w, &a, 0);
    grpc_test_call(&w, &b, 0);
    grpc_test_until(&w, w.n_renewals == 1);
    grpc_test_call(&w, &login, VG_GRPC_NO_TOKEN);
    struct grpc_test_request *r = grpc_test_request(&w, &w.servers[0], 1);
    assert_false(has_token(r, "one"));
    grpc_test_answer(&w.servers[0], r, "");
    grpc_test_until(&w, login.has_ended);
    assert_int_equal(vg_grpc_pool_set_token(w.pool, "token", VG_SLICE_LIT("one")), 0);
    grpc_test_request(&w, &w.servers[0], 3);
    struct grpc_test_peer *p = &grpc_test_last(&w.servers[0])->peer;
    assert_true(has_token(p->requests[1], "one") && has_token(p->requests[2], "one"));
    for (int i = 1; i <= 2; i++) /* both are refused: one renewal */
        grpc_test_only(p, p->requests[i],
                       GRPC_TEST_HEAD "grpc-status: 16\ngrpc-message: invalid\n");
    grpc_test_until(&w, w.n_renewals == 2);
    for (int i = 0; i < 10; i++)
        grpc_test_turn(&w);
    assert_false(a.has_ended || b.has_ended);
    assert_int_equal(w.n_renewals, 2);
    assert_int_equal(vg_grpc_pool_set_token(w.pool, "token", VG_SLICE_LIT("two")), 0);
    grpc_test_request(&w, &w.servers[0], 5);
    assert_true(has_token(p->requests[3], "two") && has_token(p->requests[4], "two"));
    grpc_test_answer(&w.servers[0], p->requests[3], "yes");
    grpc_test_only(p, p->requests[4], GRPC_TEST_HEAD "grpc-status: 16\ngrpc-message: still\n");
    grpc_test_until(&w, a.has_ended && b.has_ended);
    grpc_test_assert_ended(&a, VG_GRPC_OK, VG_GRPC_ANSWERED, "");
    grpc_test_assert_ended(&b, VG_GRPC_UNAUTHENTICATED, VG_GRPC_ANSWERED,
                           "still"); /* once is enough */
    grpc_test_call_done(&a);
    assert_int_equal(vg_grpc_pool_set_token(w.pool, "token", VG_SLICE_LIT("three")), 0);
    grpc_test_call_init(&a, 0,
                        "ask"); /* refused, and no other token in its time: not carried out */
    a.call.timeout_ms = 1000;
    assert_int_equal(vg_grpc_start(w.pool, &a.call), 0);
    r = grpc_test_request(&w, &w.servers[0], 6);
    grpc_test_only(p, r, GRPC_TEST_HEAD "grpc-status: 16\ngrpc-message: invalid\n");
    grpc_test_until(&w, a.call.stream == NULL);
    grpc_test_pass(&w, 1000);
    grpc_test_assert_ended(&a, VG_GRPC_DEADLINE_EXCEEDED, VG_GRPC_NOT_SENT, "within 1000 ms");
    grpc_test_call_done(&a);
    grpc_test_call_done(&b);
    grpc_test_call_done(&login);
    grpc_test_world_close(&w);
}

static void without_a_token_calls_hear_why(void **state)
{
    static const struct vg_grpc_status wrong = {
        .code = VG_GRPC_UNAUTHENTICATED, .fate = VG_GRPC_ANSWERED, .message = "wrong password"};
    struct grpc_test_world w;
    struct grpc_test_call a, b, c;
    (void)state;
    grpc_test_world_open(&w, 1);
    grpc_test_pool_open(&w, &with_tokens);
    grpc_test_call(&w, &a, 0);
    grpc_test_until(&w, w.n_renewals == 1);
    vg_grpc_pool_no_token(w.pool, &wrong);
    grpc_test_until(&w, a.has_ended);
    grpc_test_assert_ended(&a, VG_GRPC_UNAUTHENTICATED, VG_GRPC_NOT_SENT, "wrong password");
    grpc_test_call(&w, &b, 0);
    grpc_test_until(&w, b.has_ended);
    assert_int_equal(w.n_renewals, 1); /* it is too soon to ask again */
    grpc_test_pass(&w, 1001);
    grpc_test_call(&w, &c, VG_GRPC_WAIT);
    grpc_test_until(&w, w.n_renewals == 2);
    static const struct vg_grpc_status later = {.code = VG_GRPC_UNAVAILABLE, .message = "later"};
    vg_grpc_pool_no_token(w.pool, &later);
    grpc_test_pass(&w, 500);
    assert_false(c.has_ended); /* who waits, waits for better times */
    grpc_test_pass(&w, 2000);
    grpc_test_until(&w, w.n_renewals == 3);
    assert_int_equal(vg_grpc_pool_set_token(w.pool, NULL, (struct vg_slice){0}), 0);
    struct grpc_test_request *r = grpc_test_request(&w, &w.servers[0], 1);
    grpc_test_answer(&w.servers[0], r, "none needed");
    grpc_test_until(&w, c.has_ended);
    grpc_test_assert_ended(&c, VG_GRPC_OK, VG_GRPC_ANSWERED, "");
    grpc_test_call_done(&a);
    grpc_test_call_done(&b);
    grpc_test_call_done(&c);
    grpc_test_world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ONE(a_silent_server_is_pinged_and_given_up),
        WITH_ONE(an_idle_connection_is_not_pinged),
        WITH_TWO(a_deadline_ends_a_call_and_doubts_the_server),
        cmocka_unit_test(a_server_that_says_nothing_is_given_up),
        cmocka_unit_test(whoever_is_there_instead_is_named),
        cmocka_unit_test(a_name_has_several_addresses),
        WITH_ONE(a_server_that_greets_and_closes_is_not_run_at),
        cmocka_unit_test(calls_wait_for_the_token_and_get_another),
        cmocka_unit_test(without_a_token_calls_hear_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
