/* base64.c - bytes as text and back; see base64.h. */
#include "base64.h"

#include <errno.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/* The number of a character, plus one; 0: it is none. */
static const unsigned char sextets[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64,
};

void vg_base64_encode(struct vg_slice s, char *out)
{
    const unsigned char *p = (const unsigned char *)s.p;
    size_t n = s.n;
    for (; n >= 3; n -= 3, p += 3, out += 4) {
        uint32_t bits = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
        out[0] = alphabet[bits >> 18];
        out[1] = alphabet[bits >> 12 & 63];
        out[2] = alphabet[bits >> 6 & 63];
        out[3] = alphabet[bits & 63];
    }
    if (n == 0)
        return;
    uint32_t bits = (uint32_t)p[0] << 16 | (n > 1 ? (uint32_t)p[1] << 8 : 0);
    out[0] = alphabet[bits >> 18];
    out[1] = alphabet[bits >> 12 & 63];
    out[2] = n > 1 ? alphabet[bits >> 6 & 63] : '=';
    out[3] = '=';
}

int vg_base64_append(struct vg_buf *out, struct vg_slice s)
{
    int r = vg_buf_reserve(out, vg_base64_size(s.n));
    if (r < 0)
        return r;
    if (s.n)
        vg_base64_encode(s, out->p + out->n);
    out->n += vg_base64_size(s.n);
    return 0;
}

/* Four characters as 24 bits; false: one of them is none of ours. */
static bool read_quad(const unsigned char *p, uint32_t *ret)
{
    uint32_t a = sextets[p[0]], b = sextets[p[1]], c = sextets[p[2]], d = sextets[p[3]];
    *ret = (a - 1) << 18 | (b - 1) << 12 | (c - 1) << 6 | (d - 1);
    return a && b && c && d;
}

bool vg_base64_decode(struct vg_slice text, char *out, size_t *ret_n)
{
    const unsigned char *p = (const unsigned char *)text.p, *end = p + text.n;
    char *o = out;
    uint32_t bits;
    *ret_n = 0;
    if (text.n % 4 != 0)
        return false;
    if (text.n == 0)
        return true;
    for (; p < end - 4; p += 4, o += 3) {
        if (!read_quad(p, &bits))
            return false;
        o[0] = (char)(bits >> 16);
        o[1] = (char)(bits >> 8);
        o[2] = (char)bits;
    }
    unsigned pads = p[3] != '=' ? 0 : p[2] != '=' ? 1 : 2;
    const unsigned char last[4] = {p[0], p[1], pads > 1 ? 'A' : p[2], pads ? 'A' : p[3]};
    if (!read_quad(last, &bits))
        return false;
    for (unsigned i = 0; i < 3 - pads; i++)
        *o++ = (char)(bits >> (16 - 8 * i));
    *ret_n = (size_t)(o - out);
    return true;
}

bool vg_base64_decode_lines(struct vg_slice text, char *out, size_t *ret_n)
{
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] != '\n' && text.p[i] != '\r')
            out[n++] = text.p[i];
    return vg_base64_decode(vg_slice(out, n), out,
                            ret_n); /* four are read before three are written */
}

/* ---- base64url ---- */

size_t vg_base64_url_encode(struct vg_slice s, char *out)
{
    size_t n = vg_base64_size(s.n);
    if (n)
        vg_base64_encode(s, out);
    while (n && out[n - 1] == '=')
        n--;
    for (size_t i = 0; i < n; i++)
        out[i] = out[i] == '+' ? '-' : out[i] == '/' ? '_' : out[i];
    return n;
}

/* The usual alphabet and padding are put in place, where they are then decoded: what is written
 * never overtakes what is read. */
bool vg_base64_url_decode(struct vg_slice text, char *out, size_t *ret_n)
{
    size_t n = text.n;
    for (size_t i = 0; i < n; i++) {
        char c = text.p[i];
        if (c == '+' || c == '/' || c == '=')
            return false;
        out[i] = c == '-' ? '+' : c == '_' ? '/' : c;
    }
    for (; n % 4; n++)
        out[n] = '=';
    return vg_base64_decode(vg_slice(out, n), out, ret_n);
}
