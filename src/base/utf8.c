/* utf8.c - see utf8.h. */
#include "utf8.h"

/* Length by lead byte; 0: no character begins with it. */
static size_t length_of(unsigned char lead)
{
    if (lead < 0x80)
        return 1;
    if (lead < 0xC2 || lead > 0xF4)
        return 0;
    return lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

static bool is_valid_code(uint32_t code, size_t n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    return code >= least[n] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
}

size_t vg_utf8_next(struct vg_slice s, uint32_t *ret_code)
{
    unsigned char lead = (unsigned char)s.p[0];
    size_t n = length_of(lead);
    if (n == 0 || n > s.n)
        return 0;
    uint32_t code = n == 1 ? lead : lead & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if ((c & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (c & 0x3Fu);
    }
    if (!is_valid_code(code, n))
        return 0;
    *ret_code = code;
    return n;
}

bool vg_utf8_is_valid(struct vg_slice s)
{
    uint32_t code;
    while (s.n) {
        size_t n = vg_utf8_next(s, &code);
        if (n == 0)
            return false;
        s = vg_slice(s.p + n, s.n - n);
    }
    return true;
}
