/* page.c - the parts of a page, written as HTML or as Markdown by the same calls. */
#include "report_int.h"

void vg_page_text(struct vg_page *p, struct vg_slice text)
{
    if (p->is_html)
        vg_out_xml(p->o, text);
    else
        vg_out_md(p->o, text);
}

void vg_page_heading(struct vg_page *p, unsigned level, const char *text)
{
    if (p->is_html)
        vg_out_printf(p->o, "<h%u>", level);
    else
        vg_out_printf(p->o, "%.*s ", (int)level, "######");
    vg_page_text(p, vg_slice_str(text));
    if (p->is_html)
        vg_out_printf(p->o, "</h%u>\n", level);
    else
        vg_out_put(p->o, "\n\n");
}

/* Ours, so it may be longer than what texts are cut to. */
void vg_page_paragraph(struct vg_page *p, const char *text)
{
    vg_out_printf(p->o, p->is_html ? "<p>%s</p>\n" : "%s\n\n", text);
}

void vg_page_table(struct vg_page *p)
{
    p->column = p->columns = 0;
    if (p->is_html)
        vg_out_put(p->o, "<div class=\"wide\"><table>\n");
}

void vg_page_cell(struct vg_page *p, struct vg_slice text)
{
    const char *tag = p->columns == 0 ? "th" : "td";
    if (p->is_html) {
        vg_out_printf(p->o, "%s<%s>", p->column == 0 ? "<tr>" : "", tag);
        vg_out_xml(p->o, text);
        vg_out_printf(p->o, "</%s>", tag);
    } else {
        vg_out_put(p->o, p->column == 0 ? "| " : " ");
        vg_out_md(p->o, text);
        vg_out_put(p->o, " |");
    }
    p->column++;
}

void vg_page_cell_str(struct vg_page *p, const char *text)
{
    vg_page_cell(p, vg_slice_str(text));
}

void vg_page_row_end(struct vg_page *p)
{
    vg_out_put(p->o, p->is_html ? "</tr>\n" : "\n");
    if (p->columns == 0) {
        p->columns = p->column;
        for (unsigned i = 0; !p->is_html && i < p->columns; i++)
            vg_out_put(p->o, i == 0 ? "|---|" : "---|");
        if (!p->is_html)
            vg_out_put(p->o, "\n");
    }
    p->column = 0;
}

void vg_page_table_end(struct vg_page *p)
{
    vg_out_put(p->o, p->is_html ? "</table></div>\n" : "\n");
}

/* ---- whole pages ---- */

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
    "<meta name=\"color-scheme\" content=\"light dark\"/>\n<title>vigil bench</title>\n<style>\n"
    "body{font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;"
    "max-width:960px;margin:2em auto;padding:0 1em;line-height:1.45;color:#1f2328;"
    "background:#ffffff}\n"
    "svg.vg{max-width:100%;height:auto}\n.wide{overflow-x:auto}\n"
    "table{border-collapse:collapse;font-size:14px;margin:.8em 0 1.4em}\n"
    "th,td{border:1px solid #d0d7de;padding:.25em .6em;text-align:left;vertical-align:top}\n"
    "th{background:#f6f8fa}\n"
    "@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}"
    "th,td{border-color:#30363d}th{background:#161b22}}\n";

int vg_report_html(const struct vg_report *r, struct vg_buf *out)
{
    struct vg_out o = {.buf = out};
    struct vg_page p = {.report = r, .o = &o, .is_html = true};
    vg_out_put(&o, head);
    vg_svg_style(&o);
    vg_out_put(&o, "\n</style>\n</head>\n<body>\n");
    vg_page_heading(&p, 1, "vigil bench");
    vg_page_origin(&p);
    vg_page_charts(&p);
    vg_page_targets(&p);
    vg_page_failures(&p);
    vg_page_all(&p);
    vg_out_put(&o, "</body>\n</html>\n");
    return o.err;
}

int vg_report_markdown(const struct vg_report *r, const char *charts, struct vg_slice notes,
                       struct vg_buf *out)
{
    struct vg_out o = {.buf = out};
    struct vg_page p = {.report = r, .o = &o, .charts = charts};
    vg_page_heading(&p, 1, "Benchmarks");
    vg_out_printf(
        &o, "<!-- Made by `make bench` from %s/run.json and %s/notes.md: change those. -->\n\n",
        charts, charts);
    vg_page_origin(&p);
    vg_page_targets(&p);
    vg_page_charts(&p);
    vg_page_failures(&p);
    if (o.err == 0)
        o.err = vg_buf_append_slice(out, notes);
    return o.err;
}
