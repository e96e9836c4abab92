/* value.c - looking inside: paths, iteration, C values. Scans the bytes each time and allocates
 * nothing. Safe on any bytes: what the scanner cannot follow is not there. */
#include <stdlib.h>

#include "object_int.h"
#include "json/bytes.h"
#include "json/json.h"
#include "json/scan.h"
#include "json/skip.h"

static const struct vigil_value no_value = {VIGIL_NONE, {NULL, 0}};

static enum vigil_type type_of(struct vg_slice raw)
{
    switch (raw.n ? raw.p[0] : 0) {
    case '{':
        return VIGIL_OBJECT;
    case '[':
        return VIGIL_ARRAY;
    case '"':
        return raw.n >= 2 ? VIGIL_STRING : VIGIL_NONE;
    case 't':
    case 'f':
        return VIGIL_BOOL;
    case 'n':
        return VIGIL_NULL;
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9':
        return VIGIL_NUMBER;
    default:
        return VIGIL_NONE;
    }
}

static struct vigil_value value_of(struct vg_slice raw)
{
    enum vigil_type type = type_of(raw);
    return type == VIGIL_NONE ? no_value : (struct vigil_value){type, vg_text_of(raw)};
}

/* ---- paths ---- */

/* [12] or ["a key"]; p is after the bracket. Past the closing one, NULL: malformed. */
static const char *read_bracket(const char *p, struct vg_json_step *ret)
{
    if (*p == '"') {
        const char *q = strchr(p + 1, '"');
        if (!q || q[1] != ']')
            return NULL;
        *ret = (struct vg_json_step){.key = vg_slice(p + 1, (size_t)(q - p) - 1)};
        return q + 2;
    }
    size_t index = 0;
    const char *digits = p;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (index > UINT32_MAX)
            return NULL;
        index = index * 10 + (size_t)(*p - '0');
    }
    *ret = (struct vg_json_step){.index = index};
    return p > digits && *p == ']' ? p + 1 : NULL;
}

/* One step; p is not at the end. Past it and past the dot that follows, NULL: malformed. */
static const char *read_step(const char *p, struct vg_json_step *ret)
{
    if (*p == '[') {
        p = read_bracket(p + 1, ret);
    } else {
        size_t n = strcspn(p, ".[");
        *ret = (struct vg_json_step){.key = vg_slice(p, n)};
        p = n ? p + n : NULL;
    }
    if (!p || *p != '.')
        return p;
    return p[1] ? p + 1 : NULL; /* no path ends with a dot */
}

/* Steps that are followed at a time: no path of a built-in kind is as long. */
#define STEPS_AT_ONCE 16u

struct vigil_value vigil_value_get(struct vigil_value v, const char *path)
{
    struct vg_slice at = vg_slice_of(v.raw);
    struct vg_json_step steps[STEPS_AT_ONCE];
    if (v.type == VIGIL_NONE)
        return no_value;
    while (*path) {
        size_t n = 0;
        for (; *path && n < STEPS_AT_ONCE; n++) {
            path = read_step(path, &steps[n]);
            if (!path)
                return no_value;
        }
        if (vg_json_find(at, steps, n, &at) < 0)
            return no_value;
    }
    return value_of(at);
}

struct vigil_value vigil_get(const struct vigil_object *o, const char *path)
{
    return vigil_value_get((struct vigil_value){VIGIL_OBJECT, vigil_object_json(o)}, path);
}

/* ---- iteration ---- */

bool vigil_value_next(struct vigil_value v, struct vigil_iter *at, struct vigil_text *ret_key,
                      struct vigil_value *ret_value)
{
    struct vg_json_iter it;
    struct vg_json_raw raw;
    if ((v.type != VIGIL_ARRAY && v.type != VIGIL_OBJECT) || at->at >= v.raw.n ||
        vg_json_iter_init(&it, vg_slice_of(v.raw)) < 0)
        return false;
    if (at->at) {
        it.p = v.raw.p + at->at;
        it.first = false;
    }
    bool has = vg_json_iter_next(&it, &raw) > 0;
    at->at = has ? (size_t)(it.p - v.raw.p) : v.raw.n;
    if (!has)
        return false;
    if (ret_key)
        *ret_key = vg_text_of(raw.key);
    *ret_value = value_of(raw.value);
    return true;
}

/* ---- as C values ---- */

static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

/* The bytes were not validated: is it a number, and one without fraction and exponent? */
static bool read_number(struct vigil_value v, struct vg_json *ret)
{
    const char *p = v.raw.p, *end = p + v.raw.n, *q;
    bool is_integer = true;
    if (v.type != VIGIL_NUMBER || v.raw.n > UINT32_MAX)
        return false;
    p += p < end && *p == '-';
    if ((q = skip_digits(p, end)) == p)
        return false;
    if (q < end && *q == '.') {
        is_integer = false;
        p = q + 1;
        if ((q = skip_digits(p, end)) == p)
            return false;
    }
    if (q < end && (*q == 'e' || *q == 'E')) {
        is_integer = false;
        p = q + 1;
        p += p < end && (*p == '-' || *p == '+');
        if ((q = skip_digits(p, end)) == p)
            return false;
    }
    *ret = (struct vg_json){.type = VG_JSON_NUMBER,
                            .flags = is_integer ? VG_JSON_INTEGER : 0,
                            .n = (uint32_t)v.raw.n,
                            .text = v.raw.p};
    return q == end;
}

int64_t vigil_value_int(struct vigil_value v, int64_t otherwise)
{
    struct vg_json n;
    int64_t i;
    return read_number(v, &n) && vg_json_to_int64(&n, &i) == 0 ? i : otherwise;
}

double vigil_value_double(struct vigil_value v, double otherwise)
{
    struct vg_json n;
    double d;
    return read_number(v, &n) && vg_json_to_double(&n, &d) == 0 ? d : otherwise;
}

bool vigil_value_bool(struct vigil_value v, bool otherwise)
{
    if (v.type != VIGIL_BOOL)
        return otherwise;
    return v.raw.p[0] == 't';
}

struct vigil_text vigil_value_string(struct vigil_value v)
{
    if (v.type != VIGIL_STRING || memchr(v.raw.p, '\\', v.raw.n))
        return (struct vigil_text){NULL, 0};
    return (struct vigil_text){v.raw.p + 1, v.raw.n - 2};
}

long vigil_value_copy(struct vigil_value v, char *buf, size_t size)
{
    size_t n = 0, kept = 0;
    bool is_cut = false;
    if (v.type != VIGIL_STRING)
        return -1;
    const char *p = v.raw.p + 1, *end = v.raw.p + v.raw.n - 1;
    while (p < end) {
        char unit[4];
        size_t got = vg_json_decode_unit(&p, end, unit);
        if (got == 0)
            return -1;
        is_cut = is_cut || n + got >= size; /* whole characters, and the 0 byte */
        if (!is_cut) {
            memcpy(buf + n, unit, got);
            kept = n + got;
        }
        n += got;
    }
    if (size)
        buf[kept] = '\0';
    return (long)n;
}

struct vigil_text vigil_get_string(const struct vigil_object *o, const char *path)
{
    struct vigil_text t = vigil_value_string(vigil_get(o, path));
    return t.p ? t : (struct vigil_text){"", 0};
}

int64_t vigil_get_int(const struct vigil_object *o, const char *path, int64_t otherwise)
{
    return vigil_value_int(vigil_get(o, path), otherwise);
}
