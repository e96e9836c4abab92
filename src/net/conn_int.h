/* conn_int.h - the seam between a connection (conn.c: socket, TLS, timers, flushing) and the codec
 * that speaks on it (h1.c, h2*.c).
 *
 * A codec does no I/O. It gets bytes by receive(), puts bytes into conn->out and says by
 * vg_conn_dirty() that there is something to do; at the end of the loop's turn the connection calls
 * fill(), sends what conn->out holds, and tells by sent() how much left. A connection without a
 * socket (vg_conn_new_detached) carries requests from within the process (inside.c), and lets tests
 * and fuzzers feed a codec and read conn->out.
 *
 * Rules that keep callbacks simple:
 *   C1 nothing that a codec or a handler calls frees the connection, the codec or an exchange: ends
 *      are noted, and carried out by conn.c when no codec function runs.
 *   C2 on_closed, on_drained and on_progress are only ever called from receive, received_end, fill,
 *      sent, tick and closed, never from within what a handler calls.
 *   C3 after closed() nothing but free() is called.
 * Thread: all of it is that of the server's loop. */
#ifndef VG_NET_CONN_INT_H
#define VG_NET_CONN_INT_H

#include "exchange.h"
#include "server_int.h"

struct vg_codec;
struct vg_conn;
struct vg_tls_session;
struct vg_net_address;

/* 128 KiB: beyond it fill() adds nothing; what waits behind it stays with its stream. */
#define VG_CONN_OUT_MAX (128u * 1024u)

struct vg_codec_ops {
    const struct vg_exchange_ops *exchange; /* how its exchanges are answered */
    /* Bytes arrived. They are borrowed; all are taken. A codec that cannot go on answers what it
     * can and calls vg_conn_finish or vg_conn_close. */
    void (*receive)(struct vg_codec *c, const char *p, size_t n);
    /* The other side will send no more. */
    void (*received_end)(struct vg_codec *c);
    /* Put more into conn->out while vg_conn_has_room(); do what was put off to the end of the turn.
     * Called whenever the connection was dirty or could send. */
    void (*fill)(struct vg_codec *c);
    /* The socket took the first n bytes of conn->out (they are consumed already). is_blocked: it
     * takes no more for now, so what is left begins to wait. */
    void (*sent)(struct vg_codec *c, size_t n, bool is_blocked);
    /* A time asked for by vg_conn_alarm has come, or passed, or another's did: check all. */
    void (*tick)(struct vg_codec *c, uint64_t now_ns);
    /* Take no new requests; vg_conn_finish as soon as the last exchange has ended. */
    void (*drain)(struct vg_codec *c);
    /* Has no exchange. */
    bool (*is_idle)(const struct vg_codec *c);
    /* The connection is gone: on_closed(err) for each exchange. */
    void (*closed)(struct vg_codec *c, int err);
    void (*free)(struct vg_codec *c);
};
struct vg_codec {
    const struct vg_codec_ops *ops;
    struct vg_conn *conn;
};

struct vg_conn {
    uv_poll_t poll;
    int fd; /* -1: detached, or closed already */
    int poll_events;
    struct vg_http_server *server;
    struct vg_codec *codec;     /* NULL during a TLS handshake */
    struct vg_tls_session *tls; /* NULL: plain */
    struct vg_outq out;
    struct vg_http_peer peer;
    struct vg_net_address *address; /* counted; NULL: not (adopted sockets) */
    struct vg_list link;            /* server->conns */
    struct vg_list dirty;           /* server->dirty; unlinked: clean */
    struct vg_list shaking;         /* server->shaking; unlinked: no handshake */
    struct vg_list unauth_link;     /* server->unauthenticated; unlinked: authenticated */
    struct vg_list queued;          /* server->queued; unlinked: not */
    struct vg_share share;          /* what its requests hold */
    uint64_t born_ns;
    struct vg_timer timer;
    struct vg_codec *next_codec; /* of vg_conn_switch, until receive() returns */
    struct vg_slice next_rest;
    uint64_t finish_due_ns; /* with is_finishing: cut then */
    int close_err;          /* with is_closing */
    bool is_handshaking;
    bool is_reading_paused;
    bool is_reading_blocked; /* TLS must write before it can read */
    bool is_peer_done;       /* it sends no more */
    bool is_hung_up;         /* seen while reading is paused */
    bool is_blocked;         /* wait until the socket takes more */
    bool is_finishing;       /* send what waits, then close */
    bool is_lingering;       /* said its last; reads until the other side closes */
    bool is_closing;         /* cut at the next chance */
};

/* ---- what codecs call ---- */

/* There is something to do at the end of the turn: fill, send, finish. */
void vg_conn_dirty(struct vg_conn *conn);
/* The server drains: so does this one. It may be gone afterwards. */
void vg_conn_drain(struct vg_conn *conn);
/* Send what waits, then close. Idempotent. What arrives from now on is dropped. */
void vg_conn_finish(struct vg_conn *conn);
/* Cut at the next chance, dropping what waits. The first err counts; exchanges get it. */
void vg_conn_close(struct vg_conn *conn, int err);
/* Take no more from the socket until it is said again with false. */
void vg_conn_pause_reading(struct vg_conn *conn, bool is_paused);
/* tick() shall come at due_ns (of vg_conn_now) at the latest. Earlier ticks happen. */
void vg_conn_alarm(struct vg_conn *conn, uint64_t due_ns);
uint64_t vg_conn_now(const struct vg_conn *conn);
/* Bytes that the socket has and the other side has not. A socket with much room is not writable
 * again before a third of it is free: this tells a slow reader from one that takes nothing. */
uint32_t vg_conn_held(const struct vg_conn *conn);
/* From within the old codec's receive(): the new one takes its place and gets `rest`, the bytes
 * that the old one did not use, with its next receive. The old one is freed later, without
 * closed().
 */
VG_CHECK int vg_conn_switch(struct vg_conn *conn, struct vg_codec *take_codec,
                            struct vg_slice rest);
static inline bool vg_conn_has_room(const struct vg_conn *conn)
{
    return conn->out.n < VG_CONN_OUT_MAX;
}

/* ---- the codecs ---- */

VG_CHECK int vg_h1_new(struct vg_conn *conn, struct vg_codec **ret_codec);
/* The client's preface has not been received yet; over plain TCP with prior knowledge h1 passes on
 * every byte from "PRI" on. */
VG_CHECK int vg_h2_new(struct vg_conn *conn, struct vg_codec **ret_codec);

/* ---- between conn.c and conn_handshake.c ---- */

/* It is being shaken hands on; the caller sees to the time it has. */
void vg_handshake_begin(struct vg_conn *conn);
/* Go on: it has its codec, or goes on later, or closes. */
void vg_handshake_step(struct vg_conn *conn);
void vg_handshake_end(struct vg_conn *conn, bool is_ok);
/* The codec is made. 0, -ENOMEM. */
VG_CHECK int vg_conn_begin(struct vg_conn *conn);
/* Nothing waits any more: say so, and wait for the other side to close. */
void vg_conn_say_bye(struct vg_conn *conn);
/* Carries out an end that was noted: the connection may be gone afterwards. */
void vg_conn_settle(struct vg_conn *conn);

/* ---- conn_read.c, and what it needs of conn.c ---- */

/* n bytes that were received go to the codec. */
void vg_conn_deliver(struct vg_conn *conn, const char *p, size_t n);
void vg_conn_deliver_end(struct vg_conn *conn);
/* Read what has come, up to a bound. */
void vg_conn_read_some(struct vg_conn *conn);
/* Send until nothing waits, the socket is full or the budget of a turn is spent. */
void vg_conn_send_all(struct vg_conn *conn);
/* Tell the poll what this connection waits for. */
void vg_conn_update_interest(struct vg_conn *conn);

/* ---- conn_queue.c ---- */

/* An unauthenticated connection can go on: a handshake, or bytes to read. It waits for its turn. */
void vg_conn_queue(struct vg_conn *conn);
/* conn.c: its turn has come. The connection may be gone afterwards. */
void vg_conn_go_on(struct vg_conn *conn);

/* ---- without a socket ---- */

/* A connection without a socket; the codec is made by the caller and put into conn->codec. fill()
 * is called at the end of a turn in which it was dirty. What else a socket would do, for tests and
 * fuzzers: vg_conn_feed, then vg_conn_turn (which calls fill) and look at conn->out;
 * vg_conn_took takes the first n bytes away and tells the codec. */
VG_CHECK int vg_conn_new_detached(struct vg_http_server *s, struct vg_conn **ret_conn);
void vg_conn_feed(struct vg_conn *conn, const char *p, size_t n); /* n 0: the end */
void vg_conn_turn(struct vg_conn *conn);
void vg_conn_took(struct vg_conn *conn, size_t n);
/* closed(err) unless it is closed already, and free. */
void vg_conn_free_detached(struct vg_conn *conn, int err);

#endif
