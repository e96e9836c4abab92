/* crowd.c - see crowd.h. */
#include "crowd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 10000
#define TAKE_BYTES ((size_t)1 << 20)

struct reader {
    int fd;
    _Atomic uint64_t first_ns; /* when the first bytes after the mark came; 0: not yet */
};

struct crowd {
    char unused[1]; /* what comes is dropped by the kernel and never written here */
    int epoll;
    _Atomic unsigned lull_ms;
    size_t n, max;
    struct reader *readers;
    pthread_t thread;
    _Atomic bool ends;
    _Atomic uint64_t bytes;
    _Atomic size_t closed;
};

/* When the kernel had them, on our clock; a kernel that does not tell: now. */
static uint64_t arrival_ns(struct msghdr *m)
{
    struct timespec at, wall;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h))
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_TIMESTAMPNS) {
            memcpy(&at, CMSG_DATA(h), sizeof at);
            clock_gettime(CLOCK_REALTIME, &wall);
            int64_t ago =
                (int64_t)(wall.tv_sec - at.tv_sec) * 1000000000 + wall.tv_nsec - at.tv_nsec;
            return bench_now_ns() - (uint64_t)ago;
        }
    return bench_now_ns();
}

static ssize_t drop_bytes(struct crowd *c, struct reader *r)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct timespec))];
    } control;
    struct iovec v = {c->unused, TAKE_BYTES};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    if (c->lull_ms) {
        m.msg_control = control.bytes;
        m.msg_controllen = sizeof control.bytes;
    }
    ssize_t n = recvmsg(r->fd, &m, MSG_TRUNC | MSG_DONTWAIT);
    if (n > 0 && atomic_load(&r->first_ns) == 0)
        atomic_store(&r->first_ns, arrival_ns(&m));
    return n;
}

static void take(struct crowd *c, struct reader *r)
{
    for (;;) {
        ssize_t n = drop_bytes(c, r);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            epoll_ctl(c->epoll, EPOLL_CTL_DEL, r->fd, NULL);
            atomic_fetch_add(&c->closed, 1);
            return;
        }
        atomic_fetch_add(&c->bytes, (uint64_t)n);
        if ((size_t)n < TAKE_BYTES)
            return;
    }
}

/* How many sockets have something when no more have come for a while. */
static int wait_for_lull(const struct crowd *c, struct epoll_event *events, int n)
{
    for (int before = 0; n > before;) {
        before = n;
        nanosleep(&(struct timespec){.tv_nsec = (long)c->lull_ms * 1000000}, NULL);
        n = epoll_wait(c->epoll, events, (int)c->max, 0);
    }
    return n;
}

static void *read_all(void *arg)
{
    struct crowd *c = arg;
    struct epoll_event *events = bench_alloc(c->max, sizeof *events);
    while (!atomic_load(&c->ends)) {
        int n = epoll_wait(c->epoll, events, (int)VG_MIN(c->max, (size_t)256), 50);
        if (n > 0 && c->lull_ms)
            n = wait_for_lull(c, events, n);
        for (int i = 0; i < n; i++)
            take(c, events[i].data.ptr);
    }
    free(events);
    return NULL;
}

struct crowd *crowd_new(size_t max)
{
    struct crowd *c = bench_alloc(1, sizeof *c);
    c->readers = bench_alloc(max, sizeof *c->readers);
    c->max = max;
    c->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (c->epoll < 0 || pthread_create(&c->thread, NULL, read_all, c) != 0)
        bench_die("no crowd: %s", strerror(errno));
    return c;
}

void crowd_free(struct crowd *c)
{
    if (!c)
        return;
    atomic_store(&c->ends, true);
    pthread_join(c->thread, NULL);
    for (size_t i = 0; i < c->n; i++)
        close(c->readers[i].fd);
    close(c->epoll);
    free(c->readers);
    free(c);
}

void crowd_add(struct crowd *c, int take_fd)
{
    if (c->n == c->max)
        bench_die("the crowd is full");
    struct reader *r = &c->readers[c->n++];
    r->fd = take_fd;
    struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = r};
    if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, take_fd, &e) < 0)
        bench_die("a socket cannot be watched: %s", strerror(errno));
}

void crowd_read_late(struct crowd *c, unsigned lull_ms)
{
    int one = 1;
    for (size_t i = 0; i < c->n; i++)
        if (setsockopt(c->readers[i].fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one) < 0)
            bench_die("no times of arrival: %s", strerror(errno));
    atomic_store(&c->lull_ms, lull_ms);
}

size_t crowd_size(const struct crowd *c)
{
    return c->n;
}

uint64_t crowd_bytes(const struct crowd *c)
{
    return atomic_load(&c->bytes);
}

size_t crowd_closed(const struct crowd *c)
{
    return atomic_load(&c->closed);
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 500 * 1000}, NULL);
}

bool crowd_await(const struct crowd *c, uint64_t bytes)
{
    uint64_t last = crowd_bytes(c), since = bench_now_ns();
    for (;;) {
        uint64_t now = crowd_bytes(c);
        if (now >= bytes)
            return true;
        if (now != last) {
            last = now;
            since = bench_now_ns();
        } else if (bench_now_ns() - since > (uint64_t)WAIT_MS * 1000000) {
            return false;
        }
        nap();
    }
}

void crowd_await_quiet(const struct crowd *c, uint64_t ms)
{
    uint64_t last = crowd_bytes(c), since = bench_now_ns();
    while (bench_now_ns() - since < ms * 1000000) {
        nap();
        if (crowd_bytes(c) != last) {
            last = crowd_bytes(c);
            since = bench_now_ns();
        }
    }
}

void crowd_mark(struct crowd *c)
{
    for (size_t i = 0; i < c->n; i++)
        atomic_store(&c->readers[i].first_ns, 0);
}

void crowd_first_arrivals(const struct crowd *c, uint64_t since_ns, struct vg_hist *into)
{
    for (size_t i = 0; i < c->n; i++) {
        uint64_t at = atomic_load(&c->readers[i].first_ns);
        if (at)
            vg_hist_add(into, at > since_ns ? at - since_ns : 0);
    }
}
