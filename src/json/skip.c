/* skip.c - jumping over strings and containers.
 *
 * A container is skipped in blocks of 64 bytes. Each block becomes four masks of 64 bits (quotes,
 * backslashes, opening and closing brackets); which bytes lie inside strings follows from the
 * quotes by a running parity, and brackets outside strings are counted, not visited: only a block
 * that has enough closing brackets to reach depth zero is looked at bit by bit.
 *
 *     text      {"a{":["\"",1]}
 *     quotes     1  1  1  11          the escaped quote counts no more than the backslash
 *     in string  111   111            parity: from an opening quote up to before the closing one
 *     open      1     1               without those in strings
 *     close                  11       the second one brings the depth to zero
 *
 * Three ways to make the masks: AVX2 where the processor has it, SSE2, and plain C. The last block
 * of a text is copied into a padded one: nothing is read at or past `end`. */
#include "skip.h"

#if defined(__x86_64__) && defined(__SSE2__)
#include <immintrin.h>
#define HAVE_X86_64 1
#else
#define HAVE_X86_64 0
#endif

#define BLOCK 64

/* Bit i tells of byte i. */
struct masks {
    uint64_t quote, slash, open, close;
};

/* What one block tells the next. */
struct carry {
    uint64_t escaped;   /* 1: the first byte is escaped by a backslash before it */
    uint64_t in_string; /* all ones inside a string */
    size_t depth;       /* open containers */
};

/* ---- masks in three ways ---- */

static inline struct masks classify_c(const char *p)
{
    struct masks m = {0};
    for (unsigned i = 0; i < BLOCK; i++) {
        uint64_t bit = (uint64_t)1 << i;
        m.quote |= p[i] == '"' ? bit : 0;
        m.slash |= p[i] == '\\' ? bit : 0;
        m.open |= (p[i] | 0x20) == '{' ? bit : 0; /* '[' | 0x20 is '{' */
        m.close |= (p[i] | 0x20) == '}' ? bit : 0;
    }
    return m;
}

#if HAVE_X86_64
static inline struct masks classify_sse2(const char *p)
{
    struct masks m = {0};
    for (unsigned i = 0; i < BLOCK; i += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
        __m128i folded = _mm_or_si128(v, _mm_set1_epi8(0x20)); /* '[' | 0x20 is '{' */
        m.quote |= (uint64_t)_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8('"'))) << i;
        m.slash |= (uint64_t)_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8('\\'))) << i;
        m.open |= (uint64_t)_mm_movemask_epi8(_mm_cmpeq_epi8(folded, _mm_set1_epi8('{'))) << i;
        m.close |= (uint64_t)_mm_movemask_epi8(_mm_cmpeq_epi8(folded, _mm_set1_epi8('}'))) << i;
    }
    return m;
}

#define AVX2 __attribute__((target("avx2,bmi,popcnt,pclmul")))

AVX2 static inline uint64_t equal_avx2(__m256i low, __m256i high, char c)
{
    __m256i want = _mm256_set1_epi8(c);
    uint32_t a = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, want));
    uint32_t b = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, want));
    return a | (uint64_t)b << 32;
}

AVX2 static inline struct masks classify_avx2(const char *p)
{
    __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)p);
    __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(p + 32));
    __m256i fold = _mm256_set1_epi8(0x20);
    __m256i low_folded = _mm256_or_si256(low, fold), high_folded = _mm256_or_si256(high, fold);
    return (struct masks){.quote = equal_avx2(low, high, '"'),
                          .slash = equal_avx2(low, high, '\\'),
                          .open = equal_avx2(low_folded, high_folded, '{'),
                          .close = equal_avx2(low_folded, high_folded, '}')};
}

/* A carry-less product with all ones is a running parity. */
AVX2 static inline uint64_t parity_clmul(uint64_t bits)
{
    __m128i product =
        _mm_clmulepi64_si128(_mm_set_epi64x(0, (long long)bits), _mm_set1_epi8((char)0xff), 0);
    return (uint64_t)_mm_cvtsi128_si64(product);
}
#endif

/* Bit i of the result: is the number of bits set in bits 0..i odd? */
static inline uint64_t parity_c(uint64_t bits)
{
    for (unsigned shift = 1; shift < 64; shift *= 2)
        bits ^= bits << shift;
    return bits;
}

/* ---- from masks to the end of the container ---- */

/* Bytes that a backslash before them takes the meaning from. */
static inline uint64_t escaped_bytes(uint64_t slash, uint64_t *carry)
{
    uint64_t escaped = *carry;
    *carry = 0;
    slash &= ~escaped;
    while (slash) {
        uint64_t lowest = slash & (0 - slash);
        escaped |= lowest << 1;
        *carry = lowest >> 63;
        slash &= ~(lowest | lowest << 1); /* an escaped backslash escapes nothing */
    }
    return escaped;
}

/* The position in the block where the depth falls to zero, or BLOCK; c->depth goes on. */
static inline unsigned count_brackets(uint64_t open, uint64_t close, struct carry *c)
{
    size_t depth = c->depth;
    if ((size_t)__builtin_popcountll(close) >= depth) {
        size_t closed = 0;
        for (uint64_t rest = close; rest; rest &= rest - 1) {
            unsigned at = (unsigned)__builtin_ctzll(rest);
            uint64_t before = ((uint64_t)1 << at) - 1;
            if (depth + (size_t)__builtin_popcountll(open & before) == ++closed)
                return at;
        }
    }
    c->depth = depth + (size_t)__builtin_popcountll(open) - (size_t)__builtin_popcountll(close);
    return BLOCK;
}

typedef struct masks (*classify_fn)(const char *p);
typedef uint64_t (*parity_fn)(uint64_t bits);

static inline __attribute__((always_inline)) unsigned
skip_block(const char *p, struct carry *c, classify_fn classify, parity_fn parity)
{
    struct masks m = classify(p);
    uint64_t quote = m.quote & ~escaped_bytes(m.slash, &c->escaped);
    uint64_t in_string = parity(quote) ^ c->in_string;
    c->in_string = 0 - (in_string >> 63);
    return count_brackets(m.open & ~in_string, m.close & ~in_string, c);
}

static inline __attribute__((always_inline)) const char *
skip_blocks(const char *p, const char *end, size_t depth, classify_fn classify, parity_fn parity)
{
    struct carry c = {.depth = depth};
    for (; end - p >= BLOCK; p += BLOCK) {
        unsigned at = skip_block(p, &c, classify, parity);
        if (at < BLOCK)
            return p + at + 1;
    }
    char last[BLOCK];
    memset(last, ' ', sizeof last);
    memcpy(last, p, (size_t)(end - p));
    unsigned at = skip_block(last, &c, classify, parity);
    return at < BLOCK ? p + at + 1 : NULL;
}

static const char *skip_plain(const char *p, const char *end, size_t depth)
{
    return skip_blocks(p, end, depth, classify_c, parity_c);
}

#if HAVE_X86_64
static const char *skip_sse2(const char *p, const char *end, size_t depth)
{
    return skip_blocks(p, end, depth, classify_sse2, parity_c);
}

AVX2 static const char *skip_avx2(const char *p, const char *end, size_t depth)
{
    return skip_blocks(p, end, depth, classify_avx2, parity_clmul);
}

static inline bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("pclmul");
}
#endif

const char *vg_json_skip_container_by(enum vg_json_skip_way way, const char *p, const char *end)
{
#if HAVE_X86_64
    if (way == VG_JSON_SKIP_AVX2 && has_avx2())
        return skip_avx2(p, end, 0);
    if (way == VG_JSON_SKIP_SSE2)
        return skip_sse2(p, end, 0);
#endif
    (void)way;
    return skip_plain(p, end, 0);
}

/* depth: of containers that are open before p. */
static const char *skip(const char *p, const char *end, size_t depth)
{
#if HAVE_X86_64
    return has_avx2() ? skip_avx2(p, end, depth) : skip_sse2(p, end, depth);
#else
    return skip_plain(p, end, depth);
#endif
}

const char *vg_json_skip_container(const char *p, const char *end)
{
    return skip(p, end, 0);
}

const char *vg_json_skip_rest(const char *p, const char *end)
{
    return skip(p, end, 1);
}

/* ---- strings ---- */

/* The first quote or backslash, or end. */
static inline const char *find_quote_or_slash(const char *p, const char *end)
{
#if defined(__SSE2__)
    for (; end - p >= 16; p += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')),
                                   _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
        unsigned mask = (unsigned)_mm_movemask_epi8(hit);
        if (mask)
            return p + __builtin_ctz(mask);
    }
#endif
    while (p < end && *p != '"' && *p != '\\')
        p++;
    return p;
}

const char *vg_json_skip_string(const char *p, const char *end, bool *ret_escaped)
{
    *ret_escaped = false;
    p = find_quote_or_slash(p + 1, end);
    while (p < end && *p == '\\') {
        *ret_escaped = true;
        if (end - p < 2)
            return NULL;
        p = find_quote_or_slash(p + 2, end);
    }
    return p < end ? p + 1 : NULL;
}
