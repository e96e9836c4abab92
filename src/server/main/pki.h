/* pki.h - keys and certificates that vigild makes for itself, in <data-dir>/pki.
 *     ca.crt, ca.key              the authority: signs the others, ten years
 *     apiserver.crt, .key         what the secure port shows, one year
 *     admin.crt, .key             the administrator (CN kubernetes-admin, O system:masters)
 *     client-ca.crt               ca.crt and what --client-ca-file holds
 *     sa.key                      signs tokens of service accounts (daemon_issuer.c)
 * Keys are EC P-256. What is missing, damaged, does not fit its key or its authority, lacks a name,
 * or ends within 30 days is made anew; what is good stays. The authority is renewed with its old
 * key, so that certificates it signed stay good. Thread: main. */
#ifndef VG_MAIN_PKI_H
#define VG_MAIN_PKI_H

#include "data_dir.h"

#define VG_PKI_CA "pki/ca.crt"
#define VG_PKI_CA_KEY "pki/ca.key"
#define VG_PKI_SERVER_CERT "pki/apiserver.crt"
#define VG_PKI_SERVER_KEY "pki/apiserver.key"
#define VG_PKI_ADMIN_CERT "pki/admin.crt"
#define VG_PKI_ADMIN_KEY "pki/admin.key"
#define VG_PKI_CLIENT_CA "pki/client-ca.crt"
#define VG_PKI_ACCOUNT_KEY "pki/sa.key"

struct vg_pki_opts {
    const struct vg_data_dir *dir;
    const char *bind_address;
    const char *advertised;     /* "": none */
    const char *extra_names;    /* parted by commas; NULL: none */
    const char *client_ca_file; /* NULL: none */
    bool no_server;             /* the server's certificate comes from elsewhere */
    int64_t now_s;              /* wall clock */
};

/* *ret_changed: a certificate was made. 0; -errno, VIGIL_E_INVALID with a sentence. */
VG_CHECK int vg_pki_ensure(const struct vg_pki_opts *opts, bool *ret_changed,
                           struct vg_status *reterr_status);

/* Write <data-dir>/admin.kubeconfig, if it is not as it should be. `ca_file`: what the server's
 * certificate is checked against. */
VG_CHECK int vg_kubeconfig_write(const struct vg_data_dir *dir, const char *server_url,
                                 const char *ca_file, struct vg_status *reterr_status);

#endif
