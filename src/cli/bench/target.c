/* target.c - see target.h. The kubeconfig and the credentials are read by libvigil's own code. */
#include "target.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/transport/creds.h"
#include "place.h"

/* Many records by one call of recv; given back when it is empty. */
#define TLS_READ_BYTES ((size_t)64 * 1024)

/* ---- the URL ---- */

static int split_url(struct vg_bench_target *t, const char *url, struct vg_status *status)
{
    t->is_tls = strncmp(url, "https://", 8) == 0;
    const char *at = url + (t->is_tls ? 8 : 7), *end = at + strcspn(at, "/");
    const char *host = at, *host_end, *port;
    if (*at == '[') {
        host = at + 1;
        host_end = memchr(host, ']', (size_t)(end - host));
        port = host_end && host_end[1] == ':' ? host_end + 2 : NULL;
    } else {
        const char *colon = memchr(at, ':', (size_t)(end - at));
        host_end = colon ? colon : end;
        port = colon ? colon + 1 : NULL;
    }
    unsigned long number = port ? strtoul(port, NULL, 10) : t->is_tls ? 443 : 80;
    if (!host_end || host_end == host || number == 0 || number > 65535 ||
        (size_t)(host_end - host) >= sizeof t->host || strlen(end) >= sizeof t->prefix)
        return vg_fail(status, VIGIL_E_INVALID, "%s is no address of a server", url);
    t->port = (uint16_t)number;
    snprintf(t->host, sizeof t->host, "%.*s", (int)(host_end - host), host);
    snprintf(t->authority, sizeof t->authority, "%s%s%s:%u", *at == '[' ? "[" : "", t->host,
             *at == '[' ? "]" : "", t->port);
    snprintf(t->prefix, sizeof t->prefix, "%s", end);
    return 0;
}

static bool is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return (ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24) == 127;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
    return a->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(six);
}

static int resolve(struct vg_bench_target *t, struct vg_status *status)
{
    char port[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    snprintf(port, sizeof port, "%u", t->port);
    int r = getaddrinfo(t->host, port, &hints, &found);
    if (r != 0)
        return vg_fail(status, VIGIL_E_NETWORK, "%s cannot be found: %s", t->host, gai_strerror(r));
    memcpy(&t->address, found->ai_addr, found->ai_addrlen);
    t->address_n = found->ai_addrlen;
    t->is_loopback = is_loopback(found->ai_addr);
    freeaddrinfo(found);
    return 0;
}

/* ---- TLS ---- */

static int tls_fail(struct vg_status *status, const char *what)
{
    char why[160] = "it is empty";
    unsigned long e = ERR_peek_last_error();
    if (e)
        ERR_error_string_n(e, why, sizeof why);
    return vg_fail(status, VIGIL_E_INVALID, "%s cannot be used: %s", what, why);
}

static bool trust(SSL_CTX *ctx, const struct vg_buf *pem)
{
    BIO *bio = BIO_new_mem_buf(pem->p, (int)pem->n);
    size_t n = 0;
    for (X509 *x; bio && (x = PEM_read_bio_X509(bio, NULL, NULL, NULL)); n++) {
        X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), x);
        X509_free(x);
    }
    BIO_free(bio);
    return n > 0;
}

static bool show(SSL_CTX *ctx, const struct vg_buf *cert, const struct vg_buf *key)
{
    BIO *certs = BIO_new_mem_buf(cert->p, (int)cert->n),
        *keys = BIO_new_mem_buf(key->p, (int)key->n);
    X509 *leaf = certs ? PEM_read_bio_X509(certs, NULL, NULL, NULL) : NULL;
    EVP_PKEY *secret = keys ? PEM_read_bio_PrivateKey(keys, NULL, NULL, NULL) : NULL;
    bool is_ok = leaf && secret && SSL_CTX_use_certificate(ctx, leaf) == 1 &&
                 SSL_CTX_use_PrivateKey(ctx, secret) == 1;
    for (X509 *x; is_ok && (x = PEM_read_bio_X509(certs, NULL, NULL, NULL));) {
        is_ok = SSL_CTX_add1_chain_cert(ctx, x) == 1;
        X509_free(x);
    }
    EVP_PKEY_free(secret);
    X509_free(leaf);
    BIO_free(certs);
    BIO_free(keys);
    return is_ok;
}

static SSL_CTX *new_context(bool is_h2, bool is_insecure)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    const char *alpn = is_h2 ? "\x02h2" : "\x08http/1.1";
    if (!ctx || SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)alpn, is_h2 ? 3 : 9) != 0) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_read_ahead(ctx, 1);
    SSL_CTX_set_default_read_buffer_len(ctx, TLS_READ_BYTES);
    SSL_CTX_set_verify(ctx, is_insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    return ctx;
}

static int make_context(struct vg_bench_target *t, bool is_h2, const struct vg_creds *creds,
                        struct vg_status *status)
{
    ERR_clear_error();
    SSL_CTX *ctx = new_context(is_h2, creds->config->is_insecure);
    if (!ctx)
        return vg_fail(status, -ENOMEM, "out of memory");
    t->tls[is_h2] = ctx;
    if (creds->ca.n ? !trust(ctx, &creds->ca) : SSL_CTX_set_default_verify_paths(ctx) != 1)
        return tls_fail(status, "the certificate authority");
    t->shows_certificate = creds->cert.n > 0;
    if (creds->cert.n && !show(ctx, &creds->cert, &creds->key))
        return tls_fail(status, "the client certificate");
    ERR_clear_error();
    return 0;
}

/* ---- credentials ---- */

struct waiter {
    struct vg_creds_waiter w;
    bool is_done;
    struct vigil_error err;
};

static void on_ready(struct vg_creds_waiter *w, const struct vigil_error *err)
{
    struct waiter *me = VG_CONTAINER_OF(w, struct waiter, w);
    me->err = *err;
    me->is_done = true;
}

static int fill_in(struct vg_bench_target *t, struct vg_creds *creds, struct vg_status *status)
{
    static const char field[] = "Authorization: ";
    int r = vg_creds_header(creds, &t->authorization);
    if (r < 0)
        return vg_fail(status, r, "out of memory");
    if (t->authorization.n)
        vg_buf_consume(&t->authorization, sizeof field - 1);
    if (t->is_tls)
        r = make_context(t, false, creds, status);
    if (t->is_tls && r == 0)
        r = make_context(t, true, creds, status);
    return r;
}

static int prove(struct vg_bench_target *t, struct vigil_config *config, struct vg_loop *loop,
                 struct vg_status *status)
{
    struct vg_creds creds;
    struct waiter waiter = {.w.ready = on_ready};
    int r = vg_creds_init(&creds, config, loop, NULL, &waiter.err);
    if (r == 0)
        r = vg_creds_prepare(&creds, &waiter.w, &waiter.err);
    if (r > 0) {
        vg_loop_turn_until(loop, &waiter.is_done);
        r = waiter.err.code;
    }
    r = r < 0 ? vg_fail(status, r, "%s", waiter.err.message) : fill_in(t, &creds, status);
    vg_creds_done(&creds);
    return r;
}

static int load_config(const struct vg_cli_place *p, struct vigil_config **ret,
                       struct vg_status *status)
{
    struct vigil_error err = {0};
    int r = vg_cli_place_config(p, ret, &err);
    if (r < 0)
        return vg_fail(status, r, "%s", err.message);
    if (!(*ret)->proxy_url && !(*ret)->as_user)
        return 0;
    vigil_config_free(*ret);
    return vg_fail(status, VIGIL_E_UNSUPPORTED,
                   "a proxy or an impersonated user would be measured too: leave it out");
}

int vg_bench_target_open(struct vg_bench_target *t, const struct vg_cli_place *place,
                         struct vg_status *reterr_status)
{
    *t = (struct vg_bench_target){.agent = "vigil-bench"};
    struct vigil_config *config = NULL;
    struct vg_loop *loop = NULL;
    int r = load_config(place, &config, reterr_status);
    if (r < 0)
        return r;
    r = split_url(t, config->server, reterr_status);
    if (r == 0)
        r = resolve(t, reterr_status);
    if (r == 0) {
        const char *name = config->tls_server_name ? config->tls_server_name : t->host;
        snprintf(t->tls_name, sizeof t->tls_name, "%s", name);
        r = vg_loop_new(vg_clock_system(), &loop);
        r = r < 0 ? vg_fail(reterr_status, r, "no loop: %s", vg_err_text(r))
                  : prove(t, config, loop, reterr_status);
    }
    if (loop)
        vg_loop_free(loop);
    vigil_config_free(config);
    if (r < 0)
        vg_bench_target_close(t);
    return r;
}

void vg_bench_target_close(struct vg_bench_target *t)
{
    SSL_CTX_free(t->tls[0]);
    SSL_CTX_free(t->tls[1]);
    vg_buf_done(&t->authorization);
    *t = (struct vg_bench_target){0};
}
