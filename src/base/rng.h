/* rng.h - random numbers: repeatable ones from a seed, and the kernel's for secrets and uids.
 * struct vg_rng is for tests, jitter and models; who sees its output can foretell the rest, so
 * nothing secret comes from it. Thread: one owner per vg_rng; vg_random_bytes any. */
#ifndef VG_BASE_RNG_H
#define VG_BASE_RNG_H

#include "macros.h"

struct vg_rng {
    uint64_t s[4]; /* not all zero, which seeding sees to */
};

void vg_rng_seed(struct vg_rng *rng, uint64_t seed);
uint64_t vg_rng_u64(struct vg_rng *rng);
/* Uniform in [0, n); n must not be 0. */
uint64_t vg_rng_below(struct vg_rng *rng, uint64_t n);
void vg_rng_bytes(struct vg_rng *rng, void *p, size_t n);

/* Fill from getrandom(2): for keys, uids and hash seeds. 0 or -errno; never less than asked. */
VG_CHECK int vg_random_bytes(void *p, size_t n);

#endif
