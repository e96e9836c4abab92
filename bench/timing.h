/* timing.h - what small benches measure with: the processor time of a thread, and medians. Those
 * that start servers or write files have bench/storage/measure.h. */
#ifndef BENCH_TIMING_H
#define BENCH_TIMING_H

#include <stdlib.h>
#include <time.h>

/* Processor time of this thread; what others do to the machine counts less. */
static inline double bench_thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline int bench_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts v, so that its ends are the least and the most afterwards. */
static inline double bench_median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, bench_by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

#endif
