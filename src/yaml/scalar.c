/* scalar.c - what a plain scalar means: YAML 1.1 as go-yaml v2 understands it.
 * Its own choices, followed here: y and n are booleans; a number may hold underscores anywhere;
 * integers may begin with 0x, 0o, 0b or 0 (octal); numbers of base 60 are strings. */
#include <errno.h>
#include <math.h>

#include "yaml_int.h"

#define LONG_TAG "tag:yaml.org,2002:"

struct word {
    const char *text;
    struct vg_yaml_value value;
};

#define IS_TRUE                                                                                    \
    {                                                                                              \
        .type = VG_YAML_BOOL, .is_true = true                                                      \
    }
#define IS_FALSE                                                                                   \
    {                                                                                              \
        .type = VG_YAML_BOOL                                                                       \
    }
#define IS_NULL                                                                                    \
    {                                                                                              \
        .type = VG_YAML_NULL                                                                       \
    }
#define IS_FLOAT(d)                                                                                \
    {                                                                                              \
        .type = VG_YAML_FLOAT, .number = (double)(d)                                               \
    }

/* Only these spellings: yEs is a string. */
static const struct word words[] = {
    {"y", IS_TRUE},
    {"Y", IS_TRUE},
    {"yes", IS_TRUE},
    {"Yes", IS_TRUE},
    {"YES", IS_TRUE},
    {"true", IS_TRUE},
    {"True", IS_TRUE},
    {"TRUE", IS_TRUE},
    {"on", IS_TRUE},
    {"On", IS_TRUE},
    {"ON", IS_TRUE},
    {"n", IS_FALSE},
    {"N", IS_FALSE},
    {"no", IS_FALSE},
    {"No", IS_FALSE},
    {"NO", IS_FALSE},
    {"false", IS_FALSE},
    {"False", IS_FALSE},
    {"FALSE", IS_FALSE},
    {"off", IS_FALSE},
    {"Off", IS_FALSE},
    {"OFF", IS_FALSE},
    {"", IS_NULL},
    {"~", IS_NULL},
    {"null", IS_NULL},
    {"Null", IS_NULL},
    {"NULL", IS_NULL},
    {".nan", IS_FLOAT(NAN)},
    {".NaN", IS_FLOAT(NAN)},
    {".NAN", IS_FLOAT(NAN)},
    {".inf", IS_FLOAT(INFINITY)},
    {".Inf", IS_FLOAT(INFINITY)},
    {".INF", IS_FLOAT(INFINITY)},
    {"+.inf", IS_FLOAT(INFINITY)},
    {"+.Inf", IS_FLOAT(INFINITY)},
    {"+.INF", IS_FLOAT(INFINITY)},
    {"-.inf", IS_FLOAT(-INFINITY)},
    {"-.Inf", IS_FLOAT(-INFINITY)},
    {"-.INF", IS_FLOAT(-INFINITY)},
};
#define WORD_MAX 5u

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- integers ---- */

static unsigned digit_of(char c)
{
    if (is_digit(c))
        return (unsigned)(c - '0');
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'z' ? (unsigned)(lower - 'a') + 10 : 99;
}

/* The base that a prefix names; *i moves past it. */
static unsigned base_of(struct vg_slice s, size_t *i)
{
    if (*i + 1 >= s.n || s.p[*i] != '0')
        return 10;
    char c = (char)(s.p[*i + 1] | 0x20);
    unsigned base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
    *i += base ? 2 : 1;
    return base ? base : 8;
}

/* s has no underscores. Fits 64 bits: signed, or unsigned when there is no sign at all. */
static bool read_int(struct vg_slice s, struct vg_yaml_value *ret)
{
    bool is_signed = s.n && (s.p[0] == '-' || s.p[0] == '+');
    bool is_negative = s.n && s.p[0] == '-';
    size_t i = is_signed;
    unsigned base = base_of(s, &i);
    uint64_t u = 0;
    if (i == s.n)
        return false;
    for (; i < s.n; i++) {
        unsigned digit = digit_of(s.p[i]);
        if (digit >= base || u > (UINT64_MAX - digit) / base)
            return false;
        u = u * base + digit;
    }
    if (is_signed && u > (uint64_t)INT64_MAX + is_negative)
        return false;
    *ret = (struct vg_yaml_value){
        .type = VG_YAML_INT, .is_negative = is_negative && u, .magnitude = u};
    return true;
}

/* ---- floats ---- */

/* [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? */
static bool looks_float(struct vg_slice s)
{
    size_t i = 0, whole = 0, part = 0;
    if (i < s.n && (s.p[i] == '-' || s.p[i] == '+'))
        i++;
    for (; i < s.n && is_digit(s.p[i]); i++)
        whole++;
    if (i < s.n && s.p[i] == '.')
        for (i++; i < s.n && is_digit(s.p[i]); i++)
            part++;
    if (whole == 0 && part == 0)
        return false;
    if (i < s.n && (s.p[i] | 0x20) == 'e') {
        i++;
        if (i < s.n && (s.p[i] == '-' || s.p[i] == '+'))
            i++;
        if (i == s.n)
            return false;
        while (i < s.n && is_digit(s.p[i]))
            i++;
    }
    return i == s.n;
}

/* 1: a float; 0: not, or too large for one. */
static int read_float(struct vg_slice s, struct vg_yaml_value *ret)
{
    double d;
    if (!looks_float(s))
        return 0;
    /* strtod's forms are wider than JSON's and include all that looks_float lets through. */
    struct vg_json number = {.type = VG_JSON_NUMBER, .n = (uint32_t)s.n, .text = s.p};
    int r = vg_json_to_double(&number, &d);
    if (r == -ERANGE)
        return 0;
    if (r < 0)
        return r;
    *ret = (struct vg_yaml_value){.type = VG_YAML_FLOAT, .number = d};
    return 1;
}

/* ---- timestamps ---- */

/* One or two digits, or exactly `exact`. */
static bool read_field(struct vg_slice s, size_t *i, size_t exact, int *ret)
{
    size_t from = *i, most = exact ? exact : 2;
    int v = 0;
    while (*i < s.n && *i - from < most && is_digit(s.p[*i]))
        v = v * 10 + (s.p[(*i)++] - '0');
    *ret = v;
    return exact ? *i - from == exact : *i > from;
}

static bool read_byte(struct vg_slice s, size_t *i, const char *any)
{
    if (*i >= s.n || !s.p[*i] || !strchr(any, s.p[*i]))
        return false;
    (*i)++;
    return true;
}

static bool is_day(int year, int month, int day)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month >= 1 && month <= 12 && day >= 1 &&
           day <= days[month - 1] + (month == 2 && leap ? 1 : 0);
}

/* Z, or +07:00; Go wants the hour below 25 and the minute below 61. */
static bool read_zone(struct vg_slice s, size_t *i)
{
    int hour, minute;
    if (read_byte(s, i, "Z"))
        return true;
    return read_byte(s, i, "+-") && read_field(s, i, 2, &hour) && read_byte(s, i, ":") &&
           read_field(s, i, 2, &minute) && hour <= 24 && minute <= 60;
}

static bool read_clock(struct vg_slice s, size_t *i)
{
    int hour, minute, second;
    if (!read_field(s, i, 0, &hour) || !read_byte(s, i, ":") || !read_field(s, i, 0, &minute) ||
        !read_byte(s, i, ":") || !read_field(s, i, 0, &second))
        return false;
    if (hour > 23 || minute > 59 || second > 59)
        return false;
    if (*i + 1 < s.n && (s.p[*i] == '.' || s.p[*i] == ',') && is_digit(s.p[*i + 1]))
        for ((*i)++; *i < s.n && is_digit(s.p[*i]);)
            (*i)++;
    return true;
}

bool vg_yaml_is_timestamp(struct vg_slice s)
{
    size_t i = 0;
    int year, month, day;
    if (!read_field(s, &i, 4, &year) || !read_byte(s, &i, "-") || !read_field(s, &i, 0, &month) ||
        !read_byte(s, &i, "-") || !read_field(s, &i, 0, &day) || !is_day(year, month, day))
        return false;
    if (i == s.n)
        return true;
    if (read_byte(s, &i, "Tt"))
        return read_clock(s, &i) && read_zone(s, &i) && i == s.n;
    size_t blanks = 0;
    while (read_byte(s, &i, " "))
        blanks++;
    return blanks && read_clock(s, &i) && i == s.n;
}

/* ---- all together ---- */

/* Most strings begin with none of the letters that words begin with. */
static const struct word *find_word(struct vg_slice s)
{
    if (s.n > 0 && !strchr("yYtToOnNfF~.+-", s.p[0]))
        return NULL;
    for (size_t i = 0; s.n <= WORD_MAX && i < VG_ARRAY_LEN(words); i++)
        if (vg_slice_eq(s, vg_slice_str(words[i].text)))
            return &words[i];
    return NULL;
}

/* Longest number text that is stripped of underscores; no longer one fits a number of ours. */
#define PLAIN_MAX 4096u

static int resolve_number(struct vg_slice text, struct vg_yaml_value *ret)
{
    char plain[PLAIN_MAX];
    struct vg_slice s = text;
    if (memchr(text.p, '_', text.n)) {
        size_t n = 0;
        if (text.n > sizeof plain)
            return 0;
        for (size_t i = 0; i < text.n; i++)
            if (text.p[i] != '_')
                plain[n++] = text.p[i];
        s = vg_slice(plain, n);
    }
    return read_int(s, ret) ? 1 : read_float(s, ret);
}

int vg_yaml_resolve(struct vg_slice text, bool try_timestamp, struct vg_yaml_value *ret)
{
    *ret = (struct vg_yaml_value){.type = VG_YAML_STR};
    const struct word *w = find_word(text);
    if (w) {
        *ret = w->value;
        return 0;
    }
    char c = text.p[0];
    int r = 0;
    if (c == '.')
        r = read_float(text, ret);
    else if (is_digit(c) && try_timestamp && vg_yaml_is_timestamp(text))
        ret->type = VG_YAML_TIMESTAMP;
    else if (is_digit(c) || c == '-' || c == '+')
        r = resolve_number(text, ret);
    return VG_MIN(r, 0);
}

static const char *const type_names[] = {
    [VG_YAML_STR] = "!!str",       [VG_YAML_NULL] = "!!null",   [VG_YAML_BOOL] = "!!bool",
    [VG_YAML_INT] = "!!int",       [VG_YAML_FLOAT] = "!!float", [VG_YAML_TIMESTAMP] = "!!timestamp",
    [VG_YAML_BINARY] = "!!binary", [VG_YAML_OTHER] = "!",
};

const char *vg_yaml_type_name(enum vg_yaml_type type)
{
    return type_names[type];
}

enum vg_yaml_type vg_yaml_type_of_tag(struct vg_slice tag)
{
    struct vg_slice prefix = VG_SLICE_LIT(LONG_TAG);
    if (!vg_slice_has_prefix(tag, prefix))
        return VG_YAML_OTHER;
    struct vg_slice name = vg_slice(tag.p + prefix.n, tag.n - prefix.n);
    for (int t = VG_YAML_STR; t < VG_YAML_OTHER; t++)
        if (vg_slice_eq(name, vg_slice_str(type_names[t] + 2)))
            return (enum vg_yaml_type)t;
    return VG_YAML_OTHER;
}
