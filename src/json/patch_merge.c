/* patch_merge.c - applying a JSON Merge Patch (RFC 7386).
 * The RFC's recursive MergePatch() becomes a stack of pairs (target, patch), both objects or the
 * target missing. The result is built beside them: first the target's members in their order, each
 * kept, dropped or merged; then those of the patch that the target has not. An object in a patch is
 * merged even where the target has nothing, because its nulls must not enter the result; anything
 * else in a patch is copied as it is, nulls inside arrays included.
 * The result is no deeper than the deeper of the two, so no limit of its own is needed. */
#include "base/alloc.h"
#include "lookup.h"
#include "patch.h"
#include "tree_edit.h"

struct frame {
    const struct vg_json *target; /* an object; NULL when there was none at this place */
    const struct vg_json *patch;  /* an object */
    struct vg_json out;
    struct vg_slice key; /* of `out` in the frame below */
    uint32_t next;       /* target's members first, then patch's */
    struct vg_json_lookup in_target, in_patch;
};

struct merger {
    struct vg_arena *arena;
    struct frame *frames;
    uint32_t n, cap;
    struct vg_json result;
};

static void frame_done(struct frame *f)
{
    vg_json_lookup_done(&f->in_target);
    vg_json_lookup_done(&f->in_patch);
}

static void merger_done(struct merger *m)
{
    while (m->n > 0)
        frame_done(&m->frames[--m->n]);
    vg_free(m->frames);
}

static int push(struct merger *m, struct vg_slice key, const struct vg_json *target,
                const struct vg_json *patch)
{
    void *frames = m->frames;
    int r = vg_json_stack_room(&frames, &m->cap, m->n, sizeof *m->frames);
    m->frames = frames;
    if (r < 0)
        return r;
    struct frame *f = &m->frames[m->n++];
    *f = (struct frame){.patch = patch, .out = vg_json_object(), .key = key};
    f->target = vg_json_is(target, VG_JSON_OBJECT) ? target : NULL;
    vg_json_lookup_init(&f->in_target, f->target);
    vg_json_lookup_init(&f->in_patch, patch);
    return 0;
}

/* The innermost object is complete: hand it to the one around it. */
static int pop(struct merger *m)
{
    struct frame f = m->frames[--m->n];
    frame_done(&f);
    if (m->n == 0) {
        m->result = f.out;
        return 0;
    }
    return vg_json_object_add_key(m->arena, &m->frames[m->n - 1].out, f.key, f.out);
}

/* Put what `patch` makes of `target` (NULL: nothing there) under key; patch is not null. */
static int merge_member(struct merger *m, struct vg_slice key, const struct vg_json *target,
                        const struct vg_json *patch)
{
    if (patch->type == VG_JSON_OBJECT)
        return push(m, key, target, patch);
    return vg_json_object_add_copy(m->arena, &m->frames[m->n - 1].out, key, patch);
}

static int step_target(struct merger *m, struct frame *f, uint32_t i)
{
    const struct vg_json_member *was = &f->target->members[i], *change;
    int r = vg_json_lookup_find(&f->in_patch, vg_json_key(was), i, &change);
    if (r < 0)
        return r;
    if (r == 0)
        return vg_json_object_add_copy(m->arena, &f->out, vg_json_key(was), &was->value);
    if (change->value.type == VG_JSON_NULL)
        return 0;
    return merge_member(m, vg_json_key(was), &was->value, &change->value);
}

static int step_patch(struct merger *m, struct frame *f, uint32_t i)
{
    const struct vg_json_member *change = &f->patch->members[i], *was;
    if (change->value.type == VG_JSON_NULL)
        return 0;
    int r = vg_json_lookup_find(&f->in_target, vg_json_key(change), i, &was);
    if (r != 0)
        return r < 0 ? r : 0; /* merged with the target's members */
    return merge_member(m, vg_json_key(change), NULL, &change->value);
}

static int step(struct merger *m)
{
    struct frame *f = &m->frames[m->n - 1];
    uint32_t targets = f->target ? f->target->n : 0;
    uint32_t i = f->next++;
    if (i < targets)
        return step_target(m, f, i);
    if (i - targets < f->patch->n)
        return step_patch(m, f, i - targets);
    return pop(m);
}

static int merge(struct merger *m, const struct vg_json *doc, const struct vg_json *patch)
{
    if (patch->type != VG_JSON_OBJECT)
        return vg_json_copy(m->arena, patch, &m->result);
    int r = push(m, vg_slice("", 0), doc, patch);
    while (r == 0 && m->n > 0)
        r = step(m);
    return r;
}

int vg_json_merge_apply(struct vg_arena *arena, const struct vg_json *doc,
                        const struct vg_json *patch, struct vg_json *ret_doc,
                        struct vg_status *reterr_status)
{
    struct merger m = {.arena = arena};
    int r = merge(&m, doc, patch);
    merger_done(&m);
    if (r < 0)
        return vg_fail(reterr_status, r, "cannot apply the merge patch: %s", vg_err_text(r));
    *ret_doc = m.result;
    return 0;
}
