/* walk.c - pre-order over a tree with a stack on the heap.
 * frames[i] is the container at depth i that the walk is inside of, and which child it is at. */
#include <errno.h>

#include "base/alloc.h"
#include "json.h"

struct vg_json_walk_frame {
    struct vg_json *container;
    uint32_t index;
};

#define FRAMES_FIRST 32u

void vg_json_walk_done(struct vg_json_walk *w)
{
    vg_free(w->frames);
    w->frames = NULL;
    w->frames_cap = 0;
}

static bool is_container(const struct vg_json *v)
{
    return v->type == VG_JSON_ARRAY || v->type == VG_JSON_OBJECT;
}

/* Point at the child of frames[depth - 1] that it says. */
static void see_child(struct vg_json_walk *w)
{
    const struct vg_json_walk_frame *f = &w->frames[w->depth - 1];
    w->index = f->index;
    if (f->container->type == VG_JSON_OBJECT) {
        w->member = &f->container->members[f->index];
        w->node = &f->container->members[f->index].value;
    } else {
        w->member = NULL;
        w->node = &f->container->items[f->index];
    }
    w->leaving = false;
}

static int push(struct vg_json_walk *w)
{
    if (w->depth == w->frames_cap) {
        uint32_t cap = w->frames_cap ? w->frames_cap * 2 : FRAMES_FIRST;
        void *p = vg_reallocarray(w->frames, cap, sizeof *w->frames);
        if (!p)
            return -ENOMEM;
        w->frames = p;
        w->frames_cap = cap;
    }
    w->frames[w->depth++] = (struct vg_json_walk_frame){w->node, 0};
    see_child(w);
    return 1;
}

/* Back at the container whose last child has been seen. */
static void pop(struct vg_json_walk *w)
{
    struct vg_json *container = w->frames[--w->depth].container;
    if (w->depth > 0) {
        see_child(w);
    } else {
        w->member = NULL;
        w->index = 0;
    }
    w->node = container;
    w->leaving = true;
}

int vg_json_walk_next(struct vg_json_walk *w)
{
    if (!w->started) {
        w->started = true;
        return 1;
    }
    if (is_container(w->node) && !w->leaving) {
        if (w->depth >= VG_JSON_DEPTH_MAX)
            return VIGIL_E_JSON_DEPTH;
        if (w->node->n > 0 && !w->skip)
            return push(w);
        w->skip = false;
        w->leaving = true;
        return 1;
    }
    if (w->depth == 0)
        return 0;
    struct vg_json_walk_frame *f = &w->frames[w->depth - 1];
    if (++f->index < f->container->n)
        see_child(w);
    else
        pop(w);
    return 1;
}
