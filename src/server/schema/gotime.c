/* gotime.c - see gotime.h. */
#include "gotime.h"

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

size_t vg_gotime_format(struct vg_gotime t, bool is_micro, char ret_text[VG_TIME_TEXT_MAX])
{
    int64_t days = t.s >= 0 ? t.s / DAY_S : -((DAY_S - 1 - t.s) / DAY_S);
    int rest = (int)(t.s - days * DAY_S), y, m, d;
    date_of(days, &y, &m, &d);
    memcpy(ret_text, "0000-00-00T00:00:00Z", 21);
    put_number(ret_text, y, 4);
    put_number(ret_text + 5, m, 2);
    put_number(ret_text + 8, d, 2);
    put_number(ret_text + 11, rest / 3600, 2);
    put_number(ret_text + 14, rest / 60 % 60, 2);
    put_number(ret_text + 17, rest % 60, 2);
    if (!is_micro)
        return 20;
    memcpy(ret_text + 19, ".000000Z", 9);
    put_number(ret_text + 20, t.ns / 1000, 6);
    return 27;
}

size_t vg_time_format(int64_t wall_ms, char ret_text[VG_TIME_TEXT_MAX])
{
    int64_t s = wall_ms >= 0 ? wall_ms / 1000 : -((999 - wall_ms) / 1000);
    return vg_gotime_format((struct vg_gotime){.s = s}, false, ret_text);
}

struct reader {
    struct vg_slice all, rest;
    const char *layout; /* as Go's messages have it */
    struct vg_status *status;
};

static int refuse(const struct reader *r, const char *element)
{
    return vg_fail(r->status, VIGIL_E_INVALID,
                   "parsing time \"%.*s\" as \"%s\": cannot parse \"%.*s\" as \"%s\"",
                   VG_SLICE_ARG(r->all), r->layout, VG_SLICE_ARG(r->rest), element);
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

/* Any number of digits after a point or comma; what is finer than billionths is cut. */
static void take_fraction(struct reader *r, int32_t *ret_ns)
{
    if (r->rest.n < 2 || (r->rest.p[0] != '.' && r->rest.p[0] != ','))
        return;
    size_t i = 1;
    int32_t ns = 0, unit = 100000000;
    for (; i < r->rest.n && r->rest.p[i] >= '0' && r->rest.p[i] <= '9'; i++, unit /= 10)
        ns += (r->rest.p[i] - '0') * unit;
    if (i == 1)
        return;
    *ret_ns = ns;
    r->rest = vg_slice(r->rest.p + i, r->rest.n - i);
}

/* A point and six digits. */
static int take_micros(struct reader *r, int32_t *ret_ns)
{
    struct reader inner = *r;
    inner.status = NULL;
    int micros = 0;
    if (take_byte(&inner, '.') < 0 || take_number(&inner, 6, "", &micros) < 0)
        return refuse(r, ".000000");
    r->rest = inner.rest;
    *ret_ns = micros * 1000;
    return 0;
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

/* Right after it was read; days wait until the month is known for good. */
static int check_element(const struct reader *r, int i, int value)
{
    static const struct {
        int min, max;
        const char *name;
    } ranges[6] = {{0, 9999, "year"}, {1, 12, "month"},  {0, 99, "day"},
                   {0, 23, "hour"},   {0, 59, "minute"}, {0, 59, "second"}};
    bool is_in = value >= ranges[i].min && value <= ranges[i].max;
    return is_in ? 0 : out_of_range(r, ranges[i].name);
}

static int check_day(const struct reader *r, const int v[6])
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = v[0] % 4 == 0 && (v[0] % 100 != 0 || v[0] % 400 == 0);
    int last = days[v[1] - 1] + (v[1] == 2 && is_leap);
    return v[2] < 1 || v[2] > last ? out_of_range(r, "day") : 0;
}

/* Two digits; above 99: they are none. */
static unsigned two_digits(const char *p)
{
    unsigned a = (unsigned)(p[0] - '0'), b = (unsigned)(p[1] - '0');
    return a > 9 || b > 9 ? 100 : a * 10 + b;
}

/* As stored objects have it, "2026-11-15T09:05:39Z", and on a day that every month has: the rest is
 * for the one who knows what to say about it. */
static bool parse_plain(struct vg_slice s, struct vg_gotime *ret)
{
    if (s.n != 20 || s.p[4] != '-' || s.p[7] != '-' || s.p[10] != 'T' || s.p[13] != ':' ||
        s.p[16] != ':' || s.p[19] != 'Z')
        return false;
    unsigned century = two_digits(s.p), year = two_digits(s.p + 2), month = two_digits(s.p + 5);
    unsigned day = two_digits(s.p + 8), h = two_digits(s.p + 11), m = two_digits(s.p + 14);
    unsigned sec = two_digits(s.p + 17);
    if (century > 99 || year > 99 || month < 1 || month > 12 || day < 1 || day > 28 || h > 23 ||
        m > 59 || sec > 59)
        return false;
    int64_t days = days_of((int64_t)century * 100 + year, month, day);
    *ret = (struct vg_gotime){.s = days * DAY_S + (int64_t)h * 3600 + (int64_t)m * 60 + sec};
    return true;
}

int vg_gotime_parse(struct vg_slice text, bool is_micro, struct vg_gotime *ret,
                    struct vg_status *reterr_status)
{
    if (!is_micro && parse_plain(text, ret))
        return 0;
    static const char *const elements[] = {"2006", "01", "02", "15", "04", "05"};
    struct reader r = {.all = text,
                       .rest = text,
                       .layout = is_micro ? "2006-01-02T15:04:05.000000Z07:00"
                                          : "2006-01-02T15:04:05Z07:00",
                       .status = reterr_status};
    int v[6] = {0}, err = 0;
    for (int i = 0; i < 6 && err == 0; i++) {
        err = take_number(&r, i == 0 ? 4 : 2, elements[i], &v[i]);
        if (err == 0)
            err = check_element(&r, i, v[i]);
        if (err == 0 && i < 5)
            err = take_byte(&r, "--T::"[i]);
    }
    int64_t offset_s = 0;
    int32_t ns = 0;
    if (err == 0 && is_micro)
        err = take_micros(&r, &ns);
    else if (err == 0)
        take_fraction(&r, &ns);
    if (err == 0)
        err = take_zone(&r, &offset_s);
    if (err == 0 && r.rest.n)
        err = vg_fail(reterr_status, VIGIL_E_INVALID, "parsing time \"%.*s\": extra text: \"%.*s\"",
                      VG_SLICE_ARG(text), VG_SLICE_ARG(r.rest));
    if (err == 0)
        err = check_day(&r, v);
    if (err < 0)
        return err;
    int64_t s = days_of(v[0], v[1], v[2]) * DAY_S + v[3] * 3600 + v[4] * 60 + v[5] - offset_s;
    *ret = (struct vg_gotime){.s = s, .ns = ns};
    return 0;
}

int vg_time_parse(struct vg_slice text, int64_t *ret_s, struct vg_status *reterr_status)
{
    struct vg_gotime t;
    int err = vg_gotime_parse(text, false, &t, reterr_status);
    if (err == 0)
        *ret_s = t.s;
    return err;
}
