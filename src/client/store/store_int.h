/* store_int.h - the store as the rest of the library writes it: batches and replacements that tell
 * what was there before. vigil/store.h has the rest. */
#ifndef VG_CLIENT_STORE_STORE_INT_H
#define VG_CLIENT_STORE_STORE_INT_H

#include "base/err.h"
#include "base/lock.h"
#include "tree.h"
#include "vigil/store.h"

enum vg_store_verb { VG_STORE_PUT, VG_STORE_DELETE };

/* One write of a batch. */
struct vg_store_op {
    enum vg_store_verb verb;
    bool is_tombstone;                  /* a delete that was not seen: the store's version stays */
    const struct vigil_object *o;       /* borrowed */
    const struct vigil_object *ret_old; /* what it replaced or deleted: a reference, or NULL */
    int ret_err;                        /* -ENOMEM: this one was not done */
};
/* All under one lock, in order. What fails is left out, the rest is done. 0, or the first error.
 * Thread: any. */
VG_CHECK int vg_store_transaction(struct vigil_store *s, struct vg_store_op *ops, size_t n);

/* As vigil_store_replace; *ret_before is the state that was replaced, for vg_ctree_done. */
VG_CHECK int vg_store_replace(struct vigil_store *s, const struct vigil_object *const *objects,
                              size_t n, struct vg_slice version, struct vg_ctree *ret_before);
/* The state now, for vg_ctree_done. Cannot fail. */
struct vg_ctree vg_store_state(struct vigil_store *s);
/* The store has reached this version without a change. Cut to VG_OBJECT_VERSION_MAX. */
void vg_store_bookmark(struct vigil_store *s, struct vg_slice version);

/* ---- within the room ---- */

/* Values that an index function emits. */
struct vg_store_values {
    struct vg_ctree_value **v;
    size_t n, cap;
    bool has_failed; /* out of memory */
};

struct vg_store_index {
    char *name;
    vigil_index_fn *fn;
    void *arg;
    struct vg_ctree tree;                 /* by value, then key */
    struct vg_store_values before, after; /* of the change under way */
};

struct vigil_store {
    struct vg_mutex write_mu; /* rank CLIENT_WRITE: one writer at a time */
    struct vg_mutex mu;       /* rank CLIENT_STORE: trees change, and readers take them, under it */
    struct vg_ctree by_key VG_GUARDED_BY(mu);
    struct vg_store_index *indexes VG_GUARDED_BY(mu);
    size_t n_indexes VG_GUARDED_BY(mu);
    struct vg_ctree_pool pool; /* the writer's */
    size_t version_n VG_GUARDED_BY(mu);
    char version[VG_OBJECT_VERSION_MAX] VG_GUARDED_BY(mu);
};

/* index.c. Thread: the writer. */
VG_CHECK int vg_store_index_init(struct vg_store_index *x, const struct vigil_index *from);
void vg_store_index_done(struct vg_store_index *x);
/* Collect the values of both (NULL allowed). -ENOMEM: those collected are still there. */
VG_CHECK int vg_store_index_prepare(struct vg_store_index *x, const struct vigil_object *before,
                                    const struct vigil_object *after);
/* As prepared, with nodes reserved for as many changes as there are values. */
void vg_store_index_apply(struct vg_store_index *x, struct vg_ctree_pool *pool,
                          const struct vigil_object *before, const struct vigil_object *after);
void vg_store_index_forget(struct vg_store_index *x);
/* The tree of an index over all of these objects. 0 or -ENOMEM. */
VG_CHECK int vg_store_index_build(const struct vg_store_index *x, const struct vg_ctree *objects,
                                  struct vg_ctree *ret);

#endif
