/* tree_walk.c - reading a snapshot: one record, ranks, walks. No locks, no allocation: a root and
 * everything below it stays as it is for as long as it is held. */
#include "tree_int.h"

vg_rev vg_root_rev(const struct vg_root *root)
{
    return root->rev;
}

size_t vg_root_count(const struct vg_root *root)
{
    return root->count;
}

const struct vg_rec *vg_root_get(const struct vg_root *root, struct vg_tree_key key)
{
    const struct vg_node *node = root->top;
    struct vg_place place;
    if (!node)
        return NULL;
    vg_place_init(&place, &root->order, node, &key, VG_TREE_AFTER);
    while (!node->is_leaf)
        node = vg_inner_const(node)->children[vg_node_way(&root->order, node, &place)];
    unsigned below = vg_node_below(&root->order, node, &place);
    const struct vg_rec *rec = below ? vg_leaf_const(node)->recs[below - 1] : NULL;
    return rec && vg_place_is_key_of(&place, &root->order, rec) ? rec : NULL;
}

/* ---- counting ---- */

size_t vg_root_rank(const struct vg_root *root, struct vg_tree_key key, enum vg_tree_edge edge)
{
    const struct vg_node *node = root->top;
    struct vg_place place;
    size_t rank = 0;
    if (!node)
        return 0;
    vg_place_init(&place, &root->order, node, &key, edge);
    while (!node->is_leaf) {
        const struct vg_inner *inner = vg_inner_const(node);
        unsigned at = vg_node_way(&root->order, node, &place);
        for (unsigned i = 0; i < at; i++)
            rank += inner->counts[i];
        node = inner->children[at];
    }
    return rank + vg_node_below(&root->order, node, &place);
}

size_t vg_root_count_range(const struct vg_root *root, const struct vg_tree_key *from,
                           const struct vg_tree_key *to)
{
    size_t start = from ? vg_root_rank(root, *from, VG_TREE_AT) : 0;
    size_t end = to ? vg_root_rank(root, *to, VG_TREE_AT) : root->count;
    return end > start ? end - start : 0;
}

size_t vg_root_count_prefix(const struct vg_root *root, struct vg_tree_key prefix)
{
    return vg_root_rank(root, prefix, VG_TREE_PAST) - vg_root_rank(root, prefix, VG_TREE_AT);
}

/* ---- walking ---- */

static void enter_leaf(struct vg_cursor *cursor, const struct vg_node *node, unsigned at)
{
    const struct vg_leaf *leaf = vg_leaf_const(node);
    cursor->at = leaf->recs + at;
    cursor->end = leaf->recs + node->n;
}

/* From a node at this level down its first children. */
static void enter_first(struct vg_cursor *cursor, const struct vg_node *node, unsigned level)
{
    for (; !node->is_leaf; level++) {
        cursor->path[level].node = node;
        cursor->path[level].at = 0;
        node = vg_inner_const(node)->children[0];
    }
    enter_leaf(cursor, node, 0);
}

static void start(struct vg_cursor *cursor, const struct vg_root *root)
{
    cursor->at = cursor->end = NULL;
    cursor->levels = root->levels ? root->levels - 1 : 0;
}

void vg_root_first(struct vg_cursor *ret_cursor, const struct vg_root *root)
{
    start(ret_cursor, root);
    if (root->top)
        enter_first(ret_cursor, root->top, 0);
}

void vg_root_seek(struct vg_cursor *ret_cursor, const struct vg_root *root, struct vg_tree_key key)
{
    vg_root_seek_edge(ret_cursor, root, key, VG_TREE_AT);
}

void vg_root_seek_edge(struct vg_cursor *ret_cursor, const struct vg_root *root,
                       struct vg_tree_key key, enum vg_tree_edge edge)
{
    start(ret_cursor, root);
    const struct vg_node *node = root->top;
    struct vg_place place;
    if (!node)
        return;
    vg_place_init(&place, &root->order, node, &key, edge);
    for (unsigned l = 0; !node->is_leaf; l++) {
        unsigned at = vg_node_way(&root->order, node, &place);
        ret_cursor->path[l].node = node;
        ret_cursor->path[l].at = at;
        node = vg_inner_const(node)->children[at];
    }
    /* The place may be the end of this leaf: then vg_cursor_next goes on to the next. */
    enter_leaf(ret_cursor, node, vg_node_below(&root->order, node, &place));
}

const struct vg_rec *vg_cursor_next_leaf(struct vg_cursor *cursor)
{
    for (unsigned l = cursor->levels; l-- > 0;) {
        const struct vg_node *node = cursor->path[l].node;
        if (cursor->path[l].at + 1 == node->n)
            continue;
        cursor->path[l].at++;
        enter_first(cursor, vg_inner_const(node)->children[cursor->path[l].at], l + 1);
        return *cursor->at++;
    }
    return NULL;
}
