/* gotime.c - times of metadata: RFC 3339, read as strictly and refused as wordily as Go does. */
#include <inttypes.h>

#include "meta.h"

#define DAY_S INT64_C(86400)

/* Days since 1970 of a date of the proleptic Gregorian calendar (Howard Hinnant's formula). */
static int64_t days_of(int64_t y, int64_t m, int64_t d)
{
    y -= m <= 2;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + doe - 719468;
}

static void date_of(int64_t days, int *ret_y, int *ret_m, int *ret_d)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t doe = days - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    *ret_d = (int)(doy - (153 * mp + 2) / 5 + 1);
    *ret_m = (int)(mp < 10 ? mp + 3 : mp - 9);
    *ret_y = (int)(yoe + era * 400 + (*ret_m <= 2));
}

static void put_number(char *out, int value, int width)
{
    for (int i = width - 1; i >= 0; i--, value /= 10)
        out[i] = (char)('0' + value % 10);
}

size_t vg_time_format(int64_t wall_ms, char ret_text[VG_TIME_TEXT_MAX])
{
    int64_t s = wall_ms >= 0 ? wall_ms / 1000 : -((999 - wall_ms) / 1000);
    int64_t days = s >= 0 ? s / DAY_S : -((DAY_S - 1 - s) / DAY_S);
    int rest = (int)(s - days * DAY_S), y, m, d;
    date_of(days, &y, &m, &d);
    memcpy(ret_text, "0000-00-00T00:00:00Z", 21);
    put_number(ret_text, y, 4);
    put_number(ret_text + 5, m, 2);
    put_number(ret_text + 8, d, 2);
    put_number(ret_text + 11, rest / 3600, 2);
    put_number(ret_text + 14, rest / 60 % 60, 2);
    put_number(ret_text + 17, rest % 60, 2);
    return 20;
}

struct reader {
    struct vg_slice all, rest;
    struct vg_status *status;
};

#define LAYOUT "2006-01-02T15:04:05Z07:00"

static int refuse(const struct reader *r, const char *element)
{
    return vg_fail(r->status, VIGIL_E_INVALID,
                   "parsing time \"%.*s\" as \"" LAYOUT "\": cannot parse \"%.*s\" as \"%s\"",
                   VG_SLICE_ARG(r->all), VG_SLICE_ARG(r->rest), element);
}

static int out_of_range(const struct reader *r, const char *what)
{
    return vg_fail(r->status, VIGIL_E_INVALID, "parsing time \"%.*s\": %s out of range",
                   VG_SLICE_ARG(r->all), what);
}

static int take_number(struct reader *r, size_t width, const char *element, int *ret)
{
    int v = 0;
    for (size_t i = 0; i < width; i++) {
        if (i >= r->rest.n || r->rest.p[i] < '0' || r->rest.p[i] > '9')
            return refuse(r, element);
        v = v * 10 + (r->rest.p[i] - '0');
    }
    r->rest = vg_slice(r->rest.p + width, r->rest.n - width);
    *ret = v;
    return 0;
}

static int take_byte(struct reader *r, char c)
{
    if (r->rest.n == 0 || r->rest.p[0] != c)
        return refuse(r, (char[]){c, '\0'});
    r->rest = vg_slice(r->rest.p + 1, r->rest.n - 1);
    return 0;
}

static void skip_fraction(struct reader *r)
{
    if (r->rest.n < 2 || (r->rest.p[0] != '.' && r->rest.p[0] != ','))
        return;
    size_t i = 1;
    while (i < r->rest.n && r->rest.p[i] >= '0' && r->rest.p[i] <= '9')
        i++;
    if (i > 1)
        r->rest = vg_slice(r->rest.p + i, r->rest.n - i);
}

static int take_zone(struct reader *r, int64_t *ret_offset_s)
{
    *ret_offset_s = 0;
    if (r->rest.n && r->rest.p[0] == 'Z')
        return take_byte(r, 'Z');
    if (r->rest.n < 6 || (r->rest.p[0] != '+' && r->rest.p[0] != '-') || r->rest.p[3] != ':')
        return refuse(r, "Z07:00");
    bool is_west = r->rest.p[0] == '-';
    struct reader zone = *r;
    zone.rest = vg_slice(r->rest.p + 1, r->rest.n - 1);
    int h = 0, m = 0;
    if (take_number(&zone, 2, "Z07:00", &h) < 0 || take_byte(&zone, ':') < 0 ||
        take_number(&zone, 2, "Z07:00", &m) < 0)
        return refuse(r, "Z07:00");
    r->rest = zone.rest;
    *ret_offset_s = (h * 3600 + m * 60) * (is_west ? -1 : 1);
    return h > 24 || m >= 60 ? out_of_range(r, "time zone offset") : 0;
}

static int check_range(const struct reader *r, const int v[6])
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (v[1] < 1 || v[1] > 12)
        return out_of_range(r, "month");
    bool is_leap = v[0] % 4 == 0 && (v[0] % 100 != 0 || v[0] % 400 == 0);
    if (v[2] < 1 || v[2] > days[v[1] - 1] + (v[1] == 2 && is_leap))
        return out_of_range(r, "day");
    if (v[3] > 23)
        return out_of_range(r, "hour");
    if (v[4] > 59)
        return out_of_range(r, "minute");
    return v[5] > 59 ? out_of_range(r, "second") : 0;
}

int vg_time_parse(struct vg_slice text, int64_t *ret_s, struct vg_status *reterr_status)
{
    static const char *const elements[] = {"2006", "01", "02", "15", "04", "05"};
    struct reader r = {.all = text, .rest = text, .status = reterr_status};
    int v[6] = {0}, err = 0;
    for (int i = 0; i < 6 && err == 0; i++) {
        err = take_number(&r, i == 0 ? 4 : 2, elements[i], &v[i]);
        if (err == 0 && i < 5)
            err = take_byte(&r, "--T::"[i]);
    }
    int64_t offset_s = 0;
    if (err == 0) {
        skip_fraction(&r);
        err = take_zone(&r, &offset_s);
    }
    if (err == 0 && r.rest.n)
        err = vg_fail(reterr_status, VIGIL_E_INVALID, "parsing time \"%.*s\": extra text: \"%.*s\"",
                      VG_SLICE_ARG(text), VG_SLICE_ARG(r.rest));
    if (err == 0)
        err = check_range(&r, v);
    if (err < 0)
        return err;
    *ret_s = days_of(v[0], v[1], v[2]) * DAY_S + v[3] * 3600 + v[4] * 60 + v[5] - offset_s;
    return 0;
}
