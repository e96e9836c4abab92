/* merge.h - reading all layers as one: the newest change of each key at one revision, in key order.
 */
#ifndef VG_STORAGE_MERGE_H
#define VG_STORAGE_MERGE_H

#include "engine.h"

/* 512: a layer is read in pieces of this many, so that a table's lock is never held for long. */
#define VG_MERGE_CHUNK 512
#define VG_MERGE_SOURCES 3

struct vg_merge_source {
    struct vg_table *table; /* or else the base */
    struct vg_rec *chunk[VG_MERGE_CHUNK];
    size_t n, i;         /* read, and consumed of these */
    bool is_last;        /* there is nothing after this chunk */
    struct vg_rec *last; /* where the next chunk continues; owned */
};

struct vg_merge {
    struct vg_base_view *view;
    const struct vg_keys *keys;
    vg_rev at;
    bool keys_only;               /* the base need not bring values; tables do all the same */
    const struct vg_known *known; /* the base need not read these; set it after init; NULL: none */
    size_t n_sources;
    struct vg_merge_source sources[VG_MERGE_SOURCES]; /* newest layer first */
};

/* All borrowed until done; the view has begun, or is NULL without a base. */
void vg_merge_init(struct vg_merge *m, struct vg_engine *e, const struct vg_layers *layers,
                   struct vg_base_view *view, const struct vg_keys *keys, vg_rev at,
                   bool keys_only);
void vg_merge_done(struct vg_merge *m);
/* The next key that exists, with a reference. 1, 0 at the end, negative. */
VG_CHECK int vg_merge_next(struct vg_merge *m, struct vg_engine *e, struct vg_rec **ret_rec);

#endif
