/* metrics.c - the registry: metrics, their series, and updates.
 * See metrics_int.h for how lists are shared. A series is one allocation: the struct, the counts of
 * a histogram, the bytes of its label values. Those bytes, each value preceded by its length, are
 * also its key in by_labels, so that no two lists of values share a key. The overflow series is
 * made with the metric; a metric without labels has no other. */
#include "metrics.h"

#include <errno.h>
#include <math.h>

#include "alloc.h"
#include "err.h"
#include "metrics_int.h"
#include "utf8.h"

/* names */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name(const char *s, bool colons)
{
    if (!is_letter(*s) && !(colons && *s == ':'))
        return false;
    while (is_letter(*s) || (*s >= '0' && *s <= '9') || (colons && *s == ':'))
        s++;
    return *s == '\0';
}

/* -1: malformed. `le` and names with two underscores in front belong to Prometheus. */
static int count_labels(const struct vg_metric_desc *d)
{
    int n = 0;
    for (; n <= VG_METRIC_LABELS_MAX && d->labels[n]; n++) {
        const char *label = d->labels[n];
        if (!is_name(label, false) || strncmp(label, "__", 2) == 0 || strcmp(label, "le") == 0)
            return -1;
    }
    return n <= VG_METRIC_LABELS_MAX ? n : -1;
}

static bool are_bounds_valid(const struct vg_metric_desc *d)
{
    if (d->type != VG_METRIC_HISTOGRAM)
        return d->bound_count == 0;
    for (size_t i = 0; i < d->bound_count; i++) {
        if (!isfinite(d->bounds[i]) || (i > 0 && d->bounds[i] <= d->bounds[i - 1]))
            return false;
    }
    return d->bound_count > 0;
}

static bool is_desc_valid(const struct vg_metric_desc *d)
{
    return is_name(d->name, true) && count_labels(d) >= 0 && are_bounds_valid(d);
}

/* series */

/* Each value as two bytes of length and its bytes; all values fit by VG_METRIC_VALUE_MAX. */
struct series_key {
    char bytes[VG_METRIC_LABELS_MAX * (2 + VG_METRIC_VALUE_MAX)];
    size_t n;
};

/* Broken bytes become U+FFFD here and not when written: two series must not look the same. */
static size_t copy_value(char *out, struct vg_slice s)
{
    size_t used = 0;
    while (s.n) {
        uint32_t code;
        size_t n = vg_utf8_next(s, &code);
        struct vg_slice c = n ? vg_slice(s.p, n) : VG_SLICE_LIT("\xEF\xBF\xBD");
        if (used + c.n > VG_METRIC_VALUE_MAX)
            break;
        memcpy(out + used, c.p, c.n);
        used += c.n;
        n = n ? n : 1;
        s = vg_slice(s.p + n, s.n - n);
    }
    return used;
}

static void make_key(struct series_key *key, const struct vg_slice *values, size_t count)
{
    key->n = 0;
    for (size_t i = 0; i < count; i++) {
        char *at = key->bytes + key->n;
        size_t n = copy_value(at + 2, values[i]);
        at[0] = (char)(n >> 8);
        at[1] = (char)(n & 0xFF);
        key->n += 2 + n;
    }
}

static void point_labels(struct vg_metric_series *s, const char *at, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t n = (size_t)(unsigned char)at[0] << 8 | (unsigned char)at[1];
        s->labels[i] = vg_slice(at + 2, n);
        at += 2 + n;
    }
}

static struct vg_metric_series *new_series(const struct vg_metric *metric,
                                           const struct series_key *key)
{
    const struct vg_metric_desc *d = metric->desc;
    bool is_histogram = d->type == VG_METRIC_HISTOGRAM;
    size_t counts = is_histogram ? (d->bound_count + 1) * sizeof(_Atomic uint64_t) : 0;
    struct vg_metric_series *s = vg_calloc(1, sizeof *s + counts + key->n);
    if (!s)
        return NULL;
    char *tail = (char *)(s + 1);
    if (is_histogram)
        s->u.histogram = (struct vg_histogram){.bounds = d->bounds,
                                               .bound_count = d->bound_count,
                                               .counts = (_Atomic uint64_t *)(void *)tail};
    memcpy(tail + counts, key->bytes, key->n);
    point_labels(s, tail + counts, metric->label_count);
    return s;
}

static int cmp_labels(const struct vg_metric_series *a, const struct vg_metric_series *b, size_t n)
{
    int c = 0;
    for (size_t i = 0; i < n && c == 0; i++)
        c = vg_slice_cmp(a->labels[i], b->labels[i]);
    return c;
}

static void list_series_locked(struct vg_metric *metric, struct vg_metric_series *s)
{
    vg_mutex_assert_held(&metric->registry->mu);
    _Atomic(struct vg_metric_series *) *at = &metric->series;
    struct vg_metric_series *next;
    while ((next = atomic_load_explicit(at, memory_order_relaxed)) &&
           cmp_labels(next, s, metric->label_count) < 0)
        at = &next->next;
    atomic_store_explicit(&s->next, next, memory_order_relaxed);
    atomic_store_explicit(at, s, memory_order_release);
}

static int index_series(struct vg_metric *metric, struct vg_metric_series *s, size_t key_n)
{
    const char *key = metric->label_count ? s->labels[0].p - 2 : "";
    return vg_map_put(&metric->by_labels, vg_slice(key, key_n), s, NULL);
}

/* NULL: at the cap, or out of memory. */
static struct vg_metric_series *add_series_locked(struct vg_metric *metric,
                                                  const struct series_key *key)
{
    size_t max = metric->desc->max_series ? metric->desc->max_series : VG_METRIC_SERIES_DEFAULT;
    if (vg_map_count(&metric->by_labels) > max) /* it holds the overflow series too */
        return NULL;
    struct vg_metric_series *s = new_series(metric, key);
    if (!s || index_series(metric, s, key->n) < 0) {
        vg_free(s);
        return NULL;
    }
    list_series_locked(metric, s);
    return s;
}

static struct vg_metric_series *find_or_add_locked(struct vg_metric *metric,
                                                   const struct series_key *key)
{
    struct vg_metric_series *s = vg_map_get(&metric->by_labels, vg_slice(key->bytes, key->n));
    if (!s)
        s = add_series_locked(metric, key);
    if (!s) {
        atomic_fetch_add_explicit(&metric->overflow_count, 1, memory_order_relaxed);
        s = metric->overflow;
    }
    if (s == metric->overflow && !metric->is_overflow_listed) {
        list_series_locked(metric, s);
        metric->is_overflow_listed = true;
    }
    return s;
}

static struct vg_metric_series *find_series(struct vg_metric *metric, enum vg_metric_type type,
                                            const struct vg_slice *values)
{
    assert(metric->desc->type == type);
    (void)type;
    struct series_key key;
    make_key(&key, values, metric->label_count);
    vg_mutex_lock(&metric->registry->mu);
    struct vg_metric_series *s = find_or_add_locked(metric, &key);
    vg_mutex_unlock(&metric->registry->mu);
    return s;
}

struct vg_counter *vg_metric_counter(struct vg_metric *metric, const struct vg_slice *values)
{
    return &find_series(metric, VG_METRIC_COUNTER, values)->u.counter;
}

struct vg_gauge *vg_metric_gauge(struct vg_metric *metric, const struct vg_slice *values)
{
    return &find_series(metric, VG_METRIC_GAUGE, values)->u.gauge;
}

struct vg_histogram *vg_metric_histogram(struct vg_metric *metric, const struct vg_slice *values)
{
    return &find_series(metric, VG_METRIC_HISTOGRAM, values)->u.histogram;
}

/* histograms */

static void add_to_sum(_Atomic uint64_t *bits, double value)
{
    uint64_t old = atomic_load_explicit(bits, memory_order_relaxed), new;
    do {
        double sum;
        memcpy(&sum, &old, sizeof sum);
        sum += value;
        memcpy(&new, &sum, sizeof new);
    } while (!atomic_compare_exchange_weak_explicit(bits, &old, new, memory_order_relaxed,
                                                    memory_order_relaxed));
}

void vg_histogram_observe_many(struct vg_histogram *h, double value, uint64_t n)
{
    size_t i = 0;
    if (isnan(value) || n == 0)
        return;
    while (i < h->bound_count && value > h->bounds[i])
        i++;
    atomic_fetch_add_explicit(&h->counts[i], n, memory_order_relaxed);
    if (value != 0)
        add_to_sum(&h->sum_bits, value * (double)n);
}

void vg_histogram_observe(struct vg_histogram *h, double value)
{
    vg_histogram_observe_many(h, value, 1);
}

void vg_histogram_observe_ns(struct vg_histogram *h, uint64_t ns)
{
    vg_histogram_observe(h, (double)ns / 1e9);
}

/* metrics */

static void free_metric(struct vg_metric *metric)
{
    if (!metric)
        return;
    struct vg_metric_series *s = atomic_load(&metric->series), *next;
    for (; s; s = next) {
        next = atomic_load(&s->next);
        if (s != metric->overflow)
            vg_free(s);
    }
    vg_free(metric->overflow);
    vg_map_done(&metric->by_labels);
    vg_free(metric);
}

static int make_overflow(struct vg_metric *metric)
{
    struct vg_slice values[VG_METRIC_LABELS_MAX];
    struct series_key key;
    for (size_t i = 0; i < metric->label_count; i++)
        values[i] = VG_SLICE_LIT("_overflow_");
    make_key(&key, values, metric->label_count);
    metric->overflow = new_series(metric, &key);
    return metric->overflow ? index_series(metric, metric->overflow, key.n) : -ENOMEM;
}

static struct vg_metric *new_metric(struct vg_metrics *m, const struct vg_metric_desc *desc)
{
    struct vg_metric *metric = vg_new(struct vg_metric);
    if (!metric)
        return NULL;
    metric->registry = m;
    metric->desc = desc;
    metric->label_count = (size_t)count_labels(desc);
    if (make_overflow(metric) < 0) {
        free_metric(metric);
        return NULL;
    }
    return metric;
}

/* The link that holds the metric of that name, or that a metric of that name belongs into. */
static _Atomic(struct vg_metric *) *find_link_locked(struct vg_metrics *m, const char *name)
{
    vg_mutex_assert_held(&m->mu);
    _Atomic(struct vg_metric *) *at = &m->metrics;
    struct vg_metric *next;
    while ((next = atomic_load_explicit(at, memory_order_relaxed)) &&
           strcmp(next->desc->name, name) < 0)
        at = &next->next;
    return at;
}

/* Takes the metric on success and frees it on failure. */
static int list_metric(struct vg_metrics *m, struct vg_metric *take_metric,
                       struct vg_metric **ret_metric)
{
    int r = 0;
    vg_mutex_lock(&m->mu);
    _Atomic(struct vg_metric *) *at = find_link_locked(m, take_metric->desc->name);
    struct vg_metric *there = atomic_load_explicit(at, memory_order_relaxed);
    if (there && strcmp(there->desc->name, take_metric->desc->name) == 0) {
        bool is_same = there->desc == take_metric->desc && !take_metric->collect;
        r = is_same ? 1 : VIGIL_E_EXISTS;
    } else {
        atomic_store_explicit(&take_metric->next, there, memory_order_relaxed);
        atomic_store_explicit(at, take_metric, memory_order_release);
    }
    vg_mutex_unlock(&m->mu);
    if (r >= 0)
        *ret_metric = r == 0 ? take_metric : there;
    if (r != 0)
        free_metric(take_metric);
    return VG_MIN(r, 0);
}

int vg_metrics_add(struct vg_metrics *m, const struct vg_metric_desc *desc,
                   struct vg_metric **ret_metric)
{
    if (!is_desc_valid(desc))
        return VIGIL_E_INVALID;
    struct vg_metric *metric = new_metric(m, desc);
    if (!metric)
        return -ENOMEM;
    int r = list_metric(m, metric, ret_metric);
    if (r == 0 && (*ret_metric)->label_count == 0)
        find_series(*ret_metric, desc->type, NULL); /* so that it shows, as 0, from the start */
    return r;
}

int vg_metrics_add_callback(struct vg_metrics *m, const struct vg_metric_desc *desc,
                            vg_metric_collect_fn *fn, void *arg, struct vg_metric **ret_metric)
{
    if (!is_desc_valid(desc) || desc->type == VG_METRIC_HISTOGRAM)
        return VIGIL_E_INVALID;
    struct vg_metric *metric = new_metric(m, desc);
    if (!metric)
        return -ENOMEM;
    metric->collect = fn;
    metric->collect_arg = arg;
    return list_metric(m, metric, ret_metric);
}

void vg_metric_stop(struct vg_metric *metric)
{
    if (!metric)
        return;
    vg_mutex_lock(&metric->registry->scrape_mu);
    metric->collect = NULL;
    vg_mutex_unlock(&metric->registry->scrape_mu);
}

/* the registry */

static void collect_overflow(void *arg, struct vg_metric_writer *writer)
{
    struct vg_metrics *m = arg;
    struct vg_metric *metric = atomic_load_explicit(&m->metrics, memory_order_acquire);
    for (; metric; metric = atomic_load_explicit(&metric->next, memory_order_acquire)) {
        uint64_t n = atomic_load_explicit(&metric->overflow_count, memory_order_relaxed);
        struct vg_slice name = vg_slice_str(metric->desc->name);
        if (n)
            vg_metric_emit(writer, &name, (double)n);
    }
}

struct vg_metrics *vg_metrics_new(void)
{
    static const struct vg_metric_desc overflow = {
        .name = "vigil_metrics_overflow_total",
        .help = "Lookups of a series that were given the overflow series of their metric.",
        .type = VG_METRIC_COUNTER,
        .labels = {"metric"}};
    struct vg_metric *ignored;
    struct vg_metrics *m = vg_new(struct vg_metrics);
    if (!m)
        return NULL;
    vg_mutex_init(&m->scrape_mu, VG_RANK_SCRAPE);
    vg_mutex_init(&m->mu, VG_RANK_METRICS);
    if (vg_metrics_add_callback(m, &overflow, collect_overflow, m, &ignored) < 0) {
        vg_metrics_free(m);
        return NULL;
    }
    return m;
}

void vg_metrics_free(struct vg_metrics *m)
{
    if (!m)
        return;
    struct vg_metric *metric = atomic_load(&m->metrics), *next;
    for (; metric; metric = next) {
        next = atomic_load(&metric->next);
        free_metric(metric);
    }
    vg_mutex_done(&m->mu);
    vg_mutex_done(&m->scrape_mu);
    vg_free(m);
}
