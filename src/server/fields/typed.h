/* typed.h - what server-side apply does with objects of a type: check them, tell their fields,
 * merge and cut them. Objects are trees in any order of members; what is made is in the order of
 * the tables. null is a value here: "as if it were not", but its field is there. Thread: one owner.
 */
#ifndef VG_FIELDS_TYPED_H
#define VG_FIELDS_TYPED_H

#include "base/buf.h"
#include "set.h"
#include "shape.h"

/* Are all fields declared and of their type, and no item of a list there twice? 0; VIGIL_E_INVALID
 * with the original's sentences, several by lines, appended to *out; -ENOMEM. */
VG_CHECK int vg_typed_check(struct vg_arena *a, const struct vg_schema_type *type,
                            const struct vg_json *v, struct vg_buf *out);
/* The fields that an object says something about. 0, VIGIL_E_INVALID, -ENOMEM. */
VG_CHECK int vg_typed_fields(struct vg_arena *a, const struct vg_schema_type *type,
                             const struct vg_json *v, struct vg_json *ret);
/* What is there with what is wanted over it. 0, VIGIL_E_INVALID, -ENOMEM. */
VG_CHECK int vg_typed_merge(struct vg_arena *a, const struct vg_schema_type *type,
                            const struct vg_json *is, const struct vg_json *wanted,
                            struct vg_json *ret);
/* Without the fields of a set; what is empty then is null. Likewise. */
VG_CHECK int vg_typed_remove(struct vg_arena *a, const struct vg_schema_type *type,
                             const struct vg_json *v, const struct vg_json *set,
                             struct vg_json *ret);
/* A set with the declared fields on the way to each of its own. 0, -ENOMEM. */
VG_CHECK int vg_typed_name_parents(struct vg_arena *a, const struct vg_schema_type *type,
                                   const struct vg_json *set, struct vg_json *ret);
/* Members in the order of the tables, those that are not declared left out. Likewise. */
VG_CHECK int vg_typed_arrange(struct vg_arena *a, const struct vg_schema_type *type,
                              const struct vg_json *v, struct vg_json *ret);
/* What is printed of an object of which nothing is set, with all of its inside. 0, -ENOMEM. */
VG_CHECK int vg_typed_fresh(struct vg_arena *a, const struct vg_schema_type *type,
                            struct vg_json *ret);

#endif
