/* compare.h - which fields differ between two objects, as sets. Thread: one owner. */
#ifndef VG_FIELDS_COMPARE_H
#define VG_FIELDS_COMPARE_H

#include "set.h"
#include "shape.h"

/* A part of objects that a write leaves alone, so that nobody comes to own it: a member, or a
 * member's member. Lists of these end with one whose top is NULL. */
struct vg_fields_path {
    const char *top, *below;
};

struct vg_fields_delta {
    struct vg_json changed; /* what is new or another value now */
    struct vg_json removed; /* what is no more */
};

/* Both are in the form that is printed (vg_schema_arrange). old NULL: a new object of the type,
 * with what is printed of one that is empty. Names, uid and the like are nobody's and are passed
 * over, and so is what `without` lists (NULL: nothing). 0; VIGIL_E_INVALID with a sentence: an item
 * of a list has no element; -ENOMEM. */
VG_CHECK int vg_fields_compare(struct vg_arena *a, const struct vg_schema_type *type,
                               const struct vg_json *old, const struct vg_json *now,
                               const struct vg_fields_path *without, struct vg_fields_delta *ret,
                               struct vg_status *reterr_status);

#endif
