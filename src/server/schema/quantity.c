/* quantity.c - reading and computing with amounts; see quantity.h. quantity_text.c prints. */
#include "quantity.h"

#include <errno.h>

#include "quantity_int.h"

typedef vg_quantity_mantissa u128;

#define NANO (-9)
/* 20: their number times 2^60 fits into 128 bits. */
#define BINARY_FRACTION_MAX 20
/* As many digits as the original keeps in an int64 without a further look. */
#define FAST_DIGITS 18

/* ---- whole numbers ---- */

u128 vg_quantity_pow10(unsigned n)
{
    u128 v = 1;
    for (; n > 0; n--)
        v *= 10;
    return v;
}

static unsigned count_digits(u128 v)
{
    unsigned n = 0;
    for (; v; v /= 10)
        n++;
    return n;
}

/* Makes Q1 and Q2 hold. */
static void normalize(struct vg_quantity *q)
{
    if (q->mantissa == 0) {
        q->exponent = 0;
        q->is_negative = false;
    }
    while (q->mantissa && q->mantissa % 10 == 0) {
        q->mantissa /= 10;
        q->exponent = (int32_t)((uint32_t)q->exponent + 1);
    }
}

/* v / 10^n, rounded up; *ret_exact tells whether it was. */
static u128 divide_up(u128 v, uint64_t n, bool *ret_exact)
{
    u128 q = n > VG_QUANTITY_DIGITS_MAX + 2 ? 0 : v / vg_quantity_pow10((unsigned)n);
    bool exact = n > VG_QUANTITY_DIGITS_MAX + 2 ? v == 0 : q * vg_quantity_pow10((unsigned)n) == v;
    if (ret_exact)
        *ret_exact = exact;
    return q + !exact;
}

/* ---- the parts of a text ---- */

struct parts {
    bool is_negative;
    struct vg_slice whole, fraction; /* digits; no leading zeros in whole, "0" if there is none */
    bool has_digit;
    struct vg_slice suffix;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && is_digit(*p))
        p++;
    return p;
}

static bool is_suffix_letter(char c)
{
    return c != '\0' && strchr("eEinumkKMGTP", c) != NULL;
}

/* Sign, digits, point, digits, suffix; false: something else is there. */
static bool split(struct vg_slice text, struct parts *ret)
{
    const char *p = text.p, *end = text.p + text.n;
    *ret = (struct parts){.is_negative = *p == '-', .fraction = VG_SLICE_LIT("")};
    if (*p == '-' || *p == '+')
        p++;
    const char *first = p;
    while (p < end && *p == '0')
        p++;
    const char *whole = p;
    p = skip_digits(p, end);
    ret->has_digit = p > first;
    ret->whole = p > whole ? vg_slice(whole, (size_t)(p - whole)) : VG_SLICE_LIT("0");
    if (p < end && *p == '.') {
        const char *q = skip_digits(p + 1, end);
        ret->fraction = vg_slice(p + 1, (size_t)(q - p) - 1);
        ret->has_digit |= ret->fraction.n > 0;
        p = q;
    }
    const char *suffix = p;
    while (p < end && is_suffix_letter(*p))
        p++;
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    p = skip_digits(p, end);
    ret->suffix = vg_slice(suffix, (size_t)(end - suffix));
    return p == end;
}

/* ---- suffixes ---- */

/* The decimal number after "e", which wraps at 32 bits as in the original. */
static bool read_exponent(struct vg_slice s, int32_t *ret)
{
    bool negative = s.p[0] == '-';
    size_t i = s.p[0] == '-' || s.p[0] == '+';
    uint64_t limit = (uint64_t)INT64_MAX + negative;
    uint64_t v = 0;
    if (i == s.n)
        return false;
    for (; i < s.n; i++) {
        unsigned d = (unsigned)(s.p[i] - '0');
        if (!is_digit(s.p[i]) || v > (limit - d) / 10)
            return false;
        v = v * 10 + d;
    }
    *ret = (int32_t)(uint32_t)(negative ? 0 - v : v);
    return true;
}

/* *ret_exponent: of ten, or with a binary suffix of two. */
static bool read_suffix(struct vg_slice s, int32_t *ret_exponent, enum vg_quantity_format *ret)
{
    for (const struct vg_quantity_suffix *k = vg_quantity_suffixes; k->text; k++) {
        if (vg_slice_eq(s, vg_slice_str(k->text))) {
            *ret_exponent = k->exponent;
            *ret = k->format;
            return true;
        }
    }
    *ret = VG_QUANTITY_EXPONENT;
    return s.n > 1 && (s.p[0] == 'e' || s.p[0] == 'E') &&
           read_exponent(vg_slice(s.p + 1, s.n - 1), ret_exponent);
}

/* ---- amounts ---- */

/* Digits without those at the end that say nothing. */
static size_t trim_zeros(struct vg_slice s)
{
    while (s.n && s.p[s.n - 1] == '0')
        s.n--;
    return s.n;
}

static u128 read_digits(u128 v, struct vg_slice s)
{
    for (size_t i = 0; i < s.n; i++)
        v = v * 10 + (unsigned)(s.p[i] - '0');
    return v;
}

/* All digits, at the exponent of the last one, rounded up to billionths. */
static bool read_decimal(const struct parts *t, int32_t exponent, struct vg_quantity *q)
{
    size_t whole_n = t->fraction.n ? t->whole.n : trim_zeros(t->whole);
    size_t zeros = t->whole.n - whole_n;
    int64_t least = (int64_t)exponent + (int64_t)zeros - (int64_t)t->fraction.n;
    bool is_more = false; /* a digit below the billionths was left out */
    struct vg_slice fraction = {t->fraction.p, trim_zeros(t->fraction)};
    least += (int64_t)(t->fraction.n - fraction.n);
    while (fraction.n && least < NANO) {
        is_more |= fraction.p[--fraction.n] != '0';
        least++;
    }
    struct vg_slice whole = {t->whole.p, whole_n};
    size_t lead = 0;
    if (whole.n == 1 && whole.p[0] == '0')
        while (lead < fraction.n && fraction.p[lead] == '0')
            lead++;
    if (whole.n + fraction.n - lead > VG_QUANTITY_DIGITS_MAX)
        return false;
    fraction = vg_slice(fraction.p + lead, fraction.n - lead);
    q->mantissa = read_digits(read_digits(0, whole), fraction);
    if (least < NANO) {
        bool exact;
        q->mantissa = divide_up(q->mantissa, (uint64_t)(NANO - least), &exact);
        is_more &= exact;
        least = NANO;
    }
    q->mantissa += is_more;
    q->exponent = (int32_t)(uint32_t)(uint64_t)least;
    return true;
}

/* The same times two to the shift, in billionths, and at most 2^63-1. */
static bool read_binary(const struct parts *t, unsigned shift, struct vg_quantity *q)
{
    const u128 cap = (u128)INT64_MAX * vg_quantity_pow10(9);
    struct vg_slice fraction = {t->fraction.p, trim_zeros(t->fraction)};
    if (fraction.n > BINARY_FRACTION_MAX)
        return false;
    u128 rest = read_digits(0, fraction) << shift;
    rest = fraction.n > 9 ? divide_up(rest, fraction.n - 9, NULL)
                          : rest * vg_quantity_pow10(9 - (unsigned)fraction.n);
    u128 whole = t->whole.n > 19 ? cap : read_digits(0, t->whole) << shift;
    bool is_capped = whole > (u128)INT64_MAX;
    q->mantissa = is_capped ? cap : whole * vg_quantity_pow10(9) + rest;
    if (q->mantissa > cap)
        q->mantissa = cap;
    if (q->mantissa < vg_quantity_pow10(9) && q->mantissa)
        q->format = VG_QUANTITY_DECIMAL;
    q->exponent = NANO;
    return true;
}

static unsigned last_three_are_zero(const struct parts *t)
{
    unsigned n = 0;
    for (size_t i = t->fraction.n; i > 0 && n < 3 && t->fraction.p[i - 1] == '0'; i--)
        n++;
    if (n < 3 && n == t->fraction.n)
        for (size_t i = t->whole.n; i > 0 && n < 3 && t->whole.p[i - 1] == '0'; i--)
            n++;
    return n == 3;
}

/* Would the original take it for canonical, and print it as it was written? And is it one that the
 * original reads without arbitrary precision, so that it asks? */
static bool is_taken_as_canonical(const struct parts *t, int32_t exponent,
                                  enum vg_quantity_format format, bool *ret_is_fast)
{
    if (format == VG_QUANTITY_BINARY) {
        int room = 14 - 3 * (exponent / 10);
        *ret_is_fast = t->fraction.n == 0 && (int64_t)t->whole.n <= room;
        return *ret_is_fast && (read_digits(0, t->whole) & 7) != 0;
    }
    int32_t scale = (int32_t)((uint32_t)exponent - (uint32_t)t->fraction.n);
    *ret_is_fast = t->whole.n + t->fraction.n <= FAST_DIGITS && scale >= NANO;
    return *ret_is_fast && scale % 3 == 0 && t->whole.p[0] != '0' && !last_three_are_zero(t);
}

int vg_quantity_parse(struct vg_slice text, struct vg_quantity *ret,
                      struct vg_status *reterr_status)
{
    static const char wrong[] = "quantities must match the regular expression "
                                "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    struct parts t;
    int32_t exponent = 0;
    enum vg_quantity_format format;
    if (text.n == 0 || !split(text, &t))
        return vg_fail(reterr_status, VIGIL_E_INVALID, "%s", wrong);
    if (!read_suffix(t.suffix, &exponent, &format))
        return vg_fail(reterr_status, VIGIL_E_INVALID, "unable to parse quantity's suffix");
    struct vg_quantity q = {.format = (uint8_t)format, .is_negative = t.is_negative};
    bool is_fast;
    if (is_taken_as_canonical(&t, exponent, format, &is_fast))
        q.written = text;
    bool is_read = (is_fast || t.has_digit) &&
                   (format == VG_QUANTITY_BINARY ? read_binary(&t, (unsigned)exponent, &q)
                                                 : read_decimal(&t, exponent, &q));
    if (!is_read)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "unable to parse numeric part of quantity");
    normalize(&q);
    *ret = q;
    return 0;
}

bool vg_quantity_is_plain(struct vg_slice text)
{
    size_t n = 0;
    while (n < text.n && n < 4 && is_digit(text.p[n]))
        n++;
    if (n == 0 || n > 3 || text.p[0] == '0' || text.n - n > 2)
        return false;
    char unit = text.n > n ? text.p[n] : 'm';
    if (text.n - n == 2)
        return text.p[n + 1] == 'i' && (unit == 'K' || unit == 'M' || unit == 'G' || unit == 'T');
    return unit == 'm' || unit == 'u' || unit == 'n' || unit == 'k' || unit == 'M' || unit == 'G' ||
           unit == 'T';
}

struct vg_quantity vg_quantity_of(int64_t value, int32_t exponent, enum vg_quantity_format format)
{
    uint64_t v = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    struct vg_quantity q = {
        .mantissa = v, .exponent = exponent, .format = (uint8_t)format, .is_negative = value < 0};
    normalize(&q);
    return q;
}

/* ---- computing ---- */

/* Which is farther from zero? */
static int cmp_magnitude(const struct vg_quantity *a, const struct vg_quantity *b)
{
    if (a->mantissa == 0 || b->mantissa == 0)
        return (a->mantissa != 0) - (b->mantissa != 0);
    int64_t na = (int64_t)count_digits(a->mantissa) + a->exponent;
    int64_t nb = (int64_t)count_digits(b->mantissa) + b->exponent;
    if (na != nb)
        return na < nb ? -1 : 1;
    u128 va = a->mantissa, vb = b->mantissa; /* of the same magnitude: the shift fits */
    if (a->exponent > b->exponent)
        va *= vg_quantity_pow10((unsigned)(a->exponent - b->exponent));
    else
        vb *= vg_quantity_pow10((unsigned)(b->exponent - a->exponent));
    return (va > vb) - (va < vb);
}

int vg_quantity_cmp(const struct vg_quantity *a, const struct vg_quantity *b)
{
    int sa = vg_quantity_sign(a), sb = vg_quantity_sign(b);
    if (sa != sb)
        return sa < sb ? -1 : 1;
    return sa * cmp_magnitude(a, b);
}

/* The mantissa that q has at a lower exponent; false: too many digits. */
static bool lower(const struct vg_quantity *q, int32_t exponent, u128 *ret)
{
    int64_t by = (int64_t)q->exponent - exponent;
    if (q->mantissa && count_digits(q->mantissa) + by > VG_QUANTITY_DIGITS_MAX)
        return false;
    *ret = q->mantissa ? q->mantissa * vg_quantity_pow10((unsigned)by) : 0;
    return true;
}

static int add(struct vg_quantity *q, const struct vg_quantity *other, bool other_is_negative)
{
    struct vg_quantity sum = *q;
    sum.written = (struct vg_slice){0};
    if (q->mantissa == 0)
        sum.format = other->format;
    u128 a, b;
    sum.exponent = q->mantissa == 0       ? other->exponent
                   : other->mantissa == 0 ? q->exponent
                                          : VG_MIN(q->exponent, other->exponent);
    if (!lower(q, sum.exponent, &a) || !lower(other, sum.exponent, &b))
        return -ERANGE;
    if (q->is_negative == other_is_negative)
        sum.mantissa = a + b;
    else
        sum.mantissa = a > b ? a - b : b - a;
    sum.is_negative = a > b ? q->is_negative : other_is_negative;
    normalize(&sum);
    if (count_digits(sum.mantissa) > VG_QUANTITY_DIGITS_MAX)
        return -ERANGE;
    *q = sum;
    return 0;
}

int vg_quantity_add(struct vg_quantity *q, const struct vg_quantity *other)
{
    return add(q, other, other->is_negative);
}

int vg_quantity_sub(struct vg_quantity *q, const struct vg_quantity *other)
{
    return add(q, other, !other->is_negative);
}

int vg_quantity_scaled(const struct vg_quantity *q, int32_t scale, int64_t *ret, bool *ret_exact)
{
    u128 v;
    bool exact = true;
    if (q->exponent < scale)
        v = divide_up(q->mantissa, (uint64_t)((int64_t)scale - q->exponent), &exact);
    else if (!lower(q, scale, &v))
        return -ERANGE;
    if (v > (u128)INT64_MAX + q->is_negative)
        return -ERANGE;
    *ret = (int64_t)(q->is_negative ? 0 - (uint64_t)v : (uint64_t)v);
    if (ret_exact)
        *ret_exact = exact;
    return 0;
}
