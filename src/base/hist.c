/* hist.c - see hist.h. */
#include "hist.h"

/* Below 32 a bucket is a value; above, the highest set bit chooses a run of 32 buckets and the five
 * bits after it the place in the run. */
static size_t bucket_of(uint64_t ns)
{
    if (ns < 32)
        return (size_t)ns;
    unsigned top = 63u - (unsigned)__builtin_clzll(ns);
    return (size_t)(top - 4) * 32 + (size_t)((ns >> (top - 5)) & 31);
}

static double bucket_middle(size_t bucket)
{
    if (bucket < 32)
        return (double)bucket;
    unsigned shift = (unsigned)(bucket / 32 - 1);
    return ((double)(32 + bucket % 32) + 0.5) * (double)(UINT64_C(1) << shift);
}

void vg_hist_add(struct vg_hist *h, uint64_t ns)
{
    h->buckets[bucket_of(ns)]++;
    h->count++;
    h->max = VG_MAX(h->max, ns);
}

void vg_hist_merge(struct vg_hist *into, const struct vg_hist *from)
{
    for (size_t i = 0; i < VG_HIST_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
    into->count += from->count;
    into->max = VG_MAX(into->max, from->max);
}

double vg_hist_ns(const struct vg_hist *h, double quantile)
{
    uint64_t rank = (uint64_t)(quantile * (double)h->count), seen = 0;
    for (size_t i = 0; i < VG_HIST_BUCKETS; i++) {
        seen += h->buckets[i];
        if (seen > rank)
            return VG_MIN(bucket_middle(i), (double)h->max);
    }
    return (double)h->max;
}
