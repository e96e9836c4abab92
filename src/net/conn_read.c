/* conn_read.c - what a connection reads goes to its codec, in small pieces until somebody has
 * authenticated. See conn_int.h. */
#include <errno.h>

#include "conn_int.h"
#include "transport.h"

/* Four reads of a turn: the others wait meanwhile. */
#define READS_PER_TURN 4
/* 4 KiB: what an unauthenticated connection may read in its turn. One byte of HPACK may stand for
 * 4,000 bytes of a head, so the work is many times that. */
#define UNAUTHENTICATED_READ (4u * 1024u)
/* 256 bytes: not more requests than such a connection may have at a time; a head takes at least 14
 * bytes. */
#define UNAUTHENTICATED_PIECE 256u

/* The codec may be exchanged from within: the next one gets the rest. */
void vg_conn_deliver(struct vg_conn *conn, const char *p, size_t n)
{
    struct vg_slice rest = {p, n};
    while (rest.n && !conn->is_closing && !conn->is_finishing) {
        conn->codec->ops->receive(conn->codec, rest.p, rest.n);
        rest.n = 0;
        if (!conn->next_codec)
            continue;
        conn->codec->ops->free(conn->codec);
        conn->codec = vg_steal(conn->next_codec);
        rest = conn->next_rest;
    }
}

/* Until somebody has authenticated, bytes are delivered in small pieces and each is answered before
 * the next is parsed. Otherwise requests that arrived together would count against the connection's
 * share together. */
static void deliver_slowly(struct vg_conn *conn, const char *p, size_t n)
{
    while (n && !conn->is_closing && !conn->is_finishing) {
        size_t piece = conn->share.is_authenticated ? n : VG_MIN(n, (size_t)UNAUTHENTICATED_PIECE);
        vg_conn_deliver(conn, p, piece);
        p += piece;
        n -= piece;
        if (n && !conn->share.is_authenticated && !conn->is_finishing)
            vg_conn_send_all(conn);
    }
}

void vg_conn_deliver_end(struct vg_conn *conn)
{
    conn->is_peer_done = true;
    if (conn->is_lingering)
        vg_conn_close(conn, 0);
    else if (!conn->is_closing && !conn->is_finishing)
        conn->codec->ops->received_end(conn->codec);
    vg_conn_update_interest(conn);
}

void vg_conn_read_some(struct vg_conn *conn)
{
    struct vg_http_server *s = conn->server;
    for (int i = 0; i < READS_PER_TURN; i++) {
        if (conn->is_closing || conn->is_reading_paused || conn->is_peer_done)
            return;
        bool is_unauthenticated = !conn->share.is_authenticated;
        size_t max = is_unauthenticated ? UNAUTHENTICATED_READ : VG_NET_READ_MAX;
        ssize_t n = vg_transport_read(conn->fd, conn->tls, s->in, max);
        conn->is_reading_blocked = n == -EINPROGRESS;
        if (n == -EAGAIN || n == -EINPROGRESS)
            return;
        if (n < 0)
            vg_conn_close(conn, VIGIL_E_CANCELED);
        if (n == 0)
            vg_conn_deliver_end(conn);
        if (n <= 0)
            return;
        vg_net_count(&s->counts.bytes_in, (uint64_t)n);
        deliver_slowly(conn, s->in, (size_t)n);
        if (!conn->tls && (size_t)n < max)
            return; /* there was no more */
        if (is_unauthenticated && !conn->share.is_authenticated)
            return; /* once in a turn */
    }
}
