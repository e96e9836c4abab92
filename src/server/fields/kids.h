/* kids.h - entries of a set while they are found: added in any order, put in order at the end.
 * Thread: one owner. */
#ifndef VG_FIELDS_KIDS_H
#define VG_FIELDS_KIDS_H

#include "set.h"

struct vg_kids {
    struct vg_json_member *v; /* room for one before the first */
    uint32_t n, room;
};

/* 0, -ENOMEM. */
VG_CHECK int vg_kids_add(struct vg_arena *a, struct vg_kids *k, struct vg_slice element,
                         struct vg_json value);
/* The entry that they make, in order. 0, -ENOMEM. */
VG_CHECK int vg_kids_entry(struct vg_arena *a, bool is_member, struct vg_kids *k,
                           struct vg_json *ret);

#endif
