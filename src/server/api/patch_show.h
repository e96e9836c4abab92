/* patch_show.h - a patched object as a refusal shows it. Thread: one owner. */
#ifndef VG_API_PATCH_SHOW_H
#define VG_API_PATCH_SHOW_H

#include "json/json.h"

/* As kube-apiserver's patching leaves it: objects that the patch went into have their members
 * sorted, all others are as they were. patch: a JSON Patch or a merge patch. 0, -ENOMEM. */
VG_CHECK int vg_patch_show(struct vg_arena *a, const struct vg_json *result,
                           const struct vg_json *patch, struct vg_json *ret);

#endif
