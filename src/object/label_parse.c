/* label_parse.c - the text of a label selector, read as apimachinery reads it.
 * One token of look-ahead over the bytes, no recursion. `in` and `notin` are operators only where
 * an operator is expected; elsewhere they are words. Quirks that show are kept: a NUL byte ends the
 * text when a token should begin there and only separates when it follows one, and a missing '(' is
 * the one complaint without a comma. Requirements and values go into two arrays made beforehand:
 * each costs a comma of the text, but the first. */
#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "label_selector_int.h"
#include "quote.h"
#include "validate_name.h"

enum token {
    T_END,
    T_WORD,
    T_IN,
    T_NOT_IN,
    T_EQUALS,
    T_DOUBLE_EQUALS,
    T_NOT_EQUALS,
    T_GREATER,
    T_LESS,
    T_NOT,
    T_OPEN,
    T_CLOSE,
    T_COMMA,
};

struct parser {
    const char *at, *end;
    enum token token; /* the next one, not yet taken */
    struct vg_slice text;
    struct vg_label_requirement *reqs;
    struct vg_slice *values;
    uint32_t reqs_n, values_n;
    struct vg_buf *message; /* NULL: nobody wants it */
};

/* ---- tokens ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_special(char c)
{
    return c && strchr("=!(),<>", c);
}

static enum token word_token(struct vg_slice word)
{
    if (vg_slice_eq(word, VG_SLICE_LIT("in")))
        return T_IN;
    return vg_slice_eq(word, VG_SLICE_LIT("notin")) ? T_NOT_IN : T_WORD;
}

static enum token special_token(const char *p, size_t n)
{
    switch (p[0]) {
    case '=':
        return n == 2 ? T_DOUBLE_EQUALS : T_EQUALS;
    case '!':
        return n == 2 ? T_NOT_EQUALS : T_NOT;
    case '(':
        return T_OPEN;
    case ')':
        return T_CLOSE;
    case '<':
        return T_LESS;
    case '>':
        return T_GREATER;
    default:
        return T_COMMA;
    }
}

static void read_special(struct parser *p)
{
    bool may_pair = *p->at == '=' || *p->at == '!';
    size_t n = may_pair && p->at + 1 < p->end && p->at[1] == '=' ? 2 : 1;
    p->token = special_token(p->at, n);
    p->text = vg_slice(p->at, n);
    p->at += n;
}

static void read_word(struct parser *p)
{
    const char *start = p->at;
    while (p->at < p->end && *p->at && !is_space(*p->at) && !is_special(*p->at))
        p->at++;
    p->text = vg_slice(start, (size_t)(p->at - start));
    p->token = word_token(p->text);
}

/* Take the next token and look at the one after it. */
static void advance(struct parser *p)
{
    while (p->at < p->end && is_space(*p->at))
        p->at++;
    if (p->at == p->end || !*p->at) {
        p->token = T_END;
        p->text = vg_slice("", 0);
        p->at = p->end;
        return;
    }
    if (is_special(*p->at))
        read_special(p);
    else
        read_word(p);
    if (p->at < p->end && !*p->at)
        p->at++; /* a NUL after a token only separates */
}

static bool is_word(enum token t)
{
    return t == T_WORD || t == T_IN || t == T_NOT_IN;
}

/* ---- complaints ---- */

#define IN_REQUIREMENT "unable to parse requirement: "

/* `prefix`found 'TEXT'`rest` */
static int fail_found(struct parser *p, const char *prefix, const char *rest)
{
    int r = 0;
    if (p->message)
        r = vg_buf_printf(p->message, "%sfound '%.*s'%s", prefix, VG_SLICE_ARG(p->text), rest);
    return r < 0 ? r : VIGIL_E_INVALID;
}

static int fail_too_large(struct vg_buf *message, unsigned max, const char *unit)
{
    int r = 0;
    if (message)
        r = vg_buf_printf(message, "label selector has more than %u %s", max, unit);
    return r < 0 ? r : VIGIL_E_TOO_LARGE;
}

/* Invalid value: "VALUE": REASONS */
static int append_invalid(struct vg_buf *b, struct vg_slice value,
                          const struct vg_name_reasons *why)
{
    int r = vg_buf_printf(b, "Invalid value: ");
    if (r == 0)
        r = vg_quote_append(b, value);
    if (r == 0)
        r = vg_buf_printf(b, ": ");
    return r < 0 ? r : vg_name_reasons_append(b, why);
}

static int fail_key(struct parser *p, const struct vg_name_reasons *why)
{
    int r = 0;
    if (p->message)
        r = vg_buf_printf(p->message, IN_REQUIREMENT "<nil>: ");
    if (p->message && r == 0)
        r = append_invalid(p->message, p->text, why);
    return r < 0 ? r : VIGIL_E_INVALID;
}

/* ---- values that cannot be ---- */

static bool wants_number(const struct vg_label_requirement *r)
{
    return r->op == VG_LABEL_GREATER || r->op == VG_LABEL_LESS;
}

static uint32_t count_bad(const struct vg_label_requirement *r)
{
    int64_t number;
    uint32_t n = wants_number(r) && !vg_label_parse_int(r->values[0], &number);
    for (uint32_t i = 0; i < r->values_n; i++)
        n += !vg_validate_label_value(r->values[i], NULL);
    return n;
}

static int append_bad_number(struct vg_buf *b, struct vg_slice value)
{
    static const struct vg_name_reasons why = {
        .v = {"for 'Gt', 'Lt' operators, the value must be an integer"}, .n = 1};
    int r = vg_buf_printf(b, "values[0]: ");
    return r < 0 ? r : append_invalid(b, value, &why);
}

static int append_bad_value(struct vg_buf *b, const struct vg_label_requirement *req, uint32_t i,
                            const struct vg_name_reasons *why)
{
    int r = vg_buf_printf(b, "values[%u][%.*s]: ", i, VG_SLICE_ARG(req->key));
    return r < 0 ? r : append_invalid(b, req->values[i], why);
}

/* All that is wrong with the values, joined by ", ". */
static int append_bad(struct vg_buf *b, const struct vg_label_requirement *req)
{
    int64_t number;
    struct vg_name_reasons why;
    uint32_t told = 0;
    int r = 0;
    if (wants_number(req) && !vg_label_parse_int(req->values[0], &number)) {
        r = append_bad_number(b, req->values[0]);
        told = 1;
    }
    for (uint32_t i = 0; r == 0 && i < req->values_n; i++) {
        if (vg_validate_label_value(req->values[i], &why))
            continue;
        if (told++ == VG_LABEL_SELECTOR_COMPLAINTS_MAX)
            break;
        r = told > 1 ? vg_buf_printf(b, ", ") : 0;
        if (r == 0)
            r = append_bad_value(b, req, i, &why);
    }
    return r;
}

static int check_values(struct parser *p, struct vg_label_requirement *req)
{
    uint32_t bad = count_bad(req);
    if (bad == 0) {
        if (wants_number(req) && VG_NEVER(!vg_label_parse_int(req->values[0], &req->number)))
            return VIGIL_E_INTERNAL;
        return 0;
    }
    if (!p->message)
        return VIGIL_E_INVALID;
    int r = vg_buf_printf(p->message, IN_REQUIREMENT "%s", bad > 1 ? "[" : "");
    if (r == 0)
        r = append_bad(p->message, req);
    if (r == 0 && bad > 1)
        r = vg_buf_append_byte(p->message, ']');
    return r < 0 ? r : VIGIL_E_INVALID;
}

/* ---- requirements ---- */

static void add_value(struct parser *p, struct vg_label_requirement *req, struct vg_slice value)
{
    p->values[p->values_n++] = value;
    req->values_n++;
}

static int compare_values(const void *a, const void *b)
{
    return vg_slice_cmp(*(const struct vg_slice *)a, *(const struct vg_slice *)b);
}

/* Make a set of the values, which are the newest in p->values. */
static void sort_values(struct parser *p, struct vg_label_requirement *req)
{
    struct vg_slice *v = p->values + (p->values_n - req->values_n);
    uint32_t kept = 1;
    qsort(v, req->values_n, sizeof *v, compare_values);
    for (uint32_t i = 1; i < req->values_n; i++) {
        if (!vg_slice_eq(v[i], v[kept - 1]))
            v[kept++] = v[i];
    }
    p->values_n -= req->values_n - kept;
    req->values_n = kept;
}

/* From behind '(' up to ')'. Between commas may be nothing, which is the empty value. */
static int parse_list(struct parser *p, struct vg_label_requirement *req)
{
    for (;;) {
        if (is_word(p->token)) {
            add_value(p, req, p->text);
            advance(p);
            if (p->token == T_CLOSE)
                return 0;
            if (p->token != T_COMMA)
                return fail_found(p, IN_REQUIREMENT, ", expected: ',' or ')'");
        } else if (p->token == T_COMMA) {
            bool is_first = req->values_n == 0;
            advance(p);
            if (is_first || p->token == T_CLOSE || p->token == T_COMMA)
                add_value(p, req, vg_slice("", 0));
            if (p->token == T_CLOSE)
                return 0;
        } else {
            return fail_found(p, IN_REQUIREMENT, ", expected: ',', or identifier");
        }
    }
}

static int parse_values(struct parser *p, struct vg_label_requirement *req)
{
    if (p->token != T_OPEN)
        return fail_found(p, IN_REQUIREMENT, " expected: '('");
    advance(p);
    int r = 0;
    if (is_word(p->token) || p->token == T_COMMA)
        r = parse_list(p, req);
    else if (p->token == T_CLOSE)
        add_value(p, req, vg_slice("", 0));
    else
        r = fail_found(p, IN_REQUIREMENT, ", expected: ',', ')' or identifier");
    if (r < 0)
        return r;
    advance(p);
    sort_values(p, req);
    return 0;
}

static int parse_exact_value(struct parser *p, struct vg_label_requirement *req)
{
    if (p->token == T_END || p->token == T_COMMA) {
        add_value(p, req, vg_slice("", 0));
        return 0;
    }
    if (!is_word(p->token))
        return fail_found(p, IN_REQUIREMENT, ", expected: identifier");
    add_value(p, req, p->text);
    advance(p);
    return 0;
}

static bool operator_of(enum token t, enum vg_label_op *ret)
{
    static const enum vg_label_op ops[] = {
        [T_IN] = VG_LABEL_IN,           [T_NOT_IN] = VG_LABEL_NOT_IN,
        [T_EQUALS] = VG_LABEL_EQUALS,   [T_DOUBLE_EQUALS] = VG_LABEL_DOUBLE_EQUALS,
        [T_GREATER] = VG_LABEL_GREATER, [T_NOT_EQUALS] = VG_LABEL_NOT_EQUALS,
        [T_LESS] = VG_LABEL_LESS,
    };
    if (t < T_IN || t > T_LESS)
        return false;
    *ret = ops[t];
    return true;
}

static int parse_key(struct parser *p, struct vg_label_requirement *req)
{
    struct vg_name_reasons why;
    if (!is_word(p->token))
        return fail_found(p, IN_REQUIREMENT, ", expected: identifier");
    if (!vg_validate_label_key(p->text, &why))
        return fail_key(p, &why);
    req->key = p->text;
    advance(p);
    return 0;
}

static int parse_restriction(struct parser *p, struct vg_label_requirement *req)
{
    if (!operator_of(p->token, &req->op))
        return fail_found(p, IN_REQUIREMENT, ", expected: in, notin, =, ==, !=, gt, lt");
    advance(p);
    bool has_list = req->op == VG_LABEL_IN || req->op == VG_LABEL_NOT_IN;
    int r = has_list ? parse_values(p, req) : parse_exact_value(p, req);
    return r < 0 ? r : check_values(p, req);
}

static int parse_requirement(struct parser *p, struct vg_label_requirement *req)
{
    bool is_negated = p->token == T_NOT;
    if (is_negated)
        advance(p);
    *req = (struct vg_label_requirement){.values = p->values + p->values_n};
    int r = parse_key(p, req);
    if (r < 0)
        return r;
    req->op = is_negated ? VG_LABEL_NOT_EXISTS : VG_LABEL_EXISTS;
    bool is_alone = is_negated || p->token == T_END || p->token == T_COMMA;
    return is_alone ? 0 : parse_restriction(p, req);
}

static bool may_begin(enum token t)
{
    return is_word(t) || t == T_NOT;
}

/* ---- the whole ---- */

static int parse_requirements(struct parser *p)
{
    while (p->token != T_END) {
        if (!may_begin(p->token))
            return fail_found(p, "", ", expected: !, identifier, or 'end of string'");
        if (p->reqs_n == VG_LABEL_SELECTOR_REQUIREMENTS_MAX)
            return fail_too_large(p->message, VG_LABEL_SELECTOR_REQUIREMENTS_MAX, "requirements");
        int r = parse_requirement(p, &p->reqs[p->reqs_n]);
        if (r < 0)
            return r;
        p->reqs_n++;
        if (p->token == T_END)
            return 0;
        if (p->token != T_COMMA)
            return fail_found(p, "", ", expected: ',' or 'end of string'");
        advance(p);
        if (!may_begin(p->token))
            return fail_found(p, "", ", expected: identifier after ','");
    }
    return 0;
}

static int parse_into(struct parser *p, struct vg_slice text)
{
    size_t n = 1;
    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == ',';
    size_t reqs_max = VG_MIN(n, (size_t)VG_LABEL_SELECTOR_REQUIREMENTS_MAX);
    p->reqs = vg_calloc(reqs_max, sizeof *p->reqs);
    p->values = vg_calloc(n, sizeof *p->values);
    if (!p->reqs || !p->values)
        return -ENOMEM;
    advance(p);
    return parse_requirements(p);
}

int vg_label_selector_parse(struct vg_slice text, const struct vg_label_selector **ret_selector,
                            struct vg_buf *reterr_message)
{
    if (reterr_message)
        vg_buf_clear(reterr_message);
    if (text.n == 0) {
        *ret_selector = vg_label_selector_everything();
        return 0;
    }
    if (text.n > VG_LABEL_SELECTOR_BYTES_MAX)
        return fail_too_large(reterr_message, VG_LABEL_SELECTOR_BYTES_MAX, "bytes");
    struct parser p = {.at = text.p, .end = text.p + text.n, .message = reterr_message};
    int r = parse_into(&p, text);
    if (r == 0)
        r = vg_label_selector_compile(p.reqs, p.reqs_n, ret_selector);
    vg_free(p.reqs);
    vg_free(p.values);
    return r;
}
