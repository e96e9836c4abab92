/* metrics.c - the rows of the cache, of lists and of watches.
 * Counters that this room keeps are looked up once per kind; what the cacher and the shards know is
 * read at the scrape. */
#include "metrics.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/metrics.h"

/* 256 loops: more than any machine here has cores. */
#define SHARDS_MAX 256u

enum row {
    ROW_CACHED,
    ROW_CACHED_FETCHED,
    ROW_CACHED_RETURNED,
    ROW_STORED,
    ROW_STORED_FETCHED,
    ROW_STORED_EVALUATED,
    ROW_STORED_RETURNED,
    ROW_CONSISTENT,
    ROW_TERMINATED,
    ROW_WAIT,
    ROW_WATCH_LIST,
    ROW_STORAGE,
    ROW_STORAGE_TOTAL,
    ROW_STORAGE_ERRORS,
    ROW_EVENT_SIZES,
    ROWS
};

struct kind_counters {
    struct vg_counter *cached[2], *cached_fetched[2]; /* by index: none, the trigger's */
    struct vg_counter *cached_returned;
    struct vg_counter *stored, *stored_fetched, *stored_evaluated, *stored_returned;
    struct vg_counter *consistent[2]; /* by fallback */
    struct vg_counter *terminated;
    struct vg_histogram *sizes;
    /* Looked up when the first value comes: most kinds never have one. */
    _Atomic(struct vg_histogram *) wait;
    _Atomic(struct vg_histogram *) watch_list[VG_SCOPES];
    _Atomic(struct vg_histogram *) storage[VG_STORAGE_OPS];
    _Atomic(struct vg_counter *) storage_total[VG_STORAGE_OPS];
};

#define CALLBACKS_MAX 16u

struct vg_api_metrics {
    struct vg_cacher *cacher;
    const struct vg_kind *kinds;
    size_t n_kinds;
    struct kind_counters *counters;
    struct vg_metric *rows[ROWS];
    _Atomic(struct vg_watch_count *) shards[SHARDS_MAX];
    _Atomic size_t n_shards;
    struct vg_metric *callbacks[CALLBACKS_MAX];
    size_t n_callbacks;
};

#define GR "group", "resource"
#define COUNTER(text, about, ...)                                                                  \
    {                                                                                              \
        .name = text, .help = about, .type = VG_METRIC_COUNTER, .labels = {__VA_ARGS__},           \
        .max_series = 4096                                                                         \
    }
#define GAUGE(text, about, ...)                                                                    \
    {                                                                                              \
        .name = text, .help = about, .type = VG_METRIC_GAUGE, .labels = { __VA_ARGS__ }            \
    }
static const double wait_bounds[] = {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6,
                                     0.8,   1.0,   1.25, 1.5, 2.0, 3.0};

static const double list_bounds[] = {0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1,  2, 4,
                                     6,    8,   10,  15,  20,  30,  45, 60};

static const double storage_bounds[] = {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8,
                                        1.0,   1.25,  1.5,  2,   3,   4,   5,   6,
                                        8,     10,    15,   20,  30,  45,  60};

static const double size_bounds[] = {1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072};

static const struct vg_metric_desc rows[] = {
    COUNTER("apiserver_cache_list_total", "LIST requests served from the watch cache.", GR,
            "index"),
    COUNTER("apiserver_cache_list_fetched_objects_total",
            "Objects read from the watch cache to serve LIST requests.", GR, "index"),
    COUNTER("apiserver_cache_list_returned_objects_total",
            "Objects returned for LIST requests from the watch cache.", GR),
    COUNTER("apiserver_storage_list_total", "LIST requests served from storage.", GR),
    COUNTER("apiserver_storage_list_fetched_objects_total",
            "Objects read from storage to serve LIST requests.", GR),
    COUNTER("apiserver_storage_list_evaluated_objects_total",
            "Objects tested to serve LIST requests from storage.", GR),
    COUNTER("apiserver_storage_list_returned_objects_total",
            "Objects returned for LIST requests from storage.", GR),
    COUNTER("apiserver_watch_cache_consistent_read_total", "Consistent reads from the cache.", GR,
            "success", "fallback"),
    COUNTER("apiserver_terminated_watchers_total", "Watchers closed because they took nothing.",
            GR),
    {.name = "apiserver_watch_cache_read_wait_seconds",
     .help = "Time spent waiting for the watch cache to become fresh.",
     .type = VG_METRIC_HISTOGRAM,
     .labels = {GR},
     .bounds = wait_bounds,
     .bound_count = VG_ARRAY_LEN(wait_bounds)},
    {.name = "apiserver_watch_list_duration_seconds",
     .help = "Time until the initial events of a watch were sent.",
     .type = VG_METRIC_HISTOGRAM,
     .labels = {"group", "version", "resource", "scope"},
     .bounds = list_bounds,
     .bound_count = VG_ARRAY_LEN(list_bounds)},
    {.name = "etcd_request_duration_seconds",
     .help = "Latency of storage, by operation and kind.",
     .type = VG_METRIC_HISTOGRAM,
     .labels = {"operation", GR},
     .bounds = storage_bounds,
     .bound_count = VG_ARRAY_LEN(storage_bounds)},
    COUNTER("etcd_requests_total", "Requests to storage.", "operation", GR),
    COUNTER("etcd_request_errors_total", "Requests that storage failed.", "operation", GR),
    {.name = "apiserver_watch_events_sizes",
     .help = "Bytes of events that were sent to watch clients.",
     .type = VG_METRIC_HISTOGRAM,
     .labels = {"group", "version", "resource"},
     .bounds = size_bounds,
     .bound_count = VG_ARRAY_LEN(size_bounds)},
};

_Static_assert(VG_ARRAY_LEN(rows) == ROWS, "a row for each name");

/* ---- series ---- */

static struct vg_counter *series(struct vg_metric *m, const struct vg_kind *k, const char *third,
                                 const char *fourth)
{
    struct vg_slice values[] = {vg_slice_str(k->group), vg_slice_str(k->resource),
                                vg_slice_str(third ? third : ""),
                                vg_slice_str(fourth ? fourth : "")};
    return vg_metric_counter(m, values);
}

static const char *trigger_name(const struct vg_kind *k)
{
    return k->fields && k->fields->trigger < k->fields->n ? k->fields->v[k->fields->trigger].label
                                                          : NULL;
}

static void look_up(struct vg_metric *const *m, const struct vg_kind *k, struct kind_counters *c)
{
    const char *trigger = trigger_name(k);
    VG_AUTO(buf) index = {0};
    if (trigger && vg_buf_printf(&index, "f:%s", trigger) == 0 &&
        vg_buf_append_byte(&index, 0) == 0) {
        c->cached[1] = series(m[ROW_CACHED], k, index.p, NULL);
        c->cached_fetched[1] = series(m[ROW_CACHED_FETCHED], k, index.p, NULL);
    }
    c->cached[0] = series(m[ROW_CACHED], k, "", NULL);
    c->cached_fetched[0] = series(m[ROW_CACHED_FETCHED], k, "", NULL);
    c->cached_returned = series(m[ROW_CACHED_RETURNED], k, NULL, NULL);
    c->stored = series(m[ROW_STORED], k, NULL, NULL);
    c->stored_fetched = series(m[ROW_STORED_FETCHED], k, NULL, NULL);
    c->stored_evaluated = series(m[ROW_STORED_EVALUATED], k, NULL, NULL);
    c->stored_returned = series(m[ROW_STORED_RETURNED], k, NULL, NULL);
    c->consistent[0] = series(m[ROW_CONSISTENT], k, "true", "false");
    c->consistent[1] = series(m[ROW_CONSISTENT], k, "true", "true");
    c->terminated = series(m[ROW_TERMINATED], k, NULL, NULL);
    struct vg_slice gvr[] = {vg_slice_str(k->group), vg_slice_str(k->version),
                             vg_slice_str(k->resource)};
    c->sizes = vg_metric_histogram(m[ROW_EVENT_SIZES], gvr);
}

/* ---- values that others keep ---- */

static void emit(struct vg_metric_writer *w, const struct vg_kind *k, double value)
{
    struct vg_slice gr[] = {vg_slice_str(k->group), vg_slice_str(k->resource)};
    vg_metric_emit(w, gr, value);
}

static bool is_cached(const struct vg_kind *k)
{
    return !vg_kind_is(k, VG_KIND_UNCACHED) && !vg_kind_is(k, VG_KIND_NOT_STORED);
}

#define FOR_CACHED(i, m)                                                                           \
    for (size_t i = 0; i < (m)->n_kinds; i++)                                                      \
        if (is_cached(&(m)->kinds[i]))

#define COLLECT_NUMBER(name, field)                                                                \
    static void name(void *arg, struct vg_metric_writer *w)                                        \
    {                                                                                              \
        struct vg_api_metrics *m = arg;                                                            \
        FOR_CACHED(i, m)                                                                           \
        {                                                                                          \
            struct vg_cache_kind_numbers n;                                                        \
            vg_cacher_kind_numbers(m->cacher, i, &n);                                              \
            emit(w, &m->kinds[i], (double)n.field);                                                \
        }                                                                                          \
    }
COLLECT_NUMBER(collect_received, received)
COLLECT_NUMBER(collect_objects, objects)
COLLECT_NUMBER(collect_object_bytes, object_bytes)
COLLECT_NUMBER(collect_events, events)
COLLECT_NUMBER(collect_grown, grown)
COLLECT_NUMBER(collect_shrunk, shrunk)

static void collect_digests(void *arg, struct vg_metric_writer *w)
{
    struct vg_api_metrics *m = arg;
    FOR_CACHED(i, m)
    {
        struct vg_cache_kind_numbers n;
        vg_cacher_kind_numbers(m->cacher, i, &n);
        struct vg_slice values[] = {vg_slice_str(m->kinds[i].group),
                                    vg_slice_str(m->kinds[i].resource), VG_SLICE_LIT("success")};
        if (n.digests)
            vg_metric_emit(w, values, (double)(n.digests - n.digest_failures));
        values[2] = VG_SLICE_LIT("failure");
        if (n.digest_failures)
            vg_metric_emit(w, values, (double)n.digest_failures);
    }
}

static void collect_storage_objects(void *arg, struct vg_metric_writer *w)
{
    struct vg_api_metrics *m = arg;
    FOR_CACHED(i, m)
    {
        struct vg_cache_kind_numbers n;
        struct vg_slice name = vg_slice_str(vg_kind_qualified(&m->kinds[i]));
        vg_cacher_kind_numbers(m->cacher, i, &n);
        vg_metric_emit(w, &name, (double)n.objects);
    }
}

static void collect_revision(void *arg, struct vg_metric_writer *w)
{
    struct vg_api_metrics *m = arg;
    double rev = (double)(vg_cacher_revision(m->cacher) % UINT64_C(1000000000000000));
    FOR_CACHED(i, m)
    emit(w, &m->kinds[i], rev);
}

static void collect_initializations(void *arg, struct vg_metric_writer *w)
{
    struct vg_api_metrics *m = arg;
    struct vg_cacher_stats s;
    vg_cacher_stats(m->cacher, &s);
    FOR_CACHED(i, m)
    emit(w, &m->kinds[i], (double)s.relists);
}

/* One watch of the store is behind all kinds: what it is told of progress is told to each. */
static void collect_progress(void *arg, struct vg_metric_writer *w)
{
    struct vg_api_metrics *m = arg;
    struct vg_cacher_stats s;
    vg_cacher_stats(m->cacher, &s);
    FOR_CACHED(i, m)
    emit(w, &m->kinds[i], (double)s.progress);
}

static uint64_t sum_of(struct vg_api_metrics *m, size_t kind, size_t offset)
{
    uint64_t sum = 0;
    size_t n = VG_MIN(atomic_load(&m->n_shards), (size_t)SHARDS_MAX);
    for (size_t i = 0; i < n; i++) {
        struct vg_watch_count *shard = atomic_load(&m->shards[i]);
        if (shard)
            sum += atomic_load_explicit((_Atomic uint64_t *)((char *)&shard[kind] + offset),
                                        memory_order_relaxed);
    }
    return sum;
}

static void collect_watch_events(void *arg, struct vg_metric_writer *w)
{
    struct vg_api_metrics *m = arg;
    for (size_t i = 0; i < m->n_kinds; i++) {
        const struct vg_kind *k = &m->kinds[i];
        struct vg_slice gvr[] = {vg_slice_str(k->group), vg_slice_str(k->version),
                                 vg_slice_str(k->resource)};
        uint64_t n = sum_of(m, i, offsetof(struct vg_watch_count, events));
        if (n)
            vg_metric_emit(w, gvr, (double)n);
    }
}

static void collect_init_events(void *arg, struct vg_metric_writer *w)
{
    struct vg_api_metrics *m = arg;
    for (size_t i = 0; i < m->n_kinds; i++) {
        uint64_t n = sum_of(m, i, offsetof(struct vg_watch_count, init_events));
        if (n)
            emit(w, &m->kinds[i], (double)n);
    }
}

static const struct {
    struct vg_metric_desc desc;
    vg_metric_collect_fn *collect;
} computed[] = {
    {COUNTER("apiserver_watch_cache_events_received_total", "Events received by the watch cache.",
             GR),
     collect_received},
    {COUNTER("apiserver_watch_cache_events_dispatched_total",
             "Events dispatched by the watch cache.", GR),
     collect_received},
    {COUNTER("apiserver_watch_cache_initializations_total", "Initializations of the watch cache.",
             GR),
     collect_initializations},
    {GAUGE("apiserver_watch_cache_resource_version",
           "Current resource version of the watch cache, its 15 least significant digits.", GR),
     collect_revision},
    {COUNTER("apiserver_storage_events_received_total", "Events received from storage.", GR),
     collect_received},
    {COUNTER("etcd_bookmark_total", "Progress notifications received from storage.", GR),
     collect_progress},
    {COUNTER("apiserver_storage_consistency_checks_total",
             "Comparisons of the watch cache with storage.", GR, "status"),
     collect_digests},
    {GAUGE("watch_cache_capacity", "Events that the watch cache holds.", GR), collect_events},
    {COUNTER("watch_cache_capacity_increase_total", "Segments added to the watch cache.", GR),
     collect_grown},
    {COUNTER("watch_cache_capacity_decrease_total", "Segments dropped from the watch cache.", GR),
     collect_shrunk},
    {GAUGE("apiserver_resource_objects", "Stored objects by kind.", GR), collect_objects},
    {GAUGE("apiserver_resource_size_estimate_bytes", "Bytes of the stored objects by kind.", GR),
     collect_object_bytes},
    {GAUGE("apiserver_storage_objects", "Stored objects by kind.", "resource"),
     collect_storage_objects},
    {COUNTER("apiserver_watch_events_total", "Events sent to watch clients.", "group", "version",
             "resource"),
     collect_watch_events},
    {COUNTER("apiserver_init_events_total", "Initial events sent to watch clients.", GR),
     collect_init_events},
};
_Static_assert(VG_ARRAY_LEN(computed) <= CALLBACKS_MAX, "room for all");

/* ---- life ---- */

static int register_all(struct vg_metrics *registry, struct vg_api_metrics *m)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < ROWS; i++)
        r = vg_metrics_add(registry, &rows[i], &m->rows[i]);
    for (size_t i = 0; r == 0 && i < m->n_kinds; i++)
        look_up(m->rows, &m->kinds[i], &m->counters[i]);
    for (size_t i = 0; r == 0 && i < VG_ARRAY_LEN(computed); i++) {
        r = vg_metrics_add_callback(registry, &computed[i].desc, computed[i].collect, m,
                                    &m->callbacks[i]);
        m->n_callbacks += r == 0;
    }
    return r;
}

int vg_api_metrics_new(struct vg_metrics *registry, struct vg_cacher *cacher,
                       struct vg_api_metrics **ret)
{
    struct vg_api_metrics *m = vg_new(struct vg_api_metrics);
    if (!m)
        return -ENOMEM;
    m->cacher = cacher;
    m->kinds = vg_kinds(&m->n_kinds);
    m->counters = vg_calloc(m->n_kinds, sizeof *m->counters);
    int r = m->counters ? register_all(registry, m) : -ENOMEM;
    if (r < 0) {
        vg_api_metrics_free(m);
        return r;
    }
    *ret = m;
    return 0;
}

void vg_api_metrics_free(struct vg_api_metrics *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n_callbacks; i++)
        vg_metric_stop(m->callbacks[i]);
    for (size_t i = 0; i < SHARDS_MAX; i++)
        vg_free(atomic_load(&m->shards[i]));
    vg_free(m->counters);
    vg_free(m);
}

struct vg_watch_count *vg_api_metrics_shard(struct vg_api_metrics *m)
{
    if (!m)
        return NULL;
    struct vg_watch_count *shard = vg_calloc(m->n_kinds, sizeof *shard);
    size_t i = shard ? atomic_fetch_add(&m->n_shards, 1) : SHARDS_MAX;
    if (i >= SHARDS_MAX) {
        vg_free(shard);
        return NULL;
    }
    for (size_t k = 0; k < m->n_kinds; k++)
        shard[k].sizes = m->counters[k].sizes;
    atomic_store(&m->shards[i], shard);
    return shard;
}

/* ---- counting ---- */

static void add_one(_Atomic uint64_t *n)
{
    uint64_t now = atomic_load_explicit(n, memory_order_relaxed);
    atomic_store_explicit(n, now + 1, memory_order_relaxed);
}

void vg_watch_count_event(struct vg_watch_count *c, size_t bytes, bool is_initial)
{
    add_one(&c->events);
    if (is_initial)
        add_one(&c->init_events);
    vg_histogram_observe(c->sizes, (double)bytes);
}

void vg_api_count_list(struct vg_api_metrics *m, size_t kind, enum vg_listed from, uint64_t fetched,
                       uint64_t returned)
{
    if (!m)
        return;
    struct kind_counters *c = &m->counters[kind];
    if (from == VG_LISTED_STORAGE) {
        vg_counter_inc(c->stored);
        vg_counter_add(c->stored_fetched, fetched);
        vg_counter_add(c->stored_evaluated, fetched);
        vg_counter_add(c->stored_returned, returned);
        return;
    }
    bool by_index = from == VG_LISTED_INDEX && c->cached[1];
    vg_counter_inc(c->cached[by_index]);
    vg_counter_add(c->cached_fetched[by_index], fetched);
    vg_counter_add(c->cached_returned, returned);
}

void vg_api_count_consistent(struct vg_api_metrics *m, size_t kind, bool fell_back)
{
    if (m)
        vg_counter_inc(m->counters[kind].consistent[fell_back]);
}

/* The same series for everybody who asks at once. */
static struct vg_histogram *lazily(_Atomic(struct vg_histogram *) *slot, struct vg_metric *row,
                                   const struct vg_slice *values)
{
    struct vg_histogram *h = atomic_load_explicit(slot, memory_order_acquire);
    if (!h) {
        h = vg_metric_histogram(row, values);
        atomic_store_explicit(slot, h, memory_order_release);
    }
    return h;
}

void vg_api_count_wait(struct vg_api_metrics *m, size_t kind, uint64_t ns)
{
    if (!m)
        return;
    const struct vg_kind *k = &m->kinds[kind];
    struct vg_slice gr[] = {vg_slice_str(k->group), vg_slice_str(k->resource)};
    vg_histogram_observe_ns(lazily(&m->counters[kind].wait, m->rows[ROW_WAIT], gr), ns);
}

void vg_api_count_watch_list(struct vg_api_metrics *m, size_t kind, enum vg_watch_scope scope,
                             uint64_t ns)
{
    static const char *const scopes[] = {"cluster", "namespace", "resource"};
    if (!m)
        return;
    const struct vg_kind *k = &m->kinds[kind];
    struct vg_slice values[] = {vg_slice_str(k->group), vg_slice_str(k->version),
                                vg_slice_str(k->resource), vg_slice_str(scopes[scope])};
    vg_histogram_observe_ns(
        lazily(&m->counters[kind].watch_list[scope], m->rows[ROW_WATCH_LIST], values), ns);
}

void vg_api_count_storage(struct vg_api_metrics *m, size_t kind, enum vg_storage_op op, uint64_t ns,
                          bool failed)
{
    static const char *const names[] = {"get", "list", "create", "update", "delete"};
    if (!m)
        return;
    const struct vg_kind *k = &m->kinds[kind];
    struct vg_slice values[] = {vg_slice_str(names[op]), vg_slice_str(k->group),
                                vg_slice_str(k->resource)};
    vg_histogram_observe_ns(lazily(&m->counters[kind].storage[op], m->rows[ROW_STORAGE], values),
                            ns);
    struct vg_counter *total = atomic_load(&m->counters[kind].storage_total[op]);
    if (!total) {
        total = vg_metric_counter(m->rows[ROW_STORAGE_TOTAL], values);
        atomic_store(&m->counters[kind].storage_total[op], total);
    }
    vg_counter_inc(total);
    if (failed)
        vg_counter_inc(vg_metric_counter(m->rows[ROW_STORAGE_ERRORS], values));
}

void vg_api_count_terminated(struct vg_api_metrics *m, size_t kind)
{
    if (m)
        vg_counter_inc(m->counters[kind].terminated);
}
