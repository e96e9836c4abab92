/* late.h - reading late: who reads at once takes the processor from the server that is still
 * sending, and then the reading is what is measured. So wait until nobody gets anything new, and
 * ask the kernel when the bytes came. Thread: any; a socket and its epoll have one at a time. */
#ifndef VG_CLI_BENCH_LATE_H
#define VG_CLI_BENCH_LATE_H

#include <sys/types.h>

#include "base/macros.h"

struct epoll_event;

/* From now on the kernel notes when this socket's bytes come. 0, -errno: it does not, and one may
 * do without. */
int vg_bench_late_init(int fd);

/* How far the wall's clock, by which the kernel notes it, is ahead of vg_bench_now(). Clocks are
 * set now and then: to be asked anew for each batch that is read. */
uint64_t vg_bench_late_wall_ahead(void);

/* As recv does. *ret_ns (NULL allowed): when the last of the bytes came, by vg_bench_now(); a
 * kernel that did not note it: now. Written only when something was read. */
VG_CHECK ssize_t vg_bench_late_recv(int fd, void *to, size_t room, int flags,
                                    uint64_t wall_ahead_ns, uint64_t *ret_ns);

/* n events of this epoll are there, which tells by edges: each once. Gather more in events[max]
 * until there are `all`, or none has come for lull_ns; how many there are by then. */
int vg_bench_late_wait(int epoll, struct epoll_event *events, int n, int max, int all,
                       uint64_t lull_ns);

#endif
