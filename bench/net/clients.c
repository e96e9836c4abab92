/* clients.c - see net.h. After its handshake a connection's bytes are dropped as they come: what
 * reading costs is another process's matter. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "measure.h"
#include "net.h"

static int dial(uint16_t port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
        bench_die("cannot connect: %m");
    return fd;
}

static void open_one(const struct door *door, SSL_CTX *ctx, int ep)
{
    static const char request[] = "GET /watch HTTP/1.1\r\nHost: bench\r\n\r\n";
    int fd = dial(door->port);
    SSL *ssl = NULL;
    if (door->is_tls) {
        ssl = SSL_new(ctx);
        SSL_set_fd(ssl, fd);
        if (SSL_connect(ssl) != 1)
            bench_die("a handshake failed");
    }
    if (door->asks && ssl)
        SSL_write(ssl, request, sizeof request - 1);
    else if (door->asks && write(fd, request, sizeof request - 1) < 0)
        bench_die("cannot ask");
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
}

static void drop_all(int ep, struct wire *wire)
{
    static char dropped[1 << 20]; /* nothing is written to it */
    struct epoll_event events[256];
    for (;;) {
        int n = epoll_wait(ep, events, 256, -1);
        for (int i = 0; i < n; i++) {
            ssize_t r = recv(events[i].data.fd, dropped, sizeof dropped, MSG_TRUNC | MSG_DONTWAIT);
            if (r > 0)
                atomic_fetch_add(&wire->read, (uint64_t)r);
            else if (r == 0)
                epoll_ctl(ep, EPOLL_CTL_DEL, events[i].data.fd, NULL);
        }
    }
}

pid_t clients_start(const struct door *doors, size_t n_doors, size_t n, struct wire *wire)
{
    pid_t pid = fork();
    if (pid < 0)
        bench_die("cannot fork: %m");
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    int ep = epoll_create1(0);
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    for (size_t d = 0; d < n_doors; d++)
        for (size_t i = 0; i < n; i++)
            open_one(&doors[d], ctx, ep);
    drop_all(ep, wire);
    _exit(0);
}
