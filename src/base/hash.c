/* hash.c - see hash.h. One round per word and three at the end: enough for tables, and half the
 * cost of SipHash-2-4 on the short keys that we have. */
#include "hash.h"

#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>

#include "rng.h"

struct sip {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotate_left(uint64_t x, int by)
{
    return (x << by) | (x >> (64 - by));
}

static inline void sip_round(struct sip *s)
{
    s->v0 += s->v1;
    s->v1 = rotate_left(s->v1, 13) ^ s->v0;
    s->v0 = rotate_left(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotate_left(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotate_left(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotate_left(s->v1, 17) ^ s->v2;
    s->v2 = rotate_left(s->v2, 32);
}

static inline void sip_word(struct sip *s, uint64_t word)
{
    s->v3 ^= word;
    sip_round(s);
    s->v0 ^= word;
}

static uint64_t load_le64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return le64toh(v);
}

/* The last, partial word: up to seven bytes, and the length in the highest byte. */
static uint64_t last_word(const char *p, size_t n, size_t total)
{
    uint64_t word = (uint64_t)total << 56;
    for (size_t i = 0; i < n; i++)
        word |= (uint64_t)(unsigned char)p[i] << (8 * i);
    return word;
}

uint64_t vg_hash(const struct vg_hash_key *key, struct vg_slice bytes)
{
    struct sip s = {
        key->k[0] ^ UINT64_C(0x736f6d6570736575), key->k[1] ^ UINT64_C(0x646f72616e646f6d),
        key->k[0] ^ UINT64_C(0x6c7967656e657261), key->k[1] ^ UINT64_C(0x7465646279746573)};
    const char *at = bytes.p;
    size_t left = bytes.n;
    for (; left >= 8; left -= 8, at += 8)
        sip_word(&s, load_le64(at));
    sip_word(&s, last_word(at, left, bytes.n));
    s.v2 ^= 0xFF;
    sip_round(&s);
    sip_round(&s);
    sip_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

static pthread_once_t process_once = PTHREAD_ONCE_INIT;
static struct vg_hash_key process_key;
static int process_error;
static _Atomic uint64_t keys_made;

static void draw_process_key(void)
{
    process_error = vg_random_bytes(&process_key, sizeof process_key);
}

int vg_hash_key_make(struct vg_hash_key *ret_key)
{
    pthread_once(&process_once, draw_process_key);
    if (process_error < 0)
        return process_error;
    uint64_t n = atomic_fetch_add_explicit(&keys_made, 1, memory_order_relaxed);
    *ret_key = (struct vg_hash_key){{process_key.k[0] + n, process_key.k[1]}};
    return 0;
}
