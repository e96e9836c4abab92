/* patch_json.c - applying a JSON Patch (RFC 6902).
 * The document is copied once; the operations change that copy in place, one after another, and the
 * caller gets it only after the last. So a patch is atomic without any undo.
 * Invariants:
 *   P1 neither doc nor patch is written to; every value that enters the working copy is itself a
 *      copy, or was moved within it, so no two places of the result share children.
 *   P2 the working copy is never deeper than max_depth: checked before a value enters.
 *   P3 text added by "copy" stays within max_copy_bytes. What "add" and "replace" bring is part of
 *      the patch, whose size its receiver has capped: the result is bounded before it is built.
 *   P4 time is bounded: members scanned, items shifted and nodes measured count as steps. (A "test"
 *      costs no more than the value that the patch spells out.) */

#include "equal.h"
#include "patch_int.h"
#include "tree_edit.h"

struct patcher {
    struct vg_arena *arena;
    struct vg_json root; /* the working copy */
    const struct vg_json_op *op;
    bool strict;
    unsigned pointer_flags;
    uint32_t max_depth;
    uint64_t copied, max_copied; /* bytes */
    uint64_t steps, max_steps;
    struct vg_status *status;
};

/* ---- failing ---- */

static int fail_op(struct patcher *p, int err, const char *why)
{
    struct vg_json_path_text t;
    vg_fail(p->status, err, "JSON patch operation %u (%s \"%s\"): %s", p->op->index,
            vg_json_op_name(p->op->kind), vg_json_pointer_show(&p->op->path, p->op->path.n, &t),
            why);
    return err;
}

/* A failed "test" is told apart, whatever made it fail; -ENOMEM and the limits stay themselves. */
static int fail_here(struct patcher *p, const char *why)
{
    bool is_test = p->op->kind == VG_JSON_OP_TEST;
    return fail_op(p, is_test ? VIGIL_E_PATCH_TEST : VIGIL_E_PATCH_FAILED, why);
}

static int fail_token(struct patcher *p, const struct vg_json_pointer *ptr, uint32_t token,
                      const struct vg_json *at)
{
    struct vg_json_pointer_why why;
    return fail_here(p, vg_json_pointer_explain(ptr, token, at, &why));
}

static int fail_system(struct patcher *p, int err)
{
    return fail_op(p, err, vg_err_text(err));
}

/* ---- limits ---- */

static int spend(struct patcher *p, uint64_t steps)
{
    p->steps += steps;
    if (p->steps <= p->max_steps)
        return 0;
    return fail_op(p, VIGIL_E_TOO_LARGE, "the patch takes too many steps on this document");
}

/* May a value of that size go where ptr says? */
static int check_depth(struct patcher *p, const struct vg_json_measure *m,
                       const struct vg_json_pointer *ptr)
{
    if (m->depth <= p->max_depth && ptr->n <= p->max_depth - m->depth)
        return 0;
    return fail_op(p, VIGIL_E_JSON_DEPTH, "the result would be nested too deeply");
}

static int check_copied(struct patcher *p, const struct vg_json_measure *m)
{
    p->copied += m->bytes;
    if (p->copied <= p->max_copied)
        return 0;
    return fail_op(p, VIGIL_E_TOO_LARGE, "the copy operations of the patch add too much");
}

static int measure(struct patcher *p, const struct vg_json *v, struct vg_json_measure *ret)
{
    int r = vg_json_measure(v, ret);
    return r < 0 ? fail_system(p, r) : spend(p, ret->nodes);
}

/* ---- finding ---- */

/* Follow the first n tokens of ptr. */
static int find(struct patcher *p, const struct vg_json_pointer *ptr, uint32_t n,
                struct vg_json **ret)
{
    struct vg_json *at = &p->root;
    for (uint32_t i = 0; i < n; i++) {
        int r = spend(p, at->type == VG_JSON_OBJECT ? at->n : 1);
        if (r < 0)
            return r;
        r = vg_json_pointer_step(at, ptr->tokens[i], p->pointer_flags, &at);
        if (r < 0)
            return fail_token(p, ptr, i, at);
    }
    *ret = at;
    return 0;
}

static struct vg_slice last_token(const struct vg_json_pointer *ptr)
{
    return ptr->tokens[ptr->n - 1];
}

/* ---- the three changes that all operations are made of ---- */

static int put_member(struct patcher *p, struct vg_json *obj, struct vg_slice key, struct vg_json v)
{
    int r = spend(p, obj->n);
    if (r < 0)
        return r;
    struct vg_json *there = vg_json_get(obj, key);
    if (there) {
        *there = v;
        return 0;
    }
    r = vg_json_object_add_key(p->arena, obj, key, v);
    return r < 0 ? fail_system(p, r) : 0;
}

static int put_item(struct patcher *p, const struct vg_json_pointer *ptr, struct vg_json *arr,
                    struct vg_json v)
{
    struct vg_slice token = last_token(ptr);
    uint32_t i = arr->n; /* where "-" inserts */
    if (!vg_slice_eq(token, VG_SLICE_LIT("-")) &&
        vg_json_array_index(token, arr->n + 1, p->pointer_flags, &i) < 0)
        return fail_token(p, ptr, ptr->n - 1, arr);
    int r = spend(p, arr->n - i);
    if (r < 0)
        return r;
    r = vg_json_array_insert(p->arena, arr, i, v);
    return r < 0 ? fail_system(p, r) : 0;
}

/* Add v, which the working copy owns, at ptr: as RFC 6902 says for "add". */
static int put(struct patcher *p, const struct vg_json_pointer *ptr, struct vg_json v)
{
    struct vg_json *parent;
    if (ptr->n == 0) {
        p->root = v;
        return 0;
    }
    int r = find(p, ptr, ptr->n - 1, &parent);
    if (r < 0)
        return r;
    if (parent->type == VG_JSON_OBJECT)
        return put_member(p, parent, last_token(ptr), v);
    if (parent->type == VG_JSON_ARRAY)
        return put_item(p, ptr, parent, v);
    return fail_token(p, ptr, ptr->n - 1, parent);
}

/* Remove what is at ptr; it is there, for the caller has found it, and ptr is not the root. */
static int take_out(struct patcher *p, const struct vg_json_pointer *ptr)
{
    struct vg_json *parent;
    uint32_t i;
    int r = find(p, ptr, ptr->n - 1, &parent);
    if (r == 0)
        r = spend(p, parent->n);
    if (r < 0)
        return r;
    if (parent->type == VG_JSON_OBJECT) {
        vg_json_object_remove(parent, last_token(ptr));
        return 0;
    }
    r = vg_json_array_index(last_token(ptr), parent->n, p->pointer_flags, &i);
    if (VG_NEVER(r < 0))
        return fail_system(p, VIGIL_E_INTERNAL);
    vg_json_array_remove(parent, i);
    return 0;
}

/* A copy of the operation's value, fit to stand at its path. */
static int copy_value(struct patcher *p, struct vg_json *ret)
{
    struct vg_json_measure m;
    int r = measure(p, p->op->value, &m);
    if (r == 0)
        r = check_depth(p, &m, &p->op->path);
    if (r < 0)
        return r;
    r = vg_json_copy(p->arena, p->op->value, ret);
    return r < 0 ? fail_system(p, r) : 0;
}

/* ---- the operations ---- */

static int op_add(struct patcher *p)
{
    struct vg_json v;
    int r = copy_value(p, &v);
    return r < 0 ? r : put(p, &p->op->path, v);
}

static int op_remove(struct patcher *p)
{
    const struct vg_json_pointer *path = &p->op->path;
    struct vg_json *there;
    if (path->n == 0)
        return fail_here(p, "the whole document cannot be removed");
    int r = find(p, path, path->n, &there);
    return r < 0 ? r : take_out(p, path);
}

/* Is the target's parent an object? Then kube-apiserver replaces what is not there, too. */
static int may_be_missing(struct patcher *p, const struct vg_json_pointer *path)
{
    struct vg_json *parent;
    if (p->strict || path->n == 0)
        return 0;
    int r = find(p, path, path->n - 1, &parent);
    return r < 0 ? r : parent->type == VG_JSON_OBJECT;
}

static int op_replace(struct patcher *p)
{
    struct vg_json v, *there;
    int r = copy_value(p, &v);
    if (r == 0)
        r = may_be_missing(p, &p->op->path);
    if (r < 0)
        return r;
    if (r > 0)
        return put(p, &p->op->path, v);
    r = find(p, &p->op->path, p->op->path.n, &there);
    if (r == 0)
        *there = v;
    return r;
}

static int op_move(struct patcher *p)
{
    const struct vg_json_op *op = p->op;
    struct vg_json_measure m;
    struct vg_json *there;
    int r = find(p, &op->from, op->from.n, &there);
    if (r < 0 || vg_json_pointer_is_same(&op->from, &op->path))
        return r;
    if (op->path.n > op->from.n) { /* else it does not get deeper */
        r = measure(p, there, &m);
        if (r == 0)
            r = check_depth(p, &m, &op->path);
        if (r < 0)
            return r;
    }
    struct vg_json v = *there;
    r = take_out(p, &op->from);
    return r < 0 ? r : put(p, &op->path, v);
}

/* What a copy is of. kube-apiserver copies null when a member is not there. */
static int find_source(struct patcher *p, struct vg_json **ret)
{
    static struct vg_json nothing = {.type = VG_JSON_NULL};
    const struct vg_json_pointer *from = &p->op->from;
    struct vg_json *parent;
    int r = may_be_missing(p, from);
    if (r <= 0)
        return r < 0 ? r : find(p, from, from->n, ret);
    r = find(p, from, from->n - 1, &parent);
    if (r == 0)
        r = spend(p, parent->n);
    if (r < 0)
        return r;
    struct vg_json *there = vg_json_get(parent, last_token(from));
    *ret = there ? there : &nothing;
    return 0;
}

static int op_copy(struct patcher *p)
{
    struct vg_json_measure m;
    struct vg_json v, *there;
    int r = find_source(p, &there);
    if (r == 0)
        r = measure(p, there, &m);
    if (r == 0)
        r = check_depth(p, &m, &p->op->path);
    if (r == 0)
        r = check_copied(p, &m);
    if (r < 0)
        return r;
    r = vg_json_copy(p->arena, there, &v);
    return r < 0 ? fail_system(p, r) : put(p, &p->op->path, v);
}

/* kube-apiserver reads a member that is not there as null when it tests for null. */
static int is_tested_absence(struct patcher *p)
{
    const struct vg_json_pointer *path = &p->op->path;
    struct vg_json *parent;
    if (p->op->value->type != VG_JSON_NULL)
        return 0;
    int r = may_be_missing(p, path);
    if (r <= 0)
        return r;
    r = find(p, path, path->n - 1, &parent);
    return r < 0 ? r : !vg_json_get(parent, last_token(path));
}

static int op_test(struct patcher *p)
{
    struct vg_json *there;
    int r = is_tested_absence(p);
    if (r != 0)
        return r < 0 ? r : 0;
    r = find(p, &p->op->path, p->op->path.n, &there);
    if (r < 0)
        return r;
    r = vg_json_equal(there, p->op->value);
    if (r < 0)
        return fail_system(p, r);
    return r > 0 ? 0 : fail_here(p, "the test failed: the document has another value there");
}

static int (*const op_table[])(struct patcher *p) = {
    [VG_JSON_OP_ADD] = op_add,   [VG_JSON_OP_REMOVE] = op_remove, [VG_JSON_OP_REPLACE] = op_replace,
    [VG_JSON_OP_MOVE] = op_move, [VG_JSON_OP_COPY] = op_copy,     [VG_JSON_OP_TEST] = op_test,
};

/* ---- the whole patch ---- */

static struct patcher patcher_make(struct vg_arena *arena, const struct vg_json_patch_opts *o,
                                   struct vg_status *status)
{
    uint32_t depth = o->max_depth ? o->max_depth : VG_JSON_DEPTH_DEFAULT;
    return (struct patcher){
        .arena = arena,
        .strict = o->strict,
        .pointer_flags = o->strict ? 0 : VG_JSON_POINTER_NEGATIVE | VG_JSON_POINTER_LOOSE,
        .max_depth = VG_MIN(depth, VG_JSON_DEPTH_MAX),
        .max_copied = o->max_copy_bytes ? o->max_copy_bytes : VG_JSON_PATCH_COPY_BYTES_DEFAULT,
        .max_steps = o->max_steps ? o->max_steps : VG_JSON_PATCH_STEPS_DEFAULT,
        .status = status,
    };
}

static int apply_all(struct patcher *p, const struct vg_json *doc, const struct vg_json_op *ops,
                     uint32_t n)
{
    int r = vg_json_copy(p->arena, doc, &p->root);
    if (r < 0)
        return vg_fail(p->status, r, "cannot copy the document to patch: %s", vg_err_text(r));
    for (uint32_t i = 0; r == 0 && i < n; i++) {
        p->op = &ops[i];
        r = op_table[ops[i].kind](p);
    }
    return r;
}

int vg_json_patch_apply(struct vg_arena *arena, const struct vg_json *doc,
                        const struct vg_json *patch, const struct vg_json_patch_opts *opts,
                        struct vg_json *ret_doc, struct vg_status *reterr_status)
{
    static const struct vg_json_patch_opts defaults = {0};
    const struct vg_json_patch_opts *o = opts ? opts : &defaults;
    VG_AUTO(arena) ops_arena;
    struct vg_json_op *ops;
    uint32_t n;
    vg_arena_init(&ops_arena, 0, 0);
    int r = vg_json_patch_read(&ops_arena, patch, o, &ops, &n, reterr_status);
    if (r < 0)
        return r;
    struct patcher p = patcher_make(arena, o, reterr_status);
    r = apply_all(&p, doc, ops, n);
    if (r == 0)
        *ret_doc = p.root;
    return r;
}
