/* h1_answer.c - answers of the HTTP/1.1 codec: heads, chunks, and messages of a WebSocket.
 * Everything goes into the connection's queue at once and is counted in x->unsent (H2). */
#include <errno.h>
#include <stdio.h>

#include "h1_int.h"
#include "request.h"

static const struct {
    int status;
    const char *line;
} lines[] = {
    {200, "HTTP/1.1 200 OK\r\n"},
    {201, "HTTP/1.1 201 Created\r\n"},
    {202, "HTTP/1.1 202 Accepted\r\n"},
    {204, "HTTP/1.1 204 No Content\r\n"},
    {301, "HTTP/1.1 301 Moved Permanently\r\n"},
    {304, "HTTP/1.1 304 Not Modified\r\n"},
    {307, "HTTP/1.1 307 Temporary Redirect\r\n"},
    {400, "HTTP/1.1 400 Bad Request\r\n"},
    {401, "HTTP/1.1 401 Unauthorized\r\n"},
    {403, "HTTP/1.1 403 Forbidden\r\n"},
    {404, "HTTP/1.1 404 Not Found\r\n"},
    {405, "HTTP/1.1 405 Method Not Allowed\r\n"},
    {406, "HTTP/1.1 406 Not Acceptable\r\n"},
    {408, "HTTP/1.1 408 Request Timeout\r\n"},
    {409, "HTTP/1.1 409 Conflict\r\n"},
    {410, "HTTP/1.1 410 Gone\r\n"},
    {413, "HTTP/1.1 413 Request Entity Too Large\r\n"},
    {415, "HTTP/1.1 415 Unsupported Media Type\r\n"},
    {417, "HTTP/1.1 417 Expectation Failed\r\n"},
    {422, "HTTP/1.1 422 Unprocessable Entity\r\n"},
    {429, "HTTP/1.1 429 Too Many Requests\r\n"},
    {431, "HTTP/1.1 431 Request Header Fields Too Large\r\n"},
    {500, "HTTP/1.1 500 Internal Server Error\r\n"},
    {501, "HTTP/1.1 501 Not Implemented\r\n"},
    {503, "HTTP/1.1 503 Service Unavailable\r\n"},
    {504, "HTTP/1.1 504 Gateway Timeout\r\n"},
    {505, "HTTP/1.1 505 HTTP Version Not Supported\r\n"},
};

/* Lines are gathered and go to the queue together. */
struct gathered {
    struct vg_outq *q;
    int err;
    size_t n;
    char text[768]; /* an answer's head without warnings */
};

static void flush(struct gathered *g)
{
    if (g->err == 0)
        g->err = vg_outq_copy(g->q, g->text, g->n);
    g->n = 0;
}

static void put(struct gathered *g, struct vg_slice s)
{
    if (s.n > sizeof g->text - g->n)
        flush(g);
    if (s.n > sizeof g->text) {
        if (g->err == 0)
            g->err = vg_outq_copy(g->q, s.p, s.n);
    } else if (s.n) {
        memcpy(g->text + g->n, s.p, s.n);
        g->n += s.n;
    }
}

static void put_status(struct gathered *g, int status)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(lines); i++)
        if (lines[i].status == status) {
            put(g, vg_slice_str(lines[i].line));
            return;
        }
    char line[64];
    int n = snprintf(line, sizeof line, "HTTP/1.1 %03d Status\r\n", status);
    put(g, vg_slice(line, (size_t)n));
}

/* Has one of eight bytes a value below 14? CR, LF and NUL have. */
static bool has_low_byte(const char *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return (x - UINT64_C(0x0e0e0e0e0e0e0e0e)) & ~x & UINT64_C(0x8080808080808080);
}

/* A value that could begin a line of its own is left out: it may carry what a peer sent. */
static bool is_one_line(struct vg_slice s)
{
    size_t i = 0;
    while (i + 8 <= s.n && VG_LIKELY(!has_low_byte(s.p + i)))
        i += 8;
    for (; i < s.n; i++)
        if (VG_UNLIKELY(s.p[i] == '\r' || s.p[i] == '\n' || s.p[i] == 0))
            return false;
    return true;
}

static void put_field(struct gathered *g, struct vg_slice name, struct vg_slice value)
{
    if (!is_one_line(name) || !is_one_line(value))
        return;
    put(g, name);
    put(g, VG_SLICE_LIT(": "));
    put(g, value);
    put(g, VG_SLICE_LIT("\r\n"));
}

static void put_length(struct gathered *g, uint64_t n)
{
    char text[24], *p = text + sizeof text;
    *--p = '\n';
    *--p = '\r';
    do
        *--p = (char)('0' + n % 10);
    while (n /= 10);
    put(g, VG_SLICE_LIT("Content-Length: "));
    put(g, vg_slice(p, (size_t)(text + sizeof text - p)));
}

/* Can another request follow on this connection? */
static void decide_keep_alive(struct vg_h1 *h)
{
    const struct vg_http_exchange *x = &h->x;
    bool is_body_left = h->state != VG_H1_WHOLE;
    uint64_t left = h->is_body_chunked ? 0 : h->parser.content_length;
    if (h->is_draining || x->did_refuse || h->codec.conn->server->is_draining)
        h->is_keep_alive = false;
    if (is_body_left && (h->wants_continue || left > VG_H1_UNWANTED_MAX))
        h->is_keep_alive = false;
    if (x->left == VG_HTTP_STREAMED && !h->is_chunked && !x->has_no_body)
        h->is_keep_alive = false; /* the end of the connection is the end of the body */
}

static void put_framing(struct gathered *g, const struct vg_h1 *h, const struct vg_http_head *head)
{
    if (h->is_chunked)
        put(g, VG_SLICE_LIT("Transfer-Encoding: chunked\r\n"));
    else if (head->length != VG_HTTP_STREAMED && head->status >= 200 && head->status != 204 &&
             (head->status != 304 || head->length))
        put_length(g, head->length);
    bool is_1_0 = vg_http_request(&h->x)->carrier == VG_HTTP_1_0;
    if (!h->is_keep_alive)
        put(g, VG_SLICE_LIT("Connection: close\r\n"));
    else if (is_1_0)
        put(g, VG_SLICE_LIT("Connection: keep-alive\r\n"));
    put(g, VG_SLICE_LIT("\r\n"));
}

static int respond(struct vg_http_exchange *x, const struct vg_http_head *head)
{
    struct vg_h1 *h = vg_h1_of(x);
    struct vg_outq *q = &x->conn->out;
    size_t before = q->n;
    bool is_1_0 = vg_http_request(x)->carrier == VG_HTTP_1_0;
    h->is_chunked = head->length == VG_HTTP_STREAMED && !is_1_0 && !x->has_no_body;
    decide_keep_alive(h);
    struct gathered g;
    g.q = q;
    g.err = 0;
    g.n = 0;
    put_status(&g, head->status);
    put_field(&g, VG_SLICE_LIT("Date"), vg_net_date(x->conn->server));
    for (size_t i = 0; i < head->n_fields; i++)
        put_field(&g, head->fields[i].name, head->fields[i].value);
    if (head->block)
        put(&g, head->block->lines);
    put_framing(&g, h, head);
    flush(&g);
    vg_exchange_queued(x, q->n - before);
    return g.err;
}

static int put_chunk(struct vg_outq *q, const struct vg_slice *v, size_t n,
                     const struct vg_http_pin *pin)
{
    static const char digits[] = "0123456789abcdef";
    char text[2 * sizeof(size_t) + 2], *p = text + sizeof text;
    size_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += v[i].n;
    *--p = '\n';
    *--p = '\r';
    for (; total; total >>= 4)
        *--p = digits[total & 15];
    int r = vg_outq_copy(q, p, (size_t)(text + sizeof text - p));
    if (r == 0)
        r = vg_outq_put(q, v, n, pin);
    return r == 0 ? vg_outq_copy(q, "\r\n", 2) : r;
}

static int answer(struct vg_http_exchange *x, const struct vg_slice *v, size_t n,
                  const struct vg_http_pin *pin)
{
    struct vg_h1 *h = vg_h1_of(x);
    struct vg_outq *q = &x->conn->out;
    size_t before = q->n;
    int r = h->ws           ? vg_ws_write(h->ws, v, n, pin)
            : h->is_chunked ? put_chunk(q, v, n, pin)
                            : vg_outq_put(q, v, n, pin);
    vg_exchange_queued(x, q->n - before);
    return r;
}

static void end(struct vg_http_exchange *x)
{
    struct vg_h1 *h = vg_h1_of(x);
    struct vg_outq *q = &x->conn->out;
    size_t before = q->n;
    int r = h->ws ? vg_ws_end(h->ws) : h->is_chunked ? vg_outq_copy(q, "0\r\n\r\n", 5) : 0;
    vg_exchange_queued(x, q->n - before);
    if (r < 0)
        vg_conn_close(x->conn, r);
}

static void cut(struct vg_http_exchange *x)
{
    vg_conn_dirty(x->conn); /* fill() sees it */
}

static int accept_websocket(struct vg_http_exchange *x, const char *protocol, bool is_binary)
{
    struct vg_h1 *h = vg_h1_of(x);
    size_t before = x->conn->out.n;
    h->is_keep_alive = false;
    int r = vg_ws_accept(&x->req->pub, protocol, is_binary, &x->conn->out, &h->ws);
    vg_exchange_queued(x, x->conn->out.n - before);
    return r;
}

const struct vg_exchange_ops vg_h1_exchange_ops = {
    .respond = respond,
    .write = answer,
    .end = end,
    .abort = cut,
    .accept_websocket = accept_websocket,
};

int vg_h1_say_continue(struct vg_h1 *h)
{
    static const struct vg_slice text = VG_SLICE_LIT("HTTP/1.1 100 Continue\r\n\r\n");
    if (!h->wants_continue)
        return 0;
    h->wants_continue = false;
    vg_exchange_queued(&h->x, text.n);
    vg_conn_dirty(h->codec.conn);
    int r = vg_outq_copy(&h->codec.conn->out, text.p, text.n);
    if (r < 0)
        vg_conn_close(h->codec.conn, r); /* H2 does not hold */
    return r;
}

void vg_h1_receive_ws(struct vg_h1 *h, const char *p, size_t n)
{
    struct vg_conn *conn = h->codec.conn;
    size_t before = conn->out.n;
    int r = h->is_ws_over ? 0 : vg_ws_receive(h->ws, p, n);
    vg_exchange_queued(&h->x, conn->out.n - before);
    if (r == VIGIL_E_INVALID)
        vg_net_count(&conn->server->counts.malformed, 1);
    if (r == -ENOMEM || h->x.unsent > 2 * conn->server->limits->unsent_bytes + VG_NET_READ_MAX)
        vg_conn_close(conn, VIGIL_E_CANCELED); /* the answers to its pings are not read */
    else if (r != 0)
        h->is_ws_over = true;
    vg_conn_dirty(conn);
}
