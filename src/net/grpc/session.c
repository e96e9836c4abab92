/* session.c - the life of a session and of the calls on it: ends, pauses, bytes; see session.h. */
#include "session.h"
#include "net/h2_mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "session_int.h"

/* ---- ends ---- */

enum vg_grpc_fate vg_grpc_stream_fate(const struct vg_grpc_stream *s)
{
    return s->at == VG_GRPC_NOWHERE || s->at >= s->session->offered ? VG_GRPC_NOT_SENT
                                                                    : VG_GRPC_MAYBE;
}

void vg_grpc_stream_free(struct vg_grpc_stream *s)
{
    vg_list_remove(&s->link);
    vg_list_remove(&s->woken);
    vg_outq_done(&s->out);
    vg_grpc_frames_done(&s->in);
    vg_buf_done(&s->held);
    s->session->n_streams--;
    vg_free(s);
}

static void forget(struct vg_grpc_stream *s)
{
    nghttp2_session_set_stream_user_data(s->session->h2, s->id, NULL);
}

static void reset(struct vg_grpc_stream *s)
{
    if (s->is_closed)
        return;
    if (nghttp2_submit_rst_stream(s->session->h2, 0, s->id, NGHTTP2_CANCEL) < 0)
        s->session->is_out_of_memory = true;
    vg_grpc_session_wake(s->session);
}

static void note_end(struct vg_grpc_stream *s)
{
    s->is_over = true;
    vg_list_remove(&s->link);
    vg_list_push_back(&s->session->ended, &s->link);
}

void vg_grpc_stream_break(struct vg_grpc_stream *s, enum vg_grpc_code code, const char *fmt, ...)
{
    struct vg_grpc_status *status = &s->call->status;
    va_list ap;
    if (s->is_over)
        return;
    va_start(ap, fmt);
    vsnprintf(status->message, sizeof status->message, fmt, ap);
    va_end(ap);
    status->code = code;
    status->fate = vg_grpc_stream_fate(s);
    reset(s);
    forget(s);
    note_end(s);
    vg_grpc_session_wake(s->session);
}

enum vg_grpc_fate vg_grpc_session_drop(struct vg_grpc_call *c)
{
    struct vg_grpc_stream *s = vg_steal(c->stream);
    enum vg_grpc_fate fate = vg_grpc_stream_fate(s);
    if (s->session->telling == s)
        s->session->telling = NULL;
    if (s->session->sending == s)
        s->session->sending = NULL;
    if (!s->is_over) {
        reset(s);
        forget(s);
    }
    vg_grpc_stream_free(s);
    return fate;
}

/* nghttp2 has returned: those who have ended are told. */
static void settle(struct vg_grpc_session *s)
{
    while (!vg_list_is_empty(&s->ended)) {
        struct vg_grpc_stream *st = VG_CONTAINER_OF(s->ended.next, struct vg_grpc_stream, link);
        struct vg_grpc_call *c = st->call;
        c->stream = NULL;
        vg_grpc_stream_free(st);
        s->ops->ended(s, c);
    }
}

void vg_grpc_session_lost(struct vg_grpc_session *s, const char *why)
{
    while (!vg_list_is_empty(&s->streams)) {
        struct vg_grpc_stream *st = VG_CONTAINER_OF(s->streams.next, struct vg_grpc_stream, link);
        struct vg_grpc_status *status = &st->call->status;
        status->code = VG_GRPC_UNAVAILABLE;
        status->fate = vg_grpc_stream_fate(st);
        snprintf(status->message, sizeof status->message, "%s: %s", s->name, why);
        forget(st);
        note_end(st);
    }
    settle(s);
}

/* The server ended it without a word of gRPC. */
static void end_wordless(struct vg_grpc_stream *s, uint32_t error)
{
    struct vg_grpc_status *status = &s->call->status;
    char body[VG_GRPC_BODY_SHOWN + 1];
    status->fate = error == NGHTTP2_REFUSED_STREAM ? VG_GRPC_NOT_SENT : vg_grpc_stream_fate(s);
    if (error != NGHTTP2_NO_ERROR) {
        status->code = vg_grpc_code_of_reset(error);
        snprintf(status->message, sizeof status->message, "%s reset the call: %s", s->session->name,
                 nghttp2_http2_strerror(error));
    } else if (s->http_status != 200 || !s->is_grpc) {
        vg_grpc_read_message(vg_buf_slice(&s->held), body, sizeof body);
        status->code = vg_grpc_code_of_http(s->http_status);
        snprintf(status->message, sizeof status->message,
                 "%s answers with HTTP status %d instead of gRPC's: %s", s->session->name,
                 s->http_status, body[0] ? body : "(no text)");
    } else {
        status->code = VG_GRPC_UNKNOWN;
        snprintf(status->message, sizeof status->message, "%s ended the call without a status",
                 s->session->name);
    }
}

static void end_with_status(struct vg_grpc_stream *s)
{
    struct vg_grpc_status *status = &s->call->status;
    status->code = s->code;
    status->fate = VG_GRPC_ANSWERED;
    if (s->code != VG_GRPC_OK)
        return;
    bool is_short = vg_grpc_frames_is_inside(&s->in);
    if (!is_short && (s->has_message || !vg_grpc_is_unary(s)))
        return;
    status->code = VG_GRPC_INTERNAL;
    status->fate = VG_GRPC_MAYBE;
    snprintf(status->message, sizeof status->message, "%s answered OK %s", s->session->name,
             is_short ? "in the middle of a message" : "without a message");
}

static void finish(struct vg_grpc_stream *s, uint32_t error)
{
    if (s->has_status)
        end_with_status(s);
    else
        end_wordless(s, error);
    if (s->held.n > 0 && s->is_grpc)
        s->is_closed = true; /* what is held comes first */
    else
        note_end(s);
}

/* What we had still to say is of no use to anybody. */
void vg_grpc_stream_answered(struct vg_grpc_stream *s)
{
    if (nghttp2_session_get_stream_local_close(s->session->h2, s->id) == 0)
        reset(s);
    forget(s);
    finish(s, NGHTTP2_NO_ERROR);
}

static int on_stream_close(nghttp2_session *h2, int32_t id, uint32_t error, void *arg)
{
    struct vg_grpc_stream *s = nghttp2_session_get_stream_user_data(h2, id);
    (void)arg;
    if (s)
        finish(s, error);
    return 0;
}

/* ---- pausing ---- */

void vg_grpc_pause(struct vg_grpc_call *c)
{
    if (c->stream)
        c->stream->is_paused = true;
}

void vg_grpc_resume(struct vg_grpc_call *c)
{
    struct vg_grpc_stream *s = c->stream;
    if (!s || !s->is_paused)
        return;
    s->is_paused = false;
    if (s->held.n == 0 || s->is_over || !vg_list_is_empty(&s->woken))
        return;
    vg_list_push_back(&s->session->resumed, &s->woken);
    vg_grpc_session_wake(s->session);
}

/* What came while a stream was paused. A message may pause it again, or cancel it. */
static void tell_held(struct vg_grpc_stream *s)
{
    struct vg_grpc_session *session = s->session;
    struct vg_buf held = s->held;
    s->held = (struct vg_buf){0};
    if (s->owed && nghttp2_session_consume_stream(session->h2, s->id, s->owed) == NGHTTP2_ERR_NOMEM)
        session->is_out_of_memory = true;
    s->owed = 0;
    bool is_there = vg_grpc_stream_take(s, vg_buf_slice(&held));
    vg_buf_done(&held);
    if (is_there && !s->is_over && s->is_closed && s->held.n == 0)
        note_end(s);
}

static void tell_resumed(struct vg_grpc_session *session)
{
    struct vg_list *n;
    while ((n = vg_list_pop_front(&session->resumed))) {
        struct vg_grpc_stream *s = VG_CONTAINER_OF(n, struct vg_grpc_stream, woken);
        if (!s->is_paused && !s->is_over && s->held.n > 0)
            tell_held(s);
    }
}

/* ---- bytes ---- */

static int fail(struct vg_grpc_session *s, ssize_t error, struct vg_status *status)
{
    if (s->is_out_of_memory || error == NGHTTP2_ERR_NOMEM)
        return vg_fail(status, -ENOMEM, "out of memory");
    return vg_fail(status, VIGIL_E_NETWORK, "it breaks the rules of HTTP/2: %s",
                   s->why[0] ? s->why : nghttp2_strerror((int)error));
}

int vg_grpc_session_receive(struct vg_grpc_session *s, const void *p, size_t n,
                            struct vg_status *reterr_status)
{
    ssize_t r = nghttp2_session_mem_recv(s->h2, p, n);
    s->bytes_in += n;
    settle(s);
    if (r < 0 || s->is_out_of_memory)
        return fail(s, r, reterr_status);
    vg_grpc_session_wake(s);
    return 0;
}

/* Asking nghttp2 costs more than all else here: it is left alone while it has nothing to say. */
static ssize_t pump(struct vg_grpc_session *s)
{
    const uint8_t *p;
    while (s->out.n < VG_GRPC_OUT_MAX) {
        ssize_t n = nghttp2_session_mem_send(s->h2, &p);
        if (n == 0) {
            s->is_quiet = s->out.n < VG_GRPC_OUT_MAX;
            return 0;
        }
        if (n > 0 && vg_outq_copy(&s->out, p, (size_t)n) < 0)
            n = NGHTTP2_ERR_NOMEM;
        if (n < 0)
            return n;
    }
    return 0;
}

int vg_grpc_session_fill(struct vg_grpc_session *s, struct vg_status *reterr_status)
{
    ssize_t r = 0;
    if (!s->is_quiet) {
        tell_resumed(s);
        r = pump(s);
    }
    settle(s);
    if (r < 0 || s->is_out_of_memory)
        return fail(s, r, reterr_status);
    if (!nghttp2_session_want_read(s->h2) && !nghttp2_session_want_write(s->h2) && s->out.n == 0)
        return vg_fail(reterr_status, VIGIL_E_NETWORK, "%s%s",
                       s->why[0] ? "it breaks the rules of HTTP/2: " : "the connection has ended",
                       s->why);
    return 0;
}

void vg_grpc_session_sent(struct vg_grpc_session *s, size_t n, size_t held)
{
    s->n_sent += n;
    s->offered = VG_MAX(s->offered, s->n_sent + held);
}

int vg_grpc_session_ping(struct vg_grpc_session *s)
{
    int r = nghttp2_submit_ping(s->h2, 0, NULL);
    vg_grpc_session_wake(s);
    return r < 0 ? -ENOMEM : 0;
}

/* ---- birth and death ---- */

static int h2_new(struct vg_grpc_session *s, const nghttp2_session_callbacks *cb)
{
    nghttp2_mem mem = vg_h2_mem(&s->is_out_of_memory);
    nghttp2_option *o;
    if (nghttp2_option_new(&o) < 0)
        return -ENOMEM;
    nghttp2_option_set_no_auto_window_update(o, 1);
    nghttp2_option_set_no_closed_streams(o, 1);
    int r = nghttp2_session_client_new3(&s->h2, cb, s, o, &mem);
    nghttp2_option_del(o);
    return r < 0 ? -ENOMEM : 0;
}

static int introduce(struct vg_grpc_session *s, uint32_t window)
{
    nghttp2_settings_entry set[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window},
    };
    int r = nghttp2_submit_settings(s->h2, 0, set, VG_ARRAY_LEN(set));
    if (r == 0)
        r = nghttp2_session_set_local_window_size(s->h2, 0, 0,
                                                  (int32_t)VG_MIN(window * 4u, INT32_MAX));
    return r < 0 ? -ENOMEM : 0;
}

int vg_grpc_session_init(struct vg_grpc_session *s, const struct vg_grpc_session_opts *o)
{
    nghttp2_session_callbacks *cb;
    *s = (struct vg_grpc_session){.ops = o->ops,
                                  .name = o->name,
                                  .authority = o->authority,
                                  .is_tls = o->is_tls,
                                  .message_max = o->message_max};
    vg_list_init(&s->streams);
    vg_list_init(&s->ended);
    vg_list_init(&s->resumed);
    vg_outq_init(&s->out, o->pool);
    if (nghttp2_session_callbacks_new(&cb) < 0)
        return -ENOMEM;
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
    vg_grpc_send_callbacks(cb);
    vg_grpc_recv_callbacks(cb);
    int r = h2_new(s, cb);
    nghttp2_session_callbacks_del(cb);
    if (r == 0)
        r = introduce(s, o->window);
    if (r == 0 && s->is_out_of_memory)
        r = -ENOMEM;
    if (r < 0)
        vg_grpc_session_done(s);
    return r;
}

void vg_grpc_session_done(struct vg_grpc_session *s)
{
    nghttp2_session_del(s->h2);
    s->h2 = NULL;
    vg_outq_done(&s->out);
}
