/* figure.c - figures as a person reads them, and text that cannot break out of its page. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report_int.h"

/* ---- output ---- */

void vg_out_put(struct vg_out *o, const char *text)
{
    if (o->err == 0)
        o->err = vg_buf_append(o->buf, text, strlen(text));
}

void vg_out_printf(struct vg_out *o, const char *fmt, ...)
{
    va_list ap;
    if (o->err < 0)
        return;
    va_start(ap, fmt);
    o->err = vg_buf_vprintf(o->buf, fmt, ap);
    va_end(ap);
}

/* Cut at VG_OUT_TEXT_MAX, not inside a character. */
static struct vg_slice cut(struct vg_slice text)
{
    if (text.n <= VG_OUT_TEXT_MAX)
        return text;
    text.n = VG_OUT_TEXT_MAX;
    while (text.n > 0 && ((unsigned char)text.p[text.n] & 0xc0) == 0x80)
        text.n--;
    return text;
}

static const char *xml_name(char c)
{
    switch (c) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    case '"':
        return "&quot;";
    default:
        return NULL;
    }
}

/* U+FFFE and U+FFFF are no characters of XML, nor are most below 32. */
static bool is_forbidden(struct vg_slice text, size_t i)
{
    const unsigned char *p = (const unsigned char *)text.p + i;
    return (*p < 32 || *p == 127) ||
           (*p == 0xef && text.n - i >= 3 && p[1] == 0xbf && (p[2] == 0xbe || p[2] == 0xbf));
}

void vg_out_xml(struct vg_out *o, struct vg_slice text)
{
    text = cut(text);
    for (size_t i = 0; i < text.n && o->err == 0; i++) {
        const char *name = xml_name(text.p[i]);
        if (name) {
            vg_out_put(o, name);
        } else if (is_forbidden(text, i)) {
            vg_out_put(o, "?");
            i += (unsigned char)text.p[i] == 0xef ? 2 : 0;
        } else {
            o->err = vg_buf_append_byte(o->buf, text.p[i]);
        }
    }
}

void vg_out_md(struct vg_out *o, struct vg_slice text)
{
    text = cut(text);
    for (size_t i = 0; i < text.n && o->err == 0; i++) {
        char c = text.p[i];
        if (is_forbidden(text, i))
            c = ' ';
        if (c == '<')
            vg_out_put(o, "&lt;");
        else if (strchr("|`*[]\\", c))
            vg_out_printf(o, "\\%c", c);
        else
            o->err = vg_buf_append_byte(o->buf, c);
    }
}

/* ---- units ---- */

static bool has_word(struct vg_slice name, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= name.n; i++) {
        bool begins = i == 0 || name.p[i - 1] == '_',
             ends = i + n == name.n || name.p[i + n] == '_';
        if (begins && ends && memcmp(name.p + i, word, n) == 0)
            return true;
    }
    return false;
}

enum vg_unit vg_unit_of(struct vg_slice metric, double *ret_scale)
{
    struct vg_slice rate = VG_SLICE_LIT("_per_s");
    *ret_scale = 1;
    if (metric.n > rate.n && memcmp(metric.p + metric.n - rate.n, rate.p, rate.n) == 0)
        return VG_UNIT_RATE;
    if (has_word(metric, "bytes"))
        return VG_UNIT_BYTES;
    if (has_word(metric, "us"))
        *ret_scale = 1e-6;
    else if (has_word(metric, "ms"))
        *ret_scale = 1e-3;
    else if (!has_word(metric, "s"))
        return VG_UNIT_NONE;
    return VG_UNIT_SECONDS;
}

struct step {
    double from; /* the least that is shown so */
    double by;
    const char *name;
};
static const struct step seconds[] = {{1, 1, " s"}, {1e-3, 1e-3, " ms"}, {0, 1e-6, " µs"}};
static const struct step bytes[] = {
    {1e9, 1e9, " GB"}, {1e6, 1e6, " MB"}, {1e3, 1e3, " KB"}, {0, 1, " bytes"}};
static const struct step rate[] = {{0, 1, "/s"}};
static const struct step times[] = {{0, 1, "x"}};
static const struct step none[] = {{0, 1, ""}};

static const struct step *step_of(enum vg_unit unit, double value)
{
    const struct step *s = unit == VG_UNIT_SECONDS ? seconds
                           : unit == VG_UNIT_BYTES ? bytes
                           : unit == VG_UNIT_RATE  ? rate
                           : unit == VG_UNIT_TIMES ? times
                                                   : none;
    while (s->from > 0 && fabs(value) < s->from * 0.9995) /* 999.7 us reads as 1 ms */
        s++;
    return s;
}

/* Commas between thousands; `digits` is a whole number below 10^15. */
static void with_commas(char buf[VG_FIGURE_SIZE], double value)
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%.0f", fabs(value)), at = 0;
    if (value < 0)
        buf[at++] = '-';
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = '\0';
}

static void number(char buf[VG_FIGURE_SIZE], double value)
{
    double size = fabs(value);
    if (!(size < 1e15))
        snprintf(buf, VG_FIGURE_SIZE, "%.3g", value);
    else if (size >= 999.5)
        with_commas(buf, value);
    else if (fabs(value - round(value)) <= 1e-9 * size || size >= 99.95)
        snprintf(buf, VG_FIGURE_SIZE, "%.0f", value);
    else
        snprintf(buf, VG_FIGURE_SIZE, "%.*f",
                 size >= 9.995     ? 1
                 : size >= 0.9995  ? 2
                 : size >= 0.09995 ? 2
                                   : 3,
                 value);
}

const char *vg_figure(char buf[VG_FIGURE_SIZE], enum vg_unit unit, double value)
{
    const struct step *s = step_of(unit, value);
    number(buf, value / s->by);
    size_t n = strlen(buf);
    snprintf(buf + n, VG_FIGURE_SIZE - n, "%s", s->name);
    return buf;
}

/* Both ends in the unit of the median, which is said once. */
const char *vg_spread_text(char buf[VG_SPREAD_SIZE], enum vg_unit unit, const struct vg_spread *s)
{
    char median[VG_FIGURE_SIZE], low[VG_FIGURE_SIZE], high[VG_FIGURE_SIZE];
    if (s->n == 0) {
        snprintf(buf, VG_SPREAD_SIZE, "-");
        return buf;
    }
    double by = step_of(unit, s->median)->by;
    vg_figure(median, unit, s->median);
    number(low, s->min / by);
    number(high, s->max / by);
    const char *note = s->was_limited ? " *" : "";
    if (s->n == 1)
        snprintf(buf, VG_SPREAD_SIZE, "%s%s", median, note);
    else
        snprintf(buf, VG_SPREAD_SIZE, "%s (%s..%s)%s", median, low, high, note);
    return buf;
}
