/* patch.h - changing documents: JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7386).
 * Neither ever touches its inputs: the result is a new tree in the caller's arena, which owes
 * nothing to the texts or arenas of document and patch, carries no source offsets, and is written
 * to ret only when all went well. A failure leaves garbage in the arena, nothing else.
 * Messages name the operation and the path, but never values of the document: they may be secrets.
 * docs/internals/patch.md says where kube-apiserver is followed and where the RFC.
 * Thread: inputs are read only; the arena has one owner. */
#ifndef VG_JSON_PATCH_H
#define VG_JSON_PATCH_H

#include "json.h"

/* What kube-apiserver allows. */
#define VG_JSON_PATCH_OPS_DEFAULT 10000u
/* 3 MiB, kube-apiserver's limit for what all "copy" operations of a patch may add. */
#define VG_JSON_PATCH_COPY_BYTES_DEFAULT ((size_t)3 << 20)
/* 100 million members looked at or items moved: some tenths of a second. Ten thousand operations on
 * an object of a thousand members stay a factor of ten below. */
#define VG_JSON_PATCH_STEPS_DEFAULT ((uint64_t)100 * 1000 * 1000)

/* All zero is the default: as kube-apiserver, default limits. */
struct vg_json_patch_opts {
    /* The letter of RFC 6902: no negative indexes, "replace" needs an existing member, "test" finds
     * no null where there is nothing, "value" must be given. */
    bool strict;
    uint32_t max_ops;      /* operations in a patch; 0 = VG_JSON_PATCH_OPS_DEFAULT */
    uint32_t max_depth;    /* of the result; 0 = VG_JSON_DEPTH_DEFAULT, at most VG_JSON_DEPTH_MAX */
    size_t max_copy_bytes; /* text added by "copy"; 0 = VG_JSON_PATCH_COPY_BYTES_DEFAULT */
    uint64_t max_steps;    /* work; 0 = VG_JSON_PATCH_STEPS_DEFAULT */
};

/* Apply a JSON Patch. opts may be NULL. All operations are checked before the first is applied.
 * The result, written as short as JSON allows, is no longer than document + patch + max_copy_bytes.
 * 0; VIGIL_E_PATCH_INVALID: not a JSON Patch, whatever the document; VIGIL_E_PATCH_FAILED: an
 * operation does not fit the document; VIGIL_E_PATCH_TEST: a "test" did not hold;
 * VIGIL_E_TOO_LARGE: too many operations, bytes copied or steps; VIGIL_E_JSON_DEPTH: document or
 * result too deep; -ENOMEM. Each message names the operation, counted from 0, and its path. */
VG_CHECK int vg_json_patch_apply(struct vg_arena *arena, const struct vg_json *doc,
                                 const struct vg_json *patch, const struct vg_json_patch_opts *opts,
                                 struct vg_json *ret_doc, struct vg_status *reterr_status);

/* Apply a merge patch. Every JSON value is one, so only memory and VIGIL_E_JSON_DEPTH can fail.
 * Members keep the document's order; new ones follow in the patch's. */
VG_CHECK int vg_json_merge_apply(struct vg_arena *arena, const struct vg_json *doc,
                                 const struct vg_json *patch, struct vg_json *ret_doc,
                                 struct vg_status *reterr_status);

/* The smallest merge patch that turns `from` into `to`: applied to `from` it gives a document equal
 * (vg_json_equal) to `to`; {} when they are equal objects already.
 * 0; VIGIL_E_PATCH_FAILED: no merge patch does it, because `to` has a null member that `from` has
 * not; the message names it; -ENOMEM; VIGIL_E_JSON_DEPTH. */
VG_CHECK int vg_json_merge_diff(struct vg_arena *arena, const struct vg_json *from,
                                const struct vg_json *to, struct vg_json *ret_patch,
                                struct vg_status *reterr_status);

#endif
