/* escape.c - quoting strings as Go's encoding/json does.
 * Runs of bytes that stand for themselves are found sixteen at a time and copied whole; of a short
 * one, or of the end of a long one, the first and the last bytes are looked at together. Room for
 * the string as it is and its quotes is reserved first, so that only escapes can make the buffer
 * grow. */
#include "escape.h"

#include "bytes.h"
#include "write.h"

static inline bool is_html(char c)
{
    return c == '<' || c == '>' || c == '&';
}

#if defined(__SSE2__)
/* Bit i is set where byte i may need an escape. */
static inline unsigned unsafe_mask(__m128i v)
{
    __m128i angle =
        _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('<')), _mm_cmpeq_epi8(v, _mm_set1_epi8('>')));
    __m128i amp = _mm_cmpeq_epi8(v, _mm_set1_epi8('&'));
    return vg_json_special_mask(v) | (unsigned)_mm_movemask_epi8(_mm_or_si128(angle, amp));
}

/* 4 to 16 bytes, of which the middle may be looked at twice: do all stand for themselves? */
static inline bool is_short_safe(const char *p, size_t n)
{
    uint64_t first = 0, last = 0;
    size_t half = n >= 8 ? 8 : 4;
    if (half == 8) {
        memcpy(&first, p, 8);
        memcpy(&last, p + n - 8, 8);
    } else {
        uint32_t a, b;
        memcpy(&a, p, 4);
        memcpy(&b, p + n - 4, 4);
        first = last = (uint64_t)a << 32 | b;
    }
    return unsafe_mask(_mm_set_epi64x((long long)first, (long long)last)) == 0;
}
#endif

/* The first byte that may need an escape, or end. */
static inline const char *skip_safe(const char *p, const char *end, bool html)
{
    if (!html)
        return vg_json_skip_plain(p, end);
#if defined(__SSE2__)
    for (; end - p >= 16; p += 16) {
        unsigned mask = unsafe_mask(_mm_loadu_si128((const __m128i *)(const void *)p));
        if (mask)
            return p + __builtin_ctz(mask);
    }
    if (end - p >= 4 && is_short_safe(p, (size_t)(end - p)))
        return end;
#endif
    while (p < end && vg_json_is_plain((unsigned char)*p) && !is_html(*p))
        p++;
    return p;
}

/* The letter of a two-byte escape, or 0. */
static char escape_letter(char c)
{
    switch (c) {
    case '"':
    case '\\':
        return c;
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    default:
        return 0;
    }
}

static int append_ascii_escape(struct vg_buf *out, char c)
{
    static const char hex[] = "0123456789abcdef";
    char letter = escape_letter(c);
    if (letter)
        return vg_buf_append(out, (char[2]){'\\', letter}, 2);
    char text[6] = {'\\', 'u', '0', '0', hex[(unsigned char)c >> 4], hex[c & 15]};
    return vg_buf_append(out, text, sizeof text);
}

/* U+2028 and U+2029 end lines in JavaScript: Go always escapes them. */
static bool is_line_separator(const char *p, size_t n)
{
    return n == 3 && memcmp(p, "\xe2\x80", 2) == 0 && (p[2] & ~1) == (char)0xa8;
}

/* The character at *p, which skip_safe stopped at. */
static int append_unsafe(struct vg_buf *out, const char **p, const char *end)
{
    const char *at = *p;
    if ((unsigned char)*at < 0x80) {
        *p += 1;
        return append_ascii_escape(out, *at);
    }
    size_t n = vg_json_utf8_len(at, end);
    *p += n ? n : 1;
    if (n == 0)
        return vg_buf_append(out, "\\ufffd", 6);
    if (is_line_separator(at, n))
        return vg_buf_append(out, at[2] & 1 ? "\\u2029" : "\\u2028", 6);
    return vg_buf_append(out, at, n);
}

/* The rest of a string from the first byte that is not safe. */
static int append_rest(struct vg_buf *out, const char *p, const char *end, bool html)
{
    while (p < end) {
        int r = append_unsafe(out, &p, end);
        if (r < 0)
            return r;
        const char *q = skip_safe(p, end, html);
        r = vg_buf_append(out, p, (size_t)(q - p));
        if (r < 0)
            return r;
        p = q;
    }
    return vg_buf_append(out, "\"", 1);
}

/* s and its closing quote; the opening one is in place, and there is room when nothing is escaped.
 */
static int append_body(struct vg_buf *out, struct vg_slice s, bool html)
{
    const char *p = s.n ? s.p : "";
    const char *end = p + s.n;
    const char *q = skip_safe(p, end, html);
    size_t run = (size_t)(q - p);
    memcpy(out->p + out->n, p, run);
    out->n += run;
    if (VG_UNLIKELY(q < end))
        return append_rest(out, q, end, html);
    out->p[out->n++] = '"';
    return 0;
}

int vg_json_append_quoted(struct vg_buf *out, struct vg_slice s, unsigned flags)
{
    if (s.n > SIZE_MAX - 2)
        return VIGIL_E_TOO_LARGE;
    if (VG_UNLIKELY(out->cap - out->n < s.n + 2)) {
        int r = vg_buf_reserve(out, s.n + 2);
        if (r < 0)
            return r;
    }
    out->p[out->n++] = '"';
    return flags & VG_JSON_ESCAPE_HTML ? append_body(out, s, true) : append_body(out, s, false);
}

int vg_json_write_string(struct vg_buf *out, struct vg_slice s, unsigned flags)
{
    size_t before = out->n;
    int r = vg_json_append_quoted(out, s, flags);
    if (r < 0)
        out->n = before;
    return r;
}
