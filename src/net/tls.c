/* tls.c - contexts: which certificates are served and whose are believed; see tls.h.
 * No session tickets and no cache: every connection proves its certificate anew, so that what was
 * taken back is not believed for hours, and an idle connection keeps no session for later.
 *   T1 a context is complete before it is published, and const from then on. */
#include "tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/lock.h"
#include "tls_ctx.h"

/* What others have agreed on for years: forward secrecy and authenticated encryption. */
#define CIPHERS_12 "ECDHE+AESGCM:ECDHE+CHACHA20"
/* 128 bits first, as Go's servers choose: a quarter less work. */
#define CIPHERS_13 "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
/* 8: a client's chain with every intermediate that anybody uses. */
#define CHAIN_MAX 8

struct vg_tls {
    char *cert_file, *key_file, *client_ca_file;
    int min_version;
    bool no_ktls;
    struct vg_mutex mu; /* rank NET */
    SSL_CTX *ctx VG_GUARDED_BY(mu);
};

/* ---- making a context ---- */

int vg_tls_fail(struct vg_status *status, const char *what, const char *file)
{
    unsigned long e = ERR_peek_last_error();
    const char *why = e ? ERR_reason_error_string(e) : NULL;
    if (file && access(file, R_OK) < 0)
        return vg_fail(status, -errno, "%s %s: %s", what, file, strerror(errno));
    return vg_fail(status, VIGIL_E_INVALID, "%s %s: %s", what, file ? file : "TLS",
                   why ? why : "not accepted by OpenSSL");
}

/* The client names what it speaks; HTTP/2 if it can. Neither: HTTP/1.1 without a word. */
static int select_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                       const unsigned char *in, unsigned in_len, void *arg)
{
    static const unsigned char ours[] = "\x02h2\x08http/1.1";
    (void)ssl, (void)arg;
    unsigned char *chosen = NULL;
    int r = SSL_select_next_proto(&chosen, out_len, ours, sizeof ours - 1, in, in_len);
    *out = chosen;
    return r == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

static int set_basics(const struct vg_tls *t, SSL_CTX *ctx, struct vg_status *status)
{
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA |
                                 SSL_OP_IGNORE_UNEXPECTED_EOF);
    if (!t->no_ktls)
        SSL_CTX_set_options(ctx, SSL_OP_ENABLE_KTLS);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(ctx, 0);
    SSL_CTX_set_alpn_select_cb(ctx, select_alpn, NULL);
    bool is_ok = SSL_CTX_set_min_proto_version(ctx, t->min_version) == 1 &&
                 SSL_CTX_set_cipher_list(ctx, CIPHERS_12) == 1 &&
                 SSL_CTX_set_ciphersuites(ctx, CIPHERS_13) == 1;
    return is_ok ? 0 : vg_tls_fail(status, "cannot set up", NULL);
}

static int load_own(const struct vg_tls *t, SSL_CTX *ctx, struct vg_status *status)
{
    if (SSL_CTX_use_certificate_chain_file(ctx, t->cert_file) != 1)
        return vg_tls_fail(status, "certificate", t->cert_file);
    if (SSL_CTX_use_PrivateKey_file(ctx, t->key_file, SSL_FILETYPE_PEM) != 1)
        return vg_tls_fail(status, "private key", t->key_file);
    if (SSL_CTX_check_private_key(ctx) != 1)
        return vg_tls_fail(status, "private key does not belong to the certificate:", t->key_file);
    return 0;
}

/* OpenSSL works out a certificate's extensions and its digest when they are first needed. Do it
 * before several loops share the CA, so that no handshake changes what another one reads. */
static void work_out(SSL_CTX *ctx)
{
    STACK_OF(X509_OBJECT) *all = X509_STORE_get0_objects(SSL_CTX_get_cert_store(ctx));
    for (int i = 0; i < sk_X509_OBJECT_num(all); i++) {
        X509 *cert = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i));
        if (cert)
            (void)X509_check_purpose(cert, -1, 0);
    }
}

/* Asked for, not required. OpenSSL checks the chain for use by a client. */
static int load_client_ca(const struct vg_tls *t, SSL_CTX *ctx, struct vg_status *status)
{
    if (!t->client_ca_file)
        return 0;
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(t->client_ca_file);
    if (!names || SSL_CTX_load_verify_locations(ctx, t->client_ca_file, NULL) != 1) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return vg_tls_fail(status, "client CA", t->client_ca_file);
    }
    SSL_CTX_set_client_CA_list(ctx, names); /* taken */
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_verify_depth(ctx, CHAIN_MAX);
    work_out(ctx);
    return 0;
}

static int make_ctx(const struct vg_tls *t, SSL_CTX **ret_ctx, struct vg_status *status)
{
    ERR_clear_error();
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (!ctx)
        return vg_fail(status, -ENOMEM, "out of memory");
    int r = set_basics(t, ctx, status);
    if (r == 0)
        r = load_own(t, ctx, status);
    if (r == 0)
        r = load_client_ca(t, ctx, status);
    if (r < 0)
        SSL_CTX_free(ctx);
    else
        *ret_ctx = ctx;
    ERR_clear_error();
    return r;
}

/* ---- tls.h ---- */

static int read_opts(struct vg_tls *t, const struct vg_tls_opts *opts, struct vg_status *status)
{
    const char *version = opts->min_version ? opts->min_version : "VersionTLS12";
    t->min_version = strcmp(version, "VersionTLS12") == 0   ? TLS1_2_VERSION
                     : strcmp(version, "VersionTLS13") == 0 ? TLS1_3_VERSION
                                                            : 0;
    if (t->min_version == 0)
        return vg_fail(status, VIGIL_E_INVALID,
                       "\"%s\" is not a TLS version: VersionTLS12 or VersionTLS13", version);
    t->no_ktls = opts->no_ktls;
    t->cert_file = vg_strdup(opts->cert_file);
    t->key_file = vg_strdup(opts->key_file);
    t->client_ca_file = opts->client_ca_file ? vg_strdup(opts->client_ca_file) : NULL;
    if (!t->cert_file || !t->key_file || (opts->client_ca_file && !t->client_ca_file))
        return vg_fail(status, -ENOMEM, "out of memory");
    return 0;
}

void vg_tls_ignore_sigpipe(void)
{
    struct sigaction old;
    if (sigaction(SIGPIPE, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
        sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
}

int vg_tls_new(const struct vg_tls_opts *opts, struct vg_tls **ret_tls,
               struct vg_status *reterr_status)
{
    struct vg_tls *t = vg_new(struct vg_tls);
    if (!t)
        return vg_fail(reterr_status, -ENOMEM, "out of memory");
    vg_tls_ignore_sigpipe();
    vg_mutex_init(&t->mu, VG_RANK_NET);
    int r = read_opts(t, opts, reterr_status);
    if (r == 0)
        r = make_ctx(t, &t->ctx, reterr_status);
    if (r < 0)
        vg_tls_free(t);
    else
        *ret_tls = t;
    return r;
}

void vg_tls_free(struct vg_tls *t)
{
    if (!t)
        return;
    SSL_CTX_free(t->ctx);
    vg_mutex_done(&t->mu);
    vg_free(t->cert_file);
    vg_free(t->key_file);
    vg_free(t->client_ca_file);
    vg_free(t);
}

int vg_tls_reload(struct vg_tls *t, struct vg_status *reterr_status)
{
    SSL_CTX *ctx = NULL;
    int r = make_ctx(t, &ctx, reterr_status);
    if (r < 0)
        return r;
    vg_mutex_lock(&t->mu);
    SSL_CTX *old = t->ctx;
    t->ctx = ctx;
    vg_mutex_unlock(&t->mu);
    SSL_CTX_free(old); /* connections that use it hold it */
    return 0;
}

SSL *vg_tls_make_ssl(struct vg_tls *t)
{
    vg_mutex_lock(&t->mu);
    SSL *ssl = SSL_new(t->ctx);
    vg_mutex_unlock(&t->mu);
    return ssl;
}
