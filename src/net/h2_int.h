/* h2_int.h - what the files of the HTTP/2 codec share.
 *   h2.c         the session: bytes in and out, timers, drain, the end
 *   h2_recv.c    what the client sends: requests, bodies, floods
 *   h2_answer.c  what we send: heads, DATA frames, ends
 *
 * nghttp2 keeps the protocol; it is fed and asked for frames, and does no I/O. Invariants:
 *   S1 a stream is in one of h2's lists (quiet, receiving, in_line, waiting, draining) from its
 * first HEADERS until on_closed; nghttp2 knows it by its user data unless is_gone (reset, closed or
 * given up), and then never sees it again. S2 handlers are called when nghttp2 runs (on_head,
 * on_request) or after it ran (on_progress, on_drained, on_closed), but nghttp2 is never entered
 * twice: what they call only submits. S3 bytes wait with their stream until the windows and the
 * connection have room; a stream whose window is shut costs the others nothing. S4 nghttp2 has a
 * DATA item of a stream only while the stream has something to send: an idle watch costs no item.
 */
#ifndef VG_NET_H2_INT_H
#define VG_NET_H2_INT_H

#include <nghttp2/nghttp2.h>

#include "base/alloc.h"
#include "conn_int.h"

/* 64 KiB: the window of a request's body before it is granted more; nearly all fit in it. */
#define VG_H2_BODY_WINDOW 65535
/* 1 MiB: what a client may have under way on all streams; given back as it arrives. */
#define VG_H2_CONN_WINDOW (1 << 20)
/* 8: bodies above VG_H2_BODY_WINDOW that one connection may send at a time; others wait in line, so
 * that its memory is bounded by streams * 64 KiB + 8 * body_bytes. */
#define VG_H2_GRANTS_MAX 8u
/* 8: a head of 64 KiB needs four frames; more than twice that many are a flood. */
#define VG_H2_CONTINUATIONS_MAX 8u
/* 256: answers to pings and settings that wait because the client does not read. */
#define VG_H2_ACKS_MAX 256u
/* 1 s: how long a client has after the shutdown notice until no new stream is taken. */
#define VG_H2_NOTICE_NS VG_NS_PER_S
/* 2 s: how long a client that floods has to read the GOAWAY before it is cut. */
#define VG_H2_FLOOD_NS (2 * VG_NS_PER_S)
/* 2 s: how long the rest of a body is waited for that was answered before it was whole. Clients
 * take a reset that comes while they still send for an error of the transport, and do not see the
 * answer. */
#define VG_H2_DRAIN_NS (2 * VG_NS_PER_S)

/* Ten thousand watches are ten thousand of these: what can be told from elsewhere is not kept. */
struct vg_h2_stream {
    struct vg_http_exchange x; /* first */
    struct vg_outq out;        /* DATA to come */
    struct vg_list link;       /* S1 */
    struct vg_list turn;       /* h2->touched or h2->ended */
    /* Receiving: when the last piece came. Gone: where the output has its last byte, which
     * on_closed waits for; or, negative, the error that on_closed will be told, which waits for
     * nothing. */
    int64_t at;
    int32_t id;
    bool is_gone : 1;         /* S1 */
    bool has_item : 1;        /* S4 */
    bool is_too_large : 1;    /* the head; 431 */
    bool is_too_much : 1;     /* the head, with all requests there are; 429 */
    bool is_connect : 1;      /* 405 */
    bool has_sent_head : 1;   /* the answer's head has gone to the connection */
    bool is_granted : 1;      /* counted in h2->n_granted */
    bool is_in_line : 1;      /* waits for a grant */
    bool is_short : 1;        /* announced to fit into the small window */
    bool wants_body : 1;      /* the handler waits for it */
    bool is_request_done : 1; /* END_STREAM was received */
    bool is_waiting : 1;      /* in h2->waiting */
    bool is_charged : 1;      /* VG_SHARE_STREAM of its connection's share */
    bool is_draining : 1;     /* in h2->draining */
    bool is_drainable : 1;    /* its body fits into the small window, or has said no length */
};

struct vg_h2 {
    struct vg_codec codec; /* first */
    nghttp2_session *session;
    struct vg_list quiet;     /* streams that are in none of the other lists of S1 */
    struct vg_list touched;   /* were written to, or moved bytes, since the handlers were told */
    struct vg_list ended;     /* on_closed comes when the output has left up to their position */
    struct vg_list receiving; /* bodies, the one that was quiet for the longest first */
    struct vg_list in_line;   /* bodies that wait for a grant: ours to wait for, not theirs */
    struct vg_list waiting;   /* bytes wait for a window or for the connection */
    struct vg_list draining;  /* answered; what is left of a small body is read and dropped */
    size_t n_streams, n_granted;
    struct vg_h2_stream *sending; /* from read callback to send callback */
    uint64_t n_sent;              /* bytes that left the connection */
    struct vg_pace pace;          /* of the connection's output */
    uint32_t held;                /* by the socket after the last send or look, while it waits */
    uint64_t head_since_ns;       /* preface or head incomplete since; 0: none is */
    uint64_t idle_since_ns;       /* no streams since; 0: there are */
    uint64_t notice_ns;           /* shutdown notice sent; 0: not, or the last GOAWAY too */
    uint64_t flood_ns;            /* ended as a flood; 0: it was not */
    uint64_t calm_ns;             /* tokens were counted up to here */
    uint64_t calm;                /* tokens left, in billionths */
    bool is_draining, is_terminated;
    bool is_out_of_memory; /* in nghttp2 */
    bool is_quiet;         /* nghttp2 has nothing to say */
};

static inline struct vg_h2 *vg_h2_of(const struct vg_h2_stream *s)
{
    return (struct vg_h2 *)(void *)s->x.conn->codec;
}
static inline const struct vg_http_limits *vg_h2_limits(const struct vg_h2 *h)
{
    return h->codec.conn->server->limits;
}

static inline void vg_h2_stream_to(struct vg_h2_stream *s, struct vg_list *list)
{
    vg_list_remove(&s->link);
    vg_list_push_back(list, &s->link);
}

/* Bytes that went to the connection and were not told of. Not for streams that are gone: what they
 * had queued was dropped. */
static inline size_t vg_h2_moved(const struct vg_h2_stream *s)
{
    return s->x.unsent - s->out.n;
}

/* nghttp2 may have something to say at the end of the turn. */
static inline void vg_h2_speak(struct vg_h2 *h)
{
    h->is_quiet = false;
    vg_conn_dirty(h->codec.conn);
}

/* ---- h2.c ---- */

/* nghttp2 is done with it, or shall be: forget its id and what waits, and let on_closed(err) come
 * once the output has left up to here. */
void vg_h2_stream_gone(struct vg_h2_stream *s, int err);
/* Reset it, and let on_closed(err) come. */
void vg_h2_stream_reset(struct vg_h2_stream *s, uint32_t code, int err);
/* GOAWAY, and close when it has left. */
void vg_h2_terminate(struct vg_h2 *h, uint32_t code);
/* After a shutdown notice: no new streams from here on. */
void vg_h2_last_goaway(struct vg_h2 *h);

/* ---- h2_recv.c ---- */

void vg_h2_recv_callbacks(nghttp2_session_callbacks *cb);
/* It takes no more body: out of the lists, and the next in line has its turn. */
void vg_h2_body_done(struct vg_h2_stream *s);
/* The answer has been sent and the body has not come: wait for it if it is small, or reset. 0,
 * -ENOMEM. */
VG_CHECK int vg_h2_drain_body(struct vg_h2_stream *s);
/* Bodies and heads that are too slow. */
void vg_h2_recv_tick(struct vg_h2 *h, uint64_t now_ns);

/* ---- h2_answer.c ---- */

extern const struct vg_exchange_ops vg_h2_exchange_ops;
void vg_h2_answer_callbacks(nghttp2_session_callbacks *cb);
/* Tell handlers of what moved since the last time; may make them write more. */
void vg_h2_tell_progress(struct vg_h2 *h);
/* Answers that nobody takes. */
void vg_h2_answer_tick(struct vg_h2 *h, uint64_t now_ns);

#endif
