/* tree_reclaim.c - who may still see a node or a record, and giving back what nobody sees.
 *
 * Nodes carry no reference counts: copying a node would have to touch all its children, and a leaf
 * all its records, most of them cold. Instead each root keeps a list of what left the working tree
 * after it and before the next root: what this root sees and no later one does. A node knows the
 * batch it was born in, a record its revision, so the list of a dead root is divided in one pass:
 * what the root before it sees too moves to that one's list, the rest is freed. This is how ZFS
 * deletes snapshots. Roots die in any order; when the oldest dies nothing moves.
 *
 *     roots, by batch:   r3 ------------ r7 ------------ r9 ------ working tree (10)
 *     retired:           born <= 3,      born <= 7,      born <= 9,
 *                        gone by 7       gone by 9       gone since
 *     r7 dies: of its list, what was born by 3 moves to r3, what was born in 4 .. 7 is freed.
 *
 * Revisions stand in for the batches of records, which have no room for one: a root remembers the
 * highest revision `high` ever put before it, so a record above it was put later. Records that are
 * put with revisions that do not rise may be kept longer than needed, never shorter.
 *
 * Dead roots come by mail. They are taken in runs of neighbours, oldest first, so that what many of
 * them share is not handed from one to the next. */
#include <errno.h>

#include "base/alloc.h"
#include "tree_int.h"

/* ---- spares ---- */

static void push_spare(struct vg_tree *tree, struct vg_node *node)
{
    struct vg_node **list = node->is_leaf ? &tree->spare_leaves : &tree->spare_inners;
    node->link = *list;
    *list = node;
    ++*(node->is_leaf ? &tree->n_spare_leaves : &tree->n_spare_inners);
}

static struct vg_node *pop_spare(struct vg_tree *tree, bool is_leaf)
{
    struct vg_node **list = is_leaf ? &tree->spare_leaves : &tree->spare_inners;
    struct vg_node *node = *list;
    *list = node->link;
    --*(is_leaf ? &tree->n_spare_leaves : &tree->n_spare_inners);
    return node;
}

static int reserve_nodes(struct vg_tree *tree, bool is_leaf, size_t want)
{
    const size_t *have = is_leaf ? &tree->n_spare_leaves : &tree->n_spare_inners;
    while (*have < want) {
        struct vg_node *node = vg_malloc(vg_node_size(is_leaf));
        if (!node)
            return -ENOMEM;
        node->is_leaf = is_leaf;
        tree->stats.bytes += vg_node_size(is_leaf);
        push_spare(tree, node);
    }
    return 0;
}

int vg_tree_reserve(struct vg_tree *tree, size_t leaves, size_t inners)
{
    if (!tree->spare_note) {
        if (!(tree->spare_note = vg_new(struct vg_tree_note)))
            return -ENOMEM;
        tree->stats.bytes += sizeof *tree->spare_note;
    }
    if (!tree->spare_root) {
        if (!(tree->spare_root = vg_new(struct vg_root)))
            return -ENOMEM;
        tree->stats.bytes += sizeof *tree->spare_root;
    }
    if (reserve_nodes(tree, true, leaves) < 0 || reserve_nodes(tree, false, inners) < 0)
        return -ENOMEM;
    return 0;
}

struct vg_node *vg_tree_take_spare(struct vg_tree *tree, bool is_leaf)
{
    struct vg_node *node = pop_spare(tree, is_leaf);
    node->born = tree->batch;
    node->link = NULL;
    node->first = NULL;
    node->n = 0;
    tree->stats.nodes++;
    return node;
}

static void free_node(struct vg_tree *tree, struct vg_node *node)
{
    if ((node->is_leaf ? tree->n_spare_leaves : tree->n_spare_inners) < VG_TREE_SPARES_MAX) {
        push_spare(tree, node);
        return;
    }
    tree->stats.bytes -= vg_node_size(node->is_leaf);
    vg_free(node);
}

static void free_note(struct vg_tree *tree, struct vg_tree_note *note)
{
    if (!tree->spare_note) {
        tree->spare_note = note;
        return;
    }
    tree->stats.bytes -= sizeof *note;
    vg_free(note);
}

static void free_root(struct vg_tree *tree, struct vg_root *root)
{
    if (!tree->spare_root) {
        tree->spare_root = root;
        return;
    }
    tree->stats.bytes -= sizeof *root;
    vg_free(root);
}

void vg_tree_trim_spares(struct vg_tree *tree, size_t max)
{
    for (; tree->n_spare_leaves > max; tree->stats.bytes -= vg_node_size(true))
        vg_free(pop_spare(tree, true));
    for (; tree->n_spare_inners > max; tree->stats.bytes -= vg_node_size(false))
        vg_free(pop_spare(tree, false));
}

/* ---- retiring ---- */

static struct vg_root *root_by_batch(struct vg_list *link)
{
    return VG_CONTAINER_OF(link, struct vg_root, by_batch);
}

/* NULL: there is none before it. */
static struct vg_root *root_before(const struct vg_tree *tree, const struct vg_root *root)
{
    struct vg_list *prev = root ? root->by_batch.prev : tree->roots.prev;
    return prev == &tree->roots ? NULL : root_by_batch(prev);
}

static bool sees_node(const struct vg_root *root, const struct vg_node *node)
{
    return root && node->born <= root->batch;
}

static bool sees_rec(const struct vg_root *root, const struct vg_rec *rec)
{
    return root && rec->rev <= root->high;
}

/* Gone from the working tree, or from the sight of a root: the root before decides. */
static void pass_node(struct vg_tree *tree, struct vg_root *before, struct vg_node *node)
{
    if (sees_node(before, node)) {
        node->link = before->nodes;
        before->nodes = node;
        return;
    }
    tree->stats.nodes_retired--;
    free_node(tree, node);
}

static void pass_note(struct vg_tree *tree, struct vg_root *before, struct vg_tree_note *note)
{
    if (sees_rec(before, note->rec)) {
        note->next = before->recs;
        before->recs = note;
        return;
    }
    tree->stats.recs_retired--;
    tree->stats.rec_bytes_retired -= vg_rec_size(note->rec);
    vg_rec_unref(note->rec);
    free_note(tree, note);
}

void vg_tree_retire_node(struct vg_tree *tree, struct vg_node *node)
{
    tree->stats.nodes--;
    tree->stats.nodes_retired++;
    pass_node(tree, root_before(tree, NULL), node);
}

void vg_tree_retire_rec(struct vg_tree *tree, const struct vg_rec *rec)
{
    struct vg_tree_note *note = vg_steal(tree->spare_note);
    note->rec = rec;
    tree->stats.recs_retired++;
    tree->stats.rec_bytes_retired += vg_rec_size(rec);
    pass_note(tree, root_before(tree, NULL), note);
}

/* ---- dead roots ---- */

struct vg_root *vg_root_ref(const struct vg_root *root)
{
    struct vg_root *r = (struct vg_root *)root; /* the count is what changes */
    atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
    return r;
}

struct vg_root *vg_root_unref(const struct vg_root *root)
{
    struct vg_root *r = (struct vg_root *)root;
    if (r && atomic_fetch_sub_explicit(&r->refs, 1, memory_order_release) == 1) {
        (void)atomic_load_explicit(&r->refs, memory_order_acquire); /* as a fence; TSan sees it */
        int err = vg_mailbox_post(&r->tree->box, &r->mail);
        (void)VG_NEVER(err < 0); /* no bound, and the tree outlives its roots */
    }
    return NULL;
}

static void collect_dead(struct vg_tree *tree)
{
    for (struct vg_mail *m = vg_mailbox_take_all(&tree->box), *next; m; m = next) {
        next = m->next;
        struct vg_root *root = VG_CONTAINER_OF(m, struct vg_root, mail);
        root->is_dead = true;
        vg_list_push_back(&tree->dead_roots, &root->by_death);
        tree->stats.roots_dead++;
    }
}

/* The oldest of the run of neighbours to which the first dead root belongs. */
static struct vg_root *pick_dead(const struct vg_tree *tree)
{
    if (vg_list_is_empty(&tree->dead_roots))
        return NULL;
    struct vg_root *root = VG_CONTAINER_OF(tree->dead_roots.next, struct vg_root, by_death);
    struct vg_root *before = root_before(tree, root);
    while (before && before->is_dead) {
        root = before;
        before = root_before(tree, root);
    }
    return root;
}

/* Nothing is left in its lists. The next of the run follows. */
static void end_root(struct vg_tree *tree, struct vg_root *root)
{
    struct vg_list *next = root->by_batch.next;
    bool goes_on = next != &tree->roots && root_by_batch(next)->is_dead;
    tree->reclaiming = goes_on ? root_by_batch(next) : NULL;
    vg_list_remove(&root->by_batch);
    vg_list_remove(&root->by_death);
    tree->stats.roots--;
    tree->stats.roots_dead--;
    free_root(tree, root);
}

static void reclaim_step(struct vg_tree *tree, struct vg_root *root)
{
    struct vg_root *before = root_before(tree, root);
    if (root->nodes) {
        struct vg_node *node = root->nodes;
        root->nodes = node->link;
        pass_node(tree, before, node);
    } else if (root->recs) {
        struct vg_tree_note *note = root->recs;
        root->recs = note->next;
        pass_note(tree, before, note);
    } else {
        end_root(tree, root);
    }
}

bool vg_tree_reclaim(struct vg_tree *tree, size_t max_steps)
{
    collect_dead(tree);
    while (max_steps-- > 0) {
        if (!tree->reclaiming && !(tree->reclaiming = pick_dead(tree)))
            return false;
        reclaim_step(tree, tree->reclaiming);
    }
    return !vg_list_is_empty(&tree->dead_roots);
}

/* ---- the end ---- */

/* Free the last leaf and what it leaves empty above it; how many steps that was. */
static size_t dissolve_leaf(struct vg_tree *tree)
{
    struct vg_node *path[VG_TREE_LEVELS_MAX], *node = tree->top;
    unsigned l = 0;
    for (; !node->is_leaf; node = vg_inner(node)->children[node->n - 1u])
        path[l++] = node;
    size_t steps = node->n;
    for (unsigned i = 0; i < node->n; i++)
        vg_rec_unref(vg_leaf(node)->recs[i]);
    tree->count -= node->n;
    for (;; node = path[l]) {
        tree->stats.nodes--;
        free_node(tree, node);
        steps++;
        if (l == 0)
            break;
        if (--path[--l]->n > 0)
            return steps;
    }
    tree->top = NULL;
    tree->levels = 0;
    return steps;
}

bool vg_tree_dissolve(struct vg_tree *tree, size_t max_steps)
{
    if (vg_tree_reclaim(tree, max_steps))
        return true;
    if (VG_NEVER(!vg_list_is_empty(&tree->roots))) /* a root is alive: leak rather than crash */
        return false;
    for (size_t steps = 0; tree->top && steps < max_steps;)
        steps += dissolve_leaf(tree);
    return tree->top;
}
