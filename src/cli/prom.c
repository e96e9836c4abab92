/* prom.c - the Prometheus text format. */
#include <stdlib.h>

#include "prom.h"

/* The end of a quoted text that begins behind its first quote; NULL: there is none. */
static const char *end_of_quoted(const char *p, const char *end)
{
    while (p < end && *p != '"')
        p += *p == '\\' ? 2 : 1;
    return p < end ? p : NULL;
}

/* The closing brace of labels, which may hold one in quotes. */
static const char *end_of_labels(const char *p, const char *end)
{
    for (; p && p < end && *p != '}'; p++)
        if (*p == '"' && !(p = end_of_quoted(p + 1, end)))
            return NULL;
    return p && p < end ? p : NULL;
}

static bool read_value(const char *p, const char *end, double *ret)
{
    char text[64], *stop;
    while (p < end && *p == ' ')
        p++;
    size_t n = VG_MIN((size_t)(end - p), sizeof text - 1);
    memcpy(text, p, n);
    text[n] = 0;
    *ret = strtod(text, &stop);
    return stop != text && (*stop == 0 || *stop == ' ' || *stop == '\r');
}

static bool read_sample(struct vg_slice line, struct vg_prom *ret)
{
    const char *p = line.p, *end = line.p + line.n;
    if (p == end || *p == '#')
        return false;
    while (p < end && *p != ' ' && *p != '{')
        p++;
    ret->name = vg_slice(line.p, (size_t)(p - line.p));
    ret->labels = vg_slice(p, 0);
    if (p < end && *p == '{') {
        const char *close = end_of_labels(p + 1, end);
        if (!close)
            return false;
        ret->labels = vg_slice(p + 1, (size_t)(close - p - 1));
        p = close + 1;
    }
    return read_value(p, end, &ret->value);
}

bool vg_prom_next(struct vg_slice *text, struct vg_prom *ret)
{
    while (text->n) {
        const char *stop = memchr(text->p, '\n', text->n);
        size_t n = stop ? (size_t)(stop - text->p) : text->n;
        struct vg_slice line = {text->p, n};
        n += stop != NULL;
        *text = (struct vg_slice){text->p + n, text->n - n};
        if (read_sample(line, ret))
            return true;
    }
    return false;
}

struct vg_slice vg_prom_label(const struct vg_prom *s, const char *name)
{
    const char *p = s->labels.p, *end = p + s->labels.n;
    while (p < end) {
        const char *key = p, *value = memchr(p, '=', (size_t)(end - p));
        if (!value || value + 1 >= end || value[1] != '"')
            break;
        const char *stop = end_of_quoted(value + 2, end);
        if (!stop)
            break;
        if (vg_slice_eq(vg_slice(key, (size_t)(value - key)), vg_slice_str(name)))
            return vg_slice(value + 2, (size_t)(stop - value - 2));
        for (p = stop + 1; p < end && (*p == ',' || *p == ' ');)
            p++;
    }
    return vg_slice(NULL, 0);
}
