/* walk_all.h - everything that a place or a backup holds, of one revision and in key order; and two
 * of these side by side. Thread: main. */
#ifndef VG_COPY_WALK_ALL_H
#define VG_COPY_WALK_ALL_H

#include "copy.h"

struct vg_walk {
    struct vg_place *place; /* borrowed; NULL: a backup */
    const char *path;       /* of the backup; borrowed */
    struct vg_backup_reader reader;
    vg_rev at;     /* the revision that is read */
    uint64_t keys; /* at it */
    /* the page that is being handed out, and where the next one begins */
    struct vg_rec *recs[VG_COPY_PAGE];
    size_t n, next;
    bool is_last_page;
    size_t start_len;
    char start[VG_PREFIX_END_MAX];
};

VG_CHECK int vg_walk_place(struct vg_walk *w, struct vg_place *place,
                           struct vg_status *reterr_status);
VG_CHECK int vg_walk_backup(struct vg_walk *w, const char *path, struct vg_status *reterr_status);
/* Begin again, at the same revision. */
VG_CHECK int vg_walk_rewind(struct vg_walk *w, struct vg_status *reterr_status);
/* Harmless when zeroed. */
void vg_walk_done(struct vg_walk *w);
static inline void vg_walk_cleanup(struct vg_walk *w)
{
    vg_walk_done(w);
}

/* The next record, which stays the next one; NULL: there is none. */
VG_CHECK int vg_walk_peek(struct vg_walk *w, const struct vg_rec **ret_rec,
                          struct vg_status *reterr_status);
/* Go past it. */
void vg_walk_skip(struct vg_walk *w);

/* The next key of both: the record of each that has it, else NULL; both NULL: the end. Go past them
 * with vg_walk_skip. */
VG_CHECK int vg_walk_pair(struct vg_walk *a, struct vg_walk *b, const struct vg_rec **ret_a,
                          const struct vg_rec **ret_b, struct vg_status *reterr_status);

#endif
