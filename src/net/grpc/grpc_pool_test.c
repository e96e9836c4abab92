/* grpc_pool_test.c - a pool against servers on real sockets: where calls go, what ends them, when
 * connections are made and given up. Waiting and tokens: grpc_pool_time_test.c. */
#include "grpc_pool_testing.h"

static void a_call_is_answered(void **state)
{
    struct grpc_test_world *w = *state;
    struct grpc_test_call t;
    grpc_test_call(w, &t, 0); /* before there is a connection */
    struct grpc_test_request *r = grpc_test_request(w, &w->servers[0], 1);
    assert_int_equal(t.call.used, 1);
    grpc_test_answer(&w->servers[0], r, "answer");
    grpc_test_until(w, t.has_ended);
    grpc_test_assert_ended(&t, VG_GRPC_OK, VG_GRPC_ANSWERED, "");
    vg_assert_slice_equal(vg_buf_slice(&t.call.answer), VG_SLICE_LIT("answer"));
    assert_true(w->is_ready);
    assert_int_equal(w->n_states, 1);
    assert_string_equal(w->why, w->servers[0].url);
    assert_int_equal(vg_grpc_pool_current(w->pool), 1);
    grpc_test_call_done(&t);
}

static void without_a_server_calls_fail_at_once_or_wait(void **state)
{
    struct grpc_test_world w;
    struct grpc_test_call t, waiting;
    (void)state;
    grpc_test_world_open(&w, 1);
    grpc_test_die(&w.servers[0]);
    grpc_test_pool_open(&w, NULL);
    grpc_test_call(&w, &t, 0);
    grpc_test_call_init(&waiting, VG_GRPC_WAIT, "ask");
    waiting.call.timeout_ms = 3000;
    assert_int_equal(vg_grpc_start(w.pool, &waiting.call), 0);
    grpc_test_until(&w, t.has_ended);
    grpc_test_assert_ended(&t, VG_GRPC_UNAVAILABLE, VG_GRPC_NOT_SENT,
                           "cannot connect: Connection refused");
    assert_non_null(strstr(t.call.status.message, w.servers[0].url));
    assert_false(w.is_ready);
    assert_int_equal(w.n_states, 1);
    assert_false(waiting.has_ended);
    grpc_test_pass(&w, 3001);
    grpc_test_assert_ended(&waiting, VG_GRPC_DEADLINE_EXCEEDED, VG_GRPC_NOT_SENT, "within 3000 ms");
    grpc_test_call_done(&t);
    grpc_test_call(&w, &t, VG_GRPC_WAIT);
    grpc_test_listen(&w.servers[0]); /* it comes back */
    for (int i = 0; i < 3; i++)
        grpc_test_pass(&w, 6000);
    struct grpc_test_request *r = grpc_test_request(&w, &w.servers[0], 1);
    grpc_test_answer(&w.servers[0], r, "answer");
    grpc_test_until(&w, t.has_ended);
    grpc_test_assert_ended(&t, VG_GRPC_OK, VG_GRPC_ANSWERED, "");
    assert_true(w.is_ready);
    grpc_test_call_done(&t);
    grpc_test_call_done(&waiting);
    grpc_test_world_close(&w);
}

static void a_lost_write_is_told_and_a_lost_read_tried_again(void **state)
{
    struct grpc_test_world *w = *state;
    struct grpc_test_call write, read, stream;
    grpc_test_call(w, &write, 0);
    grpc_test_call(w, &read, VG_GRPC_REPEATABLE);
    grpc_test_call(w, &stream, VG_GRPC_STREAM);
    grpc_test_request(w, &w->servers[0], 3);
    grpc_test_die(&w->servers[0]);
    grpc_test_until(w, write.has_ended && stream.has_ended);
    grpc_test_assert_ended(&write, VG_GRPC_UNAVAILABLE, VG_GRPC_MAYBE, w->servers[0].url);
    grpc_test_assert_ended(&stream, VG_GRPC_UNAVAILABLE, VG_GRPC_MAYBE, w->servers[0].url);
    struct grpc_test_request *r = grpc_test_request(w, &w->servers[1], 1);
    grpc_test_answer(&w->servers[1], r, "from the other");
    grpc_test_until(w, read.has_ended);
    grpc_test_assert_ended(&read, VG_GRPC_OK, VG_GRPC_ANSWERED, "");
    assert_int_equal(read.call.used, 2);
    assert_int_equal(vg_grpc_pool_current(w->pool), 2);
    assert_int_equal(w->n_states, 1); /* one was ready all the time */
    grpc_test_call_done(&write);
    grpc_test_call_done(&read);
    grpc_test_call_done(&stream);
}

static void a_member_that_is_unwell_is_avoided(void **state)
{
    struct grpc_test_world *w = *state;
    struct grpc_test_call write, next, named;
    grpc_test_call(w, &write, 0);
    struct grpc_test_request *r = grpc_test_request(w, &w->servers[0], 1);
    grpc_test_only(&grpc_test_last(&w->servers[0])->peer, r,
                   GRPC_TEST_HEAD "grpc-status: 14\ngrpc-message: no leader\n");
    grpc_test_until(w, write.has_ended);
    grpc_test_assert_ended(&write, VG_GRPC_UNAVAILABLE, VG_GRPC_ANSWERED, "no leader");
    grpc_test_call(w, &next, 0);
    grpc_test_request(w, &w->servers[1], 1);
    assert_int_equal(next.call.used, 2);
    grpc_test_call_init(&named, 0, "ask");
    named.call.endpoint = 1; /* by name it is asked all the same */
    assert_int_equal(vg_grpc_start(w->pool, &named.call), 0);
    grpc_test_request(w, &w->servers[0], 2);
    vg_grpc_cancel(&named.call);
    vg_grpc_cancel(&next.call);
    grpc_test_call_done(&write);
}

static bool is_learner(const struct vg_grpc_status *s, void *arg)
{
    (void)arg;
    return strcmp(s->message, "learner") == 0;
}

static void a_member_may_send_calls_elsewhere(void **state)
{
    static const struct vg_grpc_pool_opts opts = {.is_elsewhere = is_learner};
    struct grpc_test_world w;
    struct grpc_test_call write, other;
    (void)state;
    grpc_test_open_two(&w, &opts);
    grpc_test_call(&w, &write, 0);
    struct grpc_test_request *r = grpc_test_request(&w, &w.servers[0], 1);
    grpc_test_only(&grpc_test_last(&w.servers[0])->peer, r,
                   GRPC_TEST_HEAD "grpc-status: 9\ngrpc-message: learner\n");
    r = grpc_test_request(&w, &w.servers[1], 1);
    grpc_test_answer(&w.servers[1], r, "here");
    grpc_test_until(&w, write.has_ended);
    grpc_test_assert_ended(&write, VG_GRPC_OK, VG_GRPC_ANSWERED, "");
    grpc_test_call(&w, &other, 0);
    r = grpc_test_request(&w, &w.servers[1], 2);
    grpc_test_only(&grpc_test_last(&w.servers[1])->peer, r,
                   GRPC_TEST_HEAD "grpc-status: 9\ngrpc-message: no\n");
    grpc_test_until(&w, other.has_ended);
    grpc_test_assert_ended(&other, VG_GRPC_FAILED_PRECONDITION, VG_GRPC_ANSWERED, "no");
    grpc_test_call_done(&write);
    grpc_test_call_done(&other);
    grpc_test_world_close(&w);
}

static void refused_streams_are_tried_elsewhere(void **state)
{
    struct grpc_test_world *w = *state;
    struct grpc_test_call t;
    grpc_test_call(w, &t, 0);
    struct grpc_test_request *r = grpc_test_request(w, &w->servers[0], 1);
    nghttp2_submit_rst_stream(grpc_test_last(&w->servers[0])->peer.h2, 0, r->id,
                              NGHTTP2_REFUSED_STREAM);
    r = grpc_test_request(w, &w->servers[1], 1);
    grpc_test_answer(&w->servers[1], r, "answer");
    grpc_test_until(w, t.has_ended);
    grpc_test_assert_ended(&t, VG_GRPC_OK, VG_GRPC_ANSWERED, "");
    grpc_test_call_done(&t);
}

static size_t refuse_all(struct grpc_test_world *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n_servers; i++) {
        struct grpc_test_peer *p = &grpc_test_last(&w->servers[i])->peer;
        for (size_t k = 0; k < p->n; k++, n++)
            if (!p->requests[k]->is_closed)
                nghttp2_submit_rst_stream(p->h2, 0, p->requests[k]->id, NGHTTP2_REFUSED_STREAM);
    }
    return n;
}

static void a_call_is_not_tried_for_ever(void **state)
{
    struct grpc_test_world *w = *state;
    struct grpc_test_call t;
    grpc_test_call(w, &t, 0);
    grpc_test_until(w, t.has_ended || (refuse_all(w), false));
    grpc_test_assert_ended(&t, VG_GRPC_UNAVAILABLE, VG_GRPC_NOT_SENT, "reset the call");
    assert_int_equal(refuse_all(w), 3); /* each of them, and one once more */
    grpc_test_call_done(&t);
}

static void goaway_moves_to_a_new_connection(void **state)
{
    struct grpc_test_world *w = *state;
    struct grpc_test_call old, new;
    grpc_test_call(w, &old, VG_GRPC_STREAM);
    struct grpc_test_request *r = grpc_test_request(w, &w->servers[0], 1);
    struct grpc_test_conn *first = grpc_test_last(&w->servers[0]);
    grpc_test_head(&first->peer, r, GRPC_TEST_HEAD);
    nghttp2_submit_goaway(first->peer.h2, 0, r->id, NGHTTP2_NO_ERROR, NULL, 0);
    grpc_test_until(w, w->servers[0].n_conns == 2 || (grpc_test_pass(w, 200), false));
    grpc_test_call(w, &new, 0);
    struct grpc_test_request *r2 = grpc_test_request(w, &w->servers[0], 1);
    assert_ptr_not_equal(first, grpc_test_last(&w->servers[0]));
    grpc_test_answer(&w->servers[0], r2, "answer");
    grpc_test_until(w, new.has_ended);
    grpc_test_message(&first->peer, r, "still here");
    grpc_test_until(w, old.n_heard == 1);
    grpc_test_end(&first->peer, r, "grpc-status: 0\n");
    grpc_test_until(w, old.has_ended && first->fd < 0);
    grpc_test_assert_ended(&old, VG_GRPC_OK, VG_GRPC_ANSWERED, "");
    assert_int_equal(w->n_states, 1);
    grpc_test_call_done(&old);
    grpc_test_call_done(&new);
}

/* ---- callbacks that do things ---- */

static void calls_may_be_cancelled_from_within(void **state)
{
    struct grpc_test_world *w = *state;
    struct grpc_test_call t;
    grpc_test_call(w, &t, VG_GRPC_STREAM);
    t.cancel_at = 2;
    struct grpc_test_request *r = grpc_test_request(w, &w->servers[0], 1);
    struct grpc_test_peer *p = &grpc_test_last(&w->servers[0])->peer;
    grpc_test_head(p, r, GRPC_TEST_HEAD);
    for (int i = 0; i < 5; i++)
        grpc_test_message(p, r, "x");
    grpc_test_until(w, r->reset == NGHTTP2_CANCEL);
    assert_int_equal(t.n_heard, 2);
    assert_false(t.has_ended);
    assert_null(t.call.pool);
    assert_true(vg_grpc_pool_is_ready(w->pool, 1));
    grpc_test_call_done(&t);
}

struct chain {
    struct vg_grpc_call call;
    struct grpc_test_world *w;
    unsigned left;
};
static void on_chain_end(struct vg_grpc_call *c)
{
    struct chain *chain = VG_CONTAINER_OF(c, struct chain, call);
    uint8_t *bytes;
    vg_buf_done(&c->answer);
    if (--chain->left == 0)
        return;
    c->msg = vg_grpc_msg_new(1, &bytes);
    bytes[0] = 'c';
    assert_int_equal(vg_grpc_start(chain->w->pool, c), 0);
}

static void a_call_may_be_started_again_from_its_end(void **state)
{
    struct grpc_test_world *w = *state;
    struct chain chain = {.call = {.path = "/x", .on_end = on_chain_end}, .w = w, .left = 50};
    uint8_t *bytes;
    chain.call.msg = vg_grpc_msg_new(1, &bytes);
    bytes[0] = 'c';
    assert_int_equal(vg_grpc_start(w->pool, &chain.call), 0);
    for (size_t i = 1; i <= 50; i++) {
        struct grpc_test_request *r = grpc_test_request(w, &w->servers[0], i);
        grpc_test_answer(&w->servers[0], r, "ok");
    }
    grpc_test_until(w, chain.left == 0);
    struct vg_grpc_counts counts;
    vg_grpc_pool_counts(w->pool, &counts);
    assert_int_equal(counts.calls, 50);
    assert_int_equal(counts.failed, 0);
}

static void a_pool_goes_with_calls_under_way(void **state)
{
    struct grpc_test_world w;
    struct grpc_test_call t[4];
    (void)state;
    grpc_test_world_open(&w, 2);
    grpc_test_die(&w.servers[1]);
    grpc_test_pool_open(&w, NULL);
    grpc_test_call(&w, &t[0], 0);
    grpc_test_call(&w, &t[1], VG_GRPC_STREAM);
    grpc_test_request(&w, &w.servers[0], 2);
    grpc_test_call_init(&t[2], VG_GRPC_WAIT, "ask");
    t[2].call.endpoint = 2;
    t[2].call.timeout_ms = 1000;
    assert_int_equal(vg_grpc_start(w.pool, &t[2].call), 0);
    grpc_test_call(&w, &t[3], 0);
    grpc_test_world_close(&w);
    for (int i = 0; i < 4; i++) {
        assert_false(t[i].has_ended);
        assert_null(t[i].call.pool);
    }
}

/* ---- options ---- */

static void endpoints_are_checked(void **state)
{
    static const struct {
        const char *url, *words; /* NULL: fine */
        const char *authority;
    } rows[] = {
        {"http://127.0.0.1:2379", NULL, "127.0.0.1:2379"},
        {"http://localhost", NULL, "localhost:2379"},
        {"etcd-0.etcd:2380/", NULL, "etcd-0.etcd:2380"},
        {"http://[::1]:99", NULL, "[::1]:99"},
        {"http://[::1]", NULL, "[::1]:2379"},
        {"unix:///tmp/x.sock", NULL, "localhost"},
        {"ftp://x:1", "this scheme is not known", NULL},
        {"http://:1", "the host is missing", NULL},
        {"", "the host is missing", NULL},
        {"http://x:0", "the port is not a number", NULL},
        {"http://x:65536", "the port is not a number", NULL},
        {"http://x:", "the port is not a number", NULL},
        {"http://x:1x", "the port is not a number", NULL},
        {"http://[::1", "ends with ]", NULL},
        {"http://[::1]x", "ends with ]", NULL},
        {"http://x/v3", "nothing but host and port", NULL},
        {"http://u:p@x", "nothing but host and port", NULL},
        {"unix://", "the path is missing", NULL},
    };
    struct vg_loop *loop;
    (void)state;
    assert_int_equal(vg_loop_new(vg_clock_system(), &loop), 0);
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        struct vg_grpc_pool_opts o = {.loop = loop, .endpoints = &rows[i].url, .n_endpoints = 1};
        struct vg_grpc_pool *pool = NULL;
        struct vg_status status = {0};
        int r = vg_grpc_pool_new(&o, &pool, &status);
        if (rows[i].words) {
            assert_int_equal(r, VIGIL_E_INVALID);
            assert_non_null(strstr(status.message, rows[i].words));
        } else {
            assert_int_equal(r, 0);
            assert_string_equal(pool->channels[0].authority, rows[i].authority);
            assert_string_equal(vg_grpc_pool_endpoint(pool, 1), rows[i].url);
            vg_grpc_pool_free(pool);
        }
    }
    vg_loop_free(loop);
}

static void files_are_checked(void **state)
{
    struct vg_loop *loop;
    const char *url = "https://localhost:1";
    (void)state;
    assert_int_equal(vg_loop_new(vg_clock_system(), &loop), 0);
    struct vg_grpc_pool_opts o = {.loop = loop, .endpoints = &url, .n_endpoints = 1};
    struct vg_grpc_pool *pool = NULL;
    struct vg_status status = {0};
    o.tls.ca_file = "/nonexistent/ca.pem";
    assert_int_equal(vg_grpc_pool_new(&o, &pool, &status), -ENOENT);
    assert_non_null(strstr(status.message, "/nonexistent/ca.pem"));
    o.tls = (struct vg_grpc_tls){.cert_file = "/nonexistent/c.pem"};
    assert_int_equal(vg_grpc_pool_new(&o, &pool, &status), VIGIL_E_INVALID);
    assert_non_null(strstr(status.message, "together"));
    vg_loop_free(loop);
}

static void every_failing_allocation_is_survived(void **state)
{
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        struct grpc_test_world w = {.n_servers = 1};
        vg_fake_clock_init(&w.clock);
        grpc_test_open(&w.servers[0]);
        if (vg_loop_new(&w.clock.clock, &w.loop) == 0) {
            const char *url = w.servers[0].url;
            struct vg_grpc_pool_opts o = {.loop = w.loop, .endpoints = &url, .n_endpoints = 1};
            struct grpc_test_call t = {0};
            t.call.path = "/x";
            t.call.on_end = grpc_test_on_end;
            if (vg_grpc_pool_new(&o, &w.pool, NULL) == 0 && vg_grpc_start(w.pool, &t.call) == 0) {
                for (int i = 0; i < 6; i++) /* the client alone: the server's memory is its own */
                    vg_loop_turn(w.loop, false);
                vg_fake_clock_advance(&w.clock, VG_NS_PER_S);
                vg_loop_turn(w.loop, false);
            }
            vg_test_alloc_failed();
            vg_grpc_pool_free(w.pool);
            vg_loop_free(w.loop);
        }
        vg_test_alloc_failed();
        grpc_test_close(&w.servers[0]);
        vg_fake_clock_done(&w.clock);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ONE(a_call_is_answered),
        cmocka_unit_test(without_a_server_calls_fail_at_once_or_wait),
        WITH_TWO(a_lost_write_is_told_and_a_lost_read_tried_again),
        WITH_TWO(a_member_that_is_unwell_is_avoided),
        cmocka_unit_test(a_member_may_send_calls_elsewhere),
        WITH_TWO(refused_streams_are_tried_elsewhere),
        WITH_TWO(a_call_is_not_tried_for_ever),
        WITH_ONE(goaway_moves_to_a_new_connection),
        WITH_ONE(calls_may_be_cancelled_from_within),
        WITH_ONE(a_call_may_be_started_again_from_its_end),
        cmocka_unit_test(a_pool_goes_with_calls_under_way),
        cmocka_unit_test(endpoints_are_checked),
        cmocka_unit_test(files_are_checked),
        cmocka_unit_test(every_failing_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
