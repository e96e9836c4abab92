/* base64.c - certificates in kubeconfigs, passwords in requests. */
#include <errno.h>

#include "config_int.h"

int vg_config_put_base64(struct vg_buf *out, struct vg_slice s)
{
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < s.n; i += 3) {
        uint32_t v = 0;
        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (i + k < s.n ? (uint8_t)s.p[i + k] : 0);
        char q[4] = {DIGITS[v >> 18], DIGITS[v >> 12 & 63], i + 1 < s.n ? DIGITS[v >> 6 & 63] : '=',
                     i + 2 < s.n ? DIGITS[v & 63] : '='};
        int r = vg_buf_append(out, q, 4);
        if (r < 0)
            return r;
    }
    return 0;
}

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int vg_config_base64(struct vg_arena *a, struct vg_slice text, struct vg_slice *ret)
{
    char *out = vg_arena_alloc(a, text.n / 4 * 3 + 4, 1);
    if (!out)
        return -ENOMEM;
    size_t n = 0, digits = 0, pads = 0;
    uint32_t bits = 0;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c == '\n' || c == '\r' || c == ' ')
            continue;
        int d = c == '=' ? 0 : base64_digit(c);
        if (d < 0 || (pads && c != '='))
            return VIGIL_E_INVALID;
        pads += c == '=';
        bits = bits << 6 | (uint32_t)d;
        if (++digits % 4 == 0) {
            out[n++] = (char)(bits >> 16 & 0xff);
            out[n++] = (char)(bits >> 8 & 0xff);
            out[n++] = (char)(bits & 0xff);
        }
    }
    if (digits % 4 != 0 || pads > 2)
        return VIGIL_E_INVALID;
    n -= pads;
    out[n] = 0;
    *ret = vg_slice(out, n);
    return 0;
}
