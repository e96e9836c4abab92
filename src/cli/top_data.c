/* top_data.c - from a server's metrics and its list of watches to rows. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/age.h"
#include "base/alloc.h"
#include "prom.h"
#include "top.h"

void vg_top_number(double n, char ret[VG_TOP_NUMBER_SIZE])
{
    static const char units[] = " kMGTPE";
    size_t unit = 0;
    if (!(n > 0)) /* nor a number that is none */
        n = 0;
    for (; n >= 100000 || (unit && n >= 1000); unit++) {
        if (unit == sizeof units - 2)
            break;
        n /= 1000;
    }
    if (unit == 0)
        snprintf(ret, VG_TOP_NUMBER_SIZE, n < 10 && n != (double)(int)n ? "%.1f" : "%.0f", n);
    else
        snprintf(ret, VG_TOP_NUMBER_SIZE, "%.*f%c", n < 10 ? 1 : 0, VG_MIN(n, 1e9), units[unit]);
}

/* ---- kinds ---- */

static struct vg_top_kind *kind_named(struct vg_top *top, const char name[VG_TOP_NAME_SIZE])
{
    for (size_t i = 0; i < top->n_kinds; i++)
        if (strcmp(top->kinds[i].name, name) == 0)
            return &top->kinds[i];
    if (top->n_kinds == VG_TOP_KINDS_MAX)
        return NULL;
    struct vg_top_kind *k = &top->kinds[top->n_kinds++];
    *k = (struct vg_top_kind){0};
    memcpy(k->name, name, VG_TOP_NAME_SIZE);
    return k;
}

static struct vg_top_kind *kind_of(struct vg_top *top, const struct vg_prom *s)
{
    struct vg_slice group = vg_prom_label(s, "group"), resource = vg_prom_label(s, "resource");
    char name[VG_TOP_NAME_SIZE] = "";
    if (!resource.n)
        return NULL;
    snprintf(name, sizeof name, "%.*s%s%.*s", VG_SLICE_ARG(resource), group.n ? "." : "",
             VG_SLICE_ARG(group));
    return kind_named(top, name);
}

/* Which samples count, and for what. */
static const struct {
    const char *name, *verb;
    enum vg_top_value value;
} rows[] = {
    {"apiserver_resource_objects", NULL, VG_TOP_OBJECTS},
    {"apiserver_resource_size_estimate_bytes", NULL, VG_TOP_BYTES},
    {"apiserver_watch_events_total", NULL, VG_TOP_EVENTS},
    {"apiserver_longrunning_requests", "WATCH", VG_TOP_WATCHERS},
    {"watch_cache_capacity", NULL, VG_TOP_WINDOW},
};

/* Negative samples are what kube-apiserver could not find out. */
static void take_sample(struct vg_top *top, const struct vg_prom *s)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        if (!vg_slice_eq(s->name, vg_slice_str(rows[i].name)))
            continue;
        if (rows[i].verb && !vg_slice_eq(vg_prom_label(s, "verb"), vg_slice_str(rows[i].verb)))
            return;
        struct vg_top_kind *k = s->value >= 0 ? kind_of(top, s) : NULL;
        if (!k)
            return;
        k->values[rows[i].value] += s->value; /* scopes and versions of one kind together */
        k->has |= 1u << rows[i].value;
        top->told |= k->has;
        return;
    }
}

/* A counter that nothing was counted with is named by its # TYPE line alone. */
static void find_types(struct vg_top *top, struct vg_slice text)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        char line[VG_TOP_NAME_SIZE];
        int n = snprintf(line, sizeof line, "# TYPE %s ", rows[i].name);
        if (memmem(text.p, text.n, line, (size_t)n))
            top->told |= 1u << rows[i].value;
    }
}

void vg_top_metrics(struct vg_top *top, struct vg_slice text, double seconds)
{
    struct vg_prom s;
    for (size_t i = 0; i < top->n_kinds; i++) {
        struct vg_top_kind *k = &top->kinds[i];
        k->events_before = k->values[VG_TOP_EVENTS];
        memset(k->values, 0, sizeof k->values);
        k->has = 0;
    }
    top->seconds = seconds;
    top->told = 0;
    if (text.n)
        find_types(top, text);
    while (vg_prom_next(&text, &s))
        take_sample(top, &s);
}

static int by_weight(const void *a, const void *b)
{
    static const enum vg_top_value order[] = {VG_TOP_WATCHERS, VG_TOP_OBJECTS};
    const struct vg_top_kind *x = a, *y = b;
    for (size_t i = 0; i < VG_ARRAY_LEN(order); i++)
        if (x->values[order[i]] != y->values[order[i]])
            return x->values[order[i]] < y->values[order[i]] ? 1 : -1;
    return strcmp(x->name, y->name);
}

static void put_number(struct vg_table *t, double n)
{
    char text[VG_TOP_NUMBER_SIZE];
    vg_top_number(n, text);
    vg_table_put_str(t, text);
}

/* "-" is what is not told. A kind without a sample of what is counted has none of it. */
static void put_value(struct vg_table *t, const struct vg_top_kind *k, enum vg_top_value v,
                      unsigned told)
{
    bool is_zero = (v == VG_TOP_EVENTS || v == VG_TOP_WATCHERS) && (told & 1u << v);
    if (is_zero || (k->has & 1u << v))
        put_number(t, k->values[v]);
    else
        vg_table_put_str(t, "-");
}

static void put_kind(const struct vg_top *top, const struct vg_top_kind *k, struct vg_table *t)
{
    unsigned told = top->told;
    vg_table_put_str(t, k->name);
    put_value(t, k, VG_TOP_OBJECTS, told);
    put_value(t, k, VG_TOP_BYTES, told);
    put_value(t, k, VG_TOP_EVENTS, told);
    if (top->seconds > 0 && (told & 1u << VG_TOP_EVENTS))
        put_number(t, (k->values[VG_TOP_EVENTS] - k->events_before) / top->seconds);
    else
        vg_table_put_str(t, "-");
    put_value(t, k, VG_TOP_WATCHERS, told);
    put_value(t, k, VG_TOP_WINDOW, told);
    if (top->has_lags && k->values[VG_TOP_WATCHERS] > 0)
        put_number(t, k->lag);
    else
        vg_table_put_str(t, "-");
}

void vg_top_put_kinds(struct vg_top *top, struct vg_table *t)
{
    static const char *const heads[VG_TOP_KIND_COLUMNS] = {
        "KIND", "OBJECTS", "BYTES", "EVENTS", "EVENTS/S", "WATCHERS", "WINDOW", "LAG"};
    if (top->n_kinds)
        qsort(top->kinds, top->n_kinds, sizeof top->kinds[0], by_weight);
    for (size_t i = 0; i < VG_TOP_KIND_COLUMNS; i++)
        vg_table_put_str(t, heads[i]);
    for (size_t i = 0; i < top->n_kinds; i++) {
        const struct vg_top_kind *k = &top->kinds[i];
        if (k->values[VG_TOP_OBJECTS] > 0 || k->values[VG_TOP_EVENTS] > 0 ||
            k->values[VG_TOP_WATCHERS] > 0)
            put_kind(top, k, t);
    }
}

/* ---- watches ---- */

struct watch {
    struct vigil_value v;
    int64_t lag;
};

static int by_lag(const void *a, const void *b)
{
    const struct watch *x = a, *y = b;
    return (x->lag < y->lag) - (x->lag > y->lag);
}

static void put_text(struct vg_table *t, struct vigil_value v, const char *member)
{
    char text[256];
    if (vigil_value_copy(vigil_value_get(v, member), text, sizeof text) < 0)
        text[0] = 0;
    vg_table_put_str(t, *text ? text : "-");
}

static int64_t number(struct vigil_value v, const char *member)
{
    return vigil_value_int(vigil_value_get(v, member), 0);
}

void vg_top_lags(struct vg_top *top, struct vigil_text json)
{
    struct vigil_value v,
        list = vigil_value_get((struct vigil_value){VIGIL_OBJECT, json}, "watches");
    for (size_t i = 0; i < top->n_kinds; i++)
        top->kinds[i].lag = 0;
    top->has_lags = true;
    for (struct vigil_iter at = {0}; vigil_value_next(list, &at, NULL, &v);) {
        char name[VG_TOP_NAME_SIZE] = "";
        if (vigil_value_copy(vigil_value_get(v, "resource"), name, sizeof name) <= 0)
            continue;
        struct vg_top_kind *k = kind_named(top, name);
        if (k)
            k->lag = VG_MAX(k->lag, (double)number(v, "lag"));
    }
}

/* Labels and fields in one cell. */
static void put_selector(struct vg_table *t, struct vigil_value v)
{
    char labels[120], fields[120];
    if (vigil_value_copy(vigil_value_get(v, "labelSelector"), labels, sizeof labels) < 0)
        labels[0] = 0;
    if (vigil_value_copy(vigil_value_get(v, "fieldSelector"), fields, sizeof fields) < 0)
        fields[0] = 0;
    if (*labels || *fields)
        vg_table_printf(t, "%s%s%s", labels, *labels && *fields ? " " : "", fields);
    else
        vg_table_put_str(t, "-");
}

static void put_watch(struct vg_table *t, struct vigil_value v)
{
    char age[VG_AGE_SIZE];
    vg_age_text(number(v, "seconds"), age);
    put_text(t, v, "user");
    put_text(t, v, "resource");
    put_text(t, v, "namespace");
    put_selector(t, v);
    put_number(t, (double)number(v, "lag"));
    put_number(t, (double)number(v, "events"));
    put_number(t, (double)number(v, "bytes"));
    put_number(t, (double)number(v, "unsent"));
    vg_table_put_str(t, age);
}

int vg_top_put_watches(struct vigil_text json, struct vg_table *t)
{
    static const char *const heads[VG_TOP_WATCH_COLUMNS] = {
        "USER", "RESOURCE", "NAMESPACE", "SELECTOR", "LAG", "EVENTS", "BYTES", "UNSENT", "AGE"};
    struct vigil_value v,
        list = vigil_value_get((struct vigil_value){VIGIL_OBJECT, json}, "watches");
    size_t n = 0, at_most = 0;
    for (struct vigil_iter at = {0}; vigil_value_next(list, &at, NULL, &v);)
        at_most++;
    struct watch *watches = vg_calloc(at_most + 1, sizeof *watches);
    if (!watches)
        return -ENOMEM;
    for (struct vigil_iter at = {0}; n < at_most && vigil_value_next(list, &at, NULL, &v); n++)
        watches[n] = (struct watch){v, number(v, "lag")};
    qsort(watches, n, sizeof *watches, by_lag);
    for (size_t i = 0; i < VG_TOP_WATCH_COLUMNS; i++)
        vg_table_put_str(t, heads[i]);
    for (size_t i = 0; i < n; i++)
        put_watch(t, watches[i].v);
    vg_free(watches);
    return t->err;
}
