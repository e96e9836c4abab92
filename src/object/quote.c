/* quote.c - see quote.h. Runs of plain ASCII, which is nearly everything, are appended at once. */
#include "quote.h"

#include "base/utf8.h"

/* Above ASCII, rising and apart. */
static const struct {
    uint32_t first, last;
} printable[] = {
#define PRINT(first, last) {first, last},
#include "quote_print.def"
#undef PRINT
};

static bool is_printable(uint32_t code)
{
    size_t low = 0, high = VG_ARRAY_LEN(printable);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (printable[middle].last < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < VG_ARRAY_LEN(printable) && printable[low].first <= code;
}

static bool is_plain(char c)
{
    return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

static int append_ascii(struct vg_buf *b, char c)
{
    static const char codes[] = "\a\b\f\n\r\t\v\"\\", letters[] = "abfnrtv\"\\";
    const char *at = memchr(codes, c, sizeof codes - 1);
    return at ? vg_buf_printf(b, "\\%c", letters[at - codes])
              : vg_buf_printf(b, "\\x%02x", (unsigned)c);
}

static int append_code(struct vg_buf *b, struct vg_slice bytes, uint32_t code)
{
    if (code < 0x80)
        return append_ascii(b, (char)code);
    if (is_printable(code))
        return vg_buf_append_slice(b, bytes);
    return vg_buf_printf(b, code < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)code);
}

/* The character that begins at s.p, or the broken byte there; *ret_n says how long it is. */
static int append_next(struct vg_buf *b, struct vg_slice s, size_t *ret_n)
{
    uint32_t code;
    size_t n = vg_utf8_next(s, &code);
    *ret_n = n ? n : 1;
    return n ? append_code(b, vg_slice(s.p, n), code)
             : vg_buf_printf(b, "\\x%02x", (unsigned)(unsigned char)s.p[0]);
}

int vg_quote_append(struct vg_buf *b, struct vg_slice s)
{
    int r = vg_buf_append_byte(b, '"');
    for (size_t i = 0, n; r == 0 && i < s.n; i += n) {
        for (n = 0; i + n < s.n && is_plain(s.p[i + n]);)
            n++;
        r = n ? vg_buf_append(b, s.p + i, n) : append_next(b, vg_slice(s.p + i, s.n - i), &n);
    }
    return r < 0 ? r : vg_buf_append_byte(b, '"');
}
