/* strategic.h - strategic merge patches: merge patches that know which lists are maps.
 * What a field's list is keyed by is said by a schema, a tree of constant data; nothing here knows
 * Kubernetes. A patch may hold directives: $patch (replace, delete), $retainKeys,
 * $setElementOrder/<field>, $deleteFromPrimitiveList/<field>. Order, messages and the choice
 * between refusals follow kube-apiserver; docs/internals/strategic.md says where they do not.
 * Neither input is touched; the result owes nothing to them, carries no source offsets and holds no
 * null that came from the patch. Directives may stay where the original leaves them, inside of what
 * is taken as it is: whoever decodes the result finds fields that no type has. Thread: inputs are
 * read only; the arena has one owner. */
#ifndef VG_JSON_STRATEGIC_H
#define VG_JSON_STRATEGIC_H

#include "base/buf.h"
#include "json.h"

/* What a field asks for, as bits. */
enum vg_merge_strategy {
    VG_MERGE_LIST = 1,    /* a list is merged, not replaced: by merge_key, or as a set */
    VG_MERGE_REPLACE = 2, /* an object is replaced, not merged */
    VG_MERGE_RETAIN_KEYS =
        4, /* patches of it carry $retainKeys; applying needs no knowledge of it */
};

struct vg_merge_schema;

struct vg_merge_field {
    const char *name;
    unsigned strategy;
    const char *merge_key;                /* NULL: the list is one of scalars */
    const struct vg_merge_schema *schema; /* of the object, or of the list's items; NULL: plain */
};

/* Only fields that ask for something, or lead to some that do, are listed. */
struct vg_merge_schema {
    const struct vg_merge_field *fields; /* ends with a NULL name */
};

/* 10 million members or items looked at: some tenths of a second. A thousand items merged into a
 * thousand stay a factor of three below. */
#define VG_STRATEGIC_STEPS_MAX ((uint64_t)10 * 1000 * 1000)

/* Apply patch, an object or null, to doc, an object. schema may be NULL: no list is merged.
 * 0; VIGIL_E_PATCH_INVALID: a malformed patch, whatever the document (kube-apiserver: 400);
 * VIGIL_E_PATCH_FAILED: a list of lists was to be merged (422); VIGIL_E_INTERNAL: an item without
 * its merge key, an unknown directive, an order that does not fit and the like, which
 * kube-apiserver answers with 500 and no reason; each with a message. VIGIL_E_TOO_LARGE:
 * VG_STRATEGIC_STEPS_MAX; VIGIL_E_JSON_DEPTH: document or patch deeper than VG_JSON_DEPTH_DEFAULT;
 * -ENOMEM. */
VG_CHECK int vg_json_strategic_apply(struct vg_arena *arena, const struct vg_json *doc,
                                     const struct vg_json *patch,
                                     const struct vg_merge_schema *schema, struct vg_json *ret_doc,
                                     struct vg_status *reterr_status);

/* Append v as Go's %v shows it, which is how kube-apiserver's messages show a strategic patch:
 * map[data:map[a:1] list:[x y]]. What was appended before a failure stays. Recurses: v is no deeper
 * than VG_JSON_DEPTH_DEFAULT. 0, -ENOMEM, VIGIL_E_TOO_LARGE. */
VG_CHECK int vg_json_strategic_show(struct vg_buf *out, const struct vg_json *v);

#endif
