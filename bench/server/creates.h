/* creates.h - clients that create config maps of 1 KB as fast as they are answered, each with one
 * request under way, by the writers of `vigil bench`. Against vigild, a rival, or the floor's bare
 * server. Thread: main; no two at once. */
#ifndef BENCH_SERVER_CREATES_H
#define BENCH_SERVER_CREATES_H

#include "target.h"

struct creates {
    uint64_t answers; /* 201 */
    uint64_t refused; /* anything else */
    double secs;
};
/* For so long; names do not repeat within a process. Dies when a connection breaks. */
void creates_run(const struct vg_bench_target *t, unsigned clients, uint64_t ms,
                 struct creates *ret);

#endif
