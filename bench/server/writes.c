/* writes.c - durable creates by many clients, beside a bare server that appends what its sockets
 * bring to a file, syncs once for all of them and answers: the floor of group commit over HTTP. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "creates.h"
#include "rows.h"

/* ---- the floor ---- */

struct floor_server {
    int listener, epoll, file;
    uint16_t port;
    _Atomic bool ends;
    pthread_t thread;
};

static void accept_all(struct floor_server *f)
{
    int fd, one = 1;
    while ((fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
        epoll_ctl(f->epoll, EPOLL_CTL_ADD, fd, &e);
    }
}

static void *serve_floor(void *arg)
{
    static const char answer[] = "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}";
    struct floor_server *f = arg;
    struct epoll_event events[512];
    char *group = bench_alloc(512, 4096);
    while (!atomic_load(&f->ends)) {
        int n = epoll_wait(f->epoll, events, 512, 20), asked = 0, who[512];
        size_t bytes = 0;
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == f->listener) {
                accept_all(f);
                continue;
            }
            ssize_t r = recv(fd, group + bytes, 4096, MSG_DONTWAIT);
            if (r == 0)
                close(fd);
            if (r <= 0)
                continue;
            bytes += (size_t)r;
            who[asked++] = fd;
        }
        if (asked && (write(f->file, group, bytes) < 0 || fdatasync(f->file) < 0))
            bench_die("the floor cannot write: %s", strerror(errno));
        for (int i = 0; i < asked; i++)
            if (send(who[i], answer, sizeof answer - 1, MSG_NOSIGNAL) < 0)
                close(who[i]);
    }
    free(group);
    return NULL;
}

static void floor_open(struct floor_server *f, const char *dir)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    char *path = bench_path(dir, "floor-writes");
    *f = (struct floor_server){.epoll = epoll_create1(EPOLL_CLOEXEC)};
    f->file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (f->file < 0 || f->listener < 0 || bind(f->listener, (struct sockaddr *)&a, n) < 0 ||
        listen(f->listener, 1024) < 0 || getsockname(f->listener, (struct sockaddr *)&a, &n) < 0)
        bench_die("the floor's server cannot start: %s", strerror(errno));
    f->port = ntohs(a.sin_port);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = f->listener};
    if (epoll_ctl(f->epoll, EPOLL_CTL_ADD, f->listener, &e) < 0 ||
        pthread_create(&f->thread, NULL, serve_floor, f) != 0)
        bench_die("the floor's server cannot start");
    free(path);
}

static void floor_close(struct floor_server *f)
{
    atomic_store(&f->ends, true);
    pthread_join(f->thread, NULL);
    close(f->listener);
    close(f->epoll);
    close(f->file);
}

/* ---- rows ---- */

/* In a second; how many there were goes to *ret_n. */
static double rate(const struct bench *b, const struct vg_bench_target *t, unsigned clients,
                   uint64_t *ret_n)
{
    struct creates r;
    creates_run(t, clients, b->quick ? 300 : 1500, &r);
    if (r.refused > 0)
        bench_die("%" PRIu64 " creates were refused, %" PRIu64 " were not", r.refused, r.answers);
    *ret_n = r.answers;
    return (double)r.answers / r.secs;
}

static void creates(const struct bench *b, const struct server *s, unsigned clients)
{
    double plain[ROUNDS_MAX], tls[ROUNDS_MAX], floors[ROUNDS_MAX], ratio[ROUNDS_MAX],
        cpu[ROUNDS_MAX];
    struct floor_server f;
    struct vg_bench_target floor;
    uint64_t n;
    floor_open(&f, b->dir);
    target_open(&floor, f.port, false);
    for (size_t i = 0; i < b->rounds; i++) {
        floors[i] = rate(b, &floor, clients, &n);
        uint64_t before = server_cpu_ns(s);
        plain[i] = rate(b, &s->targets[false], clients, &n);
        cpu[i] = (double)(server_cpu_ns(s) - before) / 1e3 / (double)n;
        tls[i] = rate(b, &s->targets[true], clients, &n);
        ratio[i] = floors[i] / plain[i];
    }
    vg_bench_target_close(&floor);
    floor_close(&f);
    report_row(b->report, "/s", plain, b->rounds, "durable creates, %u clients, plain", clients);
    report_row(b->report, "/s", tls, b->rounds, "  over TLS");
    report_row(b->report, "/s", floors, b->rounds, "  floor: a bare server, append and fdatasync");
    report_row(b->report, "us", cpu, b->rounds, "  vigild's processor time for one, plain");
    report_bar(b->report, report_median(ratio, b->rounds), 2, "floor over creates/s, %u clients",
               clients);
}

void rows_writes(const struct bench *b)
{
    struct server s;
    server_start(&s, b->binary, b->dir);
    pods_fill(&s, 1, 1);
    creates(b, &s, 32);
    creates(b, &s, 256);
    server_stop(&s);
    bench_remove_tree(s.dir);
}
