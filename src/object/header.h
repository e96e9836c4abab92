/* header.h - what is known of a stored object without parsing it.
 * An object is one immutable block (design D1): its canonical JSON, which carries no
 * resourceVersion, and this header beside it. The header says by offset where the JSON holds what
 * selectors, lists and watches ask for; it copies only texts that the JSON holds in another
 * spelling (escaped) or not at all (what a missing field reads as).
 *
 *      0  u8   version, VG_OBJ_HEADER_VERSION
 *      1  u8   flags: enum vg_obj_header_flag
 *      2  u8   F: number of selectable fields, in the kind's order
 *      3  u8   index of the trigger field; VG_OBJ_NO_TRIGGER
 *      4  u32  length of the value that this header describes
 *      8  u32  item_at: offset in the value just past kind and apiVersion
 *     12  u32  rev_at: offset in the value where ,"resourceVersion":"N" goes
 *     16  u32  L: number of labels
 *     20  ref  name
 *     28  ref  namespace
 *     36  ref  uid
 *     44  ref  x F: the fields' values
 *         12   x L: struct vg_label_ref, sorted by key
 *         tail: copied texts, to the header's end
 *
 * Little endian throughout. A ref is (u32 at, u32 n): n bytes at `at`, which counts through the
 * value and then on through the tail. Labels count from the value, or all of them from the tail if
 * one of them needed a copy. Invariants, checked by vg_obj_header_open():
 *   O1 every ref lies wholly in the value or wholly in the tail; labels are sound (labels.h).
 *   O2 1 <= item_at <= rev_at < length of the value; the name is not empty.
 *   O3 trigger < F or VG_OBJ_NO_TRIGGER; unknown flags are 0.
 * Thread: read only, any. */
#ifndef VG_OBJECT_HEADER_H
#define VG_OBJECT_HEADER_H

#include "base/err.h"
#include "labels.h"

#define VG_OBJ_HEADER_VERSION 1
#define VG_OBJ_NO_TRIGGER 255u
/* Selectable fields of a kind. Events have 12, the most of any built-in; a CRD may name 8. */
#define VG_OBJ_FIELDS_MAX 32u
/* Bytes of a stored value: what storage takes for header and value together. */
#define VG_OBJ_VALUE_MAX ((size_t)8 << 20)

enum vg_obj_header_flag {
    VG_OBJ_LABELS_IN_TAIL = 1,
    VG_OBJ_IS_DELETING = 2, /* metadata.deletionTimestamp is set */
};

/* A stored object, borrowed from whoever owns the block. */
struct vg_obj_view {
    struct vg_slice key, header, value;
    uint64_t rev; /* its own revision */
};

/* A header opened for reading. Everything points into the header and value it was opened on, which
 * must outlive it. Read it through the functions below. */
struct vg_obj_header {
    const char *bytes; /* the header itself */
    const char *value;
    const char *tail;
    uint32_t value_n, item_at, rev_at;
    uint8_t n_fields;
    uint8_t trigger; /* VG_OBJ_NO_TRIGGER: the kind has none */
    uint8_t flags;
    struct vg_labels labels;
};

/* Check all of O1 to O3 and open: for bytes that come from storage or a peer, once for each object.
 * 0; VIGIL_E_STORE_DAMAGED, and *ret is untouched. Linear in the number of labels. */
VG_CHECK int vg_obj_header_open(struct vg_slice header, struct vg_slice value,
                                struct vg_obj_header *ret);
/* Open without a check what vg_obj_seal made or vg_obj_header_open accepted: a dozen loads, for
 * every later look. Debug builds assert the checks. */
void vg_obj_header_read(struct vg_slice header, struct vg_slice value, struct vg_obj_header *ret);

static inline void vg_obj_view_read(const struct vg_obj_view *v, struct vg_obj_header *ret)
{
    vg_obj_header_read(v->header, v->value, ret);
}

struct vg_slice vg_obj_name(const struct vg_obj_header *h);
struct vg_slice vg_obj_namespace(const struct vg_obj_header *h); /* empty: cluster-scoped */
struct vg_slice vg_obj_uid(const struct vg_obj_header *h);       /* empty: none given */
/* The value of the i-th selectable field; empty when there is no such field. */
struct vg_slice vg_obj_field(const struct vg_obj_header *h, uint32_t i);
/* The value of the trigger field; empty when the kind has none. */
struct vg_slice vg_obj_trigger(const struct vg_obj_header *h);

static inline bool vg_obj_is_deleting(const struct vg_obj_header *h)
{
    return h->flags & VG_OBJ_IS_DELETING;
}

#endif
