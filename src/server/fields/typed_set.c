/* typed_set.c - an object's fields as a set, and an object without some; see typed.h. */
#include <errno.h>

#include "element.h"
#include "index.h"
#include "kids.h"
#include "server/schema/decode.h"
#include "typed.h"

/* ---- the fields of an object ---- */

struct place {
    bool is_member;
    struct vg_kids kids;
};

static int tell(struct vg_arena *a, struct vg_fields_ref ref, const struct vg_json *v,
                struct place *p);

static int tell_at(struct vg_arena *a, struct vg_fields_ref ref, struct vg_slice element,
                   const struct vg_json *v, bool is_member, struct place *parent)
{
    struct place p = {0};
    struct vg_json entry;
    int err = v ? tell(a, ref, v, &p) : 0;
    is_member = is_member || p.is_member;
    if (err < 0 || (!is_member && p.kids.n == 0))
        return err;
    err = vg_kids_entry(a, is_member, &p.kids, &entry);
    return err < 0 ? err : vg_kids_add(a, &parent->kids, element, entry);
}

static int tell_struct(struct vg_arena *a, const struct vg_schema_type *type,
                       const struct vg_json *v, struct place *p)
{
    int err = 0;
    VG_JSON_FOREACH_MEMBER (m, v) {
        const struct vg_schema_field *f = vg_schema_field(type, vg_json_key(m));
        bool is_none =
            m->value.type == VG_JSON_NULL || (m->value.type == VG_JSON_OBJECT && m->value.n == 0);
        if (f && err == 0)
            err = tell_at(a, vg_fields_of(f), vg_slice(f->name - 2, (size_t)f->name_n + 2),
                          &m->value, is_none, p);
    }
    return err;
}

static int tell_map(struct vg_arena *a, struct vg_fields_ref item, const struct vg_json *v,
                    struct place *p)
{
    int err = 0;
    VG_JSON_FOREACH_MEMBER (m, v) {
        struct vg_slice element;
        if (err == 0)
            err = vg_element_field(a, vg_json_key(m), &element);
        if (err == 0)
            err = tell_at(a, item, element, &m->value, true, p);
    }
    return err;
}

static int tell_list(struct vg_arena *a, struct vg_fields_ref list, const struct vg_json *v,
                     struct place *p)
{
    struct vg_index x;
    struct vg_status why;
    int err = vg_index_make(a, list, v, &x, NULL, &why);
    for (uint32_t i = 0; i < x.n && err == 0; i++) {
        const struct vg_index_item *it = x.sorted[i];
        bool is_first = i == 0 || !vg_slice_eq(x.sorted[i - 1]->element, it->element);
        if (is_first)
            err = tell_at(a, vg_fields_item(list), it->element, it->is_repeated ? NULL : it->v,
                          true, p);
    }
    return err;
}

static int tell(struct vg_arena *a, struct vg_fields_ref ref, const struct vg_json *v,
                struct place *p)
{
    struct vg_shape shape = vg_fields_shape(ref);
    bool is_free = shape.kind == VG_SHAPE_FREE;
    bool is_leaf = shape.is_atomic || shape.kind == VG_SHAPE_SCALAR || shape.kind == VG_SHAPE_RAW ||
                   (is_free && v->type != VG_JSON_OBJECT && v->type != VG_JSON_NULL);
    if (is_leaf) {
        p->is_member = true;
        return 0;
    }
    if (v->type == VG_JSON_NULL)
        return 0;
    if (shape.kind == VG_SHAPE_STRUCT)
        return tell_struct(a, shape.type, v, p);
    if (shape.kind == VG_SHAPE_LIST)
        return tell_list(a, ref, v, p);
    struct vg_fields_ref no_ref = {0};
    return tell_map(a, is_free ? no_ref : vg_fields_item(ref), v, p);
}

int vg_typed_fields(struct vg_arena *a, const struct vg_schema_type *type, const struct vg_json *v,
                    struct vg_json *ret)
{
    struct place p = {0};
    int err = tell_struct(a, type, v, &p);
    return err < 0 ? err : vg_kids_entry(a, false, &p.kids, ret);
}

/* ---- an object without some ---- */

static int cut(struct vg_arena *a, struct vg_fields_ref ref, const struct vg_json *v,
               const struct vg_json *set, struct vg_json *ret);

/* One member or item: 1: it stays, as *ret; 0: it goes. */
static int cut_at(struct vg_arena *a, struct vg_fields_ref ref, struct vg_slice element,
                  const struct vg_json *v, const struct vg_json *set, struct vg_json *ret)
{
    const struct vg_json *entry = vg_fields_find(set, element);
    *ret = *v;
    if (!entry)
        return 1;
    if (vg_fields_is_member(entry))
        return 0;
    int err = cut(a, ref, v, entry, ret);
    return err < 0 ? err : 1;
}

static int cut_members(struct vg_arena *a, struct vg_fields_ref ref, const struct vg_shape *shape,
                       const struct vg_json *v, const struct vg_json *set, struct vg_json *ret)
{
    struct vg_json out = vg_json_object();
    VG_JSON_FOREACH_MEMBER (m, v) {
        const struct vg_schema_field *f =
            shape->kind == VG_SHAPE_STRUCT ? vg_schema_field(shape->type, vg_json_key(m)) : NULL;
        struct vg_fields_ref below = f                             ? vg_fields_of(f)
                                     : shape->kind == VG_SHAPE_MAP ? vg_fields_item(ref)
                                                                   : (struct vg_fields_ref){0};
        struct vg_slice element = {0};
        struct vg_json value = vg_json_null();
        int err = f ? 0 : vg_element_field(a, vg_json_key(m), &element);
        if (f)
            element = vg_slice(f->name - 2, (size_t)f->name_n + 2);
        if (err == 0)
            err = cut_at(a, below, element, &m->value, set, &value);
        if (err > 0)
            err = vg_json_object_add(a, &out, vg_json_key(m), value);
        if (err < 0)
            return err;
    }
    *ret = out.n ? out : vg_json_null();
    return 0;
}

static int cut_items(struct vg_arena *a, struct vg_fields_ref list, const struct vg_json *v,
                     const struct vg_json *set, struct vg_json *ret)
{
    struct vg_json out = vg_json_array();
    struct vg_status why;
    VG_JSON_FOREACH_ITEM (it, v) {
        struct vg_slice element = {0};
        struct vg_json value = vg_json_null();
        int err = vg_fields_item_element(a, list, it, &element, &why);
        if (err == 0)
            err = cut_at(a, vg_fields_item(list), element, it, set, &value);
        if (err > 0)
            err = vg_json_array_push(a, &out, value);
        if (err < 0)
            return err;
    }
    *ret = out.n ? out : vg_json_null();
    return 0;
}

/* Something below is to go. */
static int cut(struct vg_arena *a, struct vg_fields_ref ref, const struct vg_json *v,
               const struct vg_json *set, struct vg_json *ret)
{
    struct vg_shape shape = vg_fields_shape(ref);
    bool is_container = v->type >= VG_JSON_ARRAY;
    if (shape.kind == VG_SHAPE_SCALAR || (shape.kind == VG_SHAPE_FREE && !is_container)) {
        *ret = *v;
        return 0;
    }
    if (shape.is_atomic || !is_container || v->n == 0 ||
        (shape.kind == VG_SHAPE_FREE && v->type == VG_JSON_ARRAY)) {
        *ret = vg_json_null();
        return 0;
    }
    return v->type == VG_JSON_ARRAY ? cut_items(a, ref, v, set, ret)
                                    : cut_members(a, ref, &shape, v, set, ret);
}

int vg_typed_remove(struct vg_arena *a, const struct vg_schema_type *type, const struct vg_json *v,
                    const struct vg_json *set, struct vg_json *ret)
{
    int err = 0;
    *ret = *v;
    if (!vg_fields_is_empty(set))
        err = cut(a, (struct vg_fields_ref){.type = type}, v, set, ret);
    if (err == 0 && ret->type == VG_JSON_NULL)
        *ret = vg_json_object();
    return err;
}

/* ---- the declared fields on the way ---- */

static int name_entries(struct vg_arena *a, struct vg_fields_ref ref, bool is_known,
                        const struct vg_json *set, bool is_member, struct vg_json *ret)
{
    struct vg_shape shape = vg_fields_shape(ref);
    struct vg_fields_span s = vg_fields_children(set);
    struct vg_kids kids = {0};
    int err = 0;
    for (uint32_t i = 0; i < s.n && err == 0; i++) {
        struct vg_slice key = vg_json_key(&s.v[i]);
        const struct vg_json *below = &s.v[i].value;
        bool has_children = vg_fields_children(below).n > 0;
        bool is_struct = is_known && shape.kind == VG_SHAPE_STRUCT && key.p[0] == 'f';
        const struct vg_schema_field *f =
            is_struct ? vg_schema_field(shape.type, vg_slice(key.p + 2, key.n - 2)) : NULL;
        bool is_item = is_known && ((shape.kind == VG_SHAPE_MAP && key.p[0] == 'f') ||
                                    (shape.kind == VG_SHAPE_LIST && key.p[0] == 'k'));
        struct vg_json entry = *below;
        if (has_children)
            err = name_entries(a,
                               f         ? vg_fields_of(f)
                               : is_item ? vg_fields_item(ref)
                                         : (struct vg_fields_ref){0},
                               f || is_item, below, f || vg_fields_is_member(below), &entry);
        if (err == 0)
            err = vg_kids_add(a, &kids, key, entry);
    }
    return err < 0 ? err : vg_kids_entry(a, is_member, &kids, ret);
}

int vg_typed_name_parents(struct vg_arena *a, const struct vg_schema_type *type,
                          const struct vg_json *set, struct vg_json *ret)
{
    return name_entries(a, (struct vg_fields_ref){.type = type}, true, set, false, ret);
}

/* ---- an empty object ---- */

int vg_typed_fresh(struct vg_arena *a, const struct vg_schema_type *type, struct vg_json *ret)
{
    int err = 0;
    *ret = vg_json_object();
    for (uint32_t i = 0; i < type->n && err == 0; i++) {
        const struct vg_schema_field *f = &type->fields[i];
        struct vg_json v;
        if (!(type->shown >> i & 1) || !vg_schema_zero(f, &v))
            continue;
        if (v.type == VG_JSON_OBJECT && f->type)
            err = vg_typed_fresh(a, f->type, &v);
        if (err == 0)
            err = vg_json_object_add(a, ret, vg_slice(f->name, f->name_n), v);
    }
    return err;
}
