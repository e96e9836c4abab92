/* grpc_session_test.c - calls on a session, against an nghttp2 server in memory: whatever it
 * answers, a call ends once, with the right status and fate. One long file: all cases share the
 * server in memory. */
#include "grpc_testing.h"

#include <errno.h>

#include "session.h"

struct world {
    struct vg_grpc_session s;
    struct grpc_test_peer peer;
    struct vg_outq_pool pool;
    unsigned n_wakes, n_ready, n_going, n_pongs;
    bool has_failed;
    struct vg_status status;
};

/* ---- between the two ---- */

static void on_wake(struct vg_grpc_session *s)
{
    VG_CONTAINER_OF(s, struct world, s)->n_wakes++;
}
static void on_ready(struct vg_grpc_session *s)
{
    VG_CONTAINER_OF(s, struct world, s)->n_ready++;
}
static void on_going(struct vg_grpc_session *s, const char *why)
{
    (void)why;
    VG_CONTAINER_OF(s, struct world, s)->n_going++;
}
static void on_ponged(struct vg_grpc_session *s)
{
    VG_CONTAINER_OF(s, struct world, s)->n_pongs++;
}
/* As a pool would: the message goes, the caller hears. */
static void on_ended(struct vg_grpc_session *s, struct vg_grpc_call *c)
{
    (void)s;
    assert_null(c->stream);
    c->pool = NULL;
    c->msg = vg_grpc_msg_unref(c->msg);
    c->on_end(c);
}
static const struct vg_grpc_session_ops ops = {on_wake, on_ready, on_going, on_ponged, on_ended};

static void open_world(struct world *w, size_t message_max, uint32_t window)
{
    *w = (struct world){0};
    struct vg_grpc_session_opts opts = {.ops = &ops,
                                        .name = "http://test",
                                        .authority = "test:1",
                                        .message_max = message_max ? message_max : 1 << 20,
                                        .window = window ? window : 1 << 20,
                                        .pool = &w->pool};
    assert_int_equal(vg_grpc_session_init(&w->s, &opts), 0);
    grpc_test_peer_open(&w->peer, false);
}

static void close_world(struct world *w)
{
    vg_grpc_session_lost(&w->s, "the test is over");
    vg_grpc_session_done(&w->s);
    grpc_test_peer_close(&w->peer);
    vg_outq_pool_done(&w->pool);
}

static bool to_peer(struct world *w)
{
    char p[4096];
    bool moved = false;
    size_t n;
    if (vg_grpc_session_fill(&w->s, &w->status) < 0)
        w->has_failed = true;
    while (!w->has_failed && (n = vg_outq_peek(&w->s.out, p, sizeof p))) {
        moved = true;
        vg_outq_consume(&w->s.out, n);
        vg_grpc_session_sent(&w->s, n, 0);
        assert_true(nghttp2_session_mem_recv(w->peer.h2, (const uint8_t *)p, n) >= 0);
        if (vg_grpc_session_fill(&w->s, &w->status) < 0)
            w->has_failed = true;
    }
    return moved;
}

static void feed(struct world *w, const void *p, size_t n)
{
    if (!w->has_failed && vg_grpc_session_receive(&w->s, p, n, &w->status) < 0)
        w->has_failed = true;
}

static bool from_peer(struct world *w, size_t piece)
{
    const uint8_t *p;
    bool moved = false;
    ssize_t n;
    while ((n = nghttp2_session_mem_send(w->peer.h2, &p)) > 0) {
        moved = true;
        for (size_t at = 0; at < (size_t)n; at += piece)
            feed(w, p + at, VG_MIN(piece, (size_t)n - at));
    }
    return moved;
}

static void talk_in(struct world *w, size_t piece)
{
    bool moved = true;
    while (moved) {
        moved = to_peer(w);
        moved = from_peer(w, piece) || moved;
    }
}
static void talk(struct world *w)
{
    talk_in(w, SIZE_MAX / 2);
}

static void start(struct world *w, struct grpc_test_call *t)
{
    static const struct vg_grpc_field none = {0};
    t->call.pool = (struct vg_grpc_pool *)w; /* under way, as far as a call can tell */
    assert_int_equal(vg_grpc_session_start(&w->s, &t->call, &none, 0), 0);
}

/* A call whose request has reached the server. */
static struct grpc_test_request *begin(struct world *w, struct grpc_test_call *t, unsigned flags)
{
    grpc_test_call_init(t, flags, "ask");
    start(w, t);
    talk(w);
    assert_true(w->peer.n > 0);
    return w->peer.requests[w->peer.n - 1];
}

static void assert_ended(const struct grpc_test_call *t, enum vg_grpc_code code,
                         enum vg_grpc_fate fate, const char *words)
{
    assert_true(t->has_ended);
    assert_string_equal(vg_grpc_code_name(t->call.status.code), vg_grpc_code_name(code));
    assert_int_equal(t->call.status.fate, fate);
    if (!strstr(t->call.status.message, words))
        fail_msg("\"%s\" does not say \"%s\"", t->call.status.message, words);
}

/* ---- what is said ---- */

static void a_unary_call_has_head_message_and_answer(void **state)
{
    struct world w;
    struct grpc_test_call t;
    (void)state;
    open_world(&w, 0, 0);
    grpc_test_call_init(&t, 0, "ask");
    struct vg_grpc_field field = {VG_SLICE_LIT("x-own"), VG_SLICE_LIT("1")};
    struct vg_grpc_field token = {VG_SLICE_LIT("token"), VG_SLICE_LIT("secret")};
    t.call.fields = &field;
    t.call.n_fields = 1;
    assert_int_equal(vg_grpc_session_start(&w.s, &t.call, &token, 1500 * VG_NS_PER_MS), 0);
    talk(&w);
    assert_int_equal(w.n_ready, 1);
    struct grpc_test_request *r = w.peer.requests[0];
    assert_true(r->has_end);
    vg_assert_slice_equal(vg_buf_slice(&r->body), VG_SLICE_LIT("\0\0\0\0\x03"
                                                               "ask"));
    vg_assert_slice_equal(vg_buf_slice(&r->fields),
                          VG_SLICE_LIT(":method: POST\n:scheme: http\n:path: /test.Test/Do\n"
                                       ":authority: test:1\nte: trailers\n"
                                       "content-type: application/grpc\nuser-agent: vigil-grpc\n"
                                       "grpc-timeout: 1500000u\ntoken: secret\nx-own: 1\n"));
    grpc_test_head(&w.peer, r, GRPC_TEST_HEAD);
    grpc_test_message(&w.peer, r, "answer");
    grpc_test_end(&w.peer, r, "grpc-status: 0\n");
    talk(&w);
    assert_ended(&t, VG_GRPC_OK, VG_GRPC_ANSWERED, "");
    vg_assert_slice_equal(vg_buf_slice(&t.call.answer), VG_SLICE_LIT("answer"));
    grpc_test_call_done(&t);
    close_world(&w);
}

static void an_answer_may_come_in_any_pieces(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < 40; piece++) {
        struct world w;
        struct grpc_test_call t, s;
        open_world(&w, 0, 0);
        struct grpc_test_request *r = begin(&w, &t, 0), *rs = begin(&w, &s, VG_GRPC_STREAM);
        grpc_test_head(&w.peer, r, GRPC_TEST_HEAD);
        grpc_test_message(&w.peer, r, "answer of some length");
        grpc_test_end(&w.peer, r, "grpc-status: 0\n");
        grpc_test_head(&w.peer, rs, GRPC_TEST_HEAD);
        grpc_test_message(&w.peer, rs, "one");
        grpc_test_message(&w.peer, rs, "");
        grpc_test_message(&w.peer, rs, "three");
        talk_in(&w, piece);
        assert_ended(&t, VG_GRPC_OK, VG_GRPC_ANSWERED, "");
        vg_assert_slice_equal(vg_buf_slice(&t.call.answer), VG_SLICE_LIT("answer of some length"));
        vg_assert_slice_equal(vg_buf_slice(&s.heard), VG_SLICE_LIT("<one><><three>"));
        vg_grpc_session_lost(&w.s, "gone");
        assert_ended(&s, VG_GRPC_UNAVAILABLE, VG_GRPC_MAYBE, "http://test: gone");
        grpc_test_call_done(&t);
        grpc_test_call_done(&s);
        close_world(&w);
    }
}

static void a_stream_goes_both_ways_until_both_end(void **state)
{
    struct world w;
    struct grpc_test_call t;
    uint8_t *bytes;
    (void)state;
    open_world(&w, 0, 0);
    struct grpc_test_request *r = begin(&w, &t, VG_GRPC_STREAM);
    assert_false(r->has_end);
    grpc_test_head(&w.peer, r, GRPC_TEST_HEAD);
    grpc_test_message(&w.peer, r, "first");
    talk(&w);
    vg_assert_slice_equal(vg_buf_slice(&t.heard), VG_SLICE_LIT("<first>"));
    struct vg_grpc_msg *m = vg_grpc_msg_new(4, &bytes);
    memcpy(bytes, "more", 4);
    assert_int_equal(vg_grpc_send(&t.call, m), 0);
    assert_int_equal(vg_grpc_unsent(&t.call), 9);
    talk(&w);
    assert_int_equal(vg_grpc_unsent(&t.call), 0);
    vg_assert_slice_equal(vg_buf_slice(&r->body), VG_SLICE_LIT("\0\0\0\0\x03"
                                                               "ask\0\0\0\0\x04more"));
    vg_grpc_half_close(&t.call);
    talk(&w);
    assert_true(r->has_end);
    assert_false(t.has_ended);
    assert_int_equal(vg_grpc_send(&t.call, vg_grpc_msg_new(0, &bytes)), VIGIL_E_CLOSED);
    grpc_test_end(&w.peer, r, "grpc-status: 0\n");
    talk(&w);
    assert_ended(&t, VG_GRPC_OK, VG_GRPC_ANSWERED, "");
    assert_int_equal(vg_grpc_send(&t.call, vg_grpc_msg_new(0, &bytes)), VIGIL_E_CLOSED);
    grpc_test_call_done(&t);
    close_world(&w);
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
        struct world w;
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
        assert_ended(&t, rows[i].code, rows[i].fate, rows[i].words);
        assert_false(w.has_failed);
        grpc_test_call_done(&t);
        close_world(&w);
    }
}

static void a_page_of_a_proxy_is_quoted(void **state)
{
    struct world w;
    struct grpc_test_call t;
    (void)state;
    open_world(&w, 0, 0);
    struct grpc_test_request *r = begin(&w, &t, 0);
    grpc_test_head(&w.peer, r, ":status: 502\ncontent-type: text/html\n");
    grpc_test_bytes(&w.peer, r, "<html>no upstream", 17);
    for (int i = 0; i < 100; i++)
        grpc_test_bytes(&w.peer, r, "xxxxxxxxxxxxxxxxxxxxxxxxx", 25);
    grpc_test_end(&w.peer, r, NULL);
    talk(&w);
    assert_ended(&t, VG_GRPC_UNAVAILABLE, VG_GRPC_MAYBE,
                 "502 instead of gRPC's: <html>no upstream");
    grpc_test_call_done(&t);
    close_world(&w);
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
        struct world w;
        struct grpc_test_call t, other;
        open_world(&w, 0, 0);
        begin(&w, &other, 0);
        struct grpc_test_request *r = begin(&w, &t, 0);
        grpc_test_head(&w.peer, r, GRPC_TEST_HEAD);
        grpc_test_bytes(&w.peer, r, rows[i].bytes, rows[i].n);
        if (rows[i].trailers)
            grpc_test_end(&w.peer, r, rows[i].trailers);
        talk(&w);
        assert_ended(&t, rows[i].code, VG_GRPC_MAYBE, rows[i].words);
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
        struct world w;
        struct grpc_test_call t;
        open_world(&w, 0, 0);
        struct grpc_test_request *r = begin(&w, &t, 0);
        assert_int_equal(nghttp2_submit_rst_stream(w.peer.h2, 0, r->id, rows[i].error), 0);
        talk(&w);
        assert_ended(&t, rows[i].code, rows[i].fate, "reset the call");
        grpc_test_call_done(&t);
        close_world(&w);
    }
}

/* ---- fates ---- */

static void what_has_not_left_is_not_sent(void **state)
{
    struct world w;
    struct grpc_test_call t, s;
    (void)state;
    open_world(&w, 0, 0);
    grpc_test_call_init(&t, 0, "ask");
    grpc_test_call_init(&s, VG_GRPC_STREAM, "ask");
    start(&w, &t);
    start(&w, &s);
    assert_int_equal(vg_grpc_session_fill(&w.s, &w.status),
                     0); /* in the queue, not in the socket */
    assert_true(w.s.out.n > 0);
    vg_grpc_session_lost(&w.s, "gone");
    assert_ended(&t, VG_GRPC_UNAVAILABLE, VG_GRPC_NOT_SENT, "gone");
    assert_ended(&s, VG_GRPC_UNAVAILABLE, VG_GRPC_NOT_SENT, "gone");
    grpc_test_call_done(&t);
    grpc_test_call_done(&s);
    close_world(&w);
}

/* Byte for byte: a unary request may have been received when its last byte left, and a byte before
 * that it cannot have been. */
static void a_request_counts_when_its_last_byte_left(void **state)
{
    (void)state;
    struct world w;
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
    struct world w;
    struct grpc_test_call t;
    (void)state;
    open_world(&w, 0, 0);
    grpc_test_call_init(&t, 0, "ask");
    start(&w, &t);
    assert_int_equal(vg_grpc_session_fill(&w.s, &w.status), 0);
    vg_grpc_session_sent(&w.s, 0, w.s.out.n);
    vg_grpc_session_lost(&w.s, "gone");
    assert_ended(&t, VG_GRPC_UNAVAILABLE, VG_GRPC_MAYBE, "gone");
    grpc_test_call_done(&t);
    close_world(&w);
}

static void goaway_gives_back_what_was_not_taken(void **state)
{
    struct world w;
    struct grpc_test_call first, second, late;
    (void)state;
    open_world(&w, 0, 0);
    struct grpc_test_request *r = begin(&w, &first, 0);
    begin(&w, &second, 0);
    assert_int_equal(
        nghttp2_submit_goaway(w.peer.h2, 0, r->id, NGHTTP2_NO_ERROR, (const uint8_t *)"bye", 3), 0);
    talk(&w);
    assert_int_equal(w.n_going, 1);
    assert_ended(&second, VG_GRPC_UNAVAILABLE, VG_GRPC_NOT_SENT, "");
    assert_false(first.has_ended);
    grpc_test_call_init(&late, 0, "ask"); /* nobody should; it ends all the same */
    start(&w, &late);
    talk(&w);
    assert_ended(&late, VG_GRPC_UNAVAILABLE, VG_GRPC_NOT_SENT, "");
    grpc_test_head(&w.peer, r, GRPC_TEST_HEAD);
    grpc_test_message(&w.peer, r, "answer");
    grpc_test_end(&w.peer, r, "grpc-status: 0\n");
    talk(&w);
    assert_ended(&first, VG_GRPC_OK, VG_GRPC_ANSWERED, "");
    assert_true(w.has_failed); /* nothing is left to be said on it */
    grpc_test_call_done(&first);
    grpc_test_call_done(&second);
    grpc_test_call_done(&late);
    close_world(&w);
}

/* ---- flow ---- */

static void a_paused_stream_holds_the_server_back(void **state)
{
    struct world w;
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
    grpc_test_head(&w.peer, ro, GRPC_TEST_HEAD);
    grpc_test_message(&w.peer, ro, "others go on");
    grpc_test_end(&w.peer, ro, "grpc-status: 0\n");
    talk(&w);
    assert_ended(&other, VG_GRPC_OK, VG_GRPC_ANSWERED, "");
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
    assert_ended(&t, VG_GRPC_OK, VG_GRPC_ANSWERED, "");
    assert_int_equal(t.heard.n, 100 * 4002);
    grpc_test_call_done(&t);
    grpc_test_call_done(&other);
    close_world(&w);
}

/* What comes between resume and the turn's end waits behind what is held. */
static void what_is_held_comes_first(void **state)
{
    struct world w;
    struct grpc_test_call t;
    (void)state;
    open_world(&w, 0, 0);
    struct grpc_test_request *r = begin(&w, &t, VG_GRPC_STREAM);
    t.pause_at = 1;
    grpc_test_head(&w.peer, r, GRPC_TEST_HEAD);
    static const char *const first[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < VG_ARRAY_LEN(first); i++)
        grpc_test_message(&w.peer, r, first[i]);
    talk(&w);
    vg_assert_slice_equal(vg_buf_slice(&t.heard), VG_SLICE_LIT("<a>"));
    vg_grpc_resume(&t.call);
    grpc_test_message(&w.peer, r, "e");
    from_peer(&w, SIZE_MAX / 2);
    talk(&w);
    vg_assert_slice_equal(vg_buf_slice(&t.heard), VG_SLICE_LIT("<a><b><c><d><e>"));
    vg_grpc_session_lost(&w.s, "over");
    grpc_test_call_done(&t);
    close_world(&w);
}

/* The server has said all, the client has not: the rest is of no use, and the server hears so. */
static void an_early_end_resets_what_is_left(void **state)
{
    struct world w;
    struct grpc_test_call t;
    (void)state;
    open_world(&w, 0, 0);
    struct grpc_test_request *r = begin(&w, &t, VG_GRPC_STREAM);
    grpc_test_head(&w.peer, r, GRPC_TEST_HEAD);
    grpc_test_end(&w.peer, r, "grpc-status: 0\n");
    talk(&w);
    assert_ended(&t, VG_GRPC_OK, VG_GRPC_ANSWERED, "");
    assert_int_equal(r->reset, NGHTTP2_CANCEL);
    grpc_test_call_done(&t);
    close_world(&w);
}

static void a_long_message_opens_the_window_again(void **state)
{
    struct world w;
    struct grpc_test_call t;
    size_t n = 900000;
    char *text = vg_malloc(n + 1);
    (void)state;
    memset(text, 'l', n);
    text[n] = 0;
    open_world(&w, 0, 65535);
    struct grpc_test_request *r = begin(&w, &t, 0);
    grpc_test_head(&w.peer, r, GRPC_TEST_HEAD);
    grpc_test_message(&w.peer, r, text);
    grpc_test_end(&w.peer, r, "grpc-status: 0\n");
    talk(&w);
    assert_ended(&t, VG_GRPC_OK, VG_GRPC_ANSWERED, "");
    vg_assert_slice_equal(vg_buf_slice(&t.call.answer), vg_slice(text, n));
    grpc_test_call_done(&t);
    close_world(&w);
    vg_free(text);
}

static void a_long_request_waits_for_the_servers_window(void **state)
{
    struct world w;
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
    struct world w;
    struct grpc_test_call unsent, sent, inside;
    (void)state;
    open_world(&w, 0, 0);
    talk(&w);
    grpc_test_call_init(&unsent, 0, "never seen");
    start(&w, &unsent);
    assert_int_equal(vg_grpc_session_drop(&unsent.call), VG_GRPC_NOT_SENT);
    vg_grpc_msg_unref(unsent.call.msg);
    talk(&w);
    assert_int_equal(w.peer.n, 0);

    struct grpc_test_request *r = begin(&w, &sent, 0);
    assert_int_equal(vg_grpc_session_drop(&sent.call), VG_GRPC_MAYBE);
    vg_grpc_msg_unref(sent.call.msg);
    talk(&w);
    assert_int_equal(r->reset, NGHTTP2_CANCEL);
    assert_int_equal(w.s.n_streams, 0);

    /* From within on_message, with more of them behind it. */
    r = begin(&w, &inside, VG_GRPC_STREAM);
    struct vg_grpc_msg *m = vg_steal(inside.call.msg);
    vg_grpc_msg_unref(m);
    grpc_test_head(&w.peer, r, GRPC_TEST_HEAD);
    for (int i = 0; i < 5; i++)
        grpc_test_message(&w.peer, r, "x");
    inside.call.pool = NULL; /* vg_grpc_cancel is the pool's: here it does nothing but return */
    inside.cancel_at = 0;
    talk(&w);
    assert_int_equal(inside.n_heard, 5);
    vg_grpc_session_drop(&inside.call);
    talk(&w);
    assert_int_equal(r->reset, NGHTTP2_CANCEL);
    assert_false(unsent.has_ended || sent.has_ended || inside.has_ended);
    grpc_test_call_done(&inside);
    close_world(&w);
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
        struct world w;
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
    struct world w;
    (void)state;
    open_world(&w, 0, 0);
    talk(&w);
    assert_int_equal(vg_grpc_session_ping(&w.s), 0);
    talk(&w);
    assert_int_equal(w.peer.n_pings, 1);
    assert_int_equal(w.n_pongs, 1);
    close_world(&w);
}

static void every_failing_allocation_is_survived(void **state)
{
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        struct world w = {0};
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
        cmocka_unit_test(a_unary_call_has_head_message_and_answer),
        cmocka_unit_test(an_answer_may_come_in_any_pieces),
        cmocka_unit_test(a_stream_goes_both_ways_until_both_end),
        cmocka_unit_test(errors_are_told_with_their_words),
        cmocka_unit_test(a_page_of_a_proxy_is_quoted),
        cmocka_unit_test(broken_messages_end_the_call),
        cmocka_unit_test(resets_have_their_codes),
        cmocka_unit_test(what_has_not_left_is_not_sent),
        cmocka_unit_test(a_request_counts_when_its_last_byte_left),
        cmocka_unit_test(what_tls_may_have_sent_counts_as_sent),
        cmocka_unit_test(goaway_gives_back_what_was_not_taken),
        cmocka_unit_test(a_paused_stream_holds_the_server_back),
        cmocka_unit_test(what_is_held_comes_first),
        cmocka_unit_test(an_early_end_resets_what_is_left),
        cmocka_unit_test(a_long_message_opens_the_window_again),
        cmocka_unit_test(a_long_request_waits_for_the_servers_window),
        cmocka_unit_test(a_call_is_cancelled_wherever_it_is),
        cmocka_unit_test(nonsense_breaks_the_connection_with_words),
        cmocka_unit_test(pings_are_answered_and_counted),
        cmocka_unit_test(every_failing_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
