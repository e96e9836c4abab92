/* labels.h - the labels of one object as the selectors see them: keys and values by offset.
 * An object's bytes hold its labels already (design D1), so a label set is no copy: it is a base
 * pointer and an array of 12-byte offsets, fit to be stored beside the object. Invariants, checked
 * by vg_labels_is_sound():
 *   L1 keys rise strictly in the order of vg_slice_cmp (so there are no duplicates).
 *   L2 every key and value lies inside the bytes at base.
 * Kubernetes allows keys of 317 bytes and values of 63; 16-bit lengths hold them with room, and who
 * builds a set from a peer's object refuses what does not fit. Thread: read only. */
#ifndef VG_OBJECT_LABELS_H
#define VG_OBJECT_LABELS_H

#include "base/slice.h"

/* Longest key and value that a label set can name. */
#define VG_LABEL_BYTES_MAX 65535u

/* Packed: an object's header keeps these where its bytes happen to lie, and they are read there. */
struct __attribute__((packed)) vg_label_ref {
    uint32_t key, value; /* offsets from base */
    uint16_t key_n, value_n;
};

struct vg_labels {
    const char *base;
    const struct vg_label_ref *v; /* n of them; NULL allowed when n is 0 */
    uint32_t n;
};

static inline struct vg_slice vg_labels_key(const struct vg_labels *l, uint32_t i)
{
    return (struct vg_slice){l->base + l->v[i].key, l->v[i].key_n};
}

static inline struct vg_slice vg_labels_value(const struct vg_labels *l, uint32_t i)
{
    return (struct vg_slice){l->base + l->v[i].value, l->v[i].value_n};
}

/* The first label at or after `from` whose key is not below `key`; n when there is none. */
uint32_t vg_labels_lower_bound(const struct vg_labels *l, struct vg_slice key, uint32_t from);

/* The label `key`, if it is at or after `from`; n when it is not. For matching: who asks for rising
 * keys passes the last find and searches only the rest. */
uint32_t vg_labels_index(const struct vg_labels *l, struct vg_slice key, uint32_t from);

/* Whether there is a label `key`; then its value is in *ret_value (NULL allowed). */
bool vg_labels_find(const struct vg_labels *l, struct vg_slice key, struct vg_slice *ret_value);

/* L1 and L2, for a base of base_n bytes: for sets that come from storage, and for debug builds. */
bool vg_labels_is_sound(const struct vg_labels *l, size_t base_n);

#endif
