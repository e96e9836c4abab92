/* session_recv.c - what servers send: heads, messages, trailers, and the end; see session.h. */
#include <errno.h>
#include <stdio.h>

#include "session_int.h"

static struct vg_grpc_stream *find(nghttp2_session *h2, int32_t id)
{
    return nghttp2_session_get_stream_user_data(h2, id);
}

/* ---- heads and trailers ---- */

static bool is(struct vg_slice name, const char *text)
{
    return vg_slice_eq(name, vg_slice_str(text));
}

static int read_http_status(struct vg_slice v)
{
    int n = 0;
    for (size_t i = 0; i < v.n && i < 3; i++)
        n = n * 10 + (v.p[i] - '0'); /* nghttp2 has looked: three digits */
    return n;
}

/* A status counts in the head that ends the stream; elsewhere it is somebody's mistake. */
static int on_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name,
                     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags, void *arg)
{
    struct vg_grpc_stream *s = find(h2, frame->hd.stream_id);
    struct vg_slice key = vg_slice(name, n_name), v = vg_slice(value, n_value);
    (void)flags;
    (void)arg;
    if (!s || frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    bool is_last = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    if (is(key, ":status"))
        s->http_status = read_http_status(v);
    else if (is(key, "content-type"))
        s->is_grpc = vg_grpc_is_content_type(v);
    else if (is_last && is(key, "grpc-status") && !s->has_status) {
        s->has_status = true;
        s->code = vg_grpc_read_status(v);
    } else if (is_last && is(key, "grpc-message"))
        vg_grpc_read_message(v, s->call->status.message, sizeof s->call->status.message);
    return 0;
}

/* ---- messages ---- */

/* A unary call has one message. 1: go on; 0: it is over. */
static int keep_answer(struct vg_grpc_stream *s, struct vg_slice message)
{
    if (s->has_message) {
        vg_grpc_stream_break(s, VG_GRPC_INTERNAL, "%s answered with more than one message",
                             s->session->name);
        return 0;
    }
    s->has_message = true;
    if (vg_grpc_frames_keep(&s->in, message, &s->call->answer) == 0)
        return 1;
    vg_grpc_stream_break(s, VG_GRPC_RESOURCE_EXHAUSTED, "out of memory for the answer");
    return 0;
}

/* 1: go on; 0: it is over; -1: it was cancelled, and is gone. */
static int tell(struct vg_grpc_stream *s, struct vg_slice message)
{
    struct vg_grpc_session *session = s->session;
    if (vg_grpc_is_unary(s))
        return keep_answer(s, message);
    s->has_message = true;
    session->telling = s;
    if (s->call->on_message)
        s->call->on_message(s->call, message);
    if (session->telling != s)
        return -1;
    session->telling = NULL;
    return !s->is_over;
}

static void refuse(struct vg_grpc_stream *s, int err)
{
    const char *name = s->session->name;
    if (err == VIGIL_E_TOO_LARGE)
        vg_grpc_stream_break(s, VG_GRPC_RESOURCE_EXHAUSTED,
                             "%s sends a message of %zu bytes; %zu are taken at most", name,
                             s->in.length, s->in.max);
    else if (err == VIGIL_E_UNSUPPORTED)
        vg_grpc_stream_break(s, VG_GRPC_INTERNAL,
                             "%s sends a compressed message, which nobody asked for", name);
    else if (err == -ENOMEM)
        vg_grpc_stream_break(s, VG_GRPC_RESOURCE_EXHAUSTED, "out of memory for a message");
    else
        vg_grpc_stream_break(s, VG_GRPC_INTERNAL, "%s sends a malformed message", name);
}

static void hold(struct vg_grpc_stream *s, struct vg_slice in)
{
    if (vg_buf_append_slice(&s->held, in) < 0)
        refuse(s, -ENOMEM);
}

bool vg_grpc_stream_take(struct vg_grpc_stream *s, struct vg_slice in)
{
    struct vg_slice message;
    int goes_on = 1;
    while (in.n && goes_on > 0) {
        if (s->is_paused) {
            hold(s, in);
            break;
        }
        int r = vg_grpc_frames_step(&s->in, &in, &message);
        if (r < 0) {
            refuse(s, r);
            break;
        }
        if (r > 0)
            goes_on = tell(s, message);
    }
    return goes_on >= 0;
}

/* A page of some proxy: its beginning goes into the sentence. */
static void keep_foreign(struct vg_grpc_stream *s, struct vg_slice in)
{
    in.n = VG_MIN(in.n, VG_GRPC_BODY_SHOWN - VG_MIN(s->held.n, (size_t)VG_GRPC_BODY_SHOWN));
    if (vg_buf_append_slice(&s->held, in) < 0)
        s->session->is_out_of_memory = true;
}

/* The connection's window is given back at once, the stream's when its bytes are taken: one that
 * waits does not hold up the others. */
static int on_data(nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
                   void *arg)
{
    struct vg_grpc_stream *s = find(h2, id);
    struct vg_slice in = vg_slice(p, n);
    (void)flags;
    (void)arg;
    if (nghttp2_session_consume_connection(h2, n) < 0)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (!s)
        return 0;
    bool is_ours = s->is_grpc && s->http_status == 200;
    if (is_ours && (s->is_paused || s->held.n > 0)) {
        s->owed += n;
        hold(s, in);
        return 0;
    }
    if (nghttp2_session_consume_stream(h2, id, n) == NGHTTP2_ERR_NOMEM)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (is_ours)
        (void)vg_grpc_stream_take(s, in);
    else
        keep_foreign(s, in);
    return 0;
}

/* ---- frames ---- */

static void on_goaway(struct vg_grpc_session *s, const nghttp2_goaway *g)
{
    char text[VG_GRPC_BODY_SHOWN + 1], why[256];
    vg_grpc_read_message(vg_slice(g->opaque_data, g->opaque_data_len), text, sizeof text);
    snprintf(why, sizeof why, "it said goodbye (%s%s%s)", nghttp2_http2_strerror(g->error_code),
             text[0] ? ": " : "", text);
    s->is_going = true;
    s->ops->going(s, why);
}

static int on_frame_recv(nghttp2_session *h2, const nghttp2_frame *frame, void *arg)
{
    struct vg_grpc_session *s = arg;
    struct vg_grpc_stream *st;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA:
        st = find(h2, frame->hd.stream_id);
        if (st && frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
            vg_grpc_stream_answered(st);
        return 0;
    case NGHTTP2_SETTINGS:
        if (frame->hd.flags & NGHTTP2_FLAG_ACK || s->has_settings)
            return 0;
        s->has_settings = true;
        s->ops->ready(s);
        return 0;
    case NGHTTP2_PING:
        if (frame->hd.flags & NGHTTP2_FLAG_ACK)
            s->ops->ponged(s);
        return 0;
    case NGHTTP2_GOAWAY:
        on_goaway(s, &frame->goaway);
        return 0;
    default:
        return 0;
    }
}

/* For people: what nghttp2 makes of bytes that are not HTTP/2. */
static int on_error(nghttp2_session *h2, int error, const char *text, size_t n, void *arg)
{
    struct vg_grpc_session *s = arg;
    (void)h2;
    (void)error;
    if (!s->why[0])
        vg_grpc_read_message(vg_slice(text, n), s->why, sizeof s->why);
    return 0;
}

static int on_invalid_frame(nghttp2_session *h2, const nghttp2_frame *frame, int error, void *arg)
{
    struct vg_grpc_session *s = arg;
    (void)h2;
    if (!s->why[0] && frame->hd.stream_id == 0)
        snprintf(s->why, sizeof s->why, "%s", nghttp2_strerror(error));
    return 0;
}

void vg_grpc_recv_callbacks(nghttp2_session_callbacks *cb)
{
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(cb, on_invalid_frame);
    nghttp2_session_callbacks_set_error_callback2(cb, on_error);
}
