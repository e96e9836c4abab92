/* key_order.c - the order of keys in written YAML: go-yaml's, which sorts a2 before a10.
 * Compared character by character up to the first difference: two letters by their code; a letter
 * after anything else; else by the number that the digits form from there, if any. Beyond
 * ASCII only the large blocks of signs, punctuation and emoji are told from letters. */
#include "base/utf8.h"
#include "yaml_int.h"

static bool is_digit(uint32_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(uint32_t c)
{
    if (c < 0x80)
        return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
    return c >= 0xC0 && c != 0xD7 && c != 0xF7 && !(c >= 0x2000 && c <= 0x2BFF) &&
           !(c >= 0xE000 && c <= 0xF8FF) && !(c >= 0xFE00 && c <= 0xFE0F) && c < 0xFEFF;
}

static uint32_t code_at(struct vg_slice s, size_t i)
{
    uint32_t code = (unsigned char)s.p[i];
    if (code >= 0x80 && vg_utf8_next(vg_slice(s.p + i, s.n - i), &code) == 0)
        code = (unsigned char)s.p[i];
    return code;
}

/* Digits from i on, put behind `start`; *ret_end is past them. Wraps around as Go's int64 does. */
static int64_t number_at(struct vg_slice s, size_t i, uint64_t start, size_t *ret_end)
{
    uint64_t n = start;
    for (; i < s.n && is_digit((unsigned char)s.p[i]); i++)
        n = n * 10 + (uint64_t)(s.p[i] - '0');
    *ret_end = i;
    return (int64_t)n;
}

/* Do the digits just before i hold one that is not 0? Then a 0 at i counts. */
static bool follows_nonzero(struct vg_slice s, size_t i)
{
    while (i > 0 && is_digit((unsigned char)s.p[i - 1]))
        if (s.p[--i] != '0')
            return true;
    return false;
}

static int compare_others(struct vg_slice a, struct vg_slice b, size_t i)
{
    uint32_t ca = code_at(a, i), cb = code_at(b, i);
    uint64_t start = (ca == '0' || cb == '0') && follows_nonzero(a, i);
    size_t a_end, b_end;
    int64_t an = number_at(a, i, start, &a_end), bn = number_at(b, i, start, &b_end);
    if (an != bn)
        return an < bn ? -1 : 1;
    if (a_end != b_end)
        return a_end < b_end ? -1 : 1;
    return ca < cb ? -1 : 1;
}

int vg_yaml_key_cmp(struct vg_slice a, struct vg_slice b)
{
    size_t i = 0, n = VG_MIN(a.n, b.n);
    while (i < n && a.p[i] == b.p[i])
        i++;
    if (i == n)
        return (a.n > b.n) - (a.n < b.n);
    while (i > 0 && ((unsigned char)a.p[i] & 0xC0) == 0x80)
        i--;
    uint32_t ca = code_at(a, i), cb = code_at(b, i);
    if (is_letter(ca) && is_letter(cb))
        return ca < cb ? -1 : 1;
    if (is_letter(ca) || is_letter(cb))
        return is_letter(cb) ? -1 : 1;
    return compare_others(a, b, i);
}
