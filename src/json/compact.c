/* compact.c - one look at a text, 64 bytes at a time; see compact.h.
 * Each block becomes masks of 64 bits. Which bytes lie inside strings follows from the quotes by a
 * running parity, as in skip.c; here a block is refused when it has a byte that is never written as
 * it is, or a blank outside of strings. Escapes are looked at one by one: they are few. */
#include "compact.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define BLOCK 64u

/* Bit i tells of byte i. */
struct masks {
    uint64_t quote, slash, blank;
    uint64_t bad; /* never written as they are: control characters, what HTML escapes, all that is
                   * not ASCII */
};

#if defined(__SSE2__)
static inline uint64_t bits_of(__m128i v)
{
    return (uint64_t)(uint32_t)_mm_movemask_epi8(v);
}

static inline struct masks classify(const char *p)
{
    struct masks m = {0};
    for (unsigned i = 0; i < BLOCK; i += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
        /* As signed bytes what is not ASCII is below the blank too. '<' and '>' differ by 2. */
        __m128i low = _mm_cmplt_epi8(v, _mm_set1_epi8(0x20));
        __m128i angle = _mm_cmpeq_epi8(_mm_or_si128(v, _mm_set1_epi8(2)), _mm_set1_epi8('>'));
        __m128i amp = _mm_cmpeq_epi8(v, _mm_set1_epi8('&'));
        m.bad |= bits_of(_mm_or_si128(low, _mm_or_si128(angle, amp))) << i;
        m.quote |= bits_of(_mm_cmpeq_epi8(v, _mm_set1_epi8('"'))) << i;
        m.slash |= bits_of(_mm_cmpeq_epi8(v, _mm_set1_epi8('\\'))) << i;
        m.blank |= bits_of(_mm_cmpeq_epi8(v, _mm_set1_epi8(' '))) << i;
    }
    return m;
}
#else
static inline bool is_bad(unsigned char c)
{
    return c < 0x20 || c >= 0x80 || c == '<' || c == '>' || c == '&';
}

static inline struct masks classify(const char *p)
{
    struct masks m = {0};
    for (unsigned i = 0; i < BLOCK; i++) {
        uint64_t bit = (uint64_t)1 << i;
        m.bad |= is_bad((unsigned char)p[i]) ? bit : 0;
        m.quote |= p[i] == '"' ? bit : 0;
        m.slash |= p[i] == '\\' ? bit : 0;
        m.blank |= p[i] == ' ' ? bit : 0;
    }
    return m;
}
#endif

/* Bit i of the result: is the number of bits set in bits 0..i odd? */
static inline uint64_t parity(uint64_t bits)
{
    for (unsigned shift = 1; shift < 64; shift *= 2)
        bits ^= bits << shift;
    return bits;
}

/* The bytes that backslashes escape; *carry: the first byte is one, and then: that of the next
 * block is. False: one of them makes an escape that we would spell otherwise. */
static bool read_escapes(const char *p, size_t n, uint64_t slash, uint64_t *carry,
                         uint64_t *ret_escaped)
{
    uint64_t escaped = *carry;
    *carry = 0;
    slash &= ~escaped;
    while (slash) {
        uint64_t lowest = slash & (0 - slash);
        escaped |= lowest << 1;
        *carry = lowest >> 63;
        slash &= ~(lowest | lowest << 1);
    }
    for (uint64_t rest = escaped; rest; rest &= rest - 1) {
        unsigned i = (unsigned)__builtin_ctzll(rest);
        if (i < n && !memchr("\"\\bfnrt", p[i], 7))
            return false;
    }
    *ret_escaped = escaped;
    return true;
}

struct state {
    uint64_t escaped, in_string; /* as one block leaves it to the next; all ones in a string */
};

/* A block of which n bytes count; the rest is quiet. */
static inline bool is_block_compact(const char *p, size_t n, struct state *s)
{
    struct masks m = classify(p);
    uint64_t escaped = s->escaped;
    if (m.bad)
        return false;
    if ((m.slash | escaped) && !read_escapes(p, n, m.slash, &s->escaped, &escaped))
        return false;
    uint64_t inside = parity(m.quote & ~escaped) ^ s->in_string;
    s->in_string = 0 - (inside >> 63);
    return (m.blank & ~inside) == 0;
}

bool vg_json_is_compact(struct vg_slice value)
{
    struct state s = {0};
    size_t at = 0;
    for (; value.n - at >= BLOCK; at += BLOCK)
        if (!is_block_compact(value.p + at, BLOCK, &s))
            return false;
    char last[BLOCK];
    memset(last, '0', sizeof last);
    if (value.n > at)
        memcpy(last, value.p + at, value.n - at);
    return is_block_compact(last, value.n - at, &s);
}
