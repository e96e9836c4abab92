/* job_indexes.c - sets of indexes of a job: "1,3-5"; see job.h. */
#include <inttypes.h>

#include "base/buf.h"
#include "job.h"
#include "object/quote.h"

/* Indexes are int32; a number with more digits than this fits into none. */
#define DIGITS_MAX 18u

static struct vg_slice cut(struct vg_slice *rest, char c)
{
    const char *at = rest->n ? memchr(rest->p, c, rest->n) : NULL;
    size_t n = at ? (size_t)(at - rest->p) : rest->n;
    struct vg_slice head = vg_slice(rest->p, n);
    *rest = at ? vg_slice(at + 1, rest->n - n - 1) : vg_slice(rest->p + n, 0);
    return head;
}

/* As strconv.Atoi, with its sign. */
static bool read_index(struct vg_slice s, int64_t *ret)
{
    bool has_sign = s.n && (s.p[0] == '-' || s.p[0] == '+');
    size_t first = has_sign ? 1 : 0;
    int64_t n = 0;
    if (s.n == first || s.n - first > DIGITS_MAX)
        return false;
    for (size_t i = first; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        n = n * 10 + (s.p[i] - '0');
    }
    *ret = s.p[0] == '-' ? -n : n;
    return true;
}

/* `before` + the text quoted + `after`, in the arena. */
static bool refuse(struct vg_check *c, const char *before, struct vg_slice text, const char *after,
                   struct vg_slice *ret_why)
{
    VG_AUTO(buf) b = {0};
    int r = vg_buf_printf(&b, "%s", before);
    if (r == 0)
        r = vg_quote_append(&b, text);
    if (r == 0)
        r = vg_buf_printf(&b, "%s", after);
    if (r < 0 || vg_arena_keep(c->arena, vg_buf_slice(&b), ret_why) < 0)
        c->errors->failed = true;
    return false;
}

static bool refuse_order(struct vg_check *c, int64_t before, int64_t now, struct vg_slice *ret_why)
{
    if (vg_arena_printf(c->arena, ret_why,
                        "non-increasing order, previous: %" PRId64 ", current: %" PRId64, before,
                        now) < 0)
        c->errors->failed = true;
    return false;
}

static bool read_bound(struct vg_check *c, struct vg_slice text, int64_t completions, int64_t *ret,
                       struct vg_slice *ret_why)
{
    if (!read_index(text, ret))
        return refuse(c, "cannot convert string to integer for index: ", text, "", ret_why);
    if (*ret >= completions)
        return refuse(c, "too large index: ", text, "", ret_why);
    return true;
}

static bool read_interval(struct vg_check *c, struct vg_slice text, int64_t completions,
                          int64_t *ret_from, int64_t *ret_to, struct vg_slice *ret_why)
{
    struct vg_slice rest = text, first = cut(&rest, '-');
    bool has_second = first.n < text.n;
    if (has_second && rest.n && memchr(rest.p, '-', rest.n))
        return refuse(c, "the fragment ", text,
                      " violates the requirement that an index interval can have at most two parts "
                      "separated by '-'",
                      ret_why);
    if (!read_bound(c, first, completions, ret_from, ret_why))
        return false;
    *ret_to = *ret_from;
    if (!has_second)
        return true;
    if (!read_bound(c, rest, completions, ret_to, ret_why))
        return false;
    return *ret_from < *ret_to || refuse_order(c, *ret_from, *ret_to, ret_why);
}

bool vg_job_indexes(struct vg_check *c, struct vg_slice text, int64_t completions,
                    int64_t *ret_total, struct vg_slice *ret_why)
{
    int64_t last = -1, total = 0, from = 0, to = 0;
    bool is_first = true;
    for (bool more = text.n > 0; more; is_first = false) {
        struct vg_slice part = cut(&text, ',');
        more = part.p + part.n != text.p; /* a comma was there */
        if (!read_interval(c, part, completions, &from, &to, ret_why))
            return false;
        if (!is_first && last >= from)
            return refuse_order(c, last, from, ret_why);
        total += to - from + 1;
        last = to;
    }
    *ret_total = total;
    return true;
}

/* The next interval that is one. */
static bool next_interval(struct vg_slice *rest, int64_t completions, int64_t *from, int64_t *to)
{
    while (rest->n) {
        struct vg_slice part = cut(rest, ','), second = part, first = cut(&second, '-');
        bool is_one = first.n == part.n;
        if (!read_index(first, from) || *from >= completions)
            continue;
        *to = *from;
        if (is_one || (read_index(second, to) && *to < completions && *from < *to))
            return true;
    }
    return false;
}

int64_t vg_job_indexes_overlap(struct vg_slice a, struct vg_slice b, int64_t completions)
{
    int64_t from_a, to_a, from_b, to_b;
    bool has_a = next_interval(&a, completions, &from_a, &to_a);
    bool has_b = next_interval(&b, completions, &from_b, &to_b);
    while (has_a && has_b) {
        if (from_a <= to_b && from_b <= to_a)
            return VG_MAX(from_a, from_b);
        if (from_a <= from_b)
            has_a = next_interval(&a, completions, &from_a, &to_a);
        else
            has_b = next_interval(&b, completions, &from_b, &to_b);
    }
    return -1;
}
