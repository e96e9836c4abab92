/* tree.h - objects in order, shared by reference: what a store and its indexes are made of.
 *
 * An ordered tree whose nodes count their references. A copy of the struct that has taken a
 * reference of the top is a snapshot. A change makes the nodes on its path its own, which means a
 * copy only where a snapshot sees them, so that a tree that nobody else looks at is changed in
 * place, and a snapshot costs a count. (The server's tree keeps no counts and orders memory by
 * revisions instead; a client's resourceVersions have no order.)
 *
 * An entry is an object and, in an index, the value under which it is found; entries are ordered
 * by value, then by the object's key. Objects of one value share its text.
 *
 * Invariants, checked by vg_ctree_check():
 *   C1 entries ascend strictly. C2 all leaves lie at the same depth; no node is empty; an inner top
 *   has two children or more. C3 a child's count and first entry are those of what lies below it.
 *
 * Threads: a tree has one owner at a time; different trees that share nodes need no lock. */
#ifndef VG_CLIENT_STORE_TREE_H
#define VG_CLIENT_STORE_TREE_H

#include "base/err.h"
#include "client/object/object_int.h"

/* A value of an index, shared by the objects that have it. */
struct vg_ctree_value {
    _Atomic uint32_t refs;
    uint32_t n;
    char bytes[];
};
VG_CHECK struct vg_ctree_value *vg_ctree_value_new(struct vg_slice text); /* NULL: no memory */
struct vg_ctree_value *vg_ctree_value_ref(struct vg_ctree_value *v);
void vg_ctree_value_unref(struct vg_ctree_value *v); /* NULL allowed */

struct vg_ctree_entry {
    const struct vigil_object *o;
    struct vg_ctree_value *value; /* NULL: not an index */
};
static inline struct vg_slice vg_ctree_value_of(const struct vg_ctree_entry *e)
{
    return e->value ? vg_slice(e->value->bytes, e->value->n) : vg_slice(NULL, 0);
}
void vg_ctree_entry_unref(struct vg_ctree_entry *e);

/* Where to look: by value, then by key. */
struct vg_ctree_key {
    struct vg_slice value, key;
    bool is_past; /* after all entries of this value */
};

struct vg_ctree_node;

/* Zeroed is empty. */
struct vg_ctree {
    struct vg_ctree_node *top;
    size_t count;
    unsigned levels;
};

/* 24: a tree of 2^32 entries has fewer, however badly its nodes are filled. */
#define VG_CTREE_LEVELS_MAX 24u

/* Nodes taken beforehand, so that a change cannot fail half-way. Zeroed is empty. */
struct vg_ctree_pool {
    struct vg_ctree_node *first;
    size_t n;
};
/* Have what `changes` puts and removals in a tree of so many levels may need. 0 or -ENOMEM. */
VG_CHECK int vg_ctree_reserve(struct vg_ctree_pool *pool, unsigned levels, size_t changes);
/* Keep at most max nodes. */
void vg_ctree_pool_trim(struct vg_ctree_pool *pool, size_t max);

/* Put an entry, whose references are taken. The one that it replaces, with its references, or an
 * empty one. Reserved before. */
struct vg_ctree_entry vg_ctree_put(struct vg_ctree *t, struct vg_ctree_pool *pool,
                                   struct vg_ctree_entry take_e);
/* The entry that was there, with its references, or an empty one. Reserved before. */
struct vg_ctree_entry vg_ctree_remove(struct vg_ctree *t, struct vg_ctree_pool *pool,
                                      const struct vg_ctree_key *key);
/* A tree of entries that ascend strictly, in full nodes; takes references of its own. 0 or -ENOMEM.
 */
VG_CHECK int vg_ctree_build(const struct vg_ctree_entry *entries, size_t n, struct vg_ctree *ret);

/* The same tree once more: constant cost. */
struct vg_ctree vg_ctree_ref(const struct vg_ctree *t);
/* The tree is empty afterwards. */
void vg_ctree_done(struct vg_ctree *t);

/* NULL: none. */
const struct vg_ctree_entry *vg_ctree_find(const struct vg_ctree *t,
                                           const struct vg_ctree_key *key);
/* The i-th in order; NULL: there are fewer. */
const struct vg_ctree_entry *vg_ctree_at(const struct vg_ctree *t, size_t i);

/* A walk in order; the tree is held and unchanged meanwhile. */
struct vg_ctree_cursor {
    unsigned levels;
    struct {
        const struct vg_ctree_node *node;
        unsigned at;
    } path[VG_CTREE_LEVELS_MAX];
};
/* To the first entry that is not before the key; NULL: to the first of all. */
void vg_ctree_seek(struct vg_ctree_cursor *c, const struct vg_ctree *t,
                   const struct vg_ctree_key *key);
/* NULL: the end. */
const struct vg_ctree_entry *vg_ctree_next(struct vg_ctree_cursor *c);

/* Bytes of the nodes, those shared with others included. */
size_t vg_ctree_bytes(const struct vg_ctree *t);
/* Tests: aborts unless C1 to C3 hold. */
void vg_ctree_check(const struct vg_ctree *t);

#endif
