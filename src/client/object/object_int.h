/* object_int.h - the object as the rest of the library sees it, and its constructors.
 *
 * One block: the struct, its key, its labels, the JSON bytes, a tail of texts that the JSON holds
 * in another spelling.
 *
 *     struct vigil_object | "ns/name" | vg_label_ref x n_slots | JSON | tail: unescaped texts
 *                                                                ^ offset 0 of the texts below
 *
 * The key comes first because a store looks at nothing else on its way to an object: struct and key
 * share one or two cache lines.
 * Invariants: B1 every text lies inside JSON and tail; B2 name and resourceVersion are within the
 * caps below, and the name is not empty; B3 labels are sound (object/labels.h); B4 nothing but refs
 * changes after making. What lies deeper than what the index names is checked for brackets and
 * quotes alone: looking into it is safe, and may find nothing. */
#ifndef VG_CLIENT_OBJECT_OBJECT_INT_H
#define VG_CLIENT_OBJECT_OBJECT_INT_H

#include <stdatomic.h>

#include "base/err.h"
#include "base/slice.h"
#include "error.h"
#include "object/labels.h"
#include "vigil/object.h"

/* 64 MiB: servers stop at 3 MiB or less; offsets have 32 bits. */
#define VG_OBJECT_BYTES_MAX ((size_t)64 << 20)
/* A resourceVersion is opaque; those that exist are numbers of 64 bits. */
#define VG_OBJECT_VERSION_MAX 128u
/* Bytes of each other text that the index names: lengths have 16 bits, a key has two parts,
 * and a bad byte is unescaped to three. */
#define VG_OBJECT_TEXT_MAX 8192u
/* They are sorted by insertion; the annotations of an object, labels included, have 256 KiB. */
#define VG_OBJECT_LABELS_MAX 4096u

struct vigil_object {
    _Atomic uint32_t refs;
    uint32_t json_n;
    uint32_t kind, api_version, uid, version;
    uint16_t kind_n, api_version_n, uid_n, version_n, key_n;
    uint16_t ns_n; /* of the key's bytes; 0: no namespace and no slash */
    uint16_t n_labels;
    uint16_t n_slots; /* for labels; more than there are labels when some were given twice */
};

/* What a list says of its items, as it stands between quotes in the list's JSON. */
struct vg_object_type {
    struct vg_slice api_version, kind;
};

/* Copy the bytes of one object into a block of its own. With `type`, members kind and apiVersion
 * that the bytes lack (items of typed lists) are put at their front, so that an object reads the
 * same whether it came from a list or from a watch. NULL: they may be missing.
 * 0; VIGIL_E_JSON_SYNTAX; VIGIL_E_JSON_TYPE: no object, or a member of another type;
 * VIGIL_E_INVALID: no metadata, or no name; VIGIL_E_TOO_LARGE; -ENOMEM. Allocates once. */
VG_CHECK int vg_object_make(struct vg_slice json, const struct vg_object_type *type,
                            const struct vigil_object **ret);

/* One frame of a watch: {"type":"ADDED","object":{...}}. */
struct vg_watch_frame {
    struct vg_slice type;   /* between its quotes */
    struct vg_slice object; /* its JSON, for vg_object_make or vg_json_find */
};
/* 0; VIGIL_E_JSON_SYNTAX, VIGIL_E_JSON_TYPE: not a frame. */
VG_CHECK int vg_watch_frame_read(struct vg_slice line, struct vg_watch_frame *ret);

/* "PodList" -> "Pod"; what does not end in List stays. */
struct vg_slice vg_object_item_kind(struct vg_slice list_kind);

static inline struct vg_slice vg_object_key(const struct vigil_object *o)
{
    return vg_slice(o + 1, o->key_n);
}
static inline struct vg_slice vg_object_namespace(const struct vigil_object *o)
{
    return vg_slice(o + 1, o->ns_n);
}
/* Packed, so they may lie anywhere. */
static inline const struct vg_label_ref *vg_object_label_refs(const struct vigil_object *o)
{
    return (const struct vg_label_ref *)(const void *)((const char *)(o + 1) + o->key_n);
}
/* Offset 0: the JSON. */
static inline const char *vg_object_base(const struct vigil_object *o)
{
    return (const char *)(vg_object_label_refs(o) + o->n_slots);
}
static inline struct vg_slice vg_object_version(const struct vigil_object *o)
{
    return vg_slice(vg_object_base(o) + o->version, o->version_n);
}
static inline struct vg_labels vg_object_labels(const struct vigil_object *o)
{
    return (struct vg_labels){vg_object_base(o), vg_object_label_refs(o), o->n_labels};
}

#endif
