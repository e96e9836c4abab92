/* rng.c - see rng.h. The generator is xoshiro256** (Blackman and Vigna), seeded by splitmix64 as
 * its authors advise: consecutive seeds give unrelated streams. */
#include "rng.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

static uint64_t rotate_left(uint64_t x, int by)
{
    return (x << by) | (x >> (64 - by));
}

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

void vg_rng_seed(struct vg_rng *rng, uint64_t seed)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(rng->s); i++)
        rng->s[i] = splitmix64(&seed);
}

uint64_t vg_rng_u64(struct vg_rng *rng)
{
    uint64_t *s = rng->s;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t vg_rng_below(struct vg_rng *rng, uint64_t n)
{
    assert(n > 0);
    uint64_t excess = (0 - n) % n; /* 2^64 mod n: the values below it would favour small results */
    uint64_t x;
    do
        x = vg_rng_u64(rng);
    while (x < excess);
    return x % n;
}

void vg_rng_bytes(struct vg_rng *rng, void *p, size_t n)
{
    unsigned char *at = p;
    while (n > 0) {
        uint64_t word = vg_rng_u64(rng);
        size_t part = VG_MIN(n, sizeof word);
        memcpy(at, &word, part);
        at += part;
        n -= part;
    }
}

int vg_random_bytes(void *p, size_t n)
{
    unsigned char *at = p;
    while (n > 0) {
        ssize_t got = getrandom(at, n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        at += got;
        n -= (size_t)got;
    }
    return 0;
}
