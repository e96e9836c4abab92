/* top_data.c - from a server's metrics and its list of watches to rows. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "age.h"
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

static struct vg_top_kind *kind_of(struct vg_top *top, const struct vg_prom *s)
{
    struct vg_slice group = vg_prom_label(s, "group"), resource = vg_prom_label(s, "resource");
    char name[VG_TOP_NAME_SIZE];
    if (!resource.n)
        return NULL;
    snprintf(name, sizeof name, "%.*s%s%.*s", VG_SLICE_ARG(resource), group.n ? "." : "",
             VG_SLICE_ARG(group));
    for (size_t i = 0; i < top->n_kinds; i++)
        if (strcmp(top->kinds[i].name, name) == 0)
            return &top->kinds[i];
    if (top->n_kinds == VG_TOP_KINDS_MAX)
        return NULL;
    struct vg_top_kind *k = &top->kinds[top->n_kinds++];
    *k = (struct vg_top_kind){0};
    memcpy(k->name, name, sizeof name);
    return k;
}

/* Which samples count, and for what. */
static double *place_of(struct vg_top *top, const struct vg_prom *s)
{
    static const struct {
        const char *name, *verb;
        size_t at;
    } rows[] = {
        {"apiserver_resource_objects", NULL, offsetof(struct vg_top_kind, objects)},
        {"apiserver_watch_events_total", NULL, offsetof(struct vg_top_kind, events)},
        {"apiserver_longrunning_requests", "WATCH", offsetof(struct vg_top_kind, watchers)},
        {"watch_cache_capacity", NULL, offsetof(struct vg_top_kind, window)},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        if (!vg_slice_eq(s->name, vg_slice_str(rows[i].name)))
            continue;
        if (rows[i].verb && !vg_slice_eq(vg_prom_label(s, "verb"), vg_slice_str(rows[i].verb)))
            return NULL;
        struct vg_top_kind *k = kind_of(top, s);
        return k ? (double *)(void *)((char *)k + rows[i].at) : NULL;
    }
    return NULL;
}

void vg_top_metrics(struct vg_top *top, struct vg_slice text, double seconds)
{
    struct vg_prom s;
    for (size_t i = 0; i < top->n_kinds; i++) {
        struct vg_top_kind *k = &top->kinds[i];
        k->events_before = k->events;
        k->objects = k->events = k->watchers = k->window = 0;
    }
    top->seconds = seconds;
    while (vg_prom_next(&text, &s)) {
        double *at = place_of(top, &s);
        if (at)
            *at += s.value; /* scopes and versions of one kind together */
    }
}

static int by_weight(const void *a, const void *b)
{
    const struct vg_top_kind *x = a, *y = b;
    if (x->watchers != y->watchers)
        return x->watchers < y->watchers ? 1 : -1;
    if (x->objects != y->objects)
        return x->objects < y->objects ? 1 : -1;
    return strcmp(x->name, y->name);
}

static void put_number(struct vg_table *t, double n)
{
    char text[VG_TOP_NUMBER_SIZE];
    vg_top_number(n, text);
    vg_table_put_str(t, text);
}

void vg_top_put_kinds(struct vg_top *top, struct vg_table *t)
{
    static const char *const heads[VG_TOP_KIND_COLUMNS] = {"KIND",     "OBJECTS",  "EVENTS",
                                                           "EVENTS/S", "WATCHERS", "WINDOW"};
    if (top->n_kinds)
        qsort(top->kinds, top->n_kinds, sizeof top->kinds[0], by_weight);
    for (size_t i = 0; i < VG_TOP_KIND_COLUMNS; i++)
        vg_table_put_str(t, heads[i]);
    for (size_t i = 0; i < top->n_kinds; i++) {
        const struct vg_top_kind *k = &top->kinds[i];
        if (!(k->objects > 0 || k->events > 0 || k->watchers > 0))
            continue;
        vg_table_put_str(t, k->name);
        put_number(t, k->objects);
        put_number(t, k->events);
        if (top->seconds > 0)
            put_number(t, (k->events - k->events_before) / top->seconds);
        else
            vg_table_put_str(t, "-");
        put_number(t, k->watchers);
        put_number(t, k->window);
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
    vg_table_put_str(t, text);
}

static int64_t number(struct vigil_value v, const char *member)
{
    return vigil_value_int(vigil_value_get(v, member), 0);
}

/* Labels and fields in one cell. */
static void put_selector(struct vg_table *t, struct vigil_value v)
{
    char labels[120], fields[120];
    if (vigil_value_copy(vigil_value_get(v, "labelSelector"), labels, sizeof labels) < 0)
        labels[0] = 0;
    if (vigil_value_copy(vigil_value_get(v, "fieldSelector"), fields, sizeof fields) < 0)
        fields[0] = 0;
    vg_table_printf(t, "%s%s%s", labels, *labels && *fields ? " " : "", fields);
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
    vg_table_put_str(t, age);
}

int vg_top_put_watches(struct vigil_text json, struct vg_table *t)
{
    static const char *const heads[VG_TOP_WATCH_COLUMNS] = {
        "USER", "RESOURCE", "NAMESPACE", "SELECTOR", "LAG", "EVENTS", "BYTES", "AGE"};
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
