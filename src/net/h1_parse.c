/* h1_parse.c - a request's head and body, by llhttp without any of its leniencies.
 * Beyond what llhttp refuses: a head whose lines are not clean (h1_lines.c), none or two Host
 * fields, a length beside chunks, codings other than chunked. */
#include <errno.h>
#include <strings.h>

#include "h1_int.h"
#include "request.h"

static struct vg_h1 *h1_of(llhttp_t *parser)
{
    return VG_CONTAINER_OF(parser, struct vg_h1, parser);
}

int vg_h1_refuse_with(struct vg_h1 *h, int status, const char *why)
{
    if (h->refuse_status == 0) {
        h->refuse_status = status;
        h->refuse_why = why;
    }
    return -1;
}

/* What stops the parser. */
static int check(struct vg_h1 *h, int r)
{
    if (r == 0)
        return 0;
    if (r == VIGIL_E_BUSY)
        return vg_h1_refuse_with(h, 429, "Requests hold too much memory, try again later");
    if (r != VIGIL_E_TOO_LARGE)
        return vg_h1_refuse_with(h, 503, "The server lacks memory for this request");
    return vg_h1_refuse_with(h, 431, "The head of the request is too large");
}

static int on_method(llhttp_t *parser, const char *p, size_t n)
{
    struct vg_h1 *h = h1_of(parser);
    return check(h, vg_exchange_add_method(&h->x, p, n));
}

static int on_url(llhttp_t *parser, const char *p, size_t n)
{
    struct vg_h1 *h = h1_of(parser);
    return check(h, vg_exchange_add_target(&h->x, p, n));
}

/* Trailers come by the same callbacks, after the head; they are not kept. */
static int on_name(llhttp_t *parser, const char *p, size_t n)
{
    struct vg_h1 *h = h1_of(parser);
    return h->state == VG_H1_HEAD ? check(h, vg_exchange_add_name(&h->x, p, n)) : 0;
}

static int on_value(llhttp_t *parser, const char *p, size_t n)
{
    struct vg_h1 *h = h1_of(parser);
    return h->state == VG_H1_HEAD ? check(h, vg_exchange_add_value(&h->x, p, n)) : 0;
}

static int on_value_complete(llhttp_t *parser)
{
    struct vg_h1 *h = h1_of(parser);
    return h->state == VG_H1_HEAD ? check(h, vg_exchange_end_field(&h->x)) : 0;
}

static bool value_is(struct vg_slice value, const char *text)
{
    return value.n == strlen(text) && strncasecmp(value.p, text, value.n) == 0;
}

static int check_field(struct vg_h1 *h, const struct vg_http_field *f)
{
    if (vg_slice_eq(f->name, VG_SLICE_LIT("host"))) {
        if (h->has_host)
            return vg_h1_refuse_with(h, 400, "Two Host fields");
        h->has_host = true;
    } else if (vg_slice_eq(f->name, VG_SLICE_LIT("content-length"))) {
        if (h->has_length)
            return vg_h1_refuse_with(h, 400, "Two lengths");
        h->has_length = true;
    } else if (vg_slice_eq(f->name, VG_SLICE_LIT("transfer-encoding"))) {
        if (h->is_body_chunked || !value_is(f->value, "chunked"))
            return vg_h1_refuse_with(h, 501, "Unsupported transfer encoding");
        h->is_body_chunked = true;
    } else if (vg_slice_eq(f->name, VG_SLICE_LIT("expect"))) {
        if (!value_is(f->value, "100-continue"))
            return vg_h1_refuse_with(h, 417, "Unknown expectation");
        h->wants_continue = true;
    }
    return 0;
}

static int check_fields(struct vg_h1 *h)
{
    const struct vg_net_request *r = h->x.req;
    bool is_1_0 = r->pub.carrier == VG_HTTP_1_0;
    for (size_t i = 0; i < r->n_fields; i++)
        if (check_field(h, &r->fields[i]) < 0)
            return -1;
    if (!h->has_host && !is_1_0)
        return vg_h1_refuse_with(h, 400, "No Host field");
    if (h->is_body_chunked && (h->has_length || is_1_0))
        return vg_h1_refuse_with(h, 400, "Chunks and a length, or chunks in HTTP/1.0");
    if (is_1_0 || (!h->is_body_chunked && h->parser.content_length == 0))
        h->wants_continue = false;
    return 0;
}

/* The handler has seen the head; now the body, if it wants it. */
static int want_body(struct vg_h1 *h)
{
    if (h->has_length && h->parser.content_length > h->codec.conn->server->limits->body_bytes)
        return vg_h1_refuse_with(h, 413, "Request entity too large");
    return check(h, vg_h1_say_continue(h));
}

static void expect_body(struct vg_h1 *h)
{
    vg_pace_wait(&h->x.pace, vg_conn_now(h->codec.conn));
    vg_conn_alarm(h->codec.conn, vg_h1_body_due(h));
}

static int on_headers_complete(llhttp_t *parser)
{
    struct vg_h1 *h = h1_of(parser);
    h->x.req->pub.carrier = parser->http_minor == 0 ? VG_HTTP_1_0 : VG_HTTP_1_1;
    if (parser->http_major != 1 || parser->http_minor > 1)
        return vg_h1_refuse_with(h, 505, "HTTP/1.0 and HTTP/1.1 are spoken here");
    vg_exchange_seal(&h->x);
    if (check_fields(h) < 0)
        return -1;
    h->is_keep_alive = llhttp_should_keep_alive(parser) && parser->method != HTTP_CONNECT;
    parser->upgrade = 0; /* nothing changes unless the handler accepts */
    h->state = VG_H1_BODY;
    h->arrived = 0;
    h->x.req->pub.body_length = h->is_body_chunked ? VG_HTTP_STREAMED : parser->content_length;
    if (h->x.req->pub.body_length)
        expect_body(h);
    return vg_exchange_head(&h->x) ? want_body(h) : 0;
}

static int on_body(llhttp_t *parser, const char *p, size_t n)
{
    struct vg_h1 *h = h1_of(parser);
    int r = vg_exchange_body(&h->x, p, n);
    if (r == VIGIL_E_TOO_LARGE)
        return vg_h1_refuse_with(h, 413, "Request entity too large");
    return check(h, r);
}

static int on_message_complete(llhttp_t *parser)
{
    (void)parser;
    return HPE_PAUSED; /* the next request waits for the answer to this one */
}

static const llhttp_settings_t settings = {
    .on_method = on_method,
    .on_url = on_url,
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_header_value_complete = on_value_complete,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

int vg_h1_begin(struct vg_h1 *h)
{
    struct vg_conn *conn = h->codec.conn;
    h->x = (struct vg_http_exchange){.conn = conn};
    int r = vg_exchange_begin(&h->x, VG_HTTP_1_1);
    if (r < 0)
        return r;
    llhttp_init(&h->parser, HTTP_REQUEST, &settings);
    h->lines = (struct vg_h1_lines){0};
    h->chunks = (struct vg_h1_chunks){0};
    h->arrived = 0;
    h->refuse_status = 0;
    h->is_keep_alive = h->is_chunked = h->has_length = h->has_host = false;
    h->is_body_chunked = h->wants_continue = false;
    h->state = VG_H1_HEAD;
    h->read_due_ns = vg_conn_now(conn) + conn->server->limits->head_ms * VG_NS_PER_MS;
    vg_conn_alarm(conn, h->read_due_ns);
    return 0;
}

static size_t execute(struct vg_h1 *h, const char *p, size_t n)
{
    llhttp_errno_t e = llhttp_execute(&h->parser, p, n);
    if (e == HPE_OK)
        return n;
    if (e == HPE_PAUSED && h->state == VG_H1_BODY) {
        h->state = VG_H1_WHOLE;
        vg_pace_stop(&h->x.pace);
        return (size_t)(llhttp_get_error_pos(&h->parser) - p);
    }
    vg_h1_refuse_with(h, 400, "Malformed request");
    return n;
}

static size_t parse_head(struct vg_h1 *h, const char *p, size_t n)
{
    size_t used = n;
    bool is_whole = false;
    if (vg_h1_lines_check(&h->lines, p, n, &used, &is_whole) < 0) {
        vg_h1_refuse_with(h, 400, "Malformed request");
        return n;
    }
    h->arrived += used;
    if (h->arrived > h->codec.conn->server->limits->head_bytes) {
        vg_h1_refuse_with(h, 431, "The head of the request is too large");
        return n;
    }
    size_t taken = execute(h, p, used);
    if (is_whole && h->state == VG_H1_HEAD)
        vg_h1_refuse_with(h, 400, "Malformed request");
    return VG_MIN(taken, used);
}

/* Extensions of chunks do not reach the parser. */
static size_t execute_chunks(struct vg_h1 *h, const char *p, size_t n)
{
    size_t at = 0;
    while (at < n && h->state == VG_H1_BODY && !h->refuse_status) {
        size_t pass = 0, skip = 0;
        if (vg_h1_chunks_next(&h->chunks, p + at, n - at, &pass, &skip) < 0) {
            vg_h1_refuse_with(h, 400, "Malformed chunk");
            return n;
        }
        size_t used = pass ? execute(h, p + at, pass) : 0;
        at += used < pass ? used : pass + skip;
        if (used < pass)
            break;
    }
    return at;
}

static size_t parse_body(struct vg_h1 *h, const char *p, size_t n)
{
    uint64_t body_max = h->codec.conn->server->limits->body_bytes;
    uint64_t max = h->x.has_responded ? VG_H1_UNWANTED_MAX : 2 * body_max + VG_H1_UNWANTED_MAX;
    h->arrived += n; /* of chunks, their frames too */
    if (h->arrived > max && !h->has_length) {
        vg_h1_refuse_with(h, 413, "Request entity too large");
        return n;
    }
    vg_pace_moved(&h->x.pace, n, vg_conn_now(h->codec.conn));
    return h->is_body_chunked ? execute_chunks(h, p, n) : execute(h, p, n);
}

size_t vg_h1_parse(struct vg_h1 *h, const char *p, size_t n)
{
    return h->state == VG_H1_HEAD ? parse_head(h, p, n) : parse_body(h, p, n);
}
