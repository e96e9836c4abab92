/* metrics.h - counters, gauges and histograms, written as Prometheus text (version 0.0.4).
 * A metric is described by a static row and added to a registry; each combination of label values
 * is a series, whose counter, gauge or histogram is looked up once and kept: updates are lock-free
 * and relaxed. Looking up never fails: when a metric has its cap of series, or memory is short, the
 * caller gets the metric's overflow series (every label "_overflow_"), so that sums stay right, and
 * vigil_metrics_overflow_total{metric=} counts how often. What peers send may therefore be a label.
 * Values of which someone else keeps count come from a callback at the scrape.
 * Thread: any, for all but new and free. Owner: the registry owns metrics and series; they live as
 * long as it does. */
#ifndef VG_BASE_METRICS_H
#define VG_BASE_METRICS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "buf.h"
#include "slice.h"

enum vg_metric_type { VG_METRIC_COUNTER, VG_METRIC_GAUGE, VG_METRIC_HISTOGRAM };

#define VG_METRIC_LABELS_MAX 10
/* 256: a label value is a name; longer ones are cut, so that a peer cannot fill the scrape. */
#define VG_METRIC_VALUE_MAX 256
/* 1000: what one Prometheus target can bear per metric without being noticed. */
#define VG_METRIC_SERIES_DEFAULT 1000

/* Static, with all it points to: it is borrowed for as long as the registry lives. */
struct vg_metric_desc {
    const char *name; /* [a-zA-Z_:][a-zA-Z0-9_:]* */
    const char *help;
    enum vg_metric_type type;
    const char *labels[VG_METRIC_LABELS_MAX + 1]; /* ends with NULL */
    const double *bounds; /* histogram: upper bounds, rising, without +Inf */
    size_t bound_count;
    size_t max_series; /* 0: VG_METRIC_SERIES_DEFAULT */
};

struct vg_metrics;
struct vg_metric;
struct vg_metric_writer;

struct vg_counter {
    _Atomic uint64_t n;
};
struct vg_gauge {
    _Atomic int64_t n;
};
struct vg_histogram {
    const double *bounds;
    size_t bound_count;
    _Atomic uint64_t sum_bits; /* of a double */
    _Atomic uint64_t *counts;  /* per bucket, not cumulative; one more than bounds */
};

VG_CHECK struct vg_metrics *vg_metrics_new(void); /* NULL: out of memory */
void vg_metrics_free(struct vg_metrics *m);

/* Add a metric; the same desc again gives the same metric. 0; -ENOMEM; VIGIL_E_EXISTS: the name is
 * another's; VIGIL_E_INVALID: a malformed name, label or list of bounds. */
VG_CHECK int vg_metrics_add(struct vg_metrics *m, const struct vg_metric_desc *desc,
                            struct vg_metric **ret_metric);

/* Called at each scrape with no lock but SCRAPE; gives its values by vg_metric_emit. */
typedef void vg_metric_collect_fn(void *arg, struct vg_metric_writer *writer);
/* As above for a counter or gauge whose values are computed at the scrape; desc must be new. */
VG_CHECK int vg_metrics_add_callback(struct vg_metrics *m, const struct vg_metric_desc *desc,
                                     vg_metric_collect_fn *fn, void *arg,
                                     struct vg_metric **ret_metric);
/* `values` as in vg_metric_counter. */
void vg_metric_emit(struct vg_metric_writer *writer, const struct vg_slice *values, double value);
/* When it returns, the callback does not run and will not. NULL allowed. Not from a callback. */
void vg_metric_stop(struct vg_metric *metric);

/* The series with these label values, one per label of the metric (NULL when it has none); borrowed
 * for the call. Never NULL. The function must fit the metric's type. */
struct vg_counter *vg_metric_counter(struct vg_metric *metric, const struct vg_slice *values);
struct vg_gauge *vg_metric_gauge(struct vg_metric *metric, const struct vg_slice *values);
struct vg_histogram *vg_metric_histogram(struct vg_metric *metric, const struct vg_slice *values);

static inline void vg_counter_add(struct vg_counter *c, uint64_t n)
{
    atomic_fetch_add_explicit(&c->n, n, memory_order_relaxed);
}
static inline void vg_counter_inc(struct vg_counter *c)
{
    vg_counter_add(c, 1);
}
static inline uint64_t vg_counter_get(const struct vg_counter *c)
{
    return atomic_load_explicit(&c->n, memory_order_relaxed);
}
static inline void vg_gauge_set(struct vg_gauge *g, int64_t n)
{
    atomic_store_explicit(&g->n, n, memory_order_relaxed);
}
static inline void vg_gauge_add(struct vg_gauge *g, int64_t n)
{
    atomic_fetch_add_explicit(&g->n, n, memory_order_relaxed);
}
static inline int64_t vg_gauge_get(const struct vg_gauge *g)
{
    return atomic_load_explicit(&g->n, memory_order_relaxed);
}
void vg_histogram_observe(struct vg_histogram *h, double value); /* NaN is ignored */
/* The same value n times. */
void vg_histogram_observe_many(struct vg_histogram *h, double value, uint64_t n);
/* A duration, in the seconds that Prometheus wants. */
void vg_histogram_observe_ns(struct vg_histogram *h, uint64_t ns);

/* Append the whole exposition: metrics by name, series by label values. 0, or -ENOMEM or
 * VIGIL_E_TOO_LARGE from the buffer, which then is as it was. */
VG_CHECK int vg_metrics_write(struct vg_metrics *m, struct vg_buf *out);

#endif
