/* session_send.c - what calls send: heads, and messages from where they lie; see session.h. */
#include <errno.h>

#include "base/alloc.h"
#include "msg.h"
#include "session_int.h"

/* 16 of a call's own fields, and those that every call has. */
#define FIELDS_MAX 16
#define FIELDS_FIXED 9

/* ---- frames ---- */

/* nghttp2 asks how much of a frame we fill. */
static ssize_t read_data(nghttp2_session *h2, int32_t id, uint8_t *buf, size_t max, uint32_t *flags,
                         nghttp2_data_source *source, void *arg)
{
    struct vg_grpc_session *session = arg;
    struct vg_grpc_stream *s = nghttp2_session_get_stream_user_data(h2, id);
    (void)buf;
    (void)source;
    session->sending = s;
    if (!s)
        return NGHTTP2_ERR_DEFERRED; /* its reset is on the way */
    size_t n = VG_MIN(s->out.n, max);
    if (n == 0 && !s->is_half_closed) {
        s->is_deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    if (n == s->out.n && s->is_half_closed)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    return (ssize_t)n;
}

/* The frame is due: its head and the slices themselves go to the connection. */
static int send_data(nghttp2_session *h2, nghttp2_frame *frame, const uint8_t *head, size_t n,
                     nghttp2_data_source *source, void *arg)
{
    struct vg_grpc_session *session = arg;
    struct vg_grpc_stream *s = session->sending;
    (void)h2;
    (void)source;
    if (VG_NEVER(!s))
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (vg_outq_copy(&session->out, head, 9) < 0 || vg_outq_move(&s->out, n, &session->out) < 0)
        return NGHTTP2_ERR_CALLBACK_FAILURE; /* half a frame: the connection is lost */
    if (vg_grpc_is_unary(s) && frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        s->at = session->n_sent + session->out.n - 1;
    return session->out.n < VG_GRPC_OUT_MAX ? 0 : NGHTTP2_ERR_PAUSE;
}

/* All frames before this one are in `out`. */
static int before_send(nghttp2_session *h2, const nghttp2_frame *frame, void *arg)
{
    struct vg_grpc_session *session = arg;
    struct vg_grpc_stream *s = frame->hd.type == NGHTTP2_HEADERS
                                   ? nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id)
                                   : NULL;
    if (s && !vg_grpc_is_unary(s))
        s->at = session->n_sent + session->out.n;
    return 0;
}

void vg_grpc_send_callbacks(nghttp2_session_callbacks *cb)
{
    nghttp2_session_callbacks_set_send_data_callback(cb, send_data);
    nghttp2_session_callbacks_set_before_frame_send_callback(cb, before_send);
}

/* ---- heads ---- */

static nghttp2_nv pair(struct vg_slice name, struct vg_slice value, unsigned flags)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name.p, (uint8_t *)(uintptr_t)value.p, name.n,
                        value.n, (uint8_t)flags};
}
#define LIT(name, value)                                                                           \
    pair(VG_SLICE_LIT(name), VG_SLICE_LIT(value),                                                  \
         NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE)

/* nghttp2 copies what is not constant. A token is the same for many calls, so that it belongs into
 * HPACK's table; what is left of a call's time does not. */
static size_t put_head(const struct vg_grpc_session *s, const struct vg_grpc_call *c,
                       const struct vg_grpc_field *token, struct vg_slice timeout, nghttp2_nv *nv)
{
    size_t n = 0;
    nv[n++] = LIT(":method", "POST");
    nv[n++] = s->is_tls ? LIT(":scheme", "https") : LIT(":scheme", "http");
    nv[n++] = pair(VG_SLICE_LIT(":path"), vg_slice_str(c->path), 0);
    nv[n++] = pair(VG_SLICE_LIT(":authority"), vg_slice_str(s->authority), 0);
    nv[n++] = LIT("te", "trailers");
    nv[n++] = LIT("content-type", "application/grpc");
    nv[n++] = LIT("user-agent", "vigil-grpc");
    if (timeout.n)
        nv[n++] = pair(VG_SLICE_LIT("grpc-timeout"), timeout, NGHTTP2_NV_FLAG_NO_INDEX);
    if (token->name.p)
        nv[n++] = pair(token->name, token->value, 0);
    for (size_t i = 0; i < VG_MIN(c->n_fields, FIELDS_MAX); i++)
        nv[n++] = pair(c->fields[i].name, c->fields[i].value, 0);
    return n;
}

static int submit(struct vg_grpc_stream *st, const struct vg_grpc_field *token, uint64_t left_ns)
{
    struct vg_grpc_session *s = st->session;
    static const nghttp2_data_provider body = {.read_callback = read_data};
    nghttp2_nv nv[FIELDS_FIXED + FIELDS_MAX];
    char text[VG_GRPC_TIMEOUT_SIZE];
    struct vg_slice timeout = {0};
    if (left_ns)
        timeout = vg_grpc_write_timeout(left_ns, text);
    size_t n = put_head(s, st->call, token, timeout, nv);
    st->id = nghttp2_submit_request(s->h2, NULL, nv, n, &body, st);
    return st->id < 0 ? -ENOMEM : 0;
}

/* ---- calls ---- */

static int put_message(struct vg_grpc_stream *s, const struct vg_grpc_msg *m)
{
    struct vg_slice frame = vg_grpc_msg_frame(m);
    struct vg_http_pin pin = vg_grpc_msg_pin(m);
    return vg_outq_put(&s->out, &frame, 1, &pin);
}

int vg_grpc_session_start(struct vg_grpc_session *s, struct vg_grpc_call *c,
                          const struct vg_grpc_field *token, uint64_t left_ns)
{
    struct vg_grpc_stream *st = vg_new(struct vg_grpc_stream);
    if (!st)
        return -ENOMEM;
    st->session = s;
    st->call = c;
    st->at = VG_GRPC_NOWHERE;
    st->in.max = s->message_max;
    st->is_half_closed = !(c->flags & VG_GRPC_STREAM);
    vg_outq_init(&st->out, s->out.pool);
    vg_list_init(&st->woken);
    vg_list_push_back(&s->streams, &st->link);
    s->n_streams++;
    c->status = (struct vg_grpc_status){0};
    int r = c->msg ? put_message(st, c->msg) : 0;
    if (r == 0)
        r = submit(st, token, left_ns);
    if (r < 0) {
        vg_grpc_stream_free(st);
        return r;
    }
    c->stream = st;
    vg_grpc_session_wake(s);
    return 0;
}

static void has_more(struct vg_grpc_stream *s)
{
    if (s->is_deferred && nghttp2_session_resume_data(s->session->h2, s->id) == NGHTTP2_ERR_NOMEM)
        s->session->is_out_of_memory = true;
    s->is_deferred = false;
    vg_grpc_session_wake(s->session);
}

int vg_grpc_send(struct vg_grpc_call *c, struct vg_grpc_msg *take_msg)
{
    struct vg_grpc_stream *s = c->stream;
    int r = VIGIL_E_CLOSED;
    if (s && !s->is_over && !s->is_half_closed) {
        r = put_message(s, take_msg);
        if (r < 0)
            vg_grpc_stream_break(s, VG_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        else
            has_more(s);
    }
    vg_grpc_msg_unref(take_msg);
    return r;
}

void vg_grpc_half_close(struct vg_grpc_call *c)
{
    struct vg_grpc_stream *s = c->stream;
    if (!s || s->is_over || s->is_half_closed)
        return;
    s->is_half_closed = true;
    has_more(s);
}

size_t vg_grpc_unsent(const struct vg_grpc_call *c)
{
    return c->stream ? c->stream->out.n : 0;
}
