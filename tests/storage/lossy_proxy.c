/* lossy_proxy.c - see lossy_proxy.h. One thread polls all sockets; the mode is set by others. */
#include "lossy_proxy.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void die(const char *what)
{
    perror(what);
    abort();
}

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void close_pair(struct vg_proxy *p, int i)
{
    close(p->pairs[i][0]);
    close(p->pairs[i][1]);
    p->n_pairs--;
    memcpy(p->pairs[i], p->pairs[p->n_pairs], sizeof p->pairs[i]);
}

static void accept_pair(struct vg_proxy *p)
{
    struct sockaddr_in to = loopback(p->upstream_port);
    int client = accept(p->listener, NULL, NULL);
    int upstream = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client < 0 || upstream < 0)
        die("accept");
    bool is_lost = p->n_pairs == VG_PROXY_PAIRS_MAX ||
                   connect(upstream, (struct sockaddr *)&to, sizeof to) < 0;
    if (is_lost) {
        close(client);
        close(upstream);
        return;
    }
    p->pairs[p->n_pairs][0] = client;
    p->pairs[p->n_pairs][1] = upstream;
    p->n_pairs++;
}

static bool send_all(int fd, const char *bytes, size_t n)
{
    while (n) {
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        bytes += sent;
        n -= (size_t)sent;
    }
    return true;
}

/* One read of one side. False: the pair is over. */
static bool forward(struct vg_proxy *p, const int *pair, int from)
{
    char bytes[65536];
    ssize_t n = recv(pair[from], bytes, sizeof bytes, 0);
    int mode = atomic_load(&p->mode);
    if (n <= 0)
        return false;
    if ((mode == VG_PROXY_LOSE_REQUESTS && from == 0) ||
        (mode == VG_PROXY_LOSE_ANSWERS && from == 1)) {
        atomic_fetch_add(&p->lost, 1);
        return true;
    }
    return send_all(pair[!from], bytes, (size_t)n);
}

static void serve_pairs(struct vg_proxy *p, const struct pollfd *fds, int n)
{
    for (int i = n - 1; i >= 0; i--) { /* closing moves the last one, which has been served */
        bool is_open = true;
        for (int from = 0; from < 2 && is_open; from++)
            if (fds[2 * i + from].revents)
                is_open = forward(p, p->pairs[i], from);
        if (!is_open)
            close_pair(p, i);
    }
}

static void *run(void *arg)
{
    struct vg_proxy *p = arg;
    struct pollfd fds[2 + 2 * VG_PROXY_PAIRS_MAX];
    char byte;
    for (;;) {
        int n = p->n_pairs;
        fds[0] = (struct pollfd){.fd = p->wake[0], .events = POLLIN};
        fds[1] = (struct pollfd){.fd = p->listener, .events = POLLIN};
        for (int i = 0; i < 2 * n; i++)
            fds[2 + i] = (struct pollfd){.fd = p->pairs[i / 2][i % 2], .events = POLLIN};
        if (poll(fds, (nfds_t)(2 + 2 * n), -1) < 0)
            die("poll");
        if (fds[0].revents && read(p->wake[0], &byte, 1) == 1 && byte == 'q')
            break;
        if (atomic_load(&p->mode) == VG_PROXY_BREAK) {
            while (p->n_pairs)
                close_pair(p, p->n_pairs - 1);
            atomic_store(&p->mode, VG_PROXY_PASS);
            continue;
        }
        serve_pairs(p, fds + 2, n);
        if (fds[1].revents)
            accept_pair(p);
    }
    while (p->n_pairs)
        close_pair(p, p->n_pairs - 1);
    return NULL;
}

void vg_proxy_start(struct vg_proxy *p, int upstream_port)
{
    struct sockaddr_in at = loopback(0);
    socklen_t len = sizeof at;
    memset(p, 0, sizeof *p);
    p->upstream_port = upstream_port;
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (p->listener < 0 || bind(p->listener, (struct sockaddr *)&at, sizeof at) < 0 ||
        listen(p->listener, 16) < 0 || getsockname(p->listener, (struct sockaddr *)&at, &len) < 0 ||
        pipe(p->wake) < 0 || pthread_create(&p->thread, NULL, run, p) != 0)
        die("proxy");
    snprintf(p->url, sizeof p->url, "http://127.0.0.1:%d", ntohs(at.sin_port));
}

static void wake(struct vg_proxy *p, char what)
{
    if (write(p->wake[1], &what, 1) != 1)
        die("proxy");
}

void vg_proxy_stop(struct vg_proxy *p)
{
    wake(p, 'q');
    pthread_join(p->thread, NULL);
    close(p->listener);
    close(p->wake[0]);
    close(p->wake[1]);
}

void vg_proxy_set(struct vg_proxy *p, enum vg_proxy_mode mode)
{
    atomic_store(&p->lost, 0);
    atomic_store(&p->mode, mode);
    wake(p, 'm');
    while (mode == VG_PROXY_BREAK && atomic_load(&p->mode) == VG_PROXY_BREAK)
        usleep(200);
}

void vg_proxy_wait_lost(struct vg_proxy *p)
{
    while (!atomic_load(&p->lost))
        usleep(200);
}
