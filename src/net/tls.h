/* tls.h - certificates of the server and of its clients (OpenSSL, directly on the socket).
 * TLS 1.2 and 1.3, ALPN h2 and http/1.1, client certificates asked for but not required: a chain
 * that leads to the client CA and allows client authentication becomes the peer's identity, any
 * other is refused in the handshake. Kernel TLS is used where the kernel offers it.
 * Thread: a context may be used by any; certificates can be exchanged while it serves. */
#ifndef VG_NET_TLS_H
#define VG_NET_TLS_H

#include "base/err.h"
#include "base/slice.h"

struct vg_tls;

struct vg_tls_opts {
    const char *cert_file, *key_file; /* PEM; the chain in the first */
    const char *client_ca_file;       /* PEM bundle; NULL: no client certificates */
    const char *min_version;          /* "VersionTLS12" (default), "VersionTLS13" */
    bool no_ktls;
};
/* 0; VIGIL_E_INVALID or -errno with a sentence that names the file. */
VG_CHECK int vg_tls_new(const struct vg_tls_opts *opts, struct vg_tls **ret_tls,
                        struct vg_status *reterr_status);
void vg_tls_free(struct vg_tls *t);
/* Read the files again; connections to come use the new ones. On failure the old ones stay. */
VG_CHECK int vg_tls_reload(struct vg_tls *t, struct vg_status *reterr_status);

/* The subject of a verified client certificate: CN is the user, O the groups. */
struct vg_tls_identity {
    struct vg_slice name;
    const struct vg_slice *groups;
    size_t n_groups;
    int64_t not_after_s; /* wall clock */
};

#endif
