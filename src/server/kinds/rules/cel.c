/* cel.c - see cel.h. Words and columns are those of the original's parser: a text whose second word
 * cannot go on is "mismatched" there, or "extraneous" when it is the last. */
#include "cel.h"

#include <ctype.h>

#include "base/utf8.h"
#include "object/quote.h"

static const char *const of_admission[] = {"object",          "oldObject",  "request",   "params",
                                           "namespaceObject", "authorizer", "variables", NULL};
const struct vg_cel_use vg_cel_admission_bool = {of_admission, "bool", NULL};
const struct vg_cel_use vg_cel_admission_any = {of_admission, NULL, NULL};
const struct vg_cel_use vg_cel_admission_text = {of_admission, "string", NULL};
const struct vg_cel_use vg_cel_apply = {of_admission, "Object", NULL};
const struct vg_cel_use vg_cel_json_patch = {of_admission, "list(JSONPatch)", NULL};

/* ---- words ---- */

enum word_type {
    WORD_END,
    WORD_NAME,
    WORD_INT,
    WORD_UINT,
    WORD_DOUBLE,
    WORD_STRING,
    WORD_GOES_ON, /* an operator between operands, a call, a member ... */
    WORD_OTHER,   /* cannot follow an operand, and may not begin one that is looked at */
    WORD_ODD      /* no word of the language, or none that is looked at */
};

struct word {
    enum word_type type;
    struct vg_slice text;
};

static size_t digits(struct vg_slice s)
{
    size_t n = 0;
    while (n < s.n && isdigit((unsigned char)s.p[n]))
        n++;
    return n;
}

static struct vg_slice from(struct vg_slice s, size_t n)
{
    return vg_slice(s.p + n, s.n - n);
}

/* 1, 1.5, .5, 1e3, 1u; s begins with a digit, or a dot and one. Numbers in hexadecimal are odd. */
static struct word number(struct vg_slice s)
{
    size_t n = digits(s);
    struct word w = {.type = WORD_INT};
    if (n == 1 && s.p[0] == '0' && s.n > 1 && (s.p[1] | 0x20) == 'x')
        return (struct word){WORD_ODD, vg_slice(s.p, 2)};
    if (n < s.n && s.p[n] == '.' && digits(from(s, n + 1))) {
        n += 1 + digits(from(s, n + 1));
        w.type = WORD_DOUBLE;
    }
    if (n < s.n && (s.p[n] | 0x20) == 'e') {
        size_t sign = n + 1 < s.n && (s.p[n + 1] == '+' || s.p[n + 1] == '-');
        size_t more = n + 1 + sign <= s.n ? digits(from(s, n + 1 + sign)) : 0;
        if (more) {
            n += 1 + sign + more;
            w.type = WORD_DOUBLE;
        }
    }
    if (w.type == WORD_INT && n < s.n && (s.p[n] | 0x20) == 'u') {
        n++;
        w.type = WORD_UINT;
    }
    w.text = vg_slice(s.p, n);
    return w;
}

static bool is_of_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static struct word name(struct vg_slice s)
{
    size_t n = 0;
    while (n < s.n && is_of_name(s.p[n]))
        n++;
    bool is_prefix = n <= 2 && n < s.n && (s.p[n] == '"' || s.p[n] == '\''); /* r"..", b'..' */
    bool is_in = n == 2 && memcmp(s.p, "in", 2) == 0;
    return (struct word){is_prefix ? WORD_ODD : is_in ? WORD_GOES_ON : WORD_NAME, vg_slice(s.p, n)};
}

/* A text between quotes, without escapes. */
static struct word string(struct vg_slice s)
{
    const char *end = memchr(s.p + 1, s.p[0], s.n - 1);
    size_t n = end ? (size_t)(end - s.p) + 1 : 0;
    if (!end || n == 2 || memchr(s.p, '\\', n))
        return (struct word){WORD_ODD, vg_slice(s.p, 1)};
    return (struct word){WORD_STRING, vg_slice(s.p, n)};
}

/* The next word; *rest is behind it. */
static struct word next(struct vg_slice *rest)
{
    struct vg_slice s = *rest;
    struct word w;
    while (s.n && s.p[0] == ' ')
        s = from(s, 1);
    if (s.n == 0)
        w = (struct word){WORD_END, s};
    else if (isdigit((unsigned char)s.p[0]) || (s.p[0] == '.' && digits(from(s, 1))))
        w = number(s);
    else if (is_of_name(s.p[0]))
        w = name(s);
    else if (s.p[0] == '"' || s.p[0] == '\'')
        w = string(s);
    else if (s.p[0] == '!' && !(s.n > 1 && s.p[1] == '='))
        w = (struct word){WORD_OTHER, vg_slice(s.p, 1)};
    else
        w = (struct word){strchr(".[({?&|=!<>+-*/%", s.p[0]) ? WORD_GOES_ON : WORD_ODD,
                          vg_slice(s.p, 1)};
    *rest = from(s, w.text.n);
    return w;
}

/* ---- what is told ---- */

static void tell(struct vg_check *c, const struct vg_at *at, vg_cel_show_fn *show,
                 struct vg_slice why)
{
    struct vg_slice json = show ? show(c, at) : vg_json_quoted(c, vg_at_text(at));
    vg_bad_value(c, at, json, "%.*s", VG_SLICE_ARG(why));
}

/* How many characters stand before a place. */
static size_t column(struct vg_slice text, const char *at)
{
    size_t n = 0;
    uint32_t code;
    struct vg_slice rest = vg_slice(text.p, (size_t)(at - text.p));
    while (rest.n) {
        rest = from(rest, VG_MAX(vg_utf8_next(rest, &code), 1));
        n++;
    }
    return n;
}

/* ERROR: <input>:1:5: WHAT, the text, and an arrow below it. */
static void tell_place(struct vg_check *c, const struct vg_at *at, vg_cel_show_fn *show,
                       struct vg_slice word, const char *before, const char *behind)
{
    VG_AUTO(buf) b = {0};
    struct vg_slice text = vg_at_text(at);
    size_t col = column(text, word.p);
    int r = vg_buf_printf(&b, "compilation failed: ERROR: <input>:1:%zu: %s'%.*s'%s\n | %.*s\n | ",
                          col + 1, before, VG_SLICE_ARG(word), behind, VG_SLICE_ARG(text));
    for (size_t i = 0; i < col && r == 0; i++)
        r = vg_buf_append_byte(&b, '.');
    if (r == 0)
        r = vg_buf_append_byte(&b, '^');
    c->errors->failed |= r < 0;
    tell(c, at, show, vg_buf_slice(&b));
}

/* ---- one operand ---- */

/* Words that mean something everywhere, or are refused in other words. */
static const char *const known[] = {
    "bool",      "bytes",     "double",    "duration", "dyn",  "int",    "list",  "map",
    "null_type", "string",    "timestamp", "type",     "uint", "as",     "break", "const",
    "continue",  "else",      "for",       "function", "if",   "import", "let",   "loop",
    "package",   "namespace", "return",    "var",      "void", "while",  NULL};

static const char *type_of(const struct word *w)
{
    switch (w->type) {
    case WORD_INT:
        return "int";
    case WORD_UINT:
        return "uint";
    case WORD_DOUBLE:
        return "double";
    case WORD_STRING:
        return "string";
    case WORD_NAME:
        return vg_slice_eq(w->text, VG_SLICE_LIT("true")) ||
                       vg_slice_eq(w->text, VG_SLICE_LIT("false"))
                   ? "bool"
               : vg_slice_eq(w->text, VG_SLICE_LIT("null")) ? "null_type"
                                                            : NULL;
    default:
        return NULL;
    }
}

static void check_type(struct vg_check *c, const struct vg_at *at, const struct vg_cel_use *use,
                       vg_cel_show_fn *show, const char *type)
{
    VG_AUTO(buf) b = {0};
    if (!use->wanted || strcmp(type, use->wanted) == 0)
        return;
    int r = use->refusal ? vg_buf_printf(&b, "%s", use->refusal)
                         : vg_buf_printf(&b, "must evaluate to %s but got ", use->wanted);
    /* A refusal that ends with a blank names the type. */
    if (r == 0 && b.n && b.p[b.n - 1] == ' ')
        r = vg_buf_printf(&b, "%s", type);
    c->errors->failed |= r < 0;
    tell(c, at, show, vg_buf_slice(&b));
}

void vg_check_cel(struct vg_check *c, const struct vg_at *at, const struct vg_cel_use *use,
                  vg_cel_show_fn *show)
{
    struct vg_slice rest = vg_at_text(at);
    if (vg_field_errors_is_full(c->errors) || (rest.n && memchr(rest.p, '\n', rest.n)))
        return;
    struct word first = next(&rest), minus = first;
    if (first.type == WORD_END) {
        tell(c, at, show,
             VG_SLICE_LIT("compilation failed: ERROR: <input>:1:0: Syntax error: mismatched input "
                          "'<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', "
                          "'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"));
        return;
    }
    if (vg_slice_eq(first.text, VG_SLICE_LIT("-")))
        first = next(&rest);
    bool is_negative = first.text.p != minus.text.p;
    const char *type = type_of(&first);
    if ((first.type != WORD_NAME || is_negative) && (!type || first.type == WORD_NAME))
        return;
    struct word second = next(&rest), third = next(&rest);
    if (second.type == WORD_GOES_ON || second.type == WORD_ODD || third.type == WORD_ODD)
        return;
    if (second.type != WORD_END)
        tell_place(c, at, show, second.text,
                   third.type == WORD_END ? "Syntax error: extraneous input "
                                          : "Syntax error: mismatched input ",
                   " expecting <EOF>");
    else if (type)
        check_type(c, at, use, show, type);
    else if (!vg_text_is_one_of(first.text, use->variables) &&
             !vg_text_is_one_of(first.text, known))
        tell_place(c, at, show, first.text, "undeclared reference to ", " (in container '')");
}
