/* lmdb_sums.h - checksums of our own for what has none in LMDB.
 * A record carries a checksum. The keys of `log`, the entries of `keys` and `ttl`, and the store's
 * own meta record do not: a flipped bit there would hide a key or bring a deleted one back. So
 * every transaction also stores, beside the meta record, how many entries each tree has and the sum
 * of a hash over each entry. Adding and removing an entry adds and subtracts its hash, so this
 * costs two or three hashes for a record; opening adds all entries up again and compares. */
#ifndef VG_STORAGE_LMDB_SUMS_H
#define VG_STORAGE_LMDB_SUMS_H

#include "lmdb_pages.h"

struct store_meta;

enum { VG_SUM_LOG, VG_SUM_KEYS, VG_SUM_TTL, VG_SUMS };

struct vg_sums {
    uint64_t n[VG_SUMS], sum[VG_SUMS];
};

/* Of `log` only the key counts: the record has a checksum. */
void vg_sums_add(struct vg_sums *s, unsigned which, struct vg_slice key, struct vg_slice value);
void vg_sums_remove(struct vg_sums *s, unsigned which, struct vg_slice key, struct vg_slice value);

/* As it is stored under VG_SUMS_KEY; native integers, as in struct store_meta. */
#define VG_SUMS_KEY "sums"
struct vg_sums_record {
    char magic[8];
    uint32_t version;
    uint32_t crc;      /* of this struct, with 0 here */
    uint64_t txnid;    /* of the transaction that stored it: a vigil that knows no sums leaves it */
    uint32_t meta_crc; /* of the store's meta record */
    uint32_t zero;
    struct vg_sums sums;
};
void vg_sums_record_make(struct vg_sums_record *r, const struct vg_sums *sums, uint64_t txnid,
                         const struct store_meta *meta);
/* 1: it is whole and belongs to this meta record and transaction; 0: another vigil has written
 * since; VIGIL_E_STORE_DAMAGED. */
VG_CHECK int vg_sums_record_read(struct vg_slice in, uint64_t txnid, const struct store_meta *meta,
                                 struct vg_sums *ret_sums);

#endif
