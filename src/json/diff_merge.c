/* diff_merge.c - the merge patch between two documents.
 * Where both have an object the difference is an object of the members that differ; everywhere else
 * a differing value is given whole. Pairs of objects wait on an explicit stack.
 * What a merge patch cannot say: "this member is null". A null of `to` is therefore fine only
 * inside an array (arrays are copied as they are), as the whole document, or where `from` has a
 * null too and objects lead to both (then the patch is silent about it). Any other null is found
 * when the value around it is about to enter the patch, and told to the caller. */
#include "base/alloc.h"
#include "equal.h"
#include "lookup.h"
#include "patch.h"
#include "pointer.h"
#include "tree_edit.h"

struct frame {
    const struct vg_json *from, *to; /* objects */
    struct vg_json out;
    struct vg_slice key; /* of `out` in the frame below */
    uint32_t next;       /* to's members first, then from's */
    struct vg_json_lookup in_from, in_to;
};

struct differ {
    struct vg_arena *arena;
    struct frame *frames;
    uint32_t n, cap;
    struct vg_json result;
    struct vg_status *status;
};

static void frame_done(struct frame *f)
{
    vg_json_lookup_done(&f->in_from);
    vg_json_lookup_done(&f->in_to);
}

static void differ_done(struct differ *d)
{
    while (d->n > 0)
        frame_done(&d->frames[--d->n]);
    vg_free(d->frames);
}

static int fail_system(struct differ *d, int err)
{
    return vg_fail(d->status, err, "cannot make the merge patch: %s", vg_err_text(err));
}

static int push(struct differ *d, struct vg_slice key, const struct vg_json *from,
                const struct vg_json *to)
{
    void *frames = d->frames;
    int r = vg_json_stack_room(&frames, &d->cap, d->n, sizeof *d->frames);
    d->frames = frames;
    if (r < 0)
        return fail_system(d, r);
    struct frame *f = &d->frames[d->n++];
    *f = (struct frame){.from = from, .to = to, .out = vg_json_object(), .key = key};
    vg_json_lookup_init(&f->in_from, from);
    vg_json_lookup_init(&f->in_to, to);
    return 0;
}

/* The innermost pair is done: what differs there enters the patch around it. */
static int pop(struct differ *d)
{
    struct frame f = d->frames[--d->n];
    frame_done(&f);
    if (d->n == 0) {
        d->result = f.out;
        return 0;
    }
    if (f.out.n == 0)
        return 0;
    int r = vg_json_object_add_key(d->arena, &d->frames[d->n - 1].out, f.key, f.out);
    return r < 0 ? fail_system(d, r) : 0;
}

/* ---- nulls ---- */

/* Messages name the member whose value holds the null, and the null's own key. */
static int fail_null(struct differ *d, struct vg_slice member, struct vg_slice null_key)
{
    struct vg_json_path_text path = {0}, key;
    for (uint32_t i = 1; i < d->n; i++)
        vg_json_path_text_add(&path, d->frames[i].key);
    if (d->n > 0)
        vg_json_path_text_add(&path, member);
    return vg_fail(d->status, VIGIL_E_PATCH_FAILED,
                   "no merge patch makes this document: at \"%s\", member \"%s\" is null", path.s,
                   vg_json_key_show(null_key, &key));
}

/* v is to enter the patch under key: refuse it if merging would lose a null of it. */
static int check_nulls(struct differ *d, struct vg_slice key, const struct vg_json *v)
{
    if (v->type == VG_JSON_NULL)
        return fail_null(d, key, key);
    VG_AUTO(json_walk) w;
    int r;
    vg_json_walk_init(&w, v);
    while ((r = vg_json_walk_next(&w)) > 0) {
        if (w.leaving)
            continue;
        if (w.node->type == VG_JSON_NULL)
            return fail_null(d, key, vg_json_key(w.member));
        w.skip = w.node->type == VG_JSON_ARRAY;
    }
    return r < 0 ? fail_system(d, r) : 0;
}

/* ---- one member at a time ---- */

static int give(struct differ *d, struct vg_slice key, const struct vg_json *v)
{
    int r = check_nulls(d, key, v);
    if (r < 0)
        return r;
    r = vg_json_object_add_copy(d->arena, &d->frames[d->n - 1].out, key, v);
    return r < 0 ? fail_system(d, r) : 0;
}

static int step_to(struct differ *d, struct frame *f, uint32_t i)
{
    const struct vg_json_member *now = &f->to->members[i], *was;
    struct vg_slice key = vg_json_key(now);
    int r = vg_json_lookup_find(&f->in_from, key, i, &was);
    if (r < 0)
        return fail_system(d, r);
    if (r == 0)
        return give(d, key, &now->value);
    if (was->value.type == VG_JSON_OBJECT && now->value.type == VG_JSON_OBJECT)
        return push(d, key, &was->value, &now->value);
    r = vg_json_equal(&was->value, &now->value);
    if (r < 0)
        return fail_system(d, r);
    return r > 0 ? 0 : give(d, key, &now->value);
}

static int step_from(struct differ *d, struct frame *f, uint32_t i)
{
    const struct vg_json_member *was = &f->from->members[i], *now;
    int r = vg_json_lookup_find(&f->in_to, vg_json_key(was), i, &now);
    if (r == 0)
        r = vg_json_object_add_key(d->arena, &f->out, vg_json_key(was), vg_json_null());
    return r < 0 ? fail_system(d, r) : 0;
}

static int step(struct differ *d)
{
    struct frame *f = &d->frames[d->n - 1];
    uint32_t i = f->next++;
    if (i < f->to->n)
        return step_to(d, f, i);
    if (i - f->to->n < f->from->n)
        return step_from(d, f, i - f->to->n);
    return pop(d);
}

static int diff(struct differ *d, const struct vg_json *from, const struct vg_json *to)
{
    struct vg_slice no_key = {"", 0};
    int r = 0;
    if (from->type == VG_JSON_OBJECT && to->type == VG_JSON_OBJECT) {
        r = push(d, no_key, from, to);
        while (r == 0 && d->n > 0)
            r = step(d);
        return r;
    }
    if (to->type == VG_JSON_OBJECT)
        r = check_nulls(d, no_key, to);
    if (r < 0)
        return r;
    r = vg_json_copy(d->arena, to, &d->result);
    return r < 0 ? fail_system(d, r) : 0;
}

int vg_json_merge_diff(struct vg_arena *arena, const struct vg_json *from, const struct vg_json *to,
                       struct vg_json *ret_patch, struct vg_status *reterr_status)
{
    struct differ d = {.arena = arena, .status = reterr_status};
    int r = diff(&d, from, to);
    differ_done(&d);
    if (r == 0)
        *ret_patch = d.result;
    return r;
}
