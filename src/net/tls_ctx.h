/* tls_ctx.h - what a session asks of its context. */
#ifndef VG_NET_TLS_CTX_H
#define VG_NET_TLS_CTX_H

#include <openssl/types.h>

#include "tls.h"

/* A connection's side with the newest certificates; NULL: out of memory. Thread: any. */
SSL *vg_tls_make_ssl(struct vg_tls *t);

/* A sentence about a file that OpenSSL does not take (file NULL: about OpenSSL itself); the error.
 */
int vg_tls_fail(struct vg_status *status, const char *what, const char *file);
/* OpenSSL writes to sockets without MSG_NOSIGNAL: a peer that went away must not end us. */
void vg_tls_ignore_sigpipe(void);

/* tls_session.c: a session on a socket by this SSL, whichever its side. Consumes take_ssl. 0,
 * -ENOMEM.
 */
struct vg_tls_session;
VG_CHECK int vg_tls_session_adopt(SSL *take_ssl, int fd, struct vg_tls_session **ret_session);

/* tls_identity.c: who the certificate names, in one block to be freed; NULL in *ret when it names
 * nobody. 0; -ENOMEM; VIGIL_E_INVALID: a name that no user can have. */
VG_CHECK int vg_tls_identity_new(const X509 *cert, struct vg_tls_identity **ret);

/* tls_forget.c: the handshake is over and the client's certificate has been read: give back the
 * memory that OpenSSL would keep it in. For a server's side whose sessions nobody else has. */
void vg_tls_forget_client(SSL *ssl);

#endif
