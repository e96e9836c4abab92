/* target.h - where a copy goes: a file, a new directory, or an etcd cluster. Thread: main. */
#ifndef VG_COPY_TARGET_H
#define VG_COPY_TARGET_H

#include "progress.h"
#include "walk_all.h"
#include "writes.h"

struct vg_target {
    const struct vg_copy_opts *opts; /* borrowed */
    struct vg_backup_writer file;
    struct vg_place place;
    struct vg_writes writes;
};

/* Opens it, or says why it must not be written to; `from` is what will be copied. */
VG_CHECK int vg_target_open(struct vg_target *t, const struct vg_copy_opts *opts,
                            const struct vg_walk *from, struct vg_status *reterr_status);
/* Makes it hold what `from` has, and nothing else. */
VG_CHECK int vg_target_fill(struct vg_target *t, struct vg_walk *from, struct vg_progress *progress,
                            struct vg_copy_result *result, struct vg_status *reterr_status);
/* What it holds now, to be compared. */
VG_CHECK int vg_target_walk(struct vg_target *t, struct vg_walk *ret_walk,
                            struct vg_status *reterr_status);
/* It has been compared: it gets its name, or loses its mark. */
VG_CHECK int vg_target_finish(struct vg_target *t, struct vg_copy_result *result,
                              struct vg_status *reterr_status);
void vg_target_close(struct vg_target *t);

/* How long a record has to live: 0 for ever, -1 its time is over. */
int64_t vg_ttl_left_ms(const struct vg_rec *rec);

#endif
