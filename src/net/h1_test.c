/* h1_test.c - the HTTP/1.1 codec, fed with bytes and without a socket: requests and answers. */
#include "h1_testing.h"

static void a_request_is_answered_and_the_connection_kept(void **state)
{
    struct h1_test *t = *state;
    h1_feed(t, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
    h1_assert_got(t, "HTTP/1.1 200 OK\r\n" DATE TEXT "Content-Length: 0\r\n\r\n");
    h1_assert_log(t, "head request closed(0)");
    h1_feed(t, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    h1_assert_got(t, "HTTP/1.1 200 OK\r\n" DATE TEXT "Content-Length: 5\r\n\r\nhello");
    assert_false(t->conn->is_finishing);
}

static void the_request_is_shown_as_it_was_sent(void **state)
{
    struct h1_test *t = *state;
    h1_feed(t, "PATCH /hold?a=b HTTP/1.1\r\nHost: h:1\r\nX-Mixed-CASE:  two words \t\r\nEmpty:\r\n"
               "x-mixed-case: second\r\nContent-Length: 2\r\n\r\nok");
    const struct vg_http_request *r = vg_http_request(t->net.last);
    assert_int_equal(r->method, VG_HTTP_PATCH);
    assert_int_equal(r->carrier, VG_HTTP_1_1);
    vg_assert_slice_equal(r->method_text, VG_SLICE_LIT("PATCH"));
    vg_assert_slice_equal(r->target, VG_SLICE_LIT("/hold?a=b"));
    vg_assert_slice_equal(r->authority, VG_SLICE_LIT("h:1"));
    vg_assert_slice_equal(r->body, VG_SLICE_LIT("ok"));
    assert_int_equal(r->n_fields, 5);
    vg_assert_slice_equal(vg_http_field(t->net.last, "x-mixed-case"), VG_SLICE_LIT("two words"));
    vg_assert_slice_equal(r->fields[2].value, VG_SLICE_LIT(""));
    vg_assert_slice_equal(r->fields[3].value, VG_SLICE_LIT("second"));
    assert_null(vg_http_field(t->net.last, "absent").p);
    assert_false(r->wants_websocket);
    vg_http_release_request(t->net.last);
    assert_int_equal(vg_http_request(t->net.last)->n_fields, 0);
    net_answer(t->net.last, 200, VG_SLICE_LIT("x"));
    h1_take(t);
    h1_assert_log(t, "head request closed(0)");
}

static void an_absolute_target_is_a_path_and_a_host(void **state)
{
    struct h1_test *t = *state;
    h1_feed(t, "GET http://b:2/hold?x HTTP/1.1\r\nHost: a\r\n\r\n");
    vg_assert_slice_equal(vg_http_request(t->net.last)->target, VG_SLICE_LIT("/hold?x"));
    vg_assert_slice_equal(vg_http_request(t->net.last)->authority, VG_SLICE_LIT("b:2"));
}

static void requests_arrive_in_any_pieces(void **state)
{
    struct h1_test *t = *state;
    const char text[] = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                        "3\r\nabc\r\na;ext=1\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n"
                        "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n";
    for (size_t step = 1; step < sizeof text; step++) {
        for (size_t at = 0; at < sizeof text - 1; at += step) {
            vg_conn_feed(t->conn, text + at, VG_MIN(step, sizeof text - 1 - at));
            h1_take(t);
        }
        h1_assert_got(t, "HTTP/1.1 200 OK\r\n" DATE TEXT "Content-Length: 13\r\n\r\nabc0123456789"
                         "HTTP/1.1 200 OK\r\n" DATE TEXT "Content-Length: 0\r\n\r\n");
        h1_assert_log(t, "head request closed(0) head request closed(0)");
    }
}

static void streamed_answers_are_chunked(void **state)
{
    struct h1_test *t = *state;
    h1_feed(t, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
    h1_assert_got(t, "HTTP/1.1 200 OK\r\n" DATE "Transfer-Encoding: chunked\r\n\r\n"
                     "4\r\none,\r\n4\r\ntwo,\r\n5\r\nthree\r\n0\r\n\r\n");
    assert_false(t->conn->is_finishing);
}

static void http_1_0_is_answered_in_its_own_way(void **state)
{
    struct h1_test *t = *state;
    h1_feed(t, "GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    h1_assert_got(t, "HTTP/1.1 200 OK\r\n" DATE TEXT
                     "Content-Length: 0\r\nConnection: keep-alive\r\n\r\n");
    assert_false(t->conn->is_finishing);
    h1_feed(t, "GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    h1_assert_got(t, "HTTP/1.1 200 OK\r\n" DATE "Connection: close\r\n\r\none,two,three");
    assert_true(t->conn->is_finishing);
}

static void head_gets_no_body(void **state)
{
    struct h1_test *t = *state;
    h1_feed(t, "HEAD /now HTTP/1.1\r\nHost: a\r\n\r\n");
    h1_assert_got(t, "HTTP/1.1 401 Unauthorized\r\n" DATE TEXT "Content-Length: 3\r\n\r\n");
    h1_feed(t, "HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\n");
    h1_assert_got(t, "HTTP/1.1 200 OK\r\n" DATE "\r\n");
    assert_false(t->conn->is_finishing);
    h1_assert_log(t, "head closed(0) head request closed(0)");
}

static void connection_close_is_obeyed(void **state)
{
    struct h1_test *t = *state;
    h1_feed(t, "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    h1_assert_got(t,
                  "HTTP/1.1 200 OK\r\n" DATE TEXT "Content-Length: 0\r\nConnection: close\r\n\r\n");
    assert_true(t->conn->is_finishing);
}

static void the_client_is_told_to_go_on_only_when_the_body_is_wanted(void **state)
{
    struct h1_test *t = *state;
    const char head[] = " HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    h1_feed(t, "POST /echo");
    h1_feed(t, head);
    h1_assert_got(t, "HTTP/1.1 100 Continue\r\n\r\n");
    h1_feed(t, "ok");
    h1_assert_got(t, "HTTP/1.1 200 OK\r\n" DATE TEXT "Content-Length: 2\r\n\r\nok");
    h1_feed(t, "POST /now");
    h1_feed(t, head);
    h1_assert_got(t, "HTTP/1.1 401 Unauthorized\r\n" DATE TEXT
                     "Content-Length: 3\r\nConnection: close\r\n\r\nnow");
    assert_true(t->conn->is_finishing);
}

static void an_early_answer_drops_the_rest_of_the_body(void **state)
{
    struct h1_test *t = *state;
    h1_feed(t, "POST /now HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234");
    h1_assert_got(t, "HTTP/1.1 401 Unauthorized\r\n" DATE TEXT "Content-Length: 3\r\n\r\nnow");
    h1_feed(t, "56789GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
    h1_assert_got(t, "HTTP/1.1 200 OK\r\n" DATE TEXT "Content-Length: 0\r\n\r\n");
    h1_assert_log(t, "head closed(0) head request closed(0)");
    h1_feed(t, "POST /now HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n01234");
    assert_true(t->conn->is_finishing); /* too much to read for nothing */
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    struct h1_test *t = *state;
    h1_feed(t, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n"
               "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n2"
               "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n3");
    h1_assert_log(t, "head request");
    h1_assert_got(t, "");
    net_answer(t->net.last, 200, VG_SLICE_LIT("1"));
    h1_take(t);
#define ONE(body) "HTTP/1.1 200 OK\r\n" DATE TEXT "Content-Length: 1\r\n\r\n" body
    h1_assert_got(t, ONE("1") ONE("2") ONE("3"));
    assert_int_equal(t->net.n_closed, 3);
}

static void a_half_closed_client_gets_all_its_answers(void **state)
{
    struct h1_test *t = *state;
    const char text[] =
        "GET /hold HTTP/1.1\r\nHost: a\r\n\r\nGET /echo HTTP/1.1\r\nHost: a\r\n\r\n";
    vg_conn_feed(t->conn, text, sizeof text - 1);
    vg_conn_feed(t->conn, NULL, 0);
    h1_take(t);
    net_answer(t->net.last, 200, VG_SLICE_LIT("1"));
    h1_take(t);
    assert_int_equal(t->net.n_closed, 2);
    assert_true(t->conn->is_finishing);
}

static void a_watch_ends_when_its_client_does(void **state)
{
    struct h1_test *t = *state;
    h1_feed(t, "GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(net_write(t->net.last, "event\n"), VG_HTTP_OPEN);
    h1_take(t);
    h1_assert_got(t,
                  "HTTP/1.1 200 OK\r\n" DATE "Transfer-Encoding: chunked\r\n\r\n6\r\nevent\n\r\n");
    vg_conn_feed(t->conn, NULL, 0);
    h1_take(t);
    assert_true(t->conn->is_closing);
    assert_int_equal(t->conn->close_err, VIGIL_E_CANCELED);
    assert_int_equal(net_write(t->net.last, "event\n"), VIGIL_E_CANCELED);
}

static void malformed_requests_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int status;
    } cases[] = {
        {"nonsense\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n\r\n", 400},                                /* no Host */
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},          /* two */
        {"GET / HTTP/1.1\nHost: a\n\n", 400},                           /* bare LF */
        {"GET / HTTP/1.1\r\nHost: a\rX: y\r\n\r\n", 400},               /* bare CR */
        {"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", 400},          /* obs-fold */
        {"GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n\tfolded\r\n\r\n", 400}, /* obs-fold */
        {"GET / HTTP/1.1\r\nHost: a\r\n: nameless\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", 400},     /* space in the name */
        {"GET / HTTP/1.1\r\nHost: a\r\nX\x01y: y\r\n\r\n", 400}, /* control character */
        {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1,1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
         400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
         400},
        {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
         "chunked\r\n\r\n",
         400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0b"
         "chunked\r\n\r\n",
         400},
        {"POST / HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n", 417},
        {"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(cases); i++) {
        static struct h1_test t;
        h1_open_limited(&t, NULL);
        h1_feed(&t, cases[i].text);
        char want[32];
        snprintf(want, sizeof want, "refuse(%d,none)", cases[i].status);
        if (strcmp(t.net.log, want) != 0)
            print_message("case %zu: %s\n%s\n", i, cases[i].text, t.got);
        h1_assert_log(&t, want);
        assert_non_null(strstr(t.got, "Connection: close\r\n"));
        assert_non_null(strstr(t.got, "Content-Type: application/test\r\n"));
        assert_non_null(strstr(t.got, "\r\n\r\nrefused: "));
        assert_true(t.conn->is_finishing);
        h1_teardown(&(void *){&t});
    }
}

/* RFC 9112, 7.1.1: extensions that are not known are ignored. None is known. */
static void chunk_extensions_are_ignored(void **state)
{
    struct h1_test *t = *state;
    static const char *const lines[] = {"5;a",       "5;a=b",  "5;a=\"b c\"", "5;a=\"b;c\\\"d\";e",
                                        "5 ; a = b", "5;a;b=c"};
    for (size_t i = 0; i < VG_ARRAY_LEN(lines); i++) {
        h1_feed(t, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        h1_feed(t, lines[i]);
        h1_feed(t, "\r\nhello\r\n0;last=\"x\"\r\n\r\n");
        if (!strstr(t->got, "\r\n\r\nhello"))
            fail_msg("%s: %s", lines[i], t->got);
        t->n_got = 0;
        t->net.log[0] = 0;
    }
}

/* Whatever makes two servers disagree about the end of a chunk. */
static void malformed_extensions_are_refused(void **state)
{
    struct h1_test *t = *state;
    static const char *const lines[] = {"5;a\n",       "5 \r\n", "5;a\rb\r\n",
                                        "5;a\x01\r\n", ";a\r\n", " 5;a\r\n",
                                        "5 a\r\n",     "5\n",    "1000000000000000;a\r\n"};
    for (size_t i = 0; i < VG_ARRAY_LEN(lines); i++) {
        struct vg_conn *conn;
        assert_int_equal(vg_conn_new_detached(t->net.server, &conn), 0);
        assert_int_equal(vg_h1_new(conn, &conn->codec), 0);
        const char head[] = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        vg_conn_feed(conn, head, sizeof head - 1);
        for (const char *p = lines[i]; *p && !conn->is_finishing; p++)
            vg_conn_feed(conn, p, 1);
        vg_conn_turn(conn);
        if (!strstr(t->net.log, "refuse(400)"))
            fail_msg("%zu: %s", i, t->net.log);
        vg_conn_free_detached(conn, VIGIL_E_CANCELED);
        t->net.log[0] = 0;
    }
}

static void a_malformed_chunk_is_refused_after_on_head(void **state)
{
    struct h1_test *t = *state;
    h1_feed(t, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
    h1_assert_log(t, "head refuse(400) closed(0)");
}

static void a_short_answer_is_cut(void **state)
{
    struct h1_test *t = *state;
    h1_feed(t, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    struct vg_http_head head = {.status = 200, .length = 10};
    assert_int_equal(vg_http_respond(t->net.last, &head), 0);
    assert_int_equal(net_write(t->net.last, "short"), VG_HTTP_OPEN);
    vg_http_end(t->net.last);
    h1_take(t);
    assert_true(t->conn->is_closing);
}

static void an_aborted_answer_closes_the_connection(void **state)
{
    struct h1_test *t = *state;
    h1_feed(t, "GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
    vg_http_abort(t->net.last);
    h1_assert_log(t, "head request"); /* not from within */
    h1_take(t);
    assert_true(t->conn->is_closing);
}

static void draining_lets_answers_finish(void **state)
{
    struct h1_test *t = *state;
    h1_feed(t, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    t->conn->codec->ops->drain(t->conn->codec);
    h1_take(t);
    assert_false(t->conn->is_finishing);
    net_answer(t->net.last, 200, VG_SLICE_LIT("1"));
    h1_take(t);
    assert_non_null(strstr(t->got, "Connection: close\r\n"));
    assert_true(t->conn->is_finishing);
}

static void a_line_in_a_field_of_the_answer_is_left_out(void **state)
{
    struct h1_test *t = *state;
    h1_feed(t, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    struct vg_http_field f[] = {{VG_SLICE_LIT("Warning"), VG_SLICE_LIT("a\r\nSet-Cookie: b")},
                                {VG_SLICE_LIT("Audit-Id"), VG_SLICE_LIT("1")}};
    struct vg_http_head head = {.status = 204, .fields = f, .n_fields = 2};
    assert_int_equal(vg_http_respond(t->net.last, &head), 0);
    vg_http_end(t->net.last);
    h1_take(t);
    h1_assert_got(t, "HTTP/1.1 204 No Content\r\n" DATE "Audit-Id: 1\r\n\r\n");
}

static void http_2_with_prior_knowledge_is_recognised(void **state)
{
    struct h1_test *t = *state;
    const struct vg_codec_ops *h1 = t->conn->codec->ops;
    const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for (size_t i = 0; i < sizeof preface - 1; i++) {
        assert_ptr_equal(t->conn->codec->ops, h1);
        vg_conn_feed(t->conn, preface + i, 1);
    }
    assert_ptr_not_equal(t->conn->codec->ops, h1);
}

static void what_only_begins_like_the_preface_is_parsed(void **state)
{
    struct h1_test *t = *state;
    h1_feed(t, "P");
    h1_feed(t, "OST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n!");
    h1_assert_got(t, "HTTP/1.1 200 OK\r\n" DATE TEXT "Content-Length: 1\r\n\r\n!");
}

static void a_websocket_is_accepted(void **state)
{
    struct h1_test *t = *state;
    h1_feed(t, "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
               "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    assert_non_null(strstr(t->got, "HTTP/1.1 101 "));
    assert_non_null(strstr(t->got, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    t->n_got = 0;
    assert_int_equal(net_write(t->net.last, "hi"), VG_HTTP_OPEN);
    h1_take(t);
    h1_assert_got(t, "\x81\x02hi");
    h1_feed(t, "\x89\x81\x01\x01\x01\x01!"); /* a ping, masked */
    h1_assert_got(t, "\x8a\x01 ");
    vg_conn_feed(t->conn, "\x88\x82\0\0\0\0\x03\xe8", 8); /* close, 1000 */
    h1_take(t);
    h1_assert_log(t, "head request closed(VIGIL_E_CANCELED)");
    assert_true(t->conn->is_finishing);
}

static void an_upgrade_that_nobody_accepts_is_a_request(void **state)
{
    struct h1_test *t = *state;
    h1_feed(t, "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
               "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(t->net.n_closed, 2);
}

static void lack_of_memory_closes_and_leaks_nothing(void **state)
{
    (void)state;
    static struct h1_test t;
    static const char text[] = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
                               "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"
                               "GET /big?100000 HTTP/1.1\r\nHost: a\r\n\r\n";
    h1_open_limited(&t, NULL);
    VG_ALLOC_FAIL_LOOP (n) {
        struct vg_conn *conn = NULL;
        int r = vg_conn_new_detached(t.net.server, &conn);
        if (r == 0)
            r = vg_h1_new(conn, &conn->codec);
        if (r == 0) {
            vg_conn_feed(conn, text, sizeof text - 1);
            while (!conn->is_closing && (vg_conn_turn(conn), conn->out.n))
                vg_conn_took(conn, conn->out.n);
        }
        bool failed = vg_test_alloc_failed();
        if (r < 0)
            assert_true(failed);
        if (conn)
            vg_conn_free_detached(conn, VIGIL_E_CANCELED);
        assert_int_equal(t.net.n_open, 0);
        t.net.log[0] = 0;
    }
    h1_teardown(&(void *){&t});
}

#define T(test) cmocka_unit_test_setup_teardown(test, h1_setup, h1_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_request_is_answered_and_the_connection_kept),
        T(the_request_is_shown_as_it_was_sent),
        T(an_absolute_target_is_a_path_and_a_host),
        T(requests_arrive_in_any_pieces),
        T(streamed_answers_are_chunked),
        T(http_1_0_is_answered_in_its_own_way),
        T(head_gets_no_body),
        T(connection_close_is_obeyed),
        T(the_client_is_told_to_go_on_only_when_the_body_is_wanted),
        T(an_early_answer_drops_the_rest_of_the_body),
        T(pipelined_requests_are_answered_in_order),
        T(a_half_closed_client_gets_all_its_answers),
        T(a_watch_ends_when_its_client_does),
        cmocka_unit_test(malformed_requests_are_refused),
        T(chunk_extensions_are_ignored),
        T(malformed_extensions_are_refused),
        T(a_malformed_chunk_is_refused_after_on_head),
        T(a_short_answer_is_cut),
        T(an_aborted_answer_closes_the_connection),
        T(draining_lets_answers_finish),
        T(a_line_in_a_field_of_the_answer_is_left_out),
        T(http_2_with_prior_knowledge_is_recognised),
        T(what_only_begins_like_the_preface_is_parsed),
        T(a_websocket_is_accepted),
        T(an_upgrade_that_nobody_accepts_is_a_request),
        cmocka_unit_test(lack_of_memory_closes_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
