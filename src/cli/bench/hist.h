/* hist.h - latencies in nanoseconds: 32 buckets to the doubling, so a quantile is right to 3
 * percent. Thread: one owner. */
#ifndef VG_CLI_BENCH_HIST_H
#define VG_CLI_BENCH_HIST_H

#include "base/macros.h"

#define VG_BENCH_HIST_BUCKETS (60 * 32)
struct vg_bench_hist {
    uint64_t count, max;
    uint32_t buckets[VG_BENCH_HIST_BUCKETS];
};
void vg_bench_hist_add(struct vg_bench_hist *h, uint64_t ns);
void vg_bench_hist_merge(struct vg_bench_hist *into, const struct vg_bench_hist *from);
/* 0 when there is nothing. */
double vg_bench_hist_ms(const struct vg_bench_hist *h, double quantile);

#endif
