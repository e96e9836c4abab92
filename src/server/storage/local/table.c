/* table.c - see table.h: a list of keys, each with its versions; a log; a heap of deadlines. */
#include "table.h"

#include <errno.h>

#include "base/alloc.h"
#include "table_list.h"

struct recs {
    struct vg_rec **v;
    size_t start, n, cap; /* entries are v[start .. start + n) */
};

struct vg_table {
    _Atomic uint32_t refs;
    struct vg_mutex mu; /* rank STORE_TABLE */
    struct vg_table_list keys;
    struct recs log;
    struct recs staged;                  /* the writer's; owns a reference each */
    struct vg_table_node **staged_nodes; /* of each, so that publishing need not search */
    size_t staged_nodes_cap;
    struct recs deadlines; /* a binary heap; owns a reference each */
    size_t bytes;
};

/* ---- growing arrays ---- */

static int recs_reserve(struct recs *r, size_t extra)
{
    if (r->start + r->n + extra <= r->cap)
        return 0;
    if (r->start > r->n) { /* more hole than content: close it instead of growing */
        memmove(r->v, r->v + r->start, r->n * sizeof *r->v);
        r->start = 0;
        if (r->n + extra <= r->cap)
            return 0;
    }
    size_t cap = VG_MAX((r->start + r->n + extra), VG_MAX(r->cap * 2, (size_t)64));
    struct vg_rec **v = vg_reallocarray(r->v, cap, sizeof *v);
    if (!v)
        return -ENOMEM;
    r->v = v;
    r->cap = cap;
    return 0;
}

static void recs_done(struct recs *r)
{
    for (size_t i = 0; i < r->n; i++)
        vg_rec_unref(r->v[r->start + i]);
    vg_free(r->v);
}

/* ---- life ---- */

int vg_table_new(struct vg_table **ret_table)
{
    struct vg_table *t = vg_new(struct vg_table);
    if (!t)
        return -ENOMEM;
    atomic_init(&t->refs, 1);
    vg_mutex_init(&t->mu, VG_RANK_STORE_TABLE);
    vg_table_list_init(&t->keys);
    *ret_table = t;
    return 0;
}

struct vg_table *vg_table_ref(struct vg_table *t)
{
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

void vg_table_unref(struct vg_table *t)
{
    if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_release) != 1)
        return;
    (void)atomic_load_explicit(&t->refs, memory_order_acquire); /* as a fence; TSan sees it */
    vg_table_list_done(&t->keys);
    recs_done(&t->log);
    recs_done(&t->staged);
    vg_free(t->staged_nodes);
    recs_done(&t->deadlines);
    vg_mutex_done(&t->mu);
    vg_free(t);
}

/* ---- the writer ---- */

/* The writer reads the structure without the lock: it alone changes it. */
const struct vg_rec *vg_table_newest(struct vg_table *t, struct vg_slice key)
{
    struct vg_table_node *node = vg_table_list_point(&t->keys, key);
    if (!node)
        return NULL;
    if (node->staged)
        return node->staged;
    return node->n ? node->versions[node->n - 1] : NULL;
}

static int staged_nodes_reserve(struct vg_table *t, size_t n)
{
    if (n <= t->staged_nodes_cap)
        return 0;
    size_t cap = VG_MAX(n, VG_MAX(t->staged_nodes_cap * 2, (size_t)64));
    struct vg_table_node **nodes =
        vg_reallocarray(t->staged_nodes, cap, sizeof(struct vg_table_node *));
    if (!nodes)
        return -ENOMEM;
    t->staged_nodes = nodes;
    t->staged_nodes_cap = cap;
    return 0;
}

/* All memory that publishing rec will need. Counts what is staged already: each staged change takes
 * at most one log entry, one version of its node and one deadline. */
static int reserve_locked(struct vg_table *t, struct vg_rec *rec, struct vg_table_node **ret_node)
{
    size_t staged = t->staged.n + 1;
    if (recs_reserve(&t->staged, 1) < 0 || staged_nodes_reserve(t, staged) < 0 ||
        recs_reserve(&t->log, staged) < 0 || recs_reserve(&t->deadlines, staged) < 0)
        return -ENOMEM;
    struct vg_table_node *node = vg_table_list_find_or_add(&t->keys, vg_rec_key(rec));
    if (!node)
        return -ENOMEM;
    uint32_t of_node = 1; /* how many of the staged changes are this key's: an upper bound */
    if (node->staged)
        of_node = (uint32_t)staged;
    if (vg_table_node_reserve(node, of_node) < 0) {
        if (!node->n && !node->staged)
            vg_table_list_remove(&t->keys, node);
        return -ENOMEM;
    }
    *ret_node = node;
    return 0;
}

int vg_table_stage(struct vg_table *t, struct vg_rec *take_rec)
{
    struct vg_table_node *node;
    vg_mutex_lock(&t->mu);
    int r = reserve_locked(t, take_rec, &node);
    vg_mutex_unlock(&t->mu);
    if (r < 0) {
        vg_rec_unref(take_rec);
        return r;
    }
    node->staged = take_rec;
    t->staged_nodes[t->staged.n] = node;
    t->staged.v[t->staged.n++] = take_rec;
    return 0;
}

/* After an undo a key may have an older staged change: look for it. Undo is rare. */
static struct vg_rec *find_staged(struct vg_table *t, struct vg_slice key)
{
    for (size_t i = t->staged.n; i-- > 0;) {
        if (vg_slice_eq(vg_rec_key(t->staged.v[i]), key))
            return t->staged.v[i];
    }
    return NULL;
}

void vg_table_unstage(struct vg_table *t, size_t keep)
{
    while (t->staged.n > keep) {
        struct vg_rec *rec = t->staged.v[--t->staged.n];
        struct vg_table_node *node = vg_table_list_find_exact(&t->keys, vg_rec_key(rec));
        if (node && node->staged == rec)
            node->staged = keep ? find_staged(t, vg_rec_key(rec)) : NULL;
        if (node && !node->staged && !node->n) {
            vg_mutex_lock(&t->mu);
            vg_table_list_remove(&t->keys, node);
            vg_mutex_unlock(&t->mu);
        }
        vg_rec_unref(rec);
    }
}

static void heap_push(struct recs *h, struct vg_rec *rec)
{
    size_t i = h->n++;
    while (i > 0 && h->v[(i - 1) / 2]->expires_ms > rec->expires_ms) {
        h->v[i] = h->v[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h->v[i] = rec;
}

static void heap_pop(struct recs *h)
{
    struct vg_rec *last = h->v[--h->n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < h->n; i = child) {
        if (child + 1 < h->n && h->v[child + 1]->expires_ms < h->v[child]->expires_ms)
            child++;
        if (h->v[child]->expires_ms >= last->expires_ms)
            break;
        h->v[i] = h->v[child];
    }
    h->v[i] = last;
}

static void publish_locked(struct vg_table *t, struct vg_table_node *node, struct vg_rec *rec)
{
    node->versions[node->n++] = vg_rec_ref(rec);
    if (node->staged == rec) /* else a later group has staged another change of it */
        node->staged = NULL;
    if (rec->expires_ms)
        heap_push(&t->deadlines, vg_rec_ref(rec));
    t->log.v[t->log.start + t->log.n++] = rec; /* the staged reference moves here */
    t->bytes += vg_rec_size(rec);
}

void vg_table_publish(struct vg_table *t, size_t n)
{
    assert(n <= t->staged.n);
    vg_mutex_lock(&t->mu);
    for (size_t i = 0; i < n; i++)
        publish_locked(t, t->staged_nodes[i], t->staged.v[i]);
    vg_mutex_unlock(&t->mu);
    t->staged.n -= n;
    if (t->staged.n == 0)
        return;
    memmove(t->staged.v, t->staged.v + n, t->staged.n * sizeof *t->staged.v);
    memmove(t->staged_nodes, t->staged_nodes + n, t->staged.n * sizeof *t->staged_nodes);
}

const struct vg_rec *vg_table_first_deadline(struct vg_table *t)
{
    return t->deadlines.n ? t->deadlines.v[0] : NULL;
}

void vg_table_pop_deadline(struct vg_table *t)
{
    struct vg_rec *rec = t->deadlines.v[0];
    heap_pop(&t->deadlines);
    vg_rec_unref(rec);
}

/* Drop what a key no longer needs once everything up to `rev` is compacted: all versions before the
 * newest one at or below it, and that one too when it is a delete. */
static void compact_node(struct vg_table *t, struct vg_table_node *node, vg_rev rev)
{
    uint32_t upto = 0; /* versions at or below rev */
    while (upto < node->n && node->versions[upto]->rev <= rev)
        upto++;
    uint32_t drop = upto ? upto - 1 : 0;
    if (upto && vg_rec_is_delete(node->versions[upto - 1]))
        drop = upto;
    for (uint32_t i = 0; i < drop; i++)
        vg_rec_unref(node->versions[i]);
    memmove(node->versions, node->versions + drop, (node->n - drop) * sizeof *node->versions);
    node->n -= drop;
    if (!node->n && !node->staged)
        vg_table_list_remove(&t->keys, node);
}

bool vg_table_compact(struct vg_table *t, vg_rev rev, size_t max_steps)
{
    vg_mutex_lock(&t->mu);
    while (max_steps-- && t->log.n && t->log.v[t->log.start]->rev <= rev) {
        struct vg_rec *rec = t->log.v[t->log.start++];
        t->log.n--;
        t->bytes -= vg_rec_size(rec);
        struct vg_table_node *node = vg_table_list_find_exact(&t->keys, vg_rec_key(rec));
        if (node)
            compact_node(t, node, rev);
        vg_rec_unref(rec);
    }
    bool more = t->log.n && t->log.v[t->log.start]->rev <= rev;
    vg_mutex_unlock(&t->mu);
    return more;
}

/* ---- readers ---- */

struct vg_rec *vg_table_get(struct vg_table *t, struct vg_slice key, vg_rev at)
{
    vg_mutex_lock(&t->mu);
    struct vg_table_node *node = vg_table_list_find_exact(&t->keys, key);
    struct vg_rec *rec = node ? vg_table_node_at(node, at) : NULL;
    if (rec)
        vg_rec_ref(rec);
    vg_mutex_unlock(&t->mu);
    return rec;
}

static struct vg_table_node *first_node(struct vg_table *t, const struct vg_keys *keys,
                                        struct vg_slice after)
{
    if (!after.p)
        return vg_table_list_find(&t->keys, keys->start);
    struct vg_table_node *node = vg_table_list_find(&t->keys, after);
    return node && vg_slice_eq(vg_table_node_key(node), after) ? node->next[0] : node;
}

size_t vg_table_collect(struct vg_table *t, const struct vg_keys *keys, struct vg_slice after,
                        vg_rev at, struct vg_rec **ret_recs, size_t max)
{
    size_t n = 0;
    vg_mutex_lock(&t->mu);
    struct vg_table_node *node = first_node(t, keys, after);
    for (; node && n < max && vg_keys_contain(keys, vg_table_node_key(node));
         node = node->next[0]) {
        struct vg_rec *rec = vg_table_node_at(node, at);
        if (rec)
            ret_recs[n++] = vg_rec_ref(rec);
    }
    vg_mutex_unlock(&t->mu);
    return n;
}

/* Index of the first log entry at or above `rev`. */
static size_t log_find(const struct vg_table *t, vg_rev rev)
{
    size_t lo = 0, hi = t->log.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (t->log.v[t->log.start + mid]->rev < rev)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

size_t vg_table_log(struct vg_table *t, vg_rev from, vg_rev to, struct vg_rec **ret_recs,
                    size_t max)
{
    size_t n = 0;
    vg_mutex_lock(&t->mu);
    for (size_t i = log_find(t, from); i < t->log.n && n < max; i++) {
        struct vg_rec *rec = t->log.v[t->log.start + i];
        if (rec->rev > to)
            break;
        ret_recs[n++] = vg_rec_ref(rec);
    }
    vg_mutex_unlock(&t->mu);
    return n;
}

struct vg_rec *const *vg_table_frozen_log(const struct vg_table *t, size_t *ret_n)
{
    *ret_n = t->log.n;
    return t->log.v + t->log.start;
}

size_t vg_table_bytes(struct vg_table *t)
{
    vg_mutex_lock(&t->mu);
    size_t bytes = t->bytes;
    vg_mutex_unlock(&t->mu);
    return bytes;
}

size_t vg_table_log_count(struct vg_table *t)
{
    vg_mutex_lock(&t->mu);
    size_t n = t->log.n;
    vg_mutex_unlock(&t->mu);
    return n;
}

void vg_table_check(struct vg_table *t)
{
    vg_mutex_lock(&t->mu);
    for (struct vg_table_node *node = t->keys.head[0]; node; node = node->next[0]) {
        assert(node->n || node->staged); /* B3 */
        for (uint32_t i = 1; i < node->n; i++)
            assert(node->versions[i - 1]->rev < node->versions[i]->rev); /* B1 */
        assert(!node->next[0] || vg_slice_cmp(vg_table_node_key(node),
                                              vg_table_node_key(node->next[0])) < 0); /* K1 */
    }
    for (size_t i = 1; i < t->log.n; i++) {
        const struct vg_rec *a = t->log.v[t->log.start + i - 1], *b = t->log.v[t->log.start + i];
        assert(a->rev < b->rev || (a->rev == b->rev && a->sub < b->sub)); /* B2 */
        (void)a;
        (void)b;
    }
    vg_mutex_unlock(&t->mu);
}
