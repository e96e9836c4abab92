/* dump.c - /debug/api_priority_and_fairness: levels, queues and waiting requests, as kube-apiserver
 * prints them: columns with a comma and blanks between. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "flow_int.h"

/* ---- columns ---- */

/* 18 columns: a request with its details. */
#define COLUMNS_MAX 18u
/* 100000 rows are more than anybody reads. */
#define ROWS_MAX 100000u

/* Texts are collected first, since a column is as wide as its widest cell. */
struct sheet {
    size_t n_columns;
    size_t n_cells, cap;
    struct vg_slice *cells;
    struct vg_arena arena;
    int err;
};

static void sheet_done(struct sheet *s)
{
    vg_free(s->cells);
    vg_arena_done(&s->arena);
}

static void put(struct sheet *s, struct vg_slice text)
{
    if (s->err == 0 && s->n_cells == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 256;
        struct vg_slice *cells = vg_reallocarray(s->cells, cap, sizeof *cells);
        if (cells) {
            s->cells = cells;
            s->cap = cap;
        } else {
            s->err = -ENOMEM;
        }
    }
    const char *copy = s->err == 0 ? vg_arena_copy(&s->arena, text.p, text.n) : NULL;
    if (!copy) {
        s->err = -ENOMEM;
        return;
    }
    s->cells[s->n_cells++] = vg_slice(copy, text.n);
}

static void put_int(struct sheet *s, int64_t n)
{
    char text[24];
    put(s, vg_slice(text, (size_t)snprintf(text, sizeof text, "%" PRId64, n)));
}

static void put_seconds(struct sheet *s, double seconds)
{
    char text[48];
    put(s, vg_slice(text, (size_t)snprintf(text, sizeof text, "%.8fss", seconds)));
}

static void put_bool(struct sheet *s, bool b)
{
    put(s, b ? VG_SLICE_LIT("true") : VG_SLICE_LIT("false"));
}

static void put_heads(struct sheet *s, const char *const *names, size_t n)
{
    s->n_columns += n;
    for (size_t i = 0; i < n; i++)
        put(s, vg_slice_str(names[i]));
}

/* As Go's tabwriter: each cell but the last has a comma and is filled up to its column's width. */
static int sheet_write(const struct sheet *s, struct vg_buf *out)
{
    size_t width[COLUMNS_MAX] = {0};
    int r = s->err;
    for (size_t i = 0; i < s->n_cells; i++)
        width[i % s->n_columns] = VG_MAX(width[i % s->n_columns], s->cells[i].n + 2);
    for (size_t i = 0; i < s->n_cells && r == 0; i++) {
        size_t column = i % s->n_columns;
        bool is_last = column + 1 == s->n_columns;
        int pad = (int)(VG_MAX(width[column], 8u) - s->cells[i].n - 1);
        r = vg_buf_append_slice(out, s->cells[i]);
        if (r == 0)
            r = is_last ? vg_buf_append_byte(out, '\n') : vg_buf_printf(out, ",%*s", pad, "");
    }
    return r;
}

/* ---- rows ---- */

static const char *const level_columns[] = {
    "PriorityLevelName",  "ActiveQueues",     "IsIdle",
    "IsQuiescing",        "WaitingRequests",  "ExecutingRequests",
    "DispatchedRequests", "RejectedRequests", "TimedoutRequests",
    "CancelledRequests"};

struct totals {
    uint64_t executing, dispatched;
};

static struct totals add_series(struct vg_flow *f, struct vg_slice level)
{
    struct totals t = {0};
    for (const struct vg_flow_series *s = vg_flow_series_first(f->metrics); s; s = s->next) {
        if (!vg_slice_eq(s->level, level))
            continue;
        uint64_t over = atomic_load(&s->finished);
        uint64_t begun = atomic_load(&s->at_once) + atomic_load(&s->others);
        t.dispatched += begun;
        t.executing += begun > over ? begun - over : 0;
    }
    return t;
}

static void put_level(struct vg_flow *f, struct vg_flow_level *v, struct sheet *s)
{
    struct totals t = add_series(f, v->name);
    vg_mutex_lock(&v->mu);
    int64_t busy = 0;
    VG_LIST_FOREACH (n, &v->busy)
        busy++;
    put(s, v->name);
    put_int(s, busy);
    put_bool(s, v->n_waiting == 0 && vg_flow_level_used(v) == 0);
    put_bool(s, !v->is_wanted);
    put_int(s, v->n_waiting);
    put_int(s, (int64_t)t.executing);
    put_int(s, (int64_t)t.dispatched);
    put_int(s, (int64_t)v->rejected);
    put_int(s, (int64_t)v->timed_out);
    put_int(s, (int64_t)v->cancelled);
    vg_mutex_unlock(&v->mu);
}

static const char *const queue_columns[] = {"PriorityLevelName", "Index",       "PendingRequests",
                                            "ExecutingRequests", "SeatsInUse",  "NextDispatchR",
                                            "InitialSeatsSum",   "MaxSeatsSum", "TotalWorkSum"};

static void put_queues(struct vg_flow *f, struct vg_flow_level *v, struct sheet *s)
{
    (void)f;
    vg_mutex_lock(&v->mu);
    for (uint32_t i = 0; i < v->n_queues; i++) {
        const struct vg_flow_queue *q = v->queues[i];
        put(s, v->name);
        put_int(s, i);
        put_int(s, q->n);
        put_int(s, q->executing);
        put_int(s, q->seats);
        put_seconds(s, q->next_r);
        put_int(s, q->waiting_initial);
        put_int(s, q->waiting_seats);
        put_seconds(s, q->work_sum);
    }
    vg_mutex_unlock(&v->mu);
}

static const char *const request_columns[] = {
    "PriorityLevelName", "FlowSchemaName", "QueueIndex", "RequestIndexInQueue", "FlowDistingsher",
    "ArriveTime",        "InitialSeats",   "FinalSeats", "AdditionalLatency",   "StartTime"};
static const char *const detail_columns[] = {"UserName", "Verb",       "APIPath",  "Namespace",
                                             "Name",     "APIVersion", "Resource", "SubResource"};

static void put_time(struct sheet *s, int64_t ms)
{
    time_t at = (time_t)(ms / 1000);
    struct tm tm;
    char text[64];
    gmtime_r(&at, &tm);
    size_t n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    n += (size_t)snprintf(text + n, sizeof text - n, ".%03dZ", (int)(ms % 1000));
    put(s, vg_slice(text, n));
}

static void put_details(struct sheet *s, const struct vg_flow_attributes *a)
{
    char version[300];
    int n = snprintf(version, sizeof version, "%.*s%s%.*s", VG_SLICE_ARG(a->group),
                     a->group.n ? "/" : "", VG_SLICE_ARG(a->version));
    put(s, a->user);
    put(s, a->verb);
    put(s, a->path);
    put(s, a->ns);
    put(s, a->name);
    put(s, vg_slice(version, VG_MIN((size_t)n, sizeof version - 1)));
    put(s, a->resource);
    put(s, a->subresource);
}

static void put_request(struct sheet *s, const struct vg_flow_level *v,
                        const struct vg_flow_wait *w, int64_t place)
{
    const struct vg_flow_ticket *t = w->ticket;
    char linger[24];
    int n = snprintf(linger, sizeof linger, t->linger_us ? "%gms" : "0s", t->linger_us / 1e3);
    put(s, v->name);
    put(s, t->schema->name);
    put_int(s, w->queue->index);
    put_int(s, place);
    put(s, w->distinguisher);
    put_time(s, w->arrived_ms);
    put_int(s, t->initial);
    put_int(s, t->linger_us ? t->seats : 0);
    put(s, vg_slice(linger, (size_t)n));
    put(s, VG_SLICE_LIT("0001-01-01T00:00:00Z"));
    if (s->n_columns > VG_ARRAY_LEN(request_columns))
        put_details(s, &w->attributes);
}

/* The requests are others' loops', but stay while the level is locked: to leave they need it. */
static void put_requests(struct vg_flow *f, struct vg_flow_level *v, struct sheet *s)
{
    (void)f;
    vg_mutex_lock(&v->mu);
    for (uint32_t i = 0; i < v->n_queues && s->n_cells < ROWS_MAX * COLUMNS_MAX; i++) {
        int64_t place = 0;
        VG_LIST_FOREACH (n, &v->queues[i]->waiting)
            put_request(s, v, VG_CONTAINER_OF(n, struct vg_flow_wait, link), place++);
    }
    vg_mutex_unlock(&v->mu);
}

/* ---- all levels, by name ---- */

static int compare_levels(const void *a, const void *b)
{
    return vg_slice_cmp((*(struct vg_flow_level *const *)a)->name,
                        (*(struct vg_flow_level *const *)b)->name);
}

static int dump(struct vg_flow *f, struct sheet *s, struct vg_buf *out,
                void (*rows)(struct vg_flow *f, struct vg_flow_level *v, struct sheet *s))
{
    struct vg_flow_level *levels[VG_FLOW_OBJECTS_MAX];
    size_t n = 0;
    vg_mutex_lock(&f->mu);
    VG_LIST_FOREACH (link, &f->levels) {
        if (n < VG_ARRAY_LEN(levels))
            levels[n++] = VG_CONTAINER_OF(link, struct vg_flow_level, link);
    }
    qsort(levels, n, sizeof levels[0], compare_levels);
    for (size_t i = 0; i < n; i++)
        rows(f, levels[i], s);
    vg_mutex_unlock(&f->mu);
    int r = sheet_write(s, out);
    sheet_done(s);
    return r;
}

int vg_flow_dump_levels(struct vg_flow *f, struct vg_buf *out)
{
    struct sheet s = {0};
    put_heads(&s, level_columns, VG_ARRAY_LEN(level_columns));
    return dump(f, &s, out, put_level);
}

int vg_flow_dump_queues(struct vg_flow *f, struct vg_buf *out)
{
    struct sheet s = {0};
    put_heads(&s, queue_columns, VG_ARRAY_LEN(queue_columns));
    return dump(f, &s, out, put_queues);
}

int vg_flow_dump_requests(struct vg_flow *f, bool with_details, struct vg_buf *out)
{
    struct sheet s = {0};
    put_heads(&s, request_columns, VG_ARRAY_LEN(request_columns));
    if (with_details)
        put_heads(&s, detail_columns, VG_ARRAY_LEN(detail_columns));
    return dump(f, &s, out, put_requests);
}
