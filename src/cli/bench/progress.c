/* progress.c - one line on a terminal that replaces the last; elsewhere nothing. */
#include <stdio.h>

#include "bench.h"

/* Ten times in a second: a person sees no more. */
#define DRAW_NS (100 * VG_NS_PER_MS)

void vg_bench_say(struct vg_bench *b, const char *fmt, ...)
{
    uint64_t now = vg_bench_now();
    if (!b->shows_progress || now - b->said_ns < DRAW_NS)
        return;
    b->said_ns = now;
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "\r%s: ", b->doing);
    vfprintf(stderr, fmt, ap); /* NOLINT(clang-analyzer-valist.Uninitialized): started above */
    fputs("\033[K", stderr);
    va_end(ap);
    (void)fflush(stderr);
}

void vg_bench_say_nothing(struct vg_bench *b)
{
    if (!b->shows_progress)
        return;
    fputs("\r\033[K", stderr);
    (void)fflush(stderr);
}
