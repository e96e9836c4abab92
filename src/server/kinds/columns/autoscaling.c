/* autoscaling.c - TARGETS of an autoscaler: what each of its metrics is now, and shall be. */
#include "cell.h"

/* Two are shown, and how many more there are. */
#define SHOWN_MAX 2u

/* Where a type of metric has its source, and how its numbers are told. */
static const struct source {
    const char *type, *member;
    const char *name;       /* of the resource, before the numbers; NULL: it is not told */
    bool is_in_percent;     /* of a utilization, when no average is wanted */
    bool has_value;         /* a value, when no average is wanted */
    bool needs_average_now; /* an average that is not known is unknown, not 0 */
} sources[] = {
    {"External", "external", NULL, false, true, true},
    {"Object", "object", NULL, false, true, true},
    {"Pods", "pods", NULL, false, false, false},
    {"Resource", "resource", "name", true, false, false},
    {"ContainerResource", "containerResource", "name", true, false, false},
};

static const struct source *source_of(const struct vg_json *metric)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(sources); i++)
        if (vg_cell_is(metric, "type", sources[i].type))
            return &sources[i];
    return NULL;
}

/* An amount, 0 when it was not given. */
static void put_amount(struct vg_cell *c, const struct vg_json *v, const char *dotted)
{
    struct vg_slice s = vg_cell_text(v, dotted);
    vg_cell_put(c, s.n ? s : VG_SLICE_LIT("0"));
}

static void put_average(struct vg_cell *c, const struct source *s, const struct vg_json *want,
                        const struct vg_json *now)
{
    if (!now || (s->needs_average_now && !vg_cell_is_set(now, "current.averageValue")))
        vg_cell_puts(c, "<unknown>");
    else
        put_amount(c, now, "current.averageValue");
    vg_cell_puts(c, "/");
    put_amount(c, want, "target.averageValue");
    if (s->has_value)
        vg_cell_puts(c, " (avg)");
}

static void put_percent(struct vg_cell *c, const struct vg_json *v, const char *dotted,
                        const char *missing)
{
    if (v && vg_cell_is_set(v, dotted))
        vg_cell_printf(c, "%lld%%", (long long)vg_cell_int(v, dotted));
    else
        vg_cell_puts(c, missing);
}

static void put_plain(struct vg_cell *c, const struct source *s, const struct vg_json *want,
                      const struct vg_json *now)
{
    if (s->is_in_percent) {
        put_percent(c, now, "current.averageUtilization", "<unknown>");
        vg_cell_puts(c, "/");
        put_percent(c, want, "target.averageUtilization", "<auto>");
        return;
    }
    if (now)
        put_amount(c, now, "current.value");
    else
        vg_cell_puts(c, "<unknown>");
    vg_cell_puts(c, "/");
    put_amount(c, want, "target.value");
}

static void put_metric(struct vg_cell *c, const struct vg_json *metric,
                       const struct vg_json *status)
{
    const struct source *s = source_of(metric);
    if (!s) {
        vg_cell_puts(c, "<unknown type>");
        return;
    }
    const struct vg_json *want = vg_cell_at(metric, s->member);
    const struct vg_json *now = status ? vg_cell_at(status, s->member) : NULL;
    if (s->name)
        vg_cell_printf(c, "%.*s: ", VG_SLICE_ARG(vg_cell_text(want, s->name)));
    bool is_average =
        vg_cell_is_set(want, "target.averageValue") || !(s->is_in_percent || s->has_value);
    if (is_average)
        put_average(c, s, want, now);
    else
        put_plain(c, s, want, now);
}

void vg_cell_targets(struct vg_cell *c)
{
    size_t n, n_now;
    const struct vg_json *metrics = vg_cell_items(c->v, "spec.metrics", &n);
    const struct vg_json *now = vg_cell_items(c->v, "status.currentMetrics", &n_now);
    if (n == 0)
        vg_cell_puts(c, "<none>");
    for (size_t i = 0; i < VG_MIN(n, SHOWN_MAX); i++) {
        if (i)
            vg_cell_puts(c, ", ");
        put_metric(c, &metrics[i], i < n_now ? &now[i] : NULL);
    }
    if (n > SHOWN_MAX)
        vg_cell_printf(c, " + %zu more...", n - SHOWN_MAX);
}
