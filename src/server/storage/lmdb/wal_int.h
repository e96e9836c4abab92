/* wal_int.h - the log's form on the disk. Integers are little endian. */
#ifndef VG_STORAGE_WAL_INT_H
#define VG_STORAGE_WAL_INT_H

#include <endian.h>

#include "wal.h"

#define WAL_MAGIC "vigilwal"
#define WAL_VERSION 1
#define WAL_FRAME_MAGIC 0x76474657u
#define WAL_FLAG_NO_SYNC 1u
#define WAL_FLAG_MARKED 2u /* the mark was kept (durable.h): it must be there */
/* A frame buffer larger than this is not kept for the next group. */
#define VG_WAL_FRAME_KEEP ((size_t)1 << 20)

/* Alone on the first page of a file. */
struct wal_head {
    char magic[8];
    uint32_t version;
    uint32_t crc; /* of this struct, with 0 here */
    uint64_t gen;
    uint64_t salt;
    uint64_t prev_last; /* the generation before is valid up to this revision, and must reach it */
    uint64_t base;      /* the first frame begins with the revision after this one */
    uint32_t flags;
    uint32_t zero;
};

/* At the start of a page; the records follow. */
struct wal_frame {
    uint32_t magic;
    uint32_t crc; /* of the salt, this struct with 0 here, and the payload */
    uint64_t gen;
    uint64_t first, last; /* revisions */
    uint32_t n;           /* records */
    uint32_t payload_len;
};

/* wal_disk.c. With O_DIRECT among the flags, -EINVAL: the file system has no such thing. */
int vg_wal_open_file(int dirfd, unsigned which, int flags, int *ret_fd);
/* Zeros, on a page boundary: what every write must be that goes past the page cache. */
#define WAL_ZEROS ((size_t)64 * 1024)
extern const char vg_wal_zeros[WAL_ZEROS];
/* Write n bytes and make them durable in that manner. *ret_done, set in either case: how many bytes
 * were written without a failure; those of a call that failed may be on the disk all the same. */
VG_CHECK int vg_wal_put(int fd, enum vg_wal_manner manner, const void *p, size_t n, off_t at,
                        size_t *ret_done);
/* Past the page cache? Then places, lengths and addresses are multiples of VG_WAL_PAGE. */
bool vg_wal_is_direct(int fd);
/* Find the best manner for file `which`, whose first page is `page`, and open it so. What the file
 * system cannot do is done in another way; other errors are errors. */
VG_CHECK int vg_wal_choose_manner(struct vg_wal *w, unsigned which,
                                  const char page[static VG_WAL_PAGE]);

/* ---- reading it back (wal_replay.c) ---- */

/* One file, mapped. */
struct wal_file {
    unsigned which;
    int fd;
    const char *p;
    size_t n;
    bool has_head;
    struct wal_head head;   /* host order */
    size_t last_at, last_n; /* the last group that was replayed; 0, 0: none */
};

/* Read-only; the descriptor stays open when it is unmapped. */
VG_CHECK int vg_wal_map(struct wal_file *f, int dirfd, unsigned which);
void vg_wal_unmap(struct wal_file *f);
void vg_wal_read_head(struct wal_file *f, uint64_t salt);
/* Is there a whole frame of generation `gen` at `at`? It is given in host order. */
bool vg_wal_frame_at(const struct wal_file *f, uint64_t salt, uint64_t gen, size_t at,
                     struct wal_frame *ret_frame);

uint32_t vg_wal_head_crc(const struct wal_head *h);
uint32_t vg_wal_frame_crc(uint64_t salt, const struct wal_frame *f, const char *payload);

#endif
