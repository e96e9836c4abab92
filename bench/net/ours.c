/* ours.c - see net.h. */
#include <stdlib.h>
#include <string.h>

#include "measure.h"
#include "net.h"
#include "net/server.h"
#include "net/tls.h"

struct ours {
    struct vg_loop *loop;
    struct vg_http_shared *shared;
    struct vg_http_server *server;
    struct vg_listener *listener;
    struct vg_tls *tls;
    struct vg_http_handler handler;
    struct vg_http_exchange **watches;
    size_t n, n_open;
    char *object;
    _Atomic uint64_t refs; /* as a sealed block has */
};

static void must(int r, const char *what)
{
    if (r < 0)
        bench_die("%s: %d", what, r);
}

static void on_head(struct vg_http_exchange *x, void *arg)
{
    (void)arg;
    vg_http_authenticated(x);
}

static void on_drained(struct vg_http_exchange *x, void *arg)
{
    (void)x, (void)arg;
}

static void on_request(struct vg_http_exchange *x, void *arg)
{
    struct ours *o = arg;
    struct vg_http_field f = {VG_SLICE_LIT("Content-Type"), VG_SLICE_LIT("application/json")};
    struct vg_http_head head = {
        .status = 200, .fields = &f, .n_fields = 1, .length = VG_HTTP_STREAMED, .is_watch = true};
    must(vg_http_respond(x, &head), "respond");
    vg_http_release_request(x);
    o->watches[o->n_open++] = x;
}

static void on_progress(struct vg_http_exchange *x, size_t n, void *arg)
{
    (void)x, (void)n, (void)arg;
}

static void on_closed(struct vg_http_exchange *x, int err, void *arg)
{
    (void)x, (void)arg;
    bench_die("a watch ended: %d", err);
}

struct ours *ours_new(bool is_tls, size_t n)
{
    struct ours *o = bench_alloc(1, sizeof *o);
    o->n = n;
    o->watches = bench_alloc(n, sizeof(struct vg_http_exchange *));
    o->object = bench_alloc(1, OBJECT_BYTES);
    memset(o->object, 'o', OBJECT_BYTES);
    o->handler =
        (struct vg_http_handler){on_head, on_request, on_drained, on_progress, on_closed, NULL, o};
    struct vg_http_shared_opts opts = {.handler = &o->handler};
    must(vg_loop_new(vg_clock_system(), &o->loop), "loop");
    must(vg_http_shared_new(&opts, &o->shared), "shared");
    must(vg_http_server_new(o->shared, o->loop, &o->server), "server");
    must(vg_listener_open("127.0.0.1", 0, &o->listener, NULL), "listener");
    struct vg_tls_opts tls = {.cert_file = bench_cert, .key_file = bench_key, .no_ktls = true};
    if (is_tls)
        must(vg_tls_new(&tls, &o->tls, NULL), "tls");
    must(vg_http_server_listen(o->server, o->listener, o->tls), "listen");
    return o;
}

uint16_t ours_port(const struct ours *o)
{
    return vg_listener_port(o->listener);
}

void ours_accept(struct ours *o)
{
    while (o->n_open < o->n)
        vg_loop_turn(o->loop, true);
    ours_settle(o);
}

static void ref(const void *block)
{
    struct ours *o = (struct ours *)(uintptr_t)block;
    atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
}
static void unref(const void *block)
{
    struct ours *o = (struct ours *)(uintptr_t)block;
    atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel);
}

uint64_t ours_bytes_out(const struct ours *o)
{
    struct vg_http_stats stats;
    vg_http_stats(o->shared, &stats);
    return stats.bytes_out;
}

void ours_settle(struct ours *o)
{
    for (int i = 0; i < 3; i++)
        vg_loop_turn(o->loop, false);
}

uint64_t ours_send(struct ours *o, size_t events)
{
    struct vg_slice v[] = {
        VG_SLICE_LIT(EVENT_HEAD), {o->object, OBJECT_BYTES}, VG_SLICE_LIT(EVENT_TAIL)};
    struct vg_http_pin pin = {o, ref, unref};
    for (size_t e = 0; e < events; e++)
        for (size_t i = 0; i < o->n; i++)
            must(vg_http_write(o->watches[i], v, 3, &pin), "write");
    vg_loop_turn(o->loop, false);
    if (atomic_load(&o->refs))
        bench_die("a socket is full");
    return events * o->n * (sizeof EVENT_HEAD - 1 + OBJECT_BYTES + sizeof EVENT_TAIL - 1);
}
