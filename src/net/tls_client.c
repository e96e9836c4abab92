/* tls_client.c - see tls_client.h. */
#include "tls_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "tls_ctx.h"

static int load_files(const struct vg_tls_client_opts *o, SSL_CTX *ctx, struct vg_status *status)
{
    if (o->ca_file && SSL_CTX_load_verify_locations(ctx, o->ca_file, NULL) != 1)
        return vg_tls_fail(status, "CA", o->ca_file);
    if (!o->ca_file && SSL_CTX_set_default_verify_paths(ctx) != 1)
        return vg_tls_fail(status, "the system's CAs:", NULL);
    if (!o->cert_file)
        return 0;
    if (SSL_CTX_use_certificate_chain_file(ctx, o->cert_file) != 1)
        return vg_tls_fail(status, "certificate", o->cert_file);
    if (SSL_CTX_use_PrivateKey_file(ctx, o->key_file, SSL_FILETYPE_PEM) != 1)
        return vg_tls_fail(status, "private key", o->key_file);
    if (SSL_CTX_check_private_key(ctx) != 1)
        return vg_tls_fail(status, "private key does not belong to the certificate:", o->key_file);
    return 0;
}

static int make_ctx(const struct vg_tls_client_opts *o, SSL_CTX **ret, struct vg_status *status)
{
    static const unsigned char alpn[] = "\x02h2";
    ERR_clear_error();
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (!ctx)
        return vg_fail(status, -ENOMEM, "out of memory");
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    bool is_ok = SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
                 SSL_CTX_set_alpn_protos(ctx, alpn, sizeof alpn - 1) == 0;
    int r = is_ok ? load_files(o, ctx, status) : vg_tls_fail(status, "cannot set up", NULL);
    if (r < 0)
        SSL_CTX_free(ctx);
    else
        *ret = ctx;
    ERR_clear_error();
    return r;
}

/* An address is looked for among the certificate's addresses, a name among its names. */
static bool expect_host(SSL *ssl, const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];
    if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

int vg_tls_connect(const struct vg_tls_client_opts *o, int fd, struct vg_tls_session **ret_session,
                   struct vg_status *reterr_status)
{
    SSL_CTX *ctx = NULL;
    vg_tls_ignore_sigpipe();
    int r = make_ctx(o, &ctx, reterr_status);
    if (r < 0)
        return r;
    SSL *ssl = SSL_new(ctx);
    SSL_CTX_free(ctx);
    if (!ssl || !expect_host(ssl, o->host)) {
        SSL_free(ssl);
        return vg_fail(reterr_status, -ENOMEM, "out of memory");
    }
    SSL_set_connect_state(ssl);
    r = vg_tls_session_adopt(ssl, fd, ret_session);
    return r < 0 ? vg_fail(reterr_status, r, "out of memory") : 0;
}

int vg_tls_client_check(const struct vg_tls_client_opts *o, struct vg_status *reterr_status)
{
    SSL_CTX *ctx = NULL;
    int r = make_ctx(o, &ctx, reterr_status);
    SSL_CTX_free(ctx);
    return r;
}
