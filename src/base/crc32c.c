/* crc32c.c - see crc32c.h.
 * The processor's instruction where there is one (x86-64 with SSE4.2, found at run time, so one
 * binary serves all machines), else slicing-by-8 over tables that are made on first use. */
#include "crc32c.h"

#include <endian.h>
#include <pthread.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

/* The polynomial 0x1EDC6F41 with its bits reversed: bit 0 is the highest power. */
#define POLY_REVERSED 0x82F63B78u

/* table[k][b]: the checksum of byte b followed by k zero bytes. */
static uint32_t table[8][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static uint32_t divide_byte(uint32_t crc)
{
    for (int bit = 0; bit < 8; bit++)
        crc = (crc >> 1) ^ (POLY_REVERSED & (0u - (crc & 1u)));
    return crc;
}

static void make_table(void)
{
    for (uint32_t b = 0; b < 256; b++)
        table[0][b] = divide_byte(b);
    for (int k = 1; k < 8; k++) {
        for (uint32_t b = 0; b < 256; b++)
            table[k][b] = (table[k - 1][b] >> 8) ^ table[0][table[k - 1][b] & 0xFF];
    }
}

static uint64_t load_le64(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return le64toh(v);
}

static uint32_t eight_bytes(uint32_t crc, const unsigned char *p)
{
    uint64_t v = load_le64(p) ^ crc;
    uint32_t next = 0;
    for (int k = 0; k < 8; k++)
        next ^= table[7 - k][(v >> (8 * k)) & 0xFF];
    return next;
}

uint32_t vg_crc32c_portable(uint32_t seed, const void *p, size_t n)
{
    const unsigned char *at = p;
    uint32_t crc = ~seed;
    pthread_once(&table_once, make_table);
    for (; n >= 8; n -= 8, at += 8)
        crc = eight_bytes(crc, at);
    for (; n > 0; n--, at++)
        crc = (crc >> 8) ^ table[0][(crc ^ *at) & 0xFF];
    return ~crc;
}

#if defined(__x86_64__)
bool vg_crc32c_has_hardware(void)
{
    return __builtin_cpu_supports("sse4.2");
}

__attribute__((target("sse4.2"))) uint32_t vg_crc32c_hardware(uint32_t seed, const void *p,
                                                              size_t n)
{
    const unsigned char *at = p;
    uint64_t crc = ~seed;
    for (; n >= 8; n -= 8, at += 8)
        crc = _mm_crc32_u64(crc, load_le64(at));
    for (; n > 0; n--, at++)
        crc = _mm_crc32_u8((uint32_t)crc, *at);
    return ~(uint32_t)crc;
}
#else
bool vg_crc32c_has_hardware(void)
{
    return false;
}

uint32_t vg_crc32c_hardware(uint32_t seed, const void *p, size_t n)
{
    return vg_crc32c_portable(seed, p, n);
}
#endif

uint32_t vg_crc32c(uint32_t seed, const void *p, size_t n)
{
    return vg_crc32c_has_hardware() ? vg_crc32c_hardware(seed, p, n)
                                    : vg_crc32c_portable(seed, p, n);
}
