/* h1_lines.c - the lines of a request's head, before a parser sees them.
 * Servers that disagree about where a line ends let requests be smuggled: so CR and LF come only
 * together, no line is folded, no field is nameless, and NUL does
 * not occur. Empty lines in front of a request are fine.
 */
#include "h1_int.h"

static int check_line(struct vg_h1_lines *l, const char *p, size_t n)
{
    bool is_start = !l->in_line && !l->after_cr;
    if (n && ((is_start && l->has_line && (*p == ' ' || *p == '\t' || *p == ':')) || l->after_cr))
        return VIGIL_E_INVALID;
    const char *cr = memchr(p, '\r', n);
    if (cr && cr != p + n - 1)
        return VIGIL_E_INVALID;
    if (memchr(p, 0, n))
        return VIGIL_E_INVALID;
    l->after_cr = l->after_cr || cr;
    l->in_line = l->in_line || n > (cr ? 1 : 0);
    return 0;
}

int vg_h1_lines_check(struct vg_h1_lines *l, const char *p, size_t n, size_t *ret_n,
                      bool *ret_is_whole)
{
    *ret_is_whole = false;
    size_t at = 0;
    while (at < n) {
        const char *lf = memchr(p + at, '\n', n - at);
        size_t end = lf ? (size_t)(lf - p) : n;
        int r = check_line(l, p + at, end - at);
        if (r < 0 || (lf && !l->after_cr))
            return VIGIL_E_INVALID;
        if (!lf)
            break;
        at = end + 1;
        *ret_is_whole = l->has_line && !l->in_line;
        l->has_line = l->has_line || l->in_line;
        l->in_line = l->after_cr = false;
        if (*ret_is_whole) {
            *ret_n = at;
            return 0;
        }
    }
    *ret_n = n;
    return 0;
}
