/* share.h - how much memory the requests of one connection, of one address and of all may hold.
 *
 * A connection is unauthenticated until the handler says otherwise (vg_http_authenticated), or it
 * has shown a client certificate with a name. Heads and bodies are counted for their connection.
 * What a connection holds beyond VG_SHARE_FREE is charged, in steps, to its address and to the
 * total:
 *
 *                 unauthenticated    authenticated
 *   connection    two heads          a quarter of request_bytes, at least a body
 *   address       a sixteenth        a half, at least a body
 *   total         a quarter          all of request_bytes
 *
 * So three quarters are kept for those who have authenticated. The first VG_SHARE_FREE bytes are
 * covered by the limit on connections: a small request on a connection of its own, such as an
 * administrator's or a health probe, is served whatever others hold.
 *   P1 conn->share.charged == what this connection has added to address->held and shared->held, and
 *      until it is authenticated also to their counters `unauthenticated`.
 *   P2 charged is a multiple of VG_SHARE_STEP, and held <= VG_SHARE_FREE + charged.
 * Thread: a share belongs to its connection's loop; the counters of addresses and the total are
 * atomic. */
#ifndef VG_NET_SHARE_H
#define VG_NET_SHARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct vg_conn;

/* 16 KiB: a connection costs about as much by itself, and nearly every head fits into it. */
#define VG_SHARE_FREE (16u * 1024u)
/* 4 KiB: the counters that loops share are touched once for so many bytes. */
#define VG_SHARE_STEP 4096u
/* 6 KiB: what an HTTP/2 stream takes beside the text of its request while its answer waits: the
 * stream, nghttp2's part of it, the queued answer and the handler's request. Counted until the
 * connection is authenticated. */
#define VG_SHARE_STREAM (6u * 1024u)

/* What connections hold together: those of an address, or all. */
struct vg_share_sum {
    _Atomic uint64_t held;            /* all of it */
    _Atomic uint64_t unauthenticated; /* of it, by unauthenticated connections */
};

struct vg_share {
    uint64_t held;    /* by requests and streams of this connection */
    uint64_t charged; /* P1 */
    bool is_authenticated;
};

/* n bytes more. 0; VIGIL_E_BUSY: over a limit, and nothing was counted. */
VG_CHECK int vg_share_hold(struct vg_conn *conn, size_t n);
/* n bytes less. */
void vg_share_give(struct vg_conn *conn, size_t n);
/* Somebody has authenticated on it. Idempotent. */
void vg_share_authenticated(struct vg_conn *conn);

#endif
