/* backup_file.h - a backup: every key of one revision in one file, the same for every engine.
 *
 *   head     64 bytes: "vigil-bk", format, revision, time, number of keys, checksum
 *   records  each: u32 length, then a record as storage encodes it, with its own checksum; in
 *            key order
 *   end      u32 0, then u64 number of keys, a digest (SHA-256) of keys and values, checksum
 *
 * Integers are little endian. A file without its end is no backup. What is written gets its name
 * when it is whole and on the disk, readable by its owner alone; a name that exists is never
 * replaced. Invariants, checked by the reader: keys grow, records are puts, the number and the
 * digest agree. Thread: one owner of each file. */
#ifndef VG_COPY_BACKUP_FILE_H
#define VG_COPY_BACKUP_FILE_H

#include <stdio.h>

#include "digest.h"
#include "server/storage/record.h"

#define VG_BACKUP_MAGIC "vigil-bk"
#define VG_BACKUP_FORMAT 1u
#define VG_BACKUP_HEAD 64
#define VG_BACKUP_END 48
/* A record as storage takes it, and room for growth. */
#define VG_BACKUP_RECORD_MAX ((uint32_t)16 << 20)

struct vg_backup_head {
    vg_rev rev;
    int64_t made_ms; /* wall clock */
    uint64_t keys;
};

/* ---- writing ---- */

struct vg_backup_writer {
    FILE *file;
    char *path, *beside;
    struct vg_buf record; /* encoded */
    struct vg_digest *digest;
    uint64_t keys, bytes;
};

/* VIGIL_E_EXISTS, -errno, -ENOMEM. */
VG_CHECK int vg_backup_writer_open(struct vg_backup_writer *w, const char *path,
                                   const struct vg_backup_head *head,
                                   struct vg_status *reterr_status);
VG_CHECK int vg_backup_writer_add(struct vg_backup_writer *w, const struct vg_rec *rec,
                                  struct vg_status *reterr_status);
/* The end is written and everything synced: it can be read, under w->beside. */
VG_CHECK int vg_backup_writer_end(struct vg_backup_writer *w, struct vg_status *reterr_status);
/* It gets its name. VIGIL_E_EXISTS. */
VG_CHECK int vg_backup_writer_publish(struct vg_backup_writer *w, struct vg_status *reterr_status);
/* Removes what was not finished. Harmless when zeroed or closed already. */
void vg_backup_writer_close(struct vg_backup_writer *w);

/* ---- reading ---- */

struct vg_backup_reader {
    FILE *file;
    const char *path; /* borrowed */
    struct vg_backup_head head;
    struct vg_buf record;
    struct vg_rec *last; /* the newest read */
    struct vg_digest *digest;
    uint64_t keys;
    bool is_over;
};

/* Is it a copy of an embedded store's data file, as vigil-store makes them, by what it begins with?
 */
bool vg_backup_is_embedded(const char *path);
/* VIGIL_E_STORE_FOREIGN: not a backup; VIGIL_E_STORE_VERSION; VIGIL_E_STORE_DAMAGED; -errno. */
VG_CHECK int vg_backup_reader_open(struct vg_backup_reader *r, const char *path,
                                   struct vg_status *reterr_status);
/* On a stream that is open, for tests; take_file is closed with the reader. */
VG_CHECK int vg_backup_reader_begin(struct vg_backup_reader *r, FILE *take_file, const char *name,
                                    struct vg_status *reterr_status);
/* 1 and the next record, with a reference; 0: the end was read and everything agrees. */
VG_CHECK int vg_backup_reader_next(struct vg_backup_reader *r, struct vg_rec **ret_rec,
                                   struct vg_status *reterr_status);
void vg_backup_reader_close(struct vg_backup_reader *r);

#endif
