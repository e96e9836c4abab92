/* transport.c - see transport.h. */
#include "transport.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "server_int.h"
#include "tls_int.h"

/* 64 vectors are 20 events or so, and half a page on the stack. */
#define VECTORS 64
_Static_assert(VG_TRANSPORT_STAGING >= VG_TLS_BATCH + VG_TLS_ROOM, "a batch, and its records");

ssize_t vg_transport_read(int fd, struct vg_tls_session *tls, void *p, size_t n)
{
    if (tls)
        return vg_tls_session_read(tls, p, n);
    ssize_t got;
    do
        got = recv(fd, p, n, 0);
    while (got < 0 && errno == EINTR);
    return got < 0 ? (errno == EWOULDBLOCK ? -EAGAIN : -errno) : got;
}

static ssize_t send_vectors(int fd, struct vg_outq *out, bool *ret_is_blocked)
{
    struct iovec iov[VECTORS];
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = vg_outq_vectors(out, iov, VECTORS)};
    size_t offered = 0;
    for (size_t i = 0; i < msg.msg_iovlen; i++)
        offered += iov[i].iov_len;
    ssize_t n;
    do
        n = sendmsg(fd, &msg, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
        return -errno;
    n = VG_MAX(n, 0);
    *ret_is_blocked = (size_t)n < offered;
    return n;
}

/* The first bytes of the queue as one run, of `max` bytes at most: in place when the first piece is
 * that long or all there is. */
static const char *gather(struct vg_outq *out, char *staging, size_t max, size_t *ret_n)
{
    struct iovec first;
    vg_outq_vectors(out, &first, 1);
    *ret_n = VG_MIN(first.iov_len, max);
    if (*ret_n == max || *ret_n == out->n)
        return first.iov_base;
    *ret_n = vg_outq_peek(out, staging, max);
    return staging;
}

/* A record, or several at once when more waits. */
static ssize_t send_records(struct vg_tls_session *tls, struct vg_outq *out, char *staging,
                            bool *ret_is_blocked)
{
    size_t n;
    ssize_t sent;
    if (vg_tls_session_is_owing(tls)) {
        sent = vg_tls_session_resume(tls);
    } else if (out->n > VG_NET_RECORD_MAX) {
        const char *p = gather(out, staging, VG_TLS_BATCH, &n);
        sent = vg_tls_session_write_many(tls, p, n, staging + VG_TLS_BATCH);
    } else {
        const char *p = gather(out, staging, VG_NET_RECORD_MAX, &n);
        sent = vg_tls_session_write(tls, p, n);
    }
    if (sent == -EAGAIN) {
        *ret_is_blocked = true;
        return 0;
    }
    return sent;
}

ssize_t vg_transport_send(int fd, struct vg_tls_session *tls, struct vg_outq *out, char *staging,
                          bool *ret_is_blocked)
{
    ssize_t n = tls && !vg_tls_session_is_kernel(tls)
                    ? send_records(tls, out, staging, ret_is_blocked)
                    : send_vectors(fd, out, ret_is_blocked);
    if (n > 0)
        vg_outq_consume(out, (size_t)n);
    return n;
}

void vg_transport_name_peer(int fd, char *name, size_t size)
{
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_storage room;
    } a = {0};
    socklen_t n = sizeof a;
    char host[INET6_ADDRSTRLEN] = "";
    snprintf(name, size, "local");
    if (getpeername(fd, &a.any, &n) != 0)
        return;
    if (a.any.sa_family == AF_INET && inet_ntop(AF_INET, &a.in.sin_addr, host, sizeof host))
        snprintf(name, size, "%s:%u", host, ntohs(a.in.sin_port));
    if (a.any.sa_family == AF_INET6 && inet_ntop(AF_INET6, &a.in6.sin6_addr, host, sizeof host))
        snprintf(name, size, "[%s]:%u", host, ntohs(a.in6.sin6_port));
}
