/* with_tsearch.c - glibc's tsearch: a red-black tree in place, one allocation per entry, no
 * snapshots. What a server without snapshots would pay, and with it a lock around every reader. */
#include <search.h>
#include <stdlib.h>

#include "bench_tree.h"

struct state {
    void *root;
};

static int compare(const void *a, const void *b)
{
    return vg_slice_cmp(vg_rec_key(a), vg_rec_key(b));
}

/* tsearch wants no const. */
static void *plain(const struct vg_rec *rec)
{
    return vg_rec_ref(rec);
}

static size_t put_all(void *state, const struct work *w, size_t batch)
{
    struct state *s = state;
    (void)batch;
    for (size_t i = 0; i < w->n_changes; i++) {
        void *rec = plain(w->changes[i]);
        void **at = tsearch(rec, &s->root, compare);
        if (!at) {
            die("out of memory");
        } else if (*at != rec) {
            vg_rec_unref(*at);
            *at = rec;
        }
    }
    return w->n_changes;
}

static size_t remove_all(void *state, const struct work *w, size_t batch)
{
    struct state *s = state;
    (void)batch;
    for (size_t i = 0; i < w->n_changes; i++) {
        void **at = tfind(w->changes[i], &s->root, compare);
        void *old = at ? *at : NULL;
        if (old)
            tdelete(w->changes[i], &s->root, compare);
        vg_rec_unref(old);
    }
    return w->n_changes;
}

static size_t get_all(void *state, const struct work *w, size_t batch)
{
    struct state *s = state;
    (void)batch;
    for (size_t i = 0; i < w->n_changes; i++)
        if (!tfind(w->changes[i], &s->root, compare))
            die("a record is missing");
    return w->n_changes;
}

static void count_one(const void *node, VISIT which, void *arg)
{
    (void)node;
    if (which == postorder || which == leaf)
        ++*(size_t *)arg;
}

static size_t walk(void *state, const struct work *w, size_t batch)
{
    struct state *s = state;
    size_t n = 0;
    (void)batch;
    (void)w;
    twalk_r(s->root, count_one, &n);
    return n;
}

static void *open_tsearch(const struct work *w)
{
    struct state *s = must_alloc(1, sizeof *s);
    struct work all = {.changes = w->load, .n_changes = w->n_load};
    put_all(s, &all, 1);
    return s;
}

static void drop(void *rec)
{
    vg_rec_unref(rec);
}

static void close_tsearch(void *state)
{
    struct state *s = state;
    tdestroy(s->root, drop);
    free(s);
}

const struct contender with_tsearch = {
    .name = "tsearch",
    .open = open_tsearch,
    .close = close_tsearch,
    .run = {put_all, put_all, remove_all, get_all, walk, NULL},
};
