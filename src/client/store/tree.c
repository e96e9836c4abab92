/* tree.c - changing a tree; see tree.h.
 * A change finds its way down, makes the nodes on it its own (own_path: after that nobody else sees
 * them), and changes them from the bottom up. All nodes that it may need were reserved. */
#include "tree.h"

#include <errno.h>

#include "base/alloc.h"
#include "tree_int.h"

/* A node with fewer entries than a quarter is joined with a neighbour, if the two then fill three
 * quarters at most: far from the next split. */
#define FEW(node) (vg_ctree_max(node) / 4)
#define JOINED(node) (vg_ctree_max(node) * 3 / 4)

struct path {
    unsigned levels; /* of the tree */
    struct {
        struct vg_ctree_node *node;
        unsigned at; /* the child on the way; in the leaf the entry, or where it goes */
    } step[VG_CTREE_LEVELS_MAX];
};

/* ---- nodes beforehand ---- */

int vg_ctree_reserve(struct vg_ctree_pool *pool, unsigned levels, size_t changes)
{
    /* Each change copies and splits, or copies and joins, a node per level, and may add a level;
     * many of them add few, for a node that was split is half full. */
    size_t more = 1;
    for (size_t c = changes; c > 1; c /= VG_CTREE_INNER_MAX / 2)
        more++;
    size_t want = changes * (2 * (levels + more) + 1);
    while (pool->n < want) {
        struct vg_ctree_node *node = vg_malloc(sizeof(*node));
        if (!node)
            return -ENOMEM;
        node->next = pool->first;
        pool->first = node;
        pool->n++;
    }
    return 0;
}

void vg_ctree_pool_trim(struct vg_ctree_pool *pool, size_t max)
{
    while (pool->n > max) {
        struct vg_ctree_node *node = pool->first;
        pool->first = node->next;
        pool->n--;
        vg_free(node);
    }
}

static struct vg_ctree_node *take(struct vg_ctree_pool *pool, bool is_leaf)
{
    struct vg_ctree_node *node = pool->first;
    assert(node);
    pool->first = node->next;
    pool->n--;
    atomic_init(&node->refs, 1);
    node->n = 0;
    node->is_leaf = is_leaf;
    return node;
}

/* The node alone: what it held has gone elsewhere. */
static void give_back(struct vg_ctree_pool *pool, struct vg_ctree_node *node)
{
    node->next = pool->first;
    pool->first = node;
    pool->n++;
}

/* ---- ownership ---- */

static bool is_mine(struct vg_ctree_node *node)
{
    return atomic_load_explicit(&node->refs, memory_order_acquire) == 1;
}

static void ref_contents(const struct vg_ctree_node *node)
{
    for (unsigned i = 0; i < node->n; i++) {
        if (node->is_leaf) {
            vigil_object_ref(node->entries[i].o);
            vg_ctree_value_ref(node->entries[i].value);
        } else {
            vg_ctree_node_ref(node->children[i].node);
        }
    }
}

/* The entries themselves, of nodes of one kind or within one. */
static void move(struct vg_ctree_node *to, unsigned i, const struct vg_ctree_node *from, unsigned j,
                 unsigned n)
{
    if (to->is_leaf)
        memmove(&to->entries[i], &from->entries[j], n * sizeof(to->entries[0]));
    else
        memmove(&to->children[i], &from->children[j], n * sizeof(to->children[0]));
}

static struct vg_ctree_node *own(struct vg_ctree_pool *pool, struct vg_ctree_node *node)
{
    if (is_mine(node))
        return node;
    struct vg_ctree_node *copy = take(pool, node->is_leaf);
    copy->n = node->n;
    move(copy, 0, node, 0, node->n);
    ref_contents(copy);
    vg_ctree_node_unref(node);
    return copy;
}

static void own_path(struct vg_ctree *t, struct vg_ctree_pool *pool, struct path *path)
{
    struct vg_ctree_node **slot = &t->top;
    for (unsigned l = 0; l < path->levels; l++) {
        struct vg_ctree_node *node = own(pool, *slot);
        *slot = path->step[l].node = node;
        if (!node->is_leaf)
            slot = &node->children[path->step[l].at].node;
    }
}

/* Is an entry with this key there? */
static bool find_path(const struct vg_ctree *t, const struct vg_ctree_key *key, struct path *ret)
{
    struct vg_ctree_node *node = t->top;
    ret->levels = 0;
    for (unsigned l = 0; node; l++) {
        unsigned at = node->is_leaf ? vg_ctree_below(node, key) : vg_ctree_way(node, key);
        ret->levels = l + 1;
        ret->step[l].node = node;
        ret->step[l].at = at;
        if (node->is_leaf)
            return at < node->n && vg_slice_eq(vg_ctree_value_of(&node->entries[at]), key->value) &&
                   vg_slice_eq(vg_object_key(node->entries[at].o), key->key);
        node = node->children[at].node;
    }
    return false;
}

/* ---- put ---- */

static void set_child(struct vg_ctree_node *parent, unsigned i, struct vg_ctree_node *node)
{
    parent->children[i] = (struct vg_ctree_child){
        .node = node, .count = vg_ctree_node_count(node), .first = *vg_ctree_entry_at(node, 0)};
}

static void open_gap(struct vg_ctree_node *node, unsigned i)
{
    assert(node->n < vg_ctree_max(node) && i <= node->n);
    move(node, i + 1, node, i, node->n - i);
    node->n++;
}

/* A full node becomes two. *node and *at become the half, and the place in it, for a new entry. The
 * right half, or NULL: it was not full. */
static struct vg_ctree_node *make_room(struct vg_ctree_pool *pool, struct vg_ctree_node **node,
                                       unsigned *at)
{
    struct vg_ctree_node *left = *node;
    if (left->n < vg_ctree_max(left))
        return NULL;
    struct vg_ctree_node *right = take(pool, left->is_leaf);
    unsigned keep = left->n / 2u;
    right->n = (uint16_t)(left->n - keep);
    move(right, 0, left, keep, right->n);
    left->n = (uint16_t)keep;
    if (*at > keep) {
        *at -= keep;
        *node = right;
    }
    return right;
}

static void add_top(struct vg_ctree *t, struct vg_ctree_pool *pool, struct vg_ctree_node *right)
{
    struct vg_ctree_node *top = take(pool, false);
    top->n = 2;
    set_child(top, 0, t->top);
    set_child(top, 1, right);
    t->top = top;
    t->levels++;
    assert(t->levels < VG_CTREE_LEVELS_MAX);
}

static void insert(struct vg_ctree *t, struct vg_ctree_pool *pool, struct path *path,
                   struct vg_ctree_entry e)
{
    unsigned l = path->levels - 1;
    struct vg_ctree_node *leaf = path->step[l].node;
    unsigned at = path->step[l].at;
    struct vg_ctree_node *right = make_room(pool, &leaf, &at);
    open_gap(leaf, at);
    leaf->entries[at] = e;
    for (; l > 0; l--) {
        struct vg_ctree_node *parent = path->step[l - 1].node, *into = parent;
        at = path->step[l - 1].at;
        set_child(parent, at, path->step[l].node);
        if (!right)
            continue;
        struct vg_ctree_node *new_child = right;
        at++;
        right = make_room(pool, &into, &at);
        open_gap(into, at);
        set_child(into, at, new_child);
    }
    if (right)
        add_top(t, pool, right);
    t->count++;
}

/* The key is the same; the object that nodes above name as their first is another. */
static struct vg_ctree_entry replace(struct path *path, struct vg_ctree_entry e)
{
    unsigned l = path->levels - 1;
    struct vg_ctree_entry *slot = &path->step[l].node->entries[path->step[l].at];
    struct vg_ctree_entry old = *slot;
    *slot = e;
    for (; l > 0 && path->step[l].at == 0; l--)
        path->step[l - 1].node->children[path->step[l - 1].at].first = e;
    return old;
}

struct vg_ctree_entry vg_ctree_put(struct vg_ctree *t, struct vg_ctree_pool *pool,
                                   struct vg_ctree_entry take_e)
{
    static const struct vg_ctree_entry none;
    struct vg_ctree_key key = {.value = vg_ctree_value_of(&take_e), .key = vg_object_key(take_e.o)};
    struct path path;
    if (!t->top) {
        t->top = take(pool, true);
        t->top->n = 1;
        t->top->entries[0] = take_e;
        t->levels = 1;
        t->count = 1;
        return none;
    }
    bool found = find_path(t, &key, &path);
    own_path(t, pool, &path);
    if (found)
        return replace(&path, take_e);
    insert(t, pool, &path, take_e);
    return none;
}

/* ---- remove ---- */

static void close_gap(struct vg_ctree_node *node, unsigned i)
{
    node->n--;
    move(node, i, node, i + 1, node->n - i);
}

/* Children i and i + 1 of the parent become one. */
static void join(struct vg_ctree_pool *pool, struct vg_ctree_node *parent, unsigned i)
{
    struct vg_ctree_node *left = own(pool, parent->children[i].node);
    struct vg_ctree_node *right = parent->children[i + 1].node;
    move(left, left->n, right, 0, right->n);
    left->n = (uint16_t)(left->n + right->n);
    if (is_mine(right)) {
        give_back(pool, right);
    } else {
        ref_contents(right);
        vg_ctree_node_unref(right);
    }
    set_child(parent, i, left);
    close_gap(parent, i + 1);
}

static void join_if_few(struct vg_ctree_pool *pool, struct vg_ctree_node *parent, unsigned at)
{
    struct vg_ctree_node *node = parent->children[at].node;
    if (node->n >= FEW(node))
        return;
    if (at + 1u < parent->n && node->n + parent->children[at + 1].node->n <= JOINED(node))
        join(pool, parent, at);
    else if (at > 0 && node->n + parent->children[at - 1].node->n <= JOINED(node))
        join(pool, parent, at - 1);
}

/* The child at `at` has lost an entry. */
static void shrink(struct vg_ctree_pool *pool, struct vg_ctree_node *parent, unsigned at)
{
    struct vg_ctree_node *node = parent->children[at].node;
    if (node->n == 0) {
        give_back(pool, node);
        close_gap(parent, at);
        return;
    }
    set_child(parent, at, node);
    join_if_few(pool, parent, at);
}

static void lower_top(struct vg_ctree *t, struct vg_ctree_pool *pool)
{
    while (t->top && !t->top->is_leaf && t->top->n == 1) {
        struct vg_ctree_node *top = t->top;
        t->top = top->children[0].node; /* its reference goes with it */
        give_back(pool, top);
        t->levels--;
    }
    if (t->top && t->top->n == 0) {
        give_back(pool, t->top);
        t->top = NULL;
        t->levels = 0;
    }
}

struct vg_ctree_entry vg_ctree_remove(struct vg_ctree *t, struct vg_ctree_pool *pool,
                                      const struct vg_ctree_key *key)
{
    struct path path;
    if (!find_path(t, key, &path))
        return (struct vg_ctree_entry){NULL, NULL};
    own_path(t, pool, &path);
    unsigned l = path.levels - 1, at = path.step[l].at;
    struct vg_ctree_entry old = path.step[l].node->entries[at];
    close_gap(path.step[l].node, at);
    for (; l > 0; l--)
        shrink(pool, path.step[l - 1].node, path.step[l - 1].at);
    lower_top(t, pool);
    t->count--;
    return old;
}
