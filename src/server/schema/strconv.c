/* strconv.c - Go's words for numbers that are none. */
#include "strconv.h"

#include <errno.h>

#include "base/buf.h"
#include "object/quote.h"

/* before + quoted s + after, in the arena; VIGIL_E_INVALID, -ENOMEM. */
static int refuse(struct vg_arena *a, const char *before, struct vg_slice s, const char *after,
                  struct vg_slice *reterr_why)
{
    VG_AUTO(buf) b = {0};
    int r = vg_buf_append(&b, before, strlen(before));
    if (r == 0)
        r = vg_quote_append(&b, s);
    if (r == 0)
        r = vg_buf_append(&b, after, strlen(after));
    if (r == 0)
        r = vg_arena_keep(a, vg_buf_slice(&b), reterr_why);
    return r < 0 ? -ENOMEM : VIGIL_E_INVALID;
}

/* 0; VIGIL_E_INVALID: not all digits; -ERANGE. */
static int read_digits(struct vg_slice s, uint64_t *ret)
{
    uint64_t n = 0;
    bool is_over = false;
    if (s.n == 0)
        return VIGIL_E_INVALID;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return VIGIL_E_INVALID;
        is_over |= __builtin_mul_overflow(n, UINT64_C(10), &n);
        is_over |= __builtin_add_overflow(n, (uint64_t)(s.p[i] - '0'), &n);
    }
    *ret = n;
    return is_over ? -ERANGE : 0;
}

static int refuse_number(struct vg_arena *a, const char *before, struct vg_slice s, int r,
                         struct vg_slice *reterr_why)
{
    return refuse(a, before, s, r == -ERANGE ? ": value out of range" : ": invalid syntax",
                  reterr_why);
}

int vg_strconv_uint(struct vg_arena *a, struct vg_slice s, uint64_t *ret,
                    struct vg_slice *reterr_why)
{
    uint64_t n;
    int r = read_digits(s, &n);
    if (r < 0)
        return refuse_number(a, "strconv.ParseUint: parsing ", s, r, reterr_why);
    *ret = n;
    return 0;
}

static int read_int(struct vg_arena *a, const char *before, struct vg_slice s, int64_t *ret,
                    struct vg_slice *reterr_why)
{
    bool is_negative = s.n && s.p[0] == '-';
    bool is_signed = s.n && (s.p[0] == '-' || s.p[0] == '+');
    uint64_t n = 0;
    int r = read_digits(vg_slice(s.p + is_signed, s.n - is_signed), &n);
    if (r == 0 && n > (uint64_t)INT64_MAX + is_negative)
        r = -ERANGE;
    if (r < 0)
        return refuse_number(a, before, s, r, reterr_why);
    *ret = is_negative ? (int64_t)(0 - n) : (int64_t)n;
    return 0;
}

int vg_strconv_int(struct vg_arena *a, struct vg_slice s, int64_t *ret, struct vg_slice *reterr_why)
{
    return read_int(a, "strconv.ParseInt: parsing ", s, ret, reterr_why);
}

int vg_strconv_atoi(struct vg_arena *a, struct vg_slice s, int64_t *ret,
                    struct vg_slice *reterr_why)
{
    return read_int(a, "strconv.Atoi: parsing ", s, ret, reterr_why);
}

/* ---- durations ---- */

struct unit {
    const char *name;
    uint64_t ns;
};

static uint64_t unit_ns(struct vg_slice name)
{
    static const struct unit units[] = {
        {"ns", 1},
        {"us", 1000},
        {"\xc2\xb5s", 1000}, /* U+00B5 */
        {"\xce\xbcs", 1000}, /* U+03BC */
        {"ms", 1000000},
        {"s", 1000000000},
        {"m", UINT64_C(60000000000)},
        {"h", UINT64_C(3600000000000)},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(units); i++)
        if (vg_slice_eq(name, vg_slice_str(units[i].name)))
            return units[i].ns;
    return 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t take_digits(struct vg_slice *s)
{
    size_t n = 0;
    while (n < s->n && is_digit(s->p[n]))
        n++;
    *s = vg_slice(s->p + n, s->n - n);
    return n;
}

/* One number with its unit off the front of *s, added to *sum. 0; VIGIL_E_INVALID; 1: no unit; 2:
 * an unknown unit, which is in *ret_unit. */
static int take_part(struct vg_slice *s, uint64_t *sum, struct vg_slice *ret_unit)
{
    struct vg_slice whole = *s, fraction;
    whole.n = take_digits(s);
    fraction = vg_slice(s->p, 0);
    if (s->n && s->p[0] == '.') {
        *s = vg_slice(s->p + 1, s->n - 1);
        fraction.p = s->p;
        fraction.n = take_digits(s);
    }
    if (whole.n == 0 && fraction.n == 0)
        return VIGIL_E_INVALID;
    size_t unit_n = 0;
    while (unit_n < s->n && s->p[unit_n] != '.' && !is_digit(s->p[unit_n]))
        unit_n++;
    if (unit_n == 0)
        return 1;
    *ret_unit = vg_slice(s->p, unit_n);
    uint64_t ns = unit_ns(*ret_unit), n = 0;
    if (ns == 0)
        return 2;
    *s = vg_slice(s->p + unit_n, s->n - unit_n);
    if (whole.n && read_digits(whole, &n) < 0)
        return VIGIL_E_INVALID;
    if (__builtin_mul_overflow(n, ns, &n) || __builtin_add_overflow(*sum, n, sum))
        return VIGIL_E_INVALID;
    double scale = (double)ns;
    for (size_t i = 0; i < fraction.n && i < 18; i++) {
        scale /= 10;
        *sum += (uint64_t)((fraction.p[i] - '0') * scale);
    }
    return *sum > (uint64_t)INT64_MAX ? VIGIL_E_INVALID : 0;
}

static int refuse_unit(struct vg_arena *a, struct vg_slice unit, struct vg_slice s,
                       struct vg_slice *reterr_why)
{
    VG_AUTO(buf) before = {0};
    int r = vg_buf_printf(&before, "time: unknown unit ");
    if (r == 0)
        r = vg_quote_append(&before, unit);
    if (r == 0)
        r = vg_buf_append(&before, " in duration ", 14);
    return r < 0 ? -ENOMEM : refuse(a, before.p, s, "", reterr_why);
}

int vg_duration_parse(struct vg_arena *a, struct vg_slice s, int64_t *ret_ns,
                      struct vg_slice *reterr_why)
{
    struct vg_slice rest = s, unit = {0};
    bool is_negative = s.n && s.p[0] == '-';
    uint64_t sum = 0;
    if (s.n && (s.p[0] == '-' || s.p[0] == '+'))
        rest = vg_slice(s.p + 1, s.n - 1);
    if (vg_slice_eq(rest, VG_SLICE_LIT("0"))) {
        *ret_ns = 0;
        return 0;
    }
    int r = rest.n ? 0 : VIGIL_E_INVALID;
    while (r == 0 && rest.n)
        r = take_part(&rest, &sum, &unit);
    if (r == 1)
        return refuse(a, "time: missing unit in duration ", s, "", reterr_why);
    if (r == 2)
        return refuse_unit(a, unit, s, reterr_why);
    if (r < 0)
        return refuse(a, "time: invalid duration ", s, "", reterr_why);
    *ret_ns = is_negative ? -(int64_t)sum : (int64_t)sum;
    return 0;
}
