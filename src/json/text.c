/* text.c - what may stand between the quotes: UTF-8 sequences and escapes.
 * Every function is safe on any bytes; the callers decide whether malformed is an error or U+FFFD.
 */
#include "bytes.h"

static bool is_continuation(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* Table 3-7 of the Unicode standard: the second byte's range depends on the first, which shuts out
 * overlong forms, surrogates and everything beyond U+10FFFF. */
static bool is_second_byte(unsigned char lead, unsigned char second)
{
    switch (lead) {
    case 0xe0:
        return second >= 0xa0 && second <= 0xbf;
    case 0xed:
        return second >= 0x80 && second <= 0x9f;
    case 0xf0:
        return second >= 0x90 && second <= 0xbf;
    case 0xf4:
        return second >= 0x80 && second <= 0x8f;
    default:
        return is_continuation(second);
    }
}

static size_t length_by_lead(unsigned char lead)
{
    if (lead < 0x80)
        return 1;
    if (lead < 0xc2)
        return 0; /* a continuation byte, or an overlong form of ASCII */
    if (lead < 0xe0)
        return 2;
    if (lead < 0xf0)
        return 3;
    return lead < 0xf5 ? 4 : 0;
}

size_t vg_json_utf8_len(const char *p, const char *end)
{
    if (p >= end)
        return 0;
    const unsigned char *u = (const unsigned char *)p;
    size_t n = length_by_lead(u[0]);
    if (n <= 1)
        return n;
    if ((size_t)(end - p) < n || !is_second_byte(u[0], u[1]))
        return 0;
    for (size_t i = 2; i < n; i++)
        if (!is_continuation(u[i]))
            return 0;
    return n;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The code unit of \uXXXX at p, or -1. */
static int32_t escaped_unit(const char *p, const char *end)
{
    if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
        return -1;
    int32_t unit = 0;
    for (int i = 2; i < 6; i++) {
        int h = hex_value(p[i]);
        if (h < 0)
            return -1;
        unit = unit * 16 + h;
    }
    return unit;
}

const char vg_json_short_escapes[256] = {
    ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
    ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t',
};

size_t vg_json_escape_len(const char *p, const char *end)
{
    if (end - p < 2 || p[0] != '\\')
        return 0;
    if (p[1] == 'u')
        return escaped_unit(p, end) >= 0 ? 6 : 0;
    return vg_json_short_escape(p[1]) ? 2 : 0;
}

static size_t put_utf8(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* \uXXXX, joined with the one after it when the two are a surrogate pair. */
static size_t decode_unicode_escape(const char **p, const char *end, char out[4])
{
    int32_t unit = escaped_unit(*p, end);
    if (unit < 0)
        return 0;
    *p += 6;
    if (unit < 0xd800 || unit > 0xdfff)
        return put_utf8((uint32_t)unit, out);
    int32_t low = unit < 0xdc00 ? escaped_unit(*p, end) : -1;
    if (low < 0xdc00 || low > 0xdfff)
        return put_utf8(0xfffd, out);
    *p += 6;
    return put_utf8(0x10000u + ((uint32_t)(unit - 0xd800) << 10) + (uint32_t)(low - 0xdc00), out);
}

static size_t decode_escape(const char **p, const char *end, char out[4])
{
    if (end - *p < 2)
        return 0;
    if ((*p)[1] == 'u')
        return decode_unicode_escape(p, end, out);
    char c = vg_json_short_escape((*p)[1]);
    if (!c)
        return 0;
    out[0] = c;
    *p += 2;
    return 1;
}

size_t vg_json_decode_unit(const char **p, const char *end, char out[4])
{
    if (**p == '\\')
        return decode_escape(p, end, out);
    size_t n = vg_json_utf8_len(*p, end);
    if (n == 0) {
        *p += 1;
        return put_utf8(0xfffd, out);
    }
    for (size_t i = 0; i < n; i++)
        out[i] = (*p)[i];
    *p += n;
    return n;
}
