/* net_testing.h - a server whose handler does what the target says, for the tests of this room.
 *   /echo      answers with the body of the request, once it is there
 *   /now       answers "now" at on_head, without the body
 *   /hold      is left alone: the test answers test->last
 *   /stream    three pieces, chunked
 *   /watch     a head and nothing more; released; the test writes to test->last
 *   /big?n     n bytes of 'x' in pieces of 16 KiB by a pin, as fast as the exchange drains
 *   /ws        accepts a WebSocket
 * What happened is a text in test->log: "head request drained closed(0) ..." */
#ifndef VG_NET_NET_TESTING_H
#define VG_NET_NET_TESTING_H

#include "test_support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "conn_int.h"
#include "server.h"

struct net_test {
    struct vg_fake_clock clock;
    struct vg_loop *loop;
    struct vg_http_shared *shared;
    struct vg_http_server *server;
    struct vg_http_handler handler;
    struct vg_http_exchange *last; /* the newest that is not closed */
    int n_open, n_closed, last_err;
    uint64_t progress;
    size_t big_left; /* of /big, one at a time */
    int pins;
    bool is_over;             /* set by drain */
    bool are_unauthenticated; /* nobody authenticates */
    char log[4096];
};

static char net_big_block[16384];

static inline void net_note(struct net_test *t, const char *text)
{
    size_t n = strlen(t->log);
    snprintf(t->log + n, sizeof t->log - n, "%s%s", n ? " " : "", text);
}

static inline void net_answer(struct vg_http_exchange *x, int status, struct vg_slice body)
{
    struct vg_http_field f = {VG_SLICE_LIT("Content-Type"), VG_SLICE_LIT("text/plain")};
    struct vg_http_head head = {.status = status, .fields = &f, .n_fields = 1, .length = body.n};
    if (vg_http_respond(x, &head) == 0 && vg_http_write(x, &body, 1, NULL) >= 0)
        vg_http_end(x);
}

static inline void net_begin_stream(struct vg_http_exchange *x, bool is_watch)
{
    struct vg_http_head head = {.status = 200, .length = VG_HTTP_STREAMED, .is_watch = is_watch};
    int r = vg_http_respond(x, &head);
    assert_true(r == 0 || r == VIGIL_E_CANCELED || r == -ENOMEM);
}

static inline int net_write(struct vg_http_exchange *x, const char *text)
{
    struct vg_slice s = vg_slice_str(text);
    return vg_http_write(x, &s, 1, NULL);
}

static inline bool net_target_is(struct vg_http_exchange *x, const char *target)
{
    return vg_slice_has_prefix(vg_http_request(x)->target, vg_slice_str(target));
}

static inline void net_pin_ref(const void *pins)
{
    ++*(int *)(uintptr_t)pins;
}
static inline void net_pin_unref(const void *pins)
{
    --*(int *)(uintptr_t)pins;
}

static inline void net_big_more(struct net_test *t, struct vg_http_exchange *x)
{
    struct vg_http_pin pin = {&t->pins, net_pin_ref, net_pin_unref};
    int r = VG_HTTP_OPEN;
    while (t->big_left && r == VG_HTTP_OPEN) {
        struct vg_slice s = {net_big_block, VG_MIN(t->big_left, sizeof net_big_block)};
        t->big_left -= s.n;
        r = vg_http_write(x, &s, 1, &pin);
    }
    if (t->big_left == 0 && r >= 0)
        vg_http_end(x);
}

static inline void net_on_head(struct vg_http_exchange *x, void *arg)
{
    struct net_test *t = arg;
    t->last = x;
    t->n_open++;
    vg_http_set_user(x, t);
    net_note(t, "head");
    if (!t->are_unauthenticated)
        vg_http_authenticated(x);
    if (net_target_is(x, "/now"))
        net_answer(x, 401, VG_SLICE_LIT("now"));
}

static inline void net_on_request(struct vg_http_exchange *x, void *arg)
{
    struct net_test *t = arg;
    assert_ptr_equal(vg_http_user(x), t);
    net_note(t, "request");
    const struct vg_http_request *r = vg_http_request(x);
    if (net_target_is(x, "/echo"))
        net_answer(x, 200, r->body);
    if (net_target_is(x, "/stream")) {
        net_begin_stream(x, false);
        if (net_write(x, "one,") >= 0 && net_write(x, "two,") >= 0 && net_write(x, "three") >= 0)
            vg_http_end(x);
    }
    if (net_target_is(x, "/watch")) {
        net_begin_stream(x, true);
        vg_http_release_request(x);
    }
    if (net_target_is(x, "/big?")) {
        memset(net_big_block, 'x', sizeof net_big_block);
        t->big_left = (size_t)strtoull(r->target.p + 5, NULL, 10);
        net_begin_stream(x, false);
        net_big_more(t, x);
    }
    if (net_target_is(x, "/ws"))
        assert_int_equal(vg_http_accept_websocket(x, NULL, false), 0);
}

static inline void net_on_drained(struct vg_http_exchange *x, void *arg)
{
    struct net_test *t = arg;
    if (t->big_left)
        net_big_more(t, x);
    else
        net_note(t, "drained");
}

static inline void net_on_progress(struct vg_http_exchange *x, size_t n, void *arg)
{
    struct net_test *t = arg;
    (void)x;
    assert_true(n > 0);
    t->progress += n;
}

static inline void net_on_closed(struct vg_http_exchange *x, int err, void *arg)
{
    struct net_test *t = arg;
    char text[32];
    t->n_open--;
    t->n_closed++;
    t->last_err = err;
    if (t->last == x)
        t->last = NULL;
    snprintf(text, sizeof text, "closed(%s)", err ? vg_err_name(err) : "0");
    net_note(t, text);
}

static inline void net_refuse(struct vg_http_exchange *x, int status, const char *why,
                              struct vg_buf *ret_body, const char **ret_content_type, void *arg)
{
    struct net_test *t = arg;
    char text[32];
    snprintf(text, sizeof text, "refuse(%d%s)", status, x ? "" : ",none");
    net_note(t, text);
    if (vg_buf_printf(ret_body, "refused: %s", why) == 0)
        *ret_content_type = "application/test";
}

static inline void net_test_open(struct net_test *t, const struct vg_http_limits *limits)
{
    *t = (struct net_test){.handler = {net_on_head, net_on_request, net_on_drained, net_on_progress,
                                       net_on_closed, net_refuse, t}};
    vg_fake_clock_init(&t->clock);
    assert_int_equal(vg_loop_new(&t->clock.clock, &t->loop), 0);
    struct vg_http_shared_opts opts = {.handler = &t->handler};
    if (limits)
        opts.limits = *limits;
    assert_int_equal(vg_http_shared_new(&opts, &t->shared), 0);
    assert_int_equal(vg_http_server_new(t->shared, t->loop, &t->server), 0);
}

static inline void net_test_close(struct net_test *t)
{
    vg_http_server_free(t->server);
    assert_int_equal(t->n_open, 0);
    vg_http_shared_free(t->shared);
    vg_loop_free(t->loop);
    vg_fake_clock_done(&t->clock);
    assert_int_equal(t->pins, 0);
}

static inline void net_turns(struct net_test *t, int n)
{
    for (int i = 0; i < n; i++)
        vg_loop_turn(t->loop, false);
}

/* Let time pass, then turn. */
static inline void net_pass(struct net_test *t, uint64_t ms)
{
    vg_fake_clock_advance(&t->clock, ms * VG_NS_PER_MS);
    net_turns(t, 3);
}

#endif
