/* options.c - see options.h: one table of flags, of which each knows its kind and its bounds. */
#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

const char *const vg_bench_scenario_names[VG_BENCH_SCENARIOS] = {
    [VG_BENCH_FILL] = "fill",       [VG_BENCH_LIST] = "list", [VG_BENCH_PAGE] = "page",
    [VG_BENCH_FANOUT] = "fanout",   [VG_BENCH_IDLE] = "idle", [VG_BENCH_CHURN] = "churn",
    [VG_BENCH_LATENCY] = "latency", [VG_BENCH_SLOW] = "slow", [VG_BENCH_MIXED] = "mixed",
    [VG_BENCH_RELIST] = "relist",
};

enum flag_type { TEXT, YES, WHOLE, REAL, WHOLES, CHOICES, CHOICE, PIDS };

static const char *const medias[] = {"json", "protobuf", NULL};
static const char *const https[] = {"1.1", "2", NULL};
static const char *const gzips[] = {"off", "on", NULL};
static const char *const selectors[] = {"all", "node", "label", NULL};
static const char *const kinds[] = {"pods", "configmaps", NULL};

#define AT(member) offsetof(struct vg_bench_options, member)
static const struct flag {
    const char *name;
    char letter;
    enum flag_type type;
    size_t at;
    double min, max;
    const char *const *choices;
} flags[] = {
    {"kubeconfig", 0, TEXT, AT(place.kubeconfig), 0, 0, NULL},
    {"context", 0, TEXT, AT(place.context), 0, 0, NULL},
    {"server", 's', TEXT, AT(place.server), 0, 0, NULL},
    {"token", 0, TEXT, AT(place.token), 0, 0, NULL},
    {"certificate-authority", 0, TEXT, AT(place.ca), 0, 0, NULL},
    {"client-certificate", 0, TEXT, AT(place.cert), 0, 0, NULL},
    {"client-key", 0, TEXT, AT(place.key), 0, 0, NULL},
    {"insecure-skip-tls-verify", 0, YES, AT(place.is_insecure), 0, 0, NULL},
    {"yes-really-this-server", 0, TEXT, AT(really), 0, 0, NULL},
    {"name", 0, TEXT, AT(name), 0, 0, NULL},
    {"json", 0, TEXT, AT(json), 0, 0, NULL},
    {"html", 0, TEXT, AT(html), 0, 0, NULL},
    {"restart-command", 0, TEXT, AT(restart), 0, 0, NULL},
    {"scale", 0, REAL, AT(scale), 0.0002, 10, NULL},
    {"quiet", 'q', YES, AT(is_quiet), 0, 0, NULL},
    {"quick", 0, YES, AT(quick), 0, 0, NULL},
    {"keep", 0, YES, AT(keeps), 0, 0, NULL},
    {"watchers", 0, WHOLES, AT(watchers), 1, 50000, NULL},
    {"objects", 0, WHOLES, AT(objects), 1, 999999, NULL},
    {"media", 0, CHOICES, AT(media), 0, 0, medias},
    {"http", 0, CHOICES, AT(http), 0, 0, https},
    {"gzip", 0, CHOICES, AT(gzip), 0, 0, gzips},
    {"selector", 0, CHOICES, AT(selector), 0, 0, selectors},
    {"kind", 0, CHOICE, AT(kind), 0, 0, kinds},
    {"clients", 0, WHOLE, AT(clients), 1, 4096, NULL},
    {"streams", 0, WHOLE, AT(streams), 1, 1000, NULL},
    {"nodes", 0, WHOLE, AT(nodes), 1, 100000, NULL},
    {"events", 0, WHOLE, AT(events), 1, 1000000, NULL},
    {"lists", 0, WHOLE, AT(lists), 1, 1000, NULL},
    {"page", 0, WHOLE, AT(page), 1, 100000, NULL},
    {"bytes", 0, WHOLE, AT(bytes), 1, 1000000, NULL},
    {"stalled", 0, WHOLE, AT(stalled_percent), 1, 99, NULL},
    {"rate", 0, REAL, AT(rate), 0.1, 100000, NULL},
    {"seconds", 0, REAL, AT(seconds), 0.1, 3600, NULL},
    {"settle", 0, REAL, AT(settle), 0, 60, NULL},
    {"patience", 0, REAL, AT(patience), 0.1, 600, NULL},
    {"server-pid", 0, PIDS, AT(pids), 1, 4194304, NULL},
    {"etcd-port", 0, WHOLE, AT(etcd_port), 1, 65535, NULL},
    {"help", 'h', YES, AT(is_help), 0, 0, NULL},
    {"version", 0, YES, AT(is_version), 0, 0, NULL},
};

/* ---- values ---- */

static int read_number(const struct flag *f, const char *text, size_t n, bool is_whole, double *ret,
                       struct vg_status *status)
{
    char copy[32] = "", *end = copy;
    if (n < sizeof copy)
        memcpy(copy, text, n);
    *ret = strtod(copy, &end);
    bool is_number =
        n > 0 && n < sizeof copy && *end == 0 && isfinite(*ret) && strspn(copy, "0123456789.") == n;
    if (is_number && *ret >= f->min && *ret <= f->max && (!is_whole || *ret == floor(*ret)))
        return 0;
    return vg_fail(status, VIGIL_E_INVALID, "--%s is a %snumber from %g to %.8g, not \"%.*s\"",
                   f->name, is_whole ? "whole " : "", f->min, f->max, (int)VG_MIN(n, (size_t)40),
                   text);
}

static int read_choice(const struct flag *f, const char *text, size_t n, uint32_t *ret,
                       struct vg_status *status)
{
    VG_AUTO(buf) all = {0};
    for (uint32_t i = 0; f->choices[i]; i++) {
        if (strlen(f->choices[i]) == n && memcmp(f->choices[i], text, n) == 0) {
            *ret = i;
            return 0;
        }
        if (vg_buf_printf(&all, "%s%s", i ? ", " : "", f->choices[i]) < 0)
            return vg_fail(status, -ENOMEM, "out of memory");
    }
    return vg_fail(status, VIGIL_E_INVALID, "--%s knows %.*s, not \"%.*s\"", f->name,
                   VG_SLICE_ARG(all), (int)VG_MIN(n, (size_t)40), text);
}

/* a,b,c: each of them by the function of its type. */
static int read_axis(const struct flag *f, const char *text, uint32_t *v, size_t *n, size_t max,
                     struct vg_status *status)
{
    *n = 0;
    for (;; text++) {
        size_t len = strcspn(text, ",");
        double number = 0;
        if (*n == max)
            return vg_fail(status, VIGIL_E_INVALID, "--%s takes at most %zu values", f->name, max);
        int r = f->type == CHOICES ? read_choice(f, text, len, &v[*n], status)
                                   : read_number(f, text, len, true, &number, status);
        if (r < 0)
            return r;
        if (f->type != CHOICES)
            v[*n] = (uint32_t)number;
        ++*n;
        text += len;
        if (!*text)
            return 0;
    }
}

static int set_flag(struct vg_bench_options *o, const struct flag *f, const char *value,
                    struct vg_status *status)
{
    void *at = (char *)o + f->at;
    double number = 0;
    int r = 0;
    switch (f->type) {
    case TEXT:
        memcpy(at, &value, sizeof value);
        return 0;
    case YES:
        *(bool *)at = true;
        return 0;
    case REAL:
        return read_number(f, value, strlen(value), false, at, status);
    case WHOLE:
        r = read_number(f, value, strlen(value), true, &number, status);
        *(uint32_t *)at = (uint32_t)number;
        return r;
    case CHOICE:
        return read_choice(f, value, strlen(value), at, status);
    case PIDS:
        return read_axis(f, value, o->pids, &o->n_pids, VG_BENCH_PIDS_MAX, status);
    case WHOLES:
    case CHOICES:
        break;
    }
    struct vg_bench_axis *axis = at;
    return read_axis(f, value, axis->v, &axis->n, VG_BENCH_AXIS_MAX, status);
}

/* ---- arguments ---- */

static const struct flag *find_flag(const char *text, size_t n)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(flags); i++) {
        const struct flag *f = &flags[i];
        if (text[0] == '-' && text[1] == '-' && strlen(f->name) == n - 2 &&
            memcmp(f->name, text + 2, n - 2) == 0)
            return f;
        if (f->letter && n == 2 && text[1] == f->letter)
            return f;
    }
    return NULL;
}

static int read_flag(struct vg_bench_options *o, int argc, char **argv, int *at,
                     struct vg_status *status)
{
    const char *text = argv[*at], *equals = strchr(text, '=');
    size_t n = equals ? (size_t)(equals - text) : strlen(text);
    const struct flag *f = n > 1 ? find_flag(text, n) : NULL;
    if (!f)
        return vg_fail(status, VIGIL_E_INVALID, "there is no flag %.*s", (int)VG_MIN(n, (size_t)60),
                       text);
    const char *value = equals ? equals + 1 : NULL;
    if (f->type == YES && value)
        return vg_fail(status, VIGIL_E_INVALID, "--%s takes no value", f->name);
    if (f->type != YES && !value && *at + 1 < argc)
        value = argv[++*at];
    if (f->type != YES && (!value || !*value))
        return vg_fail(status, VIGIL_E_INVALID, "--%s needs a value", f->name);
    return set_flag(o, f, value, status);
}

/* "all" leaves out relist, which needs the server to be restarted. */
static int read_scenario(struct vg_bench_options *o, const char *text, struct vg_status *status)
{
    bool is_all = strcmp(text, "all") == 0, is_known = is_all;
    for (size_t i = 0; i < VG_BENCH_SCENARIOS; i++) {
        bool is_it = strcmp(text, vg_bench_scenario_names[i]) == 0;
        o->wants[i] = o->wants[i] || is_it || (is_all && i != VG_BENCH_RELIST);
        is_known = is_known || is_it;
    }
    return is_known ? 0
                    : vg_fail(status, VIGIL_E_INVALID,
                              "there is no scenario \"%.40s\"; vigil bench --help shows those "
                              "there are",
                              text);
}

static void give_defaults(struct vg_bench_options *o)
{
    bool q = o->quick;
    const struct {
        struct vg_bench_axis *axis;
        uint32_t value;
    } axes[] = {{&o->watchers, q ? 100 : 1000},
                {&o->objects, q ? 1000 : 10000},
                {&o->media, VG_BENCH_JSON},
                {&o->http, VG_BENCH_H1},
                {&o->gzip, 0},
                {&o->selector, VG_BENCH_ALL}};
    const struct {
        uint32_t *at, value;
    } wholes[] = {{&o->clients, 32},         {&o->streams, 100},       {&o->nodes, 100},
                  {&o->events, q ? 20 : 60}, {&o->lists, q ? 3 : 5},   {&o->page, 500},
                  {&o->bytes, 1024},         {&o->stalled_percent, 10}};
    for (size_t i = 0; i < VG_ARRAY_LEN(axes); i++)
        if (!axes[i].axis->n)
            *axes[i].axis = (struct vg_bench_axis){{axes[i].value}, 1};
    for (size_t i = 0; i < VG_ARRAY_LEN(wholes); i++)
        if (!*wholes[i].at)
            *wholes[i].at = wholes[i].value;
    o->seconds = o->seconds > 0 ? o->seconds : q ? 3 : 10;
    o->scale = o->scale > 0 ? o->scale : q ? 0.02 : 0.1;
    o->patience = o->patience > 0 ? o->patience : 30;
    o->settle = o->settle >= 0 ? o->settle : q ? 1 : 5;
}

static int check(const struct vg_bench_options *o, struct vg_status *status)
{
    const struct vg_cli_place *p = &o->place;
    bool by_hand = p->token || p->ca || p->cert || p->key || p->is_insecure;
    if (p->server && (p->kubeconfig || p->context))
        return vg_fail(status, VIGIL_E_INVALID,
                       "--server stands in place of a kubeconfig: leave out one of them");
    if (!p->server && by_hand)
        return vg_fail(status, VIGIL_E_INVALID,
                       "credentials by flags go with --server; a kubeconfig has its own");
    if (!p->cert != !p->key)
        return vg_fail(status, VIGIL_E_INVALID,
                       "--client-certificate and --client-key go together");
    if (o->kind == VG_BENCH_CONFIGMAPS)
        for (size_t i = 0; i < o->selector.n; i++)
            if (o->selector.v[i] == VG_BENCH_NODE)
                return vg_fail(status, VIGIL_E_INVALID, "config maps are on no node");
    return 0;
}

int vg_bench_options_parse(int argc, char **argv, struct vg_bench_options *ret,
                           struct vg_status *reterr_status)
{
    *ret = (struct vg_bench_options){.settle = -1};
    bool has_any = false;
    for (int i = 1; i < argc; i++) {
        if (i == 1 && strcmp(argv[i], "bench") == 0)
            continue;
        if (i == 1 && strcmp(argv[i], "help") == 0) {
            ret->is_help = true;
            return 0;
        }
        int r = argv[i][0] == '-' ? read_flag(ret, argc, argv, &i, reterr_status)
                                  : read_scenario(ret, argv[i], reterr_status);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < VG_BENCH_SCENARIOS; i++)
        has_any = has_any || ret->wants[i];
    if (ret->is_help || ret->is_version)
        return 0;
    if (!has_any)
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "name a scenario: fill, list, page, fanout, idle, churn, latency, slow, "
                       "mixed, relist, or all");
    give_defaults(ret);
    return check(ret, reterr_status);
}
