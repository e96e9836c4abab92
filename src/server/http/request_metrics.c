/* request_metrics.c - see request_metrics.h. */
#include "request_metrics.h"

#include <errno.h>
#include <stdio.h>

#include "base/alloc.h"

static const double duration_bounds[] = {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8,
                                         1.0,   1.25,  1.5,  2,   3,   4,   5,   6,
                                         8,     10,    15,   20,  30,  45,  60};
static const double sli_bounds[] = {0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3,
                                    4,    5,   6,   8,   10,  15,  20,  30,   45,  60};
static const double size_bounds[] = {1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};

/* 20,000: kinds by verbs by codes, with room; what is beyond is counted as overflow. */
#define SERIES_MAX 20000u

#define RESOURCE_LABELS "component", "group", "resource", "scope", "subresource", "verb", "version"

static const struct vg_metric_desc total_desc = {
    .name = "apiserver_request_total",
    .help = "Requests by verb, dry run, group, version, resource, scope, component and HTTP code.",
    .type = VG_METRIC_COUNTER,
    .labels = {RESOURCE_LABELS, "dry_run", "code"},
    .max_series = SERIES_MAX,
};
static const struct vg_metric_desc duration_desc = {
    .name = "apiserver_request_duration_seconds",
    .help = "Time from the head of a request to the last byte of its answer.",
    .type = VG_METRIC_HISTOGRAM,
    .labels = {RESOURCE_LABELS, "dry_run"},
    .bounds = duration_bounds,
    .bound_count = VG_ARRAY_LEN(duration_bounds),
    .max_series = SERIES_MAX,
};
static const struct vg_metric_desc sli_desc = {
    .name = "apiserver_request_sli_duration_seconds",
    .help = "As apiserver_request_duration_seconds, for service level objectives; no watches.",
    .type = VG_METRIC_HISTOGRAM,
    .labels = {RESOURCE_LABELS},
    .bounds = sli_bounds,
    .bound_count = VG_ARRAY_LEN(sli_bounds),
    .max_series = SERIES_MAX,
};
static const struct vg_metric_desc sizes_desc = {
    .name = "apiserver_response_sizes",
    .help = "Bytes of the answers to reads.",
    .type = VG_METRIC_HISTOGRAM,
    .labels = {RESOURCE_LABELS},
    .bounds = size_bounds,
    .bound_count = VG_ARRAY_LEN(size_bounds),
    .max_series = SERIES_MAX,
};
static const struct vg_metric_desc running_desc = {
    .name = "apiserver_longrunning_requests",
    .help = "Watches that run now.",
    .type = VG_METRIC_GAUGE,
    .labels = {RESOURCE_LABELS},
    .max_series = SERIES_MAX,
};
static const struct vg_metric_desc attempts_desc = {
    .name = "authentication_attempts",
    .help = "Requests whose credentials were looked at, by result.",
    .type = VG_METRIC_COUNTER,
    .labels = {"result"},
};

struct vg_request_metrics {
    struct vg_metric *total, *duration, *sli, *sizes, *running;
    struct vg_counter *known, *unknown;
};

/* The series of one combination. */
struct series {
    struct vg_request_key key;
    struct vg_counter *total;
    struct vg_histogram *duration, *sli, *sizes;
    struct vg_gauge *running;
};

int vg_request_metrics_new(struct vg_metrics *registry, struct vg_request_metrics **ret_metrics)
{
    struct vg_request_metrics *m = vg_new(struct vg_request_metrics);
    struct vg_metric *attempts;
    if (!m)
        return -ENOMEM;
    const struct {
        const struct vg_metric_desc *desc;
        struct vg_metric **metric;
    } rows[] = {
        {&total_desc, &m->total}, {&duration_desc, &m->duration}, {&sli_desc, &m->sli},
        {&sizes_desc, &m->sizes}, {&running_desc, &m->running},   {&attempts_desc, &attempts},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        int r = vg_metrics_add(registry, rows[i].desc, rows[i].metric);
        if (r < 0) {
            vg_free(m);
            return r;
        }
    }
    m->known = vg_metric_counter(attempts, &VG_SLICE_LIT("success"));
    m->unknown = vg_metric_counter(attempts, &VG_SLICE_LIT("failure"));
    *ret_metrics = m;
    return 0;
}

void vg_request_metrics_free(struct vg_request_metrics *m)
{
    vg_free(m);
}

void vg_request_cache_init(struct vg_request_cache *c)
{
    vg_map_init(&c->map, VG_MAP_BORROWS_KEYS);
}

void vg_request_cache_done(struct vg_request_cache *c)
{
    VG_MAP_FOREACH (e, &c->map)
        vg_free(e->value);
    vg_map_done(&c->map);
}

/* ---- labels ---- */

static const char *const verbs[] = {
    [VG_API_GET] = "GET",       [VG_API_LIST] = "LIST",
    [VG_API_WATCH] = "WATCH",   [VG_API_CREATE] = "POST",
    [VG_API_UPDATE] = "PUT",    [VG_API_PATCH] = "PATCH",
    [VG_API_DELETE] = "DELETE", [VG_API_DELETECOLLECTION] = "DELETECOLLECTION",
};
static const char *const methods[] = {
    [VG_HTTP_GET] = "GET",     [VG_HTTP_HEAD] = "HEAD",       [VG_HTTP_POST] = "POST",
    [VG_HTTP_PUT] = "PUT",     [VG_HTTP_PATCH] = "PATCH",     [VG_HTTP_DELETE] = "DELETE",
    [VG_HTTP_OTHER] = "other", [VG_HTTP_OPTIONS] = "OPTIONS",
};
static const char *const scopes[] = {
    [VG_SCOPE_NONE] = "",
    [VG_SCOPE_CLUSTER] = "cluster",
    [VG_SCOPE_NAMESPACE] = "namespace",
    [VG_SCOPE_RESOURCE] = "resource",
};

void vg_request_key_fill(struct vg_request_key *k, enum vg_http_method method,
                         const struct vg_target *t)
{
    memset(k, 0, sizeof *k);
    k->method = (uint8_t)method;
    if (t->type != VG_TARGET_RESOURCE)
        return;
    k->kind = t->kind;
    k->sub = t->sub ? t->sub->name : NULL;
    k->verb = (uint8_t)t->verb;
    k->is_dry_run = vg_query_get(t, "dryRun").n > 0;
    k->scope = t->name.n || t->verb == VG_API_CREATE ? VG_SCOPE_RESOURCE
               : t->ns.n                             ? VG_SCOPE_NAMESPACE
                                                     : VG_SCOPE_CLUSTER;
}

const char *vg_request_verb(const struct vg_request_key *k)
{
    return k->verb ? verbs[k->verb] : methods[k->method];
}

/* In the order of RESOURCE_LABELS, then dry_run, then code. */
static void fill_labels(const struct vg_request_key *k, char code[8], struct vg_slice labels[9])
{
    const struct vg_kind *kind = k->kind;
    labels[0] = VG_SLICE_LIT("apiserver");
    labels[1] = vg_slice_str(kind ? kind->group : "");
    labels[2] = vg_slice_str(kind ? kind->resource : "");
    labels[3] = vg_slice_str(scopes[k->scope]);
    labels[4] = vg_slice_str(k->sub ? k->sub : "");
    labels[5] = vg_slice_str(vg_request_verb(k));
    labels[6] = vg_slice_str(kind ? kind->version : "");
    labels[7] = vg_slice_str(k->is_dry_run ? "All" : "");
    labels[8] = vg_slice(code, (size_t)snprintf(code, 8, "%u", k->code));
}

/* NULL: memory is short, and this request goes uncounted. */
static struct series *find_series(struct vg_request_metrics *m, struct vg_request_cache *c,
                                  const struct vg_request_key *key)
{
    struct vg_slice labels[9];
    char code[8];
    struct series *s = vg_map_get(&c->map, vg_slice(key, sizeof *key));
    if (s)
        return s;
    s = vg_new(struct series);
    if (!s)
        return NULL;
    s->key = *key;
    fill_labels(key, code, labels);
    if (key->code) {
        s->total = vg_metric_counter(m->total, labels);
        s->duration = vg_metric_histogram(m->duration, labels);
        if (key->verb != VG_API_WATCH)
            s->sli = vg_metric_histogram(m->sli, labels);
        if (key->verb == VG_API_GET || key->verb == VG_API_LIST)
            s->sizes = vg_metric_histogram(m->sizes, labels);
    } else {
        s->running = vg_metric_gauge(m->running, labels);
    }
    if (vg_map_put(&c->map, vg_slice(&s->key, sizeof s->key), s, NULL) < 0) {
        vg_free(s);
        return NULL;
    }
    return s;
}

void vg_request_count(struct vg_request_metrics *m, struct vg_request_cache *c,
                      const struct vg_request_key *key, uint64_t ns, uint64_t bytes)
{
    struct series *s = m && key->code ? find_series(m, c, key) : NULL;
    if (!s)
        return;
    vg_counter_inc(s->total);
    vg_histogram_observe_ns(s->duration, ns);
    if (s->sli)
        vg_histogram_observe_ns(s->sli, ns);
    if (s->sizes)
        vg_histogram_observe(s->sizes, (double)bytes);
}

bool vg_request_count_running(struct vg_request_metrics *m, struct vg_request_cache *c,
                              const struct vg_request_key *key, int delta)
{
    struct vg_request_key k = *key;
    k.code = 0;
    struct series *s = m ? find_series(m, c, &k) : NULL;
    if (s)
        vg_gauge_add(s->running, delta);
    return s;
}

void vg_request_count_authentication(struct vg_request_metrics *m, bool is_known)
{
    if (m)
        vg_counter_inc(is_known ? m->known : m->unknown);
}
