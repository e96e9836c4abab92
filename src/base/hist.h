/* hist.h - latencies in nanoseconds: 32 buckets to the doubling, so a quantile is right to 3
 * percent. Thread: one owner. */
#ifndef VG_BASE_HIST_H
#define VG_BASE_HIST_H

#include "macros.h"

#define VG_HIST_BUCKETS (60 * 32)
struct vg_hist {
    uint64_t count, max;
    uint32_t buckets[VG_HIST_BUCKETS];
};
void vg_hist_add(struct vg_hist *h, uint64_t ns);
void vg_hist_merge(struct vg_hist *into, const struct vg_hist *from);
/* The value that a share of all are below, in nanoseconds; 0 when there is nothing. */
double vg_hist_ns(const struct vg_hist *h, double quantile);

#endif
