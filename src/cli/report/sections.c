/* sections.c - what a page says: where the figures are from, the charts with their figures as
 * tables, bars that were set, what failed, and everything that was measured. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report_int.h"

/* ---- origin ---- */

static void origin_row(struct vg_page *p, const char *what, struct vg_slice text)
{
    if (text.n == 0)
        return;
    vg_page_cell_str(p, what);
    vg_page_cell(p, text);
    vg_page_row_end(p);
}

static void machine_row(struct vg_page *p)
{
    char text[VG_OUT_TEXT_MAX], size[VG_FIGURE_SIZE];
    const struct vg_json *machine = vg_json_get_str(p->report->root, "machine");
    uint64_t cores = 0;
    double memory = 0, load = 0;
    if (vg_json_to_uint64(vg_json_get_str(machine, "cores"), &cores) < 0 ||
        vg_json_to_double(vg_json_get_str(machine, "memory_bytes"), &memory) < 0)
        return;
    snprintf(text, sizeof text, "%llu cores, %s of memory", (unsigned long long)cores,
             vg_figure(size, VG_UNIT_BYTES, memory));
    origin_row(p, "size", vg_slice_str(text));
    if (vg_json_to_double(vg_json_get_str(machine, "load"), &load) == 0) {
        snprintf(text, sizeof text, "%s processes wanted to run when it began",
                 vg_figure(size, VG_UNIT_NONE, load));
        origin_row(p, "other load", vg_slice_str(text));
    }
}

void vg_page_origin(struct vg_page *p)
{
    const struct vg_report *r = p->report;
    char rounds[VG_FIGURE_SIZE];
    vg_page_table(p);
    vg_page_cell_str(p, "measured");
    vg_page_cell(p, vg_report_text(r, NULL, "date"));
    vg_page_row_end(p);
    origin_row(p, "machine", vg_report_text(r, "machine", "cpu"));
    machine_row(p);
    origin_row(p, "kernel", vg_report_text(r, "machine", "kernel"));
    origin_row(p, "vigil", vg_report_text(r, NULL, "version"));
    for (unsigned i = 0; i < r->peers_n; i++) {
        char name[VG_OUT_TEXT_MAX];
        snprintf(name, sizeof name, "%.*s", (int)VG_MIN(r->peers[i].name.n, sizeof name / 2),
                 r->peers[i].name.p);
        origin_row(p, name, r->peers[i].version.n ? r->peers[i].version : VG_SLICE_LIT("-"));
    }
    snprintf(rounds, sizeof rounds, "%u", r->rounds_n);
    origin_row(p, "rounds", vg_slice_str(rounds));
    vg_page_table_end(p);
    vg_page_paragraph(p, "Times are processor time of the server's processes unless a line says "
                         "otherwise. A figure is the median of the rounds, in parentheses from the "
                         "least to the most. A ratio is taken within each round, where both sides "
                         "met the same noise, and then treated alike. Compare ratios: times belong "
                         "to the machine.");
}

/* ---- charts ---- */

static void values_table(struct vg_page *p, const struct vg_chart_data *d)
{
    char text[VG_SPREAD_SIZE];
    vg_page_table(p);
    vg_page_cell_str(p, d->chart->kind == VG_CHART_LINES ? d->chart->x_label : "");
    for (unsigned i = 0; i < d->report->peers_n; i++)
        if (d->is_used[i])
            vg_page_cell(p, d->report->peers[i].name);
    vg_page_row_end(p);
    for (unsigned k = 0; k < d->n; k++) {
        const struct vg_chart_point *at = &d->points[k];
        vg_page_cell_str(p, at->label);
        for (unsigned i = 0; i < d->report->peers_n; i++)
            if (d->is_used[i])
                vg_page_cell_str(p, vg_spread_text(text, at->unit, &at->by_peer[i]));
        vg_page_row_end(p);
    }
    vg_page_table_end(p);
}

/* Rivals are shown as a multiple of the first, the first as a multiple of a floor. */
static void ratio_of(const struct vg_chart_data *d, const struct vg_chart_point *at, unsigned peer,
                     struct vg_spread *ret)
{
    unsigned first = vg_report_first(d->report);
    bool is_floor = d->report->peers[peer].is_floor;
    vg_query_ratio(d->report, &at->query, is_floor ? first : peer, is_floor ? peer : first, ret);
}

static bool has_ratio(const struct vg_chart_data *d, unsigned peer)
{
    struct vg_spread s;
    if (peer == vg_report_first(d->report))
        return false;
    for (unsigned k = 0; k < d->n; k++) {
        ratio_of(d, &d->points[k], peer, &s);
        if (s.n > 0)
            return true;
    }
    return false;
}

void vg_page_ratio_name(struct vg_page *p, struct vg_slice a, struct vg_slice b, bool is_swapped)
{
    char text[VG_OUT_TEXT_MAX];
    struct vg_slice over = is_swapped ? b : a, under = is_swapped ? a : b;
    snprintf(text, sizeof text, "%.*s / %.*s", (int)VG_MIN(over.n, 80u), over.p,
             (int)VG_MIN(under.n, 80u), under.p);
    vg_page_cell_str(p, text);
}

static void ratio_head(struct vg_page *p, const struct vg_chart_data *d, const bool *has)
{
    const struct vg_report *r = d->report;
    struct vg_slice first = r->peers[vg_report_first(r)].name;
    vg_page_cell_str(p, "ratio");
    for (unsigned i = 0; i < r->peers_n; i++)
        if (has[i])
            vg_page_ratio_name(p, r->peers[i].name, first, r->peers[i].is_floor);
    vg_page_row_end(p);
}

static void ratios_table(struct vg_page *p, const struct vg_chart_data *d)
{
    bool has[VG_REPORT_PEERS_MAX] = {false}, any = false;
    for (unsigned i = 0; i < d->report->peers_n; i++)
        any |= has[i] = has_ratio(d, i);
    if (!any)
        return;
    vg_page_table(p);
    ratio_head(p, d, has);
    for (unsigned k = 0; k < d->n; k++) {
        char text[VG_SPREAD_SIZE];
        struct vg_spread s;
        vg_page_cell_str(p, d->points[k].label);
        for (unsigned i = 0; i < d->report->peers_n; i++) {
            if (!has[i])
                continue;
            ratio_of(d, &d->points[k], i, &s);
            vg_page_cell_str(p, vg_spread_text(text, VG_UNIT_TIMES, &s));
        }
        vg_page_row_end(p);
    }
    vg_page_table_end(p);
}

static bool was_limited(const struct vg_chart_data *d)
{
    for (unsigned k = 0; k < d->n; k++)
        for (unsigned i = 0; i < d->report->peers_n; i++)
            if (d->points[k].by_peer[i].was_limited)
                return true;
    return false;
}

static void one_chart(struct vg_page *p, const struct vg_chart_data *d)
{
    vg_page_heading(p, 2, d->chart->title);
    vg_page_paragraph(p, d->chart->about);
    if (d->chart->kind != VG_CHART_TABLE && p->is_html)
        vg_svg_chart(d, false, p->o);
    else if (d->chart->kind != VG_CHART_TABLE)
        vg_out_printf(p->o, "![%s](%s/%s.svg)\n\n", d->chart->title, p->charts, d->chart->name);
    values_table(p, d);
    if (d->chart->kind != VG_CHART_TABLE)
        ratios_table(p, d);
    if (was_limited(d))
        vg_page_paragraph(p, p->is_html ? "* Here the tool, not the server, was the limit."
                                        : "\\* Here the tool, not the server, was the limit.");
}

void vg_page_charts(struct vg_page *p)
{
    struct vg_chart_data d;
    for (size_t i = 0; vg_charts[i].name; i++)
        if (vg_chart_fill(p->report, &vg_charts[i], &d))
            one_chart(p, &d);
}

/* ---- failures ---- */

static bool any_failed(const struct vg_report *r)
{
    for (size_t i = 0; i < r->results_n; i++)
        if (r->results[i].error.n > 0)
            return true;
    return false;
}

void vg_page_failures(struct vg_page *p)
{
    const struct vg_report *r = p->report;
    if (!any_failed(r))
        return;
    vg_page_heading(p, 2, "What failed");
    vg_page_table(p);
    vg_page_cell_str(p, "peer");
    vg_page_cell_str(p, "round");
    vg_page_cell_str(p, "scenario");
    vg_page_cell_str(p, "why");
    vg_page_row_end(p);
    for (size_t i = 0; i < r->results_n; i++) {
        const struct vg_report_result *it = &r->results[i];
        char round[VG_FIGURE_SIZE];
        if (it->error.n == 0)
            continue;
        snprintf(round, sizeof round, "%u", it->round + 1);
        vg_page_cell(p, r->peers[it->peer].name);
        vg_page_cell_str(p, round);
        vg_page_cell(p, it->text);
        vg_page_cell(p, it->error);
        vg_page_row_end(p);
    }
    vg_page_table_end(p);
}

/* ---- everything ---- */

static void all_metric(struct vg_page *p, size_t row, struct vg_slice metric)
{
    const struct vg_report *r = p->report;
    char text[VG_SPREAD_SIZE];
    struct vg_spread s;
    double scale;
    vg_page_cell(p, r->results[row].text);
    vg_page_cell(p, metric);
    for (unsigned i = 0; i < r->peers_n; i++) {
        vg_row_spread(r, row, metric, i, &s);
        vg_page_cell_str(p, vg_spread_text(text, vg_unit_of(metric, &scale), &s));
    }
    vg_page_row_end(p);
}

void vg_page_all(struct vg_page *p)
{
    const struct vg_report *r = p->report;
    vg_page_heading(p, 2, "All figures");
    vg_page_table(p);
    vg_page_cell_str(p, "scenario");
    vg_page_cell_str(p, "metric");
    for (unsigned i = 0; i < r->peers_n; i++)
        vg_page_cell(p, r->peers[i].name);
    vg_page_row_end(p);
    for (size_t row = 0; row < r->results_n && p->o->err == 0; row++)
        for (size_t i = row; r->results[row].row == row && i < r->results_n; i++) {
            if (r->results[i].row != row || !r->results[i].metrics)
                continue;
            VG_JSON_FOREACH_MEMBER (m, r->results[i].metrics) {
                if (!vg_row_has_metric(r, row, i, vg_json_key(m)))
                    all_metric(p, row, vg_json_key(m));
            }
        }
    vg_page_table_end(p);
}
