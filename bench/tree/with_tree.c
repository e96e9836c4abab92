/* with_tree.c - the tree. A batch ends as in the cacher: publish, let the last root go, reclaim. */
#include <stdlib.h>

#include "bench_tree.h"
#include "server/cacher/tree.h"
#include "server/cacher/tree_int.h"

struct state {
    struct vg_tree *tree;
    struct vg_root *root; /* the newest */
};

static void end_batch(struct state *s, vg_rev rev)
{
    struct vg_root *root = vg_tree_publish(s->tree, rev);
    if (!root)
        die("out of memory");
    vg_root_unref(s->root);
    s->root = root;
    vg_tree_reclaim(s->tree, SIZE_MAX);
}

static void *open_tree(const struct work *w)
{
    struct state *s = must_alloc(1, sizeof *s);
    if (vg_tree_new(&(struct vg_tree_opts){0}, &s->tree) < 0 ||
        vg_tree_load(s->tree, w->load, w->n_load) < 0)
        die("the tree does not load");
    end_batch(s, w->rev);
    return s;
}

static void close_tree(void *state)
{
    struct state *s = state;
    vg_root_unref(s->root);
    vg_tree_free(s->tree);
    free(s);
}

static struct vg_tree_key key_of(const struct vg_rec *rec)
{
    return (struct vg_tree_key){.minor = vg_rec_key(rec)};
}

static size_t put_all(void *state, const struct work *w, size_t batch)
{
    struct state *s = state;
    for (size_t i = 0; i < w->n_changes; i++) {
        if (vg_tree_put(s->tree, w->changes[i], NULL) < 0)
            die("put failed");
        if ((i + 1) % batch == 0)
            end_batch(s, w->changes[i]->rev);
    }
    end_batch(s, w->rev);
    return w->n_changes;
}

static size_t remove_all(void *state, const struct work *w, size_t batch)
{
    struct state *s = state;
    for (size_t i = 0; i < w->n_changes; i++) {
        if (vg_tree_remove(s->tree, key_of(w->changes[i]), NULL) < 0)
            die("remove failed");
        if ((i + 1) % batch == 0)
            end_batch(s, w->rev);
    }
    end_batch(s, w->rev);
    return w->n_changes;
}

static size_t get_all(void *state, const struct work *w, size_t batch)
{
    struct state *s = state;
    (void)batch;
    for (size_t i = 0; i < w->n_changes; i++)
        if (!vg_root_get(s->root, key_of(w->changes[i])))
            die("a record is missing");
    return w->n_changes;
}

static size_t walk(void *state, const struct work *w, size_t batch)
{
    struct state *s = state;
    struct vg_cursor c;
    size_t n = 0;
    (void)batch;
    (void)w;
    vg_root_first(&c, s->root);
    while (vg_cursor_next(&c))
        n++;
    if (n != vg_root_count(s->root))
        die("the walk is not whole");
    return n;
}

static size_t count_ranges(void *state, const struct work *w, size_t batch)
{
    struct state *s = state;
    size_t sum = 0;
    (void)batch;
    for (size_t i = 1; i < w->n_changes; i++) {
        struct vg_tree_key from = key_of(w->changes[i - 1]), to = key_of(w->changes[i]);
        sum += vg_root_count_range(s->root, &from, &to);
    }
    if (!sum)
        die("the ranges are empty");
    return w->n_changes - 1;
}

static void add_fill(const struct vg_node *node, size_t *entries, size_t *places)
{
    *entries += node->n;
    *places += VG_NODE_MAX;
    for (unsigned i = 0; !node->is_leaf && i < node->n; i++)
        add_fill(vg_inner_const(node)->children[i], entries, places);
}

struct tree_bytes with_tree_bytes(void *state)
{
    struct state *s = state;
    struct vg_tree_stats stats;
    size_t entries = 0, places = 0;
    vg_tree_stats(s->tree, &stats);
    add_fill(s->root->top, &entries, &places);
    return (struct tree_bytes){.per_record = (double)stats.bytes / (double)stats.count,
                               .fill = (double)entries / (double)places};
}

const struct contender with_tree = {
    .name = "vg_tree",
    .open = open_tree,
    .close = close_tree,
    .run = {put_all, put_all, remove_all, get_all, walk, count_ranges},
};
