/* report_int.h - what the files of this room share: questions to a report, charts, figures as text,
 * and output whose errors are told at the end. Thread: main. */
#ifndef VG_CLI_REPORT_REPORT_INT_H
#define VG_CLI_REPORT_REPORT_INT_H

#include "report.h"

/* ---- output: the first error sticks, later calls do nothing ---- */

struct vg_out {
    struct vg_buf *buf;
    int err;
};
void vg_out_put(struct vg_out *o, const char *text);
void vg_out_printf(struct vg_out *o, const char *fmt, ...) VG_PRINTF(2, 3);
/* Text of an HTML or SVG page, at most VG_OUT_TEXT_MAX bytes of it, cut at a character. */
#define VG_OUT_TEXT_MAX 200u
void vg_out_xml(struct vg_out *o, struct vg_slice text);
/* Text in a Markdown table: one line that cannot end its cell or begin a tag. */
void vg_out_md(struct vg_out *o, struct vg_slice text);

/* ---- figures ---- */

enum vg_unit { VG_UNIT_NONE, VG_UNIT_SECONDS, VG_UNIT_BYTES, VG_UNIT_RATE, VG_UNIT_TIMES };

/* Of a metric, by its name: what follows tells how many of the unit one of the metric's is. */
enum vg_unit vg_unit_of(struct vg_slice metric, double *ret_scale);

#define VG_FIGURE_SIZE 48u
/* "7.13 µs", "41.2 MB", "1,109/s", "1.04x"; three digits that count. */
const char *vg_figure(char buf[VG_FIGURE_SIZE], enum vg_unit unit, double value);

/* Over rounds; n 0: never measured. */
struct vg_spread {
    unsigned n;
    double median, min, max;
    bool was_limited;
};
#define VG_SPREAD_SIZE 160u
/* "7.13 µs (6.90..7.40)", "-" for none, no spread for one round. */
const char *vg_spread_text(char buf[VG_SPREAD_SIZE], enum vg_unit unit, const struct vg_spread *s);

/* ---- questions ---- */

/* A figure of each round; the last one when a round has several. */
struct vg_rounds {
    double value[VG_REPORT_ROUNDS_MAX];
    bool has[VG_REPORT_ROUNDS_MAX], was_limited;
};
void vg_rounds_add(struct vg_rounds *all, const struct vg_report_result *from, double value);
void vg_rounds_spread(const struct vg_rounds *all, struct vg_spread *ret);

/* Fill text, hash and row of the results. 0, -ENOMEM, VIGIL_E_TOO_LARGE. */
VG_CHECK int vg_report_group(struct vg_report *r);
void vg_row_spread(const struct vg_report *r, size_t row, struct vg_slice metric, unsigned peer,
                   struct vg_spread *ret);
/* Whether a result of the row before the one at `before` has that metric. */
bool vg_row_has_metric(const struct vg_report *r, size_t row, size_t before,
                       struct vg_slice metric);

/* Results of a scenario whose parameters are as `where` says: "tls=true watchers=1000". A parameter
 * that a result does not have does not matter to it. */
struct vg_query {
    const char *scenario, *where, *metric;
    const char *x; /* NULL, or a parameter that must be x_value */
    double x_value;
};
bool vg_query_matches(const struct vg_query *q, const struct vg_report_result *result);
/* A parameter as a number. */
bool vg_query_param(const struct vg_report_result *result, const char *name, double *ret);
void vg_query_spread(const struct vg_report *r, const struct vg_query *q, unsigned peer,
                     struct vg_spread *ret);
/* Of one peer's figure to another's, taken within each round. */
void vg_query_ratio(const struct vg_report *r, const struct vg_query *q, unsigned peer,
                    unsigned against, struct vg_spread *ret);

/* ---- charts ---- */

#define VG_CHART_CASES_MAX 6u
#define VG_CHART_POINTS_MAX 16u

enum vg_chart_kind {
    VG_CHART_LINES, /* how a figure grows with a parameter, both in powers of ten */
    VG_CHART_BARS,  /* figures side by side */
    VG_CHART_TABLE, /* counts, which need no picture */
};

struct vg_chart_case {
    const char *label, *scenario, *where, *metric;
    const char *headline; /* NULL, or what the summary calls it */
};

struct vg_chart {
    const char *name, *title, *about;
    enum vg_chart_kind kind;
    const char *x, *x_label; /* LINES: the parameter, and its name for a reader */
    double headline_x;       /* LINES: where the summary looks */
    bool is_less_better;
    struct vg_chart_case cases[VG_CHART_CASES_MAX]; /* LINES: one; ended by no label */
};
/* Ended by one without a name. */
extern const struct vg_chart vg_charts[];

struct vg_chart_point {
    char label[VG_FIGURE_SIZE];
    double x; /* LINES */
    struct vg_query query;
    const struct vg_chart_case *from;
    enum vg_unit unit;
    struct vg_spread by_peer[VG_REPORT_PEERS_MAX]; /* in the unit: seconds, bytes, ... */
};

/* A chart with its figures. */
struct vg_chart_data {
    const struct vg_report *report;
    const struct vg_chart *chart;
    unsigned n;
    struct vg_chart_point points[VG_CHART_POINTS_MAX];
    bool is_used[VG_REPORT_PEERS_MAX];
};
/* Whether there is anything to show. */
bool vg_chart_fill(const struct vg_report *r, const struct vg_chart *chart,
                   struct vg_chart_data *ret);

/* ---- pictures ---- */

/* A page states the style once, a file brings it along. */
void vg_svg_style(struct vg_out *o);
/* Append the chart as an element <svg>. */
void vg_svg_chart(const struct vg_chart_data *d, bool is_file, struct vg_out *o);
void vg_svg_bars(const struct vg_chart_data *d, bool is_file, struct vg_out *o);
void vg_svg_lines(const struct vg_chart_data *d, bool is_file, struct vg_out *o);

#define VG_SVG_WIDTH 760
#define VG_SVG_MARGIN 16
/* Opens the element: background, title, and the line below it. */
void vg_svg_open(const struct vg_chart_data *d, bool is_file, int height, struct vg_out *o);
/* The peers and their marks from y on; returns where it ends. With o NULL only that. */
int vg_svg_legend(const struct vg_chart_data *d, int y, struct vg_out *o);
/* The class of a peer's colour: "c0" to "c7", floors "f0" on. */
void vg_svg_class(const struct vg_report *r, unsigned peer, char buf[8]);
/* A mark of the peer's own shape. */
void vg_svg_mark(const struct vg_report *r, unsigned peer, double x, double y, struct vg_out *o);
/* About how wide a text of that many characters is. */
int vg_svg_text_width(struct vg_slice text, int size);

/* ---- pages: the same parts as HTML or as Markdown ---- */

struct vg_page {
    const struct vg_report *report;
    struct vg_out *o;
    bool is_html;
    const char *charts; /* Markdown: the folder of the pictures */
    unsigned column;    /* of a table that is being written */
    unsigned columns;   /* of its head; 0 while that is written */
};
void vg_page_heading(struct vg_page *p, unsigned level, const char *text);
void vg_page_paragraph(struct vg_page *p, const char *text);
void vg_page_text(struct vg_page *p, struct vg_slice text);
/* A table: open, cells and ends of rows, close. The first row is its head. */
void vg_page_table(struct vg_page *p);
void vg_page_cell(struct vg_page *p, struct vg_slice text);
void vg_page_cell_str(struct vg_page *p, const char *text);
/* "a / b", or "b / a" */
void vg_page_ratio_name(struct vg_page *p, struct vg_slice a, struct vg_slice b, bool is_swapped);
void vg_page_row_end(struct vg_page *p);
void vg_page_table_end(struct vg_page *p);
/* Sections. */
void vg_page_origin(struct vg_page *p);
void vg_page_charts(struct vg_page *p);
void vg_page_targets(struct vg_page *p);
void vg_page_failures(struct vg_page *p);
void vg_page_all(struct vg_page *p);

/* The first that is no floor: what all are compared with; 0 if there is none. */
unsigned vg_report_first(const struct vg_report *r);
/* A member of the file's "machine", or with NULL of the file itself; empty if it is not there. */
struct vg_slice vg_report_text(const struct vg_report *r, const char *object, const char *key);

#endif
