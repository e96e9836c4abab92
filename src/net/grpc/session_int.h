/* session_int.h - a stream, shared by session.c (life), session_send.c and session_recv.c. */
#ifndef VG_NET_GRPC_SESSION_INT_H
#define VG_NET_GRPC_SESSION_INT_H

#include "session.h"

#define VG_GRPC_NOWHERE UINT64_MAX /* not in `out` yet */

struct vg_grpc_stream {
    struct vg_grpc_session *session;
    struct vg_grpc_call *call;
    int32_t id;
    struct vg_list link; /* session->streams, or ->ended */
    struct vg_outq out;  /* frames of messages that wait for a turn */
    uint64_t at;         /* G4: from this position on the server may act */
    struct vg_grpc_frames in;
    struct vg_buf held;   /* came while it was paused, or a page that is not gRPC's */
    size_t owed;          /* bytes of them for which the window was not given back */
    struct vg_list woken; /* session->resumed: what is held is to be told */
    int http_status;
    enum vg_grpc_code code; /* with has_status */
    bool has_status;        /* grpc-status, in a head that ends the stream */
    bool is_grpc;           /* by its content-type */
    bool has_message;       /* a unary call's; a stream's first */
    bool is_half_closed;    /* no more messages from here */
    bool is_deferred;       /* nghttp2 waits to be told that there is more */
    bool is_paused;
    bool is_closed; /* nghttp2 is done with it, but what is held has to be told first */
    bool is_over;   /* it is among the ended */
};

static inline bool vg_grpc_is_unary(const struct vg_grpc_stream *s)
{
    return !(s->call->flags & VG_GRPC_STREAM);
}
static inline void vg_grpc_session_wake(struct vg_grpc_session *s)
{
    s->is_quiet = false;
    s->ops->wake(s);
}

/* ---- session.c ---- */

void vg_grpc_stream_free(struct vg_grpc_stream *s);
enum vg_grpc_fate vg_grpc_stream_fate(const struct vg_grpc_stream *s);
/* It cannot go on: this is its status, and it is reset. */
void vg_grpc_stream_break(struct vg_grpc_stream *s, enum vg_grpc_code code, const char *fmt, ...)
    VG_PRINTF(3, 4);

/* The server has said its last on it. */
void vg_grpc_stream_answered(struct vg_grpc_stream *s);

/* ---- session_send.c ---- */

void vg_grpc_send_callbacks(nghttp2_session_callbacks *cb);

/* ---- session_recv.c ---- */

void vg_grpc_recv_callbacks(nghttp2_session_callbacks *cb);
/* Bytes of messages, from the wire or held: they are told, or held while it is paused. False: the
 * call was cancelled meanwhile, and the stream is gone. */
bool vg_grpc_stream_take(struct vg_grpc_stream *s, struct vg_slice in);

#endif
