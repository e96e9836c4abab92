/* floor.c - see net.h. The least that anybody can do: one call for each connection. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "measure.h"
#include "net.h"

struct floor {
    int listener;
    uint16_t port;
    size_t n;
    SSL_CTX *ctx; /* NULL: plain */
    int *fds;
    SSL **ssls;
};

struct floor *floor_new(bool is_tls, size_t n)
{
    struct floor *f = bench_alloc(1, sizeof *f);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    f->n = n;
    f->fds = bench_alloc(n, sizeof *f->fds);
    f->ssls = bench_alloc(n, sizeof(SSL *));
    f->listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(f->listener, (struct sockaddr *)&a, sizeof a) < 0 || listen(f->listener, 4096) < 0 ||
        getsockname(f->listener, (struct sockaddr *)&a, &len) < 0)
        bench_die("cannot listen: %m");
    f->port = ntohs(a.sin_port);
    if (!is_tls)
        return f;
    f->ctx = SSL_CTX_new(TLS_server_method());
    SSL_CTX_set_num_tickets(f->ctx, 0);
    SSL_CTX_set_options(f->ctx, SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_ciphersuites(f->ctx, "TLS_AES_128_GCM_SHA256");
    if (SSL_CTX_use_certificate_chain_file(f->ctx, bench_cert) != 1 ||
        SSL_CTX_use_PrivateKey_file(f->ctx, bench_key, SSL_FILETYPE_PEM) != 1)
        bench_die("cannot use the certificate");
    return f;
}

uint16_t floor_port(const struct floor *f)
{
    return f->port;
}

void floor_accept(struct floor *f)
{
    for (size_t i = 0; i < f->n; i++) {
        f->fds[i] = accept(f->listener, NULL, NULL);
        if (f->fds[i] < 0)
            bench_die("cannot accept: %m");
        setsockopt(f->fds[i], IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        if (f->ctx) {
            f->ssls[i] = SSL_new(f->ctx);
            SSL_set_fd(f->ssls[i], f->fds[i]);
            if (SSL_accept(f->ssls[i]) != 1)
                bench_die("a handshake failed");
        }
        fcntl(f->fds[i], F_SETFL, O_NONBLOCK);
    }
}

uint64_t floor_send(struct floor *f, const char *p, size_t n)
{
    uint64_t sent = 0;
    for (size_t i = 0; i < f->n; i++)
        for (size_t at = 0; at < n;) {
            ssize_t r = f->ctx ? SSL_write(f->ssls[i], p + at, (int)VG_MIN(n - at, (size_t)16384))
                               : send(f->fds[i], p + at, n - at, MSG_NOSIGNAL);
            if (r <= 0)
                bench_die("the floor's socket is full");
            at += (size_t)r;
            sent += (uint64_t)r;
        }
    return sent;
}
