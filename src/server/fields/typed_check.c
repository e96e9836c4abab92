/* typed_check.c - is a configuration one of its type? See typed.h.
 * Sentences are structured-merge-diff's, Go's spelling of values included. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "element.h"
#include "index.h"
#include "object/quote.h"
#include "typed.h"
#include "json/write.h"

/* Sentences of one check. Beyond these nobody reads. */
#define SENTENCES_MAX 64u

struct checking {
    struct vg_arena *arena;
    struct vg_buf *out;
    struct vg_buf path;
    uint32_t n;
    size_t first_at; /* where the first sentence begins */
};

static int check(struct checking *c, struct vg_fields_ref ref, const struct vg_json *v);

/* ---- values as Go prints them ---- */

static int by_key(const void *a, const void *b)
{
    return vg_slice_cmp(vg_json_key(*(struct vg_json_member *const *)a),
                        vg_json_key(*(struct vg_json_member *const *)b));
}

/* %v */
static int print_go(struct vg_arena *a, struct vg_buf *out, const struct vg_json *v)
{
    int err = 0;
    switch ((enum vg_json_type)v->type) {
    case VG_JSON_NULL:
        return vg_buf_append(out, "<nil>", 5);
    case VG_JSON_BOOL:
        return vg_buf_printf(out, "%s", vg_json_is_true(v) ? "true" : "false");
    case VG_JSON_NUMBER:
    case VG_JSON_STRING:
        return vg_buf_append_slice(out, vg_json_text(v));
    case VG_JSON_ARRAY:
        err = vg_buf_append_byte(out, '[');
        for (uint32_t i = 0; i < v->n && err == 0; i++) {
            err = i ? vg_buf_append_byte(out, ' ') : 0;
            if (err == 0)
                err = print_go(a, out, &v->items[i]);
        }
        return err < 0 ? err : vg_buf_append_byte(out, ']');
    case VG_JSON_OBJECT:
        break;
    }
    struct vg_json_member **sorted = vg_arena_array(a, struct vg_json_member *, (size_t)v->n + 1);
    if (!sorted)
        return -ENOMEM;
    for (uint32_t i = 0; i < v->n; i++)
        sorted[i] = &v->members[i];
    if (v->n)
        qsort(sorted, v->n, sizeof *sorted, by_key);
    err = vg_buf_append(out, "map[", 4);
    for (uint32_t i = 0; i < v->n && err == 0; i++) {
        err = vg_buf_printf(out, "%s%.*s:", i ? " " : "", VG_SLICE_ARG(vg_json_key(sorted[i])));
        if (err == 0)
            err = print_go(a, out, &sorted[i]->value);
    }
    return err < 0 ? err : vg_buf_append_byte(out, ']');
}

/* %#v, of what a scalar was expected for. */
static int print_go_sharp(struct vg_arena *a, struct vg_buf *out, const struct vg_json *v)
{
    int err = 0;
    switch ((enum vg_json_type)v->type) {
    case VG_JSON_STRING:
        return vg_quote_append(out, vg_json_text(v));
    case VG_JSON_ARRAY:
        err = vg_buf_printf(out, "[]interface {}{");
        for (uint32_t i = 0; i < v->n && err == 0; i++) {
            err = i ? vg_buf_append(out, ", ", 2) : 0;
            if (err == 0)
                err = print_go_sharp(a, out, &v->items[i]);
        }
        return err < 0 ? err : vg_buf_append_byte(out, '}');
    case VG_JSON_OBJECT:
        err = vg_buf_printf(out, "map[string]interface {}{");
        for (uint32_t i = 0; i < v->n && err == 0; i++) {
            err = i ? vg_buf_append(out, ", ", 2) : 0;
            if (err == 0)
                err = vg_quote_append(out, vg_json_key(&v->members[i]));
            if (err == 0)
                err = vg_buf_append_byte(out, ':');
            if (err == 0)
                err = print_go_sharp(a, out, &v->members[i].value);
        }
        return err < 0 ? err : vg_buf_append_byte(out, '}');
    default:
        return print_go(a, out, v);
    }
}

/* ---- sentences ---- */

/* A new one: the path and a colon. 1: it shall be written; 0: there are enough. */
static int begin(struct checking *c, struct vg_slice more)
{
    if (c->n++ >= SENTENCES_MAX)
        return 0;
    int err = 0;
    if (c->n == 1)
        c->first_at = c->out->n;
    if (c->n == 2) { /* the first was alone until now */
        VG_AUTO(buf) first = {0};
        err = vg_buf_append(&first, c->out->p + c->first_at, c->out->n - c->first_at);
        c->out->n = c->first_at;
        if (err == 0)
            err = vg_buf_printf(c->out, "errors:\n  %.*s", VG_SLICE_ARG(vg_buf_slice(&first)));
    }
    if (err == 0 && c->n > 1)
        err = vg_buf_printf(c->out, "\n  ");
    if (err == 0)
        err = vg_buf_printf(c->out, "%.*s%.*s%s", VG_SLICE_ARG(vg_buf_slice(&c->path)),
                            VG_SLICE_ARG(more), c->path.n + more.n ? ": " : "");
    return err < 0 ? err : 1;
}

static const char *go_type(const struct vg_json *v)
{
    static const char *const names[] = {
        [VG_JSON_NULL] = "<nil>",           [VG_JSON_BOOL] = "bool",
        [VG_JSON_NUMBER] = "int64",         [VG_JSON_STRING] = "string",
        [VG_JSON_ARRAY] = "[]interface {}", [VG_JSON_OBJECT] = "map[string]interface {}"};
    return names[v->type];
}

static int say_wrong(struct checking *c, const char *what, const struct vg_json *v)
{
    int err = begin(c, VG_SLICE_LIT(""));
    if (err <= 0)
        return err;
    err = vg_buf_printf(c->out, "expected %s, got &{", what);
    if (err == 0)
        err = print_go(c->arena, c->out, v);
    return err < 0 ? err : vg_buf_append_byte(c->out, '}');
}

static int say_no_string(struct checking *c, const struct vg_json *v)
{
    int err = begin(c, VG_SLICE_LIT(""));
    if (err <= 0)
        return err;
    err = vg_buf_printf(c->out, "expected string, got &value.valueUnstructured{Value:");
    if (err == 0)
        err = print_go_sharp(c->arena, c->out, v);
    return err < 0 ? err : vg_buf_append_byte(c->out, '}');
}

/* ---- checks ---- */

static int check_scalar(struct checking *c, const struct vg_schema_field *f,
                        const struct vg_json *v)
{
    if (v->type == VG_JSON_NULL || VG_NEVER(!f))
        return 0;
    switch ((enum vg_schema_value)f->value) {
    case VG_SCHEMA_STRING:
    case VG_SCHEMA_BYTES:
        return v->type == VG_JSON_STRING ? 0 : say_no_string(c, v);
    case VG_SCHEMA_BOOL:
        return v->type == VG_JSON_BOOL ? 0 : say_wrong(c, "boolean", v);
    case VG_SCHEMA_INT32:
    case VG_SCHEMA_INT64:
    case VG_SCHEMA_DOUBLE: {
        if (v->type == VG_JSON_NUMBER)
            return 0;
        int err = begin(c, VG_SLICE_LIT(""));
        return err <= 0
                   ? err
                   : vg_buf_printf(c->out, "expected numeric (int or float), got %s", go_type(v));
    }
    default:
        return v->type >= VG_JSON_ARRAY ? say_wrong(c, "any scalar", v) : 0;
    }
}

static int check_below(struct checking *c, struct vg_fields_ref ref, struct vg_slice element,
                       const struct vg_json *v)
{
    size_t n = c->path.n;
    int err = vg_element_show(&c->path, element);
    if (err == 0)
        err = check(c, ref, v);
    c->path.n = n;
    return err;
}

static int check_named(struct checking *c, struct vg_fields_ref ref, struct vg_slice name,
                       const struct vg_json *v)
{
    size_t n = c->path.n;
    int err = vg_buf_printf(&c->path, ".%.*s", VG_SLICE_ARG(name));
    if (err == 0)
        err = check(c, ref, v);
    c->path.n = n;
    return err;
}

static int check_members(struct checking *c, struct vg_fields_ref ref, const struct vg_shape *shape,
                         const struct vg_json *v)
{
    int err = 0;
    VG_JSON_FOREACH_MEMBER (m, v) {
        const struct vg_schema_field *f =
            shape->kind == VG_SHAPE_STRUCT ? vg_schema_field(shape->type, vg_json_key(m)) : NULL;
        if (shape->kind == VG_SHAPE_STRUCT && !f) {
            VG_AUTO(buf) more = {0};
            err = vg_buf_printf(&more, ".%.*s", VG_SLICE_ARG(vg_json_key(m)));
            if (err == 0)
                err = begin(c, vg_buf_slice(&more));
            return err <= 0 ? err : vg_buf_printf(c->out, "field not declared in schema");
        }
        if (err == 0)
            err = check_named(c, f ? vg_fields_of(f) : vg_fields_item(ref), vg_json_key(m),
                              &m->value);
    }
    return err;
}

/* Items that cannot be told apart end the check of their list. */
static int check_items(struct checking *c, struct vg_fields_ref list, const struct vg_json *v)
{
    struct vg_index x;
    struct vg_status why;
    uint32_t bad = v->n;
    int err = vg_index_make(c->arena, list, v, &x, &bad, &why);
    if (err < 0 && err != VIGIL_E_INVALID)
        return err;
    bool is_bad = err < 0;
    err = 0;
    for (uint32_t i = 0; i < bad && err == 0; i++) {
        const struct vg_index_item *it = &x.v[i];
        if (!is_bad && it->is_repeated && vg_index_find(&x, it->element) != it) {
            err = begin(c, VG_SLICE_LIT(""));
            if (err > 0)
                err = vg_buf_printf(c->out, "duplicate entries for key ");
            if (err == 0)
                err = vg_element_show(c->out, it->element);
        }
        if (err >= 0)
            err = check_below(c, vg_fields_item(list), it->element, it->v);
    }
    if (err < 0 || !is_bad)
        return err;
    err = begin(c, VG_SLICE_LIT(""));
    return err <= 0 ? err : vg_buf_printf(c->out, "element %u: %s", bad, why.message);
}

static int check_atomic_items(struct checking *c, struct vg_fields_ref list,
                              const struct vg_json *v)
{
    int err = 0;
    for (uint32_t i = 0; i < v->n && err == 0; i++) {
        char element[24];
        int n = snprintf(element, sizeof element, "i:%u", i);
        err = check_below(c, vg_fields_item(list), vg_slice(element, (size_t)n), &v->items[i]);
    }
    return err;
}

static int check(struct checking *c, struct vg_fields_ref ref, const struct vg_json *v)
{
    struct vg_shape shape = vg_fields_shape(ref);
    if (shape.kind == VG_SHAPE_SCALAR)
        return check_scalar(c, ref.field, v);
    if (shape.kind == VG_SHAPE_FREE || shape.kind == VG_SHAPE_RAW || v->type == VG_JSON_NULL)
        return 0;
    if (shape.kind == VG_SHAPE_LIST) {
        if (v->type != VG_JSON_ARRAY)
            return say_wrong(c, "list", v);
        return shape.is_atomic ? check_atomic_items(c, ref, v) : check_items(c, ref, v);
    }
    if (v->type != VG_JSON_OBJECT)
        return say_wrong(c, "map", v);
    return check_members(c, ref, &shape, v);
}

int vg_typed_check(struct vg_arena *a, const struct vg_schema_type *type, const struct vg_json *v,
                   struct vg_buf *out)
{
    struct checking c = {.arena = a, .out = out};
    int err = check(&c, (struct vg_fields_ref){.type = type}, v);
    vg_buf_done(&c.path);
    if (err < 0)
        return err;
    return c.n ? VIGIL_E_INVALID : 0;
}
