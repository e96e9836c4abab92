/* gojson.c - Go's scanner of JSON, as far as its complaints go; see gojson.h.
 * One function for each thing that is scanned; each leaves `at` at the first byte it did not take,
 * and answers false when a complaint was made. Open containers are bits, so depth costs no stack.
 */
#include "gojson.h"

#include "object/quote.h"

struct scan {
    struct vg_slice text;
    size_t at;
    struct vg_status *status;
    uint32_t depth, max_depth;
    uint64_t is_object[VG_JSON_DEPTH_MAX / 64 + 1];
};

/* Go shows the byte as the character with that number, between single quotes. */
static bool complain(struct scan *s, const char *where)
{
    if (s->at >= s->text.n) {
        (void)vg_fail(s->status, VIGIL_E_JSON_SYNTAX, "unexpected end of JSON input");
        return false;
    }
    unsigned char c = (unsigned char)s->text.p[s->at];
    char utf8[2] = {(char)(0xc0 | (c >> 6)), (char)(0x80 | (c & 63))};
    struct vg_slice one = c < 0x80 ? vg_slice(&s->text.p[s->at], 1) : vg_slice(utf8, 2);
    VG_AUTO(buf) q = {.max = 64};
    const char *shown = "?";
    size_t n = 1;
    if (c == '\'')
        shown = "\\'", n = 2;
    else if (c == '"')
        shown = "\"";
    else if (c > ' ' && c < 0x7f && c != '\\')
        shown = &s->text.p[s->at];
    else if (vg_quote_append(&q, one) == 0)
        shown = q.p + 1, n = q.n - 2;
    (void)vg_fail(s->status, VIGIL_E_JSON_SYNTAX, "invalid character '%.*s' %s", (int)n, shown,
                  where);
    return false;
}

static bool is_at(const struct scan *s, char c)
{
    return s->at < s->text.n && s->text.p[s->at] == c;
}
static bool is_digit_at(const struct scan *s)
{
    return s->at < s->text.n && s->text.p[s->at] >= '0' && s->text.p[s->at] <= '9';
}
static void skip_space(struct scan *s)
{
    while (is_at(s, ' ') || is_at(s, '\t') || is_at(s, '\n') || is_at(s, '\r'))
        s->at++;
}

static bool scan_hex4(struct scan *s)
{
    for (int i = 0; i < 4; i++, s->at++) {
        char c = s->at < s->text.n ? s->text.p[s->at] : 'x';
        bool is_hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        if (!is_hex)
            return complain(s, "in \\u hexadecimal character escape");
    }
    return true;
}

static bool scan_string(struct scan *s)
{
    for (s->at++; !is_at(s, '"'); s->at++) {
        if (s->at >= s->text.n || (unsigned char)s->text.p[s->at] < 0x20)
            return complain(s, "in string literal");
        if (!is_at(s, '\\'))
            continue;
        s->at++;
        if (s->at >= s->text.n || !memchr("bfnrt\\/\"u", s->text.p[s->at], 9))
            return complain(s, "in string escape code");
        if (!is_at(s, 'u'))
            continue;
        s->at++;
        if (!scan_hex4(s))
            return false;
        s->at--;
    }
    s->at++;
    return true;
}

static bool scan_digits(struct scan *s, const char *where)
{
    if (!is_digit_at(s))
        return complain(s, where);
    while (is_digit_at(s))
        s->at++;
    return true;
}

static bool scan_number(struct scan *s)
{
    if (is_at(s, '-') && (s->at++, !is_digit_at(s)))
        return complain(s, "in numeric literal");
    if (is_at(s, '0'))
        s->at++;
    else if (!scan_digits(s, "in numeric literal"))
        return false;
    if (is_at(s, '.') && (s->at++, !scan_digits(s, "after decimal point in numeric literal")))
        return false;
    if (!is_at(s, 'e') && !is_at(s, 'E'))
        return true;
    s->at++;
    if (is_at(s, '+') || is_at(s, '-'))
        s->at++;
    return scan_digits(s, "in exponent of numeric literal");
}

static bool scan_word(struct scan *s, const char *word)
{
    for (const char *p = word; *p; p++, s->at++) {
        if (is_at(s, *p))
            continue;
        char where[64];
        struct vg_status text;
        (void)vg_fail(&text, 0, "in literal %s (expecting '%c')", word, *p);
        memcpy(where, text.message, sizeof where - 1);
        where[sizeof where - 1] = '\0';
        return complain(s, where);
    }
    return true;
}

static bool top_is_object(const struct scan *s)
{
    return s->is_object[(s->depth - 1) / 64] >> ((s->depth - 1) % 64) & 1;
}

static bool open_container(struct scan *s, bool is_object)
{
    if (s->depth >= s->max_depth)
        return complain(s, "exceeded max depth");
    uint64_t bit = UINT64_C(1) << (s->depth % 64);
    uint64_t *word = &s->is_object[s->depth / 64];
    *word = is_object ? *word | bit : *word & ~bit;
    s->depth++;
    s->at++;
    return true;
}

/* A key and its colon. */
static bool scan_key(struct scan *s)
{
    skip_space(s);
    if (!is_at(s, '"'))
        return complain(s, "looking for beginning of object key string");
    if (!scan_string(s))
        return false;
    skip_space(s);
    if (!is_at(s, ':'))
        return complain(s, "after object key");
    s->at++;
    return true;
}

static bool scan_scalar(struct scan *s)
{
    if (is_at(s, '"'))
        return scan_string(s);
    if (is_at(s, '-') || is_digit_at(s))
        return scan_number(s);
    if (is_at(s, 't'))
        return scan_word(s, "true");
    if (is_at(s, 'f'))
        return scan_word(s, "false");
    if (is_at(s, 'n'))
        return scan_word(s, "null");
    return complain(s, "looking for beginning of value");
}

/* What follows a value: closes containers, or goes on to the next item. 1: a value comes; 0: the
 * outermost one is closed; -1: a complaint. */
static int after_value(struct scan *s)
{
    while (s->depth) {
        skip_space(s);
        bool is_object = top_is_object(s);
        if (is_at(s, ',')) {
            s->at++;
            return is_object && !scan_key(s) ? -1 : 1;
        }
        if (!is_at(s, is_object ? '}' : ']')) {
            complain(s, is_object ? "after object key:value pair" : "after array element");
            return -1;
        }
        s->at++;
        s->depth--;
    }
    return 0;
}

/* One value begins here, or a container opens. As after_value. */
static int one_value(struct scan *s)
{
    skip_space(s);
    if (!is_at(s, '{') && !is_at(s, '['))
        return scan_scalar(s) ? after_value(s) : -1;
    bool is_object = is_at(s, '{');
    if (!open_container(s, is_object))
        return -1;
    skip_space(s);
    if (!is_at(s, is_object ? '}' : ']'))
        return is_object && !scan_key(s) ? -1 : 1;
    s->at++;
    s->depth--;
    return after_value(s);
}

bool vg_gojson_complain(struct vg_slice text, uint32_t max_depth, struct vg_status *ret)
{
    struct scan s = {
        .text = text, .status = ret, .max_depth = VG_MIN(max_depth, VG_JSON_DEPTH_MAX)};
    int more = 1;
    while (more > 0)
        more = one_value(&s);
    if (more < 0)
        return true;
    skip_space(&s);
    if (s.at >= text.n)
        return false;
    complain(&s, "after top-level value");
    return true;
}

const char *vg_gojson_type(const struct vg_json *v)
{
    static const char *const names[] = {"null", "bool", "number", "string", "array", "object"};
    return names[v->type];
}
