/* field_parse.c - the text of a field selector, read as apimachinery reads it.
 * The text is cut at commas that no backslash protects, the pieces are sorted as they are written,
 * and only then read, so of several mistakes the one in the least piece is told. A piece is cut at
 * its first operator; there are no escapes before it. A value is changed only if it has a
 * backslash, comma or equals sign; then, as upstream, bytes that are not UTF-8 become U+FFFD on the
 * way. */
#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/utf8.h"
#include "field_selector.h"

/* U+FFFD, three bytes, may stand for one. */
#define UNESCAPED_BYTES_MAX(n) (3 * (n))
#define REPLACEMENT VG_SLICE_LIT("\xEF\xBF\xBD")

struct parser {
    struct vg_arena arena; /* all below, and values that were escaped */
    struct vg_slice text;
    struct vg_slice *pieces;
    struct vg_field_term *terms;
    size_t pieces_n, terms_n;
    struct vg_buf *message; /* NULL: nobody wants it */
};

/* ---- complaints ---- */

/* Append n texts (which may hold NUL bytes) and fail with err. */
static int fail_with(struct parser *p, int err, const struct vg_slice *v, size_t n)
{
    int r = 0;
    for (size_t i = 0; p->message && r == 0 && i < n; i++)
        r = vg_buf_append_slice(p->message, v[i]);
    return r < 0 ? r : err;
}

static int fail_piece(struct parser *p, struct vg_slice piece)
{
    const struct vg_slice v[] = {VG_SLICE_LIT("invalid selector: '"), p->text,
                                 VG_SLICE_LIT("'; can't understand '"), piece, VG_SLICE_LIT("'")};
    return fail_with(p, VIGIL_E_INVALID, v, VG_ARRAY_LEN(v));
}

static int fail_escape(struct parser *p, struct vg_slice character)
{
    const struct vg_slice v[] = {
        VG_SLICE_LIT("invalid field selector: invalid escape sequence: \\"), character};
    return fail_with(p, VIGIL_E_INVALID, v, VG_ARRAY_LEN(v));
}

/* A bare comma cannot come here, pieces end at it: it is the equals sign, which is told by code. */
static int fail_bare_equals(struct parser *p)
{
    const struct vg_slice v[] = {
        VG_SLICE_LIT("invalid field selector: unescaped character in value: 61")};
    return fail_with(p, VIGIL_E_INVALID, v, VG_ARRAY_LEN(v));
}

static int fail_too_large(struct vg_buf *message, unsigned max, const char *unit)
{
    int r = 0;
    if (message)
        r = vg_buf_printf(message, "field selector has more than %u %s", max, unit);
    return r < 0 ? r : VIGIL_E_TOO_LARGE;
}

/* ---- values ---- */

static bool is_escapable(char c)
{
    return c == '\\' || c == ',' || c == '=';
}

static bool has_escapable(struct vg_slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (is_escapable(s.p[i]))
            return true;
    }
    return false;
}

/* The character at the front of s, taken off; U+FFFD for a byte that is none. */
static struct vg_slice take_character(struct vg_slice *s)
{
    uint32_t code;
    size_t n = vg_utf8_next(*s, &code);
    struct vg_slice c = n ? vg_slice(s->p, n) : REPLACEMENT;
    n = n ? n : 1;
    *s = vg_slice(s->p + n, s->n - n);
    return c;
}

/* raw has something to escape: write what it means to out, which has room. */
static int unescape(struct parser *p, struct vg_slice raw, char *out, size_t *ret_n)
{
    size_t n = 0;
    while (raw.n > 0) {
        struct vg_slice c = take_character(&raw);
        if (c.p[0] == '=')
            return fail_bare_equals(p);
        if (c.p[0] == '\\') {
            c = raw.n > 0 ? take_character(&raw) : vg_slice("", 0);
            if (c.n == 0 || !is_escapable(c.p[0]))
                return fail_escape(p, c);
        }
        memcpy(out + n, c.p, c.n);
        n += c.n;
    }
    *ret_n = n;
    return 0;
}

static int read_value(struct parser *p, struct vg_slice raw, struct vg_slice *ret)
{
    if (!has_escapable(raw)) {
        *ret = raw;
        return 0;
    }
    char *out = vg_arena_alloc(&p->arena, UNESCAPED_BYTES_MAX(raw.n), 1);
    if (!out)
        return -ENOMEM;
    size_t n = 0;
    int r = unescape(p, raw, out, &n);
    if (r == 0)
        *ret = vg_slice(out, n);
    return r;
}

/* ---- pieces ---- */

static int add_piece(struct parser *p, struct vg_slice piece)
{
    if (piece.n == 0)
        return 0;
    if (p->pieces_n == VG_FIELD_SELECTOR_TERMS_MAX)
        return fail_too_large(p->message, VG_FIELD_SELECTOR_TERMS_MAX, "terms");
    p->pieces[p->pieces_n++] = piece;
    return 0;
}

static int split(struct parser *p)
{
    size_t start = 0;
    for (size_t i = 0; i < p->text.n; i++) {
        if (p->text.p[i] == '\\') {
            i++;
        } else if (p->text.p[i] == ',') {
            int r = add_piece(p, vg_slice(p->text.p + start, i - start));
            if (r < 0)
                return r;
            start = i + 1;
        }
    }
    return add_piece(p, vg_slice(p->text.p + start, p->text.n - start));
}

static int compare_pieces(const void *a, const void *b)
{
    return vg_slice_cmp(*(const struct vg_slice *)a, *(const struct vg_slice *)b);
}

/* Where the operator begins; piece.n when there is none. */
static size_t find_operator(struct vg_slice piece)
{
    size_t i = 0;
    while (i < piece.n && piece.p[i] != '=' &&
           !(piece.p[i] == '!' && i + 1 < piece.n && piece.p[i + 1] == '='))
        i++;
    return i;
}

static int read_term(struct parser *p, struct vg_slice piece)
{
    size_t at = find_operator(piece);
    if (at == piece.n)
        return fail_piece(p, piece);
    bool is_not = piece.p[at] == '!';
    bool is_double = !is_not && at + 1 < piece.n && piece.p[at + 1] == '=';
    size_t value_at = at + (is_not || is_double ? 2 : 1);
    struct vg_field_term term = {.field = vg_slice(piece.p, at),
                                 .op = is_not ? VG_FIELD_NOT_EQUALS : VG_FIELD_EQUALS,
                                 .index = VG_FIELD_UNRESOLVED};
    int r = read_value(p, vg_slice(piece.p + value_at, piece.n - value_at), &term.value);
    if (r == 0 && (term.field.n > 0 || term.value.n > 0))
        p->terms[p->terms_n++] = term;
    return r;
}

/* ---- the whole ---- */

static int parse_into(struct parser *p)
{
    size_t n = 1;
    for (size_t i = 0; i < p->text.n; i++)
        n += p->text.p[i] == ',';
    n = VG_MIN(n, (size_t)VG_FIELD_SELECTOR_TERMS_MAX);
    p->pieces = vg_arena_array(&p->arena, struct vg_slice, n);
    p->terms = vg_arena_array(&p->arena, struct vg_field_term, n);
    if (!p->pieces || !p->terms)
        return -ENOMEM;
    int r = split(p);
    if (r < 0)
        return r;
    qsort(p->pieces, p->pieces_n, sizeof *p->pieces, compare_pieces);
    for (size_t i = 0; r == 0 && i < p->pieces_n; i++)
        r = read_term(p, p->pieces[i]);
    return r;
}

int vg_field_selector_parse(struct vg_slice text, const struct vg_field_selector **ret_selector,
                            struct vg_buf *reterr_message)
{
    if (reterr_message)
        vg_buf_clear(reterr_message);
    if (text.n == 0) {
        *ret_selector = vg_field_selector_everything();
        return 0;
    }
    if (text.n > VG_FIELD_SELECTOR_BYTES_MAX)
        return fail_too_large(reterr_message, VG_FIELD_SELECTOR_BYTES_MAX, "bytes");
    struct parser p = {.text = text, .message = reterr_message};
    int r = parse_into(&p);
    if (r == 0)
        r = vg_field_selector_from_terms(p.terms, p.terms_n, ret_selector);
    vg_arena_done(&p.arena);
    return r;
}
