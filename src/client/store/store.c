/* store.c - the writer's side of a store, and its making; see vigil/store.h and store_int.h.
 * A write finds out what it changes, takes all memory it needs, then changes the trees, which
 * cannot fail: an object is in all indexes or in none. Invariant: S1 the index trees hold exactly
 * what their functions say of the objects in by_key. */
#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "store_int.h"

/* 16: what the next change is likely to need. */
#define POOL_MAX 16u

static void set_version(struct vigil_store *s, struct vg_slice version)
{
    vg_mutex_assert_held(&s->mu);
    s->version_n = VG_MIN(version.n, sizeof(s->version));
    if (s->version_n)
        memcpy(s->version, version.p, s->version_n);
}

static void lock_both(struct vigil_store *s) VG_ACQUIRE(s->write_mu) VG_ACQUIRE(s->mu)
{
    vg_mutex_lock(&s->write_mu);
    vg_mutex_lock(&s->mu);
}

static void unlock_both(struct vigil_store *s) VG_RELEASE(s->write_mu) VG_RELEASE(s->mu)
{
    vg_mutex_unlock(&s->mu);
    vg_ctree_pool_trim(&s->pool, POOL_MAX);
    vg_mutex_unlock(&s->write_mu);
}

/* ---- making ---- */

int vigil_store_new(const struct vigil_index *indexes, size_t n, struct vigil_store **ret,
                    struct vigil_error *err)
{
    struct vigil_store *s = vg_new(struct vigil_store);
    if (!s)
        return vg_error_set(err, -ENOMEM, "no memory for a store");
    vg_mutex_init(&s->write_mu, VG_RANK_CLIENT_WRITE);
    vg_mutex_init(&s->mu, VG_RANK_CLIENT_STORE);
    int r = vigil_store_add_indexes(s, indexes, n, err);
    if (r < 0)
        vigil_store_free(s);
    else
        *ret = s;
    return r;
}

void vigil_store_free(struct vigil_store *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_indexes; i++)
        vg_store_index_done(&s->indexes[i]);
    vg_free(s->indexes);
    vg_ctree_done(&s->by_key);
    vg_ctree_pool_trim(&s->pool, 0);
    vg_mutex_done(&s->mu);
    vg_mutex_done(&s->write_mu);
    vg_free(s);
}

static bool is_taken(const struct vigil_store *s, const struct vigil_index *indexes, size_t i)
{
    const char *name = indexes[i].name;
    bool taken = strcmp(name, VIGIL_BY_NAMESPACE) == 0;
    for (size_t j = 0; j < s->n_indexes; j++)
        taken = taken || strcmp(name, s->indexes[j].name) == 0;
    for (size_t j = 0; j < i; j++)
        taken = taken || strcmp(name, indexes[j].name) == 0;
    return taken;
}

static int check_indexes(const struct vigil_store *s, const struct vigil_index *indexes, size_t n,
                         struct vigil_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!indexes[i].name || !indexes[i].fn)
            return vg_error_set(err, VIGIL_E_INVALID, "an index has no name or no function");
        if (is_taken(s, indexes, i))
            return vg_error_set(err, VIGIL_E_EXISTS, "there is an index \"%s\"", indexes[i].name);
    }
    return 0;
}

/* All of the new ones, over what is there; into the array, which has room. */
static int build_indexes(struct vigil_store *s, struct vg_store_index *all,
                         const struct vigil_index *indexes, size_t n)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        struct vg_store_index *x = &all[s->n_indexes + i];
        r = vg_store_index_init(x, &indexes[i]);
        if (r == 0)
            r = vg_store_index_build(x, &s->by_key, &x->tree);
    }
    for (size_t i = 0; i < n && r < 0; i++)
        vg_store_index_done(&all[s->n_indexes + i]);
    return r;
}

static int add_indexes(struct vigil_store *s, const struct vigil_index *indexes, size_t n,
                       struct vigil_error *err)
{
    int r = check_indexes(s, indexes, n, err);
    if (r < 0 || n == 0)
        return r;
    struct vg_store_index *all = vg_calloc(s->n_indexes + n, sizeof(*all));
    if (all && s->n_indexes)
        memcpy(all, s->indexes, s->n_indexes * sizeof(*all));
    r = all ? build_indexes(s, all, indexes, n) : -ENOMEM;
    if (r < 0) {
        vg_free(all);
        return vg_error_set(err, r, "no memory for an index");
    }
    vg_mutex_lock(&s->mu);
    vg_free(s->indexes);
    s->indexes = all;
    s->n_indexes += n;
    vg_mutex_unlock(&s->mu);
    return 0;
}

int vigil_store_add_indexes(struct vigil_store *s, const struct vigil_index *indexes, size_t n,
                            struct vigil_error *err)
{
    vg_mutex_lock(&s->write_mu);
    int r = add_indexes(s, indexes, n, err);
    vg_mutex_unlock(&s->write_mu);
    return r;
}

/* ---- one change ---- */

static int prepare(struct vigil_store *s, const struct vigil_object *before,
                   const struct vigil_object *after)
{
    size_t n = 0, changes = 1;
    unsigned levels = s->by_key.levels;
    int r = 0;
    for (; n < s->n_indexes && r == 0; n++) {
        struct vg_store_index *x = &s->indexes[n];
        r = vg_store_index_prepare(x, before, after);
        changes += x->before.n + x->after.n;
        levels = VG_MAX(levels, x->tree.levels);
    }
    if (r == 0)
        r = vg_ctree_reserve(&s->pool, levels, changes);
    for (size_t i = 0; i < n && r < 0; i++)
        vg_store_index_forget(&s->indexes[i]);
    return r;
}

static const struct vigil_object *find(const struct vigil_store *s, struct vg_slice key)
{
    struct vg_ctree_key k = {.key = key};
    const struct vg_ctree_entry *e = vg_ctree_find(&s->by_key, &k);
    return e ? e->o : NULL;
}

/* *ret_old is what was there, with the reference that the tree held. */
static int put_locked(struct vigil_store *s, const struct vigil_object *o,
                      const struct vigil_object **ret_old)
{
    const struct vigil_object *before = find(s, vg_object_key(o));
    int r = prepare(s, before, o);
    if (r < 0)
        return r;
    for (size_t i = 0; i < s->n_indexes; i++)
        vg_store_index_apply(&s->indexes[i], &s->pool, before, o);
    struct vg_ctree_entry e = {.o = vigil_object_ref(o)};
    *ret_old = vg_ctree_put(&s->by_key, &s->pool, e).o;
    if (o->version_n)
        set_version(s, vg_object_version(o));
    return 0;
}

static int delete_locked(struct vigil_store *s, struct vg_slice key,
                         const struct vigil_object **ret_old)
{
    const struct vigil_object *before = find(s, key);
    *ret_old = NULL;
    if (!before)
        return 0;
    int r = prepare(s, before, NULL);
    if (r < 0)
        return r;
    for (size_t i = 0; i < s->n_indexes; i++)
        vg_store_index_apply(&s->indexes[i], &s->pool, before, NULL);
    struct vg_ctree_key k = {.key = key};
    *ret_old = vg_ctree_remove(&s->by_key, &s->pool, &k).o;
    return 0;
}

static int apply_locked(struct vigil_store *s, struct vg_store_op *op)
{
    op->ret_old = NULL;
    if (op->verb == VG_STORE_PUT)
        return put_locked(s, op->o, &op->ret_old);
    int r = delete_locked(s, vg_object_key(op->o), &op->ret_old);
    if (r == 0 && !op->is_tombstone && op->o->version_n)
        set_version(s, vg_object_version(op->o));
    return r;
}

int vg_store_transaction(struct vigil_store *s, struct vg_store_op *ops, size_t n)
{
    int first = 0;
    lock_both(s);
    for (size_t i = 0; i < n; i++) {
        ops[i].ret_err = apply_locked(s, &ops[i]);
        if (first == 0)
            first = ops[i].ret_err;
    }
    unlock_both(s);
    return first;
}

static int write_one(struct vigil_store *s, enum vg_store_verb verb, const struct vigil_object *o)
{
    struct vg_store_op op = {.verb = verb, .o = o};
    int r = vg_store_transaction(s, &op, 1);
    vigil_object_unref(op.ret_old);
    return vg_error_code(r);
}

int vigil_store_put(struct vigil_store *s, const struct vigil_object *o)
{
    return write_one(s, VG_STORE_PUT, o);
}

int vigil_store_delete(struct vigil_store *s, const struct vigil_object *o)
{
    return write_one(s, VG_STORE_DELETE, o);
}

int vigil_store_delete_key(struct vigil_store *s, struct vigil_text key)
{
    const struct vigil_object *old = NULL;
    lock_both(s);
    int r = delete_locked(s, vg_slice_of(key), &old);
    unlock_both(s);
    vigil_object_unref(old);
    return vg_error_code(r);
}

void vg_store_bookmark(struct vigil_store *s, struct vg_slice version)
{
    vg_mutex_lock(&s->mu);
    set_version(s, version);
    vg_mutex_unlock(&s->mu);
}

/* ---- everything at once ---- */

/* Equal keys stay in the order of the list: the later one counts. */
struct ranked {
    const struct vigil_object *o;
    size_t rank;
};

static int by_key(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    int c = vg_slice_cmp(vg_object_key(x->o), vg_object_key(y->o));
    return c ? c : (x->rank > y->rank) - (x->rank < y->rank);
}

static bool is_ascending(const struct vigil_object *const *objects, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (vg_slice_cmp(vg_object_key(objects[i - 1]), vg_object_key(objects[i])) >= 0)
            return false;
    return true;
}

static int sort(const struct vigil_object *const *objects, struct vg_ctree_entry *entries,
                size_t *n)
{
    struct ranked *v = vg_reallocarray(NULL, *n, sizeof(*v));
    if (!v)
        return -ENOMEM;
    for (size_t i = 0; i < *n; i++)
        v[i] = (struct ranked){objects[i], i};
    qsort(v, *n, sizeof(*v), by_key);
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++) {
        bool is_last =
            i + 1 == *n || !vg_slice_eq(vg_object_key(v[i].o), vg_object_key(v[i + 1].o));
        if (is_last)
            entries[kept++] = (struct vg_ctree_entry){.o = v[i].o};
    }
    *n = kept;
    vg_free(v);
    return 0;
}

static int build(const struct vigil_object *const *objects, size_t n, struct vg_ctree *ret)
{
    if (n == 0)
        return vg_ctree_build(NULL, 0, ret);
    struct vg_ctree_entry *entries = vg_reallocarray(NULL, n, sizeof(*entries));
    if (!entries)
        return -ENOMEM;
    int r = 0;
    if (is_ascending(objects, n)) /* as servers list them */
        for (size_t i = 0; i < n; i++)
            entries[i] = (struct vg_ctree_entry){.o = objects[i]};
    else
        r = sort(objects, entries, &n);
    if (r == 0)
        r = vg_ctree_build(entries, n, ret);
    vg_free(entries);
    return r;
}

/* The trees of all indexes over a new state; an array for the caller to swap in and free. */
static int build_trees(struct vigil_store *s, const struct vg_ctree *objects, struct vg_ctree **ret)
{
    int r = 0;
    struct vg_ctree *trees = vg_calloc(s->n_indexes + 1, sizeof(*trees));
    if (!trees)
        return -ENOMEM;
    for (size_t i = 0; i < s->n_indexes && r == 0; i++)
        r = vg_store_index_build(&s->indexes[i], objects, &trees[i]);
    for (size_t i = 0; i < s->n_indexes && r < 0; i++)
        vg_ctree_done(&trees[i]);
    if (r < 0)
        vg_free(trees);
    else
        *ret = trees;
    return r;
}

static void swap(struct vg_ctree *a, struct vg_ctree *b)
{
    struct vg_ctree t = *a;
    *a = *b;
    *b = t;
}

static int replace_by_writer(struct vigil_store *s, const struct vigil_object *const *objects,
                             size_t n, struct vg_slice version, struct vg_ctree *ret_before)
{
    struct vg_ctree state = {0}, *trees;
    int r = build(objects, n, &state);
    if (r < 0)
        return r;
    r = build_trees(s, &state, &trees);
    if (r < 0) {
        vg_ctree_done(&state);
        return r;
    }
    vg_mutex_lock(&s->mu);
    swap(&s->by_key, &state);
    for (size_t i = 0; i < s->n_indexes; i++)
        swap(&s->indexes[i].tree, &trees[i]);
    set_version(s, version);
    vg_mutex_unlock(&s->mu);
    for (size_t i = 0; i < s->n_indexes; i++)
        vg_ctree_done(&trees[i]);
    vg_free(trees);
    *ret_before = state;
    return 0;
}

int vg_store_replace(struct vigil_store *s, const struct vigil_object *const *objects, size_t n,
                     struct vg_slice version, struct vg_ctree *ret_before)
{
    if (version.n > VG_OBJECT_VERSION_MAX)
        return VIGIL_E_TOO_LARGE;
    vg_mutex_lock(&s->write_mu);
    int r = replace_by_writer(s, objects, n, version, ret_before);
    vg_mutex_unlock(&s->write_mu);
    return r;
}

int vigil_store_replace(struct vigil_store *s, const struct vigil_object *const *objects, size_t n,
                        struct vigil_text resource_version)
{
    struct vg_ctree before = {0};
    int r = vg_store_replace(s, objects, n, vg_slice_of(resource_version), &before);
    vg_ctree_done(&before);
    return vg_error_code(r);
}
