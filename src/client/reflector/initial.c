/* initial.c - see initial.h. */
#include "initial.h"

#include <errno.h>

#include "base/alloc.h"

void vg_initial_done(struct vg_initial *s)
{
    for (size_t i = 0; i < s->n; i++)
        vigil_object_unref(s->v[i]);
    vg_free(s->v);
    vg_map_done(&s->by_key);
    *s = (struct vg_initial){0};
}

static int reserve(struct vg_initial *s)
{
    if (s->n < s->cap)
        return 0;
    size_t cap = s->cap ? s->cap * 2 : 64;
    const struct vigil_object **v = vg_reallocarray(s->v, cap, sizeof(*v));
    if (!v)
        return -ENOMEM;
    s->v = v;
    s->cap = cap;
    return 0;
}

int vg_initial_put(struct vg_initial *s, const struct vigil_object *take_o)
{
    size_t at = (uintptr_t)vg_map_get(&s->by_key, vg_object_key(take_o));
    int r = at ? 0 : reserve(s);
    void *place = (void *)(uintptr_t)(at ? at : s->n + 1);
    if (r == 0)
        r = vg_map_put(&s->by_key, vg_object_key(take_o), place, NULL);
    if (r < 0) {
        vigil_object_unref(take_o);
        return r;
    }
    if (at)
        vigil_object_unref(s->v[at - 1]); /* the map borrows the new key now */
    s->v[at ? at - 1 : s->n++] = take_o;
    return 0;
}

void vg_initial_remove(struct vg_initial *s, const struct vigil_object *o)
{
    size_t at = (uintptr_t)vg_map_remove(&s->by_key, vg_object_key(o));
    if (!at)
        return;
    vigil_object_unref(s->v[at - 1]);
    s->v[at - 1] = NULL;
}

size_t vg_initial_pack(struct vg_initial *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i])
            s->v[n++] = s->v[i];
    s->n = n;
    vg_map_clear(&s->by_key); /* places have changed */
    return n;
}
