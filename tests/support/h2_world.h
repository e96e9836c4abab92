/* h2_world.h - a server on a loop that is turned by hand, a handler that notes what it is told,
 * and HTTP/2 clients on socketpairs; for the tests of the HTTP/2 codec. */
#ifndef VG_TEST_H2_WORLD_H
#define VG_TEST_H2_WORLD_H

#include "test_support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "h2_client.h"
#include "net/server.h"

/* What the handler keeps of one exchange; lives until the world ends. */
struct vg_seen {
    struct vg_http_exchange *x; /* NULL once closed */
    char path[64];
    size_t n_body;
    int closed_err;
    unsigned n_closed, n_drained;
    size_t n_progress;
    size_t to_write; /* "/big": bytes that are left */
    bool is_full;
};

struct vg_world {
    struct vg_fake_clock clock;
    struct vg_loop *loop;
    struct vg_http_shared *shared;
    struct vg_http_server *server;
    struct vg_http_handler handler;
    struct vg_seen seen[8192];
    size_t n_seen;
    unsigned n_refused;
    bool are_unauthenticated; /* nobody authenticates */
    bool is_drained;
};

static char vg_world_block[1 << 20]; /* what pinned slices point into */
static int vg_world_pins;            /* held at the moment */

static inline void vg_world_ref(const void *block)
{
    (void)block;
    vg_world_pins++;
}
static inline void vg_world_unref(const void *block)
{
    (void)block;
    vg_world_pins--;
}
static const struct vg_http_pin vg_world_pin = {vg_world_block, vg_world_ref, vg_world_unref};

static inline void vg_world_answer(struct vg_http_exchange *x, int status, uint64_t length)
{
    struct vg_http_field f[] = {{VG_SLICE_LIT("Content-Type"), VG_SLICE_LIT("text/plain")},
                                {VG_SLICE_LIT("Connection"), VG_SLICE_LIT("close")}};
    struct vg_http_head head = {.status = status,
                                .fields = f,
                                .n_fields = VG_ARRAY_LEN(f),
                                .length = length,
                                .is_watch = length == VG_HTTP_STREAMED};
    int r = vg_http_respond(x, &head);
    assert_true(r == 0 || r == -ENOMEM || r == VIGIL_E_CANCELED);
}

static inline void vg_world_text(struct vg_http_exchange *x, int status, struct vg_slice text)
{
    vg_world_answer(x, status, text.n);
    int r = vg_http_write(x, &text, 1, NULL);
    assert_true(r >= 0 || r == -ENOMEM || r == VIGIL_E_CANCELED);
    vg_http_end(x);
}

static inline void vg_world_write_big(struct vg_seen *s)
{
    while (s->to_write > 0) {
        size_t n = VG_MIN(s->to_write, (size_t)10000);
        struct vg_slice v = vg_slice(vg_world_block, n);
        s->to_write -= n;
        int r = vg_http_write(s->x, &v, 1, &vg_world_pin);
        if (r == VG_HTTP_FULL && s->to_write > 0)
            return; /* goes on when it is drained */
        if (r < 0)
            return;
    }
    vg_http_end(s->x);
}

/* /early answers 401 before the body. */
static inline void vg_world_on_head(struct vg_http_exchange *x, void *arg)
{
    struct vg_world *w = arg;
    const struct vg_http_request *r = vg_http_request(x);
    assert_true(w->n_seen < VG_ARRAY_LEN(w->seen));
    struct vg_seen *s = &w->seen[w->n_seen++];
    *s = (struct vg_seen){.x = x, .closed_err = 1};
    snprintf(s->path, sizeof(s->path), "%.*s", VG_SLICE_ARG(r->target));
    vg_http_set_user(x, s);
    if (!w->are_unauthenticated)
        vg_http_authenticated(x);
    if (strcmp(s->path, "/early") == 0)
        vg_world_text(x, 401, VG_SLICE_LIT("who are you"));
}

/* /watch stays open, /echo repeats the body, /big/N sends N bytes, /silent says nothing. */
static inline void vg_world_on_request(struct vg_http_exchange *x, void *arg)
{
    struct vg_seen *s = vg_http_user(x);
    const struct vg_http_request *r = vg_http_request(x);
    (void)arg;
    s->n_body = r->body.n;
    if (strncmp(s->path, "/watch", 6) == 0) {
        vg_http_release_request(x);
        vg_world_answer(x, 200, VG_HTTP_STREAMED);
    } else if (strncmp(s->path, "/big/", 5) == 0) {
        s->to_write = strtoul(s->path + 5, NULL, 10);
        vg_world_answer(x, 200, s->to_write);
        vg_world_write_big(s);
    } else if (strcmp(s->path, "/echo") == 0) {
        vg_world_text(x, 200, r->body);
    } else if (strcmp(s->path, "/silent") != 0) {
        vg_world_text(x, 200, VG_SLICE_LIT("hello"));
    }
}

static inline void vg_world_on_drained(struct vg_http_exchange *x, void *arg)
{
    struct vg_seen *s = vg_http_user(x);
    (void)arg;
    s->n_drained++;
    if (s->to_write > 0)
        vg_world_write_big(s);
}

static inline void vg_world_on_progress(struct vg_http_exchange *x, size_t n, void *arg)
{
    struct vg_seen *s = vg_http_user(x);
    (void)arg;
    s->n_progress += n;
}

static inline void vg_world_on_closed(struct vg_http_exchange *x, int err, void *arg)
{
    struct vg_seen *s = vg_http_user(x);
    (void)arg;
    s->n_closed++;
    s->closed_err = err;
    s->x = NULL;
}

static inline void vg_world_refuse(struct vg_http_exchange *x, int status, const char *why,
                                   struct vg_buf *ret_body, const char **ret_content_type,
                                   void *arg)
{
    struct vg_world *w = arg;
    (void)x;
    w->n_refused++;
    if (vg_buf_printf(ret_body, "%d %s", status, why) == 0)
        *ret_content_type = "text/plain";
}

static inline void vg_world_open(struct vg_world *w, const struct vg_http_limits *limits)
{
    static const struct vg_http_limits none;
    memset(w, 0, sizeof(*w));
    vg_fake_clock_init(&w->clock);
    assert_int_equal(vg_loop_new(&w->clock.clock, &w->loop), 0);
    w->handler = (struct vg_http_handler){.on_head = vg_world_on_head,
                                          .on_request = vg_world_on_request,
                                          .on_drained = vg_world_on_drained,
                                          .on_progress = vg_world_on_progress,
                                          .on_closed = vg_world_on_closed,
                                          .refuse = vg_world_refuse,
                                          .arg = w};
    struct vg_http_shared_opts opts = {.limits = limits ? *limits : none, .handler = &w->handler};
    assert_int_equal(vg_http_shared_new(&opts, &w->shared), 0);
    assert_int_equal(vg_http_server_new(w->shared, w->loop, &w->server), 0);
}

/* Every exchange was closed once, and nothing is pinned. */
static inline void vg_world_close(struct vg_world *w)
{
    vg_http_server_free(w->server);
    vg_loop_turn(w->loop, false);
    for (size_t i = 0; i < w->n_seen; i++)
        assert_int_equal(w->seen[i].n_closed, 1);
    assert_int_equal(vg_world_pins, 0);
    vg_http_shared_free(w->shared);
    vg_loop_free(w->loop);
    vg_fake_clock_done(&w->clock);
}

/* A connected client; its first bytes are under way. */
static inline void vg_world_connect(struct vg_world *w, struct vg_h2c *c,
                                    const struct vg_h2c_opts *opts)
{
    int fd[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd), 0);
    assert_int_equal(vg_http_server_adopt(w->server, fd[0], NULL), 0);
    vg_h2c_open(c, fd[1], opts);
}

static inline void vg_world_turns(struct vg_world *w, struct vg_h2c *c, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        vg_h2c_step(c);
        vg_loop_turn(w->loop, false);
    }
    vg_h2c_step(c);
}

static inline void vg_world_turns_alone(struct vg_world *w)
{
    for (int i = 0; i < 4; i++)
        vg_loop_turn(w->loop, false);
}

/* 200,000 turns: far more than any of these tests needs; the one that does not get there fails. */
#define VG_WORLD_UNTIL(w, c, cond)                                                                 \
    do {                                                                                           \
        unsigned vg_left = 200000;                                                                 \
        while (!(cond) && vg_left-- > 0)                                                           \
            vg_world_turns((w), (c), 1);                                                           \
        if (!(cond))                                                                               \
            fail_msg("never: %s", #cond);                                                          \
    } while (0)

static inline void vg_world_advance(struct vg_world *w, struct vg_h2c *c, uint64_t ms)
{
    vg_fake_clock_advance(&w->clock, ms * VG_NS_PER_MS);
    vg_world_turns(w, c, 4);
}

static inline struct vg_http_stats vg_world_stats(struct vg_world *w)
{
    struct vg_http_stats stats;
    vg_http_stats(w->shared, &stats);
    return stats;
}

#endif
