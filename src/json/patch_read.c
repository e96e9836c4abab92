/* patch_read.c - from the tree of a JSON Patch to a list of operations.
 * Everything that can be wrong with a patch regardless of the document is found here, before any
 * operation runs: so VIGIL_E_PATCH_INVALID always means "fix the patch". Members that RFC 6902 does
 * not name are ignored, as it demands. */
#include <errno.h>

#include "patch_int.h"

static const char *const op_names[] = {
    [VG_JSON_OP_ADD] = "add",   [VG_JSON_OP_REMOVE] = "remove", [VG_JSON_OP_REPLACE] = "replace",
    [VG_JSON_OP_MOVE] = "move", [VG_JSON_OP_COPY] = "copy",     [VG_JSON_OP_TEST] = "test",
};

/* What "value" reads as where the patch gives none, unless the options are strict. */
static const struct vg_json null_value = {.type = VG_JSON_NULL};

struct reader {
    struct vg_arena *arena;
    bool strict;
    struct vg_status *status;
};

const char *vg_json_op_name(enum vg_json_op_kind kind)
{
    return op_names[kind];
}

static int read_kind(struct reader *rd, const struct vg_json *v, struct vg_json_op *op)
{
    const struct vg_json *name = vg_json_get_str(v, "op");
    if (!vg_json_is(name, VG_JSON_STRING))
        return vg_fail(rd->status, VIGIL_E_PATCH_INVALID,
                       "JSON patch operation %u: \"op\" is missing or not a string", op->index);
    for (size_t i = 0; i < VG_ARRAY_LEN(op_names); i++) {
        if (vg_slice_eq(vg_json_text(name), vg_slice_str(op_names[i]))) {
            op->kind = (enum vg_json_op_kind)i;
            return 0;
        }
    }
    struct vg_json_path_text t;
    return vg_fail(rd->status, VIGIL_E_PATCH_INVALID,
                   "JSON patch operation %u: unknown op \"%s\"; "
                   "known are add, remove, replace, move, copy and test",
                   op->index, vg_json_key_show(vg_json_text(name), &t));
}

static int read_pointer(struct reader *rd, const struct vg_json *v, const char *member,
                        const struct vg_json_op *op, struct vg_json_pointer *ret)
{
    const struct vg_json *text = vg_json_get_str(v, member);
    if (!vg_json_is(text, VG_JSON_STRING))
        return vg_fail(rd->status, VIGIL_E_PATCH_INVALID,
                       "JSON patch operation %u (%s): \"%s\" is missing or not a string", op->index,
                       vg_json_op_name(op->kind), member);
    struct vg_status why = {0};
    int r = rd->strict ? vg_json_pointer_parse(rd->arena, vg_json_text(text), ret, &why)
                       : vg_json_pointer_parse_loose(rd->arena, vg_json_text(text), ret, &why);
    if (r == VIGIL_E_JSON_POINTER)
        return vg_fail(rd->status, VIGIL_E_PATCH_INVALID,
                       "JSON patch operation %u (%s): \"%s\" is malformed: %.300s", op->index,
                       vg_json_op_name(op->kind), member, why.message);
    return r < 0 ? vg_fail(rd->status, r, "%s", why.message) : 0;
}

static int read_value(struct reader *rd, const struct vg_json *v, struct vg_json_op *op)
{
    op->value = vg_json_get_str(v, "value");
    if (!op->value && rd->strict)
        return vg_fail(rd->status, VIGIL_E_PATCH_INVALID,
                       "JSON patch operation %u (%s): \"value\" is missing", op->index,
                       vg_json_op_name(op->kind));
    if (!op->value)
        op->value = &null_value;
    return 0;
}

static int read_from(struct reader *rd, const struct vg_json *v, struct vg_json_op *op)
{
    int r = read_pointer(rd, v, "from", op, &op->from);
    if (r < 0 || op->kind == VG_JSON_OP_COPY)
        return r;
    struct vg_json_path_text from, path;
    if (vg_json_pointer_is_above(&op->from, &op->path))
        return vg_fail(
            rd->status, VIGIL_E_PATCH_INVALID,
            "JSON patch operation %u (move): cannot move \"%s\" into its own child \"%s\"",
            op->index, vg_json_pointer_show(&op->from, op->from.n, &from),
            vg_json_pointer_show(&op->path, op->path.n, &path));
    return 0;
}

static int read_op(struct reader *rd, const struct vg_json *v, struct vg_json_op *op)
{
    if (!vg_json_is(v, VG_JSON_OBJECT))
        return vg_fail(rd->status, VIGIL_E_PATCH_INVALID,
                       "JSON patch operation %u: must be an object, is %s", op->index,
                       vg_json_type_name((enum vg_json_type)v->type));
    int r = read_kind(rd, v, op);
    if (r == 0)
        r = read_pointer(rd, v, "path", op, &op->path);
    if (r < 0)
        return r;
    switch (op->kind) {
    case VG_JSON_OP_ADD:
    case VG_JSON_OP_REPLACE:
    case VG_JSON_OP_TEST:
        return read_value(rd, v, op);
    case VG_JSON_OP_MOVE:
    case VG_JSON_OP_COPY:
        return read_from(rd, v, op);
    case VG_JSON_OP_REMOVE:
        return 0;
    }
    return 0;
}

int vg_json_patch_read(struct vg_arena *arena, const struct vg_json *patch,
                       const struct vg_json_patch_opts *opts, struct vg_json_op **ret_ops,
                       uint32_t *ret_n, struct vg_status *reterr_status)
{
    uint32_t max = opts->max_ops ? opts->max_ops : VG_JSON_PATCH_OPS_DEFAULT;
    struct reader rd = {.arena = arena, .strict = opts->strict, .status = reterr_status};
    if (!vg_json_is(patch, VG_JSON_ARRAY))
        return vg_fail(reterr_status, VIGIL_E_PATCH_INVALID,
                       "a JSON patch must be an array of operations, this is %s",
                       vg_json_type_name((enum vg_json_type)patch->type));
    if (patch->n > max)
        return vg_fail(reterr_status, VIGIL_E_TOO_LARGE,
                       "a JSON patch may have at most %u operations, this has %u", max, patch->n);
    struct vg_json_op *ops = vg_arena_array(arena, struct vg_json_op, (size_t)patch->n + 1);
    if (!ops)
        return vg_fail(reterr_status, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < patch->n; i++) {
        ops[i] = (struct vg_json_op){.index = i};
        int r = read_op(&rd, &patch->items[i], &ops[i]);
        if (r < 0)
            return r;
    }
    *ret_ops = ops;
    *ret_n = patch->n;
    return 0;
}
