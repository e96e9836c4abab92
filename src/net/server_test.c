/* server_test.c - servers on real sockets: limits, draining, slow readers, several loops.
 * One long file: all cases share its server and clients. */
#include "net_testing.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static int setup(void **state)
{
    static struct net_test t;
    net_test_open(&t, NULL);
    *state = &t;
    return 0;
}

static int teardown(void **state)
{
    net_test_close(*state);
    return 0;
}

static int connect_to(uint16_t port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static int adopt(struct net_test *t)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    assert_int_equal(vg_http_server_adopt(t->server, fds[0], NULL), 0);
    return fds[1];
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Turn until the client has read `want` at the end of what came, or the end of the stream (want
 * NULL). What was read. */
static char *hear(struct net_test *t, int fd, const char *want)
{
    static char got[1 << 20];
    size_t n = 0;
    got[0] = 0;
    for (int i = 0; i < 100000; i++) {
        vg_loop_turn(t->loop, false);
        ssize_t r = recv(fd, got + n, sizeof got - 1 - n, MSG_DONTWAIT);
        if (r > 0) {
            n += (size_t)r;
            got[n] = 0;
        }
        bool is_end = r == 0 || (r < 0 && errno == ECONNRESET);
        if (want ? n >= strlen(want) && strcmp(got + n - strlen(want), want) == 0 : is_end)
            return got;
        assert_false(is_end);
        if (r < 0)
            poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 1);
    }
    fail_msg("waited for %s, got %s", want ? want : "the end", got);
    return NULL;
}

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

static void set_over(void *arg)
{
    *(bool *)arg = true;
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

/* ---- several loops ---- */

#define LOOPS 3
#define CLIENTS 8

struct fleet {
    struct vg_http_shared *shared;
    uint16_t port;
};

static void echo_head(struct vg_http_exchange *x, void *arg)
{
    (void)x, (void)arg;
}
static void echo_request(struct vg_http_exchange *x, void *arg)
{
    (void)arg;
    net_answer(x, 200, vg_http_request(x)->body);
}
static void echo_progress(struct vg_http_exchange *x, size_t n, void *arg)
{
    (void)x, (void)n, (void)arg;
}
static void echo_closed(struct vg_http_exchange *x, int err, void *arg)
{
    (void)x, (void)arg;
    assert_int_equal(err, 0);
}
/* Keeps nothing, so that loops may share it. */
static const struct vg_http_handler echo = {echo_head,   echo_request, echo_head, echo_progress,
                                            echo_closed, NULL,         NULL};

static void one_client(unsigned index, void *arg)
{
    struct fleet *f = arg;
    for (int round = 0; round < 20; round++) {
        int fd = connect_to(f->port);
        fcntl(fd, F_SETFL, 0);
        char text[128], got[512];
        snprintf(text, sizeof text,
                 "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: "
                 "8\r\n\r\n%04u%04d",
                 index, round);
        say(fd, text);
        size_t n = 0;
        ssize_t r;
        while ((r = recv(fd, got + n, sizeof got - 1 - n, 0)) > 0)
            n += (size_t)r;
        got[n] = 0;
        assert_true(n > 8);
        assert_memory_equal(got + n - 8, text + strlen(text) - 8, 8);
        close(fd);
    }
}

struct closing {
    struct vg_mail mail;
    struct vg_http_server *server;
};

static void close_server(struct vg_mail *mail)
{
    vg_http_server_free(VG_CONTAINER_OF(mail, struct closing, mail)->server);
}

static void several_loops_share_a_listener(void **state)
{
    (void)state;
    struct fleet f;
    struct vg_listener *l = NULL;
    assert_int_equal(vg_listener_open("127.0.0.1", 0, &l, NULL), 0);
    f.port = vg_listener_port(l);
    struct vg_http_shared_opts opts = {.handler = &echo};
    assert_int_equal(vg_http_shared_new(&opts, &f.shared), 0);
    struct vg_loop *loops[LOOPS];
    struct closing closing[LOOPS];
    for (int i = 0; i < LOOPS; i++) {
        assert_int_equal(vg_loop_new(vg_clock_system(), &loops[i]), 0);
        assert_int_equal(vg_http_server_new(f.shared, loops[i], &closing[i].server), 0);
        assert_int_equal(vg_http_server_listen(closing[i].server, l, NULL), 0);
    }
    for (int i = 0; i < LOOPS; i++)
        assert_int_equal(vg_loop_start(loops[i], "net-test"), 0);
    vg_test_threads(CLIENTS, one_client, &f);
    struct vg_http_stats stats;
    vg_http_stats(f.shared, &stats);
    assert_int_equal(stats.requests, CLIENTS * 20);
    for (int i = 0; i < LOOPS; i++) {
        closing[i].mail.run = close_server;
        vg_loop_post(loops[i], &closing[i].mail);
        vg_loop_stop(loops[i]);
        vg_loop_free(loops[i]);
    }
    vg_http_stats(f.shared, &stats);
    assert_int_equal(stats.requests, CLIENTS * 20);
    assert_int_equal(stats.open, 0);
    vg_http_shared_free(f.shared);
    vg_listener_free(l);
}

static void a_burst_of_connections_is_shared_by_the_loops(void **state)
{
    (void)state;
    struct vg_http_shared_opts opts = {.handler = &echo};
    struct vg_http_shared *shared = NULL;
    struct vg_listener *l = NULL;
    struct vg_loop *loops[LOOPS];
    struct vg_http_server *servers[LOOPS];
    struct vg_http_stats stats;
    int fds[LOOPS * 20];
    assert_int_equal(vg_http_shared_new(&opts, &shared), 0);
    assert_int_equal(vg_listener_open("127.0.0.1", 0, &l, NULL), 0);
    for (int i = 0; i < LOOPS; i++) {
        assert_int_equal(vg_loop_new(vg_clock_system(), &loops[i]), 0);
        assert_int_equal(vg_http_server_new(shared, loops[i], &servers[i]), 0);
        assert_int_equal(vg_http_server_listen(servers[i], l, NULL), 0);
        assert_int_equal(vg_loop_start(loops[i], "net-test"), 0);
    }
    for (size_t i = 0; i < VG_ARRAY_LEN(fds); i++)
        fds[i] = connect_to(vg_listener_port(l));
    do
        vg_http_stats(shared, &stats);
    while (stats.open < VG_ARRAY_LEN(fds));
    for (int i = 0; i < LOOPS; i++)
        vg_loop_stop(loops[i]); /* what was handed over is there now */
    for (int i = 0; i < LOOPS; i++)
        vg_loop_turn(loops[i], false);
    for (int i = 0; i < LOOPS; i++) {
        assert_int_equal(vg_http_server_connections(servers[i]), 20);
        vg_http_server_free(servers[i]);
        vg_loop_free(loops[i]);
    }
    vg_http_stats(shared, &stats);
    assert_int_equal(stats.open, 0);
    for (size_t i = 0; i < VG_ARRAY_LEN(fds); i++)
        close(fds[i]);
    vg_http_shared_free(shared);
    vg_listener_free(l);
}

/* Two loops turned by hand: the test's server accepts two connections, of which the other server
 * has been handed one that it has not looked at. */
struct handed {
    struct vg_listener *l;
    struct vg_loop *loop;
    struct vg_http_server *other;
    int fds[2];
};

static void hand_over_one(struct net_test *t, struct handed *h)
{
    assert_int_equal(vg_listener_open("127.0.0.1", 0, &h->l, NULL), 0);
    assert_int_equal(vg_http_server_listen(t->server, h->l, NULL), 0);
    assert_int_equal(vg_loop_new(vg_clock_system(), &h->loop), 0);
    assert_int_equal(vg_http_server_new(t->shared, h->loop, &h->other), 0);
    assert_int_equal(vg_http_server_listen(h->other, h->l, NULL), 0);
    for (int i = 0; i < 2; i++) {
        h->fds[i] = connect_to(vg_listener_port(h->l));
        say(h->fds[i], "GET /now HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    struct vg_http_stats stats;
    do {
        vg_loop_turn(t->loop, false);
        vg_http_stats(t->shared, &stats);
    } while (stats.open < 2);
    assert_int_equal(vg_http_server_connections(t->server), 1);
    assert_int_equal(vg_http_server_connections(h->other), 0);
}

static void end_handed(struct net_test *t, struct handed *h)
{
    vg_http_server_free(h->other);
    vg_loop_turn(h->loop, false);
    vg_loop_free(h->loop);
    struct vg_http_stats stats;
    vg_http_stats(t->shared, &stats);
    assert_int_equal(stats.open, 1);
    close(h->fds[0]);
    close(h->fds[1]);
    vg_http_server_free(t->server);
    assert_int_equal(vg_http_server_new(t->shared, t->loop, &t->server), 0);
    vg_listener_free(h->l);
}

static void what_was_handed_to_a_server_that_closes_is_closed(void **state)
{
    struct handed h = {0};
    hand_over_one(*state, &h);
    end_handed(*state, &h);
}

static void draining_answers_what_was_handed_over_before(void **state)
{
    struct handed h = {0};
    bool is_over = false;
    hand_over_one(*state, &h);
    vg_http_server_drain(h.other, set_over, &is_over);
    vg_loop_turn(h.loop, false);
    assert_false(is_over);
    while (!is_over)
        vg_loop_turn(h.loop, true);
    char got[256];
    ssize_t n = recv(h.fds[1], got, sizeof got, MSG_DONTWAIT);
    assert_true(n > 0 && memmem(got, (size_t)n, "401 ", 4)); /* the second was handed over */
    end_handed(*state, &h);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

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
        cmocka_unit_test(several_loops_share_a_listener),
        cmocka_unit_test(a_burst_of_connections_is_shared_by_the_loops),
        T(what_was_handed_to_a_server_that_closes_is_closed),
        T(draining_answers_what_was_handed_over_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
