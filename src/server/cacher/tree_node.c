/* tree_node.c - one node: searching it by heads, and moving entries in it and between two.
 * Heads are monotonic: with the same skip, a smaller key has a smaller or an equal head, and only
 * equal ones need a look at the keys. Any common prefix may serve as skip; the longest tells most.
 * Since entries are in order, what the first and the last have in common, all have. */
#include <endian.h>

#include "tree_int.h"

/* ---- heads ---- */

static size_t common_prefix(struct vg_slice a, struct vg_slice b)
{
    size_t max = VG_MIN(a.n, b.n), n = 0;
    while (n < max && a.p[n] == b.p[n])
        n++;
    return n;
}

/* s.n >= skip. What lies beyond the end reads as pad. */
static uint64_t head_of(struct vg_slice s, size_t skip, int pad)
{
    uint64_t head;
    size_t n = s.n - skip;
    if (VG_LIKELY(n >= sizeof head)) {
        memcpy(&head, s.p + skip, sizeof head);
        return be64toh(head);
    }
    memset(&head, pad, sizeof head);
    if (n)
        memcpy(&head, s.p + skip, n);
    return be64toh(head);
}

static struct vg_slice headed_part(const struct vg_node *node, const struct vg_tree_key *key)
{
    return node->by_minor ? key->minor : key->major;
}

static struct vg_tree_key entry_key(const struct vg_tree_order *order, const struct vg_node *node,
                                    unsigned i)
{
    return vg_tree_key_of(order, vg_node_rec(node, i));
}

/* Decide what heads are taken from. True when that changed. */
static bool choose_skip(const struct vg_tree_order *order, struct vg_node *node)
{
    struct vg_tree_key a = entry_key(order, node, 0), b = entry_key(order, node, node->n - 1u);
    bool by_minor = vg_slice_eq(a.major, b.major);
    size_t common = by_minor ? common_prefix(a.minor, b.minor) : common_prefix(a.major, b.major);
    uint16_t skip = (uint16_t)VG_MIN(common, (size_t)UINT16_MAX);
    bool changed = by_minor != node->by_minor || skip != node->skip;
    node->by_minor = by_minor;
    node->skip = skip;
    return changed;
}

static void set_heads(const struct vg_tree_order *order, struct vg_node *node)
{
    for (unsigned i = 0; i < node->n; i++) {
        struct vg_tree_key key = entry_key(order, node, i);
        node->heads[i] = head_of(headed_part(node, &key), node->skip, 0);
    }
    node->first = vg_node_rec(node, 0);
}

void vg_node_rehead(const struct vg_tree_order *order, struct vg_node *node)
{
    choose_skip(order, node);
    set_heads(order, node);
}

/* Does the key have what all entries have in common, judged by another entry's key? */
static bool fits(const struct vg_node *node, const struct vg_tree_key *key,
                 const struct vg_tree_key *other)
{
    if (node->by_minor && !vg_slice_eq(key->major, other->major))
        return false;
    struct vg_slice s = headed_part(node, key), o = headed_part(node, other);
    return s.n >= node->skip && (!node->skip || memcmp(s.p, o.p, node->skip) == 0);
}

void vg_node_rekey(const struct vg_tree_order *order, struct vg_node *node, unsigned i)
{
    struct vg_tree_key key = entry_key(order, node, i);
    struct vg_tree_key other = entry_key(order, node, i ? 0 : node->n - 1u);
    if (node->n < 2 || !fits(node, &key, &other)) {
        vg_node_rehead(order, node);
        return;
    }
    node->heads[i] = head_of(headed_part(node, &key), node->skip, 0);
    if (i == 0)
        node->first = vg_node_rec(node, 0);
}

/* ---- searching ---- */

/* Where the whole node lies, judged by the prefix: -1 the place is before it, 1 after it, 0 look at
 * the heads. */
static int place_by_prefix(const struct vg_node *node, const struct vg_tree_key *first,
                           const struct vg_tree_key *key, bool past)
{
    if (node->by_minor) {
        int c = vg_slice_cmp(key->major, first->major);
        if (c)
            return c;
    }
    struct vg_slice s = headed_part(node, key), f = headed_part(node, first);
    size_t n = VG_MIN(s.n, (size_t)node->skip);
    int c = n ? memcmp(s.p, f.p, n) : 0;
    if (c || n == node->skip)
        return c;
    return past ? 1 : -1; /* all entries begin with s, and go on */
}

static bool is_below(const struct vg_tree_key *entry, const struct vg_tree_key *key,
                     enum vg_tree_edge edge)
{
    int c = vg_tree_key_cmp(entry, key);
    if (c < 0 || edge == VG_TREE_AT)
        return c < 0;
    if (c == 0 || edge == VG_TREE_AFTER)
        return c == 0;
    return vg_slice_eq(entry->major, key->major) && vg_slice_has_prefix(entry->minor, key->minor);
}

/* How many of the heads are below; no branch that could be mispredicted. */
static unsigned heads_below(const uint64_t *heads, unsigned n, uint64_t head)
{
    unsigned at = 0;
    while (n > 1) {
        unsigned half = n / 2;
        at += heads[at + half - 1] < head ? half : 0;
        n -= half;
    }
    return at + (n && heads[at] < head);
}

/* Among the entries from `at` whose head is the same, by key. */
static unsigned below_by_key(const struct vg_tree_order *order, const struct vg_node *node,
                             unsigned at, const struct vg_tree_key *key, enum vg_tree_edge edge)
{
    unsigned end = at + 1;
    while (end < node->n && node->heads[end] == node->heads[at])
        end++;
    while (at < end) {
        unsigned mid = at + (end - at) / 2;
        struct vg_tree_key entry = entry_key(order, node, mid);
        if (is_below(&entry, key, edge))
            at = mid + 1;
        else
            end = mid;
    }
    return at;
}

unsigned vg_node_below(const struct vg_tree_order *order, const struct vg_node *node,
                       const struct vg_tree_key *key, enum vg_tree_edge edge)
{
    struct vg_tree_key first = vg_tree_key_of(order, node->first);
    bool past = node->by_minor && edge == VG_TREE_PAST;
    int c = place_by_prefix(node, &first, key, past);
    if (c)
        return c < 0 ? 0 : node->n;
    uint64_t head = head_of(headed_part(node, key), node->skip, past ? 0xff : 0);
    unsigned at = heads_below(node->heads, node->n, head);
    if (at < node->n && node->heads[at] == head)
        at = below_by_key(order, node, at, key, edge);
    return at;
}

size_t vg_node_count(const struct vg_node *node)
{
    if (node->is_leaf)
        return node->n;
    size_t count = 0;
    for (unsigned i = 0; i < node->n; i++)
        count += vg_inner_const(node)->counts[i];
    return count;
}

/* ---- moving entries ---- */

/* Between two nodes of a kind, or within one. Heads are only right if the skips are the same. */
static void move(struct vg_node *to, unsigned i, const struct vg_node *from, unsigned j, unsigned n)
{
    memmove(&to->heads[i], &from->heads[j], n * sizeof to->heads[0]);
    if (to->is_leaf) {
        struct vg_leaf *t = vg_leaf(to);
        memmove(&t->recs[i], &vg_leaf_const(from)->recs[j], n * sizeof t->recs[0]);
        return;
    }
    struct vg_inner *t = vg_inner(to);
    const struct vg_inner *f = vg_inner_const(from);
    memmove(&t->children[i], &f->children[j], n * sizeof t->children[0]);
    memmove(&t->counts[i], &f->counts[j], n * sizeof t->counts[0]);
}

static void open_gap(struct vg_node *node, unsigned i)
{
    assert(node->n < VG_NODE_MAX && i <= node->n);
    move(node, i + 1, node, i, node->n - i);
    node->n++;
}

void vg_node_insert_rec(const struct vg_tree_order *order, struct vg_node *node, unsigned i,
                        const struct vg_rec *rec)
{
    open_gap(node, i);
    vg_leaf(node)->recs[i] = rec;
    vg_node_rekey(order, node, i);
}

void vg_node_insert_child(const struct vg_tree_order *order, struct vg_node *node, unsigned i,
                          struct vg_node *child)
{
    open_gap(node, i);
    vg_inner(node)->children[i] = child;
    vg_inner(node)->counts[i] = (uint32_t)vg_node_count(child);
    vg_node_rekey(order, node, i);
}

void vg_node_remove(struct vg_node *node, unsigned i)
{
    assert(i < node->n);
    node->n--;
    move(node, i, node, i + 1, node->n - i);
    if (i == 0 && node->n)
        node->first = vg_node_rec(node, 0);
}

void vg_node_split(const struct vg_tree_order *order, struct vg_node *node, struct vg_node *right)
{
    unsigned keep = node->n / 2u;
    right->by_minor = node->by_minor;
    right->skip = node->skip;
    right->n = (uint8_t)(node->n - keep);
    move(right, 0, node, keep, right->n);
    right->first = vg_node_rec(right, 0);
    node->n = (uint8_t)keep;
    /* A half may have a longer prefix in common: then its heads say more. */
    if (choose_skip(order, node))
        set_heads(order, node);
    if (choose_skip(order, right))
        set_heads(order, right);
}

void vg_node_join(const struct vg_tree_order *order, struct vg_node *node,
                  const struct vg_node *right)
{
    move(node, node->n, right, 0, right->n);
    node->n = (uint8_t)(node->n + right->n);
    vg_node_rehead(order, node);
}

void vg_node_share(const struct vg_tree_order *order, struct vg_node *left, struct vg_node *right)
{
    unsigned l = left->n, r = right->n, keep = (l + r) / 2;
    if (l < keep) {
        move(left, l, right, 0, keep - l);
        move(right, 0, right, keep - l, r - (keep - l));
    } else {
        move(right, l - keep, right, 0, r);
        move(right, 0, left, keep, l - keep);
    }
    left->n = (uint8_t)keep;
    right->n = (uint8_t)(l + r - keep);
    vg_node_rehead(order, left);
    vg_node_rehead(order, right);
}
