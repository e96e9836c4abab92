/* lmdb_pages.h - reads the pages of an LMDB 0.9 file and believes none of them.
 * LMDB trusts what it maps: a wrong offset or page number in a page ends the process (SIGBUS, an
 * assertion), sends it round in circles, or shows other data. This walk follows the same trees with
 * every bound checked, so that a file can be judged before LMDB sees it. What holds when a walk
 * found no damage: P1 every page of every tree lies in the file, says its own number, is of the
 * kind that its place asks for, and is part of one tree only, once; free pages are part of none. P2
 * nodes lie inside their page and fill it without a gap; the keys of a page ascend and lie between
 * those that the pages above it promise. P3 depth, entries and pages of each tree are as many as
 * the tree says. What the entries hold is not looked at: a caller adds them up (lmdb_sums.h) or
 * reads the records. */
#ifndef VG_STORAGE_LMDB_PAGES_H
#define VG_STORAGE_LMDB_PAGES_H

#include "base/err.h"
#include "base/slice.h"

/* The trees of our environment. */
enum vg_tree { VG_TREE_FREE, VG_TREE_MAIN, VG_TREE_LOG, VG_TREE_KEYS, VG_TREE_TTL, VG_TREE_META };
#define VG_TREES 6
extern const char *const vg_tree_names[VG_TREES];

/* As LMDB lays it out, in native byte order. */
struct vg_lmdb_db {
    uint32_t pad; /* of the first one in a meta page: the page size; of duplicates: their size */
    uint16_t flags, depth;
    uint64_t branch_pages, leaf_pages, overflow_pages, entries, root;
};
struct vg_lmdb_meta {
    uint64_t pgno;
    uint16_t pad, page_flags;
    uint32_t free;
    uint32_t magic, version;
    uint64_t address, map_size;
    struct vg_lmdb_db dbs[2];
    uint64_t last_pgno, txnid;
};
#define VG_LMDB_PAGE_NONE UINT64_MAX

struct vg_page_walk {
    /* `n` pages from `pgno` on; valid until the next call with the same level. NULL: they cannot be
     * read. Pages of levels that are higher up stay valid. */
    const char *(*pages)(void *arg, uint64_t pgno, uint64_t n, unsigned level);
    /* An entry of a tree; key and data are valid for the call. NULL: not wanted. */
    int (*on_entry)(void *arg, enum vg_tree tree, struct vg_slice key, struct vg_slice data);
    /* What was found wrong. The walk goes on behind it when this returns 0. */
    int (*on_damage)(void *arg, enum vg_tree tree, uint64_t pgno, const char *what);
    void *arg;
    uint32_t page_size;
    struct vg_lmdb_meta meta; /* where to begin */
    /* Results. */
    struct vg_lmdb_db dbs[VG_TREES]; /* root VG_LMDB_PAGE_NONE: empty, or not there */
    bool has_db[VG_TREES];
    uint64_t n_pages;
    /* A bit for each page that was met. */
    uint8_t *seen;
};

/* How deep pages are nested: trees, the trees of duplicates in them, and one for large data. */
#define VG_WALK_LEVELS 66u

/* Find the four trees of ours. 0 also when some are missing. */
VG_CHECK int vg_walk_begin(struct vg_page_walk *w);
/* Walk one tree. 0, what a callback returned, or -ENOMEM. */
VG_CHECK int vg_walk_tree(struct vg_page_walk *w, enum vg_tree tree);
void vg_walk_end(struct vg_page_walk *w);
/* One page by itself, as a leaf of `tree`, wherever it belongs. 0: it is none. */
VG_CHECK int vg_walk_stray_leaf(struct vg_page_walk *w, enum vg_tree tree, uint64_t pgno);
bool vg_walk_has_seen(const struct vg_page_walk *w, uint64_t pgno);

#endif
