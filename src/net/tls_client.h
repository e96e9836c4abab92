/* tls_client.h - the other end of TLS: connecting to a server that proves who it is.
 * TLS 1.2 and 1.3, ALPN h2. Files are read anew for each connection. Thread: any. */
#ifndef VG_NET_TLS_CLIENT_H
#define VG_NET_TLS_CLIENT_H

#include "tls_int.h"

struct vg_tls_client_opts {
    const char *ca_file;              /* PEM; NULL: the system's */
    const char *cert_file, *key_file; /* PEM; NULL: none is shown */
    const char *host;                 /* name or address that the certificate must be for */
};
/* A session on a connected, non-blocking socket, which stays the caller's; ready for the handshake.
 * 0; VIGIL_E_INVALID or -errno with a sentence that names the file; -ENOMEM. */
VG_CHECK int vg_tls_connect(const struct vg_tls_client_opts *opts, int fd,
                            struct vg_tls_session **ret_session, struct vg_status *reterr_status);
/* Can the files be used? As vg_tls_connect. */
VG_CHECK int vg_tls_client_check(const struct vg_tls_client_opts *opts,
                                 struct vg_status *reterr_status);
/* A handshake, read or write failed: why, in OpenSSL's words; what is wrong with the server's
 * certificate, if that is it. NULL: nothing is known. */
const char *vg_tls_session_trouble(const struct vg_tls_session *s);

#endif
