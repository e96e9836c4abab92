/* compare_int.h - what the walks over objects share: compare.c, fresh.c. */
#ifndef VG_FIELDS_COMPARE_INT_H
#define VG_FIELDS_COMPARE_INT_H

#include "compare.h"

/* An object of a type that nobody has filled: its fields are those that are printed all the same.
 */
extern const struct vg_json vg_fields_fresh;

/* Nobody's: what the server says of an object, and what a write does not touch. top: of which
 * member it is one; "": of none. */
bool vg_fields_is_nobodys(const struct vg_fields_path *without, const char *top, const char *name);

/* What is printed of nothing there: fresh, or *zero with it; NULL: nothing is. */
const struct vg_json *vg_fields_of_fresh(const struct vg_schema_type *t, uint32_t index,
                                         struct vg_json *zero);

/* The field of a member: of what was arranged the keys are the table's own and in its order. from:
 * where to look; *is_foreign: they are not. NULL: there is none. */
const struct vg_schema_field *vg_fields_field_of(const struct vg_schema_type *t,
                                                 const struct vg_json_member *m, uint32_t from,
                                                 bool *is_foreign);
static inline bool vg_fields_is_fresh_none(const struct vg_schema_type *type,
                                           const struct vg_json *v)
{
    return v == &vg_fields_fresh ? type->shown == 0 : vg_fields_is_none(v);
}

#endif
