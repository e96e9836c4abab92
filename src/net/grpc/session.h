/* session.h - calls on one HTTP/2 connection: an nghttp2 client session without a socket.
 * Bytes come by vg_grpc_session_receive; bytes to be sent are in `out` after vg_grpc_session_fill,
 * and vg_grpc_session_sent says how many of them left. So tests and fuzzers need no socket.
 *
 * Rules:
 *   G1 nghttp2 is never entered twice: what a caller calls submits frames, and `wake` asks for a
 *      fill at the end of the turn.
 *   G2 on_message comes from within receive. An end is noted there and told (ops->ended) when
 *      nghttp2 has returned; the stream is gone by then and the call its owner's.
 *   G3 a stream belongs to its call as long as call->stream is set; nghttp2 knows it by its id and
 *      forgets it (no user data) when the call is cancelled.
 *   G4 positions count all bytes ever put into `out`. What lies before `offered` may have reached
 *      the server; what does not cannot have. A unary request is with the server when its last byte
 *      may be, since a server does nothing with half a message; a stream when its head may be. */
#ifndef VG_NET_GRPC_SESSION_H
#define VG_NET_GRPC_SESSION_H

#include <nghttp2/nghttp2.h>

#include "codec.h"
#include "net/outq.h"

/* 128 KiB: beyond it fill adds nothing. */
#define VG_GRPC_OUT_MAX (128u * 1024u)
/* 100: of a body that is not gRPC's, what is shown to a person. */
#define VG_GRPC_BODY_SHOWN 100

struct vg_grpc_session;

struct vg_grpc_session_ops {
    void (*wake)(struct vg_grpc_session *s);  /* there is something to send */
    void (*ready)(struct vg_grpc_session *s); /* the server's settings came */
    /* The server takes no new calls; those that it took go on. */
    void (*going)(struct vg_grpc_session *s, const char *why);
    void (*ponged)(struct vg_grpc_session *s);
    /* call->status is there; call->stream is NULL. */
    void (*ended)(struct vg_grpc_session *s, struct vg_grpc_call *c);
};

struct vg_grpc_session {
    const struct vg_grpc_session_ops *ops;
    const char *name; /* the endpoint, for sentences */
    const char *authority;
    bool is_tls;
    size_t message_max;
    nghttp2_session *h2;
    struct vg_outq out;
    uint64_t n_sent, offered;
    struct vg_list streams;         /* under way */
    struct vg_list ended;           /* noted, not told yet */
    struct vg_list resumed;         /* have something to be told */
    struct vg_grpc_stream *sending; /* between read_data and send_data */
    struct vg_grpc_stream *telling; /* its on_message runs; NULL again: it was cancelled there */
    size_t n_streams;
    uint64_t bytes_in;
    bool is_quiet; /* nghttp2 has nothing to say */
    bool is_going; /* GOAWAY came */
    bool has_settings;
    bool is_out_of_memory;
    char why[VG_GRPC_BODY_SHOWN + 1]; /* nghttp2's words on what the server did wrong */
};

struct vg_grpc_session_opts {
    const struct vg_grpc_session_ops *ops;
    const char *name, *authority; /* borrowed */
    bool is_tls;
    size_t message_max;
    uint32_t window;
    struct vg_outq_pool *pool;
};
/* 0, -ENOMEM; then it is as if never begun. */
VG_CHECK int vg_grpc_session_init(struct vg_grpc_session *s,
                                  const struct vg_grpc_session_opts *opts);
/* No call is on it any more (vg_grpc_session_lost). */
void vg_grpc_session_done(struct vg_grpc_session *s);

/* All bytes are taken. 0, or negative with a sentence: the connection is broken. */
VG_CHECK int vg_grpc_session_receive(struct vg_grpc_session *s, const void *p, size_t n,
                                     struct vg_status *reterr_status);
/* Put what can be sent into `out`. As receive. */
VG_CHECK int vg_grpc_session_fill(struct vg_grpc_session *s, struct vg_status *reterr_status);
/* The first n bytes of `out` have left and are consumed; `held` more may have. */
void vg_grpc_session_sent(struct vg_grpc_session *s, size_t n, size_t held);
/* The connection is gone: every call ends with UNAVAILABLE and this sentence. */
void vg_grpc_session_lost(struct vg_grpc_session *s, const char *why);
VG_CHECK int vg_grpc_session_ping(struct vg_grpc_session *s);

/* Put a call on it; `token` (name.p NULL: none) goes beside its own fields, left_ns is what is left
 * of its time (0: no end). The message is borrowed: the call keeps it. 0, -ENOMEM. */
VG_CHECK int vg_grpc_session_start(struct vg_grpc_session *s, struct vg_grpc_call *c,
                                   const struct vg_grpc_field *token, uint64_t left_ns);
/* Take it off again, resetting the stream; what the server can have seen of it. */
enum vg_grpc_fate vg_grpc_session_drop(struct vg_grpc_call *c);

#endif
