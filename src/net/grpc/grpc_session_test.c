/* grpc_session_test.c - calls on a session, against an nghttp2 server in memory: whatever it
 * answers, a call ends once, with the right status and fate. Fates, windows and cancelling:
 * grpc_flow_test.c. */
#include "grpc_session_testing.h"

/* ---- what is said ---- */

static void a_unary_call_has_head_message_and_answer(void **state)
{
    struct grpc_test_session *w = *state;
    struct grpc_test_call t;
    grpc_test_call_init(&t, 0, "ask");
    struct vg_grpc_field field = {VG_SLICE_LIT("x-own"), VG_SLICE_LIT("1")};
    struct vg_grpc_field token = {VG_SLICE_LIT("token"), VG_SLICE_LIT("secret")};
    t.call.fields = &field;
    t.call.n_fields = 1;
    assert_int_equal(vg_grpc_session_start(&w->s, &t.call, &token, 1500 * VG_NS_PER_MS), 0);
    talk(w);
    assert_int_equal(w->n_ready, 1);
    struct grpc_test_request *r = w->peer.requests[0];
    assert_true(r->has_end);
    vg_assert_slice_equal(vg_buf_slice(&r->body), VG_SLICE_LIT("\0\0\0\0\x03"
                                                               "ask"));
    vg_assert_slice_equal(vg_buf_slice(&r->fields),
                          VG_SLICE_LIT(":method: POST\n:scheme: http\n:path: /test.Test/Do\n"
                                       ":authority: test:1\nte: trailers\n"
                                       "content-type: application/grpc\nuser-agent: vigil-grpc\n"
                                       "grpc-timeout: 1500000u\ntoken: secret\nx-own: 1\n"));
    grpc_test_reply(&w->peer, r, "answer");
    talk(w);
    grpc_test_assert_ended(&t, VG_GRPC_OK, VG_GRPC_ANSWERED, "");
    vg_assert_slice_equal(vg_buf_slice(&t.call.answer), VG_SLICE_LIT("answer"));
    grpc_test_call_done(&t);
}

static void an_answer_may_come_in_any_pieces(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < 40; piece++) {
        struct grpc_test_session w;
        struct grpc_test_call t, s;
        open_world(&w, 0, 0);
        struct grpc_test_request *r = begin(&w, &t, 0), *rs = begin(&w, &s, VG_GRPC_STREAM);
        grpc_test_reply(&w.peer, r, "answer of some length");
        grpc_test_head(&w.peer, rs, GRPC_TEST_HEAD);
        grpc_test_message(&w.peer, rs, "one");
        grpc_test_message(&w.peer, rs, "");
        grpc_test_message(&w.peer, rs, "three");
        talk_in(&w, piece);
        grpc_test_assert_ended(&t, VG_GRPC_OK, VG_GRPC_ANSWERED, "");
        vg_assert_slice_equal(vg_buf_slice(&t.call.answer), VG_SLICE_LIT("answer of some length"));
        vg_assert_slice_equal(vg_buf_slice(&s.heard), VG_SLICE_LIT("<one><><three>"));
        vg_grpc_session_lost(&w.s, "gone");
        grpc_test_assert_ended(&s, VG_GRPC_UNAVAILABLE, VG_GRPC_MAYBE, "http://test: gone");
        grpc_test_call_done(&t);
        grpc_test_call_done(&s);
        close_world(&w);
    }
}

static void a_stream_goes_both_ways_until_both_end(void **state)
{
    struct grpc_test_session *w = *state;
    struct grpc_test_call t;
    uint8_t *bytes;
    struct grpc_test_request *r = begin(w, &t, VG_GRPC_STREAM);
    assert_false(r->has_end);
    grpc_test_head(&w->peer, r, GRPC_TEST_HEAD);
    grpc_test_message(&w->peer, r, "first");
    talk(w);
    vg_assert_slice_equal(vg_buf_slice(&t.heard), VG_SLICE_LIT("<first>"));
    struct vg_grpc_msg *m = vg_grpc_msg_new(4, &bytes);
    memcpy(bytes, "more", 4);
    assert_int_equal(vg_grpc_send(&t.call, m), 0);
    assert_int_equal(vg_grpc_unsent(&t.call), 9);
    talk(w);
    assert_int_equal(vg_grpc_unsent(&t.call), 0);
    vg_assert_slice_equal(vg_buf_slice(&r->body), VG_SLICE_LIT("\0\0\0\0\x03"
                                                               "ask\0\0\0\0\x04more"));
    vg_grpc_half_close(&t.call);
    talk(w);
    assert_true(r->has_end);
    assert_false(t.has_ended);
    assert_int_equal(vg_grpc_send(&t.call, vg_grpc_msg_new(0, &bytes)), VIGIL_E_CLOSED);
    grpc_test_end(&w->peer, r, "grpc-status: 0\n");
    talk(w);
    grpc_test_assert_ended(&t, VG_GRPC_OK, VG_GRPC_ANSWERED, "");
    assert_int_equal(vg_grpc_send(&t.call, vg_grpc_msg_new(0, &bytes)), VIGIL_E_CLOSED);
    grpc_test_call_done(&t);
}

static void errors_are_told_with_their_words(void **state)
{
    static const struct {
        const char *head; /* the only one, or NULL: after a message */
        const char *trailers;
        enum vg_grpc_code code;
        enum vg_grpc_fate fate;
        const char *words;
    } rows[] = {
        {GRPC_TEST_HEAD "grpc-status: 11\ngrpc-message: mvcc: gone %E2%82%AC 100%25\n", NULL,
         VG_GRPC_OUT_OF_RANGE, VG_GRPC_ANSWERED, "mvcc: gone \xe2\x82\xac 100%"},
        {GRPC_TEST_HEAD "grpc-status: 14\ngrpc-message: bad %zz %4\n", NULL, VG_GRPC_UNAVAILABLE,
         VG_GRPC_ANSWERED, "bad %zz %4"},
        {GRPC_TEST_HEAD "grpc-status: 14\ngrpc-message: a%00b%0Ac\n", NULL, VG_GRPC_UNAVAILABLE,
         VG_GRPC_ANSWERED, "a?b?c"},
        {GRPC_TEST_HEAD "grpc-status: 99\n", NULL, VG_GRPC_UNKNOWN, VG_GRPC_ANSWERED, ""},
        {GRPC_TEST_HEAD "grpc-status: seven\n", NULL, VG_GRPC_UNKNOWN, VG_GRPC_ANSWERED, ""},
        {GRPC_TEST_HEAD "grpc-status: 4294967296\n", NULL, VG_GRPC_UNKNOWN, VG_GRPC_ANSWERED, ""},
        {GRPC_TEST_HEAD "grpc-status: 0\n", NULL, VG_GRPC_INTERNAL, VG_GRPC_MAYBE,
         "without a message"},
        {":status: 200\ncontent-type: application/grpc\n", NULL, VG_GRPC_UNKNOWN, VG_GRPC_MAYBE,
         "without a status"},
        {":status: 404\ncontent-type: text/plain\n", NULL, VG_GRPC_UNIMPLEMENTED, VG_GRPC_MAYBE,
         "HTTP status 404"},
        {":status: 401\n", NULL, VG_GRPC_UNAUTHENTICATED, VG_GRPC_MAYBE, "HTTP status 401"},
        {":status: 403\n", NULL, VG_GRPC_PERMISSION_DENIED, VG_GRPC_MAYBE, ""},
        {":status: 503\n", NULL, VG_GRPC_UNAVAILABLE, VG_GRPC_MAYBE, ""},
        {":status: 400\n", NULL, VG_GRPC_INTERNAL, VG_GRPC_MAYBE, ""},
        {":status: 302\n", NULL, VG_GRPC_UNKNOWN, VG_GRPC_MAYBE, ""},
        {":status: 200\n", NULL, VG_GRPC_UNKNOWN, VG_GRPC_MAYBE, "HTTP status 200"},
        {NULL, "grpc-status: 5\ngrpc-message: no\n", VG_GRPC_NOT_FOUND, VG_GRPC_ANSWERED, "no"},
        {NULL, "grpc-message: no\n", VG_GRPC_UNKNOWN, VG_GRPC_MAYBE, "without a status"},
        {NULL, NULL, VG_GRPC_UNKNOWN, VG_GRPC_MAYBE, "without a status"},
    };
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        struct grpc_test_session w;
        struct grpc_test_call t;
        open_world(&w, 0, 0);
        struct grpc_test_request *r = begin(&w, &t, 0);
        if (rows[i].head) {
            grpc_test_only(&w.peer, r, rows[i].head);
        } else {
            grpc_test_head(&w.peer, r, GRPC_TEST_HEAD);
            grpc_test_message(&w.peer, r, "answer");
            grpc_test_end(&w.peer, r, rows[i].trailers);
        }
        talk(&w);
        grpc_test_assert_ended(&t, rows[i].code, rows[i].fate, rows[i].words);
        assert_false(w.has_failed);
        grpc_test_call_done(&t);
        close_world(&w);
    }
}

static void a_page_of_a_proxy_is_quoted(void **state)
{
    struct grpc_test_session *w = *state;
    struct grpc_test_call t;
    struct grpc_test_request *r = begin(w, &t, 0);
    grpc_test_head(&w->peer, r, ":status: 502\ncontent-type: text/html\n");
    grpc_test_bytes(&w->peer, r, "<html>no upstream", 17);
    for (int i = 0; i < 100; i++)
        grpc_test_bytes(&w->peer, r, "xxxxxxxxxxxxxxxxxxxxxxxxx", 25);
    grpc_test_end(&w->peer, r, NULL);
    talk(w);
    grpc_test_assert_ended(&t, VG_GRPC_UNAVAILABLE, VG_GRPC_MAYBE,
                           "502 instead of gRPC's: <html>no upstream");
    grpc_test_call_done(&t);
}

/* ---- broken messages ---- */

static void broken_messages_end_the_call(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *trailers; /* NULL: it stays open */
        enum vg_grpc_code code;
        const char *words;
    } rows[] = {
        {"\1\0\0\0\1x", 6, NULL, VG_GRPC_INTERNAL, "compressed"},
        {"\2\0\0\0\1x", 6, NULL, VG_GRPC_INTERNAL, "malformed"},
        {"\0\x7f\xff\xff\xffx", 6, NULL, VG_GRPC_RESOURCE_EXHAUSTED, "2147483647 bytes"},
        {"\0\0\0\0\5abc", 8, "grpc-status: 0\n", VG_GRPC_INTERNAL, "in the middle"},
        {"\0\0\0", 3, "grpc-status: 0\n", VG_GRPC_INTERNAL, "in the middle"},
        {"\0\0\0\0\1a\0\0\0\0\1b", 12, NULL, VG_GRPC_INTERNAL, "more than one"},
    };
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        struct grpc_test_session w;
        struct grpc_test_call t, other;
        open_world(&w, 0, 0);
        begin(&w, &other, 0);
        struct grpc_test_request *r = begin(&w, &t, 0);
        grpc_test_head(&w.peer, r, GRPC_TEST_HEAD);
        grpc_test_bytes(&w.peer, r, rows[i].bytes, rows[i].n);
        if (rows[i].trailers)
            grpc_test_end(&w.peer, r, rows[i].trailers);
        talk(&w);
        grpc_test_assert_ended(&t, rows[i].code, VG_GRPC_MAYBE, rows[i].words);
        if (!rows[i].trailers)
            assert_int_equal(r->reset, NGHTTP2_CANCEL);
        assert_false(other.has_ended); /* the connection lives */
        assert_false(w.has_failed);
        vg_grpc_session_lost(&w.s, "over");
        grpc_test_call_done(&t);
        grpc_test_call_done(&other);
        close_world(&w);
    }
}

static void resets_have_their_codes(void **state)
{
    static const struct {
        uint32_t error;
        enum vg_grpc_code code;
        enum vg_grpc_fate fate;
    } rows[] = {
        {NGHTTP2_REFUSED_STREAM, VG_GRPC_UNAVAILABLE, VG_GRPC_NOT_SENT},
        {NGHTTP2_CANCEL, VG_GRPC_CANCELLED, VG_GRPC_MAYBE},
        {NGHTTP2_INTERNAL_ERROR, VG_GRPC_INTERNAL, VG_GRPC_MAYBE},
        {NGHTTP2_ENHANCE_YOUR_CALM, VG_GRPC_RESOURCE_EXHAUSTED, VG_GRPC_MAYBE},
        {NGHTTP2_INADEQUATE_SECURITY, VG_GRPC_PERMISSION_DENIED, VG_GRPC_MAYBE},
    };
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        struct grpc_test_session w;
        struct grpc_test_call t;
        open_world(&w, 0, 0);
        struct grpc_test_request *r = begin(&w, &t, 0);
        assert_int_equal(nghttp2_submit_rst_stream(w.peer.h2, 0, r->id, rows[i].error), 0);
        talk(&w);
        grpc_test_assert_ended(&t, rows[i].code, rows[i].fate, "reset the call");
        grpc_test_call_done(&t);
        close_world(&w);
    }
}

/* ---- nonsense ---- */

static void nonsense_breaks_the_connection_with_words(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
    } rows[] = {
        {"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n", 54},
        {"\x15\x03\x01\x00\x02\x02\x0a", 7},
        {"\0\0\0\x04\0\0\0\0\1", 9},            /* SETTINGS on a stream */
        {"\0\0\x04\x03\0\0\0\0\1\0\0\0\0", 13}, /* RST_STREAM before SETTINGS */
    };
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        struct grpc_test_session w;
        struct grpc_test_call t;
        open_world(&w, 0, 0);
        grpc_test_call_init(&t, 0, "ask");
        start(&w, &t);
        assert_int_equal(vg_grpc_session_fill(&w.s, &w.status), 0);
        feed(&w, rows[i].bytes, rows[i].n);
        for (int turn = 0; turn < 3 && !w.has_failed; turn++) {
            w.has_failed = vg_grpc_session_fill(&w.s, &w.status) < 0;
            vg_grpc_session_sent(&w.s, w.s.out.n, 0);
            vg_outq_consume(&w.s.out, w.s.out.n);
        }
        if (i != 1) /* seven bytes are no frame yet: only time will tell */
            assert_true(w.has_failed);
        vg_grpc_session_lost(&w.s, w.status.message);
        assert_true(t.has_ended);
        grpc_test_call_done(&t);
        close_world(&w);
    }
}

static void pings_are_answered_and_counted(void **state)
{
    struct grpc_test_session *w = *state;
    talk(w);
    assert_int_equal(vg_grpc_session_ping(&w->s), 0);
    talk(w);
    assert_int_equal(w->peer.n_pings, 1);
    assert_int_equal(w->n_pongs, 1);
}

static void every_failing_allocation_is_survived(void **state)
{
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        struct grpc_test_session w = {0};
        struct grpc_test_call t = {0};
        struct vg_grpc_session_opts opts = {.ops = &ops,
                                            .name = "http://test",
                                            .authority = "test:1",
                                            .message_max = 1 << 20,
                                            .window = 1 << 20,
                                            .pool = &w.pool};
        static const struct vg_grpc_field none = {0};
        static const char answer[] = /* SETTINGS, then a frame of each kind for stream 1 */
            "\0\0\0\4\0\0\0\0\0"
            "\0\0\x14\1\4\0\0\0\1\x88\x5f\x10"
            "application/grpc\0\0"
            "\0\0\x0a\0\0\0\0\0\1\0\0\0\0\5hello";
        int r = vg_grpc_session_init(&w.s, &opts);
        if (r == 0) {
            uint8_t *bytes;
            t.call.path = "/x";
            t.call.on_end = grpc_test_on_end;
            t.call.msg = vg_grpc_msg_new(700, &bytes);
            if (t.call.msg)
                memset(bytes, 'x', 700);
            r = vg_grpc_session_start(&w.s, &t.call, &none, 1);
            if (r == 0)
                r = vg_grpc_session_fill(&w.s, &w.status);
            if (r == 0 && vg_grpc_session_receive(&w.s, answer, sizeof answer - 1, &w.status) == 0)
                w.has_failed = vg_grpc_session_fill(&w.s, &w.status) < 0;
            vg_grpc_session_lost(&w.s, "gone");
            vg_grpc_session_done(&w.s);
            if (!t.has_ended)
                vg_grpc_msg_unref(t.call.msg);
        }
        vg_test_alloc_failed();
        vg_buf_done(&t.call.answer);
        vg_outq_pool_done(&w.pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(a_unary_call_has_head_message_and_answer),
        cmocka_unit_test(an_answer_may_come_in_any_pieces),
        IN_A_WORLD(a_stream_goes_both_ways_until_both_end),
        cmocka_unit_test(errors_are_told_with_their_words),
        IN_A_WORLD(a_page_of_a_proxy_is_quoted),
        cmocka_unit_test(broken_messages_end_the_call),
        cmocka_unit_test(resets_have_their_codes),
        cmocka_unit_test(nonsense_breaks_the_connection_with_words),
        IN_A_WORLD(pings_are_answered_and_counted),
        cmocka_unit_test(every_failing_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
