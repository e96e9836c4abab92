/* measure.c - rates. */
#include <stdint.h>

#include "bench_json.h"
#include "timing.h"

size_t calibrate(const struct contender *c, void *state, enum job job, const struct docs *docs,
                 double seconds)
{
    size_t passes = 1;
    for (;;) {
        double start = bench_thread_ns();
        for (size_t i = 0; i < passes; i++)
            if (c->run[job](state, docs) == SIZE_MAX)
                return 1;
        double took = (bench_thread_ns() - start) * 1e-9;
        if (took >= seconds / 4)
            return 1 + (size_t)((double)passes * seconds / took);
        passes *= 2;
    }
}

double rate(const struct contender *c, void *state, enum job job, const struct docs *docs,
            size_t passes)
{
    double start = bench_thread_ns();
    for (size_t i = 0; i < passes; i++)
        if (c->run[job](state, docs) == SIZE_MAX)
            return 0;
    double took = (bench_thread_ns() - start) * 1e-9;
    return (double)docs->bytes * (double)passes / took / 1e6;
}
