/* tls_gather.h - several TLS records in one send. OpenSSL writes each record to the socket with a
 * call of its own; for a long answer that is a third of its cost. Between the session and its
 * socket this BIO keeps the records of a batch together and sends them at once; what the socket
 * does not take goes first the next time. Without a batch it is the socket. Thread: the
 * connection's. */
#ifndef VG_NET_TLS_GATHER_H
#define VG_NET_TLS_GATHER_H

#include <openssl/bio.h>
#include <sys/types.h>

#include "base/err.h"

struct vg_tls_gather;

/* The BIO owns what it returns beside it. 0, -ENOMEM. */
VG_CHECK int vg_tls_gather_new(int fd, struct vg_tls_gather **ret_gather, BIO **ret_bio);
/* From here on records are kept in `room`. */
void vg_tls_gather_begin(struct vg_tls_gather *g, char *room, size_t size);
/* Send them. 1: all are gone; 0: the rest is kept, the socket is full; -EIO, -ENOMEM: broken. */
VG_CHECK int vg_tls_gather_end(struct vg_tls_gather *g);
/* Send what was kept. As above; 1 also when there was nothing. */
VG_CHECK int vg_tls_gather_resume(struct vg_tls_gather *g);

#endif
