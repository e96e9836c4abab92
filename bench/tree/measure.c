/* measure.c - processor time and retired instructions of one run. */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench_tree.h"
#include "timing.h"

void die(const char *what)
{
    fprintf(stderr, "bench_tree: %s\n", what);
    exit(1);
}

void *must_alloc(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size);
    if (!p)
        die("out of memory");
    return p;
}

/* A descriptor, opened once; -1: not to be had here. */
static int counter(void)
{
    static int fd = -2;
    if (fd == -2) {
        struct perf_event_attr attr;
        memset(&attr, 0, sizeof attr);
        attr.type = PERF_TYPE_HARDWARE;
        attr.size = sizeof attr;
        attr.config = PERF_COUNT_HW_INSTRUCTIONS;
        attr.exclude_kernel = 1;
        attr.exclude_hv = 1;
        fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
    }
    return fd;
}

static double instructions(void)
{
    uint64_t n = 0;
    if (counter() < 0 || read(counter(), &n, sizeof n) != (ssize_t)sizeof n)
        return 0;
    return (double)n;
}

struct sample measure(const struct contender *c, void *state, enum job job, const struct work *w,
                      size_t batch)
{
    double i = instructions(), t = bench_thread_ns();
    size_t n = c->run[job](state, w, batch);
    t = bench_thread_ns() - t;
    i = instructions() - i;
    if (n == 0)
        die("a run did nothing");
    return (struct sample){.ns = t / (double)n, .instructions = i / (double)n};
}
