/* index.c - the indexes of a store: trees of the same objects, ordered by what a function says of
 * them. */
#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "store_int.h"

int vg_store_index_init(struct vg_store_index *x, const struct vigil_index *from)
{
    char *name = vg_strdup(from->name);
    if (!name)
        return -ENOMEM;
    *x = (struct vg_store_index){.name = name, .fn = from->fn, .arg = from->arg};
    return 0;
}

static void values_clear(struct vg_store_values *values)
{
    for (size_t i = 0; i < values->n; i++)
        vg_ctree_value_unref(values->v[i]);
    values->n = 0;
    values->has_failed = false;
}

void vg_store_index_forget(struct vg_store_index *x)
{
    values_clear(&x->before);
    values_clear(&x->after);
}

void vg_store_index_done(struct vg_store_index *x)
{
    vg_store_index_forget(x);
    vg_free(x->before.v);
    vg_free(x->after.v);
    vg_ctree_done(&x->tree);
    vg_free(x->name);
}

/* ---- one object ---- */

static bool has_value(const struct vg_store_values *values, struct vg_slice text)
{
    for (size_t i = 0; i < values->n; i++)
        if (vg_slice_eq(vg_slice(values->v[i]->bytes, values->v[i]->n), text))
            return true;
    return false;
}

struct emitting {
    const struct vg_ctree *tree; /* whose values are shared */
    struct vg_store_values *values;
};

/* The text that objects in the tree have already, or a new one. */
static struct vg_ctree_value *share_value(const struct vg_ctree *tree, struct vg_slice text)
{
    struct vg_ctree_key key = {.value = text};
    struct vg_ctree_cursor c;
    vg_ctree_seek(&c, tree, &key);
    const struct vg_ctree_entry *e = vg_ctree_next(&c);
    if (e && vg_slice_eq(vg_ctree_value_of(e), text))
        return vg_ctree_value_ref(e->value);
    return vg_ctree_value_new(text);
}

static void emit(void *arg, struct vigil_text text)
{
    struct emitting *m = arg;
    struct vg_store_values *values = m->values;
    if (values->has_failed || has_value(values, vg_slice_of(text)))
        return;
    if (values->n == values->cap) {
        size_t cap = values->cap ? values->cap * 2 : 4;
        struct vg_ctree_value **v = vg_reallocarray(values->v, cap, sizeof(*v));
        if (!v) {
            values->has_failed = true;
            return;
        }
        values->v = v;
        values->cap = cap;
    }
    struct vg_ctree_value *value = share_value(m->tree, vg_slice_of(text));
    values->has_failed = !value;
    if (value)
        values->v[values->n++] = value;
}

static int collect(struct vg_store_index *x, struct vg_store_values *values,
                   const struct vigil_object *o)
{
    struct emitting m = {&x->tree, values};
    if (o)
        x->fn(x->arg, o, emit, &m);
    return values->has_failed ? -ENOMEM : 0;
}

int vg_store_index_prepare(struct vg_store_index *x, const struct vigil_object *before,
                           const struct vigil_object *after)
{
    int r = collect(x, &x->before, before);
    return r < 0 ? r : collect(x, &x->after, after);
}

void vg_store_index_apply(struct vg_store_index *x, struct vg_ctree_pool *pool,
                          const struct vigil_object *before, const struct vigil_object *after)
{
    for (size_t i = 0; i < x->before.n; i++) {
        struct vg_slice text = vg_slice(x->before.v[i]->bytes, x->before.v[i]->n);
        if (has_value(&x->after, text))
            continue;
        struct vg_ctree_key key = {.value = text, .key = vg_object_key(before)};
        struct vg_ctree_entry old = vg_ctree_remove(&x->tree, pool, &key);
        vg_ctree_entry_unref(&old);
    }
    for (size_t i = 0; i < x->after.n; i++) {
        struct vg_ctree_entry e = {vigil_object_ref(after), vg_ctree_value_ref(x->after.v[i])};
        struct vg_ctree_entry old = vg_ctree_put(&x->tree, pool, e);
        vg_ctree_entry_unref(&old);
    }
    vg_store_index_forget(x);
}

/* ---- all objects at once ---- */

/* Entries of the index to be. The values are owned; equal ones are made one after sorting. */
struct building {
    const struct vigil_object *o;
    struct vg_ctree_entry *v;
    size_t n, cap;
    size_t first; /* of this object */
    bool has_failed;
};

static void emit_build(void *arg, struct vigil_text text)
{
    struct building *b = arg;
    for (size_t i = b->first; i < b->n; i++)
        if (vg_slice_eq(vg_ctree_value_of(&b->v[i]), vg_slice_of(text)))
            return;
    if (b->has_failed)
        return;
    if (b->n == b->cap) {
        size_t cap = b->cap ? b->cap * 2 : 64;
        struct vg_ctree_entry *v = vg_reallocarray(b->v, cap, sizeof(*v));
        b->has_failed = !v;
        if (!v)
            return;
        b->v = v;
        b->cap = cap;
    }
    struct vg_ctree_value *value = NULL;
    if (b->n && vg_slice_eq(vg_ctree_value_of(&b->v[b->n - 1]), vg_slice_of(text)))
        value = vg_ctree_value_ref(b->v[b->n - 1].value); /* neighbours often agree */
    else
        value = vg_ctree_value_new(vg_slice_of(text));
    b->has_failed = !value;
    if (value)
        b->v[b->n++] = (struct vg_ctree_entry){b->o, value};
}

static int by_value_and_key(const void *a, const void *b)
{
    const struct vg_ctree_entry *x = a, *y = b;
    int c = vg_slice_cmp(vg_ctree_value_of(x), vg_ctree_value_of(y));
    return c ? c : vg_slice_cmp(vg_object_key(x->o), vg_object_key(y->o));
}

static void share_values(struct building *b)
{
    for (size_t i = 1; i < b->n; i++) {
        struct vg_ctree_value *mine = b->v[i].value, *before = b->v[i - 1].value;
        if (mine == before ||
            !vg_slice_eq(vg_ctree_value_of(&b->v[i]), vg_ctree_value_of(&b->v[i - 1])))
            continue;
        b->v[i].value = vg_ctree_value_ref(before);
        vg_ctree_value_unref(mine);
    }
}

int vg_store_index_build(const struct vg_store_index *x, const struct vg_ctree *objects,
                         struct vg_ctree *ret)
{
    struct building b = {0};
    struct vg_ctree_cursor c;
    const struct vg_ctree_entry *e;
    vg_ctree_seek(&c, objects, NULL);
    while (!b.has_failed && (e = vg_ctree_next(&c))) {
        b.o = e->o;
        b.first = b.n;
        x->fn(x->arg, e->o, emit_build, &b);
    }
    int r = b.has_failed ? -ENOMEM : 0;
    if (r == 0 && b.n) {
        qsort(b.v, b.n, sizeof(b.v[0]), by_value_and_key);
        share_values(&b);
    }
    if (r == 0)
        r = vg_ctree_build(b.v, b.n, ret);
    for (size_t i = 0; i < b.n; i++)
        vg_ctree_value_unref(b.v[i].value); /* the tree has its own */
    vg_free(b.v);
    return r;
}
