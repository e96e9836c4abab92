/* wal.h - the write-ahead log: what makes a group durable with one sync.
 * Two files, wal-0 and wal-1; each holds one generation at a time. A generation is a header page
 * and frames; a frame is one group, begins on a page, and carries a checksum over all of it. Groups
 * are written one after the other, each only after the one before is on the disk. When the table
 * that goes with a generation is frozen, the next generation begins in the other file; its header
 * says where the one before ended. A file is used again only after its generation is in the base.
 *
 * Invariants:
 *   L1 a page that holds an acknowledged frame is not written to before its generation is applied.
 *   L2 frames of a generation follow each other without a gap in revisions or pages.
 *   L3 the header of generation g+1 is on the disk before its first frame is written.
 *   L4 whatever follows the last good frame is void: a torn group that nobody was told of, older
 *      generations, zeros. A good frame behind a bad one is damage, because of L2.
 *   L5 a log that ends below the mark (durable.h) has lost acknowledged groups: that is damage.
 * Pages are written ahead as zeros, so that a sync writes data alone and no file metadata; a frame
 * that goes over them is written past the page cache and made durable by the same call, where the
 * file system can do that (wal_disk.c). The
 * salt, drawn when a store is made, is part of every checksum: bytes that a client stores cannot
 * pass for a frame. Thread: the commit thread, after opening. */
#ifndef VG_STORAGE_WAL_H
#define VG_STORAGE_WAL_H

#include "base/buf.h"
#include "durable.h"

#define VG_WAL_PAGE ((size_t)4096)

/* How a write to the log becomes durable: the best that the file system was seen to do. */
enum vg_wal_manner {
    VG_WAL_NO_SYNC,   /* not at all: for tests */
    VG_WAL_FDATASYNC, /* by a call of its own */
    VG_WAL_DSYNC,     /* by the call that writes, RWF_DSYNC */
};

struct vg_wal {
    int dirfd;         /* borrowed */
    int fd[2];         /* by generation & 1 */
    uint64_t ahead[2]; /* bytes of each file that are written, as data or as zeros */
    uint64_t salt;
    uint64_t gen;
    uint64_t offset;    /* where the next frame goes */
    vg_rev last;        /* newest revision in the log */
    vg_rev frozen_last; /* after opening: where the generation before this one ended, if replayed */
    enum vg_wal_manner manner;
    bool is_header_void; /* a header write failed: make it void before anything else */
    struct vg_buf frame; /* reused; the frame begins at the first page boundary in it */
    size_t frame_n;
    struct vg_durable durable; /* the newest revision that was acknowledged */
    _Atomic uint64_t *syncs, *bytes;
};

/* Make both files for a new store: generation 1, whose first change comes after `base`; the data
 * file ends at `applied`. */
VG_CHECK int vg_wal_create(int dirfd, uint64_t salt, vg_rev applied, vg_rev base);

/* What recovery found in one generation. */
struct vg_wal_replay {
    int (*on_rec)(void *arg, uint64_t gen, struct vg_rec *take_rec);
    void *arg;
};

/* Open after a start: replay every generation above applied_gen, whose predecessor ended at
 * applied_rev, and be ready to append. All that was replayed is on the disk when this returns.
 * VIGIL_E_STORE_DAMAGED with the reason. */
VG_CHECK int vg_wal_open(struct vg_wal *w, int dirfd, uint64_t salt, uint64_t applied_gen,
                         vg_rev applied_rev, bool no_sync, const struct vg_wal_replay *replay,
                         struct vg_status *reterr_status);
void vg_wal_close(struct vg_wal *w);
/* Would it open? Nothing is written. */
VG_CHECK int vg_wal_check(int dirfd, uint64_t salt, uint64_t applied_gen, vg_rev applied_rev,
                          struct vg_status *reterr_status);

/* See struct vg_base_ops. */
VG_CHECK int vg_wal_append(struct vg_wal *w, const struct vg_event *events, size_t n);
VG_CHECK int vg_wal_repair(struct vg_wal *w);
/* `base`: the new generation continues after it; above `last` only when revisions must be skipped.
 */
VG_CHECK int vg_wal_switch(struct vg_wal *w, vg_rev last, vg_rev base);

#endif
