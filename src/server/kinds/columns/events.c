/* events.c - events: when, about what, by whom. Old ones have timestamps and a count, new ones a
 * time and perhaps a series. */
#include <ctype.h>

#include "cell.h"

static bool is_time(const struct vg_cell *c, const char *dotted)
{
    int64_t ms;
    return vg_cell_time(c->v, dotted, &ms);
}

void vg_cell_event_first(struct vg_cell *c)
{
    vg_cell_put_age_of(c, is_time(c, "firstTimestamp") ? "firstTimestamp" : "eventTime",
                       "<unknown>");
}

void vg_cell_event_last(struct vg_cell *c)
{
    if (vg_cell_is_set(c->v, "series"))
        vg_cell_put_age_of(c, "series.lastObservedTime", "<unknown>");
    else if (is_time(c, "lastTimestamp"))
        vg_cell_put_age_of(c, "lastTimestamp", "<unknown>");
    else
        vg_cell_event_first(c);
}

void vg_cell_event_count(struct vg_cell *c)
{
    int64_t n = vg_cell_int(c->v, "count");
    if (vg_cell_is_set(c->v, "series"))
        n = vg_cell_int(c->v, "series.count");
    else if (n == 0)
        n = 1;
    vg_cell_printf(c, "%lld", (long long)n);
    c->is_bare = true;
}

void vg_cell_event_object(struct vg_cell *c)
{
    struct vg_slice kind = vg_cell_text(c->v, "involvedObject.kind");
    struct vg_slice name = vg_cell_text(c->v, "involvedObject.name");
    vg_cell_put_lower(c, kind);
    if (name.n)
        vg_cell_printf(c, "/%.*s", VG_SLICE_ARG(name));
}

static struct vg_slice either(const struct vg_cell *c, const char *dotted, const char *other)
{
    struct vg_slice s = vg_cell_text(c->v, dotted);
    return s.n ? s : vg_cell_text(c->v, other);
}

void vg_cell_event_source(struct vg_cell *c)
{
    struct vg_slice who = either(c, "source.component", "reportingComponent");
    struct vg_slice where = either(c, "source.host", "reportingInstance");
    vg_cell_put(c, who);
    if (where.n)
        vg_cell_printf(c, ", %.*s", VG_SLICE_ARG(where));
}

void vg_cell_event_message(struct vg_cell *c)
{
    struct vg_slice s = vg_cell_text(c->v, "message");
    while (s.n && isspace((unsigned char)s.p[0]))
        s = vg_slice(s.p + 1, s.n - 1);
    while (s.n && isspace((unsigned char)s.p[s.n - 1]))
        s.n--;
    vg_cell_put(c, s);
}
