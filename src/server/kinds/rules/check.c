/* check.c - places and errors; see check.h. */
#include "check.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "object/quote.h"
#include "json/write.h"

int64_t vg_at_int(const struct vg_at *at)
{
    int64_t i = 0;
    return at->v && vg_json_to_int64(at->v, &i) == 0 ? i : 0;
}

const struct vg_json *vg_json_at_path(const struct vg_json *v, const char *dotted)
{
    while (v && *dotted) {
        size_t n = strcspn(dotted, ".");
        v = vg_json_get(v, vg_slice(dotted, n));
        dotted += n + (dotted[n] == '.');
    }
    return v;
}

int vg_json_take_member(struct vg_arena *a, struct vg_json *to, const struct vg_json *from,
                        const char *name)
{
    const struct vg_json *v = vg_json_get_str(from, name);
    if (v)
        return vg_json_object_set(a, to, vg_slice_str(name), *v);
    (void)vg_json_object_remove(to, vg_slice_str(name));
    return 0;
}

bool vg_text_is_one_of(struct vg_slice text, const char *const *list)
{
    for (; *list; list++)
        if (vg_slice_eq(text, vg_slice_str(*list)))
            return true;
    return false;
}

/* ---- paths ---- */

int vg_at_append(struct vg_buf *b, const struct vg_at *at)
{
    /* A path is as deep as a type nests, so recursion is bounded by the tables. */
    int r = at->up ? vg_at_append(b, at->up) : 0;
    if (r < 0)
        return r;
    switch ((enum vg_step)at->step) {
    case VG_AT_ROOT:
        return 0;
    case VG_AT_MEMBER:
        return vg_buf_printf(b, "%s%s", b->n ? "." : "", at->name);
    case VG_AT_ITEM:
        return vg_buf_printf(b, "[%u]", at->index);
    case VG_AT_KEY:
        return vg_buf_printf(b, "[%.*s]", VG_SLICE_ARG(at->key));
    }
    return 0;
}

/* ---- errors ---- */

static void say_v(struct vg_check *c, const struct vg_at *at, const char *reason, const char *type,
                  struct vg_slice value, const char *fmt, va_list ap) VG_PRINTF(6, 0);
static void say_v(struct vg_check *c, const struct vg_at *at, const char *reason, const char *type,
                  struct vg_slice value, const char *fmt, va_list ap)
{
    VG_AUTO(buf) path = {0};
    if (vg_field_errors_is_full(c->errors))
        return;
    if (vg_at_append(&path, at) < 0 || vg_buf_append_byte(&path, '\0') < 0)
        c->errors->failed = true;
    else
        vg_field_note_v(c->errors, reason, (const char *)path.p, type, value, fmt, ap);
}

static void say(struct vg_check *c, const struct vg_at *at, const char *reason, const char *type,
                struct vg_slice value, const char *fmt, ...) VG_PRINTF(6, 7);
static void say(struct vg_check *c, const struct vg_at *at, const char *reason, const char *type,
                struct vg_slice value, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say_v(c, at, reason, type, value, fmt, ap);
    va_end(ap);
}

/* The text of a value: in the buffer, so that it lives as long as that. Nothing when nobody will
 * read it: a list that is shown for each of its items would be written thousands of times. */
static struct vg_slice shown(struct vg_check *c, struct vg_buf *b, const struct vg_json *v)
{
    static const struct vg_json null;
    if (vg_field_errors_is_full(c->errors))
        return VG_SLICE_LIT("null");
    b->max = VG_FIELD_VALUE_MAX;
    int r = vg_json_write(b, v ? v : &null, 0);
    if (r == VIGIL_E_TOO_LARGE)
        return VG_FIELD_VALUE_LONG;
    c->errors->failed |= r < 0;
    return vg_buf_slice(b);
}

/* What the client gave at a place. */
static const struct vg_json *given_at(const struct vg_check *c, const struct vg_at *at)
{
    if (at->step == VG_AT_ROOT)
        return c->given;
    const struct vg_json *up = given_at(c, at->up);
    switch (at->step) {
    case VG_AT_MEMBER:
        return vg_json_get_str(up, at->name);
    case VG_AT_KEY:
        return vg_json_get(up, at->key);
    default:
        return vg_json_at(up, at->index);
    }
}

/* The value, or what was given and is empty: that is left out of what is stored, and shown here. */
static const struct vg_json *value_at(const struct vg_check *c, const struct vg_at *at)
{
    const struct vg_json *given =
        vg_at_is_set(at) || at->is_lent || !c->given ? NULL : given_at(c, at);
    bool is_container = vg_json_is(given, VG_JSON_ARRAY) || vg_json_is(given, VG_JSON_OBJECT);
    bool is_empty = is_container ? given->n == 0
                                 : vg_json_is(given, VG_JSON_STRING) && vg_json_text(given).n == 0;
    return is_empty ? given : at->v;
}

#define WITH_VALUE(reason, type, value)                                                            \
    do {                                                                                           \
        va_list ap;                                                                                \
        va_start(ap, fmt);                                                                         \
        say_v(c, at, reason, type, value, fmt, ap);                                                \
        va_end(ap);                                                                                \
    } while (0)

void vg_bad(struct vg_check *c, const struct vg_at *at, const char *fmt, ...)
{
    VG_AUTO(buf) b = {0};
    WITH_VALUE("FieldValueInvalid", "Invalid value", shown(c, &b, value_at(c, at)));
}

void vg_bad_text(struct vg_check *c, const struct vg_at *at, const char *fmt, ...)
{
    VG_AUTO(buf) b = {0};
    if (vg_field_errors_is_full(c->errors))
        return;
    if (vg_quote_append(&b, vg_at_text(at)) < 0)
        c->errors->failed = true;
    WITH_VALUE("FieldValueInvalid", "Invalid value", vg_buf_slice(&b));
}

void vg_bad_int(struct vg_check *c, const struct vg_at *at, const char *fmt, ...)
{
    struct vg_slice text = at->v ? vg_at_text(at) : VG_SLICE_LIT("0");
    WITH_VALUE("FieldValueInvalid", "Invalid value", text);
}

void vg_bad_value(struct vg_check *c, const struct vg_at *at, struct vg_slice json, const char *fmt,
                  ...)
{
    WITH_VALUE("FieldValueInvalid", "Invalid value", json);
}

void vg_bad_type(struct vg_check *c, const struct vg_at *at, struct vg_slice json, const char *fmt,
                 ...)
{
    WITH_VALUE("FieldValueTypeInvalid", "Invalid value", json);
}

void vg_required(struct vg_check *c, const struct vg_at *at, const char *fmt, ...)
{
    WITH_VALUE("FieldValueRequired", "Required value", (struct vg_slice){0});
}

void vg_forbidden(struct vg_check *c, const struct vg_at *at, const char *fmt, ...)
{
    WITH_VALUE("FieldValueForbidden", "Forbidden", (struct vg_slice){0});
}

void vg_internal(struct vg_check *c, const struct vg_at *at, const char *fmt, ...)
{
    WITH_VALUE("InternalError", "Internal error", (struct vg_slice){0});
}

void vg_duplicate_value(struct vg_check *c, const struct vg_at *at, struct vg_slice json)
{
    say(c, at, "FieldValueDuplicate", "Duplicate value", json, NULL);
}

void vg_duplicate_because(struct vg_check *c, const struct vg_at *at, struct vg_slice json,
                          const char *why)
{
    say(c, at, "FieldValueDuplicate", "Duplicate value", json, "%s", why);
}

void vg_duplicate(struct vg_check *c, const struct vg_at *at)
{
    VG_AUTO(buf) b = {0};
    vg_duplicate_value(c, at, at->v ? shown(c, &b, at->v) : VG_SLICE_LIT("\"\""));
}

void vg_not_found(struct vg_check *c, const struct vg_at *at)
{
    VG_AUTO(buf) b = {0};
    say(c, at, "FieldValueNotFound", "Not found",
        at->v ? shown(c, &b, at->v) : VG_SLICE_LIT("\"\""), NULL);
}

void vg_not_found_because(struct vg_check *c, const struct vg_at *at, const char *fmt, ...)
{
    VG_AUTO(buf) b = {0};
    WITH_VALUE("FieldValueNotFound", "Not found", shown(c, &b, at->v));
}

void vg_unsupported_value(struct vg_check *c, const struct vg_at *at, struct vg_slice json,
                          const char *const *supported)
{
    VG_AUTO(buf) detail = {0};
    int r = 0;
    if (vg_field_errors_is_full(c->errors))
        return;
    for (const char *const *s = supported; r == 0 && *s; s++) {
        r = vg_buf_printf(&detail, "%s", s == supported ? "supported values: " : ", ");
        if (r == 0)
            r = vg_quote_append(&detail, vg_slice_str(*s));
    }
    if (r < 0)
        c->errors->failed = true;
    else
        say(c, at, "FieldValueNotSupported", "Unsupported value", json, "%.*s",
            VG_SLICE_ARG(vg_buf_slice(&detail)));
}

void vg_unsupported(struct vg_check *c, const struct vg_at *at, const char *const *supported)
{
    VG_AUTO(buf) value = {0};
    if (vg_field_errors_is_full(c->errors))
        return;
    if (vg_quote_append(&value, vg_at_text(at)) < 0)
        c->errors->failed = true;
    else
        vg_unsupported_value(c, at, vg_buf_slice(&value), supported);
}

void vg_too_long(struct vg_check *c, const struct vg_at *at, size_t max_bytes)
{
    say(c, at, "FieldValueTooLong", "Too long", (struct vg_slice){0},
        "may not be more than %zu byte%s", max_bytes, max_bytes == 1 ? "" : "s");
}

void vg_too_many(struct vg_check *c, const struct vg_at *at, size_t n, size_t max)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%zu", n);
    say(c, at, "FieldValueTooMany", "Too many", vg_slice(text, (size_t)len),
        "must have at most %zu items", max);
}

struct vg_slice vg_json_quoted(struct vg_check *c, struct vg_slice text)
{
    VG_AUTO(buf) b = {0};
    struct vg_slice ret = VG_SLICE_LIT("\"\"");
    if (vg_field_errors_is_full(c->errors))
        return ret;
    if (vg_quote_append(&b, text) < 0 || vg_arena_keep(c->arena, vg_buf_slice(&b), &ret) < 0)
        c->errors->failed = true;
    return ret;
}

struct vg_slice vg_json_number(struct vg_check *c, int64_t i)
{
    struct vg_slice ret = VG_SLICE_LIT("0");
    if (vg_arena_printf(c->arena, &ret, "%" PRId64, i) < 0)
        c->errors->failed = true;
    return ret;
}

/* ---- warnings ---- */

static void caution_v(struct vg_check *c, const struct vg_at *at, const char *fmt, va_list ap)
    VG_PRINTF(3, 0);
static void caution_v(struct vg_check *c, const struct vg_at *at, const char *fmt, va_list ap)
{
    VG_AUTO(buf) text = {0};
    int r = at ? vg_at_append(&text, at) : 0;
    if (r == 0 && at)
        r = vg_buf_append(&text, ": ", 2);
    if (r == 0)
        r = vg_buf_vprintf(&text, fmt, ap);
    if (r == 0)
        r = vg_buf_append_byte(&text, '\0');
    if (r == 0 && c->warn)
        c->warn(c->warn_arg, (const char *)text.p);
    c->errors->failed |= r < 0;
}

void vg_caution(struct vg_check *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    caution_v(c, NULL, fmt, ap);
    va_end(ap);
}

void vg_caution_at(struct vg_check *c, const struct vg_at *at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    caution_v(c, at, fmt, ap);
    va_end(ap);
}

struct vg_slice vg_json_shown(struct vg_check *c, const struct vg_json *v)
{
    VG_AUTO(buf) b = {0};
    struct vg_slice ret = VG_SLICE_LIT("null");
    if (vg_arena_keep(c->arena, shown(c, &b, v), &ret) < 0)
        c->errors->failed = true;
    return ret;
}

struct vg_slice vg_at_shown(struct vg_check *c, const struct vg_at *at)
{
    return vg_json_shown(c, value_at(c, at));
}
