/* tls_server_testing.h - for tests of TLS on real sockets: a server with certificates made here
 * that is the state of a test, and one client of it. Thread: one; the loop is turned by hand. */
#ifndef VG_NET_TLS_SERVER_TESTING_H
#define VG_NET_TLS_SERVER_TESTING_H

#include "net_testing.h"
#include "tls_testing.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tls.h"

#define H1 "\x08http/1.1"
#define H2 "\x02h2\x08http/1.1"

struct tls_test {
    struct net_test net;
    const char *dir;
    char cert_file[512], key_file[512], ca_file[512];
    struct tls_test_pair ca, server, client;
    struct vg_tls *tls;
    int fd;
    SSL *ssl;
    int last_reason; /* of what hear met at the end */
};

static const struct tls_test_cert ca_cert = {.cn = "test-ca", .is_ca = true};
static const struct tls_test_cert server_cert = {
    .cn = "server", .usage = "serverAuth", .san = "IP:127.0.0.1"};
static const struct tls_test_cert client_cert = {
    .cn = "alice", .groups = {"system:masters", "dev"}, .usage = "clientAuth"};

static inline void open_tls(struct tls_test *t, const struct vg_http_limits *limits)
{
    memset(t, 0, sizeof *t);
    t->fd = -1;
    net_test_open(&t->net, limits);
    t->dir = vg_test_tmpdir();
    t->ca = tls_test_make(&ca_cert, NULL);
    t->server = tls_test_make(&server_cert, &t->ca);
    t->client = tls_test_make(&client_cert, &t->ca);
    tls_test_save(&t->ca, t->dir, "ca");
    tls_test_save(&t->server, t->dir, "server");
    snprintf(t->cert_file, sizeof t->cert_file, "%s/server.crt", t->dir);
    snprintf(t->key_file, sizeof t->key_file, "%s/server.key", t->dir);
    snprintf(t->ca_file, sizeof t->ca_file, "%s/ca.crt", t->dir);
    struct vg_tls_opts opts = {
        .cert_file = t->cert_file, .key_file = t->key_file, .client_ca_file = t->ca_file};
    struct vg_status status = {0};
    int r = vg_tls_new(&opts, &t->tls, &status);
    if (r < 0)
        print_message("%s\n", status.message);
    assert_int_equal(r, 0);
}

static inline int setup(void **state)
{
    static struct tls_test t;
    open_tls(&t, NULL);
    *state = &t;
    return 0;
}

static inline void hang_up(struct tls_test *t)
{
    SSL_free(t->ssl);
    t->ssl = NULL;
    if (t->fd >= 0)
        close(t->fd);
    t->fd = -1;
}

static inline int teardown(void **state)
{
    struct tls_test *t = *state;
    hang_up(t);
    net_test_close(&t->net);
    vg_tls_free(t->tls);
    tls_test_free(&t->ca);
    tls_test_free(&t->server);
    tls_test_free(&t->client);
    vg_test_tmpdir_remove(t->dir);
    return 0;
}

static inline void dial(struct tls_test *t, const struct tls_test_pair *own, const char *alpn)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    assert_int_equal(vg_http_server_adopt(t->net.server, fds[0], t->tls), 0);
    t->fd = fds[1];
    t->ssl = tls_test_client(t->fd, &t->ca, own, alpn);
}

/* Turn the server and try again until OpenSSL wants nothing: 1, or what went wrong. */
static inline int shake(struct tls_test *t)
{
    for (int i = 0; i < 10000; i++) {
        int r = SSL_do_handshake(t->ssl);
        int e = r == 1 ? 0 : SSL_get_error(t->ssl, r);
        if (r == 1 || (e != SSL_ERROR_WANT_READ && e != SSL_ERROR_WANT_WRITE)) {
            ERR_clear_error();
            return r == 1 ? 1 : -e;
        }
        net_turns(&t->net, 1);
    }
    return 0;
}

static inline void say(struct tls_test *t, const char *text)
{
    assert_int_equal(SSL_write(t->ssl, text, (int)strlen(text)), (int)strlen(text));
}

/* Read until `want` is at the end, or until the stream ends when want is NULL. */
static inline char *hear(struct tls_test *t, const char *want)
{
    static char got[1 << 21];
    size_t n = 0;
    for (int i = 0; i < 100000; i++) {
        net_turns(&t->net, 1);
        size_t r = 0;
        while (SSL_read_ex(t->ssl, got + n, sizeof got - 1 - n, &r) == 1)
            n += r;
        int e = SSL_get_error(t->ssl, 0);
        t->last_reason = ERR_GET_REASON(ERR_peek_last_error());
        ERR_clear_error();
        got[n] = 0;
        if (want && n >= strlen(want) && strcmp(got + n - strlen(want), want) == 0)
            return got;
        if (e != SSL_ERROR_WANT_READ) {
            assert_null(want);
            return got;
        }
    }
    fail_msg("waited for %s, got %s", want ? want : "the end", got);
    return NULL;
}

#endif
