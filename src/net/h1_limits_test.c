/* h1_limits_test.c - sizes and times that the HTTP/1.1 codec allows, under a fake clock. */
#include "h1_testing.h"

static void what_is_read_ahead_has_a_cap(void **state)
{
    struct h1_test *t = *state;
    char block[4096];
    memset(block, 'G', sizeof block);
    h1_feed(t, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    for (int i = 0; i < 3; i++)
        vg_conn_feed(t->conn, block, sizeof block);
    assert_false(t->conn->is_reading_paused);
    vg_conn_feed(t->conn, block, sizeof block);
    assert_true(t->conn->is_reading_paused);
    net_answer(t->net.last, 200, VG_SLICE_LIT("1"));
    h1_take(t);
    assert_false(t->conn->is_reading_paused); /* it was malformed, and is refused */
    assert_true(t->conn->is_finishing);
}

static void heads_over_the_limit_are_refused(void **state)
{
    (void)state;
    struct vg_http_limits limits = {.head_bytes = 200, .head_fields = 4};
    static struct h1_test t;
    char text[512];
    for (int i = 0; i < 3; i++) {
        h1_open_limited(&t, &limits);
        if (i == 0)
            snprintf(text, sizeof text, "GET /%0300d HTTP/1.1\r\nHost: a\r\n\r\n", 1);
        else if (i == 1)
            snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: a\r\nX:%300s1\r\n\r\n", "");
        else
            snprintf(text, sizeof text,
                     "GET / HTTP/1.1\r\nHost: a\r\na: 1\r\nb: 2\r\nc: 3\r\nd: 4\r\n\r\n");
        h1_feed(&t, text);
        h1_assert_log(&t, "refuse(431,none)");
        h1_teardown(&(void *){&t});
    }
}

static void bodies_over_the_limit_are_refused(void **state)
{
    (void)state;
    struct vg_http_limits limits = {.body_bytes = 10};
    static struct h1_test t;
    h1_open_limited(&t, &limits);
    h1_feed(&t, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789");
    h1_assert_log(&t, "head request closed(0)");
    h1_feed(&t, "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: "
                "11\r\n\r\n");
    h1_assert_log(&t, "head refuse(413) closed(0)");
    assert_null(strstr(t.got, "100 Continue"));
    h1_teardown(&(void *){&t});
    h1_open_limited(&t, &limits);
    h1_feed(&t, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                "6\r\n012345\r\n6\r\n012345\r\n");
    h1_assert_log(&t, "head refuse(413) closed(0)");
    h1_teardown(&(void *){&t});
}

static void say(struct vg_conn *conn, const char *text)
{
    vg_conn_feed(conn, text, strlen(text));
    vg_conn_turn(conn);
}

/* Two connections share what requests may hold: a body that one began leaves no room for the
 * other's, until it has been answered. */
static void all_requests_together_have_a_limit(void **state)
{
    (void)state;
    static struct h1_test t;
    static char half[15000]; /* twice of it is 14 KB more than a connection has for nothing */
    struct vg_http_limits limits = {.request_bytes = 16384};
    struct vg_conn *other;
    h1_open_limited(&t, &limits);
    assert_int_equal(vg_conn_new_detached(t.net.server, &other), 0);
    assert_int_equal(vg_h1_new(other, &other->codec), 0);
    memset(half, 'x', sizeof half - 1);
    say(other, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 44997\r\n\r\n");
    say(other, half);
    say(other, half);
    h1_assert_log(&t, "head");
    h1_feed(&t, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 29998\r\n\r\n");
    h1_feed(&t, half);
    h1_feed(&t, half);
    h1_assert_log(&t, "head refuse(429) closed(0)");
    assert_non_null(strstr(t.got, "HTTP/1.1 429 Too Many Requests\r\n"));
    assert_non_null(strstr(t.got, "Retry-After: 1\r\n"));
    assert_int_equal(other->share.held, 30208);
    vg_conn_free_detached(other, VIGIL_E_CANCELED); /* gives it back */
    h1_assert_log(&t, "closed(VIGIL_E_CANCELED)");
    assert_int_equal(atomic_load(&t.net.shared->share.held), 0);
    h1_teardown(&(void *){&t});
}

static void heads_count_too(void **state)
{
    (void)state;
    static struct h1_test t;
    static char name[20000];
    struct vg_http_limits limits = {.request_bytes = 2048};
    h1_open_limited(&t, &limits);
    memset(name, 'x', sizeof name - 1);
    h1_feed(&t, "GET /echo HTTP/1.1\r\nHost: a\r\n");
    h1_feed(&t, name);
    h1_assert_log(&t, "refuse(429,none)");
    assert_int_equal(atomic_load(&t.net.shared->share.held), 0);
    h1_teardown(&(void *){&t});
}

static void pass(struct h1_test *t, uint64_t ms)
{
    net_pass(&t->net, ms);
    h1_take(t);
}

static void slow_heads_time_out(void **state)
{
    struct h1_test *t = *state;
    h1_feed(t, "GET /echo HTTP/1.1\r\n");
    for (int i = 0; i < 31; i++) {
        pass(t, 1000);
        h1_feed(t, i ? "x" : "X: ");
    }
    h1_assert_log(t, "");
    pass(t, 1001);
    h1_assert_log(t, "refuse(408,none)");
    assert_true(t->conn->is_finishing);
}

static void slow_bodies_time_out(void **state)
{
    struct h1_test *t = *state;
    h1_feed(t, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
    char block[2048];
    memset(block, 'b', sizeof block);
    for (int i = 0; i < 15; i++) {
        vg_conn_feed(t->conn, block, sizeof block);
        pass(t, 1000);
    }
    h1_assert_log(t, "head"); /* two KiB a second will do */
    for (int i = 0; i < 20; i++) {
        h1_feed(t, "b");
        pass(t, 1000);
    }
    h1_assert_log(t, "refuse(408) closed(0)"); /* less than one in all will not */
}

static void a_body_that_takes_too_long_in_all_times_out(void **state)
{
    struct h1_test *t = *state;
    char block[2048];
    memset(block, 'b', sizeof block);
    h1_feed(t, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n");
    for (int i = 0; i < 59; i++) {
        vg_conn_feed(t->conn, block, sizeof block);
        pass(t, 1000);
    }
    h1_assert_log(t, "head");
    vg_conn_feed(t->conn, block, sizeof block);
    pass(t, 1000);
    h1_assert_log(t, "refuse(408) closed(0)");
}

static void a_silent_body_times_out(void **state)
{
    struct h1_test *t = *state;
    char block[65536];
    memset(block, 'b', sizeof block);
    h1_feed(t, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
    vg_conn_feed(t->conn, block, sizeof block);
    pass(t, 29999);
    h1_assert_log(t, "head");
    pass(t, 1);
    h1_assert_log(t, "refuse(408) closed(0)");
}

static void idle_connections_are_closed(void **state)
{
    struct h1_test *t = *state;
    h1_feed(t, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
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
    h1_feed(t, "GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
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
    h1_feed(t, "GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
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
    h1_feed(t, "GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
    t->net.progress = 0;
    char *block = calloc(1, 65536);
    memset(block, 'e', 65535);
    assert_int_equal(net_write(t->net.last, "e"), VG_HTTP_OPEN);
    assert_int_equal(net_write(t->net.last, block), VG_HTTP_FULL);
    size_t unsent = vg_http_unsent(t->net.last);
    assert_true(unsent > 65536 && unsent < 65600);
    t->net.log[0] = 0;
    take_some(t, unsent - 32769);
    h1_assert_log(t, "");
    take_some(t, 1);
    h1_assert_log(t, "drained");
    assert_int_equal(t->net.progress, unsent - 32768);
    h1_take(t);
    h1_assert_log(t, "");
    free(block);
}

#define T(test) cmocka_unit_test_setup_teardown(test, h1_setup, h1_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(what_is_read_ahead_has_a_cap),
        cmocka_unit_test(heads_over_the_limit_are_refused),
        cmocka_unit_test(bodies_over_the_limit_are_refused),
        cmocka_unit_test(all_requests_together_have_a_limit),
        cmocka_unit_test(heads_count_too),
        T(slow_heads_time_out),
        T(slow_bodies_time_out),
        T(a_body_that_takes_too_long_in_all_times_out),
        T(a_silent_body_times_out),
        T(idle_connections_are_closed),
        T(a_connection_that_says_nothing_is_closed_sooner),
        T(a_quiet_watch_lives_on),
        T(a_stalled_watch_is_cut),
        T(a_list_that_is_read_too_slowly_is_cut),
        T(an_exchange_is_full_and_drains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
