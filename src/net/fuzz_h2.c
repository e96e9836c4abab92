/* fuzz_h2.c - an HTTP/2 connection without a socket, fed with bytes in random pieces.
 * The first byte of the input seeds the pieces and what the handler does; its lowest bit says that
 * the client's preface and empty SETTINGS come first, so that mutations reach the frames behind.
 * Checked: every exchange that was opened is closed once, nothing stays pinned, the output stays
 * within its bound, and (by ASan) memory is in order. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "conn_int.h"
#include "fuzz.h"

/* Answers of a few bytes that wait to leave, in 128 KiB. */
#define OPEN_MAX 8192
static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
static char block[70000];
static struct vg_http_exchange *exchanges[OPEN_MAX];
static size_t n_open;
static int pins;
static struct vg_rng rng;
static struct vg_fake_clock clock_;
static struct vg_http_server *server;

static size_t at_most(size_t n, size_t max)
{
    return n < max ? n : max;
}

static void ref(const void *b)
{
    (void)b;
    pins++;
}
static void unref(const void *b)
{
    (void)b;
    pins--;
}
static const struct vg_http_pin pin = {block, ref, unref};

static void write_some(struct vg_http_exchange *x)
{
    struct vg_slice v[2] = {vg_slice(block, vg_rng_below(&rng, 300)),
                            vg_slice(block, vg_rng_below(&rng, 40000))};
    if (vg_http_write(x, v, 2, vg_rng_below(&rng, 2) ? &pin : NULL) >= 0 &&
        vg_rng_below(&rng, 4) == 0)
        vg_http_end(x);
}

static void answer(struct vg_http_exchange *x)
{
    struct vg_http_field f = {VG_SLICE_LIT("X-Y"), VG_SLICE_LIT("z")};
    struct vg_http_head head = {.status = 200, .fields = &f, .n_fields = 1};
    head.length = VG_HTTP_STREAMED;
    head.is_watch = vg_rng_below(&rng, 2);
    if (vg_http_respond(x, &head) == 0)
        write_some(x);
}

static void on_head(struct vg_http_exchange *x, void *arg)
{
    (void)arg;
    vg_http_set_user(x, NULL);
    VG_MUST(n_open < OPEN_MAX);
    exchanges[n_open++] = x;
    switch (vg_rng_below(&rng, 8)) {
    case 0:
        answer(x);
        break;
    case 1:
        vg_http_abort(x);
        break;
    }
}

static void on_request(struct vg_http_exchange *x, void *arg)
{
    (void)arg;
    vg_http_set_user(x, x); /* can be answered */
    VG_MUST(vg_http_request(x)->body.n <= 100000);
    if (vg_rng_below(&rng, 2))
        vg_http_release_request(x);
    if (vg_rng_below(&rng, 4))
        answer(x);
}

static void on_drained(struct vg_http_exchange *x, void *arg)
{
    (void)arg;
    write_some(x);
}

static void on_progress(struct vg_http_exchange *x, size_t n, void *arg)
{
    (void)x;
    (void)n;
    (void)arg;
}

static void on_closed(struct vg_http_exchange *x, int err, void *arg)
{
    (void)err;
    (void)arg;
    size_t i = 0;
    while (i < n_open && exchanges[i] != x)
        i++;
    VG_MUST(i < n_open); /* not closed twice */
    exchanges[i] = exchanges[--n_open];
}

static void start(void)
{
    static const struct vg_http_handler handler = {.on_head = on_head,
                                                   .on_request = on_request,
                                                   .on_drained = on_drained,
                                                   .on_progress = on_progress,
                                                   .on_closed = on_closed};
    struct vg_http_shared_opts opts = {
        .limits = {.body_bytes = 100000, .streams = 50, .unsent_bytes = 20000},
        .handler = &handler,
    };
    struct vg_http_shared *shared;
    struct vg_loop *loop;
    vg_fake_clock_init(&clock_);
    VG_MUST(vg_loop_new(&clock_.clock, &loop) == 0 && vg_http_shared_new(&opts, &shared) == 0 &&
            vg_http_server_new(shared, loop, &server) == 0);
}

/* Between two pieces: time passes, the socket takes something, a handler has something to say. */
static void live(struct vg_conn *conn)
{
    if (n_open > 0 && vg_rng_below(&rng, 2)) {
        struct vg_http_exchange *x = exchanges[vg_rng_below(&rng, n_open)];
        if (x->has_responded && !x->has_ended)
            write_some(x);
        else if (!x->has_responded && vg_http_user(x))
            answer(x);
    }
    vg_conn_turn(conn);
    VG_MUST(conn->out.n < VG_CONN_OUT_MAX + 70000);
    if (!conn->is_closing && vg_rng_below(&rng, 4))
        vg_conn_took(conn, at_most(conn->out.n, vg_rng_below(&rng, 100000)));
    if (!conn->is_closing && vg_rng_below(&rng, 16) == 0) {
        vg_fake_clock_advance(&clock_, vg_rng_below(&rng, 20000) * VG_NS_PER_MS);
        conn->codec->ops->tick(conn->codec, vg_conn_now(conn));
    }
    if (!conn->is_closing && vg_rng_below(&rng, 64) == 0)
        conn->codec->ops->drain(conn->codec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vg_conn *conn;
    if (!server)
        start();
    if (size == 0)
        return 0;
    vg_rng_seed(&rng, data[0]);
    n_open = 0;
    VG_MUST(vg_conn_new_detached(server, &conn) == 0 && vg_h2_new(conn, &conn->codec) == 0);
    if (data[0] & 1)
        vg_conn_feed(conn, preface, sizeof(preface) - 1);
    for (size_t at = 1; at < size && !conn->is_closing;) {
        size_t n = at_most(size - at, 1 + vg_rng_below(&rng, 200));
        vg_conn_feed(conn, (const char *)data + at, n);
        at += n;
        live(conn);
    }
    vg_conn_free_detached(conn, VIGIL_E_CANCELED);
    VG_MUST(n_open == 0 && pins == 0);
    return 0;
}
