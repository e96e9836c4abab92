/* tree.c - a write to the state of a kind: put, publish, let the last snapshot go, reclaim. The
 * records are bare keys, made before the clock runs. */
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "part.h"
#include "rig.h"

#define WRITES 20000u

struct forest {
    struct vg_tree *tree;
    struct vg_root *root;
    struct vg_rec **recs;
    size_t n;
    vg_rev rev;
    struct vg_rng rng;
};

static struct vg_rec *make_rec(size_t i)
{
    char key[64];
    struct vg_rec *rec = NULL;
    struct vg_slice none = {0};
    snprintf(key, sizeof key, "%steam-%03zu/web-7f9c6d5b4-x%08zu", pods_kind.prefix, i / 1000, i);
    if (vg_rec_new(VG_REC_PUT, vg_slice_str(key), none, none, &rec) < 0)
        bench_die("out of memory");
    return rec;
}

static void forest_init(struct forest *f, size_t n)
{
    *f = (struct forest){.n = n, .recs = bench_alloc(n, sizeof(struct vg_rec *))};
    vg_rng_seed(&f->rng, n);
    for (size_t i = 0; i < n; i++)
        f->recs[i] = make_rec(i);
    int r = vg_tree_new(&(struct vg_tree_opts){0}, &f->tree);
    if (r == 0)
        r = vg_tree_load(f->tree, (const struct vg_rec *const *)f->recs, n);
    f->root = r == 0 ? vg_tree_publish(f->tree, ++f->rev) : NULL;
    if (!f->root)
        bench_die("cannot load the tree");
}

static void forest_done(struct forest *f)
{
    vg_root_unref(f->root);
    while (vg_tree_dissolve(f->tree, 100000))
        ;
    vg_tree_free(f->tree);
    for (size_t i = 0; i < f->n; i++)
        vg_rec_unref(f->recs[i]);
    free(f->recs);
}

static void write_batch(struct forest *f, struct vg_rec *const *recs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct vg_rec *old = NULL;
        if (vg_tree_put(f->tree, recs[i], &old) < 0)
            bench_die("out of memory");
        vg_rec_unref(old);
    }
    struct vg_root *root = vg_tree_publish(f->tree, ++f->rev);
    if (!root)
        bench_die("out of memory");
    vg_root_unref(f->root);
    f->root = root;
    while (vg_tree_reclaim(f->tree, 4096))
        ;
}

/* ns per put. */
static double measure(struct forest *f, size_t batch)
{
    struct vg_rec **recs = bench_alloc(WRITES, sizeof *recs);
    for (size_t i = 0; i < WRITES; i++)
        recs[i] = make_rec((size_t)vg_rng_below(&f->rng, f->n));
    uint64_t begin = rig_cpu_ns();
    for (size_t i = 0; i + batch <= WRITES; i += batch)
        write_batch(f, recs + i, batch);
    double ns = (double)(rig_cpu_ns() - begin) / WRITES;
    for (size_t i = 0; i < WRITES; i++)
        vg_rec_unref(recs[i]);
    free(recs);
    return ns;
}

static void run_size(struct report *r, size_t n)
{
    double one[ROUNDS_MAX], many[ROUNDS_MAX];
    struct forest f;
    forest_init(&f, n);
    measure(&f, 1);
    for (size_t i = 0; i < r->settings.rounds; i++) {
        one[i] = measure(&f, 1);
        many[i] = measure(&f, 100);
    }
    forest_done(&f);
    report_row(r, "ns", one, r->settings.rounds, "per write with %zu objects, each published", n);
    report_row(r, "ns", many, r->settings.rounds, "per write with %zu objects, 100 in a batch", n);
}

void part_tree(struct report *r)
{
    run_size(r, 1000);
    run_size(r, 500000);
}
