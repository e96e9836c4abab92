/* share.h - how much memory the requests of one connection, of one address and of everybody may
 * hold.
 *
 * A connection is a stranger's until somebody has authenticated on it (vg_http_trust, or a client
 * certificate). Heads and bodies are counted for their connection; what a connection holds beyond
 * VG_SHARE_FREE is charged, in steps, to its address and to everybody:
 *
 *                 a stranger's connection      a trusted connection
 *   connection    two heads                    a quarter of request_bytes, at least a body
 *   address       a sixteenth                  a half, at least a body
 *   everybody     a quarter                    all of request_bytes
 *
 * So strangers leave three quarters to the trusted; and a small request on a connection of its own
 * (an administrator's, a health probe's) is served whatever others hold, because the first
 * VG_SHARE_FREE bytes are paid for by the limit on connections.
 *   P1 conn->share.charged == what this connection has added to address->held and shared->held, and
 *      while it is a stranger's also to the counters of strangers.
 *   P2 charged is a multiple of VG_SHARE_STEP, and held <= VG_SHARE_FREE + charged.
 * Thread: a share belongs to its connection's loop; the counters of addresses and of everybody are
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
/* 6 KiB: what a stranger's HTTP/2 stream takes beside the text of its request, while its answer
 * waits: the stream, nghttp2's part of it, the queued answer, the handler's own. Measured. */
#define VG_SHARE_STREAM (6u * 1024u)

/* What connections hold together: those of an address, or all. */
struct vg_share_sum {
    _Atomic uint64_t held;      /* all of it */
    _Atomic uint64_t strangers; /* of it, by connections that are not trusted */
};

struct vg_share {
    uint64_t held;    /* by requests and streams of this connection */
    uint64_t charged; /* P1 */
    bool is_trusted;
};

/* n bytes more. 0; VIGIL_E_BUSY: over a limit, and nothing was counted. */
VG_CHECK int vg_share_hold(struct vg_conn *conn, size_t n);
/* n bytes less. */
void vg_share_give(struct vg_conn *conn, size_t n);
/* Somebody has authenticated on it. Idempotent. */
void vg_share_trust(struct vg_conn *conn);

#endif
