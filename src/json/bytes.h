/* bytes.h - the innermost loops over bytes, shared within the folder.
 * SSE2 is part of x86-64 and is used sixteen bytes at a time where at least sixteen remain; the
 * rest of a text, and other machines, go byte by byte. Nothing here reads at or past `end`. */
#ifndef VG_JSON_BYTES_H
#define VG_JSON_BYTES_H

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <stdint.h>

#include "base/slice.h"

/* May this byte stand in a string as it is, without a further look? Not the quote, the backslash,
 * control characters, nor anything beyond ASCII. */
static inline bool vg_json_is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

static inline bool vg_json_is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* n bytes of both are the same. Keys are short: up to 16 bytes are compared by two words that may
 * overlap, which takes less than a call of memcmp. */
static inline bool vg_json_same_bytes(const char *a, const char *b, size_t n)
{
    if (n >= 8 && n <= 16) {
        uint64_t x[2], y[2];
        memcpy(&x[0], a, 8);
        memcpy(&y[0], b, 8);
        memcpy(&x[1], a + n - 8, 8);
        memcpy(&y[1], b + n - 8, 8);
        return ((x[0] ^ y[0]) | (x[1] ^ y[1])) == 0;
    }
    if (n >= 4 && n < 8) {
        uint32_t x[2], y[2];
        memcpy(&x[0], a, 4);
        memcpy(&y[0], b, 4);
        memcpy(&x[1], a + n - 4, 4);
        memcpy(&y[1], b + n - 4, 4);
        return ((x[0] ^ y[0]) | (x[1] ^ y[1])) == 0;
    }
    return n == 0 || (a[0] == b[0] && memcmp(a, b, n) == 0);
}

#if defined(__SSE2__)
/* Bit i is set where byte i is not plain. Bytes from 0x80 are negative, so one signed comparison
 * finds them together with the control characters. */
static inline unsigned vg_json_special_mask(__m128i v)
{
    __m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
    __m128i slash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
    __m128i low = _mm_cmplt_epi8(v, _mm_set1_epi8(0x20));
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, slash), low));
}
#endif

/* The first byte in [p, end) that is not plain, or end. */
static inline const char *vg_json_skip_plain(const char *p, const char *end)
{
#if defined(__SSE2__)
    while (VG_LIKELY(end - p >= 16)) {
        unsigned mask = vg_json_special_mask(_mm_loadu_si128((const __m128i *)(const void *)p));
        if (VG_LIKELY(mask))
            return p + __builtin_ctz(mask);
        p += 16;
    }
#endif
    while (p < end && vg_json_is_plain((unsigned char)*p))
        p++;
    return p;
}

/* A run of white space, past its end. Out of line in spirit: compact texts never come here. */
static inline const char *vg_json_skip_space_run(const char *p, const char *end)
{
#if defined(__SSE2__)
    while (end - p >= 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i blank = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8(' ')),
                                     _mm_cmpeq_epi8(v, _mm_set1_epi8('\n')));
        unsigned mask = (unsigned)_mm_movemask_epi8(blank) ^ 0xffffu;
        if (mask) {
            p += __builtin_ctz(mask);
            break;
        }
        p += 16;
    }
#endif
    while (p < end && vg_json_is_space(*p))
        p++;
    return p;
}

static inline const char *vg_json_skip_space(const char *p, const char *end)
{
    if (VG_LIKELY(p < end && (unsigned char)*p > ' '))
        return p;
    return vg_json_skip_space_run(p, end);
}

/* ---- text.c ---- */

/* The character that a backslash and c stand for; 0 for u and for what is no escape. */
extern const char vg_json_short_escapes[256];
static inline char vg_json_short_escape(char c)
{
    return vg_json_short_escapes[(unsigned char)c];
}

/* Bytes of the well-formed UTF-8 sequence at p (1 to 4), or 0: malformed or cut off by end. */
size_t vg_json_utf8_len(const char *p, const char *end);
/* Bytes of the escape at p (p[0] is a backslash): 2, or 6 for \uXXXX, or 0: malformed or cut off.
 */
size_t vg_json_escape_len(const char *p, const char *end);

/* Decode one unit of the inside of a string: a run of plain bytes counts as one unit each, an
 * escape (a surrogate pair together), or a UTF-8 sequence. Malformed UTF-8 and lone surrogates give
 * U+FFFD, as in Go. Advances *p, which is below end, and writes at most 4 bytes (and at most three
 * per byte advanced). Returns how many; 0 means a malformed escape, and *p is unchanged. */
size_t vg_json_decode_unit(const char **p, const char *end, char out[4]);

#endif
