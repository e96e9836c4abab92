/* tree_check.c - the invariants of the tree, and the functions that check them.
 *   T1 the keys of a tree ascend strictly from left to right.
 *   T2 `first` of a node is the first record below it.
 *   T3 same is how many bytes an entry's key has in common with that of the entry before it in the
 *      node, at most UINT16_MAX, and head the eight bytes that follow; both are 0 in the first.
 *   T4 counts are the numbers of records below each child; the root's count is their sum.
 *   T5 leaves are all at the same level; no node but the top has fewer than VG_NODE_MIN entries, an
 *      inner top has two, a leaf at the top one, none more than VG_NODE_MAX.
 *   T6 a node was born no later than its parent, and none after the batch being written: nodes of
 *      an older batch are never written to again, but for `link`.
 *   T7 what lies in a root's lists is seen from that root: nodes born by its batch, records of at
 *      most its highest revision; roots ascend strictly by batch; a root is in the list of the dead
 *      exactly when it is marked so.
 *   T8 the statistics are what a count gives. */
#include <stdio.h>
#include <stdlib.h>

#include "tree_int.h"

/* In every build: who calls a check wants it made. */
static void holds(bool is_true, const char *invariant)
{
    if (is_true)
        return;
    fprintf(stderr, "tree: invariant %s does not hold\n", invariant);
    abort();
}

struct walk {
    const struct vg_tree_order *order;
    const struct vg_rec *last; /* of the records so far */
    size_t nodes;
};

static void check_order(struct walk *w, const struct vg_rec *rec)
{
    if (w->last) {
        struct vg_tree_key a = vg_tree_key_of(w->order, w->last);
        struct vg_tree_key b = vg_tree_key_of(w->order, rec);
        holds(vg_tree_key_cmp(&a, &b) < 0, "T1");
    }
    w->last = rec;
}

/* The text of a key, as tree_node.c reads it; -1 beyond the end. */
static int byte_at(const struct vg_tree_key *key, size_t i)
{
    if (i < key->major.n)
        return (unsigned char)key->major.p[i];
    size_t of_minor = i - key->major.n;
    if (of_minor == 0)
        return 0;
    return of_minor <= key->minor.n ? (unsigned char)key->minor.p[of_minor - 1] : -1;
}

static void check_entry(const struct walk *w, const struct vg_node *node, unsigned i)
{
    struct vg_tree_key a = vg_tree_key_of(w->order, vg_node_rec(node, i - 1));
    struct vg_tree_key b = vg_tree_key_of(w->order, vg_node_rec(node, i));
    size_t same = 0;
    while (same < UINT16_MAX && byte_at(&a, same) == byte_at(&b, same))
        same++;
    uint64_t head = 0;
    for (size_t k = same; k < same + sizeof head; k++)
        head = head << 8 | (uint64_t)(byte_at(&b, k) > 0 ? byte_at(&b, k) : 0);
    holds(node->same[i] == same && node->heads[i] == head, "T3");
}

static void check_heads(const struct walk *w, const struct vg_node *node)
{
    holds(node->same[0] == 0 && node->heads[0] == 0, "T3");
    for (unsigned i = 1; i < node->n; i++)
        check_entry(w, node, i);
}

/* Levels are few: the recursion is as deep as the tree. */
static size_t check_node(struct walk *w, const struct vg_node *node, unsigned level,
                         uint64_t born_by)
{
    size_t count = 0;
    w->nodes++;
    holds(node->is_leaf == (level == 1), "T5");
    holds(node->n <= VG_NODE_MAX, "T5");
    holds(node->born <= born_by, "T6");
    holds(node->n && node->first == vg_node_rec(node, 0), "T2");
    check_heads(w, node);
    for (unsigned i = 0; i < node->n; i++) {
        if (node->is_leaf) {
            check_order(w, vg_leaf_const(node)->recs[i]);
            count++;
            continue;
        }
        const struct vg_inner *inner = vg_inner_const(node);
        holds(inner->children[i]->n >= VG_NODE_MIN, "T5");
        size_t below = check_node(w, inner->children[i], level - 1, node->born);
        holds(below == inner->counts[i], "T4");
        count += below;
    }
    return count;
}

static size_t check_top(const struct vg_tree_order *order, const struct vg_node *top,
                        unsigned levels, size_t count, uint64_t batch)
{
    struct walk w = {.order = order};
    holds(!top == (levels == 0) && levels <= VG_TREE_LEVELS_MAX, "T5");
    holds(!top || top->n >= (top->is_leaf ? 1 : 2), "T5");
    size_t below = top ? check_node(&w, top, levels, batch) : 0;
    holds(below == count, "T4");
    return w.nodes;
}

void vg_root_check(const struct vg_root *root)
{
    (void)check_top(&root->order, root->top, root->levels, root->count, root->batch);
}

struct retired {
    size_t nodes, recs, bytes;
};

static void check_root_lists(const struct vg_root *root, struct retired *r)
{
    for (const struct vg_node *node = root->nodes; node; node = node->link) {
        holds(node->born <= root->batch, "T7");
        r->nodes++;
    }
    for (const struct vg_tree_note *note = root->recs; note; note = note->next) {
        holds(note->rec->rev <= root->high, "T7");
        r->recs++;
        r->bytes += vg_rec_size(note->rec);
    }
    holds(root->is_dead == !vg_list_is_empty(&root->by_death), "T7");
}

void vg_tree_check(const struct vg_tree *tree)
{
    size_t nodes = check_top(&tree->order, tree->top, tree->levels, tree->count, tree->batch);
    struct retired r = {0};
    size_t roots = 0;
    uint64_t batch = 0;
    VG_LIST_FOREACH (link, &tree->roots) {
        const struct vg_root *root = VG_CONTAINER_OF(link, struct vg_root, by_batch);
        holds(root->batch > batch && root->batch < tree->batch, "T7");
        batch = root->batch;
        roots++;
        check_root_lists(root, &r);
    }
    holds(nodes == tree->stats.nodes && r.nodes == tree->stats.nodes_retired, "T8");
    holds(r.recs == tree->stats.recs_retired && r.bytes == tree->stats.rec_bytes_retired, "T8");
    holds(roots == tree->stats.roots, "T8");
}
