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

/* Records lie all over the memory, and a load does little with each: what it will read is asked for
 * while it is busy with those before, first the record, then the text that its key points to. */
#define FETCH_REC (2 * VG_NODE_MAX)
#define FETCH_KEY VG_NODE_MAX

static void fetch_keys(const struct vg_tree_order *order, const struct vg_rec *const *recs,
                       size_t n, size_t i)
{
    for (size_t at = 0; i + FETCH_REC < n && at < 256; at += 64)
        __builtin_prefetch((const char *)recs[i + FETCH_REC] + at);
    if (i + FETCH_KEY < n && order->key_of != vg_tree_key_by_storage)
        __builtin_prefetch(order->key_of(recs[i + FETCH_KEY], order->arg).major.p);
}

static bool is_ascending(const struct vg_tree *tree, const struct vg_rec *const *recs, size_t n)
{
    struct vg_tree_key last = {0};
    for (size_t i = 0; i < n; i++) {
        fetch_keys(&tree->order, recs, n, i);
        struct vg_tree_key key = vg_tree_key_of(&tree->order, recs[i]);
        if (i && vg_tree_key_cmp(&last, &key) >= 0)
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

/* The next k records as a leaf, which does not hold them yet; *last is the key of the one before,
 * or empty. Each key is read once. NULL: they do not ascend. */
static struct vg_node *load_leaf(struct vg_tree *tree, const struct vg_rec *const *recs, unsigned k,
                                 struct vg_tree_key *last)
{
    struct vg_node *node = vg_tree_take_spare(tree, true);
    node->n = (uint8_t)k;
    node->first = recs[0];
    for (unsigned j = 0; j < k; j++) {
        struct vg_tree_key key = vg_tree_key_of(&tree->order, recs[j]);
        if (last->minor.n && !vg_tree_key_step(last, &key, &node->same[j], &node->heads[j])) {
            vg_tree_retire_node(tree, node);
            return NULL;
        }
        vg_leaf(node)->recs[j] = recs[j];
        *last = key;
    }
    node->same[0] = 0;
    node->heads[0] = 0;
    return node;
}

/* The leaves, in order; how many. 0: the keys do not ascend. */
static size_t load_leaves(struct vg_tree *tree, const struct vg_rec *const *recs, size_t n,
                          struct vg_node **ret_level)
{
    struct vg_tree_key last = {0};
    size_t count = 0;
    for (size_t i = 0, k; i < n; i += k) {
        k = portion(n - i);
        for (size_t j = 0; j < k; j++)
            fetch_keys(&tree->order, recs, n, i + j);
        ret_level[count] = load_leaf(tree, recs + i, (unsigned)k, &last);
        if (!ret_level[count++])
            break;
    }
    if (ret_level[count - 1])
        return count;
    while (count-- > 1)
        vg_tree_retire_node(tree, ret_level[count - 1]);
    return 0;
}

static void hold_all(struct vg_tree *tree, const struct vg_rec *const *recs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i + FETCH_REC < n)
            __builtin_prefetch(recs[i + FETCH_REC], 1);
        vg_rec_ref(recs[i]);
        tree->high = VG_MAX(tree->high, recs[i]->rev);
    }
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
    struct vg_node **level = vg_reallocarray(NULL, nodes_for(n), sizeof *level);
    int r = level ? reserve_for(tree, n) : -ENOMEM;
    size_t nodes = r == 0 ? load_leaves(tree, recs, n, level) : 0;
    if (nodes == 0) {
        vg_free(level);
        vg_tree_trim_spares(tree, VG_TREE_SPARES_MAX);
        return r < 0 ? r : VIGIL_E_INVALID;
    }
    hold_all(tree, recs, n);
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
