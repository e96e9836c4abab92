/* tree_node.c - references of nodes, finding, walking, checking; see tree.h. */
#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "tree_int.h"

/* ---- values ---- */

struct vg_ctree_value *vg_ctree_value_new(struct vg_slice text)
{
    if (text.n > UINT32_MAX)
        return NULL;
    struct vg_ctree_value *v = vg_malloc(sizeof(*v) + text.n);
    if (!v)
        return NULL;
    atomic_init(&v->refs, 1);
    v->n = (uint32_t)text.n;
    if (text.n)
        memcpy(v->bytes, text.p, text.n);
    return v;
}

struct vg_ctree_value *vg_ctree_value_ref(struct vg_ctree_value *v)
{
    if (v)
        atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
    return v;
}

/* The last one? Then all that others did with it has happened before. */
static bool drop(_Atomic uint32_t *refs)
{
    if (atomic_fetch_sub_explicit(refs, 1, memory_order_release) != 1)
        return false;
    (void)atomic_load_explicit(refs, memory_order_acquire);
    return true;
}

void vg_ctree_value_unref(struct vg_ctree_value *v)
{
    if (v && drop(&v->refs))
        vg_free(v);
}

void vg_ctree_entry_unref(struct vg_ctree_entry *e)
{
    vigil_object_unref(e->o);
    vg_ctree_value_unref(e->value);
    *e = (struct vg_ctree_entry){NULL, NULL};
}

/* ---- nodes ---- */

struct vg_ctree_node *vg_ctree_node_ref(struct vg_ctree_node *node)
{
    atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
    return node;
}

/* Recursion is as deep as the tree: VG_CTREE_LEVELS_MAX. */
void vg_ctree_node_unref(struct vg_ctree_node *node)
{
    if (!drop(&node->refs))
        return;
    for (unsigned i = 0; i < node->n; i++) {
        if (node->is_leaf)
            vg_ctree_entry_unref(&node->entries[i]);
        else
            vg_ctree_node_unref(node->children[i].node);
    }
    vg_free(node);
}

size_t vg_ctree_node_count(const struct vg_ctree_node *node)
{
    size_t count = node->n;
    if (node->is_leaf)
        return count;
    count = 0;
    for (unsigned i = 0; i < node->n; i++)
        count += node->children[i].count;
    return count;
}

struct vg_ctree vg_ctree_ref(const struct vg_ctree *t)
{
    if (t->top)
        vg_ctree_node_ref(t->top);
    return *t;
}

void vg_ctree_done(struct vg_ctree *t)
{
    if (t->top)
        vg_ctree_node_unref(t->top);
    *t = (struct vg_ctree){0};
}

/* ---- finding ---- */

static bool is_before(const struct vg_ctree_entry *e, const struct vg_ctree_key *key)
{
    int c = vg_slice_cmp(vg_ctree_value_of(e), key->value);
    if (c)
        return c < 0;
    return key->is_past || vg_slice_cmp(vg_object_key(e->o), key->key) < 0;
}

unsigned vg_ctree_below(const struct vg_ctree_node *node, const struct vg_ctree_key *key)
{
    unsigned low = 0, high = node->n;
    while (low < high) {
        unsigned mid = (low + high) / 2;
        if (is_before(vg_ctree_entry_at(node, mid), key))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

const struct vg_ctree_entry *vg_ctree_find(const struct vg_ctree *t, const struct vg_ctree_key *key)
{
    const struct vg_ctree_node *node = t->top;
    while (node && !node->is_leaf)
        node = node->children[vg_ctree_way(node, key)].node;
    if (!node)
        return NULL;
    unsigned at = vg_ctree_below(node, key);
    const struct vg_ctree_entry *e = at < node->n ? &node->entries[at] : NULL;
    return e && vg_slice_eq(vg_object_key(e->o), key->key) &&
                   vg_slice_eq(vg_ctree_value_of(e), key->value)
               ? e
               : NULL;
}

const struct vg_ctree_entry *vg_ctree_at(const struct vg_ctree *t, size_t i)
{
    const struct vg_ctree_node *node = t->top;
    if (i >= t->count)
        return NULL;
    while (!node->is_leaf) {
        unsigned c = 0;
        for (; i >= node->children[c].count; c++)
            i -= node->children[c].count;
        node = node->children[c].node;
    }
    return &node->entries[i];
}

/* ---- walking ---- */

void vg_ctree_seek(struct vg_ctree_cursor *c, const struct vg_ctree *t,
                   const struct vg_ctree_key *key)
{
    const struct vg_ctree_node *node = t->top;
    c->levels = t->levels;
    for (unsigned l = 0; node; l++) {
        unsigned at = 0;
        if (key)
            at = node->is_leaf ? vg_ctree_below(node, key) : vg_ctree_way(node, key);
        c->path[l].node = node;
        c->path[l].at = at;
        node = node->is_leaf ? NULL : node->children[at].node;
    }
}

/* The leaf is at its end: to the first entry of the next one. */
static bool next_leaf(struct vg_ctree_cursor *c)
{
    unsigned l = c->levels - 1;
    while (l > 0 && c->path[l - 1].at + 1u >= c->path[l - 1].node->n)
        l--;
    if (l == 0)
        return false;
    c->path[l - 1].at++;
    for (; l < c->levels; l++) {
        c->path[l].node = c->path[l - 1].node->children[c->path[l - 1].at].node;
        c->path[l].at = 0;
    }
    return true;
}

const struct vg_ctree_entry *vg_ctree_next(struct vg_ctree_cursor *c)
{
    if (c->levels == 0)
        return NULL;
    unsigned l = c->levels - 1;
    if (c->path[l].at >= c->path[l].node->n && !next_leaf(c))
        return NULL;
    return &c->path[l].node->entries[c->path[l].at++];
}

/* ---- building ---- */

static struct vg_ctree_node *new_node(bool is_leaf)
{
    struct vg_ctree_node *node = vg_malloc(sizeof(*node));
    if (!node)
        return NULL;
    atomic_init(&node->refs, 1);
    node->n = 0;
    node->is_leaf = is_leaf;
    return node;
}

/* How many of n go into the next of the nodes: full ones, but the last two share. */
static unsigned portion(size_t n, unsigned max)
{
    if (n <= max)
        return (unsigned)n;
    return n < 2u * max ? (unsigned)(n / 2) : max;
}

static bool build_leaves(const struct vg_ctree_entry *entries, size_t n,
                         struct vg_ctree_node **nodes, size_t *ret_n)
{
    while (n) {
        struct vg_ctree_node *leaf = new_node(true);
        if (!leaf)
            return false;
        nodes[(*ret_n)++] = leaf;
        unsigned some = portion(n, VG_CTREE_LEAF_MAX);
        for (; leaf->n < some; leaf->n++) {
            leaf->entries[leaf->n] = *entries++;
            vigil_object_ref(leaf->entries[leaf->n].o);
            vg_ctree_value_ref(leaf->entries[leaf->n].value);
        }
        n -= some;
    }
    return true;
}

/* One level up, in place. On failure the nodes that have no parent are at the front. */
static bool build_level(struct vg_ctree_node **nodes, size_t *n)
{
    size_t from = 0, to = 0;
    bool ok = true;
    while (from < *n && ok) {
        unsigned some = portion(*n - from, VG_CTREE_INNER_MAX);
        struct vg_ctree_node *inner = new_node(false);
        ok = inner != NULL;
        for (; ok && inner->n < some; inner->n++, from++) {
            struct vg_ctree_node *node = nodes[from];
            inner->children[inner->n] = (struct vg_ctree_child){node, vg_ctree_node_count(node),
                                                                *vg_ctree_entry_at(node, 0)};
        }
        if (ok)
            nodes[to++] = inner;
    }
    while (from < *n)
        nodes[to++] = nodes[from++];
    *n = to;
    return ok;
}

int vg_ctree_build(const struct vg_ctree_entry *entries, size_t n, struct vg_ctree *ret)
{
    struct vg_ctree t = {.count = n};
    if (n == 0) {
        *ret = t;
        return 0;
    }
    size_t n_nodes = 0;
    struct vg_ctree_node **nodes =
        vg_reallocarray(NULL, n / (VG_CTREE_LEAF_MAX / 2) + 1, sizeof(struct vg_ctree_node *));
    bool ok = nodes && build_leaves(entries, n, nodes, &n_nodes);
    for (t.levels = 1; ok && n_nodes > 1; t.levels++)
        ok = build_level(nodes, &n_nodes);
    if (ok) {
        t.top = nodes[0];
        *ret = t;
    } else {
        while (n_nodes)
            vg_ctree_node_unref(nodes[--n_nodes]);
    }
    vg_free(nodes);
    return ok ? 0 : -ENOMEM;
}

/* ---- checking ---- */

static size_t node_bytes(const struct vg_ctree_node *node)
{
    size_t bytes = sizeof(*node);
    for (unsigned i = 0; !node->is_leaf && i < node->n; i++)
        bytes += node_bytes(node->children[i].node);
    return bytes;
}

size_t vg_ctree_bytes(const struct vg_ctree *t)
{
    return t->top ? node_bytes(t->top) : 0;
}

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_node(const struct vg_ctree_node *node, unsigned levels)
{
    must(levels > 0 && node->n > 0 && node->n <= vg_ctree_max(node)); /* C2 */
    must(node->is_leaf == (levels == 1));
    for (unsigned i = 0; !node->is_leaf && i < node->n; i++) { /* C3 */
        const struct vg_ctree_child *c = &node->children[i];
        const struct vg_ctree_entry *first = vg_ctree_entry_at(c->node, 0);
        must(c->count == vg_ctree_node_count(c->node));
        must(c->first.o == first->o && c->first.value == first->value);
        check_node(c->node, levels - 1);
    }
}

void vg_ctree_check(const struct vg_ctree *t)
{
    must(!t->top == !t->levels && !t->top == !t->count);
    if (!t->top)
        return;
    must(vg_ctree_node_count(t->top) == t->count);
    must(t->top->is_leaf || t->top->n > 1);
    check_node(t->top, t->levels);
    struct vg_ctree_cursor c;
    const struct vg_ctree_entry *e, *before = NULL;
    size_t count = 0;
    vg_ctree_seek(&c, t, NULL);
    for (; (e = vg_ctree_next(&c)); before = e, count++) { /* C1 */
        int cmp = before ? vg_slice_cmp(vg_ctree_value_of(before), vg_ctree_value_of(e)) : -1;
        must(cmp < 0 ||
             (cmp == 0 && vg_slice_cmp(vg_object_key(before->o), vg_object_key(e->o)) < 0));
    }
    must(count == t->count);
}
