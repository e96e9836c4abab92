/* hash.h - SipHash-1-3 (Aumasson and Bernstein), a keyed hash for tables whose keys peers choose.
 * Who does not know the key cannot make keys collide. Not a checksum for disk: see crc32c.h. */
#ifndef VG_BASE_HASH_H
#define VG_BASE_HASH_H

#include "slice.h"

struct vg_hash_key {
    uint64_t k[2];
};

/* Thread: any. */
uint64_t vg_hash(const struct vg_hash_key *key, struct vg_slice bytes);

/* A key no one can guess: drawn from the kernel once per process, then varied from call to call, so
 * that two tables order the same keys differently. 0 or -errno. Thread: any. */
VG_CHECK int vg_hash_key_make(struct vg_hash_key *ret_key);

#endif
