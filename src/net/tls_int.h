/* tls_int.h - one connection's TLS; see tls.h. Thread: the loop of the connection. */
#ifndef VG_NET_TLS_INT_H
#define VG_NET_TLS_INT_H

#include <sys/types.h>

#include "tls.h"

struct vg_tls_session;

/* On a connected, non-blocking socket, which stays the caller's. 0, -ENOMEM. */
VG_CHECK int vg_tls_session_new(struct vg_tls *t, int fd, struct vg_tls_session **ret_session);
void vg_tls_session_free(struct vg_tls_session *s);
/* 1: done. 0: wait for the socket, to write when *ret_wants_write. Negative: it failed. */
VG_CHECK int vg_tls_session_handshake(struct vg_tls_session *s, bool *ret_wants_write);
const char *vg_tls_session_why(const struct vg_tls_session *s); /* it failed; for the log */
/* It failed because of the other side's certificate. */
bool vg_tls_session_has_refused(const struct vg_tls_session *s);
/* After the handshake. */
bool vg_tls_session_is_h2(const struct vg_tls_session *s);
/* Bytes that it has taken from the socket and decrypted wait to be read. */
bool vg_tls_session_has_pending(const struct vg_tls_session *s);
const struct vg_tls_identity *vg_tls_session_identity(const struct vg_tls_session *s);
/* The kernel encrypts what is sent: write plain bytes to the socket. */
bool vg_tls_session_is_kernel(const struct vg_tls_session *s);
/* As recv and send: how many; 0 of read: the end; -EAGAIN; -EIO: broken. A read may have to wait
 * for the socket to take bytes: -EINPROGRESS. A write that said -EAGAIN is tried again with the
 * same bytes in front. */
VG_CHECK ssize_t vg_tls_session_read(struct vg_tls_session *s, void *p, size_t n);
VG_CHECK ssize_t vg_tls_session_write(struct vg_tls_session *s, const void *p, size_t n);
/* The same with several records in one send; n is at most VG_TLS_BATCH, `room` of VG_TLS_ROOM bytes
 * is for the time of the call. After -EAGAIN the session may owe: then nothing but resume is called
 * for writing, until it says how many of the first bytes have left. */
#define VG_TLS_BATCH ((size_t)64 << 10)
#define VG_TLS_ROOM (VG_TLS_BATCH + ((size_t)4 << 10)) /* four heads and tags, and then some */
VG_CHECK ssize_t vg_tls_session_write_many(struct vg_tls_session *s, const void *p, size_t n,
                                           char *room);
bool vg_tls_session_is_owing(const struct vg_tls_session *s);
VG_CHECK ssize_t vg_tls_session_resume(struct vg_tls_session *s);
/* Say that no more comes; best effort. */
void vg_tls_session_bye(struct vg_tls_session *s);

#endif
