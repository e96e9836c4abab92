/* default.h - values that were not given: constant ones from the tables, others by a function of
 * their type. An outer object is done before what it holds, as the original does. Thread: one
 * owner. */
#ifndef VG_SCHEMA_DEFAULT_H
#define VG_SCHEMA_DEFAULT_H

#include "schema.h"
#include "json/json.h"

/* root was decoded, and is changed in place. 0, -ENOMEM. */
VG_CHECK int vg_schema_default(struct vg_arena *a, const struct vg_schema_type *type,
                               struct vg_json *root);

/* For the functions of types: set a member that is absent or null. text is constant. 0, -ENOMEM. */
VG_CHECK int vg_default_text(struct vg_arena *a, struct vg_json *v, const char *name,
                             const char *text);
VG_CHECK int vg_default_int(struct vg_arena *a, struct vg_json *v, const char *name, int64_t i);
VG_CHECK int vg_default_bool(struct vg_arena *a, struct vg_json *v, const char *name, bool b);
/* An empty object when there is none; *ret (NULL allowed) is the member then. */
VG_CHECK int vg_default_object(struct vg_arena *a, struct vg_json *v, const char *name,
                               struct vg_json **ret);
/* Is there something that is not null, false, 0 or ""? */
bool vg_default_has(const struct vg_json *v, const char *name);

#endif
