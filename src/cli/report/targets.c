/* targets.c - bars that the file itself sets, each met or missed by how much; and the summary, the
 * few figures that a reader of the front page wants.
 * A bar in the file: {"what": "...", "scenario": "list", "where": "objects=10000", "metric": "...",
 * "peer": "...", "against": "..." (then the ratio counts), "at_most": 1.5 or "at_least": 0.5,
 * "why": "..." (said when it is missed)}. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report_int.h"

#define WORD_SIZE 128u

struct target {
    struct vg_slice what, why;
    char scenario[WORD_SIZE], where[WORD_SIZE], metric[WORD_SIZE];
    unsigned peer, against; /* peers_n: none */
    double bar;
    bool is_most;
};

static void word(const struct vg_json *v, const char *key, char ret[WORD_SIZE])
{
    struct vg_slice s = vg_json_text(vg_json_get_str(v, key));
    snprintf(ret, WORD_SIZE, "%.*s", (int)VG_MIN(s.n, WORD_SIZE - 1), s.p);
}

static unsigned peer_named(const struct vg_report *r, struct vg_slice name)
{
    unsigned i = 0;
    while (i < r->peers_n && !vg_slice_eq(r->peers[i].name, name))
        i++;
    return i;
}

/* The first floor: the one that does the same, TLS included. */
static unsigned floor_of(const struct vg_report *r)
{
    unsigned i = 0;
    while (i < r->peers_n && !r->peers[i].is_floor)
        i++;
    return i;
}

static bool read_target(const struct vg_report *r, const struct vg_json *v, struct target *ret)
{
    const struct vg_json *most = vg_json_get_str(v, "at_most");
    *ret = (struct target){.what = vg_json_text(vg_json_get_str(v, "what")), .is_most = most};
    ret->why = vg_json_text(vg_json_get_str(v, "why"));
    word(v, "scenario", ret->scenario);
    word(v, "where", ret->where);
    word(v, "metric", ret->metric);
    ret->peer = peer_named(r, vg_json_text(vg_json_get_str(v, "peer")));
    struct vg_slice against = vg_json_text(vg_json_get_str(v, "against"));
    ret->against = peer_named(r, against);
    return ret->peer < r->peers_n && (against.n == 0 || ret->against < r->peers_n) &&
           vg_json_to_double(most ? most : vg_json_get_str(v, "at_least"), &ret->bar) == 0;
}

static bool is_met(const struct target *t, double value)
{
    return t->is_most ? value <= t->bar : value >= t->bar;
}

static void verdict_cell(struct vg_page *p, const struct target *t, const struct vg_spread *s)
{
    char text[VG_OUT_TEXT_MAX];
    double over = t->is_most ? s->median / t->bar - 1 : t->bar / s->median - 1;
    int n = 0;
    if (s->n == 0)
        snprintf(text, sizeof text, "not measured");
    else if (is_met(t, s->median))
        snprintf(text, sizeof text, "met");
    else if (isfinite(over) && over < 10)
        n = snprintf(text, sizeof text, "missed by %.0f %%", over * 100);
    else
        n = snprintf(text, sizeof text, "missed");
    if (n > 0 && t->why.n > 0 && t->why.n < sizeof text / 2)
        snprintf(text + n, sizeof text - (size_t)n, ": %.*s", VG_SLICE_ARG(t->why));
    vg_page_cell_str(p, text);
}

/* What the bar is held against: a peer's figure, or its ratio to another's. */
static void measured(const struct vg_report *r, const struct target *t, unsigned peer,
                     struct vg_spread *ret)
{
    struct vg_query q = {t->scenario, t->where, t->metric, NULL, 0};
    *ret = (struct vg_spread){0};
    if (peer < r->peers_n && t->against < r->peers_n)
        vg_query_ratio(r, &q, peer, t->against, ret);
    else if (peer < r->peers_n)
        vg_query_spread(r, &q, peer, ret);
}

/* Where even a bare loop is above a bar, a reader should see it. */
static void floor_cell(struct vg_page *p, const struct target *t, enum vg_unit unit)
{
    unsigned floor = floor_of(p->report);
    char text[VG_SPREAD_SIZE];
    struct vg_spread s;
    measured(p->report, t, floor, &s);
    vg_page_cell_str(p, s.n > 0 && t->against != floor ? vg_spread_text(text, unit, &s) : "");
}

static void target_row(struct vg_page *p, const struct vg_json *v)
{
    const struct vg_report *r = p->report;
    struct vg_spread s;
    struct target t;
    char text[VG_SPREAD_SIZE], figure[VG_FIGURE_SIZE], bar[VG_FIGURE_SIZE + 16];
    double scale;
    if (!read_target(r, v, &t))
        return;
    enum vg_unit unit = vg_unit_of(vg_slice_str(t.metric), &scale);
    bool is_ratio = t.against < r->peers_n;
    measured(r, &t, t.peer, &s);
    unit = is_ratio ? VG_UNIT_TIMES : unit;
    t.bar *= is_ratio ? 1 : scale;
    snprintf(bar, sizeof bar, "%s %s", t.is_most ? "at most" : "at least",
             vg_figure(figure, unit, t.bar));
    vg_page_cell(p, t.what);
    vg_page_cell_str(p, bar);
    vg_page_cell_str(p, vg_spread_text(text, unit, &s));
    floor_cell(p, &t, unit);
    verdict_cell(p, &t, &s);
    vg_page_row_end(p);
}

void vg_page_targets(struct vg_page *p)
{
    const struct vg_json *bars = vg_json_get_str(p->report->root, "bars");
    if (!vg_json_is(bars, VG_JSON_ARRAY) || bars->n == 0)
        return;
    vg_page_heading(p, 2, "Bars");
    vg_page_table(p);
    vg_page_cell_str(p, "what");
    vg_page_cell_str(p, "bar");
    vg_page_cell_str(p, "measured");
    vg_page_cell_str(p, "the floor");
    vg_page_cell_str(p, "");
    vg_page_row_end(p);
    for (size_t i = 0; i < bars->n; i++)
        target_row(p, &bars->items[i]);
    vg_page_table_end(p);
}

/* ---- summary ---- */

/* A server, that is one with more than one scenario; floors and bare watches are not. */
static bool is_in_summary(const struct vg_report *r, unsigned peer)
{
    const struct vg_report_result *one = NULL;
    for (size_t i = 0; i < r->results_n && !r->peers[peer].is_floor; i++) {
        const struct vg_report_result *it = &r->results[i];
        if (it->peer != peer)
            continue;
        if (one && !vg_slice_eq(one->scenario, it->scenario))
            return true;
        one = it;
    }
    return false;
}

/* The last of them, if there are two. */
static unsigned rival_of(const struct vg_report *r)
{
    unsigned rival = r->peers_n;
    for (unsigned i = 0; i < r->peers_n; i++)
        if (i != vg_report_first(r) && is_in_summary(r, i))
            rival = i;
    return rival;
}

static void ratio_cell(struct vg_page *p, const struct vg_query *q, unsigned peer, unsigned against)
{
    char text[VG_SPREAD_SIZE];
    struct vg_spread s;
    vg_query_ratio(p->report, q, peer, against, &s);
    vg_page_cell_str(p, s.n > 0 ? vg_spread_text(text, VG_UNIT_TIMES, &s) : "");
}

static void summary_row(struct vg_page *p, const struct vg_chart_point *at)
{
    const struct vg_report *r = p->report;
    unsigned first = vg_report_first(r), rival = rival_of(r), floor = floor_of(r);
    char text[VG_SPREAD_SIZE];
    vg_page_cell_str(p, at->from->headline);
    for (unsigned i = 0; i < r->peers_n; i++)
        if (is_in_summary(r, i))
            vg_page_cell_str(p, vg_spread_text(text, at->unit, &at->by_peer[i]));
    if (rival < r->peers_n)
        ratio_cell(p, &at->query, rival, first);
    if (floor < r->peers_n)
        ratio_cell(p, &at->query, first, floor);
    vg_page_row_end(p);
}

static void summary_head(struct vg_page *p)
{
    const struct vg_report *r = p->report;
    struct vg_slice first = r->peers_n ? r->peers[vg_report_first(r)].name : VG_SLICE_LIT("");
    unsigned ends[2] = {rival_of(r), floor_of(r)};
    vg_page_cell_str(p, "measured");
    for (unsigned i = 0; i < r->peers_n; i++)
        if (is_in_summary(r, i))
            vg_page_cell(p, r->peers[i].name);
    for (unsigned i = 0; i < VG_ARRAY_LEN(ends); i++)
        if (ends[i] < r->peers_n)
            vg_page_ratio_name(p, r->peers[ends[i]].name, first, i == 1);
    vg_page_row_end(p);
}

static void summary_chart(struct vg_page *p, const struct vg_chart *chart)
{
    struct vg_chart_data d;
    if (!vg_chart_fill(p->report, chart, &d))
        return;
    for (unsigned i = 0; i < d.n; i++) {
        bool is_there = chart->kind != VG_CHART_LINES || d.points[i].x == chart->headline_x;
        if (is_there && d.points[i].from->headline)
            summary_row(p, &d.points[i]);
    }
}

int vg_report_summary(const struct vg_report *r, struct vg_buf *out)
{
    struct vg_out o = {.buf = out};
    struct vg_page p = {.report = r, .o = &o};
    vg_page_table(&p);
    summary_head(&p);
    for (size_t i = 0; vg_charts[i].name; i++)
        summary_chart(&p, &vg_charts[i]);
    vg_page_table_end(&p);
    return o.err;
}
