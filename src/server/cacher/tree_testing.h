/* tree_testing.h - records and trees for the tests of the tree. Tests only; what cannot be made
 * ends the process. */
#ifndef VG_CACHER_TREE_TESTING_H
#define VG_CACHER_TREE_TESTING_H

#include <stdio.h>
#include <stdlib.h>

#include "tree.h"

static inline void vg_tree_must(int r)
{
    if (r < 0)
        abort();
}

/* A record with this header as its major, when the tree orders by vg_test_key_by_header. */
static inline struct vg_rec *vg_test_rec(struct vg_slice major, struct vg_slice key, vg_rev rev)
{
    struct vg_rec *rec = NULL;
    vg_tree_must(vg_rec_new(VG_REC_PUT, key, major, VG_SLICE_LIT("value"), &rec));
    rec->rev = rev;
    return rec;
}

static inline struct vg_tree_key vg_test_key_by_header(const struct vg_rec *rec, void *arg)
{
    (void)arg;
    return (struct vg_tree_key){.major = vg_rec_header(rec), .minor = vg_rec_key(rec)};
}

static inline struct vg_tree *vg_test_tree(vg_tree_key_fn *key_of)
{
    struct vg_tree *tree = NULL;
    vg_tree_must(vg_tree_new(&(struct vg_tree_opts){.key_of = key_of}, &tree));
    return tree;
}

static inline struct vg_tree_key vg_test_minor(struct vg_slice minor)
{
    return (struct vg_tree_key){.minor = minor};
}

/* "/registry/pods/ns-1/pod-00042": key number i, in numerical order. */
static inline struct vg_slice vg_test_pod_key(char *out, size_t size, size_t i)
{
    int n = snprintf(out, size, "/registry/pods/ns-%zu/pod-%07zu", i / 100000, i % 100000);
    return vg_slice(out, (size_t)n);
}

static inline struct vg_rec *vg_test_pod(size_t i, vg_rev rev)
{
    char key[64];
    return vg_test_rec(vg_slice(NULL, 0), vg_test_pod_key(key, sizeof key, i), rev);
}

/* Put pod i and keep no reference. */
static inline int vg_test_put_pod(struct vg_tree *tree, size_t i, vg_rev rev)
{
    struct vg_rec *rec = vg_test_pod(i, rev);
    int r = vg_tree_put(tree, rec, NULL);
    vg_rec_unref(rec);
    return r;
}

static inline int vg_test_remove_pod(struct vg_tree *tree, size_t i)
{
    char key[64];
    return vg_tree_remove(tree, vg_test_minor(vg_test_pod_key(key, sizeof key, i)), NULL);
}

/* n even pods, with revisions from 2 on, so that odd ones lie between. */
static inline struct vg_tree *vg_test_even_tree(size_t n)
{
    struct vg_tree *tree = vg_test_tree(NULL);
    for (size_t i = 0; i < n; i++)
        vg_tree_must(vg_test_put_pod(tree, 2 * i, i + 2));
    return tree;
}

/* All of these, as they were put, and nothing else. */
static inline bool vg_test_has_even_pods(const struct vg_root *root, size_t n)
{
    struct vg_cursor c;
    char key[64];
    vg_root_check(root);
    vg_root_first(&c, root);
    for (size_t i = 0; i < n; i++) {
        const struct vg_rec *rec = vg_cursor_next(&c);
        if (!rec || rec->rev != i + 2 ||
            !vg_slice_eq(vg_rec_key(rec), vg_test_pod_key(key, sizeof key, 2 * i)))
            return false;
    }
    return !vg_cursor_next(&c);
}

/* The calls a finished test makes: all its roots are dead. */
static inline void vg_test_tree_end(struct vg_tree *tree)
{
    vg_tree_check(tree);
    vg_tree_free(tree);
}

#endif
