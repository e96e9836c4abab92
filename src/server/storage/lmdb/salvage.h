/* salvage.h - finds what can still be read of a damaged store, and what cannot. Nothing is changed.
 * What a record holds is believed when its checksum is right and its place proves that we wrote it
 * there: in a leaf of the log tree, in a group of the log whose salted checksum is right, or at the
 * beginning of a damaged group that lies where the next group must. Bytes anywhere else may be a
 * client's, made to look like a record. */
#ifndef VG_STORAGE_SALVAGE_H
#define VG_STORAGE_SALVAGE_H

#include "lmdb_verify.h"
#include "server/storage/repair.h"
#include "wal_int.h"

struct vg_salvaged {
    vg_rev rev;
    uint32_t sub;
    bool is_delete, is_stray;
    struct vg_slice key, encoded; /* in the mapped files */
};
/* An entry of the index, in the mapped file. */
struct vg_indexed {
    struct vg_slice key;
    struct key_version version;
};

struct vg_salvage {
    struct vg_repair *report;
    int dirfd;
    /* Where the bytes are; open as long as the items are used. */
    struct vg_data_file file;
    struct wal_file logs[2];
    struct vg_page_walk walk;
    struct vg_fact_finder finder;
    bool is_damaged[VG_TREES];
    uint64_t n_bad_records;
    uint64_t salt;
    bool has_salt, has_mark;
    vg_rev applied, mark;
    vg_rev first;   /* the log begins after it */
    vg_rev skip_to; /* no revisions were given from skip_from + 1 to this one */
    vg_rev skip_from;
    struct vg_salvaged *items; /* by revision when it has been sorted */
    size_t n_items, cap_items;
    struct vg_indexed *index;
    size_t n_index, cap_index;
};

/* The base alone, with all that is wrong with it. */
VG_CHECK int vg_salvage_open(struct vg_salvage *s, const char *dir, int dirfd,
                             struct vg_repair *report, struct vg_status *reterr_status);
void vg_salvage_close(struct vg_salvage *s);
/* salvage_log.c: and the groups of the log. */
VG_CHECK int vg_salvage_log(struct vg_salvage *s);

/* By revision, each once. */
void vg_salvage_sort(struct vg_salvage *s);
VG_CHECK int vg_salvage_add(struct vg_salvage *s, struct vg_slice encoded, const struct vg_rec *rec,
                            bool is_stray);
/* One line about damage. */
void vg_salvage_report(struct vg_salvage *s, const char *fmt, ...) VG_PRINTF(2, 3);

#endif
