/* tree_edit.h - what the patches need of a tree beyond json.h: its measures, copies that belong to
 * no source text, and the growing stack that stands in for recursion.
 * Thread: whoever owns the trees. */
#ifndef VG_JSON_TREE_EDIT_H
#define VG_JSON_TREE_EDIT_H

#include "json.h"

struct vg_json_measure {
    uint64_t bytes; /* of the text without white space, as short as JSON allows */
    uint64_t nodes;
    uint32_t depth; /* nested containers: 0 for a scalar, 1 for [] */
};

/* 0, -ENOMEM, VIGIL_E_JSON_DEPTH. */
VG_CHECK int vg_json_measure(const struct vg_json *v, struct vg_json_measure *ret);

/* As vg_json_clone, but every value is "not from the source": a tree put together from several
 * texts must not carry offsets into any of them (J1). 0, -ENOMEM, VIGIL_E_JSON_DEPTH. */
VG_CHECK int vg_json_copy(struct vg_arena *a, const struct vg_json *v, struct vg_json *ret);

/* vg_json_object_add with copies of the key and of v. */
VG_CHECK int vg_json_object_add_copy(struct vg_arena *a, struct vg_json *obj, struct vg_slice key,
                                     const struct vg_json *v);
/* vg_json_object_add with a copy of the key; v is taken as it is. */
VG_CHECK int vg_json_object_add_key(struct vg_arena *a, struct vg_json *obj, struct vg_slice key,
                                    struct vg_json v);

/* Room for one more frame of `size` bytes behind the n there are; *frames may move.
 * 0, -ENOMEM, VIGIL_E_JSON_DEPTH: n has reached VG_JSON_DEPTH_MAX. */
VG_CHECK int vg_json_stack_room(void **frames, uint32_t *cap, uint32_t n, size_t size);

#endif
