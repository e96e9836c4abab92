/* default.c - see default.h. */
#include "default.h"

#include <errno.h>

#include "quantity.h"

/* ---- for the functions of types ---- */

static bool is_set(const struct vg_json *v)
{
    return v && v->type != VG_JSON_NULL;
}

bool vg_default_has(const struct vg_json *v, const char *name)
{
    const struct vg_json *m = vg_json_get_str(v, name);
    double x;
    if (!is_set(m))
        return false;
    if (m->type == VG_JSON_BOOL)
        return vg_json_is_true(m);
    if (m->type == VG_JSON_NUMBER)
        return vg_json_to_double(m, &x) < 0 || x != 0;
    return m->type != VG_JSON_STRING || m->n > 0;
}

int vg_default_text(struct vg_arena *a, struct vg_json *v, const char *name, const char *text)
{
    const struct vg_json *m = vg_json_get_str(v, name);
    if (is_set(m) && !(m->type == VG_JSON_STRING && m->n == 0))
        return 0;
    return vg_json_object_set(a, v, vg_slice_str(name), vg_json_string_ref(vg_slice_str(text)));
}

int vg_default_int(struct vg_arena *a, struct vg_json *v, const char *name, int64_t i)
{
    struct vg_json number;
    if (is_set(vg_json_get_str(v, name)))
        return 0;
    int err = vg_json_make_int(a, i, &number);
    return err < 0 ? err : vg_json_object_set(a, v, vg_slice_str(name), number);
}

int vg_default_bool(struct vg_arena *a, struct vg_json *v, const char *name, bool b)
{
    if (is_set(vg_json_get_str(v, name)))
        return 0;
    return vg_json_object_set(a, v, vg_slice_str(name), vg_json_bool(b));
}

int vg_default_object(struct vg_arena *a, struct vg_json *v, const char *name, struct vg_json **ret)
{
    int err = 0;
    if (!is_set(vg_json_get_str(v, name)))
        err = vg_json_object_set(a, v, vg_slice_str(name), vg_json_object());
    if (err == 0 && ret)
        *ret = vg_json_get_str(v, name);
    return err;
}

/* ---- the tables ---- */

/* A pointer is given when it is there; a value, when it is not zero. */
static bool is_given(const struct vg_schema_field *f, const struct vg_json *v)
{
    bool is_pointer = vg_schema_is(f, VG_SCHEMA_POINTER) || f->shape != VG_SCHEMA_ONE;
    return is_pointer ? is_set(vg_json_get_str(v, f->name)) : vg_default_has(v, f->name);
}

/* A plain constant needs no parser: most are texts and numbers, and a create sets a dozen. False:
 * it is more than that. */
static bool plain_constant(struct vg_slice text, struct vg_json *ret)
{
    char c = text.p[0];
    if (c == '"' && !memchr(text.p, '\\', text.n))
        *ret = vg_json_string_ref(vg_slice(text.p + 1, text.n - 2));
    else if (c >= '0' && c <= '9')
        *ret = (struct vg_json){.type = VG_JSON_NUMBER,
                                .flags = VG_JSON_INTEGER,
                                .n = (uint32_t)text.n,
                                .text = text.p};
    else if (c == 't' || c == 'f')
        *ret = vg_json_bool(c == 't');
    else if (text.n == 2 && c == '{')
        *ret = vg_json_object();
    else
        return false;
    return true;
}

static int set_constant(struct vg_arena *a, const struct vg_schema_field *f, struct vg_json *v)
{
    struct vg_json plain, *value = &plain;
    struct vg_slice text = vg_slice_str(f->more->def);
    if (is_given(f, v))
        return 0;
    if (!plain_constant(text, &plain) && vg_json_parse(a, text, NULL, &value, NULL) < 0)
        return -ENOMEM;
    return vg_json_object_set(a, v, vg_slice(f->name, f->name_n), *value);
}

/* A struct that is no pointer is always there, and its defaults with it. */
static int default_absent(struct vg_arena *a, const struct vg_schema_field *f, struct vg_json *v)
{
    bool is_value = f->shape == VG_SCHEMA_ONE && !vg_schema_is(f, VG_SCHEMA_POINTER);
    struct vg_json inner = vg_json_object();
    if (!is_value)
        return 0;
    int err = vg_schema_default(a, f->type, &inner);
    if (err < 0 || inner.n == 0)
        return err;
    return vg_json_object_set(a, v, vg_slice(f->name, f->name_n), inner);
}

static int default_inside(struct vg_arena *a, const struct vg_schema_field *f, struct vg_json *v)
{
    struct vg_json *inner = vg_json_get(v, vg_slice(f->name, f->name_n));
    int err = 0;
    if (!is_set(inner))
        return default_absent(a, f, v);
    if (f->shape == VG_SCHEMA_ONE)
        return vg_schema_default(a, f->type, inner);
    VG_JSON_FOREACH_ITEM (it, inner)
        if (err == 0)
            err = vg_schema_default(a, f->type, it);
    if (f->shape == VG_SCHEMA_MAP)
        VG_JSON_FOREACH_MEMBER (m, inner)
            if (err == 0)
                err = vg_schema_default(a, f->type, &m->value);
    return err;
}

/* Amounts of resources have no more than three digits after the point: the rest is rounded away
 * from zero. */
static int round_amount(struct vg_arena *a, struct vg_json *v)
{
    struct vg_quantity q;
    char room[VG_QUANTITY_TEXT_MAX];
    int64_t milli;
    bool is_exact = true;
    if (vg_json_text(v).n == 0 || vg_quantity_parse(vg_json_text(v), &q, NULL) < 0 ||
        vg_quantity_scaled(&q, -3, &milli, &is_exact) < 0 || is_exact)
        return 0;
    q = vg_quantity_of(milli, -3, (enum vg_quantity_format)q.format);
    return vg_json_make_string(a, vg_quantity_text(&q, room), v);
}

static int round_amounts(struct vg_arena *a, const struct vg_schema_field *f, struct vg_json *v)
{
    struct vg_json *map = vg_json_get(v, vg_slice(f->name, f->name_n));
    int err = 0;
    if (map)
        VG_JSON_FOREACH_MEMBER (m, map)
            if (err == 0)
                err = round_amount(a, &m->value);
    return err;
}

int vg_schema_default(struct vg_arena *a, const struct vg_schema_type *type, struct vg_json *root)
{
    if (!type->has_defaults || root->type != VG_JSON_OBJECT)
        return 0;
    int err = type->defaults ? type->defaults(a, root) : 0;
    for (unsigned i = 0; i < type->n && err == 0; i++) {
        const struct vg_schema_field *f = &type->fields[i];
        if (f->more->def)
            err = set_constant(a, f, root);
        if (err == 0 && f->value == VG_SCHEMA_QUANTITY && f->shape == VG_SCHEMA_MAP)
            err = round_amounts(a, f, root);
        if (err == 0 && f->value == VG_SCHEMA_TYPE && f->type->has_defaults)
            err = default_inside(a, f, root);
    }
    return err;
}
