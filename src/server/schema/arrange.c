/* arrange.c - members in the order that is printed; see decode.h.
 * What is empty is left out or written out by the field's flags, as Go's encoder does with the
 * struct that kube-apiserver read back from its storage: there, an empty list is no list. */
#include <errno.h>
#include <stdlib.h>

#include "decode.h"
#include "json/equal.h"

/* Fields of a type, one bit each; tools/schema refuses more. */
#define FIELDS_MAX 64u

struct arranging {
    struct vg_arena *arena;
    bool may_share; /* what is arranged already: for who reads and changes nothing */
};

static int arrange_type(const struct arranging *x, const struct vg_schema_type *type,
                        const struct vg_json *v, struct vg_json *ret);
static bool is_arranged_type(const struct vg_schema_type *type, const struct vg_json *v);

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
bool vg_schema_zero(const struct vg_schema_field *f, struct vg_json *ret)
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

/* A copy of a list or map whose items have no inside: who sets something in an arranged tree must
 * not reach into the one that it comes from. */
static int copy_items(const struct arranging *x, const struct vg_json *v, struct vg_json *ret)
{
    *ret = (struct vg_json){.type = v->type, .n = v->n};
    if (v->n == 0)
        return 0;
    if (v->type == VG_JSON_ARRAY) {
        ret->items = vg_arena_array(x->arena, struct vg_json, v->n);
        if (!ret->items)
            return -ENOMEM;
        memcpy(ret->items, v->items, v->n * sizeof *v->items);
        return 0;
    }
    ret->members = vg_arena_array(x->arena, struct vg_json_member, v->n);
    if (!ret->members)
        return -ENOMEM;
    memcpy(ret->members, v->members, v->n * sizeof *v->members);
    return 0;
}

/* One value; what has no inside is shared with the tree it comes from. */
static int arrange_value(const struct arranging *x, const struct vg_schema_field *f,
                         const struct vg_json *v, struct vg_json *ret)
{
    *ret = *v;
    if (f->type && v->type == VG_JSON_OBJECT)
        return arrange_type(x, f->type, v, ret);
    bool is_opaque = f->value >= VG_SCHEMA_RAW && f->value <= VG_SCHEMA_FIELDS;
    if (v->type != VG_JSON_ARRAY || is_opaque)
        return 0;
    int err = copy_items(x, v, ret);
    for (uint32_t i = 0; f->value == VG_SCHEMA_OR_ARRAY && i < v->n && err == 0; i++)
        if (v->items[i].type == VG_JSON_OBJECT)
            err = arrange_type(x, f->type, &v->items[i], &ret->items[i]);
    return err;
}

static int arrange_list(const struct arranging *x, const struct vg_schema_field *f,
                        const struct vg_json *v, struct vg_json *ret)
{
    int err = copy_items(x, v, ret);
    for (uint32_t i = 0; f->type && i < v->n && err == 0; i++)
        err = arrange_value(x, f, &v->items[i], &ret->items[i]);
    return err;
}

static int arrange_map(const struct arranging *x, const struct vg_schema_field *f,
                       const struct vg_json *v, struct vg_json *ret)
{
    int err = copy_items(x, v, ret);
    bool has_inside = f->type || f->value == VG_SCHEMA_STRINGS;
    for (uint32_t i = 0; has_inside && i < v->n && err == 0; i++)
        err = arrange_value(x, f, &v->members[i].value, &ret->members[i].value);
    if (err == 0 && !is_sorted(ret))
        qsort(ret->members, ret->n, sizeof *ret->members, by_key);
    return err;
}

static int arrange_field(const struct arranging *x, const struct vg_schema_field *f,
                         const struct vg_json *v, struct vg_json *ret)
{
    bool is_list = f->shape == VG_SCHEMA_LIST, is_map = f->shape == VG_SCHEMA_MAP;
    if (v->type == VG_JSON_NULL) {
        *ret = *v;
        return 0;
    }
    return is_list  ? arrange_list(x, f, v, ret)
           : is_map ? arrange_map(x, f, v, ret)
                    : arrange_value(x, f, v, ret);
}

/* The field of a member. Keys of what was decoded are the table's own, mostly in its order: so it
 * is looked for by its address from *at on, which then moves behind it; where that fails, the
 * others are probably foreign too, and *at becomes its end. NULL: unknown. */
static const struct vg_schema_field *field_of(const struct vg_schema_type *type,
                                              const struct vg_json_member *m, unsigned *at)
{
    for (unsigned i = *at; i < type->n; i++)
        if (type->fields[i].name == m->key) {
            *at = i + 1;
            return &type->fields[i];
        }
    *at = type->n;
    return vg_schema_field(type, vg_json_key(m));
}

/* Where the fields of a type are among the members; bit i: found[i] is one. */
static uint64_t find_members(const struct vg_schema_type *type, const struct vg_json *v,
                             const struct vg_json **found)
{
    uint64_t mask = 0;
    unsigned at = 0;
    VG_JSON_FOREACH_MEMBER (m, v) {
        const struct vg_schema_field *f = field_of(type, m, &at);
        if (!f || m->value.type == VG_JSON_NULL)
            continue;
        found[f - type->fields] = &m->value;
        mask |= UINT64_C(1) << (f - type->fields);
    }
    return mask;
}

/* What is printed of a field; NULL: nothing. *room is for a zero. */
static const struct vg_json *printed(const struct vg_schema_field *f, const struct vg_json *given,
                                     struct vg_json *room)
{
    if (given && !is_empty(f, given))
        return given;
    return vg_schema_zero(f, room) ? room : NULL;
}

/* ---- what is arranged already ---- */

static bool is_arranged_value(const struct vg_schema_field *f, const struct vg_json *v)
{
    if (f->type && v->type == VG_JSON_OBJECT)
        return is_arranged_type(f->type, v);
    bool is_done = true;
    for (uint32_t i = 0; f->value == VG_SCHEMA_OR_ARRAY && v->type == VG_JSON_ARRAY && i < v->n;
         i++)
        is_done = is_done && is_arranged_value(f, &v->items[i]);
    return is_done;
}

static bool is_arranged_field(const struct vg_schema_field *f, const struct vg_json *v)
{
    bool is_done = true;
    if (f->shape == VG_SCHEMA_ONE)
        return is_arranged_value(f, v);
    if (v->type != (f->shape == VG_SCHEMA_LIST ? VG_JSON_ARRAY : VG_JSON_OBJECT))
        return false;
    for (uint32_t i = 0; f->type && i < v->n && is_done; i++)
        is_done =
            is_arranged_value(f, v->type == VG_JSON_ARRAY ? &v->items[i] : &v->members[i].value);
    return is_done && (v->type == VG_JSON_ARRAY || is_sorted(v));
}

/* Are its members the table's own and in its order? *ret_mask: which. */
static bool is_in_order(const struct vg_schema_type *type, const struct vg_json *v,
                        uint64_t *ret_mask)
{
    unsigned at = 0;
    *ret_mask = 0;
    VG_JSON_FOREACH_MEMBER (m, v) {
        while (at < type->n && type->fields[at].name != m->key)
            at++;
        if (at == type->n || m->value.type == VG_JSON_NULL)
            return false;
        *ret_mask |= UINT64_C(1) << at++;
    }
    return true;
}

/* In order, nothing is empty, and nothing that is always shown is missing; so is what it holds.
 * False may be said of what is arranged, too. */
static bool is_arranged_type(const struct vg_schema_type *type, const struct vg_json *v)
{
    uint64_t mask;
    if (!is_in_order(type, v, &mask) || type->shown & ~mask)
        return false;
    for (uint32_t i = 0; i < v->n; i++, mask &= mask - 1) {
        const struct vg_schema_field *f = &type->fields[__builtin_ctzll(mask)];
        const struct vg_json *value = &v->members[i].value;
        if (is_empty(f, value) || !is_arranged_field(f, value))
            return false;
    }
    return true;
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

static int arrange_members(const struct arranging *x, const struct vg_schema_type *type,
                           const struct vg_json *root, const struct vg_json *old,
                           struct vg_json *ret)
{
    const struct vg_json *found[FIELDS_MAX];
    uint64_t given = find_members(type, root, found), mask = given | type->shown;
    /* Room for these alone: a body can have a million objects of a type of many fields. */
    struct vg_json_member *out =
        vg_arena_array(x->arena, struct vg_json_member, (size_t)__builtin_popcountll(mask) + 1);
    if (!out)
        return -ENOMEM;
    uint32_t n = 0;
    for (; mask; mask &= mask - 1) {
        unsigned i = (unsigned)__builtin_ctzll(mask);
        const struct vg_schema_field *f = &type->fields[i];
        struct vg_json zero;
        const struct vg_json *v = printed(f, given >> i & 1 ? found[i] : NULL, &zero);
        if (!v)
            continue;
        struct vg_json_member *m = &out[n++];
        *m = (struct vg_json_member){.key = f->name, .key_n = f->name_n};
        int r = take_old(v, old, m);
        if (r == 0) {
            r = arrange_field(x, f, v, &m->value);
            m->value.begin = m->value.end = 0;
        }
        if (r < 0)
            return r;
    }
    *ret = (struct vg_json){.type = VG_JSON_OBJECT, .n = n, .members = out};
    return 0;
}

static int arrange_type(const struct arranging *x, const struct vg_schema_type *type,
                        const struct vg_json *v, struct vg_json *ret)
{
    if (x->may_share && is_arranged_type(type, v)) {
        *ret = *v;
        return 0;
    }
    return arrange_members(x, type, v, NULL, ret);
}

int vg_schema_arrange(struct vg_arena *a, const struct vg_schema_type *type,
                      const struct vg_json *root, struct vg_json *ret)
{
    struct arranging x = {.arena = a};
    return arrange_type(&x, type, root, ret);
}

int vg_schema_arrange_like(struct vg_arena *a, const struct vg_schema_type *type,
                           const struct vg_json *root, const struct vg_json *old,
                           struct vg_json *ret)
{
    struct arranging x = {a, .may_share = true};
    return arrange_members(&x, type, root, old, ret);
}
