/* typed_merge.c - merging by type: maps and structs by their members, lists by their elements, all
 * else as one; see typed.h. Items that are wanted keep their order, those that are only there stay
 * where they are between them. */
#include <errno.h>
#include <string.h>

#include "index.h"
#include "typed.h"
#include "json/lookup.h"

/* 1: *ret is what becomes of the two, of which one may be NULL; 0: nothing; negative: failed. */
static int merge(struct vg_arena *a, struct vg_fields_ref ref, const struct vg_json *l,
                 const struct vg_json *r, struct vg_json *ret);

static int merge_member(struct vg_arena *a, struct vg_fields_ref ref, struct vg_slice key,
                        const struct vg_json *l, const struct vg_json *r, struct vg_json *out)
{
    struct vg_json v;
    int err = merge(a, ref, l, r, &v);
    return err <= 0 ? err : vg_json_object_add(a, out, key, v);
}

/* Where each field of a type is among the members; NULL: it is not. */
static const struct vg_json **find_members(struct vg_arena *a, const struct vg_schema_type *type,
                                           const struct vg_json *v)
{
    const struct vg_json **found = vg_arena_array(a, const struct vg_json *, type->n + 1u);
    if (!found)
        return NULL;
    memset(found, 0, (type->n + 1u) * sizeof *found);
    for (uint32_t i = 0; vg_json_is(v, VG_JSON_OBJECT) && i < v->n; i++) {
        const struct vg_schema_field *f = vg_schema_field(type, vg_json_key(&v->members[i]));
        if (f)
            found[f - type->fields] = &v->members[i].value;
    }
    return found;
}

static int merge_struct(struct vg_arena *a, const struct vg_schema_type *type,
                        const struct vg_json *l, const struct vg_json *r, struct vg_json *ret)
{
    const struct vg_json **x = find_members(a, type, l), **y = find_members(a, type, r);
    int err = x && y ? 0 : -ENOMEM;
    *ret = vg_json_object();
    for (uint32_t i = 0; i < type->n && err == 0; i++)
        if (x[i] || y[i])
            err = merge_member(a, vg_fields_of(&type->fields[i]),
                               vg_slice(type->fields[i].name, type->fields[i].name_n), x[i], y[i],
                               ret);
    return err < 0 ? err : ret->n > 0;
}

static int merge_map(struct vg_arena *a, struct vg_fields_ref item, const struct vg_json *l,
                     const struct vg_json *r, struct vg_json *ret)
{
    struct vg_json_lookup in_l, in_r;
    vg_json_lookup_init(&in_l, l);
    vg_json_lookup_init(&in_r, r);
    int err = 0;
    *ret = vg_json_object();
    for (uint32_t i = 0; vg_json_is(l, VG_JSON_OBJECT) && i < l->n && err >= 0; i++) {
        const struct vg_json_member *m = &l->members[i], *other = NULL;
        err = vg_json_lookup_find(&in_r, vg_json_key(m), i, &other);
        if (err >= 0)
            err = merge_member(a, item, vg_json_key(m), &m->value, err > 0 ? &other->value : NULL,
                               ret);
    }
    for (uint32_t i = 0; vg_json_is(r, VG_JSON_OBJECT) && i < r->n && err >= 0; i++) {
        const struct vg_json_member *m = &r->members[i], *other = NULL;
        err = vg_json_lookup_find(&in_l, vg_json_key(m), i, &other);
        if (err == 0)
            err = merge_member(a, item, vg_json_key(m), NULL, &m->value, ret);
    }
    vg_json_lookup_done(&in_l);
    vg_json_lookup_done(&in_r);
    return err < 0 ? err : ret->n > 0;
}

/* ---- lists ---- */

struct lists {
    struct vg_arena *arena;
    struct vg_fields_ref item;
    struct vg_index l, r;
    bool *is_merged; /* of each item of r */
    uint32_t shared; /* next item of r that l has too */
    struct vg_json *out;
};

static int put(struct lists *x, const struct vg_json *l, const struct vg_json *r)
{
    struct vg_json v;
    int err = merge(x->arena, x->item, l, r, &v);
    return err <= 0 ? err : vg_json_array_push(x->arena, x->out, v);
}

/* What l has of an element: items that are there twice are merged with nothing. */
static const struct vg_json *left_of(const struct lists *x, struct vg_slice element)
{
    static const struct vg_json nothing = {.type = VG_JSON_NULL};
    const struct vg_index_item *it = vg_index_find(&x->l, element);
    return !it ? NULL : it->is_repeated ? &nothing : it->v;
}

static void next_shared(struct lists *x)
{
    while (x->shared < x->r.n && !vg_index_find(&x->l, x->r.v[x->shared].element))
        x->shared++;
}

static int take_right(struct lists *x, uint32_t j)
{
    const struct vg_index_item *it = &x->r.v[j];
    x->is_merged[j] = true;
    int err = put(x, left_of(x, it->element), it->v);
    if (x->shared == j) {
        x->shared++;
        next_shared(x);
    }
    return err;
}

static int zip(struct lists *x)
{
    int err = 0;
    next_shared(x);
    for (uint32_t i = 0, j = 0; err >= 0 && (i < x->l.n || j < x->r.n);) {
        const struct vg_index_item *in_r =
            i < x->l.n ? vg_index_find(&x->r, x->l.v[i].element) : NULL;
        if (i < x->l.n && j < x->r.n) {
            if (in_r == &x->r.v[j]) {
                err = take_right(x, j++);
                i++;
                continue;
            }
            bool is_next = x->shared < x->r.n && in_r == &x->r.v[x->shared];
            if (in_r && x->shared < x->r.n && !is_next) {
                i++; /* shared, but its turn is another time */
                continue;
            }
        }
        if (i < x->l.n && !in_r) {
            err = put(x, x->l.v[i++].v, NULL);
            continue;
        }
        if (i < x->l.n && x->is_merged[in_r->at])
            i++;
        if (j < x->r.n && err >= 0)
            err = take_right(x, j++);
    }
    return err;
}

static int merge_list(struct vg_arena *a, struct vg_fields_ref list, const struct vg_json *l,
                      const struct vg_json *r, struct vg_json *ret)
{
    struct vg_status why;
    struct lists x = {.arena = a, .item = vg_fields_item(list), .out = ret};
    *ret = vg_json_array();
    int err = vg_index_make(a, list, l, &x.l, NULL, &why);
    if (err == 0)
        err = vg_index_make(a, list, r, &x.r, NULL, &why);
    if (err < 0)
        return err;
    x.is_merged = vg_arena_array(a, bool, (size_t)x.r.n + 1);
    if (!x.is_merged)
        return -ENOMEM;
    memset(x.is_merged, 0, (size_t)x.r.n + 1);
    err = zip(&x);
    return err < 0 ? err : ret->n > 0;
}

static int merge(struct vg_arena *a, struct vg_fields_ref ref, const struct vg_json *l,
                 const struct vg_json *r, struct vg_json *ret)
{
    struct vg_shape shape = vg_fields_shape(ref);
    const struct vg_json *last = r ? r : l;
    bool is_free_leaf =
        shape.kind == VG_SHAPE_FREE && last->type != VG_JSON_OBJECT && last->type != VG_JSON_NULL;
    if (shape.is_atomic || shape.kind == VG_SHAPE_SCALAR || shape.kind == VG_SHAPE_RAW ||
        is_free_leaf || (vg_fields_is_none(l) && vg_fields_is_none(r))) {
        *ret = *last;
        return 1;
    }
    if (shape.kind == VG_SHAPE_STRUCT)
        return merge_struct(a, shape.type, l, r, ret);
    if (shape.kind == VG_SHAPE_LIST)
        return merge_list(a, ref, l, r, ret);
    struct vg_fields_ref no_ref = {0};
    bool is_free = shape.kind == VG_SHAPE_FREE;
    bool has_map = vg_json_is(l, VG_JSON_OBJECT) || vg_json_is(r, VG_JSON_OBJECT);
    if (is_free && !has_map) {
        *ret = *last;
        return 1;
    }
    return merge_map(a, is_free ? no_ref : vg_fields_item(ref), l, r, ret);
}

int vg_typed_merge(struct vg_arena *a, const struct vg_schema_type *type, const struct vg_json *is,
                   const struct vg_json *wanted, struct vg_json *ret)
{
    int err = merge(a, (struct vg_fields_ref){.type = type}, is, wanted, ret);
    if (err == 0)
        *ret = vg_json_object();
    return err < 0 ? err : 0;
}

int vg_typed_arrange(struct vg_arena *a, const struct vg_schema_type *type, const struct vg_json *v,
                     struct vg_json *ret)
{
    return vg_typed_merge(a, type, v, NULL, ret);
}
