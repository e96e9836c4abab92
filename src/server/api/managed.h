/* managed.h - what update and apply share of managedFields; see managed.c. */
#ifndef VG_API_MANAGED_H
#define VG_API_MANAGED_H

#include "server/fields/managers.h"
#include "server/kinds/kinds.h"

/* What a write of the kind (as it is stored), or of its subresource, leaves alone: static. */
const struct vg_fields_path *vg_managed_left_alone(const struct vg_kind *kind,
                                                   const struct vg_kind_sub *sub);
/* The row of a version of a kind that is stored as this one; NULL: there is none. */
const struct vg_kind *vg_managed_version(const struct vg_kind *stored, struct vg_slice api_version);

/* Managers of a Scale are those of its object who own replicas; and back (managed_scale.c). 0,
 * -ENOMEM. */
#define VG_SCALE_VERSION VG_SLICE_LIT("autoscaling/v1")
VG_CHECK int vg_managers_to_scale(struct vg_arena *a, const struct vg_managers *was,
                                  struct vg_managers *ret);
VG_CHECK int vg_managers_from_scale(struct vg_arena *a, const struct vg_managers *was,
                                    struct vg_managers *scale, struct vg_slice api_version,
                                    struct vg_managers *ret);

#endif
