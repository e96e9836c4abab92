/* arrange.c - members in the order that is printed; see decode.h.
 * What is empty is left out or written out by the field's flags, as Go's encoder does with the
 * struct that kube-apiserver read back from its storage: there, an empty list is no list. */
#include <errno.h>
#include <stdlib.h>

#include "decode.h"

static int arrange_type(struct vg_arena *a, const struct vg_schema_type *type, struct vg_json *v);

static bool is_zero_number(const struct vg_json *v)
{
    double x;
    return vg_json_to_double(v, &x) == 0 && x == 0;
}

/* Would Go's omitempty leave it out? */
static bool is_empty(const struct vg_schema_field *f, const struct vg_json *v)
{
    if (f->shape != VG_SCHEMA_ONE)
        return v->n == 0;
    if (vg_schema_is(f, VG_SCHEMA_POINTER))
        return false;
    switch ((enum vg_schema_value)f->value) {
    case VG_SCHEMA_STRING:
    case VG_SCHEMA_BYTES:
        return v->n == 0;
    case VG_SCHEMA_BOOL:
        return !vg_json_is_true(v);
    case VG_SCHEMA_INT32:
    case VG_SCHEMA_INT64:
    case VG_SCHEMA_DOUBLE:
        return is_zero_number(v);
    default: /* structs never are */
        return false;
    }
}

/* An absent field that is printed all the same; false: it is not. */
static bool make_zero(const struct vg_schema_field *f, struct vg_json *ret)
{
    static const struct vg_json zero = {
        .type = VG_JSON_NUMBER, .flags = VG_JSON_INTEGER, .n = 1, .text = "0"};
    bool is_struct = f->shape == VG_SCHEMA_ONE && f->value >= VG_SCHEMA_QUANTITY &&
                     !vg_schema_is(f, VG_SCHEMA_POINTER);
    if (vg_schema_is(f, VG_SCHEMA_OMIT_ZERO) ||
        (vg_schema_is(f, VG_SCHEMA_OMIT_EMPTY) && !is_struct))
        return false;
    *ret = vg_json_null();
    if (f->shape != VG_SCHEMA_ONE || vg_schema_is(f, VG_SCHEMA_POINTER))
        return true;
    switch ((enum vg_schema_value)f->value) {
    case VG_SCHEMA_STRING:
        *ret = vg_json_string_ref(VG_SLICE_LIT(""));
        break;
    case VG_SCHEMA_BOOL:
        *ret = vg_json_bool(false);
        break;
    case VG_SCHEMA_INT32:
    case VG_SCHEMA_INT64:
    case VG_SCHEMA_DOUBLE:
    case VG_SCHEMA_INT_OR_STRING:
        *ret = zero;
        break;
    case VG_SCHEMA_QUANTITY:
        *ret = vg_json_string_ref(VG_SLICE_LIT("0"));
        break;
    case VG_SCHEMA_TYPE:
        *ret = vg_json_object();
        break;
    default: /* times, bytes and raw values are null */
        break;
    }
    return true;
}

static int by_key(const void *a, const void *b)
{
    const struct vg_json_member *x = a, *y = b;
    return vg_slice_cmp(vg_json_key(x), vg_json_key(y));
}

static void sort_map(struct vg_json *v)
{
    for (uint32_t i = 1; i < v->n; i++)
        if (by_key(&v->members[i - 1], &v->members[i]) > 0) {
            qsort(v->members, v->n, sizeof *v->members, by_key);
            return;
        }
}

static int arrange_value(struct vg_arena *a, const struct vg_schema_field *f, struct vg_json *v)
{
    bool is_object = v->type == VG_JSON_OBJECT;
    if (f->type && is_object)
        return arrange_type(a, f->type, v);
    int err = 0;
    if (f->value == VG_SCHEMA_OR_ARRAY)
        VG_JSON_FOREACH_ITEM (it, v)
            if (err == 0 && it->type == VG_JSON_OBJECT)
                err = arrange_type(a, f->type, it);
    return err;
}

static int arrange_field(struct vg_arena *a, const struct vg_schema_field *f, struct vg_json *v)
{
    int err = 0;
    switch ((enum vg_schema_shape)f->shape) {
    case VG_SCHEMA_ONE:
        return arrange_value(a, f, v);
    case VG_SCHEMA_LIST:
        if (f->type)
            VG_JSON_FOREACH_ITEM (it, v)
                if (err == 0)
                    err = arrange_value(a, f, it);
        break;
    case VG_SCHEMA_MAP:
        sort_map(v);
        if (f->type)
            VG_JSON_FOREACH_MEMBER (m, v)
                if (err == 0)
                    err = arrange_value(a, f, &m->value);
        break;
    }
    return err;
}

/* Where each field of a type is among the members; NULL: it is not. */
static void find_members(const struct vg_schema_type *type, struct vg_json *v,
                         struct vg_json_member **found)
{
    memset(found, 0, type->n * sizeof(struct vg_json_member *));
    VG_JSON_FOREACH_MEMBER (m, v) {
        const struct vg_schema_field *f = vg_schema_field(type, vg_json_key(m));
        if (f)
            found[f - type->fields] = m;
    }
}

static int arrange_type(struct vg_arena *a, const struct vg_schema_type *type, struct vg_json *v)
{
    struct vg_json_member *found[UINT8_MAX];
    struct vg_json_member *out = vg_arena_array(a, struct vg_json_member, type->n + 1u);
    if (!out)
        return -ENOMEM;
    uint32_t n = 0;
    find_members(type, v, found);
    for (uint32_t i = 0; i < type->n; i++) {
        const struct vg_schema_field *f = &type->fields[i];
        struct vg_json_member *m = &out[n];
        *m = (struct vg_json_member){.key = f->name, .key_n = f->name_n};
        bool is_there = found[i] && found[i]->value.type != VG_JSON_NULL;
        if (is_there)
            m->value = found[i]->value;
        if (is_there && !is_empty(f, &m->value)) {
            int err = arrange_field(a, f, &m->value);
            if (err < 0)
                return err;
            n++;
        } else if (make_zero(f, &m->value)) {
            int err = arrange_field(a, f, &m->value);
            if (err < 0)
                return err;
            n++;
        }
    }
    *v = (struct vg_json){.type = VG_JSON_OBJECT, .n = n, .members = out};
    return 0;
}

int vg_schema_arrange(struct vg_arena *a, const struct vg_schema_type *type, struct vg_json *root)
{
    return arrange_type(a, type, root);
}
