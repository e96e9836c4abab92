/* element.h - path elements as they are printed: f:NAME, k:{"port":80}, v:"x", i:0. Thread: any. */
#ifndef VG_FIELDS_ELEMENT_H
#define VG_FIELDS_ELEMENT_H

#include "base/buf.h"
#include "json/json.h"

/* f:NAME in the arena. 0, -ENOMEM. */
VG_CHECK int vg_element_field(struct vg_arena *a, struct vg_slice name, struct vg_slice *ret);
/* v:SCALAR. */
VG_CHECK int vg_element_value(struct vg_arena *a, const struct vg_json *scalar,
                              struct vg_slice *ret);
/* k:{...} of names and values; both of n, names sorted. */
#define VG_ELEMENT_KEYS_MAX 8u
struct vg_element_key {
    struct vg_slice name;
    const struct vg_json *value;
};
VG_CHECK int vg_element_keys(struct vg_arena *a, const struct vg_element_key *v, size_t n,
                             struct vg_slice *ret);
/* As a person reads it: .name, [port=80], [="x"], [0]. */
VG_CHECK int vg_element_show(struct vg_buf *out, struct vg_slice element);

#endif
