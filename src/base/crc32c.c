/* crc32c.c - see crc32c.h.
 * The processor's instruction where there is one (x86-64 with SSE4.2, found at run time, so one
 * binary serves all machines), else slicing-by-8 over tables that are made on first use.
 * The instruction takes three cycles but one can start in each: long runs are read as three lanes
 * at once and the three checksums joined. Joining uses that a checksum is linear: that of A
 * followed by B is that of A followed by zeroes, as many as B is long, xor that of B. */
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

/* 256: three of them fit most stored values, and joining costs little beside. */
#define LANE_BYTES 256
#define STRIDE ((size_t)3 * LANE_BYTES)
/* after_lane[k][b]: byte k of a checksum has value b; its part after LANE_BYTES zeroes. */
static uint32_t after_lane[4][256];

static uint32_t divide_byte(uint32_t crc)
{
    for (int bit = 0; bit < 8; bit++)
        crc = (crc >> 1) ^ (POLY_REVERSED & (0u - (crc & 1u)));
    return crc;
}

static void make_slices(void)
{
    for (uint32_t b = 0; b < 256; b++)
        table[0][b] = divide_byte(b);
    for (int k = 1; k < 8; k++) {
        for (uint32_t b = 0; b < 256; b++)
            table[k][b] = (table[k - 1][b] >> 8) ^ table[0][table[k - 1][b] & 0xFF];
    }
}

static uint32_t append_zeroes(uint32_t crc, size_t n)
{
    for (; n > 0; n--)
        crc = (crc >> 8) ^ table[0][crc & 0xFF];
    return crc;
}

static void make_after_lane(void)
{
    for (int k = 0; k < 4; k++) {
        for (uint32_t bit = 1; bit < 256; bit <<= 1) {
            uint32_t part = append_zeroes(bit << (8 * k), LANE_BYTES);
            for (uint32_t low = 0; low < bit; low++)
                after_lane[k][bit | low] = after_lane[k][low] ^ part;
        }
    }
}

static void make_tables(void)
{
    make_slices();
    make_after_lane();
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
    return table[7][v & 0xFF] ^ table[6][v >> 8 & 0xFF] ^ table[5][v >> 16 & 0xFF] ^
           table[4][v >> 24 & 0xFF] ^ table[3][v >> 32 & 0xFF] ^ table[2][v >> 40 & 0xFF] ^
           table[1][v >> 48 & 0xFF] ^ table[0][v >> 56];
}

uint32_t vg_crc32c_portable(uint32_t seed, const void *p, size_t n)
{
    const unsigned char *at = p;
    uint32_t crc = ~seed;
    pthread_once(&table_once, make_tables);
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

static uint32_t skip_lane(uint32_t crc)
{
    return after_lane[0][crc & 0xFF] ^ after_lane[1][crc >> 8 & 0xFF] ^
           after_lane[2][crc >> 16 & 0xFF] ^ after_lane[3][crc >> 24];
}

__attribute__((target("sse4.2"))) static uint32_t three_lanes(uint32_t crc, const unsigned char *at)
{
    uint64_t a = crc, b = 0, c = 0;
    for (const unsigned char *end = at + LANE_BYTES; at < end; at += 8) {
        a = _mm_crc32_u64(a, load_le64(at));
        b = _mm_crc32_u64(b, load_le64(at + LANE_BYTES));
        c = _mm_crc32_u64(c, load_le64(at + 2 * LANE_BYTES));
    }
    return skip_lane(skip_lane((uint32_t)a) ^ (uint32_t)b) ^ (uint32_t)c;
}

__attribute__((target("sse4.2"))) uint32_t vg_crc32c_hardware(uint32_t seed, const void *p,
                                                              size_t n)
{
    const unsigned char *at = p;
    uint64_t crc = ~seed;
    if (n >= STRIDE)
        pthread_once(&table_once, make_tables);
    for (; n >= STRIDE; n -= STRIDE, at += STRIDE)
        crc = three_lanes((uint32_t)crc, at);
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
