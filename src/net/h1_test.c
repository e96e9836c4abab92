/* h1_test.c - the HTTP/1.1 codec, fed with bytes and without a socket. */
#include "net_testing.h"

struct h1_test {
    struct net_test net;
    struct vg_conn *conn;
    char got[1 << 16]; /* everything that was sent */
    size_t n_got;
};

static void open_limited(struct h1_test *t, const struct vg_http_limits *limits)
{
    memset(t, 0, sizeof *t);
    net_test_open(&t->net, limits);
    assert_int_equal(vg_conn_new_detached(t->net.server, &t->conn), 0);
    assert_int_equal(vg_h1_new(t->conn, &t->conn->codec), 0);
}

static int setup(void **state)
{
    static struct h1_test t;
    open_limited(&t, NULL);
    *state = &t;
    return 0;
}

static int teardown(void **state)
{
    struct h1_test *t = *state;
    vg_conn_free_detached(t->conn, VIGIL_E_CANCELED);
    net_test_close(&t->net);
    return 0;
}

/* Take what waits, until nothing does. */
static void take(struct h1_test *t)
{
    for (;;) {
        vg_conn_turn(t->conn);
        size_t n = t->conn->out.n;
        if (n == 0)
            return;
        assert_true(t->n_got + n < sizeof t->got);
        vg_outq_peek(&t->conn->out, t->got + t->n_got, n);
        t->n_got += n;
        t->got[t->n_got] = 0;
        vg_conn_took(t->conn, n);
    }
}

static void feed(struct h1_test *t, const char *text)
{
    vg_conn_feed(t->conn, text, strlen(text));
    take(t);
}

static void assert_got(struct h1_test *t, const char *want)
{
    assert_string_equal(t->got, want);
    t->n_got = 0;
    t->got[0] = 0;
}

static void assert_log(struct h1_test *t, const char *want)
{
    assert_string_equal(t->net.log, want);
    t->net.log[0] = 0;
}

#define DATE "Date: Mon, 01 Jan 2024 00:00:00 GMT\r\n"
#define TEXT "Content-Type: text/plain\r\n"

static void a_request_is_answered_and_the_connection_kept(void **state)
{
    struct h1_test *t = *state;
    feed(t, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_got(t, "HTTP/1.1 200 OK\r\n" DATE TEXT "Content-Length: 0\r\n\r\n");
    assert_log(t, "head request closed(0)");
    feed(t, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    assert_got(t, "HTTP/1.1 200 OK\r\n" DATE TEXT "Content-Length: 5\r\n\r\nhello");
    assert_false(t->conn->is_finishing);
}

static void the_request_is_shown_as_it_was_sent(void **state)
{
    struct h1_test *t = *state;
    feed(t, "PATCH /hold?a=b HTTP/1.1\r\nHost: h:1\r\nX-Mixed-CASE:  two words \t\r\nEmpty:\r\n"
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
    take(t);
    assert_log(t, "head request closed(0)");
}

static void an_absolute_target_is_a_path_and_a_host(void **state)
{
    struct h1_test *t = *state;
    feed(t, "GET http://b:2/hold?x HTTP/1.1\r\nHost: a\r\n\r\n");
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
            take(t);
        }
        assert_got(t, "HTTP/1.1 200 OK\r\n" DATE TEXT "Content-Length: 13\r\n\r\nabc0123456789"
                      "HTTP/1.1 200 OK\r\n" DATE TEXT "Content-Length: 0\r\n\r\n");
        assert_log(t, "head request closed(0) head request closed(0)");
    }
}

static void streamed_answers_are_chunked(void **state)
{
    struct h1_test *t = *state;
    feed(t, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_got(t, "HTTP/1.1 200 OK\r\n" DATE "Transfer-Encoding: chunked\r\n\r\n"
                  "4\r\none,\r\n4\r\ntwo,\r\n5\r\nthree\r\n0\r\n\r\n");
    assert_false(t->conn->is_finishing);
}

static void http_1_0_is_answered_in_its_own_way(void **state)
{
    struct h1_test *t = *state;
    feed(t, "GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_got(t, "HTTP/1.1 200 OK\r\n" DATE TEXT
                  "Content-Length: 0\r\nConnection: keep-alive\r\n\r\n");
    assert_false(t->conn->is_finishing);
    feed(t, "GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_got(t, "HTTP/1.1 200 OK\r\n" DATE "Connection: close\r\n\r\none,two,three");
    assert_true(t->conn->is_finishing);
}

static void head_gets_no_body(void **state)
{
    struct h1_test *t = *state;
    feed(t, "HEAD /now HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_got(t, "HTTP/1.1 401 Unauthorized\r\n" DATE TEXT "Content-Length: 3\r\n\r\n");
    feed(t, "HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_got(t, "HTTP/1.1 200 OK\r\n" DATE "\r\n");
    assert_false(t->conn->is_finishing);
    assert_log(t, "head closed(0) head request closed(0)");
}

static void connection_close_is_obeyed(void **state)
{
    struct h1_test *t = *state;
    feed(t, "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_got(t, "HTTP/1.1 200 OK\r\n" DATE TEXT "Content-Length: 0\r\nConnection: close\r\n\r\n");
    assert_true(t->conn->is_finishing);
}

static void the_client_is_told_to_go_on_only_when_the_body_is_wanted(void **state)
{
    struct h1_test *t = *state;
    const char head[] = " HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    feed(t, "POST /echo");
    feed(t, head);
    assert_got(t, "HTTP/1.1 100 Continue\r\n\r\n");
    feed(t, "ok");
    assert_got(t, "HTTP/1.1 200 OK\r\n" DATE TEXT "Content-Length: 2\r\n\r\nok");
    feed(t, "POST /now");
    feed(t, head);
    assert_got(t, "HTTP/1.1 401 Unauthorized\r\n" DATE TEXT
                  "Content-Length: 3\r\nConnection: close\r\n\r\nnow");
    assert_true(t->conn->is_finishing);
}

static void an_early_answer_drops_the_rest_of_the_body(void **state)
{
    struct h1_test *t = *state;
    feed(t, "POST /now HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234");
    assert_got(t, "HTTP/1.1 401 Unauthorized\r\n" DATE TEXT "Content-Length: 3\r\n\r\nnow");
    feed(t, "56789GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_got(t, "HTTP/1.1 200 OK\r\n" DATE TEXT "Content-Length: 0\r\n\r\n");
    assert_log(t, "head closed(0) head request closed(0)");
    feed(t, "POST /now HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n01234");
    assert_true(t->conn->is_finishing); /* too much to read for nothing */
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    struct h1_test *t = *state;
    feed(t, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n"
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n2"
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n3");
    assert_log(t, "head request");
    assert_got(t, "");
    net_answer(t->net.last, 200, VG_SLICE_LIT("1"));
    take(t);
#define ONE(body) "HTTP/1.1 200 OK\r\n" DATE TEXT "Content-Length: 1\r\n\r\n" body
    assert_got(t, ONE("1") ONE("2") ONE("3"));
    assert_int_equal(t->net.n_closed, 3);
}

static void what_is_read_ahead_has_a_cap(void **state)
{
    struct h1_test *t = *state;
    char block[4096];
    memset(block, 'G', sizeof block);
    feed(t, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    for (int i = 0; i < 3; i++)
        vg_conn_feed(t->conn, block, sizeof block);
    assert_false(t->conn->is_reading_paused);
    vg_conn_feed(t->conn, block, sizeof block);
    assert_true(t->conn->is_reading_paused);
    net_answer(t->net.last, 200, VG_SLICE_LIT("1"));
    take(t);
    assert_false(t->conn->is_reading_paused); /* it was malformed, and is refused */
    assert_true(t->conn->is_finishing);
}

static void a_half_closed_client_gets_all_its_answers(void **state)
{
    struct h1_test *t = *state;
    const char text[] =
        "GET /hold HTTP/1.1\r\nHost: a\r\n\r\nGET /echo HTTP/1.1\r\nHost: a\r\n\r\n";
    vg_conn_feed(t->conn, text, sizeof text - 1);
    vg_conn_feed(t->conn, NULL, 0);
    take(t);
    net_answer(t->net.last, 200, VG_SLICE_LIT("1"));
    take(t);
    assert_int_equal(t->net.n_closed, 2);
    assert_true(t->conn->is_finishing);
}

static void a_watch_ends_when_its_client_does(void **state)
{
    struct h1_test *t = *state;
    feed(t, "GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(net_write(t->net.last, "event\n"), VG_HTTP_OPEN);
    take(t);
    assert_got(t, "HTTP/1.1 200 OK\r\n" DATE "Transfer-Encoding: chunked\r\n\r\n6\r\nevent\n\r\n");
    vg_conn_feed(t->conn, NULL, 0);
    take(t);
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
        open_limited(&t, NULL);
        feed(&t, cases[i].text);
        char want[32];
        snprintf(want, sizeof want, "refuse(%d,none)", cases[i].status);
        if (strcmp(t.net.log, want) != 0)
            print_message("case %zu: %s\n%s\n", i, cases[i].text, t.got);
        assert_log(&t, want);
        assert_non_null(strstr(t.got, "Connection: close\r\n"));
        assert_non_null(strstr(t.got, "Content-Type: application/test\r\n"));
        assert_non_null(strstr(t.got, "\r\n\r\nrefused: "));
        assert_true(t.conn->is_finishing);
        teardown(&(void *){&t});
    }
}

static void a_malformed_chunk_is_refused_after_on_head(void **state)
{
    struct h1_test *t = *state;
    feed(t, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
    assert_log(t, "head refuse(400) closed(0)");
}

static void heads_over_the_limit_are_refused(void **state)
{
    (void)state;
    struct vg_http_limits limits = {.head_bytes = 200, .head_fields = 4};
    static struct h1_test t;
    char text[512];
    for (int i = 0; i < 3; i++) {
        open_limited(&t, &limits);
        if (i == 0)
            snprintf(text, sizeof text, "GET /%0300d HTTP/1.1\r\nHost: a\r\n\r\n", 1);
        else if (i == 1)
            snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: a\r\nX:%300s1\r\n\r\n", "");
        else
            snprintf(text, sizeof text,
                     "GET / HTTP/1.1\r\nHost: a\r\na: 1\r\nb: 2\r\nc: 3\r\nd: 4\r\n\r\n");
        feed(&t, text);
        assert_log(&t, "refuse(431,none)");
        teardown(&(void *){&t});
    }
}

static void bodies_over_the_limit_are_refused(void **state)
{
    (void)state;
    struct vg_http_limits limits = {.body_bytes = 10};
    static struct h1_test t;
    open_limited(&t, &limits);
    feed(&t, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789");
    assert_log(&t, "head request closed(0)");
    feed(&t, "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: "
             "11\r\n\r\n");
    assert_log(&t, "head refuse(413) closed(0)");
    assert_null(strstr(t.got, "100 Continue"));
    teardown(&(void *){&t});
    open_limited(&t, &limits);
    feed(&t, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
             "6\r\n012345\r\n6\r\n012345\r\n");
    assert_log(&t, "head refuse(413) closed(0)");
    teardown(&(void *){&t});
}

static void pass(struct h1_test *t, uint64_t ms)
{
    net_pass(&t->net, ms);
    take(t);
}

static void slow_heads_time_out(void **state)
{
    struct h1_test *t = *state;
    feed(t, "GET /echo HTTP/1.1\r\n");
    for (int i = 0; i < 31; i++) {
        pass(t, 1000);
        feed(t, i ? "x" : "X: ");
    }
    assert_log(t, "");
    pass(t, 1001);
    assert_log(t, "refuse(408,none)");
    assert_true(t->conn->is_finishing);
}

static void slow_bodies_time_out(void **state)
{
    struct h1_test *t = *state;
    feed(t, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
    char block[2048];
    memset(block, 'b', sizeof block);
    for (int i = 0; i < 15; i++) {
        vg_conn_feed(t->conn, block, sizeof block);
        pass(t, 1000);
    }
    assert_log(t, "head"); /* two KiB a second will do */
    for (int i = 0; i < 20; i++) {
        feed(t, "b");
        pass(t, 1000);
    }
    assert_log(t, "refuse(408) closed(0)"); /* less than one in all will not */
}

static void a_silent_body_times_out(void **state)
{
    struct h1_test *t = *state;
    char block[65536];
    memset(block, 'b', sizeof block);
    feed(t, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
    vg_conn_feed(t->conn, block, sizeof block);
    pass(t, 29999);
    assert_log(t, "head");
    pass(t, 1);
    assert_log(t, "refuse(408) closed(0)");
}

static void idle_connections_are_closed(void **state)
{
    struct h1_test *t = *state;
    feed(t, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
    pass(t, 179999);
    assert_false(t->conn->is_finishing);
    pass(t, 1);
    assert_true(t->conn->is_finishing);
}

static void a_connection_that_says_nothing_is_closed_sooner(void **state)
{
    struct h1_test *t = *state;
    pass(t, 32000);
    assert_true(t->conn->is_finishing);
}

static void a_quiet_watch_lives_on(void **state)
{
    struct h1_test *t = *state;
    feed(t, "GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
    pass(t, 3600 * 1000);
    assert_false(t->conn->is_closing || t->conn->is_finishing);
    assert_int_equal(net_write(t->net.last, "event\n"), VG_HTTP_OPEN);
}

/* As a socket does that takes n bytes and is full then. */
static void take_some(struct h1_test *t, size_t n)
{
    vg_conn_turn(t->conn);
    vg_conn_took(t->conn, VG_MIN(n, t->conn->out.n));
}

static void a_stalled_watch_is_cut(void **state)
{
    struct h1_test *t = *state;
    feed(t, "GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(net_write(t->net.last, "event\n"), VG_HTTP_OPEN);
    for (int i = 0; i < 5; i++) { /* slow is fine for a watch */
        take_some(t, 1);
        net_pass(&t->net, 59000);
    }
    assert_false(t->conn->is_closing);
    net_pass(&t->net, 1000);
    assert_true(t->conn->is_closing);
    assert_int_equal(t->conn->close_err, VIGIL_E_TIMEOUT);
}

static void a_list_that_is_read_too_slowly_is_cut(void **state)
{
    struct h1_test *t = *state;
    const char text[] = "GET /big?100000 HTTP/1.1\r\nHost: a\r\n\r\n";
    vg_conn_feed(t->conn, text, sizeof text - 1);
    for (int i = 0; i < 30; i++) {
        take_some(t, 1300);
        net_pass(&t->net, 1000);
    }
    assert_false(t->conn->is_closing);
    for (int i = 0; i < 10; i++) {
        take_some(t, 100);
        net_pass(&t->net, 1000);
    }
    assert_true(t->conn->is_closing);
    assert_int_equal(t->conn->close_err, VIGIL_E_TIMEOUT);
}

static void an_exchange_is_full_and_drains(void **state)
{
    struct h1_test *t = *state;
    feed(t, "GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
    t->net.progress = 0;
    char *block = calloc(1, 65536);
    memset(block, 'e', 65535);
    assert_int_equal(net_write(t->net.last, "e"), VG_HTTP_OPEN);
    assert_int_equal(net_write(t->net.last, block), VG_HTTP_FULL);
    size_t unsent = vg_http_unsent(t->net.last);
    assert_true(unsent > 65536 && unsent < 65600);
    t->net.log[0] = 0;
    take_some(t, unsent - 32769);
    assert_log(t, "");
    take_some(t, 1);
    assert_log(t, "drained");
    assert_int_equal(t->net.progress, unsent - 32768);
    take(t);
    assert_log(t, "");
    free(block);
}

static void a_short_answer_is_cut(void **state)
{
    struct h1_test *t = *state;
    feed(t, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    struct vg_http_head head = {.status = 200, .length = 10};
    assert_int_equal(vg_http_respond(t->net.last, &head), 0);
    assert_int_equal(net_write(t->net.last, "short"), VG_HTTP_OPEN);
    vg_http_end(t->net.last);
    take(t);
    assert_true(t->conn->is_closing);
}

static void an_aborted_answer_closes_the_connection(void **state)
{
    struct h1_test *t = *state;
    feed(t, "GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
    vg_http_abort(t->net.last);
    assert_log(t, "head request"); /* not from within */
    take(t);
    assert_true(t->conn->is_closing);
}

static void draining_lets_answers_finish(void **state)
{
    struct h1_test *t = *state;
    feed(t, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    t->conn->codec->ops->drain(t->conn->codec);
    take(t);
    assert_false(t->conn->is_finishing);
    net_answer(t->net.last, 200, VG_SLICE_LIT("1"));
    take(t);
    assert_non_null(strstr(t->got, "Connection: close\r\n"));
    assert_true(t->conn->is_finishing);
}

static void a_line_in_a_field_of_the_answer_is_left_out(void **state)
{
    struct h1_test *t = *state;
    feed(t, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    struct vg_http_field f[] = {{VG_SLICE_LIT("Warning"), VG_SLICE_LIT("a\r\nSet-Cookie: b")},
                                {VG_SLICE_LIT("Audit-Id"), VG_SLICE_LIT("1")}};
    struct vg_http_head head = {.status = 204, .fields = f, .n_fields = 2};
    assert_int_equal(vg_http_respond(t->net.last, &head), 0);
    vg_http_end(t->net.last);
    take(t);
    assert_got(t, "HTTP/1.1 204 No Content\r\n" DATE "Audit-Id: 1\r\n\r\n");
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
    feed(t, "P");
    feed(t, "OST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n!");
    assert_got(t, "HTTP/1.1 200 OK\r\n" DATE TEXT "Content-Length: 1\r\n\r\n!");
}

static void a_websocket_is_accepted(void **state)
{
    struct h1_test *t = *state;
    feed(t, "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    assert_non_null(strstr(t->got, "HTTP/1.1 101 "));
    assert_non_null(strstr(t->got, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    t->n_got = 0;
    assert_int_equal(net_write(t->net.last, "hi"), VG_HTTP_OPEN);
    take(t);
    assert_got(t, "\x81\x02hi");
    feed(t, "\x89\x81\x01\x01\x01\x01!"); /* a ping, masked */
    assert_got(t, "\x8a\x01 ");
    vg_conn_feed(t->conn, "\x88\x82\0\0\0\0\x03\xe8", 8); /* close, 1000 */
    take(t);
    assert_log(t, "head request closed(VIGIL_E_CANCELED)");
    assert_true(t->conn->is_finishing);
}

static void an_upgrade_that_nobody_accepts_is_a_request(void **state)
{
    struct h1_test *t = *state;
    feed(t, "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
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
    open_limited(&t, NULL);
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
    teardown(&(void *){&t});
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

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
        T(what_is_read_ahead_has_a_cap),
        T(a_half_closed_client_gets_all_its_answers),
        T(a_watch_ends_when_its_client_does),
        cmocka_unit_test(malformed_requests_are_refused),
        T(a_malformed_chunk_is_refused_after_on_head),
        cmocka_unit_test(heads_over_the_limit_are_refused),
        cmocka_unit_test(bodies_over_the_limit_are_refused),
        T(slow_heads_time_out),
        T(slow_bodies_time_out),
        T(a_silent_body_times_out),
        T(idle_connections_are_closed),
        T(a_connection_that_says_nothing_is_closed_sooner),
        T(a_quiet_watch_lives_on),
        T(a_stalled_watch_is_cut),
        T(a_list_that_is_read_too_slowly_is_cut),
        T(an_exchange_is_full_and_drains),
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
