/* number.c - numbers out of text and into it, on demand and whatever the locale.
 * The C library's conversions follow the program's locale; a library inside a foreign program must
 * not. Reading uses strtod_l with the "C" locale; writing takes digits and exponent apart from
 * printf's text and lays them out itself. */
#include "number.h"

#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "json.h"

/* Longest number text that is converted without the heap. */
#define SHORT_NUMBER 128

/* ---- reading ---- */

/* Digits only. */
static int read_digits(struct vg_slice s, uint64_t *ret)
{
    uint64_t u = 0;
    for (size_t i = 0; i < s.n; i++) {
        uint64_t digit = (uint64_t)(s.p[i] - '0');
        if (u > (UINT64_MAX - digit) / 10)
            return -ERANGE;
        u = u * 10 + digit;
    }
    *ret = u;
    return 0;
}

/* The integer v split in sign and magnitude. */
static int read_integer(const struct vg_json *v, bool *negative, uint64_t *magnitude)
{
    if (!vg_json_is(v, VG_JSON_NUMBER) || !(v->flags & VG_JSON_INTEGER))
        return VIGIL_E_JSON_TYPE;
    struct vg_slice s = vg_json_text(v);
    *negative = s.n > 0 && s.p[0] == '-';
    return read_digits(vg_slice(s.p + *negative, s.n - *negative), magnitude);
}

int vg_json_to_int64(const struct vg_json *v, int64_t *ret)
{
    bool negative;
    uint64_t u;
    int r = read_integer(v, &negative, &u);
    if (r < 0)
        return r;
    if (u > (uint64_t)INT64_MAX + negative)
        return -ERANGE;
    *ret = negative ? (int64_t)(0 - u) : (int64_t)u;
    return 0;
}

int vg_json_to_uint64(const struct vg_json *v, uint64_t *ret)
{
    bool negative;
    uint64_t u;
    int r = read_integer(v, &negative, &u);
    if (r < 0)
        return r;
    if (negative && u > 0)
        return -ERANGE;
    *ret = u;
    return 0;
}

/* text is NUL-terminated. glibc and musl give out their static "C" locale here: nothing is
 * allocated. */
static double to_double_c(const char *text)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    double d = c ? strtod_l(text, NULL, c) : strtod(text, NULL);
    if (c)
        freelocale(c);
    return d;
}

int vg_json_to_double(const struct vg_json *v, double *ret)
{
    if (!vg_json_is(v, VG_JSON_NUMBER))
        return VIGIL_E_JSON_TYPE;
    char brief[SHORT_NUMBER];
    char *text = v->n < sizeof brief ? brief : vg_malloc((size_t)v->n + 1);
    if (!text)
        return -ENOMEM;
    memcpy(text, v->text, v->n);
    text[v->n] = '\0';
    double d = to_double_c(text);
    if (text != brief)
        vg_free(text);
    if (!isfinite(d))
        return -ERANGE;
    *ret = d;
    return 0;
}

/* ---- writing ---- */

size_t vg_json_format_uint(uint64_t u, char out[VG_JSON_NUMBER_TEXT_MAX])
{
    char digits[20];
    size_t n = 0;
    do {
        digits[n++] = (char)('0' + u % 10);
        u /= 10;
    } while (u);
    for (size_t i = 0; i < n; i++)
        out[i] = digits[n - 1 - i];
    return n;
}

size_t vg_json_format_int(int64_t i, char out[VG_JSON_NUMBER_TEXT_MAX])
{
    if (i >= 0)
        return vg_json_format_uint((uint64_t)i, out);
    char digits[VG_JSON_NUMBER_TEXT_MAX];
    size_t n = vg_json_format_uint(0 - (uint64_t)i, digits);
    out[0] = '-';
    memcpy(out + 1, digits, n);
    return n + 1;
}

/* d = 0.DIGITS * 10^point, DIGITS without trailing zeros. */
struct decimal {
    char digits[20];
    int n;
    int point;
};

/* d > 0, rounded to `precision` digits. */
static struct decimal to_decimal(double d, int precision)
{
    char text[64];
    struct decimal dec = {.n = 0};
    snprintf(text, sizeof text, "%.*e", precision - 1, d);
    const char *p = text;
    for (; *p && *p != 'e'; p++)
        if (*p >= '0' && *p <= '9' && dec.n < (int)sizeof dec.digits) /* skips the locale's point */
            dec.digits[dec.n++] = *p;
    dec.point = (*p == 'e' ? (int)strtol(p + 1, NULL, 10) : 0) + 1;
    while (dec.n > 1 && dec.digits[dec.n - 1] == '0')
        dec.n--;
    return dec;
}

/* 1.5e+21, 1e-7: no leading zero in the exponent. */
static int put_scientific(const struct decimal *dec, char *out, size_t room)
{
    int exponent = dec->point - 1;
    return snprintf(out, room, "%c%s%.*se%c%d", dec->digits[0], dec->n > 1 ? "." : "", dec->n - 1,
                    dec->digits + 1, exponent < 0 ? '-' : '+', abs(exponent));
}

static int put_positional(const struct decimal *dec, char *out, size_t room)
{
    static const char zeros[] = "000000000000000000000000";
    int whole = dec->point;
    if (whole <= 0)
        return snprintf(out, room, "0.%.*s%.*s", -whole, zeros, dec->n, dec->digits);
    if (whole >= dec->n)
        return snprintf(out, room, "%.*s%.*s", dec->n, dec->digits, whole - dec->n, zeros);
    return snprintf(out, room, "%.*s.%.*s", whole, dec->digits, dec->n - whole,
                    dec->digits + whole);
}

static int put_decimal(const struct decimal *dec, char *out, size_t room)
{
    bool scientific = dec->point < -5 || dec->point > 21;
    return scientific ? put_scientific(dec, out, room) : put_positional(dec, out, room);
}

size_t vg_json_format_double(double d, char out[VG_JSON_NUMBER_TEXT_MAX])
{
    size_t sign = 0;
    if (!isfinite(d))
        return 0;
    if (signbit(d))
        out[sign++] = '-';
    d = fabs(d);
    if (d == 0) {
        out[sign] = '0';
        return sign + 1;
    }
    /* 15 digits of a normal number survive the way there and back, so that fewer need not be tried;
     * 17 always suffice. */
    int n = 0;
    for (int precision = d < DBL_MIN ? 1 : 15; precision <= 17; precision++) {
        struct decimal dec = to_decimal(d, precision);
        n = put_decimal(&dec, out + sign, VG_JSON_NUMBER_TEXT_MAX - sign);
        if (to_double_c(out + sign) == d)
            break;
    }
    return sign + (size_t)n;
}

/* ---- nodes ---- */

static int make_number(struct vg_arena *a, const char *text, size_t n, uint8_t flags,
                       struct vg_json *ret)
{
    char *copy = vg_arena_copy(a, text, n);
    if (!copy)
        return -ENOMEM;
    *ret = (struct vg_json){.type = VG_JSON_NUMBER, .flags = flags, .n = (uint32_t)n, .text = copy};
    return 0;
}

int vg_json_make_int(struct vg_arena *a, int64_t i, struct vg_json *ret)
{
    char text[VG_JSON_NUMBER_TEXT_MAX];
    return make_number(a, text, vg_json_format_int(i, text), VG_JSON_INTEGER, ret);
}

int vg_json_make_uint(struct vg_arena *a, uint64_t u, struct vg_json *ret)
{
    char text[VG_JSON_NUMBER_TEXT_MAX];
    return make_number(a, text, vg_json_format_uint(u, text), VG_JSON_INTEGER, ret);
}

int vg_json_make_double(struct vg_arena *a, double d, struct vg_json *ret)
{
    char text[VG_JSON_NUMBER_TEXT_MAX];
    size_t n = vg_json_format_double(d, text);
    if (n == 0)
        return VIGIL_E_INVALID;
    bool integer = !memchr(text, '.', n) && !memchr(text, 'e', n);
    return make_number(a, text, n, integer ? VG_JSON_INTEGER : 0, ret);
}
