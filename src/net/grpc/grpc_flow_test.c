/* grpc_flow_test.c - calls on a session, against an nghttp2 server in memory: what has left and
 * what has not, what waits for a window, and what is cancelled. */
#include "grpc_session_testing.h"

/* ---- fates ---- */

static void what_has_not_left_is_not_sent(void **state)
{
    struct grpc_test_session *w = *state;
    struct grpc_test_call t, s;
    grpc_test_call_init(&t, 0, "ask");
    grpc_test_call_init(&s, VG_GRPC_STREAM, "ask");
    start(w, &t);
    start(w, &s);
    assert_int_equal(vg_grpc_session_fill(&w->s, &w->status),
                     0); /* in the queue, not in the socket */
    assert_true(w->s.out.n > 0);
    vg_grpc_session_lost(&w->s, "gone");
    grpc_test_assert_ended(&t, VG_GRPC_UNAVAILABLE, VG_GRPC_NOT_SENT, "gone");
    grpc_test_assert_ended(&s, VG_GRPC_UNAVAILABLE, VG_GRPC_NOT_SENT, "gone");
    grpc_test_call_done(&t);
    grpc_test_call_done(&s);
}

/* Byte for byte: a unary request may have been received when its last byte left, and a byte before
 * that it cannot have been. */
static void a_request_counts_when_its_last_byte_left(void **state)
{
    (void)state;
    struct grpc_test_session w;
    open_world(&w, 0, 0);
    talk(&w);
    struct grpc_test_call probe;
    grpc_test_call_init(&probe, 0, "ask");
    start(&w, &probe);
    assert_int_equal(vg_grpc_session_fill(&w.s, &w.status), 0);
    size_t whole = w.s.out.n;
    vg_grpc_session_lost(&w.s, "gone");
    grpc_test_call_done(&probe);
    close_world(&w);
    for (size_t left = whole - 2; left <= whole; left++) {
        struct grpc_test_call t;
        open_world(&w, 0, 0);
        talk(&w);
        grpc_test_call_init(&t, 0, "ask");
        start(&w, &t);
        assert_int_equal(vg_grpc_session_fill(&w.s, &w.status), 0);
        assert_int_equal(w.s.out.n, whole);
        vg_outq_consume(&w.s.out, left);
        vg_grpc_session_sent(&w.s, left, 0);
        vg_grpc_session_lost(&w.s, "gone");
        assert_int_equal(t.call.status.fate, left < whole ? VG_GRPC_NOT_SENT : VG_GRPC_MAYBE);
        grpc_test_call_done(&t);
        close_world(&w);
    }
}

static void what_tls_may_have_sent_counts_as_sent(void **state)
{
    struct grpc_test_session *w = *state;
    struct grpc_test_call t;
    grpc_test_call_init(&t, 0, "ask");
    start(w, &t);
    assert_int_equal(vg_grpc_session_fill(&w->s, &w->status), 0);
    vg_grpc_session_sent(&w->s, 0, w->s.out.n);
    vg_grpc_session_lost(&w->s, "gone");
    grpc_test_assert_ended(&t, VG_GRPC_UNAVAILABLE, VG_GRPC_MAYBE, "gone");
    grpc_test_call_done(&t);
}

static void goaway_gives_back_what_was_not_taken(void **state)
{
    struct grpc_test_session *w = *state;
    struct grpc_test_call first, second, late;
    struct grpc_test_request *r = begin(w, &first, 0);
    begin(w, &second, 0);
    assert_int_equal(
        nghttp2_submit_goaway(w->peer.h2, 0, r->id, NGHTTP2_NO_ERROR, (const uint8_t *)"bye", 3),
        0);
    talk(w);
    assert_int_equal(w->n_going, 1);
    grpc_test_assert_ended(&second, VG_GRPC_UNAVAILABLE, VG_GRPC_NOT_SENT, "");
    assert_false(first.has_ended);
    grpc_test_call_init(&late, 0, "ask"); /* nobody should; it ends all the same */
    start(w, &late);
    talk(w);
    grpc_test_assert_ended(&late, VG_GRPC_UNAVAILABLE, VG_GRPC_NOT_SENT, "");
    grpc_test_reply(&w->peer, r, "answer");
    talk(w);
    grpc_test_assert_ended(&first, VG_GRPC_OK, VG_GRPC_ANSWERED, "");
    assert_true(w->has_failed); /* nothing is left to be said on it */
    grpc_test_call_done(&first);
    grpc_test_call_done(&second);
    grpc_test_call_done(&late);
}

/* ---- flow ---- */

static void a_paused_stream_holds_the_server_back(void **state)
{
    struct grpc_test_session w;
    struct grpc_test_call t, other;
    char text[4001];
    (void)state;
    open_world(&w, 0, 70000);
    struct grpc_test_request *r = begin(&w, &t, VG_GRPC_STREAM), *ro = begin(&w, &other, 0);
    t.pause_at = 2;
    memset(text, 'm', 4000);
    text[4000] = 0;
    grpc_test_head(&w.peer, r, GRPC_TEST_HEAD);
    for (int i = 0; i < 100; i++)
        grpc_test_message(&w.peer, r, text);
    grpc_test_end(&w.peer, r, "grpc-status: 0\n");
    talk(&w);
    assert_int_equal(t.n_heard, 2);
    assert_true(r->out.n >= 400500 - 70000 - 20000); /* the rest waits at the server */
    grpc_test_reply(&w.peer, ro, "others go on");
    talk(&w);
    grpc_test_assert_ended(&other, VG_GRPC_OK, VG_GRPC_ANSWERED, "");
    for (size_t want = 3; want <= 100; want++) {
        t.pause_at = want;
        vg_grpc_resume(&t.call);
        talk(&w);
        assert_int_equal(t.n_heard, want);
        if (want < 100)
            assert_false(t.has_ended); /* the end waits for what is held, too */
    }
    vg_grpc_resume(&t.call);
    talk(&w);
    grpc_test_assert_ended(&t, VG_GRPC_OK, VG_GRPC_ANSWERED, "");
    assert_int_equal(t.heard.n, 100 * 4002);
    grpc_test_call_done(&t);
    grpc_test_call_done(&other);
    close_world(&w);
}

/* What comes between resume and the turn's end waits behind what is held. */
static void what_is_held_comes_first(void **state)
{
    struct grpc_test_session *w = *state;
    struct grpc_test_call t;
    struct grpc_test_request *r = begin(w, &t, VG_GRPC_STREAM);
    t.pause_at = 1;
    grpc_test_head(&w->peer, r, GRPC_TEST_HEAD);
    static const char *const first[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < VG_ARRAY_LEN(first); i++)
        grpc_test_message(&w->peer, r, first[i]);
    talk(w);
    vg_assert_slice_equal(vg_buf_slice(&t.heard), VG_SLICE_LIT("<a>"));
    vg_grpc_resume(&t.call);
    grpc_test_message(&w->peer, r, "e");
    from_peer(w, SIZE_MAX / 2);
    talk(w);
    vg_assert_slice_equal(vg_buf_slice(&t.heard), VG_SLICE_LIT("<a><b><c><d><e>"));
    vg_grpc_session_lost(&w->s, "over");
    grpc_test_call_done(&t);
}

/* The server has said all, the client has not: the rest is of no use, and the server hears so. */
static void an_early_end_resets_what_is_left(void **state)
{
    struct grpc_test_session *w = *state;
    struct grpc_test_call t;
    struct grpc_test_request *r = begin(w, &t, VG_GRPC_STREAM);
    grpc_test_head(&w->peer, r, GRPC_TEST_HEAD);
    grpc_test_end(&w->peer, r, "grpc-status: 0\n");
    talk(w);
    grpc_test_assert_ended(&t, VG_GRPC_OK, VG_GRPC_ANSWERED, "");
    assert_int_equal(r->reset, NGHTTP2_CANCEL);
    grpc_test_call_done(&t);
}

static void a_long_message_opens_the_window_again(void **state)
{
    struct grpc_test_session w;
    struct grpc_test_call t;
    size_t n = 900000;
    char *text = vg_malloc(n + 1);
    (void)state;
    memset(text, 'l', n);
    text[n] = 0;
    open_world(&w, 0, 65535);
    struct grpc_test_request *r = begin(&w, &t, 0);
    grpc_test_reply(&w.peer, r, text);
    talk(&w);
    grpc_test_assert_ended(&t, VG_GRPC_OK, VG_GRPC_ANSWERED, "");
    vg_assert_slice_equal(vg_buf_slice(&t.call.answer), vg_slice(text, n));
    grpc_test_call_done(&t);
    close_world(&w);
    vg_free(text);
}

static void a_long_request_waits_for_the_servers_window(void **state)
{
    struct grpc_test_session w;
    struct grpc_test_call t;
    size_t n = 900000;
    char *text = vg_malloc(n + 1);
    (void)state;
    memset(text, 'l', n);
    text[n] = 0;
    open_world(&w, 0, 0);
    grpc_test_call_init(&t, 0, text);
    start(&w, &t);
    talk(&w);
    struct grpc_test_request *r = w.peer.requests[0];
    assert_true(r->has_end);
    assert_int_equal(r->body.n, n + 5);
    assert_memory_equal(r->body.p + 5, text, n);
    vg_grpc_session_lost(&w.s, "over");
    assert_int_equal(t.call.status.fate, VG_GRPC_MAYBE);
    grpc_test_call_done(&t);
    close_world(&w);
    vg_free(text);
}

/* ---- cancelling ---- */

static void a_call_is_cancelled_wherever_it_is(void **state)
{
    struct grpc_test_session *w = *state;
    struct grpc_test_call unsent, sent, inside;
    talk(w);
    grpc_test_call_init(&unsent, 0, "never seen");
    start(w, &unsent);
    assert_int_equal(vg_grpc_session_drop(&unsent.call), VG_GRPC_NOT_SENT);
    vg_grpc_msg_unref(unsent.call.msg);
    talk(w);
    assert_int_equal(w->peer.n, 0);

    struct grpc_test_request *r = begin(w, &sent, 0);
    assert_int_equal(vg_grpc_session_drop(&sent.call), VG_GRPC_MAYBE);
    vg_grpc_msg_unref(sent.call.msg);
    talk(w);
    assert_int_equal(r->reset, NGHTTP2_CANCEL);
    assert_int_equal(w->s.n_streams, 0);

    /* From within on_message, with more of them behind it. */
    r = begin(w, &inside, VG_GRPC_STREAM);
    struct vg_grpc_msg *m = vg_steal(inside.call.msg);
    vg_grpc_msg_unref(m);
    grpc_test_head(&w->peer, r, GRPC_TEST_HEAD);
    for (int i = 0; i < 5; i++)
        grpc_test_message(&w->peer, r, "x");
    inside.call.pool = NULL; /* vg_grpc_cancel is the pool's: here it does nothing but return */
    inside.cancel_at = 0;
    talk(w);
    assert_int_equal(inside.n_heard, 5);
    vg_grpc_session_drop(&inside.call);
    talk(w);
    assert_int_equal(r->reset, NGHTTP2_CANCEL);
    assert_false(unsent.has_ended || sent.has_ended || inside.has_ended);
    grpc_test_call_done(&inside);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(what_has_not_left_is_not_sent),
        cmocka_unit_test(a_request_counts_when_its_last_byte_left),
        IN_A_WORLD(what_tls_may_have_sent_counts_as_sent),
        IN_A_WORLD(goaway_gives_back_what_was_not_taken),
        cmocka_unit_test(a_paused_stream_holds_the_server_back),
        IN_A_WORLD(what_is_held_comes_first),
        IN_A_WORLD(an_early_end_resets_what_is_left),
        cmocka_unit_test(a_long_message_opens_the_window_again),
        cmocka_unit_test(a_long_request_waits_for_the_servers_window),
        IN_A_WORLD(a_call_is_cancelled_wherever_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
