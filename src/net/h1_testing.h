/* h1_testing.h - for tests: an HTTP/1.1 connection without a socket. */
#ifndef VG_NET_H1_TESTING_H
#define VG_NET_H1_TESTING_H

#include "net_testing.h"

struct h1_test {
    struct net_test net;
    struct vg_conn *conn;
    char got[1 << 16]; /* everything that was sent */
    size_t n_got;
};

static inline void h1_open_limited(struct h1_test *t, const struct vg_http_limits *limits)
{
    memset(t, 0, sizeof *t);
    net_test_open(&t->net, limits);
    assert_int_equal(vg_conn_new_detached(t->net.server, &t->conn), 0);
    assert_int_equal(vg_h1_new(t->conn, &t->conn->codec), 0);
}

static inline int h1_setup(void **state)
{
    static struct h1_test t;
    h1_open_limited(&t, NULL);
    *state = &t;
    return 0;
}

static inline int h1_teardown(void **state)
{
    struct h1_test *t = *state;
    vg_conn_free_detached(t->conn, VIGIL_E_CANCELED);
    net_test_close(&t->net);
    return 0;
}

/* Take what waits, until nothing does. */
static inline void h1_take(struct h1_test *t)
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

static inline void h1_feed(struct h1_test *t, const char *text)
{
    vg_conn_feed(t->conn, text, strlen(text));
    h1_take(t);
}

static inline void h1_assert_got(struct h1_test *t, const char *want)
{
    assert_string_equal(t->got, want);
    t->n_got = 0;
    t->got[0] = 0;
}

static inline void h1_assert_log(struct h1_test *t, const char *want)
{
    assert_string_equal(t->net.log, want);
    t->net.log[0] = 0;
}

#define DATE "Date: Mon, 01 Jan 2024 00:00:00 GMT\r\n"
#define TEXT "Content-Type: text/plain\r\n"

#endif
