/* late.c - see late.h. */
#include "late.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

#include "clock.h"

static uint64_t ns_of(const struct timespec *t)
{
    return (uint64_t)t->tv_sec * VG_NS_PER_S + (uint64_t)t->tv_nsec;
}

int vg_bench_late_init(int fd)
{
    int one = 1;
    return setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one) < 0 ? -errno : 0;
}

uint64_t vg_bench_late_wall_ahead(void)
{
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    return ns_of(&wall) - vg_bench_now();
}

static uint64_t arrival(struct msghdr *m, uint64_t wall_ahead_ns)
{
    struct timespec at;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
            memcpy(&at, CMSG_DATA(c), sizeof at);
            return ns_of(&at) - wall_ahead_ns;
        }
    return vg_bench_now();
}

ssize_t vg_bench_late_recv(int fd, void *to, size_t room, int flags, uint64_t wall_ahead_ns,
                           uint64_t *ret_ns)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct timespec))];
    } control;
    struct iovec v = {to, room};
    struct msghdr m = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(fd, &m, flags);
    if (n > 0 && ret_ns)
        *ret_ns = arrival(&m, wall_ahead_ns);
    return n;
}

int vg_bench_late_wait(int epoll, struct epoll_event *events, int n, int max, int all,
                       uint64_t lull_ns)
{
    for (int more = 1; more > 0 && n < all; n += VG_MAX(more, 0)) {
        vg_bench_nap(lull_ns);
        more = epoll_wait(epoll, events + n, max - n, 0);
    }
    return n;
}
