/* tree_int.h - what the files of the tree share: nodes, the order of entries, the writer's state.
 *
 * A node holds up to VG_NODE_MAX entries in key order: a leaf records, an inner node children,
 * whose key is that of their first record. No key is copied. Instead each entry has a head: eight
 * bytes of its key, as a number, taken where the keys of this node begin to differ. A search
 * compares numbers that lie side by side and looks at the records themselves for the common prefix
 * and for ties.
 *
 * Records and nodes are born in a batch and retired in a later one; roots see those whose life
 * spans their batch. No counts are kept for that: see tree_reclaim.c. */
#ifndef VG_CACHER_TREE_INT_H
#define VG_CACHER_TREE_INT_H

#include "base/list.h"
#include "loop/mailbox.h"
#include "tree.h"

/* 32: copying a node costs about what finding the way through it does; measured by bench/tree. */
#define VG_NODE_MAX 32u
/* A node that falls below this is joined with a neighbour, or shares with it. Well below half: a
 * node that was just split, or joined, is far from the next split or join. */
#define VG_NODE_MIN 10u
/* Two neighbours of together at most this many become one. */
#define VG_NODE_JOIN 24u

/* 64 of each kind: what one busy batch frees serves the next without malloc. */
#define VG_TREE_SPARES_MAX 64

struct vg_node {
    uint64_t born;              /* the batch that made it */
    struct vg_node *link;       /* the writer's: next retired, or next spare */
    const struct vg_rec *first; /* borrowed from the leaf that holds it */
    uint8_t n;
    bool is_leaf;
    uint16_t same[VG_NODE_MAX];  /* bytes in common with the entry before; 0 for the first */
    uint64_t heads[VG_NODE_MAX]; /* the eight bytes after these; 0 for the first */
};

struct vg_leaf {
    struct vg_node node;
    const struct vg_rec *recs[VG_NODE_MAX];
};

struct vg_inner {
    struct vg_node node;
    struct vg_node *children[VG_NODE_MAX];
    uint32_t counts[VG_NODE_MAX]; /* records below each child */
};

struct vg_tree_order {
    vg_tree_key_fn *key_of;
    void *arg;
};

/* A record that left the working tree and that some root may see. */
struct vg_tree_note {
    struct vg_tree_note *next;
    const struct vg_rec *rec; /* the reference that the tree held */
};

struct vg_root {
    /* For readers; const but for refs. */
    _Atomic uint32_t refs;
    unsigned levels; /* of nodes; 0: empty */
    const struct vg_node *top;
    struct vg_tree_order order;
    vg_rev rev;
    size_t count;
    struct vg_tree *tree; /* readers use its mailbox only */
    struct vg_mail mail;  /* of the last unref */
    /* The writer's. */
    uint64_t batch;            /* nodes born after it are not seen from here */
    vg_rev high;               /* nor are records with a higher revision */
    struct vg_list by_batch;   /* in tree->roots */
    struct vg_list by_death;   /* in tree->dead_roots, when is_dead */
    struct vg_node *nodes;     /* retired: seen from here, not from the next root */
    struct vg_tree_note *recs; /* the same */
    bool is_dead;
};

struct vg_tree {
    struct vg_tree_order order; /* const after init */
    struct vg_mailbox box;      /* dead roots, from any thread */
    struct vg_node *top;        /* NULL: empty */
    unsigned levels;
    size_t count;
    uint64_t batch; /* being written */
    vg_rev high;    /* highest revision of any record that was ever put */
    /* All that a change may need is put here before it begins, so that it cannot fail half-way. */
    struct vg_node *spare_leaves, *spare_inners;
    size_t n_spare_leaves, n_spare_inners;
    struct vg_tree_note *spare_note;
    struct vg_root *spare_root;
    /* Roots. */
    struct vg_list roots;       /* not freed, by batch */
    struct vg_list dead_roots;  /* of these the dead, by time of death */
    struct vg_root *reclaiming; /* one of these, half-way; NULL: none */
    struct vg_tree_stats stats; /* but for count and spares */
};

/* ---- keys and nodes: tree_node.c ---- */

static inline struct vg_leaf *vg_leaf(struct vg_node *node)
{
    assert(node->is_leaf);
    return VG_CONTAINER_OF(node, struct vg_leaf, node);
}
static inline const struct vg_leaf *vg_leaf_const(const struct vg_node *node)
{
    assert(node->is_leaf);
    return VG_CONTAINER_OF(node, const struct vg_leaf, node);
}
static inline struct vg_inner *vg_inner(struct vg_node *node)
{
    assert(!node->is_leaf);
    return VG_CONTAINER_OF(node, struct vg_inner, node);
}
static inline const struct vg_inner *vg_inner_const(const struct vg_node *node)
{
    assert(!node->is_leaf);
    return VG_CONTAINER_OF(node, const struct vg_inner, node);
}

static inline size_t vg_node_size(bool is_leaf)
{
    return is_leaf ? sizeof(struct vg_leaf) : sizeof(struct vg_inner);
}

/* A zero byte ends a major. */
static inline struct vg_tree_key vg_tree_key_cut(struct vg_tree_key key)
{
    const char *zero = key.major.n ? memchr(key.major.p, 0, key.major.n) : NULL;
    if (zero)
        key.major.n = (size_t)(zero - key.major.p);
    return key;
}

/* The storage key is by far the most common: no indirect call for it. */
static inline struct vg_tree_key vg_tree_key_of(const struct vg_tree_order *order,
                                                const struct vg_rec *rec)
{
    if (VG_LIKELY(order->key_of == vg_tree_key_by_storage))
        return (struct vg_tree_key){.major = {NULL, 0}, .minor = vg_rec_key(rec)};
    return vg_tree_key_cut(order->key_of(rec, order->arg));
}

static inline int vg_tree_key_cmp(const struct vg_tree_key *a, const struct vg_tree_key *b)
{
    int c = vg_slice_cmp(a->major, b->major);
    return c ? c : vg_slice_cmp(a->minor, b->minor);
}

/* What a node keeps of a key behind another one. False: it does not come after it. */
bool vg_tree_key_step(const struct vg_tree_key *before, const struct vg_tree_key *key,
                      uint16_t *ret_same, uint64_t *ret_head);

/* Entry i as a record: itself in a leaf, the first one below it in an inner node. */
static inline const struct vg_rec *vg_node_rec(const struct vg_node *node, unsigned i)
{
    return node->is_leaf ? vg_leaf_const(node)->recs[i] : vg_inner_const(node)->children[i]->first;
}

/* A place that is being looked for, on the way down from the top. */
struct vg_place {
    struct vg_tree_key key;
    enum vg_tree_edge edge;
    bool is_first; /* before all records */
    size_t common; /* else: bytes in common with the last entry found below it */
};
void vg_place_init(struct vg_place *ret_place, const struct vg_tree_order *order,
                   const struct vg_node *top, const struct vg_tree_key *key,
                   enum vg_tree_edge edge);

static inline bool vg_place_is_key_of(const struct vg_place *place,
                                      const struct vg_tree_order *order, const struct vg_rec *rec)
{
    struct vg_tree_key key = vg_tree_key_of(order, rec);
    return vg_slice_eq(key.minor, place->key.minor) && vg_slice_eq(key.major, place->key.major);
}

/* How many entries lie before the place. The node is the top, or the child that was chosen. */
unsigned vg_node_below(const struct vg_tree_order *order, const struct vg_node *node,
                       struct vg_place *place);
/* The child of an inner node in which the place lies. */
static inline unsigned vg_node_way(const struct vg_tree_order *order, const struct vg_node *node,
                                   struct vg_place *place)
{
    unsigned below = vg_node_below(order, node, place);
    return below ? below - 1 : 0;
}
/* Records at and below it. */
size_t vg_node_count(const struct vg_node *node);

/* The key of entry i has changed, the order has not: set what it and the next have in common with
 * the one before, and first. */
void vg_node_rekey(const struct vg_tree_order *order, struct vg_node *node, unsigned i);
void vg_node_rekey_all(const struct vg_tree_order *order, struct vg_node *node);
/* n < VG_NODE_MAX. */
void vg_node_insert_rec(const struct vg_tree_order *order, struct vg_node *node, unsigned i,
                        const struct vg_rec *rec);
void vg_node_insert_child(const struct vg_tree_order *order, struct vg_node *node, unsigned i,
                          struct vg_node *child);
/* Without regard to what the entry holds. */
void vg_node_remove(const struct vg_tree_order *order, struct vg_node *node, unsigned i);
/* The upper half of a full node goes to an empty one. */
void vg_node_split(const struct vg_tree_order *order, struct vg_node *node, struct vg_node *right);
/* Append the entries of `right`, which stays as it is. */
void vg_node_join(const struct vg_tree_order *order, struct vg_node *node,
                  const struct vg_node *right);
/* Two neighbours get half of their entries each. */
void vg_node_share(const struct vg_tree_order *order, struct vg_node *left, struct vg_node *right);

/* ---- memory: tree_reclaim.c ---- */

/* Have at least so many spare nodes, and one spare note and root. 0 or -ENOMEM: nothing but spares
 * changed. */
VG_CHECK int vg_tree_reserve(struct vg_tree *tree, size_t leaves, size_t inners);
/* An empty node of this batch; reserved before. */
struct vg_node *vg_tree_take_spare(struct vg_tree *tree, bool is_leaf);
/* It left the working tree. Freed now when no root sees it. */
void vg_tree_retire_node(struct vg_tree *tree, struct vg_node *node);
/* The same for a record, with the reference that the tree held; may use the spare note. */
void vg_tree_retire_rec(struct vg_tree *tree, const struct vg_rec *rec);
/* Keep at most so many of each kind. */
void vg_tree_trim_spares(struct vg_tree *tree, size_t max);

/* ---- the writer: tree.c, tree_remove.c ---- */

struct vg_tree_path {
    unsigned levels;
    struct {
        struct vg_node *node;
        unsigned at; /* the child on the way; in the leaf, the entry or where it would be */
    } step[VG_TREE_LEVELS_MAX];
};

/* Is a record with this key there? */
bool vg_tree_find(const struct vg_tree *tree, const struct vg_tree_key *key,
                  struct vg_tree_path *ret_path);
/* Have all that one insertion or removal may need. */
VG_CHECK int vg_tree_reserve_path(struct vg_tree *tree);
/* The node itself if this batch made it, else a copy in its place; the old one is retired. The
 * caller puts the result where the node was. */
struct vg_node *vg_tree_own(struct vg_tree *tree, struct vg_node *node);
void vg_tree_own_path(struct vg_tree *tree, struct vg_tree_path *path);

#endif
