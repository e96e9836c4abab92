/* wal_int.h - the log's form on the disk. Integers are little endian. */
#ifndef VG_STORAGE_WAL_INT_H
#define VG_STORAGE_WAL_INT_H

#include <endian.h>

#include "wal.h"

#define WAL_MAGIC "vigilwal"
#define WAL_VERSION 1
#define WAL_FRAME_MAGIC 0x76474657u
#define WAL_FLAG_NO_SYNC 1u
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

int vg_wal_open_file(int dirfd, unsigned which, int flags, int *ret_fd);
uint32_t vg_wal_head_crc(const struct wal_head *h);
uint32_t vg_wal_frame_crc(uint64_t salt, const struct wal_frame *f, const char *payload);

#endif
