/* lookup.h - finding many keys in one object without quadratic cost.
 * A lookup looks first at the place where its caller expects the key (documents that are compared
 * or merged mostly keep their order), then scans, and after a few scans of a large object sorts its
 * members once. So a single lookup costs no allocation, and n of them cost n log n. The object must
 * not change while a lookup is in use. Thread: one owner. */
#ifndef VG_JSON_LOOKUP_H
#define VG_JSON_LOOKUP_H

#include "json.h"

struct vg_json_lookup {
    const struct vg_json *obj;
    const struct vg_json_member **sorted; /* by key; NULL until scanning gets too expensive */
    uint32_t scans;
};

/* obj may be NULL or of another type: then no key is found. Allocates nothing. */
static inline void vg_json_lookup_init(struct vg_json_lookup *l, const struct vg_json *obj)
{
    *l = (struct vg_json_lookup){.obj = vg_json_is(obj, VG_JSON_OBJECT) ? obj : NULL};
}
void vg_json_lookup_done(struct vg_json_lookup *l);
static inline void vg_json_lookup_cleanup(struct vg_json_lookup *l)
{
    vg_json_lookup_done(l);
}

/* 1: *ret is the member with that key; 0: there is none; -ENOMEM. */
VG_CHECK int vg_json_lookup_find(struct vg_json_lookup *l, struct vg_slice key, uint32_t hint,
                                 const struct vg_json_member **ret);

#endif
