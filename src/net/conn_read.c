/* conn_read.c - what a connection reads goes to its codec; strangers' bytes in small pieces. See
 * conn_int.h. */
#include <errno.h>

#include "conn_int.h"
#include "transport.h"

/* Four reads of a turn: the others wait meanwhile. */
#define READS_PER_TURN 4
/* 4 KiB: what a stranger's connection may bring when it is its turn. One byte of HPACK may stand
 * for 4,000 of a head, so the work is many times that. */
#define STRANGER_READ (4u * 1024u)
/* 256 bytes: not more requests than a stranger may have at a time (a head takes 14 at least). */
#define STRANGER_PIECE 256u

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

/* A stranger's bytes in small pieces, each answered before the next is looked at: so that what many
 * requests hold which arrived together does not count together. */
static void deliver_slowly(struct vg_conn *conn, const char *p, size_t n)
{
    while (n && !conn->is_closing && !conn->is_finishing) {
        size_t piece = conn->share.is_trusted ? n : VG_MIN(n, (size_t)STRANGER_PIECE);
        vg_conn_deliver(conn, p, piece);
        p += piece;
        n -= piece;
        if (n && !conn->share.is_trusted && !conn->is_finishing)
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
        bool is_stranger = !conn->share.is_trusted;
        size_t max = is_stranger ? STRANGER_READ : VG_NET_READ_MAX;
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
        if (is_stranger && !conn->share.is_trusted)
            return; /* once in a turn */
    }
}
