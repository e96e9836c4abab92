/* fuzz_h1.c - an HTTP/1.1 connection without a socket, fed with the same bytes twice: at once, and
 * in random pieces (the first byte of the input seeds them) that may leave in random pieces, too.
 * Checked: both times the handler is told the same and the client gets the same answers, so that no
 * request depends on where a packet ends; every exchange is closed once; nothing stays pinned. */
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "conn_int.h"
#include "fuzz.h"

/* 32 KiB: below what is read ahead, so that no input is cut off for its size. */
#define INPUT_MAX 32768
static const char block[1000] = "by reference";
static struct vg_fake_clock clock_;
static struct vg_http_server *server;
static struct vg_buf told, got; /* in this run */
static size_t n_open;
static size_t n_answered; /* bytes of got that answer whole requests */
static bool is_refused;
static int pins;

static void tell(const char *what, struct vg_slice text)
{
    VG_MUST(vg_buf_printf(&told, "%s %zu:", what, text.n) == 0);
    VG_MUST(vg_buf_append_slice(&told, text) == 0);
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

static void answer(struct vg_http_exchange *x, uint64_t length)
{
    static const struct vg_http_pin pin = {block, ref, unref};
    struct vg_http_field f = {VG_SLICE_LIT("X-Y"), VG_SLICE_LIT("z")};
    struct vg_http_head head = {.status = 200, .fields = &f, .n_fields = 1, .length = length};
    struct vg_slice v[] = {VG_SLICE_LIT("copied"), vg_slice(block, sizeof block)};
    if (vg_http_respond(x, &head) == 0 && vg_http_write(x, v, 2, &pin) >= 0)
        vg_http_end(x);
}

/* The second character of the target says what is done. */
static char wish(struct vg_http_exchange *x)
{
    struct vg_slice target = vg_http_request(x)->target;
    return target.n > 1 ? target.p[1] : 'e';
}

static void on_head(struct vg_http_exchange *x, void *arg)
{
    (void)arg;
    n_open++;
    const struct vg_http_request *r = vg_http_request(x);
    tell("head", r->method_text);
    tell("target", r->target);
    tell("authority", r->authority);
    for (size_t i = 0; i < r->n_fields; i++) {
        tell("name", r->fields[i].name);
        tell("value", r->fields[i].value);
    }
    if (wish(x) == 'n')
        answer(x, 6 + sizeof block);
    if (wish(x) == 'a')
        vg_http_abort(x);
}

static void on_request(struct vg_http_exchange *x, void *arg)
{
    (void)arg;
    tell("body", vg_http_request(x)->body);
    if (wish(x) == 's')
        answer(x, VG_HTTP_STREAMED);
    else if (wish(x) == 'u' && vg_http_request(x)->wants_websocket)
        VG_MUST(vg_http_accept_websocket(x, NULL, false) == 0);
    else if (wish(x) != 'w')
        answer(x, 6 + sizeof block);
}

static void on_drained(struct vg_http_exchange *x, void *arg)
{
    (void)x, (void)arg;
}
static void on_progress(struct vg_http_exchange *x, size_t n, void *arg)
{
    (void)x, (void)n, (void)arg;
}
static void on_closed(struct vg_http_exchange *x, int err, void *arg)
{
    (void)x, (void)err, (void)arg;
    VG_MUST(n_open-- == 1); /* one at a time */
    if (!is_refused)
        n_answered = got.n;
}
/* Which of two faults is found first may depend on the pieces. */
static void refuse(struct vg_http_exchange *x, int status, const char *why, struct vg_buf *ret_body,
                   const char **ret_content_type, void *arg)
{
    (void)x, (void)status, (void)why, (void)ret_body, (void)arg;
    *ret_content_type = "text/plain";
    is_refused = true;
    tell("refused", vg_slice("", 0));
}

static void start(void)
{
    static const struct vg_http_handler handler = {on_head,   on_request, on_drained, on_progress,
                                                   on_closed, refuse,     NULL};
    struct vg_http_shared_opts opts = {
        .limits = {.head_bytes = 4096, .head_fields = 16, .body_bytes = 8192}, .handler = &handler};
    struct vg_loop *loop = NULL;
    struct vg_http_shared *shared = NULL;
    vg_fake_clock_init(&clock_);
    VG_MUST(vg_loop_new(&clock_.clock, &loop) == 0);
    VG_MUST(vg_http_shared_new(&opts, &shared) == 0);
    VG_MUST(vg_http_server_new(shared, loop, &server) == 0);
}

/* Let bytes leave: all of them, or (rng) some, until nothing is left. */
static void take(struct vg_conn *conn, struct vg_rng *rng)
{
    while (!conn->is_closing && (vg_conn_turn(conn), conn->out.n)) {
        size_t n = rng ? 1 + vg_rng_below(rng, conn->out.n) : conn->out.n;
        VG_MUST(vg_buf_reserve(&got, n) == 0);
        vg_outq_peek(&conn->out, got.p + got.n, n);
        got.n += n;
        vg_conn_took(conn, n);
    }
}

static void run(const char *p, size_t n, struct vg_rng *rng)
{
    struct vg_conn *conn = NULL;
    n_answered = 0;
    is_refused = false;
    VG_MUST(vg_conn_new_detached(server, &conn) == 0);
    VG_MUST(vg_h1_new(conn, &conn->codec) == 0);
    while (n && !conn->is_closing) {
        size_t part = rng ? 1 + vg_rng_below(rng, VG_MIN(n, (size_t)64)) : n;
        char *copy = malloc(part); /* ASan sees a byte too far */
        memcpy(copy, p, part);
        vg_conn_feed(conn, copy, part);
        free(copy);
        p += part;
        n -= part;
        take(conn, rng);
    }
    vg_conn_free_detached(conn, VIGIL_E_CANCELED);
    VG_MUST(n_open == 0 && pins == 0);
    if (is_refused)
        got.n = n_answered;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    if (!server)
        start();
    if (size < 1 || size > INPUT_MAX)
        return 0;
    const char *p = (const char *)data + 1;
    if (vg_slice_has_prefix(vg_slice(p, size - 1), vg_slice_str(preface)))
        return 0; /* HTTP/2 has a fuzzer of its own */
    struct vg_rng rng;
    vg_rng_seed(&rng, data[0]);
    run(p, size - 1, NULL);
    struct vg_buf told_at_once = told, got_at_once = got;
    told = got = (struct vg_buf){0};
    run(p, size - 1, &rng);
    VG_MUST(vg_slice_eq(vg_buf_slice(&told), vg_buf_slice(&told_at_once)));
    VG_MUST(vg_slice_eq(vg_buf_slice(&got), vg_buf_slice(&got_at_once)));
    vg_buf_done(&told);
    vg_buf_done(&got);
    vg_buf_done(&told_at_once);
    vg_buf_done(&got_at_once);
    return 0;
}
