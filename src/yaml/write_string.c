/* write_string.c - a string in the style that keeps it a string.
 * Plain when it reads back as itself; quoted when it would read as something else or when YAML's
 * indicators forbid it; a literal block (|) when it has line breaks. Lines are folded at blanks
 * beyond column 80, as go-yaml v2 does. */
#include <stdio.h>

#include "base/utf8.h"
#include "yaml_int.h"

#define BEST_WIDTH 80u
#define INDENT 2
/* Longer keys get a "? " line of their own. */
#define SIMPLE_KEY_MAX 128u

/* ---- characters ---- */

struct rune {
    uint32_t code;
    size_t n; /* bytes */
};

/* s is valid UTF-8 and i within it; a byte that is not stands for itself. */
static struct rune rune_at(struct vg_slice s, size_t i)
{
    struct rune r = {.code = (unsigned char)s.p[i], .n = 1};
    if (r.code >= 0x80)
        r.n = vg_utf8_next(vg_slice(s.p + i, s.n - i), &r.code);
    r.n = r.n ? r.n : 1;
    return r;
}

static bool is_break(uint32_t c)
{
    return c == '\r' || c == '\n' || c == 0x85 || c == 0x2028 || c == 0x2029;
}

/* Characters beyond the first plane are never written as they are. */
static bool is_printable(uint32_t c)
{
    return c == '\n' || (c >= 0x20 && c <= 0x7E) || (c >= 0xA0 && c <= 0xD7FF) ||
           (c >= 0xE000 && c <= 0xFFFD && c != 0xFEFF);
}

static bool is_space_at(struct vg_slice s, size_t i)
{
    return i < s.n && s.p[i] == ' ';
}

static bool is_harmless(char c)
{
    return c > ' ' && c <= '~' && c != ':' && c != '#' && c != '\'' && c != '"' && c != '\\';
}

/* How many characters from i on are nothing but themselves, wherever they stand behind the first of
 * a string: most of most strings, which need no look at each. */
static size_t run_at(struct vg_slice s, size_t i)
{
    size_t from = i;
    while (i < s.n && is_harmless(s.p[i]))
        i++;
    return i - from;
}

static void put_run(struct vg_yaml_out *o, struct vg_slice s, size_t i, size_t n)
{
    vg_yaml_put(o, s.p + i, n, (uint32_t)n);
}

/* ---- what a string allows ---- */

struct allowed {
    bool multiline, plain, single, block;
};

struct analysis {
    bool indicator, special, breaks;
    bool leading, trailing_space, trailing_break;
    bool break_space, space_break;
};

static bool starts_indicator(uint32_t c, bool before_blank)
{
    if (c == '?' || c == ':' || c == '-')
        return before_blank;
    return c < 0x80 && c && strchr("#,[]{}&*!|>'\"%@`", (int)c);
}

static bool is_indicator(uint32_t c, size_t i, bool after_blank, bool before_blank)
{
    if (i == 0)
        return starts_indicator(c, before_blank);
    return (c == ':' && before_blank) || (c == '#' && after_blank);
}

static void analyze_blank(struct analysis *a, uint32_t c, bool first, bool last, uint32_t previous)
{
    if (c == ' ') {
        a->leading |= first;
        a->trailing_space |= last;
        a->break_space |= !first && is_break(previous);
    } else {
        a->breaks = true;
        a->leading |= first;
        a->trailing_break |= last;
        a->space_break |= !first && previous == ' ';
    }
}

static struct analysis analyze(struct vg_slice s)
{
    struct analysis a = {.indicator = vg_slice_has_prefix(s, VG_SLICE_LIT("---")) ||
                                      vg_slice_has_prefix(s, VG_SLICE_LIT("..."))};
    uint32_t previous = 0;
    for (size_t i = 0; i < s.n;) {
        size_t run = i ? run_at(s, i) : 0;
        if (run) {
            i += run;
            previous = (unsigned char)s.p[i - 1];
            continue;
        }
        struct rune r = rune_at(s, i);
        size_t next = i + r.n;
        bool last = next >= s.n;
        bool before_blank = last || s.p[next] == ' ' || s.p[next] == '\t';
        bool after_blank =
            previous == ' ' || previous == '\t' || previous == 0 || is_break(previous);
        a.indicator |= is_indicator(r.code, i, after_blank, before_blank);
        a.special |= !is_printable(r.code);
        if (r.code == ' ' || is_break(r.code))
            analyze_blank(&a, r.code, i == 0, last, previous);
        previous = r.code;
        i = next;
    }
    return a;
}

static struct allowed allow(struct vg_slice s)
{
    if (s.n == 0)
        return (struct allowed){.plain = true, .single = true};
    struct analysis a = analyze(s);
    bool odd = a.space_break || a.special;
    return (struct allowed){
        .multiline = a.breaks,
        .plain = !a.leading && !a.trailing_space && !a.trailing_break && !a.break_space && !odd &&
                 !a.breaks && !a.indicator,
        .single = !a.break_space && !odd,
        .block = !a.trailing_space && !odd,
    };
}

/* [-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)? : other readers of YAML 1.1 take it for a number. */
static bool is_base60(struct vg_slice s)
{
    size_t i = s.n && (s.p[0] == '-' || s.p[0] == '+'), parts = 0;
    if (i >= s.n || s.p[i] < '0' || s.p[i] > '9')
        return false;
    while (i < s.n && ((s.p[i] >= '0' && s.p[i] <= '9') || s.p[i] == '_'))
        i++;
    for (; i < s.n && s.p[i] == ':'; parts++) {
        size_t from = ++i;
        while (i < s.n && i - from < 2 && s.p[i] >= '0' && s.p[i] <= '9')
            i++;
        if (i == from || (i - from == 2 && s.p[from] > '5'))
            return false;
    }
    if (parts && i < s.n && s.p[i] == '.')
        for (i++; i < s.n && ((s.p[i] >= '0' && s.p[i] <= '9') || s.p[i] == '_');)
            i++;
    return parts && i == s.n;
}

bool vg_yaml_is_simple_key(struct vg_slice key)
{
    return key.n <= SIMPLE_KEY_MAX && !allow(key).multiline;
}

/* ---- the styles ---- */

static void put_rune(struct vg_yaml_out *o, struct vg_slice s, size_t i, struct rune r)
{
    vg_yaml_put(o, s.p + i, r.n, 1);
}

static void put_line_break(struct vg_yaml_out *o, struct vg_slice s, size_t i, struct rune r)
{
    if (r.code == '\n')
        vg_yaml_put_break(o);
    else
        vg_yaml_put(o, s.p + i, r.n, 1);
    o->column = 0;
    o->is_indention = true;
}

static void put_quote(struct vg_yaml_out *o, const char *quote)
{
    vg_yaml_put_indicator(o, quote, false, false);
}

static void put_blank_if_due(struct vg_yaml_out *o)
{
    if (!o->is_whitespace)
        vg_yaml_put(o, " ", 1, 1);
}

/* A blank in a long line where the line may be broken instead. Breaks stand for themselves here:
 * the plain and single-quoted styles never see \n. */
static void write_flow(struct vg_yaml_out *o, struct vg_slice s, bool may_fold, bool is_quoted)
{
    bool spaces = false, breaks = false;
    for (size_t i = 0; i < s.n && o->err == 0;) {
        struct rune r = rune_at(s, i);
        bool inside = !is_quoted || (i > 0 && i + 1 < s.n);
        if (r.code == ' ') {
            if (may_fold && !spaces && o->column > BEST_WIDTH && inside && !is_space_at(s, i + 1))
                vg_yaml_put_indent(o);
            else
                put_rune(o, s, i, r);
            spaces = true;
        } else if (is_break(r.code)) {
            put_line_break(o, s, i, r);
            breaks = true;
        } else {
            if (breaks)
                vg_yaml_put_indent(o);
            if (is_quoted && r.code == '\'')
                vg_yaml_put(o, "'", 1, 1);
            size_t run = run_at(s, i + r.n);
            put_rune(o, s, i, r);
            put_run(o, s, i + r.n, run);
            i += run;
            o->is_indention = false;
            spaces = breaks = false;
        }
        i += r.n;
    }
    o->is_whitespace = false;
    o->is_indention = false;
}

static void write_single(struct vg_yaml_out *o, struct vg_slice s, bool may_fold)
{
    put_blank_if_due(o);
    put_quote(o, "'");
    write_flow(o, s, may_fold, true);
    put_quote(o, "'");
}

static const char *short_escape(uint32_t c)
{
    switch (c) {
    case 0x00:
        return "\\0";
    case 0x07:
        return "\\a";
    case 0x08:
        return "\\b";
    case 0x09:
        return "\\t";
    case 0x0A:
        return "\\n";
    case 0x0B:
        return "\\v";
    case 0x0C:
        return "\\f";
    case 0x0D:
        return "\\r";
    case 0x1B:
        return "\\e";
    case 0x22:
        return "\\\"";
    case 0x5C:
        return "\\\\";
    case 0x85:
        return "\\N";
    case 0xA0:
        return "\\_";
    case 0x2028:
        return "\\L";
    case 0x2029:
        return "\\P";
    default:
        return NULL;
    }
}

static void put_escape(struct vg_yaml_out *o, uint32_t c)
{
    char text[16];
    const char *brief = short_escape(c);
    if (brief)
        snprintf(text, sizeof text, "%s", brief);
    else if (c <= 0xFF)
        snprintf(text, sizeof text, "\\x%02X", c);
    else if (c <= 0xFFFF)
        snprintf(text, sizeof text, "\\u%04X", c);
    else
        snprintf(text, sizeof text, "\\U%08X", c);
    vg_yaml_put(o, text, strlen(text), (uint32_t)strlen(text));
}

/* A text that begins with a byte order mark is escaped throughout, as go-yaml does. */
static void write_double(struct vg_yaml_out *o, struct vg_slice s, bool may_fold)
{
    bool spaces = false, escape_all = vg_slice_has_prefix(s, VG_SLICE_LIT("\xEF\xBB\xBF"));
    put_blank_if_due(o);
    put_quote(o, "\"");
    for (size_t i = 0; i < s.n && o->err == 0;) {
        struct rune r = rune_at(s, i);
        bool escape = escape_all || !is_printable(r.code) || is_break(r.code) || r.code == '"' ||
                      r.code == '\\';
        if (escape) {
            put_escape(o, r.code);
        } else if (r.code == ' ' && may_fold && !spaces && o->column > BEST_WIDTH && i > 0 &&
                   i + 1 < s.n) {
            vg_yaml_put_indent(o);
            if (is_space_at(s, i + 1))
                vg_yaml_put(o, "\\", 1, 1);
        } else {
            put_rune(o, s, i, r);
        }
        spaces = !escape && r.code == ' ';
        i += r.n;
        size_t run = escape_all ? 0 : run_at(s, i);
        put_run(o, s, i, run);
        spaces = spaces && run == 0;
        i += run;
    }
    put_quote(o, "\"");
}

/* How many of the last characters are line breaks: 0, 1, or 2 for more. */
static int breaks_at_end(struct vg_slice s)
{
    int n = 0;
    while (s.n && n < 2) {
        size_t i = s.n - 1;
        while (i > 0 && ((unsigned char)s.p[i] & 0xC0) == 0x80)
            i--;
        if (!is_break(rune_at(s, i).code))
            return n;
        s.n = i;
        n++;
    }
    /* A text of one break only is kept whole, too. */
    return s.n == 0 && n == 1 ? 2 : n;
}

static void write_literal(struct vg_yaml_out *o, struct vg_slice s)
{
    static const char *const chomp[] = {"-", "", "+"};
    uint32_t first = rune_at(s, 0).code;
    bool breaks = true;
    put_blank_if_due(o);
    vg_yaml_put_indicator(o, "|", false, false);
    if (first == ' ' || is_break(first))
        vg_yaml_put_indicator(o, "2", false, false);
    vg_yaml_put_indicator(o, chomp[breaks_at_end(s)], false, false);
    vg_yaml_put_break(o);
    o->is_indention = true;
    o->is_whitespace = true;
    for (size_t i = 0; i < s.n && o->err == 0;) {
        struct rune r = rune_at(s, i);
        if (is_break(r.code)) {
            put_line_break(o, s, i, r);
            breaks = true;
        } else {
            if (breaks)
                vg_yaml_put_indent(o);
            size_t run = run_at(s, i + r.n);
            put_rune(o, s, i, r);
            put_run(o, s, i + r.n, run);
            i += run;
            o->is_indention = false;
            breaks = false;
        }
        i += r.n;
    }
}

/* ---- choosing ---- */

void vg_yaml_put_plain(struct vg_yaml_out *o, struct vg_slice s)
{
    put_blank_if_due(o);
    write_flow(o, s, false, false);
}

static void write_styled(struct vg_yaml_out *o, struct vg_slice s, bool is_simple_key)
{
    struct vg_yaml_value v = {0};
    struct allowed a = allow(s);
    int r = vg_yaml_resolve(s, true, &v);
    if (r < 0)
        o->err = o->err ? o->err : r;
    bool is_text = v.type == VG_YAML_STR && !is_base60(s);
    if (s.n && memchr(s.p, '\n', s.n)) {
        if (a.block && !is_simple_key)
            write_literal(o, s);
        else
            write_double(o, s, !is_simple_key);
    } else if (!is_text || (!a.plain && !a.single)) {
        write_double(o, s, !is_simple_key);
    } else if (!a.plain) {
        write_single(o, s, !is_simple_key);
    } else {
        put_blank_if_due(o);
        write_flow(o, s, !is_simple_key, false);
    }
}

void vg_yaml_put_string(struct vg_yaml_out *o, struct vg_slice s, bool is_simple_key)
{
    int32_t indent = o->indent;
    o->indent = indent < 0 ? INDENT : indent + INDENT;
    write_styled(o, s, is_simple_key);
    o->indent = indent;
}
