/* selector.c - labels and label selectors as one line, as apimachinery prints them. */
#include <errno.h>
#include <stdlib.h>

#include "cell.h"

/* A line of a selector: a member of matchLabels, or an item of matchExpressions. */
struct line {
    struct vg_slice key, value;
    const struct vg_json *expression; /* NULL: key=value */
    size_t index;                     /* lines of one key stay in order */
};

static int compare_lines(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    int c = vg_slice_cmp(x->key, y->key);
    return c ? c : (x->index > y->index) - (x->index < y->index);
}

/* As texts: a-b=x comes before a=x. */
static int compare_labels(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    size_t n = VG_MIN(x->key.n, y->key.n);
    int c = n ? memcmp(x->key.p, y->key.p, n) : 0;
    if (c || x->key.n == y->key.n)
        return c ? c : vg_slice_cmp(x->value, y->value);
    return x->key.n < y->key.n ? '=' - (unsigned char)y->key.p[n]
                               : (unsigned char)x->key.p[n] - '=';
}

static size_t members(const struct vg_json *map)
{
    return vg_json_is(map, VG_JSON_OBJECT) ? map->n : 0;
}

static size_t add_labels(const struct vg_json *map, struct line *v)
{
    for (size_t i = 0; i < members(map); i++)
        v[i] = (struct line){.key = vg_json_key(&map->members[i]),
                             .value = vg_json_text(&map->members[i].value),
                             .index = i};
    return members(map);
}

void vg_cell_put_labels(struct vg_cell *c, const struct vg_json *map)
{
    size_t n = members(map);
    struct line *v = n ? vg_arena_array(c->arena, struct line, n) : NULL;
    if (n && !v) {
        c->err = -ENOMEM;
        return;
    }
    if (n == 0) {
        vg_cell_puts(c, "<none>");
        return;
    }
    add_labels(map, v);
    qsort(v, n, sizeof *v, compare_labels);
    for (size_t i = 0; i < n; i++)
        vg_cell_printf(c, "%s%.*s=%.*s", i ? "," : "", VG_SLICE_ARG(v[i].key),
                       VG_SLICE_ARG(v[i].value));
}

static void put_values(struct vg_cell *c, const struct vg_json *expression)
{
    struct vg_texts t = {0};
    size_t n;
    const struct vg_json *items = vg_cell_items(expression, "values", &n);
    for (size_t i = 0; i < n; i++)
        vg_texts_add(c, &t, vg_json_text(&items[i]));
    vg_texts_sort(&t);
    for (size_t i = 0; i < t.n; i++)
        vg_cell_printf(c, "%s%.*s", i ? "," : "", VG_SLICE_ARG(t.v[i]));
}

static void put_line(struct vg_cell *c, const struct line *l)
{
    const struct vg_json *e = l->expression;
    if (!e) {
        vg_cell_printf(c, "%.*s=%.*s", VG_SLICE_ARG(l->key), VG_SLICE_ARG(l->value));
        return;
    }
    if (vg_cell_is(e, "operator", "DoesNotExist"))
        vg_cell_puts(c, "!");
    vg_cell_put(c, l->key);
    bool is_in = vg_cell_is(e, "operator", "In");
    if (!is_in && !vg_cell_is(e, "operator", "NotIn"))
        return;
    vg_cell_puts(c, is_in ? " in (" : " notin (");
    put_values(c, e);
    vg_cell_puts(c, ")");
}

void vg_cell_put_selector(struct vg_cell *c, const struct vg_json *selector)
{
    const struct vg_json *labels = vg_cell_at(selector, "matchLabels");
    size_t n_items, n = members(labels);
    const struct vg_json *items = vg_cell_items(selector, "matchExpressions", &n_items);
    if (n + n_items == 0) {
        vg_cell_puts(c, "<none>");
        return;
    }
    struct line *v = vg_arena_array(c->arena, struct line, n + n_items);
    if (!v) {
        c->err = -ENOMEM;
        return;
    }
    add_labels(labels, v);
    for (size_t i = 0; i < n_items; i++)
        v[n + i] = (struct line){
            .key = vg_cell_text(&items[i], "key"), .expression = &items[i], .index = n + i};
    qsort(v, n + n_items, sizeof *v, compare_lines);
    for (size_t i = 0; i < n + n_items; i++) {
        if (i)
            vg_cell_puts(c, ",");
        put_line(c, &v[i]);
    }
}
