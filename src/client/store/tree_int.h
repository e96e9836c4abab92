/* tree_int.h - nodes, shared by the files of the tree. */
#ifndef VG_CLIENT_STORE_TREE_INT_H
#define VG_CLIENT_STORE_TREE_INT_H

#include "tree.h"

/* Both kinds of node have one size, so that one pool serves both. A leaf of 32 keeps the cost of an
 * entry near its 16 bytes and a copy below that of the malloc for it. */
#define VG_CTREE_LEAF_MAX 32u
#define VG_CTREE_INNER_MAX 16u

struct vg_ctree_child {
    struct vg_ctree_node *node;
    size_t count;                /* entries below */
    struct vg_ctree_entry first; /* borrowed from the leaf that holds it */
};

struct vg_ctree_node {
    _Atomic uint32_t refs; /* trees and nodes that point here */
    uint16_t n;
    bool is_leaf;
    union {
        struct vg_ctree_entry entries[VG_CTREE_LEAF_MAX];
        struct vg_ctree_child children[VG_CTREE_INNER_MAX];
        struct vg_ctree_node *next; /* in a pool */
    };
};

static inline unsigned vg_ctree_max(const struct vg_ctree_node *node)
{
    return node->is_leaf ? VG_CTREE_LEAF_MAX : VG_CTREE_INNER_MAX;
}
static inline const struct vg_ctree_entry *vg_ctree_entry_at(const struct vg_ctree_node *node,
                                                             unsigned i)
{
    return node->is_leaf ? &node->entries[i] : &node->children[i].first;
}

struct vg_ctree_node *vg_ctree_node_ref(struct vg_ctree_node *node);
void vg_ctree_node_unref(struct vg_ctree_node *node);
size_t vg_ctree_node_count(const struct vg_ctree_node *node);

/* Entries of the node that lie before the key. */
unsigned vg_ctree_below(const struct vg_ctree_node *node, const struct vg_ctree_key *key);
/* The child in which the key lies. */
static inline unsigned vg_ctree_way(const struct vg_ctree_node *node,
                                    const struct vg_ctree_key *key)
{
    /* Of an entry equal to the key, the child that begins with it. */
    unsigned below = vg_ctree_below(node, key);
    if (below < node->n && !key->is_past) {
        const struct vg_ctree_entry *e = vg_ctree_entry_at(node, below);
        if (vg_slice_eq(vg_ctree_value_of(e), key->value) &&
            vg_slice_eq(vg_object_key(e->o), key->key))
            return below;
    }
    return below ? below - 1 : 0;
}

#endif
