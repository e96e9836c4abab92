/* tree_node.c - one node: finding a place in it, and moving entries in it and between two.
 * A key is read as one text: its major, a zero byte, its minor; majors have no zero bytes, so texts
 * order as keys do. Each entry but the first of a node knows `same`, how many bytes of its text it
 * has in common with the entry before it, and `head`, the eight bytes that follow, as a number.
 *
 * A search for key k goes along the entries with `c`, how much k has in common with the last entry
 * found below it. Of the next entry,
 *     same > c   it agrees with the one before where k differs from that: below k, and c stays;
 *     same < c   it is above the one before where k agrees with that: above k;
 *     same = c   heads decide, and only when these are the same, the keys.
 * So most entries cost a comparison of small numbers in one cache line, and few records are
 * touched. c goes with the search from a node to the child that was chosen, whose first entry is
 * the one that c is about. */
#include <endian.h>

#include "tree_int.h"

/* ---- keys as texts ---- */

static size_t common_bytes(struct vg_slice a, struct vg_slice b)
{
    size_t max = VG_MIN(a.n, b.n), n = 0;
    uint64_t x, y;
    for (; n + sizeof x <= max; n += sizeof x) {
        memcpy(&x, a.p + n, sizeof x);
        memcpy(&y, b.p + n, sizeof y);
        if (x != y)
            return n + (unsigned)__builtin_clzll(be64toh(x ^ y)) / 8;
    }
    while (n < max && a.p[n] == b.p[n])
        n++;
    return n;
}

static size_t text_common(const struct vg_tree_key *a, const struct vg_tree_key *b)
{
    size_t n = common_bytes(a->major, b->major);
    if (n < a->major.n || n < b->major.n)
        return n;
    return n + 1 + common_bytes(a->minor, b->minor);
}

static size_t text_len(const struct vg_tree_key *key)
{
    return key->major.n + 1 + key->minor.n;
}

/* Byte `at` of the text; -1 beyond its end, which orders before all. */
static int text_at(const struct vg_tree_key *key, size_t at)
{
    if (at < key->major.n)
        return (unsigned char)key->major.p[at];
    if (at == key->major.n)
        return 0;
    at -= key->major.n + 1;
    return at < key->minor.n ? (unsigned char)key->minor.p[at] : -1;
}

static size_t cut(size_t same)
{
    return VG_MIN(same, (size_t)UINT16_MAX);
}

/* Up to n bytes of s into the number, from byte `at` of it on. */
static uint64_t add_bytes(uint64_t head, unsigned at, struct vg_slice s)
{
    for (size_t i = 0; i < s.n && at < sizeof head; i++, at++)
        head |= (uint64_t)(unsigned char)s.p[i] << (56 - 8 * at);
    return head;
}

static struct vg_slice tail_of(struct vg_slice s, size_t from)
{
    return from < s.n ? vg_slice(s.p + from, s.n - from) : vg_slice(NULL, 0);
}

/* Eight bytes of the text, zeros beyond its end. */
static uint64_t head_at(const struct vg_tree_key *key, size_t at)
{
    if (VG_LIKELY(at > key->major.n && at + sizeof(uint64_t) <= text_len(key))) {
        uint64_t head;
        memcpy(&head, key->minor.p + (at - key->major.n - 1), sizeof head);
        return be64toh(head);
    }
    if (at > key->major.n)
        return add_bytes(0, 0, tail_of(key->minor, at - key->major.n - 1));
    struct vg_slice major = tail_of(key->major, at);
    uint64_t head = add_bytes(0, 0, major);
    return major.n < sizeof head ? add_bytes(head, (unsigned)major.n + 1, key->minor) : head;
}

/* ---- finding a place ---- */

static struct vg_tree_key entry_key(const struct vg_tree_order *order, const struct vg_node *node,
                                    unsigned i)
{
    return vg_tree_key_of(order, vg_node_rec(node, i));
}

/* By the keys themselves. When below, *c is what they have in common. */
static bool is_below(const struct vg_tree_key *entry, const struct vg_tree_key *key,
                     enum vg_tree_edge edge, size_t *c)
{
    size_t same = text_common(entry, key), key_len = text_len(key);
    bool below = text_at(entry, same) < text_at(key, same);
    if (same == key_len) /* it begins with all of the key */
        below = edge == VG_TREE_PAST || (edge == VG_TREE_AFTER && text_len(entry) == key_len);
    if (below)
        *c = cut(same);
    return below;
}

static bool has_zero_byte(uint64_t v)
{
    return (v - 0x0101010101010101u) & ~v & 0x8080808080808080u;
}

/* The first `n` bytes of the key's head equal those of an entry's. Are they real in both? Zeros may
 * stand for the end of the entry; but not where the key's major ends, for there its must end too.
 */
static bool are_real(const struct vg_tree_key *key, size_t at, uint64_t head, unsigned n)
{
    if (n == 0)
        return true;
    uint64_t v = head | (n < 8 ? UINT64_MAX >> (8 * n) : 0);
    if (at <= key->major.n && key->major.n - at < 8)
        v |= UINT64_C(0xff) << (56 - 8 * (key->major.n - at));
    return !has_zero_byte(v);
}

/* Entry i, of which same == c. */
static bool is_below_by_head(const struct vg_tree_order *order, const struct vg_node *node,
                             unsigned i, struct vg_place *p)
{
    uint64_t head = head_at(&p->key, p->common), diff = head ^ node->heads[i];
    unsigned n = diff ? (unsigned)__builtin_clzll(diff) / 8 : 8;
    if (n == 8 || p->common + n >= text_len(&p->key) || !are_real(&p->key, p->common, head, n)) {
        struct vg_tree_key entry = entry_key(order, node, i);
        return is_below(&entry, &p->key, p->edge, &p->common);
    }
    if (node->heads[i] > head)
        return false;
    p->common = cut(p->common + n);
    return true;
}

void vg_place_init(struct vg_place *ret_place, const struct vg_tree_order *order,
                   const struct vg_node *top, const struct vg_tree_key *key, enum vg_tree_edge edge)
{
    *ret_place = (struct vg_place){.key = vg_tree_key_cut(*key), .edge = edge};
    if (top) {
        struct vg_tree_key first = vg_tree_key_of(order, top->first);
        ret_place->is_first = !is_below(&first, &ret_place->key, edge, &ret_place->common);
    }
}

unsigned vg_node_below(const struct vg_tree_order *order, const struct vg_node *node,
                       struct vg_place *place)
{
    if (place->is_first)
        return 0;
    unsigned i = 1;
    for (; i < node->n; i++) {
        if (node->same[i] > place->common)
            continue;
        if (node->same[i] < place->common || !is_below_by_head(order, node, i, place))
            break;
    }
    return i;
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

/* ---- same and head ---- */

bool vg_tree_key_step(const struct vg_tree_key *before, const struct vg_tree_key *key,
                      uint16_t *ret_same, uint64_t *ret_head)
{
    size_t same = text_common(before, key);
    *ret_same = (uint16_t)cut(same);
    *ret_head = head_at(key, *ret_same);
    return text_at(before, same) < text_at(key, same);
}

static void set_head(const struct vg_tree_order *order, struct vg_node *node, unsigned i)
{
    node->same[i] = 0;
    node->heads[i] = 0;
    if (i == 0) {
        node->first = vg_node_rec(node, 0);
        return;
    }
    struct vg_tree_key before = entry_key(order, node, i - 1), key = entry_key(order, node, i);
    (void)vg_tree_key_step(&before, &key, &node->same[i], &node->heads[i]);
}

void vg_node_rekey(const struct vg_tree_order *order, struct vg_node *node, unsigned i)
{
    set_head(order, node, i);
    if (i + 1 < node->n)
        set_head(order, node, i + 1);
}

void vg_node_rekey_all(const struct vg_tree_order *order, struct vg_node *node)
{
    for (unsigned i = 0; i < node->n; i++)
        set_head(order, node, i);
}

/* Entry i goes: what the next one then has in common with the one before follows from what is known
 * of both, without a look at the keys. */
static void merge_heads(struct vg_node *node, unsigned i)
{
    unsigned a = node->same[i], b = node->same[i + 1];
    if (a >= b)
        return; /* it differs from the one before i where it differs from i */
    unsigned shift = VG_MIN((b - a) * 8, 64u);
    uint64_t low = shift < 64 ? node->heads[i + 1] >> shift : 0;
    uint64_t high = shift < 64 ? node->heads[i] & ~(UINT64_MAX >> shift) : node->heads[i];
    node->same[i + 1] = (uint16_t)a;
    node->heads[i + 1] = high | low;
}

/* ---- moving entries ---- */

/* Between two nodes of a kind, or within one, as they are. */
static void move(struct vg_node *to, unsigned i, const struct vg_node *from, unsigned j, unsigned n)
{
    memmove(&to->same[i], &from->same[j], n * sizeof to->same[0]);
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

void vg_node_remove(const struct vg_tree_order *order, struct vg_node *node, unsigned i)
{
    assert(i < node->n);
    node->n--;
    if (i > 0 && i < node->n)
        merge_heads(node, i);
    move(node, i, node, i + 1, node->n - i);
    if (i == 0 && node->n)
        set_head(order, node, 0);
}

void vg_node_split(const struct vg_tree_order *order, struct vg_node *node, struct vg_node *right)
{
    unsigned keep = node->n / 2u;
    right->n = (uint8_t)(node->n - keep);
    move(right, 0, node, keep, right->n);
    set_head(order, right, 0);
    node->n = (uint8_t)keep;
}

void vg_node_join(const struct vg_tree_order *order, struct vg_node *node,
                  const struct vg_node *right)
{
    unsigned n = node->n;
    move(node, n, right, 0, right->n);
    node->n = (uint8_t)(n + right->n);
    set_head(order, node, n);
}

void vg_node_share(const struct vg_tree_order *order, struct vg_node *left, struct vg_node *right)
{
    unsigned l = left->n, r = right->n, keep = (l + r) / 2;
    left->n = (uint8_t)keep;
    right->n = (uint8_t)(l + r - keep);
    if (l < keep) {
        move(left, l, right, 0, keep - l);
        set_head(order, left, l);
        move(right, 0, right, keep - l, right->n);
    } else {
        move(right, l - keep, right, 0, r);
        move(right, 0, left, keep, l - keep);
        set_head(order, right, l - keep);
    }
    set_head(order, right, 0);
}
