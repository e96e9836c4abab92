/* tree_remove.c - taking a record out and keeping the nodes filled.
 * A child that falls below VG_NODE_MIN is joined with a neighbour when the two are small, and gets
 * part of the neighbour's entries when they are not; either way the result is far from both limits.
 */
#include <errno.h>

#include "tree_int.h"

static void join_children(struct vg_tree *tree, struct vg_inner *inner, unsigned i)
{
    struct vg_node *left = vg_tree_own(tree, inner->children[i]);
    struct vg_node *right = inner->children[i + 1];
    inner->children[i] = left;
    vg_node_join(&tree->order, left, right);
    inner->counts[i] += inner->counts[i + 1];
    vg_node_remove(&tree->order, &inner->node, i + 1);
    vg_tree_retire_node(tree, right);
}

static void share_children(struct vg_tree *tree, struct vg_inner *inner, unsigned i)
{
    struct vg_node *left = vg_tree_own(tree, inner->children[i]);
    struct vg_node *right = vg_tree_own(tree, inner->children[i + 1]);
    inner->children[i] = left;
    inner->children[i + 1] = right;
    vg_node_share(&tree->order, left, right);
    inner->counts[i] = (uint32_t)vg_node_count(left);
    inner->counts[i + 1] = (uint32_t)vg_node_count(right);
    vg_node_rekey(&tree->order, &inner->node, i + 1);
}

static void fill_child(struct vg_tree *tree, struct vg_inner *inner, unsigned at)
{
    unsigned i = at ? at - 1 : 0; /* the left one of the two */
    if ((unsigned)inner->children[i]->n + inner->children[i + 1]->n <= VG_NODE_JOIN)
        join_children(tree, inner, i);
    else
        share_children(tree, inner, i);
}

static void shrink_top(struct vg_tree *tree)
{
    struct vg_node *top = tree->top;
    if (top->is_leaf ? top->n > 0 : top->n > 1)
        return;
    tree->top = top->is_leaf ? NULL : vg_inner(top)->children[0];
    tree->levels--;
    vg_tree_retire_node(tree, top);
}

static void remove_at(struct vg_tree *tree, struct vg_tree_path *path)
{
    unsigned l = path->levels - 1;
    bool is_new_first = path->step[l].at == 0;
    vg_node_remove(&tree->order, path->step[l].node, path->step[l].at);
    while (l-- > 0) {
        struct vg_inner *inner = vg_inner(path->step[l].node);
        unsigned at = path->step[l].at;
        inner->counts[at]--;
        if (is_new_first)
            vg_node_rekey(&tree->order, &inner->node, at);
        is_new_first = is_new_first && at == 0;
        if (inner->children[at]->n < VG_NODE_MIN)
            fill_child(tree, inner, at);
    }
    shrink_top(tree);
    tree->count--;
}

int vg_tree_remove(struct vg_tree *tree, struct vg_tree_key key, struct vg_rec **ret_old)
{
    struct vg_tree_path path;
    if (!vg_tree_find(tree, &key, &path)) {
        if (ret_old)
            *ret_old = NULL;
        return 0;
    }
    if (vg_tree_reserve_path(tree) < 0)
        return -ENOMEM;
    vg_tree_own_path(tree, &path);
    const struct vg_rec *old =
        vg_leaf(path.step[path.levels - 1].node)->recs[path.step[path.levels - 1].at];
    remove_at(tree, &path);
    if (ret_old)
        *ret_old = vg_rec_ref(old);
    vg_tree_retire_rec(tree, old);
    return 1;
}
