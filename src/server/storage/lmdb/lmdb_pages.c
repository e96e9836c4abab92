/* lmdb_pages.c - see lmdb_pages.h. The layout is that of LMDB 0.9 on a 64-bit machine. */
#include "lmdb_pages.h"

#include <errno.h>

#include "base/alloc.h"

#define PAGE_BRANCH 0x01u
#define PAGE_LEAF 0x02u
#define PAGE_OVERFLOW 0x04u
#define PAGE_DIRTY 0x10u /* stays set in sub-pages */
#define PAGE_LEAF2 0x20u /* values of one size, packed */
#define PAGE_SUBP 0x40u  /* inside of a node */
#define NODE_BIGDATA 0x01u
#define NODE_SUBDATA 0x02u
#define NODE_DUPDATA 0x04u
#define HEAD_SIZE 16u
#define NODE_HEAD 8u
#define KEY_MAX 511u
#define DEPTH_MAX 32u /* of a cursor */
#define FIRST_PAGE 2u

const char *const vg_tree_names[VG_TREES] = {"free pages", "main", "log", "keys", "ttl", "meta"};

struct page {
    uint64_t pgno;
    uint16_t pad, flags;
    uint16_t lower, upper; /* of an overflow page together: how many pages */
};

/* One tree, or the duplicates of one key. */
struct tree {
    enum vg_tree id;
    bool is_dups;
    struct vg_slice dup_key;
    const struct vg_lmdb_db *db;
    struct vg_lmdb_db found; /* what the walk counted */
    bool is_damaged;
    bool is_stray; /* a page by itself: nothing is known of its place */
};

struct node {
    uint32_t size; /* of its data */
    uint16_t flags;
    uint64_t child;
    struct vg_slice key;
    struct vg_slice data; /* in the page */
};

/* Where keys of a page must lie; p NULL: no bound. */
struct bounds {
    struct vg_slice from, below;
};

static int damage(struct vg_page_walk *w, struct tree *t, uint64_t pgno, const char *what)
{
    t->is_damaged = true;
    if (t->is_stray)
        return 0;
    return w->on_damage(w->arg, t->id, pgno, what);
}

static int compare(const struct tree *t, struct vg_slice a, struct vg_slice b)
{
    if (t->id == VG_TREE_FREE && a.n == 8 && b.n == 8) {
        uint64_t x, y;
        memcpy(&x, a.p, 8);
        memcpy(&y, b.p, 8);
        return (x > y) - (x < y);
    }
    return vg_slice_cmp(a, b);
}

bool vg_walk_has_seen(const struct vg_page_walk *w, uint64_t pgno)
{
    return pgno > w->meta.last_pgno || (w->seen[pgno / 8] & (1u << pgno % 8));
}

/* NULL, or why these pages cannot be part of this tree. */
static const char *claim(struct vg_page_walk *w, uint64_t pgno, uint64_t n)
{
    if (pgno < FIRST_PAGE || pgno > w->meta.last_pgno || n > w->meta.last_pgno + 1 - pgno)
        return "a page number lies outside of the file";
    for (uint64_t i = pgno; i < pgno + n; i++) {
        if (vg_walk_has_seen(w, i))
            return "a page is used twice";
        w->seen[i / 8] |= (uint8_t)(1u << i % 8);
    }
    w->n_pages += n;
    return NULL;
}

static struct page head_of(const char *p)
{
    struct page h;
    memcpy(&h, p, sizeof h);
    return h;
}

/* ---- nodes ---- */

static bool read_node(const struct vg_page_walk *w, const char *p, const struct page *h, unsigned i,
                      struct node *ret)
{
    uint16_t at, lo, hi, ksize;
    memcpy(&at, p + HEAD_SIZE + 2 * i, sizeof at);
    if (at < h->upper || (at & 1) || at + NODE_HEAD > w->page_size)
        return false;
    memcpy(&lo, p + at, 2);
    memcpy(&hi, p + at + 2, 2);
    memcpy(&ret->flags, p + at + 4, 2);
    memcpy(&ksize, p + at + 6, 2);
    size_t room = w->page_size - at - NODE_HEAD;
    if (ksize > KEY_MAX || ksize > room)
        return false;
    ret->key = vg_slice(p + at + NODE_HEAD, ksize);
    ret->size = (uint32_t)lo | (uint32_t)hi << 16;
    ret->child = ret->size | (uint64_t)ret->flags << 32;
    size_t n = h->flags & PAGE_BRANCH ? 0 : ret->flags & NODE_BIGDATA ? 8 : ret->size;
    if (n > room - ksize)
        return false;
    ret->data = vg_slice(ret->key.p + ksize, n);
    return true;
}

/* P2: every node reads, and together they are as long as the used part of the page. */
static const char *check_nodes(const struct vg_page_walk *w, const struct tree *t, const char *p,
                               const struct page *h, unsigned n, const struct bounds *b)
{
    struct node node, before = {0};
    size_t used = 0;
    for (unsigned i = 0; i < n; i++, before = node) {
        bool is_first_branch = i == 0 && (h->flags & PAGE_BRANCH); /* its key does not count */
        if (!read_node(w, p, h, i, &node))
            return "a node lies outside of its page";
        used += VG_ALIGN_UP(NODE_HEAD + node.key.n + node.data.n, (size_t)2);
        if (is_first_branch) {
            node.key = b->from;
            continue;
        }
        if (node.key.n == 0)
            return "a key is empty";
        if (before.key.p && compare(t, before.key, node.key) >= 0)
            return "keys are out of order";
        if (i == 0 && b->from.p && compare(t, node.key, b->from) < 0)
            return "a key lies below what its page may hold";
    }
    if (before.key.p && b->below.p && compare(t, before.key, b->below) >= 0)
        return "a key lies above what its page may hold";
    return used == (size_t)w->page_size - h->upper ? NULL : "its nodes do not fill it";
}

/* Values of one size, packed: a page of duplicates, or a sub-page of `size` bytes in a node. */
static const char *check_packed(const struct tree *t, const char *p, const struct page *h,
                                size_t size, const struct bounds *b)
{
    size_t n = (size_t)(h->lower - HEAD_SIZE) / 2, item = h->pad;
    if (item == 0 || item > KEY_MAX || n * item > size - HEAD_SIZE)
        return "its values do not fit into it";
    if ((size_t)h->upper - h->lower != size - HEAD_SIZE - n * item)
        return "its free space is wrong";
    for (size_t i = 0; i < n; i++) {
        struct vg_slice v = vg_slice(p + HEAD_SIZE + i * item, item);
        if (i > 0 && memcmp(v.p - item, v.p, item) >= 0)
            return "values are out of order";
        if (i == 0 && b->from.p && compare(t, v, b->from) < 0)
            return "a value lies below what its page may hold";
        if (i + 1 == n && b->below.p && compare(t, v, b->below) >= 0)
            return "a value lies above what its page may hold";
    }
    return NULL;
}

/* ---- leaves ---- */

/* The pages of a free list: how many, then their numbers, descending. */
static int take_free(struct vg_page_walk *w, struct tree *t, struct vg_slice key,
                     struct vg_slice data, uint64_t at)
{
    uint64_t n, pgno, above = UINT64_MAX;
    if (key.n != 8 || data.n < 8)
        return damage(w, t, at, "a list of free pages is too short");
    memcpy(&n, data.p, 8);
    if (n > data.n / 8 - 1)
        return damage(w, t, at, "a list of free pages is too short");
    for (uint64_t i = 0; i < n; i++, above = pgno) {
        memcpy(&pgno, data.p + 8 + 8 * i, 8);
        const char *what = pgno >= above ? "free pages are out of order" : claim(w, pgno, 1);
        int r = what ? damage(w, t, at, what) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

static int give(struct vg_page_walk *w, struct tree *t, struct vg_slice key, struct vg_slice data)
{
    t->found.entries++;
    if (t->id == VG_TREE_FREE)
        return take_free(w, t, key, data, t->db->root);
    return w->on_entry ? w->on_entry(w->arg, t->id, key, data) : 0;
}

static int give_packed(struct vg_page_walk *w, struct tree *t, struct vg_slice key, const char *p,
                       const struct page *h)
{
    int r = 0;
    for (size_t i = 0; i < (size_t)(h->lower - HEAD_SIZE) / 2 && r == 0; i++)
        r = give(w, t, key, vg_slice(p + HEAD_SIZE + i * h->pad, h->pad));
    return r;
}

static int walk_large(struct vg_page_walk *w, struct tree *t, const struct node *node)
{
    uint64_t pgno, n = (HEAD_SIZE - 1 + (uint64_t)node->size) / w->page_size + 1;
    memcpy(&pgno, node->data.p, sizeof pgno);
    const char *what = claim(w, pgno, n);
    if (what)
        return damage(w, t, pgno, what);
    const char *p = w->pages(w->arg, pgno, n, VG_WALK_LEVELS - 1);
    if (!p)
        return damage(w, t, pgno, "a page cannot be read");
    struct page h = head_of(p);
    if (h.pgno != pgno || h.flags != PAGE_OVERFLOW || (h.lower | (uint32_t)h.upper << 16) != n)
        return damage(w, t, pgno, "a page of large data is not one");
    t->found.overflow_pages += n;
    return give(w, t, node->key, vg_slice(p + HEAD_SIZE, node->size));
}

static int walk_root(struct vg_page_walk *w, struct tree *t, unsigned level);

/* Several versions of a key: in a sub-page while they are few, in a tree of their own later. */
static int walk_dups(struct vg_page_walk *w, struct tree *t, const struct node *node, uint64_t pgno,
                     unsigned level)
{
    struct bounds none = {0};
    if (node->flags & NODE_SUBDATA) {
        struct vg_lmdb_db db;
        if (node->size != sizeof db)
            return damage(w, t, pgno, "a tree of duplicates has no root");
        memcpy(&db, node->data.p, sizeof db);
        struct tree dups = {.id = t->id, .is_dups = true, .dup_key = node->key, .db = &db};
        int r = walk_root(w, &dups, level + 1);
        t->found.entries += dups.found.entries;
        t->is_damaged |= dups.is_damaged;
        return r;
    }
    if (node->size < HEAD_SIZE)
        return damage(w, t, pgno, "a page of duplicates is too short");
    struct page h = head_of(node->data.p);
    unsigned kind = PAGE_LEAF | PAGE_LEAF2 | PAGE_SUBP;
    if ((h.flags & ~PAGE_DIRTY) != kind || h.lower < HEAD_SIZE + 2 || (h.lower & 1) ||
        h.upper < h.lower)
        return damage(w, t, pgno, "a page of duplicates is not one");
    const char *what = check_packed(t, node->data.p, &h, node->size, &none);
    return what ? damage(w, t, pgno, what) : give_packed(w, t, node->key, node->data.p, &h);
}

static int take_db(struct vg_page_walk *w, struct tree *t, const struct node *node, uint64_t pgno)
{
    t->found.entries++;
    if (node->flags != NODE_SUBDATA || node->size != sizeof(struct vg_lmdb_db))
        return damage(w, t, pgno, "an entry is not a tree");
    for (unsigned i = VG_TREE_LOG; i < VG_TREES; i++) {
        if (!vg_slice_eq(node->key, vg_slice_str(vg_tree_names[i])))
            continue;
        memcpy(&w->dbs[i], node->data.p, sizeof w->dbs[i]);
        w->has_db[i] = true;
        return 0;
    }
    return damage(w, t, pgno, "it names a tree that is not ours");
}

static int walk_node(struct vg_page_walk *w, struct tree *t, const struct node *node, uint64_t pgno,
                     unsigned level)
{
    if (t->id == VG_TREE_MAIN)
        return take_db(w, t, node, pgno);
    if (t->id == VG_TREE_KEYS && (node->flags & NODE_DUPDATA) &&
        !(node->flags & ~(NODE_DUPDATA | NODE_SUBDATA)))
        return walk_dups(w, t, node, pgno, level);
    if (node->flags == NODE_BIGDATA && t->id != VG_TREE_KEYS)
        return walk_large(w, t, node);
    return node->flags ? damage(w, t, pgno, "an entry is of a kind that is not known")
                       : give(w, t, node->key, node->data);
}

static int walk_leaf(struct vg_page_walk *w, struct tree *t, const char *p, const struct page *h,
                     const struct bounds *b, unsigned level)
{
    unsigned n = (h->lower - HEAD_SIZE) / 2u;
    if (h->flags & PAGE_LEAF2) {
        const char *what = h->pad != t->db->pad ? "its values have another size"
                                                : check_packed(t, p, h, w->page_size, b);
        return what ? damage(w, t, h->pgno, what) : give_packed(w, t, t->dup_key, p, h);
    }
    const char *what = check_nodes(w, t, p, h, n, b);
    int r = what ? damage(w, t, h->pgno, what) : 0;
    for (unsigned i = 0; i < n && r == 0; i++) {
        struct node node;
        if (read_node(w, p, h, i, &node) && node.key.n)
            r = walk_node(w, t, &node, h->pgno, level);
    }
    return r;
}

/* ---- trees ---- */

static const char *check_head(const struct vg_page_walk *w, const struct tree *t,
                              const struct page *h, uint64_t pgno, bool is_leaf)
{
    unsigned kind = !is_leaf ? PAGE_BRANCH : t->is_dups ? PAGE_LEAF | PAGE_LEAF2 : PAGE_LEAF;
    unsigned least = is_leaf || t->id == VG_TREE_FREE ? 1 : 2;
    if (h->pgno != pgno)
        return "a page says that it is another one";
    if (h->flags != kind)
        return "a page is of another kind than its place asks for";
    if (h->lower < HEAD_SIZE + 2 * least || (h->lower & 1) || h->upper < h->lower ||
        h->upper > w->page_size)
        return "the bounds of a page are wrong";
    return NULL;
}

static int walk_page(struct vg_page_walk *w, struct tree *t, uint64_t pgno, struct bounds b,
                     unsigned depth, unsigned level);

static int walk_branch(struct vg_page_walk *w, struct tree *t, const char *p, const struct page *h,
                       const struct bounds *b, unsigned depth, unsigned level)
{
    unsigned n = (h->lower - HEAD_SIZE) / 2u;
    const char *what = check_nodes(w, t, p, h, n, b);
    int r = what ? damage(w, t, h->pgno, what) : 0;
    for (unsigned i = 0; i < n && r == 0; i++) {
        struct node node, next;
        struct bounds inner = *b;
        if (!read_node(w, p, h, i, &node))
            continue;
        if (!what && i > 0)
            inner.from = node.key;
        if (!what && i + 1 < n && read_node(w, p, h, i + 1, &next))
            inner.below = next.key;
        r = walk_page(w, t, node.child, inner, depth + 1, level + 1);
    }
    return r;
}

static int walk_page(struct vg_page_walk *w, struct tree *t, uint64_t pgno, struct bounds b,
                     unsigned depth, unsigned level)
{
    bool is_leaf = depth == t->db->depth;
    const char *what = claim(w, pgno, 1);
    const char *p = what ? NULL : w->pages(w->arg, pgno, 1, level);
    if (!p)
        return damage(w, t, pgno, what ? what : "a page cannot be read");
    struct page h = head_of(p);
    what = check_head(w, t, &h, pgno, is_leaf);
    if (what)
        return damage(w, t, pgno, what);
    *(is_leaf ? &t->found.leaf_pages : &t->found.branch_pages) += 1;
    return is_leaf ? walk_leaf(w, t, p, &h, &b, level) : walk_branch(w, t, p, &h, &b, depth, level);
}

static int walk_root(struct vg_page_walk *w, struct tree *t, unsigned level)
{
    struct bounds none = {0};
    const struct vg_lmdb_db *db = t->db;
    if (db->root == VG_LMDB_PAGE_NONE && db->depth == 0 && db->entries == 0)
        return 0;
    if (db->depth == 0 || db->depth > DEPTH_MAX || level + db->depth >= VG_WALK_LEVELS - 1)
        return damage(w, t, db->root, "the depth of a tree is wrong");
    int r = walk_page(w, t, db->root, none, 1, level);
    if (r < 0 || t->is_damaged)
        return r;
    if (t->found.entries != db->entries || t->found.branch_pages != db->branch_pages ||
        t->found.leaf_pages != db->leaf_pages || t->found.overflow_pages != db->overflow_pages)
        return damage(w, t, db->root, "entries or pages of a tree are missing");
    return 0;
}

/* ---- the walk ---- */

static bool has_flags(enum vg_tree id, uint16_t flags)
{
    static const uint16_t want[VG_TREES] = {[VG_TREE_FREE] = 0x08, [VG_TREE_KEYS] = 0x14};
    if (id == VG_TREE_FREE)
        flags &= 0x0fff; /* above: options of the environment */
    return flags == want[id];
}

int vg_walk_tree(struct vg_page_walk *w, enum vg_tree id)
{
    struct tree t = {.id = id, .db = &w->dbs[id]};
    if (!has_flags(id, t.db->flags))
        return damage(w, &t, t.db->root, "the kind of a tree is wrong");
    return walk_root(w, &t, 0);
}

int vg_walk_stray_leaf(struct vg_page_walk *w, enum vg_tree id, uint64_t pgno)
{
    struct bounds none = {0};
    struct vg_lmdb_db db = {0};
    struct tree t = {.id = id, .db = &db, .is_stray = true};
    const char *p = w->pages(w->arg, pgno, 1, 0);
    if (!p)
        return 0;
    struct page h = head_of(p);
    if (check_head(w, &t, &h, pgno, true))
        return 0;
    w->seen[pgno / 8] |= (uint8_t)(1u << pgno % 8);
    return walk_leaf(w, &t, p, &h, &none, 0);
}

int vg_walk_begin(struct vg_page_walk *w)
{
    for (unsigned i = 0; i < VG_TREES; i++) {
        w->dbs[i] = (struct vg_lmdb_db){.root = VG_LMDB_PAGE_NONE};
        w->has_db[i] = false;
    }
    w->dbs[VG_TREE_FREE] = w->meta.dbs[0];
    w->dbs[VG_TREE_MAIN] = w->meta.dbs[1];
    w->n_pages = FIRST_PAGE;
    w->seen = vg_calloc(1, (size_t)(w->meta.last_pgno / 8 + 1));
    if (!w->seen)
        return -ENOMEM;
    return vg_walk_tree(w, VG_TREE_MAIN);
}

void vg_walk_end(struct vg_page_walk *w)
{
    vg_free(w->seen);
    w->seen = NULL;
}
