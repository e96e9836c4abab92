/* grpc_pool_testing.h - for tests: servers on sockets of their own (grpc_testing.h behind a
 * listener) and a pool on a loop that is turned by hand. */
#ifndef VG_NET_GRPC_GRPC_POOL_TESTING_H
#define VG_NET_GRPC_GRPC_POOL_TESTING_H

#include "grpc_testing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "net/tls_testing.h"
#include "pool_int.h"

#define GRPC_TEST_CONNS 32
#define GRPC_TEST_LIMIT_S 60

struct grpc_test_conn {
    int fd; /* -1: closed */
    struct grpc_test_peer peer;
    bool is_mute;  /* reads, says nothing */
    bool is_stuck; /* does not even read */
};

struct grpc_test_server {
    int fd; /* -1: does not listen */
    int port;
    char url[64];
    struct grpc_test_conn conns[GRPC_TEST_CONNS];
    size_t n_conns;
    bool is_mute;      /* new connections */
    const char *greet; /* new connections get these bytes, and nothing else */
    size_t greet_n;
};

static inline void grpc_test_listen(struct grpc_test_server *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                            .sin_port = htons((uint16_t)s->port)};
    socklen_t n = sizeof a;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    assert_int_equal(bind(s->fd, (struct sockaddr *)&a, n), 0);
    assert_int_equal(listen(s->fd, 64), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&a, &n), 0);
    s->port = ntohs(a.sin_port);
    snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d", s->port);
}
static inline void grpc_test_open(struct grpc_test_server *s)
{
    *s = (struct grpc_test_server){0};
    grpc_test_listen(s);
}
static inline void grpc_test_hang_up(struct grpc_test_conn *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}
/* Nobody is there any more; the port stays known. */
static inline void grpc_test_die(struct grpc_test_server *s)
{
    for (size_t i = 0; i < s->n_conns; i++)
        grpc_test_hang_up(&s->conns[i]);
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}
static inline void grpc_test_close(struct grpc_test_server *s)
{
    grpc_test_die(s);
    for (size_t i = 0; i < s->n_conns; i++)
        grpc_test_peer_close(&s->conns[i].peer);
    s->n_conns = 0;
}

static inline void grpc_test_accept(struct grpc_test_server *s)
{
    int fd = s->fd < 0 ? -1 : accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    assert_true(s->n_conns < GRPC_TEST_CONNS);
    struct grpc_test_conn *c = &s->conns[s->n_conns++];
    *c = (struct grpc_test_conn){.fd = fd, .is_mute = s->is_mute || s->greet};
    grpc_test_peer_open(&c->peer, false);
    if (s->greet)
        assert_int_equal(send(fd, s->greet, s->greet_n, MSG_NOSIGNAL), s->greet_n);
}
static inline void grpc_test_conn_step(struct grpc_test_conn *c)
{
    uint8_t in[65536];
    const uint8_t *p;
    ssize_t n;
    if (c->fd < 0 || c->is_stuck)
        return;
    while ((n = recv(c->fd, in, sizeof in, 0)) > 0)
        if (!c->is_mute)
            assert_true(nghttp2_session_mem_recv(c->peer.h2, in, (size_t)n) >= 0);
    if (n == 0) {
        grpc_test_hang_up(c);
        return;
    }
    while (!c->is_mute && (n = nghttp2_session_mem_send(c->peer.h2, &p)) > 0)
        for (ssize_t at = 0; at < n;) {
            ssize_t put = send(c->fd, p + at, (size_t)(n - at), MSG_NOSIGNAL);
            if (put < 0 && errno != EAGAIN)
                return;
            at += VG_MAX(put, 0);
        }
}
static inline void grpc_test_step(struct grpc_test_server *s)
{
    grpc_test_accept(s);
    for (size_t i = 0; i < s->n_conns; i++)
        grpc_test_conn_step(&s->conns[i]);
}
static inline struct grpc_test_conn *grpc_test_last(struct grpc_test_server *s)
{
    assert_true(s->n_conns > 0);
    return &s->conns[s->n_conns - 1];
}

/* ---- the world ---- */

struct grpc_test_world {
    struct vg_fake_clock clock;
    struct vg_loop *loop;
    struct vg_grpc_pool *pool;
    struct grpc_test_server servers[3];
    size_t n_servers;
    bool is_ready;
    unsigned n_states;
    char why[1024];
    /* tokens */
    unsigned n_renewals;
};

static inline void grpc_test_on_state(struct vg_grpc_pool *pool, bool is_ready, const char *why,
                                      void *arg)
{
    struct grpc_test_world *w = arg;
    (void)pool;
    w->is_ready = is_ready;
    w->n_states++;
    snprintf(w->why, sizeof w->why, "%s", why);
}

static inline void grpc_test_world_open(struct grpc_test_world *w, size_t n_servers)
{
    *w = (struct grpc_test_world){.n_servers = n_servers};
    vg_fake_clock_init(&w->clock);
    assert_int_equal(vg_loop_new(&w->clock.clock, &w->loop), 0);
    for (size_t i = 0; i < n_servers; i++)
        grpc_test_open(&w->servers[i]);
}
static inline void grpc_test_pool_open(struct grpc_test_world *w,
                                       const struct vg_grpc_pool_opts *more)
{
    struct vg_grpc_pool_opts o = more ? *more : (struct vg_grpc_pool_opts){0};
    const char *urls[3] = {w->servers[0].url, w->servers[1].url, w->servers[2].url};
    struct vg_status status = {0};
    o.loop = w->loop;
    if (!o.endpoints) {
        o.endpoints = urls;
        o.n_endpoints = w->n_servers;
    }
    o.on_state = grpc_test_on_state;
    o.arg = w;
    if (vg_grpc_pool_new(&o, &w->pool, &status) < 0)
        fail_msg("%s", status.message);
}
static inline void grpc_test_world_close(struct grpc_test_world *w)
{
    vg_grpc_pool_free(w->pool);
    for (size_t i = 0; i < w->n_servers; i++)
        grpc_test_close(&w->servers[i]);
    vg_loop_free(w->loop);
    vg_fake_clock_done(&w->clock);
}

static inline void grpc_test_turn(struct grpc_test_world *w)
{
    vg_loop_turn(w->loop, false);
    for (size_t i = 0; i < w->n_servers; i++)
        grpc_test_step(&w->servers[i]);
    vg_loop_turn(w->loop, false);
}
/* Turn until the expression holds; time stands still. */
#define grpc_test_until(w, expression)                                                             \
    for (time_t limit_ = time(NULL) + GRPC_TEST_LIMIT_S; !(expression);) {                         \
        grpc_test_turn(w);                                                                         \
        if (time(NULL) > limit_)                                                                   \
            fail_msg("waited in vain for %s", #expression);                                        \
        poll(NULL, 0, 1);                                                                          \
    }
/* Time passes, and everybody does what is due. */
static inline void grpc_test_pass(struct grpc_test_world *w, uint64_t ms)
{
    vg_fake_clock_advance(&w->clock, ms * VG_NS_PER_MS);
    for (int i = 0; i < 5; i++)
        grpc_test_turn(w);
}

static inline void grpc_test_call(struct grpc_test_world *w, struct grpc_test_call *t,
                                  unsigned flags)
{
    grpc_test_call_init(t, flags, "ask");
    assert_int_equal(vg_grpc_start(w->pool, &t->call), 0);
}
/* The newest request at this server, when there are n on its newest connection. */
static inline struct grpc_test_request *grpc_test_request(struct grpc_test_world *w,
                                                          struct grpc_test_server *s, size_t n)
{
    grpc_test_until(w, s->n_conns > 0 && grpc_test_last(s)->peer.n >= n);
    struct grpc_test_peer *p = &grpc_test_last(s)->peer;
    return p->requests[p->n - 1];
}
static inline void grpc_test_answer(struct grpc_test_server *s, struct grpc_test_request *r,
                                    const char *text)
{
    grpc_test_reply(&grpc_test_last(s)->peer, r, text);
}
/* One server, and a pool that has not met it yet. */
static inline void grpc_test_open_one(struct grpc_test_world *w)
{
    grpc_test_world_open(w, 1);
    grpc_test_pool_open(w, NULL);
}
/* Two servers are ready, and nobody calls yet. */
static inline void grpc_test_open_two(struct grpc_test_world *w, const struct vg_grpc_pool_opts *o)
{
    grpc_test_world_open(w, 2);
    grpc_test_pool_open(w, o);
    grpc_test_until(w, vg_grpc_pool_is_ready(w->pool, 1) && vg_grpc_pool_is_ready(w->pool, 2));
}

/* ---- as the state of a test ---- */

static inline int grpc_test_setup_one(void **state)
{
    static struct grpc_test_world w;
    grpc_test_open_one(&w);
    *state = &w;
    return 0;
}
static inline int grpc_test_setup_two(void **state)
{
    static struct grpc_test_world w;
    grpc_test_open_two(&w, NULL);
    *state = &w;
    return 0;
}
static inline int grpc_test_teardown(void **state)
{
    grpc_test_world_close(*state);
    return 0;
}
#define WITH_ONE(test)                                                                             \
    cmocka_unit_test_setup_teardown(test, grpc_test_setup_one, grpc_test_teardown)
#define WITH_TWO(test)                                                                             \
    cmocka_unit_test_setup_teardown(test, grpc_test_setup_two, grpc_test_teardown)

#endif
