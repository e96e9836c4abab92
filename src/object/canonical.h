/* canonical.h - the one way in which an object is written before it is stored.
 * Compact JSON, escaped as kube-apiserver escapes it. The order of keys is this file's business
 * alone: kind, apiVersion and metadata come first; in metadata name, generateName, namespace,
 * selfLink and uid come first, then would stand the resourceVersion, which is left out; all else
 * keeps the order it was given in. An order by schema can replace this one without a change
 * elsewhere, as long as it says where the revision goes and where a list item begins. */
#ifndef VG_OBJECT_CANONICAL_H
#define VG_OBJECT_CANONICAL_H

#include "base/buf.h"
#include "base/err.h"
#include "json/json.h"

struct vg_obj_layout {
    uint32_t item_at; /* just past kind and apiVersion and their commas; 1 when there are none */
    uint32_t rev_at;  /* just past a member of metadata: ,"resourceVersion":"N" goes here */
};

/* Append `object` to `out`. `source`: the text that the tree was parsed from, if it had no
 * duplicate keys; or empty. Members outside of metadata that are of it (json.h, J1) and written in
 * it as they would be here are then copied and not written: whoever changes something below such a
 * member clears its offsets. Errors are those of vg_obj_seal that concern the object's frame:
 * VIGIL_E_INVALID, _TOO_LARGE, _JSON_DEPTH, -ENOMEM. After a failure a part may have been
 * appended. */
VG_CHECK int vg_obj_write_canonical(struct vg_buf *out, const struct vg_json *object,
                                    struct vg_slice source, struct vg_obj_layout *ret_layout,
                                    struct vg_status *reterr_status);

#endif
