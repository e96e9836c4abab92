/* row.c - cells by the rules of columns.h; definitions; conditions of rows. */
#include "cell.h"
#include "json/write.h"

/* ---- rules: true when there was something to put ---- */

static bool put_value(struct vg_cell *c, const struct vg_json *v, bool empty_is_missing)
{
    if (!v || (empty_is_missing && v->n == 0 && v->type == VG_JSON_STRING))
        return false;
    c->is_bare = v->type != VG_JSON_STRING;
    if (v->type == VG_JSON_BOOL)
        vg_cell_puts(c, vg_json_is_true(v) ? "true" : "false");
    else
        vg_cell_put(c, vg_json_text(v));
    return v->type == VG_JSON_BOOL || v->type == VG_JSON_NUMBER || v->type == VG_JSON_STRING;
}

static bool put_at(struct vg_cell *c, const struct vg_column *col)
{
    return put_value(c, vg_cell_at(c->v, col->paths[0]), col->empty_is_missing);
}

static bool put_first(struct vg_cell *c, const struct vg_column *col)
{
    size_t n;
    const struct vg_json *items = vg_cell_items(c->v, col->paths[0], &n);
    if (n == 0)
        return false;
    return put_value(c, col->text ? vg_cell_at(items, col->text) : items, true);
}

static bool put_age(struct vg_cell *c, const struct vg_column *col)
{
    int64_t ms;
    if (!vg_cell_time(c->v, col->paths[0], &ms))
        return false;
    vg_cell_put_age(c, ms);
    return true;
}

static bool put_count(struct vg_cell *c, const struct vg_column *col)
{
    unsigned long n = 0;
    for (const char *const *p = col->paths; *p; p++) {
        const struct vg_json *v = vg_cell_at(c->v, *p);
        if (vg_json_is(v, VG_JSON_ARRAY) || vg_json_is(v, VG_JSON_OBJECT))
            n += v->n;
    }
    vg_cell_printf(c, "%lu", n);
    c->is_bare = true;
    return true;
}

static bool put_join(struct vg_cell *c, const struct vg_column *col)
{
    size_t n;
    const struct vg_json *items = vg_cell_items(c->v, col->paths[0], &n);
    for (size_t i = 0; i < n; i++) {
        if (i)
            vg_cell_puts(c, ",");
        vg_cell_put(c, col->text ? vg_cell_text(&items[i], col->text) : vg_json_text(&items[i]));
    }
    return n > 0;
}

static bool put_ratio(struct vg_cell *c, const struct vg_column *col)
{
    vg_cell_printf(c, "%lld/%lld", (long long)vg_cell_int(c->v, col->paths[0]),
                   (long long)vg_cell_int(c->v, col->paths[1]));
    return true;
}

static bool put_labels(struct vg_cell *c, const struct vg_column *col)
{
    vg_cell_put_labels(c, vg_cell_at(c->v, col->paths[0]));
    return true;
}

static bool put_selector(struct vg_cell *c, const struct vg_column *col)
{
    vg_cell_put_selector(c, vg_cell_at(c->v, col->paths[0]));
    return true;
}

/* The paths of the text are those of the column, in this order. */
static bool put_text(struct vg_cell *c, const struct vg_column *col)
{
    bool has_any = false;
    const char *const *path = col->paths;
    for (const char *p = col->text; *p;) {
        size_t n = strcspn(p, "{");
        vg_cell_put(c, vg_slice(p, n));
        p += n;
        if (*p) {
            has_any |= vg_cell_is_set(c->v, *path);
            vg_cell_put(c, vg_cell_text(c->v, *path++));
            p = strchr(p, '}') + 1;
        }
    }
    return has_any;
}

static bool call(struct vg_cell *c, const struct vg_column *col)
{
    col->call(c);
    return true;
}

static bool (*const rules[])(struct vg_cell *, const struct vg_column *) = {
    [VG_CELL_AT] = put_at,         [VG_CELL_FIRST] = put_first,       [VG_CELL_AGE] = put_age,
    [VG_CELL_COUNT] = put_count,   [VG_CELL_JOIN] = put_join,         [VG_CELL_RATIO] = put_ratio,
    [VG_CELL_LABELS] = put_labels, [VG_CELL_SELECTOR] = put_selector, [VG_CELL_TEXT] = put_text,
    [VG_CELL_CALL] = call,
};

/* ---- rows ---- */

static int write_cell(struct vg_cell *c, const struct vg_column *col, struct vg_buf *out)
{
    c->is_bare = false;
    vg_buf_clear(c->text);
    bool has = rules[col->rule](c, col);
    if (c->err < 0)
        return c->err;
    if (!has)
        return vg_buf_append_slice(out, vg_slice_str(col->missing));
    return c->is_bare ? vg_buf_append_slice(out, vg_buf_slice(c->text))
                      : vg_json_write_string(out, vg_buf_slice(c->text), VG_JSON_ESCAPE_HTML);
}

static int write_end(const struct vg_columns *columns, const struct vg_json *object,
                     struct vg_buf *out)
{
    for (const struct vg_row_end *e = columns->ends; e && e->path; e++)
        if (vg_cell_is(object, e->path, e->value))
            return vg_buf_printf(out,
                                 ",\"conditions\":[{\"type\":\"Completed\",\"status\":\"True\","
                                 "\"reason\":\"%s\",\"message\":\"%s\"}]",
                                 e->value, e->message);
    return 0;
}

int vg_columns_row(const struct vg_columns *columns, const struct vg_json *object, int64_t now_ms,
                   struct vg_arena *a, struct vg_buf *out)
{
    VG_AUTO(buf) text = {0};
    struct vg_cell c = {.v = object, .now_ms = now_ms, .arena = a, .text = &text};
    int r = vg_buf_append_slice(out, VG_SLICE_LIT("\"cells\":["));
    for (size_t i = 0; r == 0 && i < columns->n; i++) {
        if (i)
            r = vg_buf_append_byte(out, ',');
        if (r == 0)
            r = write_cell(&c, &columns->v[i], out);
    }
    if (r == 0)
        r = vg_buf_append_byte(out, ']');
    return r == 0 ? write_end(columns, object, out) : r;
}

int vg_columns_define(const struct vg_columns *columns, struct vg_buf *out)
{
    int r = vg_buf_append_byte(out, '[');
    for (size_t i = 0; r == 0 && i < columns->n; i++) {
        const struct vg_column *col = &columns->v[i];
        if (col->name)
            r = vg_buf_printf(out,
                              "%s{\"name\":\"%s\",\"type\":\"%s\",\"format\":\"%s\","
                              "\"description\":\"%s\",\"priority\":%u}",
                              i ? "," : "", col->name, col->type, col->format, col->about,
                              col->priority);
    }
    return r < 0 ? r : vg_buf_append_byte(out, ']');
}
