/* number.c - floats as Go's strconv writes them with format 'g' and the shortest precision.
 * printf finds the digits; only digits are taken from its text and given back to strtod, so that
 * the locale's decimal point plays no part. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "yaml_int.h"

/* 17 digits tell any two doubles apart, 9 any two floats. */
#define DIGITS_DOUBLE 17
#define DIGITS_FLOAT 9
/* 'g' writes an exponent below 1e-4 and from 1e6 on, when the precision is the shortest. */
#define EXPONENT_LOW (-4)
#define EXPONENT_HIGH 6

struct digits {
    char text[DIGITS_DOUBLE + 1];
    int n, exponent; /* of the first digit */
};

/* |d| with `precision` digits. */
static struct digits digits_of(double d, int precision)
{
    char text[64];
    struct digits g = {0};
    snprintf(text, sizeof text, "%.*e", precision - 1, fabs(d));
    const char *p = text;
    for (; *p && *p != 'e'; p++)
        if (*p >= '0' && *p <= '9' && g.n < DIGITS_DOUBLE)
            g.text[g.n++] = *p;
    g.exponent = *p ? (int)strtol(p + 1, NULL, 10) : 0;
    return g;
}

static bool reads_back(const struct digits *g, double d, bool is_float)
{
    char text[64];
    snprintf(text, sizeof text, "%.*se%d", g->n, g->text, g->exponent - (g->n - 1));
    return is_float ? strtof(text, NULL) == fabsf((float)d) : strtod(text, NULL) == fabs(d);
}

static struct digits shortest(double d, bool is_float)
{
    int most = is_float ? DIGITS_FLOAT : DIGITS_DOUBLE;
    struct digits g = digits_of(d, most);
    for (int precision = 1; precision < most; precision++) {
        g = digits_of(d, precision);
        if (reads_back(&g, d, is_float))
            return g;
    }
    return digits_of(d, most);
}

static int layout_exponent(const struct digits *g, char *out, size_t room)
{
    return snprintf(out, room, "%c%s%.*se%c%02d", g->text[0], g->n > 1 ? "." : "", g->n - 1,
                    g->text + 1, g->exponent < 0 ? '-' : '+', abs(g->exponent));
}

static int layout_plain(const struct digits *g, char *out, size_t room)
{
    if (g->exponent < 0)
        return snprintf(out, room, "0.%.*s%s", -g->exponent - 1, "000", g->text);
    int whole = g->exponent + 1;
    if (g->n <= whole)
        return snprintf(out, room, "%s%.*s", g->text, whole - g->n, "000000");
    return snprintf(out, room, "%.*s.%s", whole, g->text, g->text + whole);
}

static size_t format(double d, bool is_float, char out[VG_YAML_NUMBER_MAX])
{
    if (isnan(d) || isinf(d))
        return (size_t)snprintf(out, VG_YAML_NUMBER_MAX, "%s",
                                isnan(d) ? ".nan"
                                : d > 0  ? ".inf"
                                         : "-.inf");
    struct digits g = shortest(d, is_float);
    size_t sign = signbit(d) ? 1 : 0;
    out[0] = '-';
    bool plain = g.exponent >= EXPONENT_LOW && g.exponent < EXPONENT_HIGH;
    int n = (plain ? layout_plain : layout_exponent)(&g, out + sign, VG_YAML_NUMBER_MAX - sign);
    return sign + (size_t)n;
}

size_t vg_yaml_format_double(double d, char out[VG_YAML_NUMBER_MAX])
{
    return format(d, false, out);
}

size_t vg_yaml_format_float(double d, char out[VG_YAML_NUMBER_MAX])
{
    return format(d, true, out);
}
