/* metrics_collect.c - see metrics_int.h. */
#include "metrics_int.h"

#include <errno.h>

#include "base/alloc.h"

/* ---- of the cacher ---- */

static void emit(struct vg_metric_writer *w, const struct vg_kind *k, double value)
{
    struct vg_slice gr[] = {vg_slice_str(k->group), vg_slice_str(k->resource)};
    vg_metric_emit(w, gr, value);
}

/* A kind that is served from the records of another version has that one's group and resource: the
 * stored kind alone is shown, or a series would appear twice. */
static bool is_cached(const struct vg_kind *k)
{
    return !k->stored && !vg_kind_is(k, VG_KIND_UNCACHED) && !vg_kind_is(k, VG_KIND_NOT_STORED);
}

#define FOR_CACHED(i, c)                                                                           \
    for (size_t i = 0; i < (c)->n_kinds; i++)                                                      \
        if (is_cached(&(c)->kinds[i]))

#define COLLECT_NUMBER(name, field)                                                                \
    static void name(void *arg, struct vg_metric_writer *w)                                        \
    {                                                                                              \
        const struct vg_collected *c = arg;                                                        \
        FOR_CACHED(i, c)                                                                           \
        {                                                                                          \
            struct vg_cache_kind_numbers n;                                                        \
            vg_cacher_kind_numbers(c->cacher, i, &n);                                              \
            emit(w, &c->kinds[i], (double)n.field);                                                \
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
    const struct vg_collected *c = arg;
    FOR_CACHED(i, c)
    {
        struct vg_cache_kind_numbers n;
        vg_cacher_kind_numbers(c->cacher, i, &n);
        struct vg_slice values[] = {vg_slice_str(c->kinds[i].group),
                                    vg_slice_str(c->kinds[i].resource), VG_SLICE_LIT("success")};
        if (n.digests)
            vg_metric_emit(w, values, (double)(n.digests - n.digest_failures));
        values[2] = VG_SLICE_LIT("failure");
        if (n.digest_failures)
            vg_metric_emit(w, values, (double)n.digest_failures);
    }
}

static void collect_storage_objects(void *arg, struct vg_metric_writer *w)
{
    const struct vg_collected *c = arg;
    FOR_CACHED(i, c)
    {
        struct vg_cache_kind_numbers n;
        struct vg_slice name = vg_slice_str(vg_kind_qualified(&c->kinds[i]));
        vg_cacher_kind_numbers(c->cacher, i, &n);
        vg_metric_emit(w, &name, (double)n.objects);
    }
}

static void collect_revision(void *arg, struct vg_metric_writer *w)
{
    const struct vg_collected *c = arg;
    double rev = (double)(vg_cacher_revision(c->cacher) % UINT64_C(1000000000000000));
    FOR_CACHED(i, c)
    emit(w, &c->kinds[i], rev);
}

static void collect_initializations(void *arg, struct vg_metric_writer *w)
{
    const struct vg_collected *c = arg;
    struct vg_cacher_stats s;
    vg_cacher_stats(c->cacher, &s);
    FOR_CACHED(i, c)
    emit(w, &c->kinds[i], (double)s.relists);
}

/* One watch of the store is behind all kinds: what it is told of progress is told to each. */
static void collect_progress(void *arg, struct vg_metric_writer *w)
{
    const struct vg_collected *c = arg;
    struct vg_cacher_stats s;
    vg_cacher_stats(c->cacher, &s);
    FOR_CACHED(i, c)
    emit(w, &c->kinds[i], (double)s.progress);
}

/* ---- of the loops ---- */

static uint64_t sum_of(const struct vg_collected *c, size_t kind, size_t offset)
{
    uint64_t sum = 0;
    size_t n = VG_MIN(atomic_load(&c->n_shards), (size_t)VG_SHARDS_MAX);
    for (size_t i = 0; i < n; i++) {
        struct vg_watch_count *shard = atomic_load(&c->shards[i]);
        if (shard)
            sum += atomic_load_explicit((_Atomic uint64_t *)((char *)&shard[kind] + offset),
                                        memory_order_relaxed);
    }
    return sum;
}

static void collect_watch_events(void *arg, struct vg_metric_writer *w)
{
    const struct vg_collected *c = arg;
    for (size_t i = 0; i < c->n_kinds; i++) {
        const struct vg_kind *k = &c->kinds[i];
        struct vg_slice gvr[] = {vg_slice_str(k->group), vg_slice_str(k->version),
                                 vg_slice_str(k->resource)};
        uint64_t n = sum_of(c, i, offsetof(struct vg_watch_count, events));
        if (n)
            vg_metric_emit(w, gvr, (double)n);
    }
}

static void collect_init_events(void *arg, struct vg_metric_writer *w)
{
    const struct vg_collected *c = arg;
    for (size_t i = 0; i < c->n_kinds; i++) {
        uint64_t n = sum_of(c, i, offsetof(struct vg_watch_count, init_events));
        if (n)
            emit(w, &c->kinds[i], (double)n);
    }
}

/* ---- the rows ---- */

#define GAUGE(text, about, ...)                                                                    \
    {                                                                                              \
        .name = text, .help = about, .type = VG_METRIC_GAUGE, .labels = { __VA_ARGS__ }            \
    }

static const struct {
    struct vg_metric_desc desc;
    vg_metric_collect_fn *collect;
} computed[] = {
    {VG_COUNTER_ROW("apiserver_watch_cache_events_received_total",
                    "Events received by the watch cache.", VG_GROUP_RESOURCE),
     collect_received},
    {VG_COUNTER_ROW("apiserver_watch_cache_events_dispatched_total",
                    "Events dispatched by the watch cache.", VG_GROUP_RESOURCE),
     collect_received},
    {VG_COUNTER_ROW("apiserver_watch_cache_initializations_total",
                    "Initializations of the watch cache.", VG_GROUP_RESOURCE),
     collect_initializations},
    {GAUGE("apiserver_watch_cache_resource_version",
           "Current resource version of the watch cache, its 15 least significant digits.",
           VG_GROUP_RESOURCE),
     collect_revision},
    {VG_COUNTER_ROW("apiserver_storage_events_received_total", "Events received from storage.",
                    VG_GROUP_RESOURCE),
     collect_received},
    {VG_COUNTER_ROW("etcd_bookmark_total", "Progress notifications received from storage.",
                    VG_GROUP_RESOURCE),
     collect_progress},
    {VG_COUNTER_ROW("apiserver_storage_consistency_checks_total",
                    "Comparisons of the watch cache with storage.", VG_GROUP_RESOURCE, "status"),
     collect_digests},
    {GAUGE("watch_cache_capacity", "Events that the watch cache holds.", VG_GROUP_RESOURCE),
     collect_events},
    {VG_COUNTER_ROW("watch_cache_capacity_increase_total", "Segments added to the watch cache.",
                    VG_GROUP_RESOURCE),
     collect_grown},
    {VG_COUNTER_ROW("watch_cache_capacity_decrease_total", "Segments dropped from the watch cache.",
                    VG_GROUP_RESOURCE),
     collect_shrunk},
    {GAUGE("apiserver_resource_objects", "Stored objects by kind.", VG_GROUP_RESOURCE),
     collect_objects},
    {GAUGE("apiserver_resource_size_estimate_bytes", "Bytes of the stored objects by kind.",
           VG_GROUP_RESOURCE),
     collect_object_bytes},
    {GAUGE("apiserver_storage_objects", "Stored objects by kind.", "resource"),
     collect_storage_objects},
    {VG_COUNTER_ROW("apiserver_watch_events_total", "Events sent to watch clients.", "group",
                    "version", "resource"),
     collect_watch_events},
    {VG_COUNTER_ROW("apiserver_init_events_total", "Initial events sent to watch clients.",
                    VG_GROUP_RESOURCE),
     collect_init_events},
};
_Static_assert(VG_ARRAY_LEN(computed) <= VG_COLLECTED_MAX, "room for all");

/* ---- life ---- */

int vg_collected_init(struct vg_collected *c, struct vg_metrics *registry, struct vg_cacher *cacher)
{
    int r = 0;
    c->cacher = cacher;
    c->kinds = vg_kinds(&c->n_kinds);
    for (size_t i = 0; r == 0 && i < VG_ARRAY_LEN(computed); i++) {
        r = vg_metrics_add_callback(registry, &computed[i].desc, computed[i].collect, c,
                                    &c->callbacks[i]);
        c->n_callbacks += r == 0;
    }
    return r;
}

void vg_collected_done(struct vg_collected *c)
{
    for (size_t i = 0; i < c->n_callbacks; i++)
        vg_metric_stop(c->callbacks[i]);
    for (size_t i = 0; i < VG_SHARDS_MAX; i++)
        vg_free(atomic_load(&c->shards[i]));
}

struct vg_watch_count *vg_collected_add_shard(struct vg_collected *c)
{
    struct vg_watch_count *shard = vg_calloc(c->n_kinds, sizeof *shard);
    size_t i = shard ? atomic_fetch_add(&c->n_shards, 1) : VG_SHARDS_MAX;
    if (i >= VG_SHARDS_MAX) {
        vg_free(shard);
        return NULL;
    }
    atomic_store(&c->shards[i], shard);
    return shard;
}
