/* h2_recv.c - what HTTP/2 clients send: heads, bodies, and more of them than is decent.
 * A head is added to its exchange field by field. A body is collected by the exchange; its window
 * is small at first and opened wide for few streams of a connection at a time, in order of asking,
 * so that no client can make us hold a large body on each of its streams. Frames that cost us and
 * bring nothing (resets of unanswered requests, pings, settings, priorities, empty DATA, malformed
 * frames) share one allowance of resets_per_second. */
#include <stdlib.h>

#include "h2_int.h"
#include "request.h"

static struct vg_h2_stream *find(nghttp2_session *session, int32_t id)
{
    return nghttp2_session_get_stream_user_data(session, id);
}

static uint64_t deadline(uint64_t since_ns, uint64_t ms)
{
    return since_ns + ms * VG_NS_PER_MS;
}

/* ---- floods ---- */

static void flood(struct vg_h2 *h)
{
    struct vg_http_server *server = h->codec.conn->server;
    if (h->is_terminated)
        return;
    vg_net_count(&server->counts.floods, 1);
    vg_debug(server->log, "h2_flood", "peer=%s", h->codec.conn->peer.address);
    h->flood_ns = vg_conn_now(h->codec.conn);
    vg_conn_alarm(h->codec.conn, h->flood_ns + VG_H2_FLOOD_NS);
    vg_h2_terminate(h, NGHTTP2_ENHANCE_YOUR_CALM);
}

/* One token of a bucket that holds a second's worth. */
static void spend(struct vg_h2 *h)
{
    uint64_t rate = vg_h2_limits(h)->resets_per_second, full = rate * VG_NS_PER_S;
    uint64_t now = vg_conn_now(h->codec.conn), passed = now - h->calm_ns;
    h->calm_ns = now;
    h->calm = passed >= VG_NS_PER_S ? full : VG_MIN(full, h->calm + passed * rate);
    if (h->calm < VG_NS_PER_S)
        flood(h);
    else
        h->calm -= VG_NS_PER_S;
}

static const char too_much[] = "requests hold too much memory, try again later";

/* ---- heads ---- */

static struct vg_h2_stream *stream_new(struct vg_h2 *h, int32_t id)
{
    struct vg_conn *conn = h->codec.conn;
    struct vg_h2_stream *s = vg_new(struct vg_h2_stream);
    if (!s)
        return NULL;
    s->x.conn = conn;
    s->id = id;
    vg_outq_init(&s->out, &conn->server->pool);
    vg_list_init(&s->turn);
    vg_list_push_back(&h->quiet, &s->link);
    h->n_streams++;
    h->idle_since_ns = 0;
    return s;
}

/* An unauthenticated connection or its address has too many streams open. The head is read, since
 * the table of HPACK needs it, but not kept; it is told to try again, and pays for it. */
static int refuse_stream(struct vg_h2 *h, int32_t id)
{
    spend(h);
    if (nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM) < 0)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct vg_h2 *h = arg;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    bool is_charged = !h->codec.conn->share.is_authenticated;
    if (is_charged && vg_share_hold(h->codec.conn, VG_SHARE_STREAM) < 0)
        return refuse_stream(h, frame->hd.stream_id);
    struct vg_h2_stream *s = stream_new(h, frame->hd.stream_id);
    if (s)
        s->is_charged = is_charged;
    else if (is_charged)
        vg_share_give(h->codec.conn, VG_SHARE_STREAM);
    if (!s || nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, s) < 0)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    h->head_since_ns = vg_conn_now(h->codec.conn);
    vg_conn_alarm(h->codec.conn, deadline(h->head_since_ns, vg_h2_limits(h)->head_ms));
    if (vg_exchange_begin(&s->x, VG_HTTP_2) < 0)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    return 0;
}

static int add_pseudo(struct vg_h2_stream *s, struct vg_slice name, struct vg_slice value)
{
    if (vg_slice_eq(name, VG_SLICE_LIT(":method"))) {
        s->is_connect = vg_slice_eq(value, VG_SLICE_LIT("CONNECT"));
        return vg_exchange_add_method(&s->x, value.p, value.n);
    }
    if (vg_slice_eq(name, VG_SLICE_LIT(":path")))
        return vg_exchange_add_target(&s->x, value.p, value.n);
    if (vg_slice_eq(name, VG_SLICE_LIT(":authority")))
        return vg_exchange_set_authority(&s->x, value.p, value.n);
    return 0;
}

static int add_field(struct vg_h2_stream *s, struct vg_slice name, struct vg_slice value)
{
    if (name.n > 0 && name.p[0] == ':')
        return add_pseudo(s, name, value);
    int r = vg_exchange_add_name(&s->x, name.p, name.n);
    if (r == 0)
        r = vg_exchange_add_value(&s->x, value.p, value.n);
    return r < 0 ? r : vg_exchange_end_field(&s->x);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags, void *arg)
{
    struct vg_h2_stream *s = find(session, frame->hd.stream_id);
    (void)flags;
    (void)arg;
    /* Trailers are read and forgotten, and so is what follows a limit. */
    if (!s || frame->headers.cat != NGHTTP2_HCAT_REQUEST || s->is_too_large || s->is_too_much)
        return 0;
    int r = add_field(s, vg_slice(name, n_name), vg_slice(value, n_value));
    s->is_too_large = r == VIGIL_E_TOO_LARGE;
    s->is_too_much = r == VIGIL_E_BUSY;
    return r == -ENOMEM ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE : 0;
}

/* ---- bodies ---- */

static void grant(struct vg_h2_stream *s)
{
    struct vg_h2 *h = vg_h2_of(s);
    size_t window = vg_h2_limits(h)->body_bytes;
    s->is_granted = true;
    s->is_drainable = false;
    s->is_in_line = false;
    h->n_granted++;
    vg_h2_stream_to(s, &h->receiving);
    s->at = (int64_t)vg_conn_now(h->codec.conn);
    vg_pace_stop(&s->x.pace); /* until now it waited for us */
    vg_pace_wait(&s->x.pace, (uint64_t)s->at);
    /* A byte more than is taken, so that the limit is seen as a limit and not as a stall. */
    window = VG_MIN(window + 1, (size_t)INT32_MAX);
    if (window > VG_H2_BODY_WINDOW &&
        nghttp2_session_set_local_window_size(h->session, 0, s->id, (int32_t)window) < 0)
        vg_conn_close(h->codec.conn, -ENOMEM);
    vg_h2_speak(h);
}

/* Its body does not fit into the small window, or may not. */
static void want_grant(struct vg_h2_stream *s)
{
    struct vg_h2 *h = vg_h2_of(s);
    if (h->n_granted < VG_H2_GRANTS_MAX && vg_list_is_empty(&h->in_line)) {
        grant(s);
        return;
    }
    s->is_in_line = true;
    vg_h2_stream_to(s, &h->in_line);
}

void vg_h2_body_done(struct vg_h2_stream *s)
{
    struct vg_h2 *h = vg_h2_of(s);
    if (!s->wants_body)
        return;
    s->wants_body = false;
    s->is_in_line = false;
    vg_pace_stop(&s->x.pace); /* from here on it is the answer's */
    vg_h2_stream_to(s, &h->quiet);
    if (!s->is_granted)
        return;
    s->is_granted = false;
    h->n_granted--;
    if (!vg_list_is_empty(&h->in_line))
        grant(VG_CONTAINER_OF(h->in_line.next, struct vg_h2_stream, link));
}

static void refuse(struct vg_h2_stream *s, int status, const char *why)
{
    vg_h2_body_done(s);
    vg_exchange_refuse(&s->x, status, why);
}

static int end_early(struct vg_h2_stream *s)
{
    struct vg_h2 *h = vg_h2_of(s);
    if (s->is_draining)
        vg_h2_stream_to(s, &h->quiet);
    s->is_draining = false;
    int r = nghttp2_submit_rst_stream(h->session, 0, s->id, NGHTTP2_NO_ERROR);
    vg_h2_speak(h);
    return r < 0 ? -ENOMEM : 0;
}

/* More of its body may come. */
static bool has_window(const struct vg_h2_stream *s)
{
    const struct vg_h2 *h = vg_h2_of(s);
    return nghttp2_session_get_stream_effective_recv_data_length(h->session, s->id) <
           nghttp2_session_get_stream_effective_local_window_size(h->session, s->id);
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
                   void *arg)
{
    struct vg_h2 *h = arg;
    struct vg_h2_stream *s = find(session, id);
    (void)flags;
    if (nghttp2_session_consume_connection(session, n) < 0)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (s && s->is_draining && !has_window(s))
        return end_early(s) < 0 ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
    if (!s || !s->wants_body)
        return 0; /* answered already: the window stays shut */
    int r = vg_exchange_body(&s->x, (const char *)p, n);
    if (r == VIGIL_E_TOO_LARGE) {
        refuse(s, 413, "the body is too large");
        return 0;
    }
    if (r == VIGIL_E_BUSY) {
        refuse(s, 429, too_much);
        return 0;
    }
    if (r < 0) {
        vg_h2_stream_reset(s, NGHTTP2_INTERNAL_ERROR, r);
        return 0;
    }
    s->at = (int64_t)vg_conn_now(h->codec.conn);
    if (s->is_in_line)
        return 0;
    vg_h2_stream_to(s, &h->receiving);
    if (!s->is_granted && !s->is_short && vg_exchange_body_size(&s->x) >= VG_H2_BODY_WINDOW / 2)
        want_grant(s); /* half of the small window is used up: more may come */
    return 0;
}

int vg_h2_drain_body(struct vg_h2_stream *s)
{
    struct vg_h2 *h = vg_h2_of(s);
    if (!s->is_drainable || !has_window(s))
        return end_early(s);
    s->is_waiting = false;
    s->is_draining = true;
    s->at = (int64_t)vg_conn_now(h->codec.conn);
    vg_h2_stream_to(s, &h->draining);
    vg_conn_alarm(h->codec.conn, (uint64_t)s->at + VG_H2_DRAIN_NS);
    return 0;
}

static void request_done(struct vg_h2_stream *s)
{
    s->is_request_done = true;
    if (!s->wants_body)
        return;
    vg_h2_body_done(s);
    vg_exchange_request(&s->x);
}

/* The announced length of the body; VG_HTTP_STREAMED: none, or none that a number holds. nghttp2
 * has checked that it is one. */
static uint64_t body_length(const struct vg_h2_stream *s)
{
    char text[20]; /* 19 digits: below 2^64 */
    struct vg_slice v = vg_http_field(&s->x, "content-length");
    if (v.n == 0 || v.n >= sizeof(text))
        return VG_HTTP_STREAMED;
    memcpy(text, v.p, v.n);
    text[v.n] = 0;
    return strtoull(text, NULL, 10);
}

static int say_continue(struct vg_h2 *h, struct vg_h2_stream *s)
{
    static const nghttp2_nv go_on = {(uint8_t *)(uintptr_t) ":status", (uint8_t *)(uintptr_t) "100",
                                     7, 3, 0};
    if (!vg_slice_eq(vg_http_field(&s->x, "expect"), VG_SLICE_LIT("100-continue")))
        return 0;
    return nghttp2_submit_headers(h->session, 0, s->id, NULL, &go_on, 1, NULL) < 0 ? -ENOMEM : 0;
}

/* A body may wait for its next piece, and in all, for so long. Its rate is not asked for: who has a
 * large one waits for us to grant it room. */
static uint64_t body_due(const struct vg_h2_stream *s, const struct vg_http_limits *limits)
{
    return VG_MIN(deadline((uint64_t)s->at, limits->body_ms),
                  vg_pace_end(&s->x.pace, limits->request_ms));
}

/* Between on_head and the body. */
static int expect_body(struct vg_h2 *h, struct vg_h2_stream *s)
{
    const struct vg_http_limits *limits = vg_h2_limits(h);
    uint64_t length = s->x.req ? s->x.req->pub.body_length : VG_HTTP_STREAMED;
    if (length > limits->body_bytes && length != VG_HTTP_STREAMED) {
        refuse(s, 413, "the body is too large");
        return 0;
    }
    s->wants_body = true;
    s->is_short = length <= VG_H2_BODY_WINDOW;
    s->at = (int64_t)vg_conn_now(h->codec.conn);
    vg_pace_wait(&s->x.pace, (uint64_t)s->at);
    vg_h2_stream_to(s, &h->receiving);
    vg_conn_alarm(h->codec.conn, body_due(s, limits));
    if (!s->is_short && length != VG_HTTP_STREAMED)
        want_grant(s);
    return say_continue(h, s);
}

static int serve(struct vg_h2 *h, struct vg_h2_stream *s, bool is_whole)
{
    s->is_request_done = is_whole;
    s->is_drainable = true;
    if (s->is_too_large) {
        vg_exchange_refuse(&s->x, 431, "the head is too large");
        return 0;
    }
    if (s->is_too_much) {
        vg_exchange_refuse(&s->x, 429, too_much);
        return 0;
    }
    vg_exchange_seal(&s->x);
    uint64_t length = body_length(s);
    s->is_drainable = length <= VG_H2_BODY_WINDOW || length == UINT64_MAX;
    if (s->is_connect) {
        vg_exchange_refuse(&s->x, 405, "CONNECT is not served here");
        return 0;
    }
    if (!is_whole)
        vg_exchange_seal(&s->x); /* fields can be looked up */
    s->x.req->pub.body_length = is_whole ? 0 : body_length(s);
    if (!vg_exchange_head(&s->x))
        return 0;
    if (!is_whole)
        return expect_body(h, s);
    vg_exchange_request(&s->x);
    return 0;
}

static int on_request_head(struct vg_h2 *h, struct vg_h2_stream *s, bool is_whole)
{
    /* All answers share the connection evenly, whatever the client would prefer: a list must not
     * hold back the watches beside it. */
    static const nghttp2_extpri fair = {.urgency = NGHTTP2_EXTPRI_DEFAULT_URGENCY, .inc = 1};
    h->head_since_ns = 0;
    if (nghttp2_session_change_extpri_stream_priority(h->session, s->id, &fair, 1) < 0)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    int r = serve(h, s, is_whole);
    if (r < 0)
        vg_h2_stream_reset(s, NGHTTP2_INTERNAL_ERROR, r);
    return 0;
}

/* ---- frames ---- */

static void on_reset(struct vg_h2 *h, const struct vg_h2_stream *s)
{
    if (!s || !s->has_sent_head)
        spend(h);
}

static void on_ping(struct vg_h2 *h, const nghttp2_frame *frame)
{
    if (frame->hd.flags & NGHTTP2_FLAG_ACK)
        vg_h2_last_goaway(h);
    else
        spend(h);
}

/* We have said that we take no priorities, and nghttp2 tells of those that come all the same only
 * here. */
static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *arg)
{
    (void)session;
    if (hd->type == NGHTTP2_PRIORITY)
        spend(arg);
    return 0;
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct vg_h2 *h = arg;
    struct vg_h2_stream *s = frame->hd.stream_id ? find(session, frame->hd.stream_id) : NULL;
    bool is_end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        if (s && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
            return on_request_head(h, s, is_end);
        if (s && is_end)
            request_done(s);
        return 0;
    case NGHTTP2_DATA:
        if (frame->hd.length == 0 && !is_end)
            spend(h);
        if (s && is_end)
            request_done(s);
        return 0;
    case NGHTTP2_RST_STREAM:
        on_reset(h, s);
        return 0;
    case NGHTTP2_PING:
        on_ping(h, frame);
        return 0;
    case NGHTTP2_SETTINGS:
        h->head_since_ns = 0; /* the preface is complete; no head can be under way */
        if (!(frame->hd.flags & NGHTTP2_FLAG_ACK))
            spend(h);
        return 0;
    default:
        return 0;
    }
}

/* nghttp2 answers by itself, with RST_STREAM or GOAWAY. */
static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int error,
                            void *arg)
{
    struct vg_h2 *h = arg;
    (void)session;
    (void)frame;
    (void)error;
    vg_net_count(&h->codec.conn->server->counts.malformed, 1);
    spend(h);
    return 0;
}

void vg_h2_recv_callbacks(nghttp2_session_callbacks *cb)
{
    nghttp2_session_callbacks_set_on_begin_frame_callback(cb, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(cb, on_invalid_frame);
}

/* ---- timers ---- */

/* Those that have waited for the longest are in front. */
static void drain_tick(struct vg_h2 *h, uint64_t now_ns)
{
    VG_LIST_FOREACH_SAFE (n, &h->draining) {
        struct vg_h2_stream *s = VG_CONTAINER_OF(n, struct vg_h2_stream, link);
        uint64_t due = (uint64_t)s->at + VG_H2_DRAIN_NS;
        if (due > now_ns) {
            vg_conn_alarm(h->codec.conn, due);
            return;
        }
        if (end_early(s) < 0)
            vg_conn_close(h->codec.conn, -ENOMEM);
    }
}

void vg_h2_recv_tick(struct vg_h2 *h, uint64_t now_ns)
{
    struct vg_conn *conn = h->codec.conn;
    const struct vg_http_limits *limits = vg_h2_limits(h);
    uint64_t due = h->head_since_ns ? deadline(h->head_since_ns, limits->head_ms) : VG_NET_NEVER;
    if (due <= now_ns) {
        vg_net_count(&conn->server->counts.timeouts, 1);
        vg_conn_close(conn, VIGIL_E_TIMEOUT);
        return;
    }
    vg_conn_alarm(conn, due);
    drain_tick(h, now_ns);
    VG_LIST_FOREACH_SAFE (n, &h->receiving) {
        struct vg_h2_stream *s = VG_CONTAINER_OF(n, struct vg_h2_stream, link);
        due = body_due(s, limits);
        if (due <= now_ns) {
            vg_net_count(&conn->server->counts.timeouts, 1);
            s->is_drainable = false; /* it has been waited for */
            refuse(s, 408, "the body did not arrive in time");
        } else {
            vg_conn_alarm(conn, due);
        }
    }
}
