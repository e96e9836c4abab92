/* measure.c - time, medians, rates. */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "bench_json.h"

double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

size_t calibrate(const struct contender *c, void *state, enum job job, const struct docs *docs,
                 double seconds)
{
    size_t passes = 1;
    for (;;) {
        double start = cpu_seconds();
        for (size_t i = 0; i < passes; i++)
            if (c->run[job](state, docs) == SIZE_MAX)
                return 1;
        double took = cpu_seconds() - start;
        if (took >= seconds / 4)
            return 1 + (size_t)((double)passes * seconds / took);
        passes *= 2;
    }
}

double rate(const struct contender *c, void *state, enum job job, const struct docs *docs,
            size_t passes)
{
    double start = cpu_seconds();
    for (size_t i = 0; i < passes; i++)
        if (c->run[job](state, docs) == SIZE_MAX)
            return 0;
    double took = cpu_seconds() - start;
    return (double)docs->bytes * (double)passes / took / 1e6;
}
