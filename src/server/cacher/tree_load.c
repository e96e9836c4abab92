/* tree_load.c - a tree from records in order: built level by level, from the leaves up, or by its
 * difference to what is there. */
#include <errno.h>

#include "base/alloc.h"
#include "tree_int.h"

/* How many of the `left` entries of a level the next node gets: all it can hold, but the last two
 * nodes share when the last one would be too small. */
static unsigned portion(size_t left)
{
    if (left <= VG_NODE_MAX)
        return (unsigned)left;
    return left < VG_NODE_MAX + VG_NODE_MIN ? (unsigned)left / 2 : VG_NODE_MAX;
}

static size_t nodes_for(size_t entries)
{
    return (entries + VG_NODE_MAX - 1) / VG_NODE_MAX;
}

static bool is_ascending(const struct vg_tree *tree, const struct vg_rec *const *recs, size_t n)
{
    struct vg_tree_key last = vg_tree_key_of(&tree->order, recs[0]);
    for (size_t i = 1; i < n; i++) {
        struct vg_tree_key key = vg_tree_key_of(&tree->order, recs[i]);
        if (vg_tree_key_cmp(&last, &key) >= 0)
            return false;
        last = key;
    }
    return true;
}

static int reserve_for(struct vg_tree *tree, size_t n)
{
    size_t leaves = nodes_for(n), inners = 0;
    for (size_t level = leaves; level > 1; level = nodes_for(level))
        inners += nodes_for(level);
    return vg_tree_reserve(tree, leaves, inners);
}

/* The leaves, in order; how many. */
static size_t load_leaves(struct vg_tree *tree, const struct vg_rec *const *recs, size_t n,
                          struct vg_node **ret_level)
{
    size_t count = 0;
    for (size_t i = 0, k; i < n; i += k) {
        k = portion(n - i);
        struct vg_node *node = vg_tree_take_spare(tree, true);
        node->n = (uint8_t)k;
        for (size_t j = 0; j < k; j++) {
            vg_leaf(node)->recs[j] = vg_rec_ref(recs[i + j]);
            tree->high = VG_MAX(tree->high, recs[i + j]->rev);
        }
        vg_node_rekey_all(&tree->order, node);
        ret_level[count++] = node;
    }
    return count;
}

/* The level above these n nodes takes their place in the array; how many. */
static size_t load_inners(struct vg_tree *tree, struct vg_node **level, size_t n)
{
    size_t count = 0;
    for (size_t i = 0, k; i < n; i += k) {
        k = portion(n - i);
        struct vg_node *node = vg_tree_take_spare(tree, false);
        node->n = (uint8_t)k;
        for (size_t j = 0; j < k; j++) {
            vg_inner(node)->children[j] = level[i + j];
            vg_inner(node)->counts[j] = (uint32_t)vg_node_count(level[i + j]);
        }
        vg_node_rekey_all(&tree->order, node);
        level[count++] = node;
    }
    return count;
}

int vg_tree_load(struct vg_tree *tree, const struct vg_rec *const *recs, size_t n)
{
    if (n > VG_TREE_MAX)
        return VIGIL_E_TOO_LARGE;
    if (tree->count)
        return VIGIL_E_INVALID;
    if (n == 0)
        return vg_tree_reserve(tree, 0, 0);
    if (!is_ascending(tree, recs, n))
        return VIGIL_E_INVALID;
    struct vg_node **level = vg_reallocarray(NULL, nodes_for(n), sizeof *level);
    if (!level || reserve_for(tree, n) < 0) {
        vg_free(level);
        vg_tree_trim_spares(tree, VG_TREE_SPARES_MAX);
        return -ENOMEM;
    }
    size_t nodes = load_leaves(tree, recs, n, level);
    for (tree->levels = 1; nodes > 1; tree->levels++)
        nodes = load_inners(tree, level, nodes);
    tree->top = level[0];
    tree->count = n;
    vg_free(level);
    return 0;
}

/* ---- by difference ---- */

static int order_of(const struct vg_tree *tree, const struct vg_rec *a, const struct vg_rec *b)
{
    struct vg_tree_key x = vg_tree_key_of(&tree->order, a), y = vg_tree_key_of(&tree->order, b);
    return vg_tree_key_cmp(&x, &y);
}

static bool is_same(const struct vg_rec *a, const struct vg_rec *b)
{
    return a->rev == b->rev && a->sub == b->sub;
}

/* `root` is the tree as it was. */
static int merge(struct vg_tree *tree, const struct vg_root *root, const struct vg_rec *const *recs,
                 size_t n)
{
    struct vg_cursor cur;
    vg_root_first(&cur, root);
    const struct vg_rec *old = vg_cursor_next(&cur);
    size_t i = 0;
    int r = 0;
    while (r >= 0 && (old || i < n)) {
        int d = !old ? 1 : i == n ? -1 : order_of(tree, old, recs[i]);
        if (d < 0)
            r = vg_tree_remove(tree, vg_tree_key_of(&tree->order, old), NULL);
        else if (d > 0 || !is_same(old, recs[i]))
            r = vg_tree_put(tree, recs[i], NULL);
        if (d <= 0)
            old = vg_cursor_next(&cur);
        if (d >= 0)
            i++;
    }
    return r < 0 ? r : 0;
}

int vg_tree_replace(struct vg_tree *tree, const struct vg_rec *const *recs, size_t n)
{
    if (!tree->count)
        return vg_tree_load(tree, recs, n);
    if (n && !is_ascending(tree, recs, n))
        return VIGIL_E_INVALID;
    struct vg_root *root = vg_tree_publish(tree, tree->high); /* to walk while it changes */
    if (!root)
        return -ENOMEM;
    int r = merge(tree, root, recs, n);
    vg_root_unref(root);
    return r;
}
