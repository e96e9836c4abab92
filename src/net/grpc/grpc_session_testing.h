/* grpc_session_testing.h - for tests: a session and an nghttp2 server in memory, and what goes
 * between the two. */
#ifndef VG_NET_GRPC_GRPC_SESSION_TESTING_H
#define VG_NET_GRPC_GRPC_SESSION_TESTING_H

#include "grpc_testing.h"

#include "session.h"

struct grpc_test_session {
    struct vg_grpc_session s;
    struct grpc_test_peer peer;
    struct vg_outq_pool pool;
    unsigned n_wakes, n_ready, n_going, n_pongs;
    bool has_failed;
    struct vg_status status;
};

/* ---- between the two ---- */

static inline void on_wake(struct vg_grpc_session *s)
{
    VG_CONTAINER_OF(s, struct grpc_test_session, s)->n_wakes++;
}
static inline void on_ready(struct vg_grpc_session *s)
{
    VG_CONTAINER_OF(s, struct grpc_test_session, s)->n_ready++;
}
static inline void on_going(struct vg_grpc_session *s, const char *why)
{
    (void)why;
    VG_CONTAINER_OF(s, struct grpc_test_session, s)->n_going++;
}
static inline void on_ponged(struct vg_grpc_session *s)
{
    VG_CONTAINER_OF(s, struct grpc_test_session, s)->n_pongs++;
}
/* As a pool would: the message goes, the caller hears. */
static inline void on_ended(struct vg_grpc_session *s, struct vg_grpc_call *c)
{
    (void)s;
    assert_null(c->stream);
    c->pool = NULL;
    c->msg = vg_grpc_msg_unref(c->msg);
    c->on_end(c);
}
static const struct vg_grpc_session_ops ops = {on_wake, on_ready, on_going, on_ponged, on_ended};

static inline void open_world(struct grpc_test_session *w, size_t message_max, uint32_t window)
{
    *w = (struct grpc_test_session){0};
    struct vg_grpc_session_opts opts = {.ops = &ops,
                                        .name = "http://test",
                                        .authority = "test:1",
                                        .message_max = message_max ? message_max : 1 << 20,
                                        .window = window ? window : 1 << 20,
                                        .pool = &w->pool};
    assert_int_equal(vg_grpc_session_init(&w->s, &opts), 0);
    grpc_test_peer_open(&w->peer, false);
}

static inline void close_world(struct grpc_test_session *w)
{
    vg_grpc_session_lost(&w->s, "the test is over");
    vg_grpc_session_done(&w->s);
    grpc_test_peer_close(&w->peer);
    vg_outq_pool_done(&w->pool);
}

/* The state of a test that needs no other limits. */
static inline int setup(void **state)
{
    static struct grpc_test_session w;
    open_world(&w, 0, 0);
    *state = &w;
    return 0;
}
static inline int teardown(void **state)
{
    close_world(*state);
    return 0;
}
#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static inline bool to_peer(struct grpc_test_session *w)
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

static inline void feed(struct grpc_test_session *w, const void *p, size_t n)
{
    if (!w->has_failed && vg_grpc_session_receive(&w->s, p, n, &w->status) < 0)
        w->has_failed = true;
}

static inline bool from_peer(struct grpc_test_session *w, size_t piece)
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

static inline void talk_in(struct grpc_test_session *w, size_t piece)
{
    bool moved = true;
    while (moved) {
        moved = to_peer(w);
        moved = from_peer(w, piece) || moved;
    }
}
static inline void talk(struct grpc_test_session *w)
{
    talk_in(w, SIZE_MAX / 2);
}

static inline void start(struct grpc_test_session *w, struct grpc_test_call *t)
{
    static const struct vg_grpc_field none = {0};
    t->call.pool = (struct vg_grpc_pool *)w; /* under way, as far as a call can tell */
    assert_int_equal(vg_grpc_session_start(&w->s, &t->call, &none, 0), 0);
}

/* A call whose request has reached the server. */
static inline struct grpc_test_request *begin(struct grpc_test_session *w, struct grpc_test_call *t,
                                              unsigned flags)
{
    grpc_test_call_init(t, flags, "ask");
    start(w, t);
    talk(w);
    assert_true(w->peer.n > 0);
    return w->peer.requests[w->peer.n - 1];
}

#endif
