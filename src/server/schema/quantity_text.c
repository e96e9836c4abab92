/* quantity_text.c - the canonical text of an amount; see quantity.h. */
#include "quantity_int.h"
#include "json/number.h"

typedef vg_quantity_mantissa u128;

const struct vg_quantity_suffix vg_quantity_suffixes[] = {
    {"", 0, VG_QUANTITY_DECIMAL},   {"n", -9, VG_QUANTITY_DECIMAL}, {"u", -6, VG_QUANTITY_DECIMAL},
    {"m", -3, VG_QUANTITY_DECIMAL}, {"k", 3, VG_QUANTITY_DECIMAL},  {"M", 6, VG_QUANTITY_DECIMAL},
    {"G", 9, VG_QUANTITY_DECIMAL},  {"T", 12, VG_QUANTITY_DECIMAL}, {"P", 15, VG_QUANTITY_DECIMAL},
    {"E", 18, VG_QUANTITY_DECIMAL}, {"Ki", 10, VG_QUANTITY_BINARY}, {"Mi", 20, VG_QUANTITY_BINARY},
    {"Gi", 30, VG_QUANTITY_BINARY}, {"Ti", 40, VG_QUANTITY_BINARY}, {"Pi", 50, VG_QUANTITY_BINARY},
    {"Ei", 60, VG_QUANTITY_BINARY}, {NULL, 0, VG_QUANTITY_DECIMAL},
};

/* None for an exponent without a suffix, as in the original. */
static const char *find_suffix(int32_t exponent, enum vg_quantity_format format)
{
    for (const struct vg_quantity_suffix *k = vg_quantity_suffixes; k->text; k++)
        if (k->exponent == exponent && k->format == format)
            return k->text;
    return "";
}

static size_t put_digits(u128 v, char *out)
{
    char back[40];
    size_t n = 0;
    do {
        back[n++] = (char)('0' + (int)(v % 10));
        v /= 10;
    } while (v);
    for (size_t i = 0; i < n; i++)
        out[i] = back[n - 1 - i];
    return n;
}

static size_t put_suffix(int32_t exponent, enum vg_quantity_format format, char *out)
{
    if (format == VG_QUANTITY_EXPONENT) {
        if (exponent == 0)
            return 0;
        char digits[VG_JSON_NUMBER_TEXT_MAX];
        size_t n = vg_json_format_int(exponent, digits);
        out[0] = 'e';
        memcpy(out + 1, digits, n);
        return n + 1;
    }
    const char *s = find_suffix(exponent, format);
    memcpy(out, s, strlen(s));
    return strlen(s);
}

/* A whole number of at least 1024 that fits: no fraction would be lost in powers of 1024. */
static bool is_binary(const struct vg_quantity *q, u128 *ret_whole)
{
    if (q->format != VG_QUANTITY_BINARY || q->exponent < 0 || q->exponent > VG_QUANTITY_DIGITS_MAX)
        return false;
    u128 unit = vg_quantity_pow10((unsigned)q->exponent);
    if (q->mantissa > ~(u128)0 / unit)
        return false;
    *ret_whole = q->mantissa * unit;
    return *ret_whole >= 1024;
}

static size_t put_binary(u128 v, char *out)
{
    int32_t exponent = 0;
    for (; v % 1024 == 0; v /= 1024)
        exponent += 10;
    size_t n = put_digits(v, out);
    return n + put_suffix(exponent, VG_QUANTITY_BINARY, out + n);
}

/* The exponent goes down to a multiple of three. */
static size_t put_decimal(const struct vg_quantity *q, char *out)
{
    u128 v = q->mantissa;
    int32_t exponent = q->exponent;
    for (; exponent % 3 != 0; exponent = (int32_t)((uint32_t)exponent - 1))
        v *= 10;
    size_t n = put_digits(v, out);
    return n + put_suffix(exponent,
                          q->format == VG_QUANTITY_EXPONENT ? VG_QUANTITY_EXPONENT
                                                            : VG_QUANTITY_DECIMAL,
                          out + n);
}

struct vg_slice vg_quantity_text(const struct vg_quantity *q, char room[VG_QUANTITY_TEXT_MAX])
{
    if (q->written.n)
        return q->written;
    if (q->mantissa == 0)
        return VG_SLICE_LIT("0");
    size_t n = 0;
    if (q->is_negative)
        room[n++] = '-';
    u128 whole;
    n += is_binary(q, &whole) ? put_binary(whole, room + n) : put_decimal(q, room + n);
    return vg_slice(room, n);
}
