/* metrics_int.h - what operators graph of what others count: the cacher of its kinds, each loop of
 * its watches. It is read at the scrape. metrics.c has this and the counters of this room.
 * Threads: scrapes and new shards come from any; the numbers of a shard are one loop's. */
#ifndef VG_API_METRICS_INT_H
#define VG_API_METRICS_INT_H

#include "base/metrics.h"
#include "metrics.h"

/* 256 loops: more than any machine here has cores. */
#define VG_SHARDS_MAX 256u
#define VG_COLLECTED_MAX 16u

struct vg_collected {
    struct vg_cacher *cacher; /* borrowed */
    const struct vg_kind *kinds;
    size_t n_kinds;
    _Atomic(struct vg_watch_count *) shards[VG_SHARDS_MAX]; /* owned */
    _Atomic size_t n_shards;
    struct vg_metric *callbacks[VG_COLLECTED_MAX]; /* the registry's */
    size_t n_callbacks;
};
/* Adds the rows to the registry; *c stays in place and is zeroed before. 0, -ENOMEM,
 * VIGIL_E_EXISTS; done is due in any case, and does nothing to a zeroed one. */
VG_CHECK int vg_collected_init(struct vg_collected *c, struct vg_metrics *registry,
                               struct vg_cacher *cacher);
/* No scrape reads it afterwards. */
void vg_collected_done(struct vg_collected *c);
/* A loop's numbers, one for each kind, zeroed. NULL: out of memory, or too many loops. */
struct vg_watch_count *vg_collected_add_shard(struct vg_collected *c);

/* ---- rows ---- */

#define VG_GROUP_RESOURCE "group", "resource"
#define VG_COUNTER_ROW(text, about, ...)                                                           \
    {                                                                                              \
        .name = text, .help = about, .type = VG_METRIC_COUNTER, .labels = {__VA_ARGS__},           \
        .max_series = 4096                                                                         \
    }

#endif
