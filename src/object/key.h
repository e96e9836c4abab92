/* key.h - storage keys, built as kube-apiserver builds them.
 *
 *     /registry/pods/default/web-0        prefix, namespace, '/', name
 *     /registry/nodes/n1                  prefix, name
 *
 * A kind's prefix ends with '/', so no kind's keys lie among another's, and all of a namespace or
 * of a kind is one range of keys. Names come checked by the API; here is refused only what would
 * break the shape of a key: an empty part, "." or "..", a '/' or a 0 byte within. Nothing
 * allocates. Thread: any. */
#ifndef VG_OBJECT_KEY_H
#define VG_OBJECT_KEY_H

#include "base/err.h"
#include "base/slice.h"

/* The longest key that storage takes (src/server/storage), set by LMDB's 511. */
#define VG_OBJ_KEY_MAX 480u

/* A key in the caller's hands. One byte more than the longest: the key after it. */
struct vg_obj_key {
    uint32_t n;
    char bytes[VG_OBJ_KEY_MAX + 1];
};
static inline struct vg_slice vg_obj_key_slice(const struct vg_obj_key *k)
{
    return vg_slice(k->bytes, k->n);
}

/* The keys from start up to but without end. */
struct vg_obj_key_range {
    struct vg_obj_key start, end;
};

/* prefix + [ns + '/'] + name; an empty ns means a cluster-scoped kind.
 * 0; VIGIL_E_KEY_INVALID: a part that breaks the shape, or longer than VG_OBJ_KEY_MAX. */
VG_CHECK int vg_obj_key_make(struct vg_slice prefix, struct vg_slice ns, struct vg_slice name,
                             struct vg_obj_key *ret);
/* Back into parts, which are slices of `key`; *ret_ns is empty for a cluster-scoped kind.
 * 0; VIGIL_E_KEY_INVALID: another prefix, or not the shape that `namespaced` says. */
VG_CHECK int vg_obj_key_split(struct vg_slice prefix, bool namespaced, struct vg_slice key,
                              struct vg_slice *ret_ns, struct vg_slice *ret_name);

/* All of a kind, or with ns not empty all of one namespace. 0; VIGIL_E_KEY_INVALID. */
VG_CHECK int vg_obj_key_range(struct vg_slice prefix, struct vg_slice ns,
                              struct vg_obj_key_range *ret);
/* The smallest key above every key that begins with `prefix`. 0; VIGIL_E_KEY_INVALID: too long, or
 * there is none (all bytes are 0xff, or no bytes at all). */
VG_CHECK int vg_obj_key_prefix_end(struct vg_slice prefix, struct vg_obj_key *ret);

/* ---- pages ---- */

/* The smallest key above `last`, at which the page after it starts: last + a 0 byte. It may be one
 * byte longer than a stored key can be. 0; VIGIL_E_KEY_INVALID: `last` is too long. */
VG_CHECK int vg_obj_key_next(struct vg_slice last, struct vg_obj_key *ret);
/* What a continue token says of a start key: the key without the prefix, a slice of `start`. */
struct vg_slice vg_obj_key_to_continue(struct vg_slice prefix, struct vg_slice start);
/* And back, from a token that a client hands in. 0; VIGIL_E_INVALID: too long, empty, or with a
 * step ("." or "..", an empty one) that would lead out of the prefix. */
VG_CHECK int vg_obj_key_from_continue(struct vg_slice prefix, struct vg_slice rest,
                                      struct vg_obj_key *ret);

#endif
