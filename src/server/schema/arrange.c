/* arrange.c - members in the order that is printed; see decode.h.
 * What is empty is left out or written out by the field's flags, as Go's encoder does with the
 * struct that kube-apiserver read back from its storage: there, an empty list is no list. */
#include <errno.h>
#include <stdlib.h>

#include "decode.h"
#include "json/equal.h"

static int arrange_type(struct vg_arena *a, const struct vg_schema_type *type,
                        const struct vg_json *v, struct vg_json *ret);

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

static bool is_sorted(const struct vg_json *v)
{
    for (uint32_t i = 1; i < v->n; i++)
        if (by_key(&v->members[i - 1], &v->members[i]) > 0)
            return false;
    return true;
}

/* One value; what has no inside is shared with the tree it comes from. */
static int arrange_value(struct vg_arena *a, const struct vg_schema_field *f,
                         const struct vg_json *v, struct vg_json *ret)
{
    *ret = *v;
    if (f->type && v->type == VG_JSON_OBJECT)
        return arrange_type(a, f->type, v, ret);
    if (f->value != VG_SCHEMA_OR_ARRAY || v->type != VG_JSON_ARRAY)
        return 0;
    *ret = vg_json_array();
    int err = 0;
    for (uint32_t i = 0; i < v->n && err == 0; i++) {
        struct vg_json item = v->items[i];
        if (item.type == VG_JSON_OBJECT)
            err = arrange_type(a, f->type, &v->items[i], &item);
        if (err == 0)
            err = vg_json_array_push(a, ret, item);
    }
    return err;
}

static int arrange_list(struct vg_arena *a, const struct vg_schema_field *f,
                        const struct vg_json *v, struct vg_json *ret)
{
    *ret = *v;
    if (!f->type || v->n == 0)
        return 0;
    struct vg_json *items = vg_arena_array(a, struct vg_json, v->n);
    if (!items)
        return -ENOMEM;
    *ret = (struct vg_json){.type = VG_JSON_ARRAY, .n = v->n, .items = items};
    int err = 0;
    for (uint32_t i = 0; i < v->n && err == 0; i++)
        err = arrange_value(a, f, &v->items[i], &items[i]);
    return err;
}

static int arrange_map(struct vg_arena *a, const struct vg_schema_field *f, const struct vg_json *v,
                       struct vg_json *ret)
{
    *ret = *v;
    if (v->n == 0 || (!f->type && is_sorted(v)))
        return 0;
    struct vg_json_member *members = vg_arena_array(a, struct vg_json_member, v->n);
    if (!members)
        return -ENOMEM;
    memcpy(members, v->members, v->n * sizeof *members);
    *ret = (struct vg_json){.type = VG_JSON_OBJECT, .n = v->n, .members = members};
    int err = 0;
    for (uint32_t i = 0; i < v->n && err == 0; i++)
        err = arrange_value(a, f, &v->members[i].value, &members[i].value);
    if (!is_sorted(ret))
        qsort(members, v->n, sizeof *members, by_key);
    return err;
}

static int arrange_field(struct vg_arena *a, const struct vg_schema_field *f,
                         const struct vg_json *v, struct vg_json *ret)
{
    bool is_list = f->shape == VG_SCHEMA_LIST, is_map = f->shape == VG_SCHEMA_MAP;
    if (v->type == VG_JSON_NULL) {
        *ret = *v;
        return 0;
    }
    return is_list  ? arrange_list(a, f, v, ret)
           : is_map ? arrange_map(a, f, v, ret)
                    : arrange_value(a, f, v, ret);
}

/* Where each field of a type is among the members; NULL: it is not. */
static void find_members(const struct vg_schema_type *type, const struct vg_json *v,
                         const struct vg_json **found)
{
    memset(found, 0, type->n * sizeof *found);
    VG_JSON_FOREACH_MEMBER (m, v) {
        const struct vg_schema_field *f = vg_schema_field(type, vg_json_key(m));
        if (f && m->value.type != VG_JSON_NULL)
            found[f - type->fields] = &m->value;
    }
}

/* What is printed of a field; NULL: nothing. *room is for a zero. */
static const struct vg_json *printed(const struct vg_schema_field *f, const struct vg_json *given,
                                     struct vg_json *room)
{
    if (given && !is_empty(f, given))
        return given;
    return make_zero(f, room) ? room : NULL;
}

static int arrange_type(struct vg_arena *a, const struct vg_schema_type *type,
                        const struct vg_json *v, struct vg_json *ret)
{
    return vg_schema_arrange_like(a, type, v, NULL, ret);
}

/* 1: the member is as it was, and taken from there. */
static int take_old(const struct vg_json *v, const struct vg_json *old, struct vg_json_member *ret)
{
    const struct vg_json *was = old ? vg_json_get(old, vg_json_key(ret)) : NULL;
    int same = was ? vg_json_equal(v, was) : 0;
    if (same > 0)
        ret->value = *was;
    return same;
}

int vg_schema_arrange_like(struct vg_arena *a, const struct vg_schema_type *type,
                           const struct vg_json *root, const struct vg_json *old,
                           struct vg_json *ret)
{
    const struct vg_json *found[UINT8_MAX];
    struct vg_json_member *out = vg_arena_array(a, struct vg_json_member, type->n + 1u);
    if (!out)
        return -ENOMEM;
    uint32_t n = 0;
    find_members(type, root, found);
    for (uint32_t i = 0; i < type->n; i++) {
        const struct vg_schema_field *f = &type->fields[i];
        struct vg_json zero;
        const struct vg_json *v = printed(f, found[i], &zero);
        if (!v)
            continue;
        struct vg_json_member *m = &out[n++];
        *m = (struct vg_json_member){.key = f->name, .key_n = f->name_n};
        int r = take_old(v, old, m);
        if (r == 0) {
            r = arrange_field(a, f, v, &m->value);
            m->value.begin = m->value.end = 0;
        }
        if (r < 0)
            return r;
    }
    *ret = (struct vg_json){.type = VG_JSON_OBJECT, .n = n, .members = out};
    return 0;
}

int vg_schema_arrange(struct vg_arena *a, const struct vg_schema_type *type,
                      const struct vg_json *root, struct vg_json *ret)
{
    return arrange_type(a, type, root, ret);
}
