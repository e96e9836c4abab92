/* print.c - how objects look outside of live tables. */
#include <ctype.h>
#include <stdio.h>

#include "print.h"

int vg_print_table(const struct vg_table *t)
{
    VG_AUTO(buf) line = {0};
    if (t->err < 0)
        return vg_cli_no_memory();
    for (size_t i = 0; i < vg_table_rows(t); i++) {
        vg_buf_clear(&line);
        if (vg_table_line(t, i, 0, &line) < 0)
            return vg_cli_no_memory();
        printf("%.*s\n", VG_SLICE_ARG(vg_buf_slice(&line)));
    }
    return vg_cli_flush();
}

void vg_print_name(const struct vg_kind *kind, const struct vigil_object *o)
{
    const char *word = *kind->singular ? kind->singular : kind->r.kind;
    for (; *word; word++)
        putchar(tolower((unsigned char)*word));
    printf("%s%s/%.*s\n", *kind->r.group ? "." : "", kind->r.group,
           VIGIL_TEXT_ARG(vigil_object_name(o)));
}

/* ---- JSON ---- */

struct printer {
    struct vg_buf *out;
    const char *p, *end;
    unsigned depth;
    int err;
};

static void put(struct printer *w, const char *p, size_t n)
{
    if (w->err == 0)
        w->err = vg_buf_append(w->out, p, n);
}

static void put_break(struct printer *w)
{
    if (w->err == 0)
        w->err = vg_buf_printf(w->out, "\n%*s", (int)(w->depth * 4), "");
}

/* Inside a string DEL and C1 controls may stand as they are; written as escapes they mean the same.
 */
static void put_string_char(struct printer *w)
{
    unsigned char c = (unsigned char)w->p[0];
    unsigned char next = w->p + 1 < w->end ? (unsigned char)w->p[1] : 0;
    if (c == 0xc2 && next >= 0x80 && next <= 0x9f) {
        if (w->err == 0)
            w->err = vg_buf_printf(w->out, "\\u%04x", next);
        w->p++;
    } else if (c < 0x20 || c == 0x7f) {
        if (w->err == 0)
            w->err = vg_buf_printf(w->out, "\\u%04x", c);
    } else {
        put(w, w->p, 1);
    }
    w->p++;
}

static void put_string(struct printer *w)
{
    put(w, w->p++, 1);
    while (w->p < w->end && *w->p != '"') {
        if (*w->p == '\\')
            put(w, w->p++, 1);
        if (w->p < w->end)
            put_string_char(w);
    }
    if (w->p < w->end)
        put(w, w->p++, 1);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static void skip_space(struct printer *w)
{
    while (w->p < w->end && is_space(*w->p))
        w->p++;
}

static void put_open(struct printer *w)
{
    put(w, w->p++, 1);
    skip_space(w);
    if (w->p < w->end && (*w->p == '}' || *w->p == ']')) {
        put(w, w->p++, 1);
        return;
    }
    w->depth++;
    put_break(w);
}

static void put_token(struct printer *w)
{
    switch (*w->p) {
    case '"':
        put_string(w);
        break;
    case '{':
    case '[':
        put_open(w);
        break;
    case '}':
    case ']':
        w->depth -= w->depth > 0;
        put_break(w);
        put(w, w->p++, 1);
        break;
    case ',':
        put(w, w->p++, 1);
        put_break(w);
        break;
    case ':':
        put(w, ": ", 2);
        w->p++;
        break;
    default:
        put_string_char(w);
    }
}

int vg_print_json(struct vg_buf *out, struct vigil_text json, unsigned depth)
{
    struct printer w = {.out = out, .p = json.p, .end = json.p + json.n, .depth = depth};
    for (skip_space(&w); w.p < w.end && w.err == 0; skip_space(&w))
        put_token(&w);
    return w.err;
}

int vg_print_json_line(struct vg_buf *out, struct vigil_text json)
{
    struct printer w = {.out = out, .p = json.p, .end = json.p + json.n};
    while (w.p < w.end && w.err == 0) {
        if (*w.p == '"')
            put_string(&w);
        else if (is_space(*w.p))
            w.p++;
        else
            put_string_char(&w);
    }
    return w.err;
}
