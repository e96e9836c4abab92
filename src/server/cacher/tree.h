/* tree.h - the current state of one kind: a persistent ordered tree of records.
 * One writer changes the working tree; at the end of each batch it publishes a root, an immutable
 * snapshot that any thread walks without a lock for as long as it holds a reference. Nodes made in
 * the current batch are changed in place, older ones are copied, so that a batch costs the paths it
 * touches and a snapshot costs nothing.
 *
 * Records are ordered by a key of two parts, taken from the record by a function: the state itself
 * has an empty major part and the storage key as minor; an index by a field has the field's value
 * as major part. Invariants are listed, and checked, in tree_check.c; how memory is given back is
 * explained in tree_reclaim.c; docs/internals/tree.md has the picture.
 *
 * Threads: vg_tree_* the writer alone; vg_root_* and vg_cursor_* any. */
#ifndef VG_CACHER_TREE_H
#define VG_CACHER_TREE_H

#include <stdbool.h>

#include "server/storage/record.h"

struct vg_tree;
struct vg_root;

/* Compared bytewise, major before minor. A zero byte ends a major: what follows it does not count.
 */
struct vg_tree_key {
    struct vg_slice major, minor;
};

/* The key of a record; it points into the record or into what lives as long. Always the same for
 * the same record. Thread: any, so arg must not change. */
typedef struct vg_tree_key vg_tree_key_fn(const struct vg_rec *rec, void *arg);
/* Major empty, minor the storage key: the key_of of the state itself. */
struct vg_tree_key vg_tree_key_by_storage(const struct vg_rec *rec, void *arg);

struct vg_tree_opts {
    vg_tree_key_fn *key_of; /* NULL: vg_tree_key_by_storage */
    void *arg;
    /* Called on any thread when the first of some roots has died: the writer then calls
     * vg_tree_reclaim, now or after its next batch. Must be sticky, as in vg_mailbox. NULL: the
     * writer reclaims without being told. */
    void (*wake)(void *arg);
    void *wake_arg;
};

/* 2^32 - 1: what the counts in the nodes can hold. */
#define VG_TREE_MAX UINT32_MAX
/* Levels of nodes, of which all but the root hold at least ten entries: 2 * 10^9 is the smallest
 * tree of ten levels, one of eleven would not fit into VG_TREE_MAX. */
#define VG_TREE_LEVELS_MAX 10

/* ---- the writer ---- */

VG_CHECK int vg_tree_new(const struct vg_tree_opts *opts, struct vg_tree **ret_tree); /* -ENOMEM */
/* Every root is dead and every vg_root_unref has returned. NULL allowed. Frees everything at once;
 * to do it in slices call vg_tree_dissolve before. */
void vg_tree_free(struct vg_tree *tree);

/* Put a record, in the place of the one with an equal key if there is one. Takes a reference of its
 * own. *ret_old (may be NULL) is the replaced record, with a reference, or NULL. 0; -ENOMEM,
 * VIGIL_E_TOO_LARGE (VG_TREE_MAX records): nothing changed. */
VG_CHECK int vg_tree_put(struct vg_tree *tree, const struct vg_rec *rec, struct vg_rec **ret_old);
/* 1: removed, *ret_old (may be NULL) as above; 0: there is none, *ret_old is NULL; -ENOMEM: nothing
 * changed. */
VG_CHECK int vg_tree_remove(struct vg_tree *tree, struct vg_tree_key key, struct vg_rec **ret_old);
/* Fill an empty tree in linear time, with full nodes. The records ascend strictly by key; takes a
 * reference to each. 0; VIGIL_E_INVALID: the tree is not empty or the records are not in order;
 * -ENOMEM, VIGIL_E_TOO_LARGE; then nothing changed. */
VG_CHECK int vg_tree_load(struct vg_tree *tree, const struct vg_rec *const *recs, size_t n);
/* Make the tree hold these records and no others, which ascend as for a load. What it holds
 * already, with equal key and revision, stays: the cost beside a walk is that of the difference. 0;
 * VIGIL_E_INVALID: nothing changed; -ENOMEM, VIGIL_E_TOO_LARGE: a part of it was done, and another
 * call may do the rest. */
VG_CHECK int vg_tree_replace(struct vg_tree *tree, const struct vg_rec *const *recs, size_t n);

/* Of the working tree, unpublished changes included; borrowed until the next change. NULL: none. */
const struct vg_rec *vg_tree_get(const struct vg_tree *tree, struct vg_tree_key key);
size_t vg_tree_count(const struct vg_tree *tree);

/* End the batch: a snapshot with one reference, the caller's. Cannot fail after a put, remove or
 * load of this batch has succeeded, which take its memory beforehand. NULL: out of memory, the
 * batch goes on. */
VG_CHECK struct vg_root *vg_tree_publish(struct vg_tree *tree, vg_rev rev);

/* Free what dead roots alone could see, in at most max_steps steps (about a node or a record each).
 * True: there is more to do. */
bool vg_tree_reclaim(struct vg_tree *tree, size_t max_steps);
/* For a tree that goes away, when every root is dead: reclaim, then take the working tree apart, in
 * at most max_steps steps. True: there is more to do; false: the tree is empty. */
bool vg_tree_dissolve(struct vg_tree *tree, size_t max_steps);

struct vg_tree_stats {
    size_t count;         /* records in the working tree */
    size_t nodes;         /* nodes of the working tree */
    size_t nodes_retired; /* nodes that only roots can see: pinned, or waiting for reclaim */
    size_t recs_retired;  /* records that only roots can see */
    size_t rec_bytes_retired;
    size_t nodes_spare; /* kept for the next change */
    size_t bytes;       /* of all nodes and roots, and of the notes about retired records */
    size_t roots;       /* published and not yet freed */
    size_t roots_dead;  /* of these, known to be dead */
};
void vg_tree_stats(const struct vg_tree *tree, struct vg_tree_stats *ret_stats);

/* Tests: aborts unless T1 to T8 of tree_check.c hold for the working tree and the writer's lists.
 */
void vg_tree_check(const struct vg_tree *tree);

/* ---- snapshots: any thread that holds a reference ---- */

struct vg_root *vg_root_ref(const struct vg_root *root);
/* Takes NULL; returns NULL. Constant cost: the last one hands the root to the writer. */
struct vg_root *vg_root_unref(const struct vg_root *root);

vg_rev vg_root_rev(const struct vg_root *root);
size_t vg_root_count(const struct vg_root *root);
/* Borrowed for as long as the root is held. NULL: none. */
const struct vg_rec *vg_root_get(const struct vg_root *root, struct vg_tree_key key);

/* A place between two records, relative to a key that need not be there. */
enum vg_tree_edge {
    VG_TREE_AT,    /* before it: the first record that follows is at or above the key */
    VG_TREE_AFTER, /* right after it: strictly above the key */
    VG_TREE_PAST   /* after all that have its major, and begin with its minor */
};

/* Records before that place. Logarithmic, no allocation. */
size_t vg_root_rank(const struct vg_root *root, struct vg_tree_key key, enum vg_tree_edge edge);
/* Records in [from, to); NULL: from the first, to the last. 0 when to lies before from. */
size_t vg_root_count_range(const struct vg_root *root, const struct vg_tree_key *from,
                           const struct vg_tree_key *to);
/* Records with this major whose minor begins with this minor. */
size_t vg_root_count_prefix(const struct vg_root *root, struct vg_tree_key prefix);

/* A walk in order. Owns nothing: the root is held by the caller. Copied by assignment. */
struct vg_cursor {
    const struct vg_rec *const *at; /* in the leaf: the next record */
    const struct vg_rec *const *end;
    unsigned levels; /* nodes above the leaf */
    struct {
        const struct vg_node *node;
        unsigned at; /* the child on our way */
    } path[VG_TREE_LEVELS_MAX - 1];
};

/* To the first record. */
void vg_root_first(struct vg_cursor *ret_cursor, const struct vg_root *root);
/* To the first record at or above the key. */
void vg_root_seek(struct vg_cursor *ret_cursor, const struct vg_root *root, struct vg_tree_key key);
/* To the first record after a place: AFTER the last key of a page, PAST a namespace. */
void vg_root_seek_edge(struct vg_cursor *ret_cursor, const struct vg_root *root,
                       struct vg_tree_key key, enum vg_tree_edge edge);

/* Moves to the next leaf and gives its first record; NULL at the end. */
const struct vg_rec *vg_cursor_next_leaf(struct vg_cursor *cursor);

/* Walkers look at the beginning of each record, and records lie anywhere: ask for it a little
 * before, so that the misses of a walk overlap. */
#define VG_CURSOR_AHEAD 4
static inline void vg_cursor_fetch(const struct vg_cursor *cursor)
{
    if (cursor->end - cursor->at <= VG_CURSOR_AHEAD)
        return;
    const char *rec = (const char *)cursor->at[VG_CURSOR_AHEAD];
    for (size_t at = 0; at < 256; at += 64)
        __builtin_prefetch(rec + at);
}

/* The next record, borrowed for as long as the root is held; NULL: the end, as often as asked. The
 * caller of a range or a prefix stops at the first record beyond it. */
static inline const struct vg_rec *vg_cursor_next(struct vg_cursor *cursor)
{
    vg_cursor_fetch(cursor);
    return cursor->at != cursor->end ? *cursor->at++ : vg_cursor_next_leaf(cursor);
}

/* Tests: aborts unless T1 to T6 of tree_check.c hold for a snapshot. */
void vg_root_check(const struct vg_root *root);

#endif
