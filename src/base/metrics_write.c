/* metrics_write.c - the exposition: Prometheus text format, version 0.0.4.
 * Runs without the registry's lock (metrics_int.h). Values are read one by one while they change,
 * so a scrape is no snapshot; but a histogram's _count is the sum of the buckets that were written,
 * and its buckets are cumulative, whatever happens meanwhile. Label values are made valid UTF-8:
 * one bad byte would make Prometheus refuse the whole scrape. */
#include "metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "metrics_int.h"
#include "utf8.h"

/* Errors stick: what follows one is not written. */
struct vg_metric_writer {
    struct vg_buf *out;
    const struct vg_metric *metric; /* whose callback runs */
    int err;
};

static void put(struct vg_metric_writer *w, struct vg_slice s)
{
    if (w->err == 0)
        w->err = vg_buf_append_slice(w->out, s);
}

static void put_str(struct vg_metric_writer *w, const char *s)
{
    put(w, vg_slice_str(s));
}

/* The shortest of three precisions that reads back as the same number: 0.005, not 0.0050000000001.
 */
static void put_double(struct vg_metric_writer *w, double value)
{
    char text[40];
    if (!isfinite(value)) {
        put_str(w, isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    put_str(w, text);
}

static void put_u64(struct vg_metric_writer *w, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    put_str(w, text);
}

static void put_i64(struct vg_metric_writer *w, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    put_str(w, text);
}

static size_t put_character(struct vg_metric_writer *w, struct vg_slice s, bool quotes)
{
    uint32_t code;
    size_t n = vg_utf8_next(s, &code);
    if (n == 0)
        put(w, VG_SLICE_LIT("\xEF\xBF\xBD"));
    else if (code == '\n')
        put(w, VG_SLICE_LIT("\\n"));
    else if (code == '\\')
        put(w, VG_SLICE_LIT("\\\\"));
    else if (code == '"' && quotes)
        put(w, VG_SLICE_LIT("\\\""));
    else
        put(w, vg_slice(s.p, n));
    return n ? n : 1;
}

/* Quotes are escaped in label values, not in help texts. */
static void put_escaped(struct vg_metric_writer *w, struct vg_slice s, bool quotes)
{
    while (s.n) {
        size_t n = put_character(w, s, quotes);
        s = vg_slice(s.p + n, s.n - n);
    }
}

static void put_label(struct vg_metric_writer *w, const char *name, struct vg_slice value,
                      bool first)
{
    put_str(w, first ? "{" : ",");
    put_str(w, name);
    put(w, VG_SLICE_LIT("=\""));
    put_escaped(w, value, true);
    put(w, VG_SLICE_LIT("\""));
}

/* name suffix {labels, le} and a blank; le may be NULL. */
static void put_sample_name(struct vg_metric_writer *w, const struct vg_metric *metric,
                            const char *suffix, const struct vg_slice *values, const double *le)
{
    put_str(w, metric->desc->name);
    put_str(w, suffix);
    for (size_t i = 0; i < metric->label_count; i++)
        put_label(w, metric->desc->labels[i], values[i], i == 0);
    if (le) {
        put_str(w, metric->label_count ? ",le=\"" : "{le=\"");
        put_double(w, *le);
        put(w, VG_SLICE_LIT("\""));
    }
    put_str(w, metric->label_count || le ? "} " : " ");
}

static void put_newline(struct vg_metric_writer *w)
{
    put(w, VG_SLICE_LIT("\n"));
}

static void put_head(struct vg_metric_writer *w, const struct vg_metric_desc *d)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    put(w, VG_SLICE_LIT("# HELP "));
    put_str(w, d->name);
    put(w, VG_SLICE_LIT(" "));
    put_escaped(w, vg_slice_str(d->help), false);
    put(w, VG_SLICE_LIT("\n# TYPE "));
    put_str(w, d->name);
    put(w, VG_SLICE_LIT(" "));
    put_str(w, types[d->type]);
    put_newline(w);
}

static double sum_of(const struct vg_histogram *h)
{
    uint64_t bits = atomic_load_explicit(&h->sum_bits, memory_order_relaxed);
    double sum;
    memcpy(&sum, &bits, sizeof sum);
    return sum;
}

static void put_histogram(struct vg_metric_writer *w, const struct vg_metric *metric,
                          const struct vg_slice *values, const struct vg_histogram *h)
{
    uint64_t total = 0;
    for (size_t i = 0; i <= h->bound_count; i++) {
        double le = i < h->bound_count ? h->bounds[i] : INFINITY;
        total += atomic_load_explicit(&h->counts[i], memory_order_relaxed);
        put_sample_name(w, metric, "_bucket", values, &le);
        put_u64(w, total);
        put_newline(w);
    }
    put_sample_name(w, metric, "_sum", values, NULL);
    put_double(w, sum_of(h));
    put_newline(w);
    put_sample_name(w, metric, "_count", values, NULL);
    put_u64(w, total);
    put_newline(w);
}

static void put_series(struct vg_metric_writer *w, const struct vg_metric *metric,
                       const struct vg_metric_series *s)
{
    if (metric->desc->type == VG_METRIC_HISTOGRAM) {
        put_histogram(w, metric, s->labels, &s->u.histogram);
        return;
    }
    put_sample_name(w, metric, "", s->labels, NULL);
    if (metric->desc->type == VG_METRIC_COUNTER)
        put_u64(w, vg_counter_get(&s->u.counter));
    else
        put_i64(w, vg_gauge_get(&s->u.gauge));
    put_newline(w);
}

void vg_metric_emit(struct vg_metric_writer *w, const struct vg_slice *values, double value)
{
    put_sample_name(w, w->metric, "", values, NULL);
    put_double(w, value);
    put_newline(w);
}

static void put_metric(struct vg_metric_writer *w, const struct vg_metric *metric)
{
    vg_mutex_assert_held(&metric->registry->scrape_mu);
    put_head(w, metric->desc);
    const struct vg_metric_series *s = atomic_load_explicit(&metric->series, memory_order_acquire);
    for (; s; s = atomic_load_explicit(&s->next, memory_order_acquire))
        put_series(w, metric, s);
    w->metric = metric;
    if (metric->collect)
        metric->collect(metric->collect_arg, w);
}

int vg_metrics_write(struct vg_metrics *m, struct vg_buf *out)
{
    struct vg_metric_writer w = {.out = out};
    size_t before = out->n;
    vg_mutex_lock(&m->scrape_mu);
    const struct vg_metric *metric = atomic_load_explicit(&m->metrics, memory_order_acquire);
    for (; metric && w.err == 0; metric = atomic_load_explicit(&metric->next, memory_order_acquire))
        put_metric(&w, metric);
    vg_mutex_unlock(&m->scrape_mu);
    if (w.err < 0)
        out->n = before;
    return w.err;
}
