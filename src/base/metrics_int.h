/* metrics_int.h - what the registry (metrics.c) and the exposition (metrics_write.c) share.
 * Metrics and series are only ever added, each into a list kept in order, by one thread at a time
 * (rank METRICS); a link is stored with release and read with acquire, so that a scrape walks the
 * lists without that lock and callbacks may take what locks they need. */
#ifndef VG_BASE_METRICS_INT_H
#define VG_BASE_METRICS_INT_H

#include "lock.h"
#include "map.h"
#include "metrics.h"

struct vg_metric_series {
    _Atomic(struct vg_metric_series *) next; /* by label values */
    struct vg_slice labels[VG_METRIC_LABELS_MAX];
    union {
        struct vg_counter counter;
        struct vg_gauge gauge;
        struct vg_histogram histogram;
    } u;
};

struct vg_metric {
    _Atomic(struct vg_metric *) next; /* by name */
    const struct vg_metric_desc *desc;
    size_t label_count;
    struct vg_metrics *registry;
    _Atomic(struct vg_metric_series *) series;
    struct vg_metric_series *overflow; /* const after init; in the list once it was given out */
    _Atomic uint64_t overflow_count;
    bool is_overflow_listed VG_GUARDED_BY(registry->mu);
    struct vg_map by_labels VG_GUARDED_BY(registry->mu); /* keys and values in the series */
    vg_metric_collect_fn *collect VG_GUARDED_BY(registry->scrape_mu);
    void *collect_arg VG_GUARDED_BY(registry->scrape_mu);
};

struct vg_metrics {
    struct vg_mutex scrape_mu; /* rank SCRAPE */
    struct vg_mutex mu;        /* rank METRICS */
    _Atomic(struct vg_metric *) metrics;
};

#endif
