/* server_test.c - a server on real sockets: limits, draining, slow readers. Several of them:
 * server_loops_test.c. */
#include "server_testing.h"

#include <arpa/inet.h>
#include <sys/resource.h>

static void a_connection_is_served(void **state)
{
    struct net_test *t = *state;
    int fd = adopt(t);
    for (int i = 0; i < 3; i++) {
        say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
        hear(t, fd, "\r\n\r\nhello");
    }
    struct vg_http_stats stats;
    vg_http_stats(t->shared, &stats);
    assert_int_equal(stats.requests, 3);
    assert_int_equal(stats.open, 1);
    assert_int_equal(stats.accepted, 1);
    assert_int_equal(stats.bytes_in, 3 * strlen("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: "
                                                "5\r\n\r\nhello"));
    close(fd);
    while (vg_http_server_connections(t->server))
        vg_loop_turn(t->loop, true);
    vg_http_stats(t->shared, &stats);
    assert_int_equal(stats.open, 0);
}

static void a_listener_says_where_and_who(void **state)
{
    struct net_test *t = *state;
    struct vg_listener *l = NULL;
    assert_int_equal(vg_listener_open("127.0.0.1", 0, &l, NULL), 0);
    assert_int_equal(vg_http_server_listen(t->server, l, NULL), 0);
    int fd = connect_to(vg_listener_port(l));
    say(fd, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    while (!t->last)
        vg_loop_turn(t->loop, true);
    struct sockaddr_in a = {0};
    socklen_t n = sizeof a;
    getsockname(fd, (struct sockaddr *)&a, &n);
    char want[64];
    snprintf(want, sizeof want, "127.0.0.1:%u", ntohs(a.sin_port));
    assert_string_equal(vg_http_peer(t->last)->address, want);
    assert_false(vg_http_peer(t->last)->is_tls);
    net_answer(t->last, 200, VG_SLICE_LIT("x"));
    hear(t, fd, "x");
    close(fd);
    struct vg_status status;
    struct vg_listener *other = NULL;
    assert_int_equal(vg_listener_open("127.0.0.1", vg_listener_port(l), &other, &status),
                     -EADDRINUSE);
    assert_non_null(strstr(status.message, "cannot listen on 127.0.0.1 port"));
    assert_int_equal(vg_listener_open("localhost", 0, &other, &status), VIGIL_E_INVALID);
    assert_int_equal(vg_listener_adopt(fd, &other, &status), -EBADF);
    vg_http_server_free(t->server);
    assert_int_equal(vg_http_server_new(t->shared, t->loop, &t->server), 0);
    vg_listener_free(l);
}

static void connections_over_a_limit_are_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct vg_http_limits limits = {.connections = i ? 2 : 100,
                                        .connections_per_address = i ? 100 : 2};
        struct net_test t;
        net_test_open(&t, &limits);
        struct vg_listener *l = NULL;
        assert_int_equal(vg_listener_open("127.0.0.1", 0, &l, NULL), 0);
        assert_int_equal(vg_http_server_listen(t.server, l, NULL), 0);
        int fds[3];
        for (int k = 0; k < 3; k++)
            fds[k] = connect_to(vg_listener_port(l));
        hear(&t, fds[2], NULL);
        say(fds[1], "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
        hear(&t, fds[1], "\r\n\r\n");
        struct vg_http_stats stats;
        vg_http_stats(t.shared, &stats);
        assert_int_equal(stats.refused, 1);
        assert_int_equal(stats.open, 2);
        close(fds[0]);
        while (vg_http_server_connections(t.server) > 1)
            vg_loop_turn(t.loop, true);
        close(fds[2]);
        fds[2] = connect_to(vg_listener_port(l)); /* there is room again */
        say(fds[2], "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
        hear(&t, fds[2], "\r\n\r\n");
        close(fds[1]);
        close(fds[2]);
        net_test_close(&t);
        vg_listener_free(l);
    }
}

static void a_large_answer_arrives_whole(void **state)
{
    struct net_test *t = *state;
    int fd = adopt(t);
    say(fd, "GET /big?900000 HTTP/1.1\r\nHost: a\r\n\r\n");
    char *got = hear(t, fd, "\r\n0\r\n\r\n");
    size_t x = 0;
    for (; *got; got++)
        x += *got == 'x';
    assert_int_equal(x, 900000);
    close(fd);
}

static void a_client_that_does_not_read_is_cut(void **state)
{
    struct net_test *t = *state;
    int fd = adopt(t);
    say(fd, "GET /big?10000000 HTTP/1.1\r\nHost: a\r\n\r\n");
    net_turns(t, 100);
    assert_true(t->big_left > 0);
    assert_true(vg_http_unsent(t->last) > 0);
    assert_true(vg_http_unsent(t->last) < 128 * 1024);
    net_pass(t, 9999); /* the minimum rate counts from 10 s on */
    assert_int_equal(t->n_closed, 0);
    net_pass(t, 1);
    assert_int_equal(t->n_closed, 1);
    assert_int_equal(t->last_err, VIGIL_E_TIMEOUT);
    assert_int_equal(vg_http_server_connections(t->server), 0);
    close(fd);
}

static void a_client_that_vanishes_cancels(void **state)
{
    struct net_test *t = *state;
    int fd = adopt(t);
    say(fd, "GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
    hear(t, fd, "\r\n\r\n");
    close(fd);
    while (t->n_closed == 0)
        vg_loop_turn(t->loop, true);
    assert_int_equal(t->last_err, VIGIL_E_CANCELED);
}

static void a_client_that_vanishes_behind_what_is_not_read_cancels(void **state)
{
    struct net_test *t = *state;
    int fd = adopt(t);
    say(fd, "GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
    hear(t, fd, "\r\n\r\n");
    char *block = calloc(1, 100001);
    memset(block, 'a', 100000);
    say(fd, block); /* more than is read ahead */
    net_turns(t, 5);
    shutdown(fd, SHUT_WR);
    for (int i = 0; i < 100 && t->n_closed == 0; i++)
        net_turns(t, 1);
    assert_int_equal(t->last_err, VIGIL_E_CANCELED);
    free(block);
    close(fd);
}

static void a_long_pipeline_does_not_hold_the_loop(void **state)
{
    struct net_test *t = *state;
    int fd = adopt(t);
    char text[1000 * 31 + 1] = "";
    for (size_t i = 0; i < 1000; i++)
        memcpy(text + i * 31, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n", 31);
    assert_int_equal(send(fd, text, sizeof text - 1, 0), sizeof text - 1);
    int most = 0, turns = 0;
    while (t->n_closed < 1000) {
        int before = t->n_closed;
        vg_loop_turn(t->loop, false);
        while (recv(fd, text, sizeof text, MSG_DONTWAIT) > 0)
            continue;
        most = VG_MAX(most, t->n_closed - before);
        turns++;
    }
    assert_true(most <= 65);
    assert_true(turns >= 15);
    close(fd);
}

static void events_of_one_turn_leave_together(void **state)
{
    struct net_test *t = *state;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    assert_int_equal(vg_http_server_adopt(t->server, fds[0], NULL), 0);
    say(fds[1], "GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
    hear(t, fds[1], "\r\n\r\n");
    for (int i = 0; i < 3; i++)
        assert_int_equal(net_write(t->last, "event"), VG_HTTP_OPEN);
    net_turns(t, 2);
    char got[256];
    ssize_t n = recv(fds[1], got, sizeof got, 0); /* one packet per system call */
    assert_int_equal(n, 30);
    assert_memory_equal(got, "5\r\nevent\r\n5\r\nevent\r\n5\r\nevent\r\n", 30);
    close(fds[1]);
}

static void draining_ends_when_the_last_exchange_does(void **state)
{
    struct net_test *t = *state;
    struct vg_listener *l = NULL;
    assert_int_equal(vg_listener_open("::1", 0, &l, NULL), 0);
    assert_int_equal(vg_http_server_listen(t->server, l, NULL), 0);
    int idle = adopt(t), busy = adopt(t);
    say(busy, "GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
    hear(t, busy, "\r\n\r\n");
    vg_http_server_drain(t->server, set_over, &t->is_over);
    hear(t, idle, NULL);
    net_turns(t, 3);
    assert_false(t->is_over);
    vg_http_end(t->last);
    hear(t, busy, "0\r\n\r\n");
    assert_true(t->is_over);
    hear(t, busy, NULL);
    close(idle);
    close(busy);
    vg_listener_free(l);
}

/* Whoever has connected is answered, though nobody has accepted it; whoever comes later is refused.
 */
static void draining_takes_in_who_waits(void **state)
{
    struct net_test *t = *state;
    struct vg_listener *l = NULL;
    assert_int_equal(vg_listener_open("127.0.0.1", 0, &l, NULL), 0);
    assert_int_equal(vg_http_server_listen(t->server, l, NULL), 0);
    int asks = connect_to(vg_listener_port(l)), is_silent = connect_to(vg_listener_port(l));
    int adopted = adopt(t);
    say(asks, "GET /now HTTP/1.1\r\nHost: a\r\n\r\n");
    say(adopted, "GET /now HTTP/1.1\r\nHost: a\r\n\r\n");
    vg_http_server_drain(t->server, set_over, &t->is_over);
    assert_non_null(strstr(hear(t, asks, NULL), "Connection: close"));
    assert_non_null(strstr(hear(t, adopted, NULL), "401 "));
    assert_false(t->is_over); /* the silent one may still ask */
    net_pass(t, 1000);
    assert_string_equal(hear(t, is_silent, NULL), "");
    net_turns(t, 3);
    assert_true(t->is_over);
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons(vg_listener_port(l)),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(late, (struct sockaddr *)&a, sizeof a), -1);
    assert_int_equal(errno, ECONNREFUSED);
    close(late);
    close(asks);
    close(adopted);
    close(is_silent);
    vg_listener_free(l);
}

static void freeing_a_server_cuts_its_exchanges(void **state)
{
    struct net_test *t = *state;
    int fd = adopt(t);
    say(fd, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    while (!t->last)
        vg_loop_turn(t->loop, true);
    vg_http_server_free(t->server);
    assert_int_equal(t->n_closed, 1);
    assert_int_equal(t->last_err, VIGIL_E_CANCELED);
    assert_int_equal(vg_http_server_new(t->shared, t->loop, &t->server), 0);
    close(fd);
}

static void a_refused_client_reads_why(void **state)
{
    struct net_test *t = *state;
    struct vg_listener *l = NULL;
    assert_int_equal(vg_listener_open("127.0.0.1", 0, &l, NULL), 0);
    assert_int_equal(vg_http_server_listen(t->server, l, NULL), 0);
    int fd = connect_to(vg_listener_port(l));
    char *block = calloc(1, 200001);
    memset(block, 'a', 200000);
    say(fd, "GET /"); /* and much more than the head may have */
    say(fd, block);
    char *got = hear(t, fd, NULL);
    assert_non_null(strstr(got, " 431 "));
    assert_non_null(strstr(got, "refused: "));
    free(block);
    close(fd);
    net_turns(t, 5);
    net_pass(t, 2000);
    assert_int_equal(vg_http_server_connections(t->server), 0);
    vg_http_server_free(t->server);
    assert_int_equal(vg_http_server_new(t->shared, t->loop, &t->server), 0);
    vg_listener_free(l);
}

static void without_descriptors_accepting_pauses(void **state)
{
    struct net_test *t = *state;
    struct vg_listener *l = NULL;
    assert_int_equal(vg_listener_open("127.0.0.1", 0, &l, NULL), 0);
    assert_int_equal(vg_http_server_listen(t->server, l, NULL), 0);
    int fd = connect_to(vg_listener_port(l));
    struct rlimit old, low;
    getrlimit(RLIMIT_NOFILE, &old);
    low = old;
    low.rlim_cur = (rlim_t)fd; /* no descriptor below it is free */
    int plug[64], n = 0;
    setrlimit(RLIMIT_NOFILE, &low);
    while (n < 64 && (plug[n] = dup(0)) >= 0)
        n++;
    say(fd, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
    net_turns(t, 20);
    assert_int_equal(vg_http_server_connections(t->server), 0);
    setrlimit(RLIMIT_NOFILE, &old);
    while (n)
        close(plug[--n]);
    net_turns(t, 5);
    assert_int_equal(vg_http_server_connections(t->server), 0); /* it does not spin */
    net_pass(t, 100);
    hear(t, fd, "\r\n\r\n");
    close(fd);
    vg_http_server_free(t->server);
    assert_int_equal(vg_http_server_new(t->shared, t->loop, &t->server), 0);
    vg_listener_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_connection_is_served),
        T(a_listener_says_where_and_who),
        cmocka_unit_test(connections_over_a_limit_are_refused),
        T(a_large_answer_arrives_whole),
        T(a_client_that_does_not_read_is_cut),
        T(a_client_that_vanishes_cancels),
        T(a_client_that_vanishes_behind_what_is_not_read_cancels),
        T(a_long_pipeline_does_not_hold_the_loop),
        T(events_of_one_turn_leave_together),
        T(draining_ends_when_the_last_exchange_does),
        T(draining_takes_in_who_waits),
        T(freeing_a_server_cuts_its_exchanges),
        T(a_refused_client_reads_why),
        T(without_descriptors_accepting_pauses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
