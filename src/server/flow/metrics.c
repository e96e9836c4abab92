/* metrics.c - kube-apiserver's apiserver_flowcontrol_* metrics. Most requests count one addition
 * when they begin and one when they end; what histograms make of those is done at the scrape. */
#include <errno.h>
#include <math.h>

#include "base/alloc.h"
#include "flow_int.h"

#define PREFIX "apiserver_flowcontrol_"
#define BY_LEVEL "priority_level"
#define BY_BOTH "priority_level", "flow_schema"
/* 1000 pairs of a level and a schema; what comes after shares one series. */
#define SERIES_MAX 1000u

/* ---- series ---- */

static const double second_bounds[] = {0,   0.005, 0.02, 0.05, 0.1,  0.2, 0.5,
                                       1.0, 2.0,   5.0,  10.0, 15.0, 30.0};
static const double length_bounds[] = {0, 10, 25, 50, 100, 250, 500, 1000};
static const double seat_bounds[] = {1, 2, 4, 8, 16, 32, 64, 100};
static const double watch_bounds[] = {0, 1, 10, 100, 1000, 10000};

#define HISTOGRAM(text, about, limits, ...)                                                        \
    {                                                                                              \
        .name = PREFIX text, .help = about, .type = VG_METRIC_HISTOGRAM, .labels = {__VA_ARGS__},  \
        .bounds = (limits), .bound_count = VG_ARRAY_LEN(limits), .max_series = 2 * SERIES_MAX      \
    }
enum { WAITED, EXECUTED, QUEUE_LENGTH, SEATS, WATCHES, HISTOGRAMS };
static const struct vg_metric_desc histograms[HISTOGRAMS] = {
    [WAITED] = HISTOGRAM("request_wait_duration_seconds",
                         "Length of time a request spent waiting in its queue", second_bounds,
                         BY_BOTH, "execute"),
    [EXECUTED] = HISTOGRAM("request_execution_seconds",
                           "Duration of the execution of a request, of the initial stage for a "
                           "WATCH",
                           second_bounds, BY_BOTH, "type"),
    [QUEUE_LENGTH] = HISTOGRAM("request_queue_length_after_enqueue",
                               "Length of the queue, as seen by each request after it is enqueued",
                               length_bounds, BY_BOTH),
    [SEATS] = HISTOGRAM("work_estimated_seats",
                        "Number of estimated seats (maximum of initial and final seats) of "
                        "requests",
                        seat_bounds, BY_BOTH),
    [WATCHES] = HISTOGRAM("watch_count_samples", "count of watchers for mutating requests",
                          watch_bounds, BY_BOTH),
};

enum {
    DISPATCHED,
    REJECTED,
    NO_ROOM,
    INQUEUE,
    INQUEUE_SEATS,
    EXECUTING,
    EXECUTING_SEATS,
    NOMINAL,
    LOWER,
    UPPER,
    CURRENT,
    HIGH,
    AVERAGE,
    DEVIATION,
    SMOOTHED,
    TARGET,
    CURRENT_R,
    FAIR_FRACTION,
    VALUES
};
#define VALUE(text, about, kind, ...)                                                              \
    {                                                                                              \
        .name = PREFIX text, .help = about, .type = VG_METRIC_##kind, .labels = { __VA_ARGS__ }    \
    }
static const struct vg_metric_desc values[VALUES] = {
    [DISPATCHED] =
        VALUE("dispatched_requests_total", "Number of requests executed", COUNTER, BY_BOTH),
    [REJECTED] =
        VALUE("rejected_requests_total", "Number of requests rejected", COUNTER, BY_BOTH, "reason"),
    [NO_ROOM] = VALUE("request_dispatch_no_accommodation_total",
                      "Number of times a dispatch attempt failed for lack of available seats",
                      COUNTER, BY_BOTH),
    [INQUEUE] = VALUE("current_inqueue_requests", "Number of requests currently pending in queues",
                      GAUGE, BY_BOTH),
    [INQUEUE_SEATS] = VALUE("current_inqueue_seats", "Number of seats currently pending in queues",
                            GAUGE, BY_BOTH),
    [EXECUTING] = VALUE("current_executing_requests",
                        "Number of requests in initial (for a WATCH) or any (for a non-WATCH) "
                        "execution stage",
                        GAUGE, BY_BOTH),
    [EXECUTING_SEATS] = VALUE("current_executing_seats",
                              "Number of seats occupied by the executing requests", GAUGE, BY_BOTH),
    [NOMINAL] = VALUE("nominal_limit_seats",
                      "Nominal number of execution seats configured for each priority level", GAUGE,
                      BY_LEVEL),
    [LOWER] = VALUE("lower_limit_seats",
                    "Configured lower bound on number of execution seats of each priority level",
                    GAUGE, BY_LEVEL),
    [UPPER] = VALUE("upper_limit_seats",
                    "Configured upper bound on number of execution seats of each priority level",
                    GAUGE, BY_LEVEL),
    [CURRENT] =
        VALUE("current_limit_seats",
              "current derived number of execution seats of each priority level", GAUGE, BY_LEVEL),
    [HIGH] = VALUE("demand_seats_high_watermark",
                   "High watermark, over last adjustment period, of demand_seats", GAUGE, BY_LEVEL),
    [AVERAGE] = VALUE("demand_seats_average",
                      "Time-weighted average, over last adjustment period, of demand_seats", GAUGE,
                      BY_LEVEL),
    [DEVIATION] = VALUE("demand_seats_stdev",
                        "Time-weighted standard deviation, over last adjustment period, of "
                        "demand_seats",
                        GAUGE, BY_LEVEL),
    [SMOOTHED] = VALUE("demand_seats_smoothed", "Smoothed seat demands", GAUGE, BY_LEVEL),
    [TARGET] = VALUE("target_seats", "Seat allocation targets", GAUGE, BY_LEVEL),
    [CURRENT_R] = VALUE("current_r", "R(time of last change)", GAUGE, BY_LEVEL),
    [FAIR_FRACTION] =
        VALUE("seat_fair_frac",
              "Fair fraction of server's concurrency to allocate to each priority level that can "
              "use it",
              GAUGE, NULL),
};

struct value {
    struct vg_flow_metrics *m;
    unsigned which;
    struct vg_metric *metric; /* NULL: not added */
};

struct vg_flow_metrics {
    struct vg_flow *flow;
    struct vg_metric *histograms[HISTOGRAMS]; /* NULL: not counted */
    struct value values[VALUES];
    _Atomic(struct vg_flow_series *) series; /* changed under flow->mu; read at the scrape */
    size_t n_series;
};

static void open_histograms(struct vg_flow_metrics *m, struct vg_flow_series *s)
{
    struct vg_slice l[3] = {s->level, s->schema};
    if (!m->histograms[0])
        return;
    s->queue_length = vg_metric_histogram(m->histograms[QUEUE_LENGTH], l);
    s->seats = vg_metric_histogram(m->histograms[SEATS], l);
    s->watches = vg_metric_histogram(m->histograms[WATCHES], l);
    for (unsigned i = 0; i < 2; i++) {
        l[2] = i ? VG_SLICE_LIT("true") : VG_SLICE_LIT("false");
        s->waited[i] = vg_metric_histogram(m->histograms[WAITED], l);
        l[2] = i ? VG_SLICE_LIT("watch") : VG_SLICE_LIT("regular");
        s->executed[i] = vg_metric_histogram(m->histograms[EXECUTED], l);
    }
}

static struct vg_flow_series *series_new(struct vg_slice level, struct vg_slice schema)
{
    struct vg_flow_series *s = vg_calloc(1, sizeof *s + level.n + schema.n);
    if (!s)
        return NULL;
    char *p = (char *)(s + 1);
    memcpy(p, level.p, level.n);
    memcpy(p + level.n, schema.p, schema.n);
    s->level = vg_slice(p, level.n);
    s->schema = vg_slice(p + level.n, schema.n);
    return s;
}

struct vg_flow_series *vg_flow_series_get(struct vg_flow_metrics *m, struct vg_slice level,
                                          struct vg_slice schema)
{
    struct vg_flow_series *s = atomic_load(&m->series);
    if (m->n_series >= SERIES_MAX)
        level = schema = VG_SLICE_LIT("_overflow_");
    for (; s; s = s->next)
        if (vg_slice_eq(s->level, level) && vg_slice_eq(s->schema, schema))
            return s;
    s = series_new(level, schema);
    if (!s)
        return NULL;
    open_histograms(m, s);
    s->next = atomic_load(&m->series);
    atomic_store_explicit(&m->series, s, memory_order_release);
    m->n_series++;
    return s;
}

const struct vg_flow_series *vg_flow_series_first(const struct vg_flow_metrics *m)
{
    return atomic_load(&m->series);
}

/* ---- counting ---- */

void vg_flow_count_dispatch(const struct vg_flow_ticket *t, uint64_t waited_ns)
{
    struct vg_flow_series *s = t->schema->series;
    atomic_fetch_add_explicit(&s->others, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->extra_seats, t->seats - 1, memory_order_relaxed);
    if (s->seats)
        vg_histogram_observe(s->seats, t->seats);
    if (!t->schema->level->is_exempt)
        vg_flow_observe_wait(t, waited_ns, true);
}

void vg_flow_count_finish(const struct vg_flow_ticket *t)
{
    struct vg_flow_series *s = t->schema->series;
    atomic_fetch_add_explicit(&s->finished, 1, memory_order_relaxed);
    if (VG_UNLIKELY(t->seats > 1))
        atomic_fetch_sub_explicit(&s->extra_seats, t->seats - 1, memory_order_relaxed);
}

void vg_flow_count_waiting(const struct vg_flow_ticket *t, int delta)
{
    struct vg_flow_series *s = t->schema->series;
    atomic_fetch_add_explicit(&s->waiting, delta, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->waiting_seats, (int64_t)delta * t->seats, memory_order_relaxed);
}

void vg_flow_count_queue_length(const struct vg_flow_ticket *t, uint32_t n)
{
    if (t->schema->series->queue_length)
        vg_histogram_observe(t->schema->series->queue_length, n);
}

void vg_flow_observe_wait(const struct vg_flow_ticket *t, uint64_t ns, bool is_executed)
{
    struct vg_histogram *h = t->schema->series->waited[is_executed];
    if (h)
        vg_histogram_observe_ns(h, ns);
}

struct vg_flow_series *vg_flow_series_of(const struct vg_flow_ticket *t)
{
    return t->schema ? t->schema->series : NULL;
}

void vg_flow_observe_execution(struct vg_flow_series *s, uint64_t ns, bool is_watch)
{
    if (VG_LIKELY(ns <= VG_FLOW_QUICK_NS)) {
        atomic_fetch_add_explicit(&s->quick[is_watch], 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&s->quick_ns[is_watch], ns, memory_order_relaxed);
    } else if (s->executed[is_watch]) {
        vg_histogram_observe_ns(s->executed[is_watch], ns);
    }
}

void vg_flow_observe_watch_count(const struct vg_flow_ticket *t, uint32_t watchers)
{
    if (t->schema->series->watches)
        vg_histogram_observe(t->schema->series->watches, watchers);
}

/* ---- at the scrape ---- */

/* Requests that ran at once with one seat, as the histograms see them. The name of this metric
 * comes before those of the histograms, so they are written afterwards. */
static void fold(struct vg_flow_series *s)
{
    uint64_t n = atomic_load_explicit(&s->at_once, memory_order_relaxed), fresh = n - s->folded;
    s->folded = n;
    if (!s->seats)
        return;
    vg_histogram_observe_many(s->seats, 1, fresh);
    if (!vg_slice_eq(s->level, VG_SLICE_LIT("exempt")))
        vg_histogram_observe_many(s->waited[true], 0, fresh);
}

/* Those that were quick, in the bucket that they are all in, at their average. */
static void fold_quick(struct vg_flow_series *s, bool is_watch)
{
    uint64_t n = atomic_load(&s->quick[is_watch]), ns = atomic_load(&s->quick_ns[is_watch]);
    uint64_t fresh = n - s->folded_quick[is_watch];
    double average = fresh ? (double)(ns - s->folded_quick_ns[is_watch]) / 1e9 / (double)fresh : 0;
    s->folded_quick[is_watch] = n;
    s->folded_quick_ns[is_watch] = ns;
    if (s->executed[is_watch])
        vg_histogram_observe_many(s->executed[is_watch], fmin(average, 0.005), fresh);
}

static double executing(const struct vg_flow_series *s)
{
    uint64_t over = atomic_load(&s->finished);
    uint64_t begun = atomic_load(&s->at_once) + atomic_load(&s->others);
    return begun > over ? (double)(begun - over) : 0;
}

static double value_of_series(const struct vg_flow_series *s, unsigned which)
{
    switch (which) {
    case DISPATCHED:
        return (double)(atomic_load(&s->at_once) + atomic_load(&s->others));
    case NO_ROOM:
        return (double)atomic_load(&s->no_room);
    case INQUEUE:
        return (double)atomic_load(&s->waiting);
    case INQUEUE_SEATS:
        return (double)atomic_load(&s->waiting_seats);
    case EXECUTING_SEATS:
        return executing(s) + (double)atomic_load(&s->extra_seats);
    default:
        return executing(s);
    }
}

static void emit_series(struct vg_flow_metrics *m, unsigned which, struct vg_metric_writer *w)
{
    for (struct vg_flow_series *s = atomic_load(&m->series); s; s = s->next) {
        struct vg_slice labels[] = {s->level, s->schema};
        if (which == EXECUTING) {
            fold(s);
            fold_quick(s, false);
            fold_quick(s, true);
        }
        vg_metric_emit(w, labels, value_of_series(s, which));
    }
}

/* Reasons that have not occurred are not shown. */
static void emit_rejected(struct vg_flow_metrics *m, struct vg_metric_writer *w)
{
    static const struct vg_slice reasons[] = {
        [VG_FLOW_REJECT_QUEUE_FULL] = {"queue-full", 10},
        [VG_FLOW_REJECT_CONCURRENCY_LIMIT] = {"concurrency-limit", 17},
        [VG_FLOW_REJECT_TIME_OUT] = {"time-out", 8},
    };
    for (struct vg_flow_series *s = atomic_load(&m->series); s; s = s->next) {
        for (size_t i = 0; i < VG_ARRAY_LEN(reasons); i++) {
            struct vg_slice labels[] = {s->level, s->schema, reasons[i]};
            uint64_t n = atomic_load(&s->rejected[i]);
            if (n)
                vg_metric_emit(w, labels, (double)n);
        }
    }
}

static double current_r(struct vg_flow_level *v)
{
    vg_mutex_lock(&v->mu);
    double r = v->r;
    vg_mutex_unlock(&v->mu);
    return r;
}

static double value_of_level(struct vg_flow_level *v, unsigned which)
{
    switch (which) {
    case NOMINAL:
        return atomic_load(&v->nominal);
    case LOWER:
        return atomic_load(&v->min);
    case UPPER:
        return atomic_load(&v->max);
    case CURRENT:
        return v->is_exempt ? VG_MAX(atomic_load(&v->min), v->demand.high) : atomic_load(&v->limit);
    case HIGH:
        return v->demand.high;
    case AVERAGE:
        return v->demand.average;
    case DEVIATION:
        return v->demand.deviation;
    case SMOOTHED:
        return v->demand.smoothed;
    case TARGET:
        return v->demand.target;
    default:
        return current_r(v);
    }
}

static void collect(void *arg, struct vg_metric_writer *w)
{
    const struct value *value = arg;
    struct vg_flow_metrics *m = value->m;
    struct vg_flow *f = m->flow;
    if (value->which == REJECTED) {
        emit_rejected(m, w);
        return;
    }
    if (value->which < NOMINAL) {
        emit_series(m, value->which, w);
        return;
    }
    vg_mutex_lock(&f->mu);
    if (value->which == FAIR_FRACTION) {
        vg_metric_emit(w, NULL, f->fair_fraction);
    } else {
        VG_LIST_FOREACH (n, &f->levels) {
            struct vg_flow_level *v = VG_CONTAINER_OF(n, struct vg_flow_level, link);
            vg_metric_emit(w, &v->name, value_of_level(v, value->which));
        }
    }
    vg_mutex_unlock(&f->mu);
}

/* ---- life ---- */

static int add_all(struct vg_flow_metrics *m, struct vg_metrics *registry)
{
    int r = 0;
    for (size_t i = 0; i < HISTOGRAMS && r == 0; i++)
        r = vg_metrics_add(registry, &histograms[i], &m->histograms[i]);
    for (unsigned i = 0; i < VALUES && r == 0; i++) {
        m->values[i] = (struct value){.m = m, .which = i};
        r = vg_metrics_add_callback(registry, &values[i], collect, &m->values[i],
                                    &m->values[i].metric);
    }
    return r;
}

int vg_flow_metrics_new(struct vg_flow *f, struct vg_flow_metrics **ret)
{
    struct vg_flow_metrics *m = vg_new(struct vg_flow_metrics);
    if (!m)
        return -ENOMEM;
    m->flow = f;
    *ret = m;
    return f->opts.metrics ? add_all(m, f->opts.metrics) : 0;
}

void vg_flow_metrics_stop(struct vg_flow_metrics *m)
{
    for (unsigned i = 0; m && i < VALUES; i++)
        vg_metric_stop(m->values[i].metric);
}

void vg_flow_metrics_free(struct vg_flow_metrics *m)
{
    if (!m)
        return;
    struct vg_flow_series *s = atomic_load(&m->series), *next;
    for (; s; s = next) {
        next = s->next;
        vg_free(s);
    }
    vg_free(m);
}
