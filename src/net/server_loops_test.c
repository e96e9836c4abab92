/* server_loops_test.c - servers on several loops that share a listener and hand connections over.
 */
#include "server_testing.h"

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
    assert_int_equal(poll(&(struct pollfd){.fd = h.fds[1], .events = POLLIN}, 1, -1), 1);
    ssize_t n = recv(h.fds[1], got, sizeof got, MSG_DONTWAIT);
    assert_true(n > 0 && memmem(got, (size_t)n, "401 ", 4)); /* the second was handed over */
    end_handed(*state, &h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_loops_share_a_listener),
        cmocka_unit_test(a_burst_of_connections_is_shared_by_the_loops),
        T(what_was_handed_to_a_server_that_closes_is_closed),
        T(draining_answers_what_was_handed_over_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
