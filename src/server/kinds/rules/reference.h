/* reference.h - references to other objects by group, kind or resource, and name. Thread: one
 * owner.
 */
#ifndef VG_RULES_REFERENCE_H
#define VG_RULES_REFERENCE_H

#include "check.h"

/* Part of a path: not ".", "..", nor with a slash or percent sign. Required value when empty. */
void vg_check_segment(struct vg_check *c, const struct vg_at *at);
/* apiGroup, kind, name. */
void vg_check_typed_reference(struct vg_check *c, const struct vg_at *at);

#endif
