/* tree.c - the writer: finding, putting, loading a path's copies, publishing. See tree.h.
 * A change first takes all memory it may need (vg_tree_reserve_path), then makes the nodes on its
 * path its own, top down, then changes them, bottom up; after the first step it cannot fail. The
 * record that goes is let go last: until then a node on the path may name it as its first. */
#include "tree.h"

#include <errno.h>

#include "base/alloc.h"
#include "tree_int.h"

struct vg_tree_key vg_tree_key_by_storage(const struct vg_rec *rec, void *arg)
{
    (void)arg;
    return (struct vg_tree_key){.major = {NULL, 0}, .minor = vg_rec_key(rec)};
}

int vg_tree_new(const struct vg_tree_opts *opts, struct vg_tree **ret_tree)
{
    struct vg_tree *tree = vg_new(struct vg_tree);
    if (!tree)
        return -ENOMEM;
    tree->order.key_of = opts->key_of ? opts->key_of : vg_tree_key_by_storage;
    tree->order.arg = opts->arg;
    tree->batch = 1;
    vg_mailbox_init(&tree->box, 0, opts->wake, opts->wake_arg);
    vg_list_init(&tree->roots);
    vg_list_init(&tree->dead_roots);
    *ret_tree = tree;
    return 0;
}

void vg_tree_free(struct vg_tree *tree)
{
    if (!tree)
        return;
    while (vg_tree_dissolve(tree, SIZE_MAX))
        continue;
    assert(vg_list_is_empty(&tree->roots));
    struct vg_mail *late = vg_mailbox_close(&tree->box);
    assert(!late);
    (void)late;
    vg_tree_trim_spares(tree, 0);
    vg_free(tree->spare_note);
    vg_free(tree->spare_root);
    vg_free(tree);
}

/* ---- the way to a key ---- */

bool vg_tree_find(const struct vg_tree *tree, const struct vg_tree_key *key,
                  struct vg_tree_path *ret_path)
{
    struct vg_place place;
    struct vg_node *node = tree->top;
    ret_path->levels = tree->levels;
    if (!node)
        return false;
    vg_place_init(&place, &tree->order, node, key, VG_TREE_AFTER);
    unsigned l = 0;
    for (; !node->is_leaf; l++) {
        unsigned at = vg_node_way(&tree->order, node, &place);
        ret_path->step[l].node = node;
        ret_path->step[l].at = at;
        node = vg_inner(node)->children[at];
    }
    unsigned below = vg_node_below(&tree->order, node, &place);
    bool found = below && vg_place_is_key_of(&place, &tree->order, vg_leaf(node)->recs[below - 1]);
    ret_path->step[l].node = node;
    ret_path->step[l].at = found ? below - 1 : below;
    return found;
}

/* An insertion copies and splits each node of the path, and may add a new top; a removal copies
 * each, and a neighbour of each but the top. */
int vg_tree_reserve_path(struct vg_tree *tree)
{
    return vg_tree_reserve(tree, 2, tree->levels ? 2u * tree->levels - 1 : 0);
}

struct vg_node *vg_tree_own(struct vg_tree *tree, struct vg_node *node)
{
    if (node->born == tree->batch)
        return node;
    struct vg_node *copy = vg_tree_take_spare(tree, node->is_leaf);
    memcpy(copy, node, vg_node_size(node->is_leaf));
    copy->born = tree->batch;
    copy->link = NULL;
    vg_tree_retire_node(tree, node);
    return copy;
}

void vg_tree_own_path(struct vg_tree *tree, struct vg_tree_path *path)
{
    struct vg_node **place = &tree->top;
    for (unsigned l = 0; l < path->levels; l++) {
        struct vg_node *node = vg_tree_own(tree, path->step[l].node);
        *place = path->step[l].node = node;
        if (!node->is_leaf)
            place = &vg_inner(node)->children[path->step[l].at];
    }
}

/* ---- put ---- */

static void replace(struct vg_tree_path *path, const struct vg_rec *rec)
{
    unsigned l = path->levels - 1;
    vg_leaf(path->step[l].node)->recs[path->step[l].at] = rec;
    /* The key is the same, so no head changes. */
    for (; path->step[l].at == 0; l--) {
        path->step[l].node->first = rec;
        if (l == 0)
            break;
    }
}

/* A full node becomes two; *node and *at become the half and the place in it where the new entry
 * goes. The new right half, or NULL. */
static struct vg_node *make_room(struct vg_tree *tree, struct vg_node **node, unsigned *at)
{
    if ((*node)->n < VG_NODE_MAX)
        return NULL;
    struct vg_node *right = vg_tree_take_spare(tree, (*node)->is_leaf);
    vg_node_split(&tree->order, *node, right);
    if (*at > (*node)->n) {
        *at -= (*node)->n;
        *node = right;
    }
    return right;
}

/* One level above: the child on the way has grown, and `right` (may be NULL) is new beside it. */
static struct vg_node *insert_above(struct vg_tree *tree, struct vg_node *node, unsigned at,
                                    struct vg_node *right, bool is_new_first)
{
    struct vg_inner *inner = vg_inner(node);
    inner->counts[at] = (uint32_t)vg_node_count(inner->children[at]);
    if (is_new_first)
        vg_node_rekey(&tree->order, node, at);
    if (!right)
        return NULL;
    at++;
    struct vg_node *split = make_room(tree, &node, &at);
    vg_node_insert_child(&tree->order, node, at, right);
    return split;
}

static void grow_top(struct vg_tree *tree, struct vg_node *right)
{
    struct vg_node *top = vg_tree_take_spare(tree, false);
    vg_node_insert_child(&tree->order, top, 0, tree->top);
    vg_node_insert_child(&tree->order, top, 1, right);
    tree->top = top;
    tree->levels++;
    assert(tree->levels <= VG_TREE_LEVELS_MAX);
}

static void insert(struct vg_tree *tree, struct vg_tree_path *path, const struct vg_rec *rec)
{
    if (!tree->levels) {
        tree->top = vg_tree_take_spare(tree, true);
        tree->levels = 1;
        path->levels = 1;
        path->step[0].node = tree->top;
        path->step[0].at = 0;
    }
    unsigned l = path->levels - 1, at = path->step[l].at;
    bool is_new_first = at == 0; /* then it is the first of all: see vg_tree_find */
    struct vg_node *node = path->step[l].node;
    struct vg_node *right = make_room(tree, &node, &at);
    vg_node_insert_rec(&tree->order, node, at, rec);
    while (l-- > 0)
        right = insert_above(tree, path->step[l].node, path->step[l].at, right, is_new_first);
    if (right)
        grow_top(tree, right);
    tree->count++;
}

int vg_tree_put(struct vg_tree *tree, const struct vg_rec *rec, struct vg_rec **ret_old)
{
    struct vg_tree_path path;
    struct vg_tree_key key = vg_tree_key_of(&tree->order, rec);
    bool found = vg_tree_find(tree, &key, &path);
    if (!found && tree->count == VG_TREE_MAX)
        return VIGIL_E_TOO_LARGE;
    if (vg_tree_reserve_path(tree) < 0)
        return -ENOMEM;
    vg_tree_own_path(tree, &path);
    const struct vg_rec *old = NULL;
    if (found) {
        old = vg_leaf(path.step[path.levels - 1].node)->recs[path.step[path.levels - 1].at];
        replace(&path, vg_rec_ref(rec));
    } else {
        insert(tree, &path, vg_rec_ref(rec));
    }
    tree->high = VG_MAX(tree->high, rec->rev);
    if (ret_old)
        *ret_old = old ? vg_rec_ref(old) : NULL;
    if (old)
        vg_tree_retire_rec(tree, old);
    return 0;
}

/* ---- reading the working tree ---- */

const struct vg_rec *vg_tree_get(const struct vg_tree *tree, struct vg_tree_key key)
{
    struct vg_tree_path path;
    if (!vg_tree_find(tree, &key, &path))
        return NULL;
    return vg_leaf(path.step[path.levels - 1].node)->recs[path.step[path.levels - 1].at];
}

size_t vg_tree_count(const struct vg_tree *tree)
{
    return tree->count;
}

void vg_tree_stats(const struct vg_tree *tree, struct vg_tree_stats *ret_stats)
{
    *ret_stats = tree->stats;
    ret_stats->count = tree->count;
    ret_stats->nodes_spare = tree->n_spare_leaves + tree->n_spare_inners;
}

/* ---- publishing ---- */

struct vg_root *vg_tree_publish(struct vg_tree *tree, vg_rev rev)
{
    if (!tree->spare_root && vg_tree_reserve(tree, 0, 0) < 0)
        return NULL;
    struct vg_root *root = vg_steal(tree->spare_root);
    *root = (struct vg_root){
        .levels = tree->levels,
        .top = tree->top,
        .order = tree->order,
        .rev = rev,
        .count = tree->count,
        .tree = tree,
        .batch = tree->batch,
        .high = tree->high,
    };
    atomic_init(&root->refs, 1);
    vg_list_init(&root->by_death);
    vg_list_push_back(&tree->roots, &root->by_batch);
    tree->stats.roots++;
    tree->batch++;
    return root;
}
