/* types.h - the types of all built-in kinds, generated from schema/ by tools/schema.
 * Thread: any. */
#ifndef VG_KINDS_TYPES_H
#define VG_KINDS_TYPES_H

#include "server/schema/schema.h"

/* The types of a group and version lie together. */
struct vg_schema_scope {
    const char *group, *version;
    size_t first, n; /* in vg_schema_types() */
};

const struct vg_schema_type *vg_schema_types(size_t *ret_n);
/* What a type is, or one of its fields, in a sentence; field NULL: the type. NULL: nothing is said.
 */
const char *vg_schema_about(const struct vg_schema_type *type, const struct vg_schema_field *field);
const struct vg_schema_scope *vg_schema_scope(const struct vg_schema_type *type);
/* The type of a group ("" is core) and version; NULL: there is none. Slow enough to be asked once.
 */
const struct vg_schema_type *vg_schema_find(struct vg_slice group, struct vg_slice version,
                                            struct vg_slice name);

struct vg_kind;
/* The type of a kind's objects; never NULL. */
const struct vg_schema_type *vg_kind_type(const struct vg_kind *kind);

#endif
