/* scenario.c - which scenarios there are, what each is run over, and running them all. */
#include <stdio.h>

#include "bench.h"

/* What a scenario is repeated for. */
enum { BY_MEDIA = 1, BY_HTTP = 2, BY_GZIP = 4, BY_WATCHERS = 8, BY_OBJECTS = 16, BY_SELECTOR = 32 };

static const struct {
    vg_bench_scenario_fn *run;
    unsigned by;
} scenarios[VG_BENCH_SCENARIOS] = {
    [VG_BENCH_FILL] = {vg_bench_fill, BY_HTTP | BY_OBJECTS},
    [VG_BENCH_LIST] = {vg_bench_list, BY_MEDIA | BY_HTTP | BY_GZIP | BY_OBJECTS | BY_SELECTOR},
    [VG_BENCH_PAGE] = {vg_bench_page, BY_MEDIA | BY_HTTP | BY_OBJECTS},
    [VG_BENCH_FANOUT] = {vg_bench_fanout, BY_MEDIA | BY_HTTP | BY_WATCHERS | BY_SELECTOR},
    [VG_BENCH_IDLE] = {vg_bench_idle, BY_MEDIA | BY_HTTP | BY_WATCHERS | BY_SELECTOR},
    [VG_BENCH_CHURN] = {vg_bench_churn, BY_MEDIA | BY_HTTP | BY_WATCHERS | BY_SELECTOR},
    [VG_BENCH_LATENCY] = {vg_bench_latency, BY_MEDIA | BY_HTTP | BY_WATCHERS | BY_SELECTOR},
    [VG_BENCH_SLOW] = {vg_bench_slow, BY_MEDIA | BY_HTTP | BY_WATCHERS | BY_SELECTOR},
    [VG_BENCH_MIXED] = {vg_bench_mixed, BY_MEDIA | BY_HTTP},
    [VG_BENCH_RELIST] = {vg_bench_relist, BY_MEDIA | BY_HTTP | BY_WATCHERS | BY_OBJECTS},
};

static const char *const selectors[] = {"all", "node", "label"};

static void put_params(const struct vg_bench *b, const struct vg_bench_case *k,
                       struct vg_bench_result *r)
{
    unsigned by = scenarios[k->scenario].by;
    if (by & BY_WATCHERS)
        vg_bench_param_number(r, "watchers", k->watchers);
    if (by & BY_OBJECTS)
        vg_bench_param_number(r, "objects", k->objects);
    if (by & BY_SELECTOR)
        vg_bench_param_text(r, "selector", selectors[k->selector]);
    vg_bench_param_text(r, "media", k->media == VG_BENCH_PROTOBUF ? "protobuf" : "json");
    vg_bench_param_text(r, "http", k->http == VG_BENCH_H2 ? "2" : "1.1");
    vg_bench_param_bool(r, "tls", b->target.is_tls);
    vg_bench_param_bool(r, "gzip", k->is_gzip);
    vg_bench_param_text(r, "kind", b->o->kind == VG_BENCH_PODS ? "pods" : "configmaps");
}

static int run_case(struct vg_bench *b, const struct vg_bench_case *k)
{
    struct vg_bench_result *r = vg_bench_run_add(&b->run, vg_bench_scenario_names[k->scenario]);
    if (!r)
        return vg_fail(&b->status, -ENOMEM, "out of memory");
    put_params(b, k, r);
    snprintf(b->doing, sizeof b->doing, "%s, %s, HTTP/%s%s%s", r->scenario,
             k->media == VG_BENCH_PROTOBUF ? "protobuf" : "JSON",
             k->http == VG_BENCH_H2 ? "2" : "1.1", k->is_gzip ? ", gzip" : "",
             scenarios[k->scenario].by & BY_SELECTOR && k->selector ? ", by selector" : "");
    vg_bench_say(b, "begins");
    b->status = (struct vg_status){0};
    int err = scenarios[k->scenario].run(b, k, r);
    if (err < 0)
        vg_bench_fail(r, "%s", b->status.message[0] ? b->status.message : vg_err_text(err));
    vg_bench_say_nothing(b);
    return vg_bench_is_interrupted() ? VIGIL_E_CANCELED : err == -ENOMEM ? err : 0;
}

/* The i-th of `axis`, if the scenario knows it, else its first. */
static size_t width(const struct vg_bench_axis *axis, unsigned by, unsigned flag)
{
    return by & flag ? axis->n : 1;
}

static int run_scenario(struct vg_bench *b, enum vg_bench_scenario which)
{
    const struct vg_bench_options *o = b->o;
    unsigned by = scenarios[which].by;
    const struct {
        const struct vg_bench_axis *axis;
        size_t n;
    } axes[] = {
        {&o->objects, width(&o->objects, by, BY_OBJECTS)},
        {&o->watchers, width(&o->watchers, by, BY_WATCHERS)},
        {&o->selector, width(&o->selector, by, BY_SELECTOR)},
        {&o->media, width(&o->media, by, BY_MEDIA)},
        {&o->http, width(&o->http, by, BY_HTTP)},
        {&o->gzip, width(&o->gzip, by, BY_GZIP)},
    };
    size_t total = 1;
    for (size_t i = 0; i < VG_ARRAY_LEN(axes); i++)
        total *= axes[i].n;
    int r = 0;
    for (size_t at = 0; r == 0 && at < total; at++) {
        uint32_t v[VG_ARRAY_LEN(axes)];
        size_t left = at;
        for (size_t i = VG_ARRAY_LEN(axes); i-- > 0; left /= axes[i].n)
            v[i] = axes[i].axis->v[left % axes[i].n];
        r = run_case(b,
                     &(struct vg_bench_case){
                         .scenario = which,
                         .objects = v[0],
                         .watchers = v[1],
                         .selector = by & BY_SELECTOR ? (enum vg_bench_selector)v[2] : VG_BENCH_ALL,
                         .media = by & BY_MEDIA ? (enum vg_bench_media)v[3] : VG_BENCH_JSON,
                         .http = (enum vg_bench_http)v[4],
                         .is_gzip = by & BY_GZIP && v[5],
                     });
    }
    return r;
}

int vg_bench_run_all(struct vg_bench *b)
{
    int r = 0;
    for (enum vg_bench_scenario i = 0; r == 0 && i < VG_BENCH_SCENARIOS; i++)
        if (b->o->wants[i])
            r = run_scenario(b, i);
    return r;
}
