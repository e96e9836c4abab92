/* h1_chunks.c - the frames of a chunked body, before a parser sees them.
 * RFC 9112 (7.1.1) has every recipient ignore chunk extensions that it does not know; llhttp
 * refuses many of them (quoted pairs, white space). So they are left out here, and llhttp gets the
 * sizes alone. What could make two servers disagree about where a chunk ends is refused: a line
 * that ends without CR, control characters, white space without an extension, a size beyond 60
 * bits. */
#include "h1_int.h"

enum { SIZE, WHITE, EXTENSION, SIZE_LF, DATA, DATA_CR, DATA_LF, TRAILERS };

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One byte of a line. VIGIL_E_INVALID; 0: it belongs to the frame; 1: to an extension. */
static int take_byte(struct vg_h1_chunks *c, char b)
{
    int digit = digit_of(b);
    switch (c->state) {
    case SIZE:
        if (digit >= 0 && c->n_digits < 15) {
            c->left = c->left * 16 + (uint64_t)digit;
            c->n_digits++;
            return 0;
        }
        if (c->n_digits == 0 || (b != '\r' && b != ';' && b != ' ' && b != '\t'))
            return VIGIL_E_INVALID;
        c->state = b == '\r' ? SIZE_LF : b == ';' ? EXTENSION : WHITE;
        return b != '\r';
    case WHITE:
        if (b != ' ' && b != '\t' && b != ';')
            return VIGIL_E_INVALID;
        c->state = b == ';' ? EXTENSION : WHITE;
        return 1;
    case EXTENSION:
        if (b == '\r')
            c->state = SIZE_LF;
        else if (((unsigned char)b < ' ' && b != '\t') || b == 0x7f)
            return VIGIL_E_INVALID;
        return b != '\r';
    case SIZE_LF:
        c->state = c->left ? DATA : TRAILERS;
        c->n_digits = 0;
        return b == '\n' ? 0 : VIGIL_E_INVALID;
    case DATA_CR:
        c->state = DATA_LF;
        return b == '\r' ? 0 : VIGIL_E_INVALID;
    default: /* DATA_LF */
        c->state = SIZE;
        return b == '\n' ? 0 : VIGIL_E_INVALID;
    }
}

int vg_h1_chunks_next(struct vg_h1_chunks *c, const char *p, size_t n, size_t *ret_pass,
                      size_t *ret_skip)
{
    size_t at = 0, skip = 0;
    while (at + skip < n) {
        if (c->state == TRAILERS) {
            at = skip ? at : n;
            break;
        }
        if (c->state == DATA) {
            if (skip)
                break;
            size_t piece = (size_t)VG_MIN(c->left, (uint64_t)(n - at));
            at += piece;
            c->left -= piece;
            if (c->left == 0)
                c->state = DATA_CR;
            continue;
        }
        if (skip && p[at + skip] == '\r')
            break; /* the frame goes on */
        int r = take_byte(c, p[at + skip]);
        if (r < 0)
            return r;
        at += r == 0;
        skip += r == 1;
    }
    *ret_pass = at;
    *ret_skip = skip;
    return 0;
}
