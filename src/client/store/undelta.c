/* undelta.c - a sink that hands over the whole set after each change; see vigil/informer.h. */
#include <errno.h>

#include "base/alloc.h"
#include "store_int.h"
#include "vigil/informer.h"

struct vigil_undelta {
    struct vigil_store *store;
    void (*push)(void *arg, const struct vigil_object *const *objects, size_t n);
    void *arg;
};

int vigil_undelta_new(void (*push)(void *arg, const struct vigil_object *const *objects, size_t n),
                      void *arg, struct vigil_undelta **ret)
{
    struct vigil_undelta *u = vg_new(struct vigil_undelta);
    if (!u)
        return VIGIL_E_MEMORY;
    u->push = push;
    u->arg = arg;
    int r = vigil_store_new(NULL, 0, &u->store, NULL);
    if (r < 0)
        vg_free(u);
    else
        *ret = u;
    return r;
}

void vigil_undelta_free(struct vigil_undelta *u)
{
    if (!u)
        return;
    vigil_store_free(u->store);
    vg_free(u);
}

struct vigil_store *vigil_undelta_store(struct vigil_undelta *u)
{
    return u->store;
}

/* The write is done when this fails: the next push tells of it too. */
static int push_all(struct vigil_undelta *u)
{
    struct vg_ctree t = vg_store_state(u->store);
    const struct vigil_object **v = vg_reallocarray(NULL, t.count + 1, sizeof(*v));
    struct vg_ctree_cursor c;
    const struct vg_ctree_entry *e;
    size_t n = 0;
    if (v) {
        vg_ctree_seek(&c, &t, NULL);
        while ((e = vg_ctree_next(&c)))
            v[n++] = e->o;
        u->push(u->arg, v, n);
        vg_free((void *)v);
    }
    vg_ctree_done(&t);
    return v ? 0 : VIGIL_E_MEMORY;
}

static int sink_put(void *arg, const struct vigil_object *o)
{
    struct vigil_undelta *u = arg;
    int r = vigil_store_put(u->store, o);
    return r < 0 ? r : push_all(u);
}

static int sink_remove(void *arg, const struct vigil_object *o)
{
    struct vigil_undelta *u = arg;
    int r = vigil_store_delete(u->store, o);
    return r < 0 ? r : push_all(u);
}

static int sink_replace(void *arg, const struct vigil_object *const *objects, size_t n,
                        struct vigil_text resource_version)
{
    struct vigil_undelta *u = arg;
    int r = vigil_store_replace(u->store, objects, n, resource_version);
    return r < 0 ? r : push_all(u);
}

static void sink_bookmark(void *arg, struct vigil_text resource_version)
{
    struct vigil_undelta *u = arg;
    vg_store_bookmark(u->store, vg_slice_of(resource_version));
}

struct vigil_sink vigil_undelta_sink(struct vigil_undelta *u)
{
    return (struct vigil_sink){.put = sink_put,
                               .remove = sink_remove,
                               .replace = sink_replace,
                               .bookmark = sink_bookmark,
                               .arg = u};
}
