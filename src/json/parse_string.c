/* parse_string.c - strings that are not plain ASCII.
 * First the closing quote is found, which takes no more than a look at quotes and backslashes; it
 * tells how much memory the string can need and whether it has escapes. Without escapes the string
 * is checked where it stands and stays in the source. With escapes it is checked and unescaped in
 * one pass. */
#include <errno.h>

#include "bytes.h"
#include "parse_int.h"
#include "skip.h"

/* Plain runs are copied in steps of this size, beyond their end if need be. */
#define STEP 16

static const char *fail_special(struct vg_json_parser *ps, const char *p)
{
    if (*p == '\\')
        return vg_json_parse_fail(ps, VIGIL_E_JSON_SYNTAX, p, "a string has a malformed escape");
    if ((unsigned char)*p < 0x20)
        return vg_json_parse_fail(ps, VIGIL_E_JSON_SYNTAX, p,
                                  "a string has a control character that is not escaped");
    return vg_json_parse_fail(ps, VIGIL_E_JSON_UTF8, p, "a string is not valid UTF-8");
}

/* Bytes of the well-formed unit at p, which is not plain: an escape, a UTF-8 sequence, or 0. */
static size_t unit_len(const char *p, const char *end)
{
    if (*p == '\\')
        return vg_json_escape_len(p, end);
    return (unsigned char)*p < 0x80 ? 0 : vg_json_utf8_len(p, end);
}

/* The first fault in [p, end), or end. */
static const char *find_fault(const char *p, const char *end)
{
    for (;;) {
        p = vg_json_skip_plain(p, end);
        size_t n = p < end ? unit_len(p, end) : 0;
        if (n == 0)
            return p;
        p += n;
    }
}

/* The text ends inside a string. Another fault before that is nearer to the cause. */
static const char *fail_open(struct vg_json_parser *ps, const char *p)
{
    const char *fault = find_fault(p, ps->end);
    if (fault < ps->end)
        return fail_special(ps, fault);
    return vg_json_parse_fail(ps, VIGIL_E_JSON_SYNTAX, fault, "a string has no closing quote");
}

/* Copy what is plain from p on. Advances *out; returns the first byte that is not plain. There is
 * one, since the closing quote follows, and out has STEP bytes more than needed. */
static inline const char *copy_plain(const struct vg_json_parser *ps, const char *p, char **out)
{
#if defined(__SSE2__)
    while (VG_LIKELY(ps->end - p >= STEP)) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        unsigned mask = vg_json_special_mask(v);
        _mm_storeu_si128((__m128i *)(void *)*out, v);
        unsigned n = mask ? (unsigned)__builtin_ctz(mask) : STEP;
        p += n;
        *out += n;
        if (mask)
            return p;
    }
#endif
    while (p < ps->end && vg_json_is_plain((unsigned char)*p))
        *(*out)++ = *p++;
    return p;
}

/* Put what the unit at p stands for. Returns the position after it, or NULL at a fault. */
static inline const char *copy_unit(const char *p, const char *close, char **out, bool replace)
{
    char c = *p == '\\' ? vg_json_short_escape(p[1]) : '\0';
    if (VG_LIKELY(c)) {
        *(*out)++ = c;
        return p + 2;
    }
    bool bad_utf8 = (unsigned char)*p >= 0x80 && vg_json_utf8_len(p, close) == 0;
    if ((unsigned char)*p < 0x20 || (bad_utf8 && !replace))
        return NULL;
    size_t n = vg_json_decode_unit(&p, close, *out);
    *out += n;
    return n ? p : NULL;
}

/* [begin, close) into the arena. A bad byte may become three. */
static const char *copy_string(struct vg_json_parser *ps, const char *begin, const char *close,
                               struct vg_json_string *ret)
{
    size_t raw = (size_t)(close - begin);
    size_t room = (ps->replace_bad_utf8 ? 3 * raw : raw) + STEP;
    char *text =
        raw <= UINT32_MAX / 3 || !ps->replace_bad_utf8 ? vg_arena_alloc(ps->arena, room, 1) : NULL;
    if (!text)
        return vg_json_parse_fail(ps, -ENOMEM, begin, "out of memory");
    char *out = text;
    const char *p = copy_plain(ps, begin, &out);
    while (p < close) {
        const char *next = copy_unit(p, close, &out, ps->replace_bad_utf8);
        if (VG_UNLIKELY(!next))
            return fail_special(ps, p);
        p = copy_plain(ps, next, &out);
    }
    *ret = (struct vg_json_string){.text = text, .n = (uint32_t)(out - text)};
    return close + 1;
}

const char *vg_json_parse_string_slow(struct vg_json_parser *ps, const char *begin, const char *p,
                                      struct vg_json_string *ret)
{
    bool escaped = false;
    const char *past = vg_json_skip_string(p - 1, ps->end, &escaped);
    if (!past)
        return fail_open(ps, p);
    const char *close = past - 1;
    if (!escaped) {
        const char *fault = find_fault(p, close);
        if (fault == close) {
            *ret = (struct vg_json_string){.text = begin, .n = (uint32_t)(close - begin)};
            return past;
        }
        if ((unsigned char)*fault < 0x80 || !ps->replace_bad_utf8)
            return fail_special(ps, fault);
    }
    return copy_string(ps, begin, close, ret);
}
