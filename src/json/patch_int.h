/* patch_int.h - a JSON Patch once it is read: shared by patch_read.c and patch_json.c. */
#ifndef VG_JSON_PATCH_INT_H
#define VG_JSON_PATCH_INT_H

#include "patch.h"
#include "pointer.h"

enum vg_json_op_kind {
    VG_JSON_OP_ADD,
    VG_JSON_OP_REMOVE,
    VG_JSON_OP_REPLACE,
    VG_JSON_OP_MOVE,
    VG_JSON_OP_COPY,
    VG_JSON_OP_TEST,
};

struct vg_json_op {
    enum vg_json_op_kind kind;
    uint32_t index; /* in the patch */
    struct vg_json_pointer path;
    struct vg_json_pointer from; /* MOVE, COPY */
    const struct vg_json *value; /* ADD, REPLACE, TEST: never NULL */
};

/* The word for it in a patch. */
const char *vg_json_op_name(enum vg_json_op_kind kind);

/* Check all operations of patch and put them into arena; they point into the patch.
 * 0, VIGIL_E_PATCH_INVALID, VIGIL_E_TOO_LARGE, -ENOMEM; with message. */
VG_CHECK int vg_json_patch_read(struct vg_arena *arena, const struct vg_json *patch,
                                const struct vg_json_patch_opts *opts, struct vg_json_op **ret_ops,
                                uint32_t *ret_n, struct vg_status *reterr_status);

#endif
