/* cron.c - timetables of cron jobs; see cron.h. Five fields (minute, hour, day of the month, month,
 * day of the week), each a list of ranges with a step; or a word after '@'. */
#include "cron.h"

#include <errno.h>
#include <inttypes.h>

#include "base/buf.h"
#include "check.h"
#include "server/schema/strconv.h"

#define FIELDS 5u

struct bounds {
    int64_t min, max;
    const char *const *names; /* the first is min; ends with NULL */
};

static const char *const months[] = {"jan", "feb", "mar", "apr", "may", "jun", "jul",
                                     "aug", "sep", "oct", "nov", "dec", NULL};
static const char *const days[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL};
static const struct bounds all_bounds[FIELDS] = {
    {0, 59, NULL}, {0, 23, NULL}, {1, 31, NULL}, {1, 12, months}, {0, 6, days}};

static int refuse(struct vg_arena *a, struct vg_slice *reterr_why, const char *fmt, ...)
    VG_PRINTF(3, 4);
static int refuse(struct vg_arena *a, struct vg_slice *reterr_why, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int err = vg_arena_printf_v(a, reterr_why, fmt, ap);
    va_end(ap);
    return err < 0 ? err : VIGIL_E_INVALID;
}

static struct vg_slice cut(struct vg_slice *rest, char c)
{
    const char *at = rest->n ? memchr(rest->p, c, rest->n) : NULL;
    size_t n = at ? (size_t)(at - rest->p) : rest->n;
    struct vg_slice head = vg_slice(rest->p, n);
    *rest = at ? vg_slice(at + 1, rest->n - n - 1) : vg_slice(rest->p + n, 0);
    return head;
}

static size_t count(struct vg_slice s, char c)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += s.p[i] == c;
    return n;
}

/* ---- one field ---- */

static int read_number(struct vg_arena *a, struct vg_slice s, int64_t *ret,
                       struct vg_slice *reterr_why)
{
    struct vg_slice why;
    int err = vg_strconv_atoi(a, s, ret, &why);
    if (err == VIGIL_E_INVALID)
        return refuse(a, reterr_why, "failed to parse int from %.*s: %.*s", VG_SLICE_ARG(s),
                      VG_SLICE_ARG(why));
    if (err == 0 && *ret < 0)
        return refuse(a, reterr_why, "negative number (%" PRId64 ") not allowed: %.*s", *ret,
                      VG_SLICE_ARG(s));
    return err;
}

static bool is_name(struct vg_slice s, const char *name)
{
    if (s.n != strlen(name))
        return false;
    for (size_t i = 0; i < s.n; i++)
        if ((s.p[i] >= 'A' && s.p[i] <= 'Z' ? s.p[i] + 32 : s.p[i]) != name[i])
            return false;
    return true;
}

static int read_bound(struct vg_arena *a, struct vg_slice s, const struct bounds *b, int64_t *ret,
                      struct vg_slice *reterr_why)
{
    for (size_t i = 0; b->names && b->names[i]; i++)
        if (is_name(s, b->names[i])) {
            *ret = b->min + (int64_t)i;
            return 0;
        }
    return read_number(a, s, ret, reterr_why);
}

/* From and to of "a", "a-b" or "*"; `expr` is what is blamed. */
static int read_ends(struct vg_arena *a, struct vg_slice range, struct vg_slice expr,
                     const struct bounds *b, int64_t ends[2], struct vg_slice *reterr_why)
{
    struct vg_slice rest = range, low = cut(&rest, '-');
    ends[0] = b->min;
    ends[1] = b->max;
    if (vg_slice_eq(low, VG_SLICE_LIT("*")) || vg_slice_eq(low, VG_SLICE_LIT("?")))
        return 0;
    int err = read_bound(a, low, b, &ends[0], reterr_why);
    if (err < 0)
        return err;
    ends[1] = ends[0];
    if (count(range, '-') > 1)
        return refuse(a, reterr_why, "too many hyphens: %.*s", VG_SLICE_ARG(expr));
    return count(range, '-') ? read_bound(a, rest, b, &ends[1], reterr_why) : 0;
}

static int check_range(struct vg_arena *a, struct vg_slice expr, const struct bounds *b,
                       struct vg_slice *reterr_why)
{
    struct vg_slice step_text = expr, range = cut(&step_text, '/');
    int64_t ends[2], step = 1;
    int err = read_ends(a, range, expr, b, ends, reterr_why);
    if (err == 0 && count(expr, '/') > 1)
        return refuse(a, reterr_why, "too many slashes: %.*s", VG_SLICE_ARG(expr));
    if (err == 0 && count(expr, '/'))
        err = read_number(a, step_text, &step, reterr_why);
    if (err < 0)
        return err;
    if (count(expr, '/') && count(range, '-') == 0)
        ends[1] = b->max;
    if (ends[0] < b->min)
        return refuse(a, reterr_why,
                      "beginning of range (%" PRId64 ") below minimum (%" PRId64 "): %.*s", ends[0],
                      b->min, VG_SLICE_ARG(expr));
    if (ends[1] > b->max)
        return refuse(a, reterr_why, "end of range (%" PRId64 ") above maximum (%" PRId64 "): %.*s",
                      ends[1], b->max, VG_SLICE_ARG(expr));
    if (ends[0] > ends[1])
        return refuse(a, reterr_why,
                      "beginning of range (%" PRId64 ") beyond end of range (%" PRId64 "): %.*s",
                      ends[0], ends[1], VG_SLICE_ARG(expr));
    if (step == 0)
        return refuse(a, reterr_why, "step of range should be a positive number: %.*s",
                      VG_SLICE_ARG(expr));
    return 0;
}

static int check_field(struct vg_arena *a, struct vg_slice field, const struct bounds *b,
                       struct vg_slice *reterr_why)
{
    int err = 0;
    while (field.n && err == 0) {
        struct vg_slice expr = cut(&field, ',');
        if (expr.n)
            err = check_range(a, expr, b, reterr_why);
    }
    return err;
}

/* ---- all of them ---- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct vg_slice next_word(struct vg_slice *rest)
{
    size_t from = 0, to;
    while (from < rest->n && is_space(rest->p[from]))
        from++;
    for (to = from; to < rest->n && !is_space(rest->p[to]);)
        to++;
    struct vg_slice word = vg_slice(rest->p + from, to - from);
    *rest = vg_slice(rest->p + to, rest->n - to);
    return word;
}

static int refuse_count(struct vg_arena *a, struct vg_slice text, struct vg_slice *reterr_why)
{
    VG_AUTO(buf) words = {0};
    size_t n = 0;
    int r = 0;
    for (struct vg_slice w = next_word(&text); w.n && r == 0; w = next_word(&text))
        r = vg_buf_printf(&words, "%s%.*s", n++ ? " " : "", VG_SLICE_ARG(w));
    return r < 0 ? -ENOMEM
                 : refuse(a, reterr_why, "expected exactly %u fields, found %zu: [%.*s]", FIELDS, n,
                          VG_SLICE_ARG(vg_buf_slice(&words)));
}

static int check_fields(struct vg_arena *a, struct vg_slice text, struct vg_slice *reterr_why)
{
    struct vg_slice fields[FIELDS], rest = text;
    size_t n = 0;
    for (struct vg_slice w = next_word(&rest); w.n; w = next_word(&rest)) {
        if (n == FIELDS)
            return refuse_count(a, text, reterr_why);
        fields[n++] = w;
    }
    if (n < FIELDS)
        return refuse_count(a, text, reterr_why);
    int err = 0;
    for (size_t i = 0; i < FIELDS && err == 0; i++)
        err = check_field(a, fields[i], &all_bounds[i], reterr_why);
    return err;
}

static int check_word(struct vg_arena *a, struct vg_slice text, struct vg_slice *reterr_why)
{
    static const char *const words[] = {"@yearly", "@annually", "@monthly", "@weekly",
                                        "@daily",  "@midnight", "@hourly",  NULL};
    static const struct vg_slice every = {"@every ", 7};
    struct vg_slice why;
    int64_t ns;
    if (vg_text_is_one_of(text, words))
        return 0;
    if (!vg_slice_has_prefix(text, every))
        return refuse(a, reterr_why, "unrecognized descriptor: %.*s", VG_SLICE_ARG(text));
    int err = vg_duration_parse(a, vg_slice(text.p + every.n, text.n - every.n), &ns, &why);
    return err == VIGIL_E_INVALID ? refuse(a, reterr_why, "failed to parse duration %.*s: %.*s",
                                           VG_SLICE_ARG(text), VG_SLICE_ARG(why))
                                  : err;
}

/* *text without the zone before it. */
static int take_zone(struct vg_arena *a, struct vg_slice *text, struct vg_slice *reterr_why)
{
    if (!vg_slice_has_prefix(*text, VG_SLICE_LIT("TZ=")) &&
        !vg_slice_has_prefix(*text, VG_SLICE_LIT("CRON_TZ=")))
        return 0;
    const char *space = memchr(text->p, ' ', text->n);
    if (!space)
        return refuse(a, reterr_why,
                      "invalid schedule format: runtime error: slice bounds out of range [:-1]");
    struct vg_slice zone = vg_slice(text->p, (size_t)(space - text->p));
    *text = vg_slice(space, text->n - zone.n);
    (void)cut(&zone, '=');
    while (text->n && is_space(text->p[0]))
        *text = vg_slice(text->p + 1, text->n - 1);
    if (zone.n == 0 || vg_zone_is_known(zone))
        return 0;
    return refuse(a, reterr_why, "provided bad location %.*s: unknown time zone %.*s",
                  VG_SLICE_ARG(zone), VG_SLICE_ARG(zone));
}

int vg_cron_check(struct vg_arena *a, struct vg_slice text, struct vg_slice *reterr_why)
{
    int err = take_zone(a, &text, reterr_why);
    if (err < 0)
        return err;
    if (text.n && text.p[0] == '@')
        return check_word(a, text, reterr_why);
    return check_fields(a, text, reterr_why);
}
