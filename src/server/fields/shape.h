/* shape.h - how server-side apply sees a value, from the tables of types.
 * A ref names a value's place in the schema: the object itself, a field, or an item of a field's
 * list or map. Thread: any. */
#ifndef VG_FIELDS_SHAPE_H
#define VG_FIELDS_SHAPE_H

#include "server/schema/schema.h"
#include "json/json.h"

struct vg_fields_ref {
    const struct vg_schema_type *type;   /* of an object; or */
    const struct vg_schema_field *field; /* a field; neither: a value without a type */
    bool is_item;                        /* one value of the field's list or map */
};

enum vg_shape_kind {
    VG_SHAPE_SCALAR,
    VG_SHAPE_STRUCT, /* fields by name: `type` */
    VG_SHAPE_MAP,    /* any names, values alike */
    VG_SHAPE_LIST,   /* with keys: items by these; without: a set */
    VG_SHAPE_FREE,   /* as the value is: maps by their members, all else as one */
    VG_SHAPE_RAW,    /* anything, as one */
};

struct vg_shape {
    enum vg_shape_kind kind;
    bool is_atomic; /* owned as a whole */
    const struct vg_schema_type *type;
    const char *const *keys;
};

struct vg_shape vg_fields_shape(struct vg_fields_ref ref);
static inline struct vg_fields_ref vg_fields_item(struct vg_fields_ref ref)
{
    return (struct vg_fields_ref){.field = ref.field, .is_item = true};
}
/* Where a field of a struct is. */
static inline struct vg_fields_ref vg_fields_of(const struct vg_schema_field *f)
{
    return (struct vg_fields_ref){.field = f};
}
/* The element of an item of a list that is not atomic. 0; VIGIL_E_INVALID with a sentence: it has
 * none; -ENOMEM. */
VG_CHECK int vg_fields_item_element(struct vg_arena *a, struct vg_fields_ref list,
                                    const struct vg_json *item, struct vg_slice *ret,
                                    struct vg_status *reterr_status);
static inline bool vg_fields_is_none(const struct vg_json *v)
{
    bool is_container = v && (v->type == VG_JSON_ARRAY || v->type == VG_JSON_OBJECT);
    return !v || v->type == VG_JSON_NULL || (is_container && v->n == 0);
}

#endif
