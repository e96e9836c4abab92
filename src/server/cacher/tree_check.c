/* tree_check.c - the invariants of the tree, and the functions that check them.
 *   T1 the keys of a tree ascend strictly from left to right.
 *   T2 `first` of a node is the first record below it.
 *   T3 skip bytes are common to the headed part of all entries of a node, by_minor means that their
 *      majors are equal, and heads are as computed from that.
 *   T4 counts are the numbers of records below each child; the root's count is their sum.
 *   T5 leaves are all at the same level; no node but the top has fewer than VG_NODE_MIN entries, an
 *      inner top has two, a leaf at the top one, none more than VG_NODE_MAX.
 *   T6 a node was born no later than its parent, and none after the batch being written: nodes of
 *      an older batch are never written to again, but for `link`.
 *   T7 what lies in a root's lists is seen from that root: nodes born by its batch, records of at
 *      most its highest revision; roots ascend strictly by batch; a root is in the list of the dead
 *      exactly when it is marked so. */
#include "tree_int.h"

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
        assert(vg_tree_key_cmp(&a, &b) < 0); /* T1 */
        (void)a;
        (void)b;
    }
    w->last = rec;
}

static void check_heads(const struct walk *w, const struct vg_node *node)
{
    struct vg_tree_key first = vg_tree_key_of(w->order, vg_node_rec(node, 0));
    struct vg_slice f = node->by_minor ? first.minor : first.major;
    for (unsigned i = 0; i < node->n; i++) {
        struct vg_tree_key key = vg_tree_key_of(w->order, vg_node_rec(node, i));
        struct vg_slice s = node->by_minor ? key.minor : key.major;
        assert(!node->by_minor || vg_slice_eq(key.major, first.major)); /* T3 */
        assert(vg_slice_has_prefix(s, vg_slice(f.p, node->skip)));      /* T3 */
        uint64_t head = 0;
        for (unsigned b = 0; b < sizeof head; b++)
            head = head << 8 | (node->skip + b < s.n ? (unsigned char)s.p[node->skip + b] : 0u);
        assert(node->heads[i] == head); /* T3 */
        (void)head;
    }
}

/* Levels are few: the recursion is as deep as the tree. */
static size_t check_node(struct walk *w, const struct vg_node *node, unsigned level,
                         uint64_t born_by)
{
    size_t count = 0;
    w->nodes++;
    assert(node->is_leaf == (level == 1));                  /* T5 */
    assert(node->n <= VG_NODE_MAX);                         /* T5 */
    assert(node->born <= born_by);                          /* T6 */
    assert(node->n && node->first == vg_node_rec(node, 0)); /* T2 */
    check_heads(w, node);
    for (unsigned i = 0; i < node->n; i++) {
        if (node->is_leaf) {
            check_order(w, vg_leaf_const(node)->recs[i]);
            count++;
            continue;
        }
        const struct vg_inner *inner = vg_inner_const(node);
        assert(inner->children[i]->n >= VG_NODE_MIN); /* T5 */
        size_t below = check_node(w, inner->children[i], level - 1, node->born);
        assert(below == inner->counts[i]); /* T4 */
        count += below;
    }
    return count;
}

static size_t check_top(const struct vg_tree_order *order, const struct vg_node *top,
                        unsigned levels, size_t count, uint64_t batch)
{
    struct walk w = {.order = order};
    assert(!top == (levels == 0) && levels <= VG_TREE_LEVELS_MAX);
    assert(!top || top->n >= (top->is_leaf ? 1 : 2)); /* T5 */
    size_t below = top ? check_node(&w, top, levels, batch) : 0;
    assert(below == count); /* T4 */
    (void)below;
    (void)count;
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
        assert(node->born <= root->batch); /* T7 */
        r->nodes++;
    }
    for (const struct vg_tree_note *note = root->recs; note; note = note->next) {
        assert(note->rec->rev <= root->high); /* T7 */
        r->recs++;
        r->bytes += vg_rec_size(note->rec);
    }
    assert(root->is_dead == !vg_list_is_empty(&root->by_death)); /* T7 */
}

void vg_tree_check(const struct vg_tree *tree)
{
    size_t nodes = check_top(&tree->order, tree->top, tree->levels, tree->count, tree->batch);
    struct retired r = {0};
    size_t roots = 0;
    uint64_t batch = 0;
    VG_LIST_FOREACH (link, &tree->roots) {
        const struct vg_root *root = VG_CONTAINER_OF(link, struct vg_root, by_batch);
        assert(root->batch > batch && root->batch < tree->batch); /* T7 */
        batch = root->batch;
        roots++;
        check_root_lists(root, &r);
    }
    assert(nodes == tree->stats.nodes && r.nodes == tree->stats.nodes_retired);
    assert(r.recs == tree->stats.recs_retired && r.bytes == tree->stats.rec_bytes_retired);
    assert(roots == tree->stats.roots);
    (void)nodes;
    (void)roots;
    (void)batch;
}
