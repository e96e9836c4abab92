/* query.c - which results a question means, and what they say over the rounds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report_int.h"

static bool is_value(const struct vg_json *v, struct vg_slice want)
{
    if (vg_json_is(v, VG_JSON_BOOL))
        return vg_slice_eq(vg_json_is_true(v) ? VG_SLICE_LIT("true") : VG_SLICE_LIT("false"), want);
    return vg_slice_eq(vg_json_text(v), want);
}

static bool is_where(const struct vg_json *params, const char *where)
{
    while (where && *where) {
        size_t n = strcspn(where, " "), key = strcspn(where, "=");
        if (key < n) {
            const struct vg_json *v = vg_json_get(params, vg_slice(where, key));
            if (v && !is_value(v, vg_slice(where + key + 1, n - key - 1)))
                return false;
        }
        where += n;
        where += strspn(where, " ");
    }
    return true;
}

bool vg_query_param(const struct vg_report_result *result, const char *name, double *ret)
{
    return result->params && vg_json_to_double(vg_json_get_str(result->params, name), ret) == 0;
}

bool vg_query_matches(const struct vg_query *q, const struct vg_report_result *result)
{
    double x;
    if (!vg_slice_eq(result->scenario, vg_slice_str(q->scenario)) || !result->metrics)
        return false;
    if (q->x && (!vg_query_param(result, q->x, &x) || x != q->x_value))
        return false;
    return is_where(result->params, q->where);
}

/* ---- rounds ---- */

void vg_rounds_add(struct vg_rounds *all, const struct vg_report_result *from, double value)
{
    all->value[from->round] = value;
    all->has[from->round] = true;
    all->was_limited |= from->was_limited;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void vg_rounds_spread(const struct vg_rounds *all, struct vg_spread *ret)
{
    double v[VG_REPORT_ROUNDS_MAX];
    unsigned n = 0;
    for (unsigned i = 0; i < VG_REPORT_ROUNDS_MAX; i++)
        if (all->has[i])
            v[n++] = all->value[i];
    *ret = (struct vg_spread){.n = n, .was_limited = all->was_limited};
    if (n == 0)
        return;
    qsort(v, n, sizeof *v, compare);
    ret->min = v[0];
    ret->max = v[n - 1];
    /* halves first: the sum of two large figures may be none */
    ret->median = n % 2 ? v[n / 2] : v[n / 2 - 1] / 2 + v[n / 2] / 2;
}

static void gather(const struct vg_report *r, const struct vg_query *q, unsigned peer,
                   struct vg_rounds *ret)
{
    double value, scale;
    *ret = (struct vg_rounds){0};
    (void)vg_unit_of(vg_slice_str(q->metric), &scale);
    for (size_t i = 0; i < r->results_n; i++) {
        const struct vg_report_result *it = &r->results[i];
        if (it->peer == peer && vg_query_matches(q, it) &&
            vg_json_to_double(vg_json_get_str(it->metrics, q->metric), &value) == 0)
            vg_rounds_add(ret, it, value * scale);
    }
}

void vg_query_spread(const struct vg_report *r, const struct vg_query *q, unsigned peer,
                     struct vg_spread *ret)
{
    struct vg_rounds all;
    gather(r, q, peer, &all);
    vg_rounds_spread(&all, ret);
}

void vg_query_ratio(const struct vg_report *r, const struct vg_query *q, unsigned peer,
                    unsigned against, struct vg_spread *ret)
{
    struct vg_rounds ours, theirs;
    gather(r, q, peer, &ours);
    gather(r, q, against, &theirs);
    for (unsigned i = 0; i < VG_REPORT_ROUNDS_MAX; i++) {
        ours.value[i] = ours.has[i] && theirs.has[i] ? ours.value[i] / theirs.value[i] : NAN;
        /* a round without one of them, or with a zero, says nothing */
        ours.has[i] = isfinite(ours.value[i]);
    }
    ours.was_limited |= theirs.was_limited;
    vg_rounds_spread(&ours, ret);
}
