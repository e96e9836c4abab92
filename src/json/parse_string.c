/* parse_string.c - strings that are not plain ASCII.
 * Two passes: the first checks everything and finds the closing quote, so that the second can
 * unescape into memory of known size without checking again. A string with UTF-8 but no escapes
 * needs no second pass: it stays in the source. */
#include <errno.h>

#include "bytes.h"
#include "parse_int.h"

struct measure {
    const char *close; /* the closing quote */
    size_t bad;        /* bytes that become U+FFFD */
    bool escaped;
};

static const char *fail_utf8(struct vg_json_parser *ps, const char *p)
{
    return vg_json_parse_fail(ps, VIGIL_E_JSON_UTF8, p, "a string is not valid UTF-8");
}

/* A byte that is not plain, nor the closing quote. Returns the position after it and what belongs
 * to it. */
static const char *check_special(struct vg_json_parser *ps, const char *p, struct measure *m)
{
    if (p == ps->end)
        return vg_json_parse_fail(ps, VIGIL_E_JSON_SYNTAX, p, "a string has no closing quote");
    if (*p == '\\') {
        size_t n = vg_json_escape_len(p, ps->end);
        m->escaped = true;
        return n ? p + n
                 : vg_json_parse_fail(ps, VIGIL_E_JSON_SYNTAX, p,
                                      "a string has a malformed escape");
    }
    if ((unsigned char)*p < 0x20)
        return vg_json_parse_fail(ps, VIGIL_E_JSON_SYNTAX, p,
                                  "a string has a control character that is not escaped");
    size_t n = vg_json_utf8_len(p, ps->end);
    if (n)
        return p + n;
    m->bad++;
    return ps->replace_bad_utf8 ? p + 1 : fail_utf8(ps, p);
}

static int measure_string(struct vg_json_parser *ps, const char *p, struct measure *m)
{
    for (;;) {
        p = vg_json_skip_plain(p, ps->end);
        if (p < ps->end && *p == '"')
            break;
        p = check_special(ps, p, m);
        if (!p)
            return ps->err;
    }
    m->close = p;
    return 0;
}

/* Checked before: every escape is well-formed and out has room. Returns the end of what was put. */
static char *unescape(const char *p, const char *end, char *out)
{
    while (p < end) {
        const char *q = vg_json_skip_plain(p, end);
        memcpy(out, p, (size_t)(q - p));
        out += q - p;
        p = q;
        if (p < end) {
            char unit[4];
            size_t n = vg_json_decode_unit(&p, end, unit);
            if (VG_NEVER(n == 0))
                break;
            memcpy(out, unit, n);
            out += n;
        }
    }
    return out;
}

const char *vg_json_parse_string_slow(struct vg_json_parser *ps, const char *begin, const char *p,
                                      struct vg_json_string *ret)
{
    struct measure m = {0};
    if (measure_string(ps, p, &m) < 0)
        return NULL;
    size_t raw = (size_t)(m.close - begin);
    if (!m.escaped && m.bad == 0) {
        *ret = (struct vg_json_string){.text = begin, .n = (uint32_t)raw};
        return m.close + 1;
    }
    /* An escape shrinks; a bad byte grows from one to three. */
    size_t room = raw + 2 * m.bad;
    char *text = room <= UINT32_MAX ? vg_arena_alloc(ps->arena, room, 1) : NULL;
    if (!text)
        return vg_json_parse_fail(ps, -ENOMEM, begin, "out of memory");
    char *text_end = unescape(begin, m.close, text);
    *ret = (struct vg_json_string){.text = text, .n = (uint32_t)(text_end - text)};
    return m.close + 1;
}
