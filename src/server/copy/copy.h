/* copy.h - a copy of everything that a store or a backup holds, into another store or a file.
 * Backing up, restoring and moving to another engine are all this: records are read at one revision
 * in key order, a page at a time, and written to the target; then both sides are read again and
 * compared.
 *
 *   C1 What is read is of one revision, however long it takes and whoever writes meanwhile.
 *   C2 A target in use is refused; a directory gets its name when the copy in it is whole and
 *      compared.
 *   C3 A copy into etcd that was interrupted goes on when it is run again: what is there already
 *      is compared and left, what does not belong there goes. Until it is whole the key
 *      VG_COPY_MARK lies beside the objects, and vigild does not start.
 *   C4 The target's revisions begin above the source's, and everything below counts as compacted:
 *      a client that comes with a resourceVersion of the source is told to list anew (410).
 *   C5 Times to live go on: what had an hour left has it at the target.
 * Thread: main. */
#ifndef VG_COPY_COPY_H
#define VG_COPY_COPY_H

#include "backup_file.h"
#include "place.h"

/* Records held at a time: with the largest values a gigabyte, with usual ones 1 MB. As many writes
 * are under way at once. */
#define VG_COPY_PAGE 128
#define VG_COPY_MARK "/registry/vigil.copy"

struct vg_copy_opts {
    const char *from, *to;
    struct vg_etcd_opts etcd; /* all but the servers, for the side that is a cluster */
    bool is_from_file, is_to_file;
    bool is_forced;   /* replace what a cluster holds */
    bool keeps_clock; /* a cluster whose revisions are below the source's is left there */
    bool is_quiet;
    vg_rev bump; /* revisions to skip; VG_COPY_BUMP_DEFAULT: as the target needs */
};
#define VG_COPY_BUMP_DEFAULT UINT64_MAX

struct vg_copy_result {
    uint64_t keys, with_ttl, written, removed, bytes;
    vg_rev from_rev, to_rev;
    vg_rev source_now; /* beyond from_rev: somebody wrote to it meanwhile */
    char digest[VG_DIGEST_TEXT];
    uint64_t took_ns;
};

VG_CHECK int vg_copy_run(const struct vg_copy_opts *opts, struct vg_copy_result *ret_result,
                         struct vg_status *reterr_status);

#endif
