/* plain.c - all figures as plain text: a line for each scenario with its parameters, and below it
 * its metrics, a column for each peer. */
#include "table.h"

#include "report_int.h"

static void put_header(const struct vg_report *r, struct vg_table *t)
{
    vg_table_put_str(t, "");
    for (unsigned i = 0; i < r->peers_n; i++)
        vg_table_put(t, r->peers[i].name);
}

static void put_metric(const struct vg_report *r, size_t row, struct vg_slice metric,
                       struct vg_table *t)
{
    char text[VG_SPREAD_SIZE];
    double scale;
    vg_table_printf(t, "  %.*s", VG_SLICE_ARG(metric));
    for (unsigned i = 0; i < r->peers_n; i++) {
        struct vg_spread s;
        vg_row_spread(r, row, metric, i, &s);
        vg_table_put_str(t, vg_spread_text(text, vg_unit_of(metric, &scale), &s));
    }
}

/* Returns how many lines that is; with t NULL only that. */
static size_t put_row(const struct vg_report *r, size_t row, struct vg_table *t)
{
    size_t n = 0;
    for (size_t i = row; i < r->results_n; i++) {
        const struct vg_json *metrics = r->results[i].metrics;
        if (r->results[i].row != row || !metrics)
            continue;
        VG_JSON_FOREACH_MEMBER (m, metrics) {
            if (vg_row_has_metric(r, row, i, vg_json_key(m)))
                continue;
            if (t)
                put_metric(r, row, vg_json_key(m), t);
            n++;
        }
    }
    return n;
}

static void print_safe(struct vg_out *o, struct vg_slice text)
{
    unsigned width;
    text.n = VG_MIN(text.n, VG_OUT_TEXT_MAX);
    if (o->err == 0)
        o->err = vg_table_safe(o->buf, text, &width);
}

static void print_errors(const struct vg_report *r, size_t row, struct vg_out *o)
{
    for (size_t i = row; i < r->results_n; i++) {
        const struct vg_report_result *it = &r->results[i];
        if (it->row != row || it->error.n == 0)
            continue;
        vg_out_put(o, "  failed (");
        print_safe(o, r->peers[it->peer].name);
        vg_out_printf(o, ", round %u): ", it->round + 1);
        print_safe(o, it->error);
        vg_out_put(o, "\n");
    }
}

static void print_line(const struct vg_table *t, size_t row, struct vg_out *o)
{
    if (o->err == 0)
        o->err = vg_table_line(t, row, 0, o->buf);
    vg_out_put(o, "\n");
}

static void print_rows(const struct vg_report *r, const struct vg_table *t, struct vg_out *o)
{
    size_t at = 0;
    print_line(t, at++, o);
    for (size_t i = 0; i < r->results_n && o->err == 0; i++) {
        if (r->results[i].row != i)
            continue;
        print_safe(o, r->results[i].text);
        vg_out_put(o, "\n");
        for (size_t n = put_row(r, i, NULL); n > 0; n--)
            print_line(t, at++, o);
        print_errors(r, i, o);
    }
}

static bool was_limited(const struct vg_report *r)
{
    for (size_t i = 0; i < r->results_n; i++)
        if (r->results[i].was_limited)
            return true;
    return false;
}

int vg_report_table(const struct vg_report *r, struct vg_buf *out)
{
    struct vg_out o = {.buf = out};
    struct vg_table t;
    vg_table_init(&t, r->peers_n + 1);
    put_header(r, &t);
    for (size_t i = 0; i < r->results_n; i++)
        if (r->results[i].row == i)
            (void)put_row(r, i, &t);
    o.err = t.err;
    if (o.err == 0)
        print_rows(r, &t, &o);
    vg_table_done(&t);
    if (was_limited(r))
        vg_out_put(&o, "* here the tool, not the server, was the limit\n");
    return o.err;
}
