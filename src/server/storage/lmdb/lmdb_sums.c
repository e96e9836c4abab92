/* lmdb_sums.c - see lmdb_sums.h. */
#include "lmdb_sums.h"

#include "base/crc32c.h"
#include "base/hash.h"
#include "lmdb_int.h"

#define SUMS_MAGIC "vigilsum"
#define SUMS_VERSION 1u
/* LMDB's compacting copy begins again with this transaction. */
#define TXNID_OF_A_COPY 1u

/* A fixed key: the sums are on the disk. They are to find accidents, not attackers. */
static uint64_t hash_of(unsigned which, struct vg_slice key, struct vg_slice value)
{
    struct vg_hash_key k = {{0x766967696c000001u + which, 0x73756d73u}};
    uint64_t h = vg_hash(&k, key);
    if (which == VG_SUM_LOG)
        return h;
    k.k[1] ^= h;
    return vg_hash(&k, value);
}

void vg_sums_add(struct vg_sums *s, unsigned which, struct vg_slice key, struct vg_slice value)
{
    s->n[which]++;
    s->sum[which] += hash_of(which, key, value);
}

void vg_sums_remove(struct vg_sums *s, unsigned which, struct vg_slice key, struct vg_slice value)
{
    s->n[which]--;
    s->sum[which] -= hash_of(which, key, value);
}

static uint32_t record_crc(const struct vg_sums_record *r)
{
    struct vg_sums_record copy = *r;
    copy.crc = 0;
    return vg_crc32c(0, &copy, sizeof copy);
}

void vg_sums_record_make(struct vg_sums_record *r, const struct vg_sums *sums, uint64_t txnid,
                         const struct store_meta *meta)
{
    *r = (struct vg_sums_record){
        .magic = SUMS_MAGIC,
        .version = SUMS_VERSION,
        .txnid = txnid,
        .meta_crc = vg_crc32c(0, meta, sizeof *meta),
        .sums = *sums,
    };
    r->crc = record_crc(r);
}

int vg_sums_record_read(struct vg_slice in, uint64_t txnid, const struct store_meta *meta,
                        struct vg_sums *ret_sums)
{
    struct vg_sums_record r;
    if (in.n != sizeof r)
        return VIGIL_E_STORE_DAMAGED;
    memcpy(&r, in.p, sizeof r);
    if (memcmp(r.magic, SUMS_MAGIC, sizeof r.magic) != 0 || record_crc(&r) != r.crc)
        return VIGIL_E_STORE_DAMAGED;
    if (r.version != SUMS_VERSION || (r.txnid != txnid && txnid != TXNID_OF_A_COPY))
        return 0;
    if (r.meta_crc != vg_crc32c(0, meta, sizeof *meta))
        return VIGIL_E_STORE_DAMAGED;
    *ret_sums = r.sums;
    return 1;
}
