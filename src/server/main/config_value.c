/* config_value.c - values of flags: strict, what is not wholly understood is refused. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config_int.h"

/* 100 years: sums of a duration and a clock always fit. */
#define DURATION_MAX_MS (UINT64_C(100) * 365 * 24 * 3600 * 1000)

static bool read_digits(const char *text, uint64_t *ret, const char **ret_end)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    *ret_end = end;
    return errno == 0;
}

static bool read_number(const struct vg_flag *f, const char *text, uint64_t *ret)
{
    uint64_t n;
    const char *end;
    if (!read_digits(text, &n, &end) || *end || n < f->min || (f->max && n > f->max))
        return false;
    *ret = n;
    return true;
}

/* 1h30m, 500ms, 0. */
static bool read_duration(const char *text, uint64_t *ret_ms)
{
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    uint64_t total = 0;
    if (strcmp(text, "0") == 0) {
        *ret_ms = 0;
        return true;
    }
    if (!*text)
        return false;
    while (*text) {
        uint64_t n, part;
        size_t i = 0;
        if (!read_digits(text, &n, &text))
            return false;
        while (i < VG_ARRAY_LEN(units) && strncmp(text, units[i].name, strlen(units[i].name)) != 0)
            i++;
        if (i == VG_ARRAY_LEN(units) || __builtin_mul_overflow(n, units[i].ms, &part) ||
            __builtin_add_overflow(total, part, &total) || total > DURATION_MAX_MS)
            return false;
        text += strlen(units[i].name);
    }
    *ret_ms = total;
    return true;
}

static bool read_seconds(const struct vg_flag *f, const char *text, uint64_t *ret)
{
    uint64_t ms;
    if (read_number(f, text, ret))
        return true;
    if (!read_duration(text, &ms) || ms % 1000 || ms / 1000 < f->min || ms / 1000 > f->max)
        return false;
    *ret = ms / 1000;
    return true;
}

static bool is_choice(const char *choices, const char *text)
{
    size_t n = strlen(text);
    for (const char *p = choices; p && n; p = strchr(p, '|')) {
        p += *p == '|';
        if (strncmp(p, text, n) == 0 && (p[n] == 0 || p[n] == '|'))
            return true;
    }
    return false;
}

static bool read_bool(const char *text, bool *ret)
{
    bool is_true = strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0;
    if (!is_true && strcasecmp(text, "false") != 0 && strcmp(text, "0") != 0)
        return false;
    *ret = is_true;
    return true;
}

static int refuse_number(const struct vg_flag *f, const char *text, struct vg_status *reterr_status)
{
    if (f->max)
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "--%s: '%s' is not a number from %" PRIu64 " to %" PRIu64, f->name, text,
                       f->min, f->max);
    return vg_fail(reterr_status, VIGIL_E_INVALID,
                   "--%s: '%s' is not a number of at least %" PRIu64, f->name, text, f->min);
}

static int set_duration(const struct vg_flag *f, const char *text, uint64_t *field,
                        struct vg_status *reterr_status)
{
    uint64_t ms;
    if (!read_duration(text, &ms))
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "--%s: '%s' is not a duration: write 500ms, 30s, 5m or 1h30m", f->name,
                       text);
    if (ms < f->min)
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "--%s: '%s' is too short: at least %" PRIu64 "ms", f->name, text, f->min);
    *field = ms;
    return 0;
}

/* The first one of a source replaces what others said, further ones are added. */
static int add_to_list(const struct vg_flag *f, const char *text, struct vg_config *c,
                       const char **field)
{
    struct vg_slice joined;
    bool is_begun = false;
    for (size_t i = 0; i < c->n_begun; i++)
        is_begun = is_begun || c->begun[i] == f;
    if (!is_begun && c->n_begun < VG_CONFIG_LISTS_MAX)
        c->begun[c->n_begun++] = f;
    if (!is_begun || !*field || !*text) {
        *field = *text ? text : is_begun ? *field : NULL;
        return 0;
    }
    int r = vg_arena_printf(&c->arena, &joined, "%s,%s%c", *field, text, 0);
    if (r == 0)
        *field = joined.p;
    return r;
}

int vg_flag_set(const struct vg_flag *f, const char *text, struct vg_config *c,
                struct vg_status *reterr_status)
{
    void *field = (char *)c + f->offset;
    switch (f->type) {
    case VG_FLAG_TEXT:
        *(const char **)field = *text ? text : NULL;
        return 0;
    case VG_FLAG_LIST:
        return add_to_list(f, text, c, field);
    case VG_FLAG_CHOICE:
        if (!is_choice(f->arg, text))
            return vg_fail(reterr_status, VIGIL_E_INVALID, "--%s is one of %s, not '%s'", f->name,
                           f->arg, text);
        *(const char **)field = text;
        return 0;
    case VG_FLAG_NUMBER:
        return read_number(f, text, field) ? 0 : refuse_number(f, text, reterr_status);
    case VG_FLAG_SECONDS:
        return read_seconds(f, text, field) ? 0 : refuse_number(f, text, reterr_status);
    case VG_FLAG_DURATION:
        return set_duration(f, text, field, reterr_status);
    case VG_FLAG_BOOL:
        return read_bool(text, field) ? 0
                                      : vg_fail(reterr_status, VIGIL_E_INVALID,
                                                "--%s is true or false, not '%s'", f->name, text);
    }
    return VIGIL_E_INTERNAL;
}
