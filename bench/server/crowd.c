/* crowd.c - see crowd.h. */
#include "crowd.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "late.h"

#define WAIT_MS 10000
#define TAKE_BYTES ((size_t)1 << 20)

struct reader {
    int fd;
    bool is_over;              /* the other side has ended it; the thread's */
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

static ssize_t drop_bytes(struct crowd *c, struct reader *r, uint64_t wall_ahead_ns)
{
    uint64_t at = 0;
    bool is_first = atomic_load(&r->first_ns) == 0;
    ssize_t n = vg_bench_late_recv(r->fd, c->unused, TAKE_BYTES, MSG_TRUNC | MSG_DONTWAIT,
                                   wall_ahead_ns, is_first ? &at : NULL);
    if (n > 0 && is_first)
        atomic_store(&r->first_ns, at);
    return n;
}

/* epoll tells by edges: what is there is taken, and an end that came with it is not told again. */
static void take(struct crowd *c, struct reader *r, bool may_be_over, uint64_t wall_ahead_ns)
{
    while (!r->is_over) {
        ssize_t n = drop_bytes(c, r, wall_ahead_ns);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            r->is_over = true;
            atomic_fetch_add(&c->closed, 1);
            return;
        }
        atomic_fetch_add(&c->bytes, (uint64_t)n);
        if ((size_t)n < TAKE_BYTES && !may_be_over)
            return;
    }
}

static void *read_all(void *arg)
{
    struct crowd *c = arg;
    struct epoll_event *events = bench_alloc(c->max, sizeof *events);
    while (!atomic_load(&c->ends)) {
        int max = (int)c->max, n = epoll_wait(c->epoll, events, VG_MIN(max, 256), 50);
        unsigned lull_ms = atomic_load(&c->lull_ms);
        if (n > 0 && lull_ms)
            n = vg_bench_late_wait(c->epoll, events, n, max, INT_MAX, lull_ms * VG_NS_PER_MS);
        uint64_t wall_ahead_ns = vg_bench_late_wall_ahead();
        for (int i = 0; i < n; i++)
            take(c, events[i].data.ptr, events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR),
                 wall_ahead_ns);
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
    struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = r};
    if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, take_fd, &e) < 0)
        bench_die("a socket cannot be watched: %s", strerror(errno));
}

void crowd_read_late(struct crowd *c, unsigned lull_ms)
{
    for (size_t i = 0; i < c->n; i++)
        if (vg_bench_late_init(c->readers[i].fd) < 0)
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
