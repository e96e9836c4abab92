/* transport.h - moving bytes between a socket, with or without TLS, and memory. Never blocks. */
#ifndef VG_NET_TRANSPORT_H
#define VG_NET_TRANSPORT_H

#include <sys/types.h>

#include "outq.h"

struct vg_tls_session;

#define VG_TRANSPORT_STAGING ((size_t)132 << 10)

/* How many; 0: the end; -EAGAIN: none now; -EINPROGRESS: none until the socket takes bytes; other
 * -errno: broken. tls NULL: plain. */
VG_CHECK ssize_t vg_transport_read(int fd, struct vg_tls_session *tls, void *p, size_t n);
/* Send the first bytes of out and consume them. How many (0 with *ret_is_blocked: the socket is
 * full; it is also set when it took less than offered), or -errno: broken. `staging`, of
 * VG_TRANSPORT_STAGING bytes, is where slices become TLS records. */
VG_CHECK ssize_t vg_transport_send(int fd, struct vg_tls_session *tls, struct vg_outq *out,
                                   char *staging, bool *ret_is_blocked);
/* "127.0.0.1:40312", "[::1]:40312", or "local" for what has no such address. */
void vg_transport_name_peer(int fd, char *name, size_t size);

#endif
