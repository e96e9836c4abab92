/* options_parse.c - numbers and durations from the command line. Strict: what is not wholly
 * understood is refused, since a wrong revision can delete history. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "options.h"

/* Decimal digits at the start of text; *ret_end is what follows. False: none, or too many. */
static bool read_digits(const char *text, uint64_t *ret, const char **ret_end)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    *ret = n;
    *ret_end = end;
    return errno == 0;
}

int vg_parse_rev(const char *text, vg_rev min, vg_rev *ret_rev, struct vg_status *reterr_status)
{
    uint64_t n;
    const char *end;
    if (!read_digits(text, &n, &end) || *end || n < min || n > VG_REV_MAX)
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "'%s' is not a number here: give a whole number from %" PRIu64
                       " on, such as 42",
                       text, min);
    *ret_rev = n;
    return 0;
}

/* Milliseconds of a unit; 0: not one. *ret_end is what follows it. */
static uint64_t read_unit(const char *text, const char **ret_end)
{
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    for (size_t i = 0; i < VG_ARRAY_LEN(units); i++) {
        size_t n = strlen(units[i].name);
        if (strncmp(text, units[i].name, n) == 0) {
            *ret_end = text + n;
            return units[i].ms;
        }
    }
    return 0;
}

static bool read_duration(const char *text, uint64_t *ret_ms)
{
    uint64_t total = 0;
    while (*text) {
        uint64_t n, unit, part;
        if (!read_digits(text, &n, &text) || !(unit = read_unit(text, &text)))
            return false;
        if (__builtin_mul_overflow(n, unit, &part) || __builtin_add_overflow(total, part, &total))
            return false;
    }
    *ret_ms = total;
    return total > 0 && total <= VG_TTL_MAX_MS;
}

int vg_parse_duration(const char *text, uint64_t *ret_ms, struct vg_status *reterr_status)
{
    if (!read_duration(text, ret_ms))
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "'%s' is not a duration: write 500ms, 30s, 5m, 2h, 7d or 1h30m, up to 100 "
                       "years",
                       text);
    return 0;
}
