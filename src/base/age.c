/* age.c - points in time as people read them. */
#include <stdio.h>

#include "age.h"

enum { MINUTE = 60, HOUR = 60 * MINUTE, DAY = 24 * HOUR, YEAR = 365 * DAY };

/* Up to `below` seconds an age is told in units of `unit`, with what is left over in `rest`; the
 * rows are in order. */
static const struct scale {
    int64_t below;
    int64_t unit, rest; /* rest 0: not told */
    char unit_name, rest_name;
} scales[] = {
    {2 * MINUTE, 1, 0, 's', 0},          {10 * MINUTE, MINUTE, 1, 'm', 's'},
    {3 * HOUR, MINUTE, 0, 'm', 0},       {8 * HOUR, HOUR, MINUTE, 'h', 'm'},
    {2 * DAY, HOUR, 0, 'h', 0},          {8 * DAY, DAY, HOUR, 'd', 'h'},
    {INT64_C(2) * YEAR, DAY, 0, 'd', 0}, {INT64_C(8) * YEAR, YEAR, DAY, 'y', 'd'},
    {INT64_MAX, YEAR, 0, 'y', 0},
};

void vg_age_text(int64_t seconds, char ret_text[VG_AGE_SIZE])
{
    const struct scale *s = scales;
    if (seconds < -1) {
        snprintf(ret_text, VG_AGE_SIZE, "<invalid>");
        return;
    }
    seconds = VG_MAX(seconds, 0);
    while (s < scales + VG_ARRAY_LEN(scales) - 1 && seconds >= s->below)
        s++;
    int64_t rest = s->rest ? seconds % s->unit / s->rest : 0;
    if (rest)
        snprintf(ret_text, VG_AGE_SIZE, "%lld%c%lld%c", (long long)(seconds / s->unit),
                 s->unit_name, (long long)rest, s->rest_name);
    else
        snprintf(ret_text, VG_AGE_SIZE, "%lld%c", (long long)(seconds / s->unit), s->unit_name);
}

/* Days since 1970 in the Gregorian calendar; years are counted from March, so that the day that
 * comes and goes is the last one. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = year / 400, of_era = year % 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* Fixed digits, between two limits. */
static bool read_number(const char **at, const char *end, int digits, int64_t min, int64_t max,
                        int64_t *ret)
{
    int64_t n = 0;
    for (int i = 0; i < digits; i++, (*at)++) {
        if (*at == end || **at < '0' || **at > '9')
            return false;
        n = n * 10 + (**at - '0');
    }
    *ret = n;
    return n >= min && n <= max;
}

static bool read_char(const char **at, const char *end, const char *any_of)
{
    return *at < end && **at && strchr(any_of, *(*at)++) != NULL;
}

static bool read_zone(const char **at, const char *end, int64_t *ret_s)
{
    int64_t hours, minutes;
    if (*at == end)
        return false;
    char sign = *(*at)++;
    *ret_s = 0;
    if (sign == 'Z' || sign == 'z')
        return true;
    if ((sign != '+' && sign != '-') || !read_number(at, end, 2, 0, 23, &hours) ||
        !read_char(at, end, ":") || !read_number(at, end, 2, 0, 59, &minutes))
        return false;
    *ret_s = (hours * HOUR + minutes * MINUTE) * (sign == '-' ? -1 : 1);
    return true;
}

bool vg_age_parse(struct vg_slice text, int64_t *ret_s)
{
    const char *at = text.p, *end = text.p + text.n;
    int64_t year, month, day, hour, minute, second, zone;
    if (!read_number(&at, end, 4, 1, 9999, &year) || !read_char(&at, end, "-") ||
        !read_number(&at, end, 2, 1, 12, &month) || !read_char(&at, end, "-") ||
        !read_number(&at, end, 2, 1, 31, &day) || !read_char(&at, end, "Tt ") ||
        !read_number(&at, end, 2, 0, 23, &hour) || !read_char(&at, end, ":") ||
        !read_number(&at, end, 2, 0, 59, &minute) || !read_char(&at, end, ":") ||
        !read_number(&at, end, 2, 0, 60, &second))
        return false;
    if (at < end && *at == '.')
        for (at++; at < end && *at >= '0' && *at <= '9';)
            at++;
    if (!read_zone(&at, end, &zone) || at != end)
        return false;
    *ret_s = days_of(year, month, day) * DAY + hour * HOUR + minute * MINUTE + second - zone;
    return true;
}
