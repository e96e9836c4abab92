/* metrics.c - the rows of lists, of watches and of storage that this room counts, looked up once
 * per kind. What the cacher and the loops count is in metrics_collect.c. */
#include "metrics_int.h"

#include <errno.h>

#include "base/alloc.h"

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

struct vg_api_metrics {
    struct kind_counters *counters; /* one for each of collected.kinds */
    struct vg_metric *rows[ROWS];
    struct vg_collected collected;
};

static const double wait_bounds[] = {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6,
                                     0.8,   1.0,   1.25, 1.5, 2.0, 3.0};

static const double list_bounds[] = {0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1,  2, 4,
                                     6,    8,   10,  15,  20,  30,  45, 60};

static const double storage_bounds[] = {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8,
                                        1.0,   1.25,  1.5,  2,   3,   4,   5,   6,
                                        8,     10,    15,   20,  30,  45,  60};

static const double size_bounds[] = {1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072};

static const struct vg_metric_desc rows[] = {
    VG_COUNTER_ROW("apiserver_cache_list_total", "LIST requests served from the watch cache.",
                   VG_GROUP_RESOURCE, "index"),
    VG_COUNTER_ROW("apiserver_cache_list_fetched_objects_total",
                   "Objects read from the watch cache to serve LIST requests.", VG_GROUP_RESOURCE,
                   "index"),
    VG_COUNTER_ROW("apiserver_cache_list_returned_objects_total",
                   "Objects returned for LIST requests from the watch cache.", VG_GROUP_RESOURCE),
    VG_COUNTER_ROW("apiserver_storage_list_total", "LIST requests served from storage.",
                   VG_GROUP_RESOURCE),
    VG_COUNTER_ROW("apiserver_storage_list_fetched_objects_total",
                   "Objects read from storage to serve LIST requests.", VG_GROUP_RESOURCE),
    VG_COUNTER_ROW("apiserver_storage_list_evaluated_objects_total",
                   "Objects tested to serve LIST requests from storage.", VG_GROUP_RESOURCE),
    VG_COUNTER_ROW("apiserver_storage_list_returned_objects_total",
                   "Objects returned for LIST requests from storage.", VG_GROUP_RESOURCE),
    VG_COUNTER_ROW("apiserver_watch_cache_consistent_read_total",
                   "Consistent reads from the cache.", VG_GROUP_RESOURCE, "success", "fallback"),
    VG_COUNTER_ROW("apiserver_terminated_watchers_total",
                   "Watchers closed because they took nothing.", VG_GROUP_RESOURCE),
    {.name = "apiserver_watch_cache_read_wait_seconds",
     .help = "Time spent waiting for the watch cache to become fresh.",
     .type = VG_METRIC_HISTOGRAM,
     .labels = {VG_GROUP_RESOURCE},
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
     .labels = {"operation", VG_GROUP_RESOURCE},
     .bounds = storage_bounds,
     .bound_count = VG_ARRAY_LEN(storage_bounds)},
    VG_COUNTER_ROW("etcd_requests_total", "Requests to storage.", "operation", VG_GROUP_RESOURCE),
    VG_COUNTER_ROW("etcd_request_errors_total", "Requests that storage failed.", "operation",
                   VG_GROUP_RESOURCE),
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

/* ---- life ---- */

static int register_all(struct vg_api_metrics *m, struct vg_metrics *registry,
                        struct vg_cacher *cacher)
{
    size_t n;
    const struct vg_kind *kinds = vg_kinds(&n);
    m->counters = vg_calloc(n, sizeof *m->counters);
    int r = m->counters ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < ROWS; i++)
        r = vg_metrics_add(registry, &rows[i], &m->rows[i]);
    for (size_t i = 0; r == 0 && i < n; i++)
        look_up(m->rows, &kinds[i], &m->counters[i]);
    return r < 0 ? r : vg_collected_init(&m->collected, registry, cacher);
}

int vg_api_metrics_new(struct vg_metrics *registry, struct vg_cacher *cacher,
                       struct vg_api_metrics **ret)
{
    struct vg_api_metrics *m = vg_new(struct vg_api_metrics);
    if (!m)
        return -ENOMEM;
    int r = register_all(m, registry, cacher);
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
    vg_collected_done(&m->collected);
    vg_free(m->counters);
    vg_free(m);
}

struct vg_watch_count *vg_api_metrics_shard(struct vg_api_metrics *m)
{
    struct vg_watch_count *shard = m ? vg_collected_add_shard(&m->collected) : NULL;
    for (size_t k = 0; shard && k < m->collected.n_kinds; k++)
        shard[k].sizes = m->counters[k].sizes;
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
    const struct vg_kind *k = &m->collected.kinds[kind];
    struct vg_slice gr[] = {vg_slice_str(k->group), vg_slice_str(k->resource)};
    vg_histogram_observe_ns(lazily(&m->counters[kind].wait, m->rows[ROW_WAIT], gr), ns);
}

void vg_api_count_watch_list(struct vg_api_metrics *m, size_t kind, enum vg_watch_scope scope,
                             uint64_t ns)
{
    static const char *const scopes[] = {"cluster", "namespace", "resource"};
    if (!m)
        return;
    const struct vg_kind *k = &m->collected.kinds[kind];
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
    const struct vg_kind *k = &m->collected.kinds[kind];
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
