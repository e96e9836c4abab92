/* workload.c - keys as in a large cluster: pods of replica sets in 500 namespaces, named
 * <deployment>-<hash of the replica set>-<five letters>. Values are short: what is measured does
 * not look at them. */
#include <stdio.h>
#include <stdlib.h>

#include "bench_tree.h"

#define NAMESPACES 500u
#define PODS_PER_SET 8u
#define VALUE_BYTES 256

static uint64_t next_random(struct work *w)
{
    w->rng ^= w->rng << 13;
    w->rng ^= w->rng >> 7;
    w->rng ^= w->rng << 17;
    return w->rng;
}

static void letters(char *out, size_t n, uint64_t from)
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
    for (size_t i = 0; i < n; i++, from /= 27)
        out[i] = alphabet[from % 27];
    out[n] = 0;
}

/* Key number i; the same each time. */
static const struct vg_rec *make(struct work *w, size_t i)
{
    static const char value[VALUE_BYTES];
    char key[160], hash[11], name[6];
    size_t set = i / PODS_PER_SET;
    letters(hash, 10, w->names[set]);
    letters(name, 5, w->names[i] >> 7);
    int n = snprintf(key, sizeof key, "/registry/pods/team-%03u-production/web-frontend-%zu-%s-%s",
                     (unsigned)(set % NAMESPACES), set % 97, hash, name);
    struct vg_rec *rec = NULL;
    if (vg_rec_new(VG_REC_PUT, vg_slice(key, (size_t)n), vg_slice(NULL, 0),
                   vg_slice(value, sizeof value), &rec) < 0)
        die("out of memory");
    rec->rev = ++w->rev;
    return rec;
}

static int by_key(const void *a, const void *b)
{
    const struct vg_rec *const *x = a, *const *y = b;
    return vg_slice_cmp(vg_rec_key(*x), vg_rec_key(*y));
}

/* Names are random: two may be the same. */
static void drop_twins(struct work *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n_load; i++) {
        if (n && by_key(&w->load[n - 1], &w->load[i]) == 0)
            vg_rec_unref(w->load[i]);
        else
            w->load[n++] = w->load[i];
    }
    w->n_load = n;
}

void work_init(struct work *w, size_t n_load, size_t n_changes)
{
    *w = (struct work){.rng = 0x9E3779B97F4A7C15u, .n_load = n_load, .rev = 1};
    w->names = must_alloc(2 * n_load, sizeof *w->names);
    for (size_t i = 0; i < 2 * n_load; i++)
        w->names[i] = next_random(w);
    w->load = must_alloc(n_load, sizeof *w->load);
    for (size_t i = 0; i < n_load; i++)
        w->load[i] = make(w, 2 * i);
    qsort(w->load, n_load, sizeof *w->load, by_key);
    drop_twins(w);
    w->n_changes = n_changes;
    w->changes = must_alloc(n_changes, sizeof *w->changes);
}

void work_drop_changes(struct work *w)
{
    for (size_t i = 0; i < w->n_changes; i++) {
        vg_rec_unref(w->changes[i]);
        w->changes[i] = NULL;
    }
}

void work_done(struct work *w)
{
    work_drop_changes(w);
    for (size_t i = 0; i < w->n_load; i++)
        vg_rec_unref(w->load[i]);
    free(w->load);
    free(w->changes);
    free(w->names);
}

void work_replace(struct work *w)
{
    work_drop_changes(w);
    for (size_t i = 0; i < w->n_changes; i++) {
        const struct vg_rec *old = w->load[next_random(w) % w->n_load];
        struct vg_rec *rec = NULL;
        if (vg_rec_new(VG_REC_PUT, vg_rec_key(old), vg_rec_header(old), vg_rec_value(old), &rec) <
            0)
            die("out of memory");
        rec->rev = ++w->rev;
        w->changes[i] = rec;
    }
}

void work_insert(struct work *w)
{
    work_drop_changes(w);
    size_t at = next_random(w) % w->n_load, step = w->n_load / w->n_changes;
    for (size_t i = 0; i < w->n_changes; i++)
        w->changes[i] = make(w, 2 * ((at + i * step) % w->n_load) + 1);
    work_shuffle(w);
}

void work_shuffle(struct work *w)
{
    for (size_t i = w->n_changes - 1; i > 0; i--) {
        size_t j = next_random(w) % (i + 1);
        const struct vg_rec *t = w->changes[i];
        w->changes[i] = w->changes[j];
        w->changes[j] = t;
    }
}
