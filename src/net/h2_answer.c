/* h2_answer.c - answers on HTTP/2 streams.
 * What a handler writes waits in the stream's queue. When nghttp2 decides that a stream may send
 * (windows open, its turn among the others) it asks how much; then 9 bytes of frame header and the
 * slices themselves go to the connection's queue, uncopied. */
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

static size_t put_fields(struct vg_h2_stream *s, const struct vg_http_head *head, nghttp2_nv *nv)
{
    size_t n = 0;
    nv[n++] = pair(VG_SLICE_LIT("date"), vg_net_date(s->x.conn->server));
    for (size_t i = 0; i < head->n_fields; i++)
        if (!is_hop_field(head->fields[i].name))
            nv[n++] = pair(head->fields[i].name, head->fields[i].value);
    return n;
}

static ssize_t read_data(nghttp2_session *session, int32_t id, uint8_t *buf, size_t max,
                         uint32_t *flags, nghttp2_data_source *source, void *arg);

/* nghttp2 copies names (in lower case) and values. */
static int submit_head(struct vg_h2_stream *s, const struct vg_http_head *head, nghttp2_nv *nv)
{
    char status[4], length[24];
    nghttp2_data_provider body = {.read_callback = read_data};
    nv[0] = pair(VG_SLICE_LIT(":status"),
                 vg_slice(status, (size_t)snprintf(status, sizeof(status), "%03u",
                                                   (unsigned)head->status % 1000u)));
    size_t n = 1 + put_fields(s, head, nv + 1);
    if (head->length != VG_HTTP_STREAMED && head->status != 204 && head->status != 304) {
        int len = snprintf(length, sizeof(length), "%llu", (unsigned long long)head->length);
        nv[n++] = pair(VG_SLICE_LIT("content-length"), vg_slice(length, (size_t)len));
    }
    int r = nghttp2_submit_response(vg_h2_of(s)->session, s->id, nv, n, &body);
    return r == 0 ? 0 : -ENOMEM;
}

static int respond(struct vg_http_exchange *x, const struct vg_http_head *head)
{
    struct vg_h2_stream *s = of(x);
    nghttp2_nv on_stack[FIELDS_ON_STACK];
    size_t max = head->n_fields + 3; /* status, date, length */
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

static void resume(struct vg_h2_stream *s)
{
    if (!s->is_ready)
        vg_h2_of(s)->n_ready++;
    s->is_ready = true;
    if (s->is_deferred && nghttp2_session_resume_data(vg_h2_of(s)->session, s->id) == 0)
        s->is_deferred = false;
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
    x->unsent += s->out.n - had;
    resume(s);
    return r;
}

static void end(struct vg_http_exchange *x)
{
    if (!of(x)->is_gone)
        resume(of(x));
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
    if (n == 0 && !s->x.has_ended) {
        s->is_deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    if (n == s->out.n && s->x.has_ended)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
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
    s->moved += n;
    if (vg_list_is_empty(&s->turn))
        vg_list_push_back(&h->touched, &s->turn);
    if (s->out.n == 0)
        vg_h2_unready(s);
    /* With nothing left to send, nghttp2 is stopped before it asks this stream again and defers it:
     * the next event finds it in the queue. */
    bool is_last = h->n_ready == 0 && !s->x.has_ended;
    return is_last || !vg_conn_has_room(h->codec.conn) ? NGHTTP2_ERR_PAUSE : 0;
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
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM && !s->is_request_done &&
        nghttp2_submit_rst_stream(session, 0, s->id, NGHTTP2_NO_ERROR) < 0)
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

/* Bytes that are left wait for a window or for the connection. */
static void keep_pace(struct vg_h2_stream *s)
{
    struct vg_h2 *h = vg_h2_of(s);
    if (s->out.n == 0) {
        vg_pace_stop(&s->x.pace);
        if (s->is_waiting)
            vg_list_remove(&s->slow);
        s->is_waiting = false;
        return;
    }
    uint64_t now = vg_conn_now(h->codec.conn);
    vg_pace_wait(&s->x.pace, now);
    vg_pace_moved(&s->x.pace, s->moved, now);
    if (!s->is_waiting)
        vg_list_push_back(&h->waiting, &s->slow);
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
        keep_pace(s);
        size_t moved = s->moved;
        s->moved = 0;
        if (moved > 0)
            vg_exchange_sent(&s->x, moved);
    }
}

void vg_h2_answer_tick(struct vg_h2 *h, uint64_t now_ns)
{
    struct vg_conn *conn = h->codec.conn;
    VG_LIST_FOREACH_SAFE (n, &h->waiting) {
        struct vg_h2_stream *s = VG_CONTAINER_OF(n, struct vg_h2_stream, slow);
        uint64_t due = pace_due(s);
        if (due > now_ns) {
            vg_conn_alarm(conn, due);
            continue;
        }
        vg_net_count(&conn->server->counts.timeouts, 1);
        vg_h2_stream_reset(s, NGHTTP2_CANCEL, VIGIL_E_TIMEOUT);
    }
}
