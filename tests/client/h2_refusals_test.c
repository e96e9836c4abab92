/* h2_refusals_test.c - requests over HTTP/2 that the server says it did not process
 * (REFUSED_STREAM, or beyond the last stream of GOAWAY) are sent again, writes too; those whose
 * fate is not known are not. The server speaks just enough TLS and HTTP/2 for that, one connection
 * after the other. */
#include "client/transport/script_server_testing.h"

#include <openssl/ssl.h>
#include <signal.h>
#include <stdatomic.h>

#include "client/transport/client_int.h"

enum fate {
    FATE_ANSWER,
    FATE_REFUSE,   /* RST_STREAM, REFUSED_STREAM */
    FATE_GOAWAY,   /* GOAWAY that leaves this stream out */
    FATE_INTERNAL, /* RST_STREAM, INTERNAL_ERROR */
    FATE_DIE       /* the connection is closed */
};

struct h2_server {
    int fd, port;
    pthread_t thread;
    SSL_CTX *ctx;
    const enum fate *fates;
    unsigned n_fates;
    _Atomic unsigned n_asked;
    _Atomic int conn;
};

static int choose_h2(SSL *ssl, const unsigned char **out, unsigned char *n, const unsigned char *in,
                     unsigned in_n, void *arg)
{
    (void)ssl;
    (void)in;
    (void)in_n;
    (void)arg;
    *out = (const unsigned char *)"h2";
    *n = 2;
    return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *make_ctx(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    assert_true(key && cert);
    X509_set_version(cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
                               (const unsigned char *)"test", -1, -1, 0);
    X509_set_issuer_name(cert, X509_get_subject_name(cert));
    assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    assert_int_equal(SSL_CTX_use_certificate(ctx, cert), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(ctx, key), 1);
    SSL_CTX_set_alpn_select_cb(ctx, choose_h2, NULL);
    X509_free(cert);
    EVP_PKEY_free(key);
    return ctx;
}

static bool read_all(SSL *ssl, unsigned char *p, size_t n)
{
    for (size_t got = 0, r; got < n; got += r)
        if (SSL_read_ex(ssl, p + got, n - got, &r) != 1)
            return false;
    return true;
}

static void put_frame(SSL *ssl, unsigned type, unsigned flags, uint32_t stream, const void *p,
                      size_t n)
{
    unsigned char f[512] = {0,
                            (unsigned char)(n >> 8),
                            (unsigned char)n,
                            (unsigned char)type,
                            (unsigned char)flags,
                            0,
                            0,
                            0,
                            0};
    for (int i = 0; i < 4; i++)
        f[5 + i] = (unsigned char)(stream >> (24 - 8 * i));
    assert_true(n < sizeof(f) - 9);
    if (n)
        memcpy(f + 9, p, n);
    size_t sent;
    (void)SSL_write_ex(ssl, f, n + 9, &sent);
}

/* False: the connection ends. */
static bool seal_fate(struct h2_server *s, SSL *ssl, uint32_t stream)
{
    static const char BODY[] = "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}";
    unsigned n = atomic_fetch_add(&s->n_asked, 1);
    enum fate fate = n < s->n_fates ? s->fates[n] : FATE_DIE;
    unsigned char goaway[8] = {0};
    goaway[3] = (unsigned char)(stream > 2 ? stream - 2 : 0);
    switch (fate) {
    case FATE_ANSWER:
        put_frame(ssl, 1, 4, stream, "\x88", 1);
        put_frame(ssl, 0, 1, stream, BODY, sizeof(BODY) - 1);
        return true;
    case FATE_REFUSE:
        put_frame(ssl, 3, 0, stream, "\0\0\0\7", 4);
        return true;
    case FATE_INTERNAL:
        put_frame(ssl, 3, 0, stream, "\0\0\0\2", 4);
        return true;
    case FATE_GOAWAY:
        put_frame(ssl, 7, 0, 0, goaway, 8);
        return true;
    default:
        return false;
    }
}

static void serve(struct h2_server *s, SSL *ssl)
{
    unsigned char head[9], preface[24], *payload = malloc(70000);
    bool goes_on = payload && read_all(ssl, preface, sizeof(preface));
    if (goes_on)
        put_frame(ssl, 4, 0, 0, NULL, 0);
    while (goes_on && read_all(ssl, head, 9)) {
        size_t n = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        uint32_t stream =
            (uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 | head[8];
        if (n > 65536 || !read_all(ssl, payload, n))
            break;
        if (head[3] == 4 && !(head[4] & 1))
            put_frame(ssl, 4, 1, 0, NULL, 0);
        if (head[3] <= 1 && head[4] & 1) /* the end of a request */
            goes_on = seal_fate(s, ssl, stream);
    }
    free(payload);
}

static void *serve_all(void *arg)
{
    struct h2_server *s = arg;
    for (int fd; (fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0;) {
        SSL *ssl = SSL_new(s->ctx);
        atomic_store(&s->conn, fd);
        SSL_set_fd(ssl, fd);
        if (SSL_accept(ssl) == 1)
            serve(s, ssl);
        SSL_free(ssl);
        atomic_store(&s->conn, -1);
        close(fd);
    }
    return NULL;
}

static void start(struct h2_server *s, const enum fate *fates, unsigned n)
{
    *s = (struct h2_server){.fates = fates, .n_fates = n, .conn = -1, .ctx = make_ctx()};
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&a, &len), 0);
    s->port = ntohs(a.sin_port);
    assert_int_equal(listen(s->fd, 16), 0);
    pthread_create(&s->thread, NULL, serve_all, s);
}

static void stop(struct h2_server *s)
{
    shutdown(s->fd, SHUT_RDWR);
    int fd = atomic_load(&s->conn);
    if (fd >= 0)
        shutdown(fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->fd);
    SSL_CTX_free(s->ctx);
}

enum verb { POST, PUT, DELETE, DELETE_WITH_BODY, GET, N_VERBS };

static int call(struct vigil_client *c, enum verb verb, struct vigil_error *err)
{
    struct vigil_delete_opts d = VIGIL_INIT(struct vigil_delete_opts);
    const struct vigil_object *o = NULL;
    int r;
    if (verb == POST)
        r = vigil_create(c, &vigil_pods, "d", vigil_text("{}"), &o, err);
    else if (verb == PUT)
        r = vigil_update(c, &vigil_pods, "d", "a", NULL, vigil_text("{}"), &o, err);
    else if (verb == GET)
        r = vigil_read(c, &vigil_pods, "d", "a", &o, err);
    else
        r = vigil_delete(c, &vigil_pods, "d", "a", verb == DELETE ? NULL : &d, err);
    vigil_object_unref(o);
    return r;
}

/* The fate of a write, on a new connection and on one that was used; was it sent again? */
static void check(enum verb verb, bool is_used, enum fate fate, bool is_repeated)
{
    const enum fate fates[] = {FATE_ANSWER, fate, FATE_ANSWER};
    struct h2_server s;
    char url[64];
    struct vigil_config_opts co = VIGIL_INIT(struct vigil_config_opts);
    struct vigil_client_opts o = VIGIL_INIT(struct vigil_client_opts);
    struct vigil_config *config = NULL;
    struct vigil_client *c = NULL;
    struct vigil_error err = {0};
    start(&s, fates + !is_used, 2 + is_used);
    snprintf(url, sizeof(url), "https://127.0.0.1:%d", s.port);
    co.server = url;
    co.insecure_skip_tls_verify = true;
    o.timeout_ms = 20000;
    assert_int_equal(vigil_config_new(&co, &config, NULL), 0);
    assert_int_equal(vigil_client_new(config, &o, &c, NULL), 0);
    vigil_config_free(config);
    if (is_used)
        assert_int_equal(call(c, GET, &err), 0);
    int r = call(c, verb, &err);
    unsigned n = atomic_load(&s.n_asked) - is_used;
    if ((r == 0) != is_repeated || n != 1u + is_repeated)
        fail_msg("verb %d, %s connection, fate %d: %d (%s) after %u requests", (int)verb,
                 is_used ? "used" : "new", (int)fate, r, err.message, n);
    vigil_client_free(c);
    stop(&s);
}

static void what_was_not_processed_is_sent_again(void **state)
{
    (void)state;
    for (int verb = 0; verb < N_VERBS; verb++) {
        for (int is_used = 0; is_used < 2; is_used++) {
            check((enum verb)verb, is_used, FATE_REFUSE, true);
            check((enum verb)verb, is_used, FATE_GOAWAY, true);
        }
    }
}

static void what_may_have_been_processed_is_not(void **state)
{
    (void)state;
    for (int verb = 0; verb < GET; verb++) {
        for (int is_used = 0; is_used < 2; is_used++) {
            check((enum verb)verb, is_used, FATE_DIE, false);
            check((enum verb)verb, is_used, FATE_INTERNAL, false);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_not_processed_is_sent_again),
                                       cmocka_unit_test(what_may_have_been_processed_is_not)};
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
