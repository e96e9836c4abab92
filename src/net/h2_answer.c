/* h2_answer.c - answers on HTTP/2 streams.
 * What a handler writes waits in the stream's queue, and nghttp2 is given a DATA item for it. When
 * nghttp2 decides that a stream may send (windows open, its turn among the others) it asks how
 * much; then 9 bytes of frame header and the slices themselves go to the connection's queue,
 * uncopied. A frame that empties the queue ends the item, though not the stream (S4). */
#include <stdio.h>
#include <strings.h>

#include "h2_int.h"

/* 32: fields of an answer that need no allocation. */
#define FIELDS_ON_STACK 32u

static struct vg_h2_stream *of(struct vg_http_exchange *x)
{
    return VG_CONTAINER_OF(x, struct vg_h2_stream, x);
}

static void touch(struct vg_h2_stream *s)
{
    struct vg_h2 *h = vg_h2_of(s);
    if (vg_list_is_empty(&s->turn))
        vg_list_push_back(&h->touched, &s->turn);
    vg_h2_speak(h);
}

/* ---- heads ---- */

static nghttp2_nv pair(struct vg_slice name, struct vg_slice value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name.p, (uint8_t *)(uintptr_t)value.p, name.n,
                        value.n, NGHTTP2_NV_FLAG_NONE};
}

/* Fields that speak of an HTTP/1.1 connection; HTTP/2 forbids them. */
static bool is_hop_field(struct vg_slice name)
{
    static const char *const hop[] = {"connection", "keep-alive", "transfer-encoding", "upgrade"};
    for (size_t i = 0; i < VG_ARRAY_LEN(hop); i++)
        if (name.n == strlen(hop[i]) && strncasecmp(name.p, hop[i], name.n) == 0)
            return true;
    return false;
}

/* Values that do not come again would only push others out of the client's table, and out of ours,
 * which holds all of it. */
static bool is_fleeting(struct vg_slice name)
{
    return name.n == strlen("audit-id") && strncasecmp(name.p, "audit-id", name.n) == 0;
}

static size_t put_fields(struct vg_h2_stream *s, const struct vg_http_head *head, nghttp2_nv *nv)
{
    size_t n = 0;
    nv[n++] = pair(VG_SLICE_LIT("date"), vg_net_date(s->x.conn->server));
    nv[0].flags = NGHTTP2_NV_FLAG_NO_INDEX;
    for (size_t i = 0; i < head->n_fields; i++) {
        struct vg_slice name = head->fields[i].name;
        if (is_hop_field(name))
            continue;
        nv[n] = pair(name, head->fields[i].value);
        nv[n++].flags = is_fleeting(name) ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;
    }
    for (size_t i = 0; head->block && i < VG_HTTP_BLOCK_FIELDS; i++)
        nv[n++] = pair(head->block->fields[i].name, head->block->fields[i].value);
    return n;
}

/* nghttp2 copies names (in lower case) and values. */
static int submit_head(struct vg_h2_stream *s, const struct vg_http_head *head, nghttp2_nv *nv)
{
    char status[4], length[24];
    nv[0] = pair(VG_SLICE_LIT(":status"),
                 vg_slice(status, (size_t)snprintf(status, sizeof(status), "%03u",
                                                   (unsigned)head->status % 1000u)));
    size_t n = 1 + put_fields(s, head, nv + 1);
    if (head->length != VG_HTTP_STREAMED && head->status != 204 && head->status != 304) {
        int len = snprintf(length, sizeof(length), "%llu", (unsigned long long)head->length);
        nv[n++] = pair(VG_SLICE_LIT("content-length"), vg_slice(length, (size_t)len));
    }
    int r = nghttp2_submit_headers(vg_h2_of(s)->session, 0, s->id, NULL, nv, n, NULL);
    return r == 0 ? 0 : -ENOMEM;
}

static int respond(struct vg_http_exchange *x, const struct vg_http_head *head)
{
    struct vg_h2_stream *s = of(x);
    nghttp2_nv on_stack[FIELDS_ON_STACK];
    size_t max = head->n_fields + VG_HTTP_BLOCK_FIELDS + 3; /* status, date, length */
    if (s->is_gone)
        return VIGIL_E_CANCELED;
    nghttp2_nv *nv =
        max <= FIELDS_ON_STACK ? on_stack : vg_reallocarray(NULL, max, sizeof(nghttp2_nv));
    int r = nv ? submit_head(s, head, nv) : -ENOMEM;
    if (nv != on_stack)
        vg_free(nv);
    vg_h2_body_done(s);
    touch(s);
    return r;
}

/* ---- bodies ---- */

static ssize_t read_data(nghttp2_session *session, int32_t id, uint8_t *buf, size_t max,
                         uint32_t *flags, nghttp2_data_source *source, void *arg);

/* There is something to send: bytes, or the end. */
static void want_turn(struct vg_h2_stream *s)
{
    static const nghttp2_data_provider body = {.read_callback = read_data};
    struct vg_h2 *h = vg_h2_of(s);
    if (!s->has_item && nghttp2_submit_data(h->session, NGHTTP2_FLAG_END_STREAM, s->id, &body) < 0)
        vg_conn_close(h->codec.conn, -ENOMEM);
    s->has_item = true;
    touch(s);
}

static int write_body(struct vg_http_exchange *x, const struct vg_slice *v, size_t n,
                      const struct vg_http_pin *pin)
{
    struct vg_h2_stream *s = of(x);
    size_t had = s->out.n;
    if (s->is_gone)
        return VIGIL_E_CANCELED;
    int r = vg_outq_put(&s->out, v, n, pin);
    vg_exchange_queued(x, s->out.n - had);
    want_turn(s);
    return r;
}

static void end(struct vg_http_exchange *x)
{
    if (!of(x)->is_gone)
        want_turn(of(x));
}

static void abort_answer(struct vg_http_exchange *x)
{
    vg_h2_stream_reset(of(x), NGHTTP2_INTERNAL_ERROR, VIGIL_E_CANCELED);
}

const struct vg_exchange_ops vg_h2_exchange_ops = {
    .respond = respond,
    .write = write_body,
    .end = end,
    .abort = abort_answer,
};

/* nghttp2 asks how much of a frame we fill. */
static ssize_t read_data(nghttp2_session *session, int32_t id, uint8_t *buf, size_t max,
                         uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    struct vg_h2 *h = arg;
    struct vg_h2_stream *s = nghttp2_session_get_stream_user_data(session, id);
    (void)buf;
    (void)source;
    h->sending = s;
    if (!s)
        return NGHTTP2_ERR_DEFERRED; /* its reset is on the way */
    size_t n = VG_MIN(s->out.n, max);
    if (n == s->out.n)
        *flags |= NGHTTP2_DATA_FLAG_EOF | (s->x.has_ended ? 0 : NGHTTP2_DATA_FLAG_NO_END_STREAM);
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    return (ssize_t)n;
}

/* The frame is due: header and slices go to the connection. Pausing bounds what waits there. */
static int send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t n,
                     nghttp2_data_source *source, void *arg)
{
    struct vg_h2 *h = arg;
    struct vg_h2_stream *s = h->sending;
    struct vg_outq *out = &h->codec.conn->out;
    (void)session;
    (void)frame;
    (void)source;
    if (VG_NEVER(!s))
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (vg_outq_copy(out, head, 9) < 0 || vg_outq_move(&s->out, n, out) < 0)
        return NGHTTP2_ERR_CALLBACK_FAILURE; /* half a frame: the connection is lost */
    s->has_item = s->out.n > 0;              /* as read_data said */
    if (vg_list_is_empty(&s->turn))
        vg_list_push_back(&h->touched, &s->turn);
    return vg_conn_has_room(h->codec.conn) ? 0 : NGHTTP2_ERR_PAUSE;
}

/* An answer that ends before its request has ended makes the rest of the request pointless. */
static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    (void)arg;
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    struct vg_h2_stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (!s)
        return 0;
    s->has_sent_head = true;
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM && !s->is_request_done && vg_h2_drain_body(s) < 0)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    return 0;
}

void vg_h2_answer_callbacks(nghttp2_session_callbacks *cb)
{
    nghttp2_session_callbacks_set_send_data_callback(cb, send_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_send);
}

/* ---- after nghttp2 ran ---- */

static uint64_t pace_due(const struct vg_h2_stream *s)
{
    const struct vg_http_limits *limits = vg_h2_limits(vg_h2_of(s));
    return vg_pace_due(&s->x.pace, limits->stall_ms, s->x.is_watch ? 0 : limits->min_rate);
}

/* While the connection waits for the other side, its streams are as fast as it is. */
static uint64_t stream_due(const struct vg_h2 *h, const struct vg_h2_stream *s)
{
    const struct vg_http_limits *limits = vg_h2_limits(h);
    uint64_t due = pace_due(s);
    if (h->pace.since_ns == 0)
        return due;
    return VG_MAX(due,
                  vg_pace_due(&h->pace, limits->stall_ms, s->x.is_watch ? 0 : limits->min_rate));
}

/* Bytes that are left wait for a window or for the connection. */
static void keep_pace(struct vg_h2_stream *s)
{
    struct vg_h2 *h = vg_h2_of(s);
    if (s->out.n == 0) {
        vg_pace_stop(&s->x.pace);
        if (s->is_waiting)
            vg_h2_stream_to(s, &h->quiet);
        s->is_waiting = false;
        return;
    }
    uint64_t now = vg_conn_now(h->codec.conn);
    vg_pace_wait(&s->x.pace, now);
    vg_pace_moved(&s->x.pace, vg_h2_moved(s), now);
    if (!s->is_waiting)
        vg_h2_stream_to(s, &h->waiting);
    s->is_waiting = true;
    vg_conn_alarm(h->codec.conn, pace_due(s));
}

void vg_h2_tell_progress(struct vg_h2 *h)
{
    struct vg_list round;
    struct vg_list *n;
    /* What handlers write from here on is touched again and waits for the next round. */
    vg_list_init(&round);
    while ((n = vg_list_pop_front(&h->touched)))
        vg_list_push_back(&round, n);
    while ((n = vg_list_pop_front(&round))) {
        struct vg_h2_stream *s = VG_CONTAINER_OF(n, struct vg_h2_stream, turn);
        if (s->x.has_ended)
            vg_http_release_request(&s->x); /* the answer is written: nobody reads it any more */
        keep_pace(s);
        size_t moved = vg_h2_moved(s);
        if (moved > 0)
            vg_exchange_sent(&s->x, moved);
    }
}

void vg_h2_answer_tick(struct vg_h2 *h, uint64_t now_ns)
{
    struct vg_conn *conn = h->codec.conn;
    VG_LIST_FOREACH_SAFE (n, &h->waiting) {
        struct vg_h2_stream *s = VG_CONTAINER_OF(n, struct vg_h2_stream, link);
        uint64_t due = stream_due(h, s);
        if (due > now_ns) {
            vg_conn_alarm(conn, due);
            continue;
        }
        vg_net_count(&conn->server->counts.timeouts, 1);
        vg_h2_stream_reset(s, NGHTTP2_CANCEL, VIGIL_E_TIMEOUT);
    }
}
