/* bars.c - figures side by side: for each case a group of bars, one for each peer that has it. */
#include <math.h>
#include <stdio.h>

#include "report_int.h"

#define HEAD 62  /* above the first group */
#define GROUP 22 /* a group's name */
#define BAR 22   /* a bar and the space below it */
#define BAR_THICK 15
#define GAP 10      /* below a group */
#define LABELS 170  /* to the left of the bars: names */
#define FIGURES 210 /* to the right of the longest: its figure */
#define FOOT 10

static unsigned bars_of(const struct vg_chart_data *d, const struct vg_chart_point *p)
{
    unsigned n = 0;
    for (unsigned i = 0; i < d->report->peers_n; i++)
        n += p->by_peer[i].n > 0;
    return n;
}

static double longest(const struct vg_chart_data *d, const struct vg_chart_point *p)
{
    double max = 0;
    for (unsigned i = 0; i < d->report->peers_n; i++)
        if (p->by_peer[i].n > 0)
            max = fmax(max, p->by_peer[i].max);
    return max > 0 && isfinite(max) ? max : 1;
}

/* From 0 to 1, whatever the figure is. */
static double part(double value, double of)
{
    double p = value / of;
    return p > 0 ? fmin(p, 1) : 0;
}

static void draw_figure(const struct vg_chart_data *d, const struct vg_chart_point *p,
                        unsigned peer, double x, int y, struct vg_out *o)
{
    char text[VG_SPREAD_SIZE], ratio[VG_FIGURE_SIZE];
    const struct vg_report *r = d->report;
    unsigned first = vg_report_first(r);
    struct vg_spread times = {0};
    vg_out_printf(o, "<text x=\"%.1f\" y=\"%d\">", x + 8, y + 12);
    vg_out_xml(o, vg_slice_str(vg_spread_text(text, p->unit, &p->by_peer[peer])));
    if (peer != first)
        vg_query_ratio(r, &p->query, peer, first, &times);
    if (times.n > 0) {
        vg_out_put(o, "<tspan class=\"dim\" dx=\"8\">");
        vg_out_xml(o, vg_slice_str(vg_figure(ratio, VG_UNIT_TIMES, times.median)));
        vg_out_put(o, "</tspan>");
    }
    vg_out_put(o, "</text>\n");
}

/* What fits to the left of the bars. */
static void draw_name(struct vg_slice name, struct vg_out *o)
{
    struct vg_slice whole = name;
    while (name.n > 0 && (vg_svg_text_width(name, 12) > LABELS - VG_SVG_MARGIN ||
                          (name.n < whole.n && ((unsigned char)name.p[name.n] & 0xc0) == 0x80)))
        name.n--;
    vg_out_xml(o, name);
    if (name.n < whole.n)
        vg_out_put(o, "...");
}

static void draw_bar(const struct vg_chart_data *d, const struct vg_chart_point *p, unsigned peer,
                     int y, struct vg_out *o)
{
    const struct vg_spread *s = &p->by_peer[peer];
    const int room = VG_SVG_WIDTH - VG_SVG_MARGIN - LABELS - FIGURES;
    double max = longest(d, p), width = fmax(1.5, part(s->median, max) * room), end = width;
    char class[8];
    vg_svg_class(d->report, peer, class);
    vg_out_printf(o, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LABELS - 8, y + 12);
    draw_name(d->report->peers[peer].name, o);
    vg_out_printf(o,
                  "</text>\n<rect class=\"%s\" stroke-width=\"0\" x=\"%d\" y=\"%d\" width=\"%.1f\" "
                  "height=\"%d\" rx=\"2\"/>\n",
                  class, LABELS, y, width, BAR_THICK);
    if (s->n > 1 && s->max > s->min) {
        double from = part(s->min, max) * room, to = part(s->max, max) * room;
        double middle = y + BAR_THICK / 2.0;
        vg_out_printf(o,
                      "<path class=\"range\" d=\"M%.1f %.1fH%.1fM%.1f %.1fv6M%.1f "
                      "%.1fv6\"/>\n",
                      LABELS + from, middle, LABELS + to, LABELS + from, middle - 3, LABELS + to,
                      middle - 3);
        end = fmax(end, to);
    }
    draw_figure(d, p, peer, LABELS + end, y, o);
}

void vg_svg_bars(const struct vg_chart_data *d, bool is_file, struct vg_out *o)
{
    int height = HEAD + FOOT, y = HEAD;
    for (unsigned i = 0; i < d->n; i++)
        height += GROUP + GAP + BAR * (int)bars_of(d, &d->points[i]);
    vg_svg_open(d, is_file, height, o);
    for (unsigned i = 0; i < d->n; i++) {
        const struct vg_chart_point *p = &d->points[i];
        vg_out_printf(o, "<text x=\"%d\" y=\"%d\" font-weight=\"600\">", VG_SVG_MARGIN, y + 13);
        vg_out_xml(o, vg_slice_str(p->label));
        if (d->chart->kind == VG_CHART_LINES) {
            vg_out_put(o, " ");
            vg_out_xml(o, vg_slice_str(d->chart->x_label));
        }
        vg_out_put(o, "</text>\n");
        y += GROUP;
        for (unsigned k = 0; k < d->report->peers_n; k++)
            if (p->by_peer[k].n > 0) {
                draw_bar(d, p, k, y, o);
                y += BAR;
            }
        y += GAP;
    }
    vg_out_put(o, "</svg>\n");
}
