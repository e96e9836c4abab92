/* tree_model_test.c - random changes, with many snapshots alive, against a sorted array.
 * Every snapshot must be exactly the state at its publish for as long as it lives, whatever happens
 * later and in whatever order snapshots die. The model holds no references: a record or node that
 * is freed too early is read after its end, which ASan sees. And after a reclaim exactly those
 * nodes and records are left that the working tree or a live root can reach: nothing too late. */
#include "test_support.h"

#include "base/rng.h"
#include "tree_int.h"
#include "tree_testing.h"

#define KEYS_MAX 3000u
#define SNAPSHOTS_MAX 24u

struct state {
    const struct vg_rec *recs[KEYS_MAX]; /* in order; borrowed from the tree */
    size_t n;
};

struct snapshot {
    struct vg_root *root; /* NULL: a free place */
    struct state state;
};

struct model {
    struct vg_rng rng;
    struct vg_tree *tree;
    vg_tree_key_fn *key_of;
    size_t keys; /* how many different keys there are */
    vg_rev rev;
    struct state now;
    struct snapshot snapshots[SNAPSHOTS_MAX];
};

static size_t below(struct model *m, size_t n)
{
    return (size_t)vg_rng_below(&m->rng, n);
}

/* ---- keys that share prefixes, are prefixes of each other, and have bytes at both ends ---- */

struct key_text {
    char major[64], minor[128];
    size_t major_n, minor_n;
};

static void make_key(const struct model *m, size_t i, struct key_text *ret)
{
    static const char tail[] = {0, 1, 'a', 'b', (char)0xfe, (char)0xff};
    ret->major_n = 0;
    if (m->key_of)
        ret->major_n = (size_t)snprintf(ret->major, sizeof ret->major, "node-%zu%s", i % 7,
                                        i % 3 ? "" : "-with-a-long-name");
    ret->minor_n = (size_t)snprintf(ret->minor, sizeof ret->minor, "/registry/%s/ns%zu/",
                                    i % 2 ? "pods" : "a-much-longer-resource", i % 5);
    for (size_t left = i; left; left /= 6)
        ret->minor[ret->minor_n++] = tail[left % 6];
}

static struct vg_tree_key key_of_text(const struct key_text *t)
{
    return (struct vg_tree_key){.major = vg_slice(t->major, t->major_n),
                                .minor = vg_slice(t->minor, t->minor_n)};
}

static struct vg_tree_key key_of_rec(const struct model *m, const struct vg_rec *rec)
{
    return (m->key_of ? m->key_of : vg_tree_key_by_storage)(rec, NULL);
}

/* ---- the array ---- */

static bool naive_is_below(const struct model *m, const struct vg_rec *rec, struct vg_tree_key key,
                           enum vg_tree_edge edge)
{
    struct vg_tree_key k = key_of_rec(m, rec);
    int c = vg_slice_cmp(k.major, key.major);
    if (c == 0)
        c = vg_slice_cmp(k.minor, key.minor);
    if (edge == VG_TREE_PAST && c > 0 && vg_slice_eq(k.major, key.major) &&
        vg_slice_has_prefix(k.minor, key.minor))
        return true;
    return edge == VG_TREE_AT ? c < 0 : c <= 0;
}

static size_t naive_rank(const struct model *m, const struct state *s, struct vg_tree_key key,
                         enum vg_tree_edge edge)
{
    size_t lo = 0, hi = s->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (naive_is_below(m, s->recs[mid], key, edge))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Where the key is in the array, or s->n. */
static size_t naive_find(const struct model *m, struct state *s, struct vg_tree_key key)
{
    size_t at = naive_rank(m, s, key, VG_TREE_AT);
    return at < s->n && naive_rank(m, s, key, VG_TREE_AFTER) > at ? at : s->n;
}

/* ---- changes ---- */

static void put(struct model *m, struct vg_tree_key key)
{
    struct vg_rec *rec = vg_test_rec(key.major, key.minor, ++m->rev), *old = NULL;
    struct state *s = &m->now;
    size_t at = naive_find(m, s, key);
    assert_int_equal(vg_tree_put(m->tree, rec, &old), 0);
    if (at < s->n) {
        assert_ptr_equal(old, s->recs[at]);
    } else {
        assert_null(old);
        at = naive_rank(m, s, key, VG_TREE_AT);
        memmove(&s->recs[at + 1], &s->recs[at], (s->n - at) * sizeof s->recs[0]);
        s->n++;
    }
    s->recs[at] = rec;
    vg_rec_unref(old);
    vg_rec_unref(rec);
}

static void take_out(struct model *m, struct vg_tree_key key)
{
    struct state *s = &m->now;
    struct vg_rec *old = NULL;
    size_t at = naive_find(m, s, key);
    assert_int_equal(vg_tree_remove(m->tree, key, &old), at < s->n);
    if (at == s->n) {
        assert_null(old);
        return;
    }
    assert_ptr_equal(old, s->recs[at]);
    vg_rec_unref(old);
    s->n--;
    memmove(&s->recs[at], &s->recs[at + 1], (s->n - at) * sizeof s->recs[0]);
}

/* Several changes of which `puts` in ten are puts. */
static void change(struct model *m, size_t puts)
{
    for (size_t i = 1 + below(m, 60); i > 0; i--) {
        struct key_text text;
        make_key(m, below(m, m->keys), &text);
        if (below(m, 10) < puts)
            put(m, key_of_text(&text));
        else
            take_out(m, key_of_text(&text));
    }
    assert_int_equal(vg_tree_count(m->tree), m->now.n);
}

static void publish(struct model *m)
{
    struct snapshot *s = &m->snapshots[below(m, SNAPSHOTS_MAX)];
    if (s->root)
        vg_root_unref(s->root);
    s->root = vg_tree_publish(m->tree, m->rev);
    assert_non_null(s->root);
    s->state = m->now;
}

/* ---- checks ---- */

static void check_snapshot(struct model *m, const struct snapshot *s)
{
    struct vg_cursor c;
    size_t i = 0;
    vg_root_check(s->root);
    assert_int_equal(vg_root_count(s->root), s->state.n);
    vg_root_first(&c, s->root);
    for (const struct vg_rec *rec; (rec = vg_cursor_next(&c)); i++)
        assert_ptr_equal(rec, s->state.recs[i]);
    assert_int_equal(i, s->state.n);
    (void)m;
}

static void check_place(struct model *m, const struct snapshot *s, struct vg_tree_key key,
                        enum vg_tree_edge edge)
{
    struct vg_cursor c;
    size_t rank = naive_rank(m, &s->state, key, edge);
    assert_int_equal(vg_root_rank(s->root, key, edge), rank);
    vg_root_seek_edge(&c, s->root, key, edge);
    for (size_t i = rank; i < VG_MIN(rank + 40, s->state.n); i++)
        assert_ptr_equal(vg_cursor_next(&c), s->state.recs[i]);
    if (rank + 40 >= s->state.n)
        assert_null(vg_cursor_next(&c));
}

/* A key of the model, one that is cut short, or one that goes on. */
static void probe_key(struct model *m, struct key_text *ret)
{
    make_key(m, below(m, m->keys + 10), ret);
    if (below(m, 3) == 0)
        ret->minor_n = below(m, ret->minor_n + 1);
    else if (below(m, 3) == 0)
        ret->minor[ret->minor_n++] = (char)below(m, 256);
    if (ret->major_n && below(m, 4) == 0)
        ret->major_n = below(m, ret->major_n);
}

static void probe(struct model *m, const struct snapshot *s)
{
    struct key_text a, b;
    probe_key(m, &a);
    probe_key(m, &b);
    struct vg_tree_key from = key_of_text(&a), to = key_of_text(&b);
    for (int edge = VG_TREE_AT; edge <= VG_TREE_PAST; edge++)
        check_place(m, s, from, (enum vg_tree_edge)edge);
    size_t start = naive_rank(m, &s->state, from, VG_TREE_AT);
    size_t end = naive_rank(m, &s->state, to, VG_TREE_AT);
    assert_int_equal(vg_root_count_range(s->root, &from, &to), end > start ? end - start : 0);
    assert_int_equal(vg_root_count_range(s->root, NULL, &to), end);
    assert_int_equal(vg_root_count_range(s->root, &from, NULL), s->state.n - start);
    assert_int_equal(vg_root_count_prefix(s->root, from),
                     naive_rank(m, &s->state, from, VG_TREE_PAST) - start);
    bool has = naive_rank(m, &s->state, from, VG_TREE_AFTER) > start;
    assert_ptr_equal(vg_root_get(s->root, from), has ? s->state.recs[start] : NULL);
}

/* ---- what is reachable ---- */

struct pointers {
    const void **v;
    size_t n, cap;
};

static void add_pointer(struct pointers *p, const void *pointer)
{
    if (p->n == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 1024;
        p->v = realloc(p->v, p->cap * sizeof *p->v);
        assert_non_null(p->v);
    }
    p->v[p->n++] = pointer;
}

static void add_nodes(struct pointers *nodes, struct pointers *recs, const struct vg_node *node)
{
    if (!node)
        return;
    add_pointer(nodes, node);
    for (unsigned i = 0; i < node->n; i++) {
        if (node->is_leaf)
            add_pointer(recs, vg_leaf_const(node)->recs[i]);
        else
            add_nodes(nodes, recs, vg_inner_const(node)->children[i]);
    }
}

static int compare_pointers(const void *a, const void *b)
{
    const void *const *x = a, *const *y = b;
    return (*x > *y) - (*x < *y);
}

static size_t distinct(struct pointers *p)
{
    size_t n = 0;
    if (p->n)
        qsort(p->v, p->n, sizeof *p->v, compare_pointers);
    for (size_t i = 0; i < p->n; i++)
        n += i == 0 || p->v[i] != p->v[i - 1];
    free(p->v);
    return n;
}

/* With no dead root left, what is kept is what can be reached. */
static void check_kept(struct model *m)
{
    struct pointers nodes = {0}, recs = {0};
    struct vg_tree_stats stats;
    while (vg_tree_reclaim(m->tree, 1 + below(m, 50)))
        continue;
    add_nodes(&nodes, &recs, m->tree->top);
    size_t live = 0;
    for (size_t i = 0; i < SNAPSHOTS_MAX; i++) {
        if (!m->snapshots[i].root)
            continue;
        live++;
        add_nodes(&nodes, &recs, m->snapshots[i].root->top);
    }
    vg_tree_stats(m->tree, &stats);
    assert_int_equal(stats.roots, live);
    assert_int_equal(stats.roots_dead, 0);
    assert_int_equal(stats.nodes + stats.nodes_retired, distinct(&nodes));
    assert_int_equal(stats.count + stats.recs_retired, distinct(&recs));
}

static void check_all(struct model *m)
{
    vg_tree_check(m->tree);
    for (size_t i = 0; i < SNAPSHOTS_MAX; i++) {
        if (!m->snapshots[i].root)
            continue;
        check_snapshot(m, &m->snapshots[i]);
        for (int k = 0; k < 5; k++)
            probe(m, &m->snapshots[i]);
    }
}

/* ---- runs ---- */

static void drop_some(struct model *m)
{
    for (size_t i = below(m, 4); i > 0; i--) {
        struct snapshot *s = &m->snapshots[below(m, SNAPSHOTS_MAX)];
        s->root = vg_root_unref(s->root);
    }
    vg_tree_reclaim(m->tree, below(m, 40)); /* often less than there is */
}

/* The tree grows, stays, shrinks, over and over. */
static void turn(struct model *m, size_t i)
{
    static const size_t puts[] = {9, 8, 5, 5, 2, 1};
    change(m, puts[i / 40 % VG_ARRAY_LEN(puts)]);
    if (below(m, 3))
        publish(m);
    drop_some(m);
    if (below(m, 20) == 0)
        check_all(m);
    if (below(m, 40) == 0)
        check_kept(m);
}

static void run_model(struct model *m, size_t keys, vg_tree_key_fn *key_of, size_t turns,
                      uint64_t seed)
{
    memset(m, 0, sizeof *m);
    vg_rng_seed(&m->rng, seed);
    m->keys = keys;
    m->key_of = key_of;
    m->tree = vg_test_tree(key_of);
    for (size_t i = 0; i < turns; i++)
        turn(m, i);
    check_all(m);
    check_kept(m);
    for (size_t i = 0; i < SNAPSHOTS_MAX; i++)
        vg_root_unref(m->snapshots[i].root);
    vg_test_tree_end(m->tree);
}

static void run_sizes(vg_tree_key_fn *key_of)
{
    static struct model m;
    static const size_t sizes[] = {1, 5, 40, 200, KEYS_MAX};
    size_t turns = vg_test_is_long() ? 40000 : 1500;
    for (size_t i = 0; i < VG_ARRAY_LEN(sizes); i++)
        run_model(&m, sizes[i], key_of, turns, vg_test_seed() + i);
}

static void snapshots_of_a_tree_by_storage_key_stay_what_they_were(void **state)
{
    (void)state;
    run_sizes(NULL);
}

static void snapshots_of_an_index_by_a_field_stay_what_they_were(void **state)
{
    (void)state;
    run_sizes(vg_test_key_by_header);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snapshots_of_a_tree_by_storage_key_stay_what_they_were),
        cmocka_unit_test(snapshots_of_an_index_by_a_field_stay_what_they_were),
    };
    return cmocka_run_group_tests_name("tree_model", tests, NULL, NULL);
}
