/* svg.c - what all charts share: colours, frame, legend, marks.
 * Colours are those of Okabe and Ito, which people who see few colours can tell apart; each peer
 * has a shape of its own too. A chart brings its background along, light or dark as its reader
 * prefers, so that it is legible wherever it is shown. */
#include <stdio.h>

#include "report_int.h"

#define LEGEND_LINE 20
#define LEGEND_FONT 12
#define LEGEND_MARK 22 /* a piece of the line */

static const char style[] =
    "svg.vg{font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;"
    "font-size:12px}"
    ".vg .bg{fill:#ffffff;stroke:#d0d7de}.vg text{fill:#1f2328}.vg .dim{fill:#59636e}"
    ".vg .grid{stroke:#d8dee4;stroke-width:1}.vg .minor{stroke:#eef1f4;stroke-width:1}"
    ".vg .axis{stroke:#8c959f;stroke-width:1}.vg .range{stroke:#1f2328;opacity:.6;fill:none}"
    ".vg .line{fill:none;stroke-width:2.2}.vg .whisker{stroke-width:1.3;opacity:.75}"
    ".vg .c0{fill:#0072b2;stroke:#0072b2}.vg .c1{fill:#56b4e9;stroke:#56b4e9}"
    ".vg .c2{fill:#d55e00;stroke:#d55e00}.vg .c3{fill:#b8860b;stroke:#b8860b}"
    ".vg .c4{fill:#009e73;stroke:#009e73}.vg .c5{fill:#cc79a7;stroke:#cc79a7}"
    ".vg .f{fill:#8c959f;stroke:#6e7781}"
    ".vg .line.f{stroke-dasharray:6 4}.vg .f1.line{stroke-dasharray:2 3}"
    ".vg .line{fill:none}"
    "@media(prefers-color-scheme:dark){"
    ".vg .bg{fill:#0d1117;stroke:#30363d}.vg text{fill:#e6edf3}.vg .dim{fill:#9198a1}"
    ".vg .grid{stroke:#30363d}.vg .minor{stroke:#1c2128}.vg .axis{stroke:#656c76}"
    ".vg .range{stroke:#e6edf3}"
    ".vg .c0{fill:#3da5e8;stroke:#3da5e8}.vg .c1{fill:#9fd4f5;stroke:#9fd4f5}"
    ".vg .c2{fill:#f08a3c;stroke:#f08a3c}.vg .c3{fill:#e3b341;stroke:#e3b341}"
    ".vg .c4{fill:#2fc79b;stroke:#2fc79b}.vg .c5{fill:#e5a6c8;stroke:#e5a6c8}"
    ".vg .f{fill:#656c76;stroke:#9198a1}.vg .line{fill:none}}";

#define COLOURS 6u
#define SHAPES 5u

/* A line needs two points. */
static bool is_lines(const struct vg_chart_data *d)
{
    return d->chart->kind == VG_CHART_LINES && d->n > 1;
}

void vg_svg_style(struct vg_out *o)
{
    vg_out_put(o, style);
}

/* Its place among the floors, or among the others. */
static unsigned rank_of(const struct vg_report *r, unsigned peer)
{
    unsigned rank = 0;
    for (unsigned i = 0; i < peer; i++)
        rank += r->peers[i].is_floor == r->peers[peer].is_floor;
    return rank;
}

void vg_svg_class(const struct vg_report *r, unsigned peer, char buf[8])
{
    unsigned rank = rank_of(r, peer);
    if (r->peers[peer].is_floor)
        snprintf(buf, 8, "f f%u", rank % 10);
    else
        snprintf(buf, 8, "c%u", rank % COLOURS);
}

int vg_svg_text_width(struct vg_slice text, int size)
{
    int characters = 0;
    for (size_t i = 0; i < VG_MIN(text.n, VG_OUT_TEXT_MAX); i++)
        characters += ((unsigned char)text.p[i] & 0xc0) != 0x80;
    return characters * size * 58 / 100;
}

void vg_svg_mark(const struct vg_report *r, unsigned peer, double x, double y, struct vg_out *o)
{
    char class[8];
    unsigned shape = rank_of(r, peer) % SHAPES;
    vg_svg_class(r, peer, class);
    if (r->peers[peer].is_floor)
        vg_out_printf(o, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"6\" height=\"2\"/>\n",
                      class, x - 3, y - 1);
    else if (shape == 0)
        vg_out_printf(o, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.2\"/>\n", class, x, y);
    else if (shape == 1)
        vg_out_printf(o,
                      "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"7.6\" height=\"7.6\"/>\n",
                      class, x - 3.8, y - 3.8);
    else if (shape == 2)
        vg_out_printf(o, "<path class=\"%s\" d=\"M%.1f %.1fl5 8.6h-10z\"/>\n", class, x, y - 5.4);
    else if (shape == 3)
        vg_out_printf(o, "<path class=\"%s\" d=\"M%.1f %.1fl5 5l-5 5l-5 -5z\"/>\n", class, x,
                      y - 5);
    else
        vg_out_printf(o, "<path class=\"%s\" d=\"M%.1f %.1fl5 -8.6h-10z\"/>\n", class, x, y + 5.4);
}

static void subtitle(const struct vg_chart_data *d, struct vg_out *o)
{
    unsigned rounds = 0;
    for (unsigned i = 0; i < d->n; i++)
        for (unsigned k = 0; k < d->report->peers_n; k++)
            rounds = VG_MAX(rounds, d->points[i].by_peer[k].n);
    vg_out_printf(o, "<text class=\"dim\" x=\"%d\" y=\"46\">%s", VG_SVG_MARGIN,
                  d->chart->is_less_better ? "less is better" : "more is better");
    if (rounds > 1)
        vg_out_printf(o, "; median and range of %u rounds", rounds);
    if (is_lines(d))
        vg_out_put(o, "; both axes in powers of ten");
    else if (d->n > 1)
        vg_out_put(o, "; each group has its own scale");
    if (!is_lines(d) && d->report->peers_n > 1) {
        vg_out_put(o, "; in grey: multiples of ");
        vg_out_xml(o, d->report->peers[vg_report_first(d->report)].name);
    }
    vg_out_put(o, "</text>\n");
}

void vg_svg_open(const struct vg_chart_data *d, bool is_file, int height, struct vg_out *o)
{
    vg_out_printf(o,
                  "<svg class=\"vg\" %sviewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
                  "role=\"img\">\n<title>",
                  is_file ? "xmlns=\"http://www.w3.org/2000/svg\" " : "", VG_SVG_WIDTH, height,
                  VG_SVG_WIDTH, height);
    vg_out_xml(o, vg_slice_str(d->chart->title));
    vg_out_put(o, "</title>\n");
    if (is_file) {
        vg_out_put(o, "<style>");
        vg_svg_style(o);
        vg_out_put(o, "</style>\n");
    }
    vg_out_printf(o,
                  "<rect class=\"bg\" x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n"
                  "<text x=\"%d\" y=\"28\" font-size=\"16\" font-weight=\"600\">",
                  VG_SVG_WIDTH - 1, height - 1, VG_SVG_MARGIN);
    vg_out_xml(o, vg_slice_str(d->chart->title));
    vg_out_put(o, "</text>\n");
    subtitle(d, o);
}

static void legend_mark(const struct vg_report *r, unsigned peer, int x, int y, struct vg_out *o)
{
    char class[8];
    vg_svg_class(r, peer, class);
    vg_out_printf(o, "<path class=\"%s line\" d=\"M%d %dh%d\"/>\n", class, x, y, LEGEND_MARK);
    if (!r->peers[peer].is_floor)
        vg_svg_mark(r, peer, x + LEGEND_MARK / 2.0, y, o);
}

int vg_svg_legend(const struct vg_chart_data *d, int y, struct vg_out *o)
{
    int x = VG_SVG_MARGIN;
    for (unsigned i = 0; i < d->report->peers_n; i++) {
        struct vg_slice name = d->report->peers[i].name;
        int width = LEGEND_MARK + 6 + vg_svg_text_width(name, LEGEND_FONT) + 14;
        if (!d->is_used[i])
            continue;
        if (x > VG_SVG_MARGIN && x + width > VG_SVG_WIDTH - VG_SVG_MARGIN) {
            x = VG_SVG_MARGIN;
            y += LEGEND_LINE;
        }
        if (o) {
            legend_mark(d->report, i, x, y - 4, o);
            vg_out_printf(o, "<text x=\"%d\" y=\"%d\">", x + LEGEND_MARK + 6, y);
            vg_out_xml(o, name);
            vg_out_put(o, "</text>\n");
        }
        x += width;
    }
    return y + LEGEND_LINE;
}

void vg_svg_chart(const struct vg_chart_data *d, bool is_file, struct vg_out *o)
{
    if (is_lines(d))
        vg_svg_lines(d, is_file, o);
    else
        vg_svg_bars(d, is_file, o);
}

int vg_report_chart(const struct vg_report *r, size_t i, struct vg_buf *out, const char **ret_name)
{
    struct vg_out o = {.buf = out};
    struct vg_chart_data d;
    size_t before = out->n;
    for (size_t k = 0; k <= i; k++) {
        *ret_name = vg_charts[k].name;
        if (!*ret_name)
            return 0;
    }
    if (vg_charts[i].kind == VG_CHART_TABLE || !vg_chart_fill(r, &vg_charts[i], &d))
        return 0;
    vg_svg_chart(&d, true, &o);
    if (o.err < 0)
        out->n = before;
    return o.err < 0 ? o.err : 1;
}
