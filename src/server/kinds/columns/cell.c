/* cell.c - looking at objects and putting text; see cell.h. */
#include "cell.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/age.h"
#include "server/kinds/rules/check.h"
#include "server/schema/gotime.h"

/* ---- looking ---- */

const struct vg_json *vg_cell_at(const struct vg_json *v, const char *dotted)
{
    v = vg_json_at_path(v, dotted);
    return vg_json_is(v, VG_JSON_NULL) ? NULL : v;
}

struct vg_slice vg_cell_text(const struct vg_json *v, const char *dotted)
{
    return vg_json_text(vg_cell_at(v, dotted));
}

int64_t vg_cell_int(const struct vg_json *v, const char *dotted)
{
    int64_t i = 0;
    const struct vg_json *at = vg_cell_at(v, dotted);
    return at && vg_json_to_int64(at, &i) == 0 ? i : 0;
}

bool vg_cell_is(const struct vg_json *v, const char *dotted, const char *text)
{
    return vg_slice_eq(vg_cell_text(v, dotted), vg_slice_str(text));
}

bool vg_cell_is_set(const struct vg_json *v, const char *dotted)
{
    return vg_cell_at(v, dotted) != NULL;
}

const struct vg_json *vg_cell_items(const struct vg_json *v, const char *dotted, size_t *ret_n)
{
    const struct vg_json *list = vg_cell_at(v, dotted);
    *ret_n = vg_json_is(list, VG_JSON_ARRAY) ? list->n : 0;
    return *ret_n ? list->items : NULL;
}

const struct vg_json *vg_cell_condition(const struct vg_json *v, const char *type)
{
    size_t n;
    const struct vg_json *items = vg_cell_items(v, "status.conditions", &n);
    for (size_t i = 0; i < n; i++)
        if (vg_cell_is(&items[i], "type", type))
            return &items[i];
    return NULL;
}

bool vg_cell_time(const struct vg_json *v, const char *dotted, int64_t *ret_ms)
{
    struct vg_gotime t;
    struct vg_status why;
    struct vg_slice text = vg_cell_text(v, dotted);
    if (text.n == 0 || vg_gotime_parse(text, false, &t, &why) < 0 || t.s == VG_GOTIME_ZERO_S)
        return false;
    *ret_ms = t.s * 1000 + t.ns / 1000000;
    return true;
}

struct vg_slice vg_cell_annotation(const struct vg_json *v, const char *name)
{
    const struct vg_json *map = vg_cell_at(v, "metadata.annotations");
    return vg_json_text(vg_json_get_str(map, name));
}

/* ---- putting ---- */

void vg_cell_put(struct vg_cell *c, struct vg_slice s)
{
    if (c->err == 0)
        c->err = vg_buf_append_slice(c->text, s);
}

void vg_cell_puts(struct vg_cell *c, const char *s)
{
    vg_cell_put(c, vg_slice_str(s));
}

void vg_cell_printf(struct vg_cell *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (c->err == 0)
        c->err = vg_buf_vprintf(c->text, fmt, ap);
    va_end(ap);
}

void vg_cell_join(struct vg_cell *c, const char *separator, struct vg_slice s)
{
    if (c->text->n)
        vg_cell_puts(c, separator);
    vg_cell_put(c, s);
}

void vg_cell_put_lower(struct vg_cell *c, struct vg_slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        char byte = (char)tolower((unsigned char)s.p[i]);
        vg_cell_put(c, vg_slice(&byte, 1));
    }
}

void vg_cell_put_age(struct vg_cell *c, int64_t since_ms)
{
    char text[VG_AGE_SIZE];
    vg_age_text((c->now_ms - since_ms) / 1000, text);
    vg_cell_puts(c, text);
}

void vg_cell_put_age_of(struct vg_cell *c, const char *dotted, const char *missing)
{
    int64_t ms;
    if (vg_cell_time(c->v, dotted, &ms))
        vg_cell_put_age(c, ms);
    else
        vg_cell_puts(c, missing);
}

/* ---- sets of texts ---- */

void vg_texts_add(struct vg_cell *c, struct vg_texts *t, struct vg_slice s)
{
    if (t->n == t->room) {
        size_t room = t->room ? 2 * t->room : 8;
        struct vg_slice *v = vg_arena_array(c->arena, struct vg_slice, room);
        if (!v) {
            c->err = -ENOMEM;
            return;
        }
        if (t->n)
            memcpy(v, t->v, t->n * sizeof *v);
        t->v = v;
        t->room = room;
    }
    t->v[t->n++] = s;
}

static int compare_texts(const void *a, const void *b)
{
    return vg_slice_cmp(*(const struct vg_slice *)a, *(const struct vg_slice *)b);
}

void vg_texts_sort(struct vg_texts *t)
{
    if (t->n)
        qsort(t->v, t->n, sizeof *t->v, compare_texts);
}

void vg_texts_unique(struct vg_texts *t)
{
    size_t kept = 0;
    vg_texts_sort(t);
    for (size_t i = 0; i < t->n; i++)
        if (kept == 0 || !vg_slice_eq(t->v[kept - 1], t->v[i]))
            t->v[kept++] = t->v[i];
    t->n = kept;
}
