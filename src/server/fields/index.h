/* index.h - the items of a list by their elements. Thread: one owner. */
#ifndef VG_FIELDS_INDEX_H
#define VG_FIELDS_INDEX_H

#include "shape.h"

struct vg_index_item {
    struct vg_slice element;
    const struct vg_json *v;
    uint32_t at;      /* in the list */
    bool is_repeated; /* not the only one with its element */
};

struct vg_index {
    struct vg_index_item *v;       /* in the order of the list */
    struct vg_index_item **sorted; /* by the bytes of their elements, then by place */
    uint32_t n;
};

/* 0; VIGIL_E_INVALID with a sentence, and which item in *ret_at when that is not NULL; -ENOMEM. */
VG_CHECK int vg_index_make(struct vg_arena *a, struct vg_fields_ref list, const struct vg_json *v,
                           struct vg_index *ret, uint32_t *ret_at, struct vg_status *reterr_status);
/* The first item with that element; NULL: there is none. */
struct vg_index_item *vg_index_find(const struct vg_index *x, struct vg_slice element);

#endif
