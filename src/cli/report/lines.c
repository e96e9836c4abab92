/* lines.c - how a figure grows with work: both axes in powers of ten, a line for each peer,
 * whiskers from the least to the most of the rounds. Figures that are not above 0 have no place
 * there. */
#include <math.h>
#include <stdio.h>

#include "report_int.h"

#define HEAD 66
#define LEFT 78
#define RIGHT 22
#define PLOT_HEIGHT 300
#define BOTTOM 52
/* Decades shown at most: figures further apart would be drawn at the edge. */
#define DECADES_MAX 12

struct axis {
    int low, high;     /* powers of ten at its ends */
    double from, size; /* in the picture */
};

struct plot {
    const struct vg_chart_data *d;
    struct axis x, y;
    int top;
    struct vg_out *o;
};

static void widen(double *low, double *high, double value)
{
    if (!(value > 0) || !isfinite(value))
        return;
    *low = fmin(*low, value);
    *high = fmax(*high, value);
}

static void axis_for(struct axis *a, double low, double high)
{
    if (!(low <= high))
        low = high = 1;
    a->low = (int)floor(log10(low) + 1e-9);
    a->high = (int)ceil(log10(high) - 1e-9);
    if (a->high <= a->low)
        a->high = a->low + 1;
    if (a->high - a->low > DECADES_MAX)
        a->low = a->high - DECADES_MAX;
}

static double place(const struct axis *a, double value)
{
    double at = (log10(value) - a->low) / (a->high - a->low);
    return a->from + a->size * fmin(fmax(at, 0), 1);
}

static void find_axes(struct plot *p)
{
    double low = INFINITY, high = 0, left = INFINITY, right = 0;
    const struct vg_chart_data *d = p->d;
    for (unsigned i = 0; i < d->n; i++) {
        widen(&left, &right, d->points[i].x);
        for (unsigned k = 0; k < d->report->peers_n; k++)
            if (d->points[i].by_peer[k].n > 0) {
                widen(&low, &high, d->points[i].by_peer[k].min);
                widen(&low, &high, d->points[i].by_peer[k].max);
            }
    }
    axis_for(&p->x, left, right);
    axis_for(&p->y, low, high);
    p->x.from = LEFT;
    p->x.size = VG_SVG_WIDTH - LEFT - RIGHT;
    p->y.from = p->top + PLOT_HEIGHT;
    p->y.size = -PLOT_HEIGHT;
}

static void draw_y_axis(const struct plot *p)
{
    char text[VG_FIGURE_SIZE];
    for (int e = p->y.low; e <= p->y.high; e++) {
        double y = place(&p->y, pow(10, e));
        for (int k = 2; e < p->y.high && k < 10; k++) {
            double minor = place(&p->y, k * pow(10, e));
            vg_out_printf(p->o, "<path class=\"minor\" d=\"M%d %.1fH%d\"/>\n", LEFT, minor,
                          VG_SVG_WIDTH - RIGHT);
        }
        vg_out_printf(p->o,
                      "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n"
                      "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">",
                      LEFT, y, VG_SVG_WIDTH - RIGHT, LEFT - 8, y + 4);
        vg_out_xml(p->o, vg_slice_str(vg_figure(text, p->d->points[0].unit, pow(10, e))));
        vg_out_put(p->o, "</text>\n");
    }
}

static void draw_x_axis(const struct plot *p)
{
    char text[VG_FIGURE_SIZE];
    int bottom = p->top + PLOT_HEIGHT;
    for (int e = p->x.low; e <= p->x.high; e++) {
        double x = place(&p->x, pow(10, e));
        const char *anchor = e == p->x.high ? "end" : "middle";
        vg_out_printf(p->o,
                      "<path class=\"grid\" d=\"M%.1f %dV%d\"/>\n"
                      "<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">",
                      x, p->top, bottom, x, bottom + 18, anchor);
        vg_out_xml(p->o, vg_slice_str(vg_figure(text, VG_UNIT_NONE, pow(10, e))));
        vg_out_put(p->o, "</text>\n");
    }
    vg_out_printf(p->o,
                  "<path class=\"axis\" fill=\"none\" d=\"M%d %dV%dH%d\"/>\n"
                  "<text class=\"dim\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
                  LEFT, p->top, bottom, VG_SVG_WIDTH - RIGHT,
                  LEFT + (VG_SVG_WIDTH - LEFT - RIGHT) / 2, bottom + 38);
    vg_out_xml(p->o, vg_slice_str(p->d->chart->x_label));
    vg_out_put(p->o, "</text>\n");
}

static bool is_shown(const struct vg_spread *s)
{
    return s->n > 0 && s->median > 0 && isfinite(s->median);
}

static void draw_whisker(const struct plot *p, const struct vg_spread *s, const char *class,
                         double x)
{
    if (s->n < 2 || !(s->min > 0) || !(s->max > s->min))
        return;
    double low = place(&p->y, s->min), high = place(&p->y, s->max);
    vg_out_printf(p->o,
                  "<path class=\"%s whisker\" d=\"M%.1f %.1fV%.1fM%.1f %.1fh6M%.1f %.1fh6\"/>\n",
                  class, x, low, high, x - 3, low, x - 3, high);
}

static void draw_peer(const struct plot *p, unsigned peer)
{
    const struct vg_chart_data *d = p->d;
    char class[8];
    unsigned n = 0;
    vg_svg_class(d->report, peer, class);
    vg_out_printf(p->o, "<path class=\"%s line\" d=\"", class);
    for (unsigned i = 0; i < d->n; i++) {
        const struct vg_spread *s = &d->points[i].by_peer[peer];
        if (is_shown(s))
            vg_out_printf(p->o, "%c%.1f %.1f", n++ == 0 ? 'M' : 'L', place(&p->x, d->points[i].x),
                          place(&p->y, s->median));
    }
    vg_out_put(p->o, "\"/>\n");
    for (unsigned i = 0; i < d->n; i++) {
        const struct vg_spread *s = &d->points[i].by_peer[peer];
        double x = place(&p->x, d->points[i].x);
        if (!is_shown(s))
            continue;
        draw_whisker(p, s, class, x);
        vg_svg_mark(d->report, peer, x, place(&p->y, s->median), p->o);
    }
}

void vg_svg_lines(const struct vg_chart_data *d, bool is_file, struct vg_out *o)
{
    struct plot p = {.d = d, .o = o};
    int legend = HEAD;
    p.top = vg_svg_legend(d, legend, NULL) - 4;
    find_axes(&p);
    vg_svg_open(d, is_file, p.top + PLOT_HEIGHT + BOTTOM, o);
    (void)vg_svg_legend(d, legend, o);
    draw_y_axis(&p);
    draw_x_axis(&p);
    /* floors first: the others are drawn over them */
    for (int floors = 1; floors >= 0; floors--)
        for (unsigned i = 0; i < d->report->peers_n; i++)
            if (d->is_used[i] && d->report->peers[i].is_floor == (floors == 1))
                draw_peer(&p, i);
    vg_out_put(o, "</svg>\n");
}
