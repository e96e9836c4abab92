/* field_errors.c - what is wrong with which field, collected; see field_errors.h. */
#include <errno.h>

#include "base/buf.h"
#include "base/hash.h"
#include "field_errors.h"
#include "object/quote.h"

void vg_field_errors_cut(struct vg_field_errors *e, size_t n)
{
    while (e->n > n) {
        const struct vg_cause *last = &e->v[--e->n];
        e->bytes -= last->message.n + last->field.n;
    }
}

void vg_field_errors_drop(struct vg_field_errors *e, size_t i)
{
    e->bytes -= e->v[i].message.n + e->v[i].field.n;
    memmove(&e->v[i], &e->v[i + 1], (e->n - i - 1) * sizeof *e->v);
    e->n--;
}

static struct vg_cause *add(struct vg_field_errors *e)
{
    if (vg_field_errors_is_full(e))
        return NULL;
    if (e->n == e->room) {
        size_t room = e->room ? e->room * 2 : 4;
        struct vg_cause *v = vg_arena_array(e->arena, struct vg_cause, room);
        if (!v) {
            e->failed = true;
            return NULL;
        }
        if (e->n)
            memcpy(v, e->v, e->n * sizeof *v);
        e->v = v;
        e->room = room;
    }
    struct vg_cause *c = &e->v[e->n++];
    *c = (struct vg_cause){.reason = ""};
    return c;
}

/* head, and if there is a detail ": " and that. */
static void note(struct vg_field_errors *e, const char *reason, const char *field,
                 const struct vg_buf *head, struct vg_slice detail)
{
    struct vg_cause *c = add(e);
    if (!c)
        return;
    c->reason = reason;
    int r = vg_arena_printf(e->arena, &c->message, "%.*s%s%.*s", VG_SLICE_ARG(vg_buf_slice(head)),
                            detail.n ? ": " : "", VG_SLICE_ARG(detail));
    if (r == 0)
        r = vg_arena_keep(e->arena, vg_slice_str(field), &c->field);
    e->failed |= r < 0;
    c->hash = vg_hash(&(struct vg_hash_key){{0}}, c->message);
    e->bytes += c->message.n + c->field.n;
}

void vg_field_note_v(struct vg_field_errors *e, const char *reason, const char *field,
                     const char *type, struct vg_slice value, const char *fmt, va_list ap)
{
    VG_AUTO(buf) head = {0};
    VG_AUTO(buf) detail = {0};
    if (vg_field_errors_is_full(e))
        return;
    if (value.n > VG_FIELD_VALUE_MAX)
        value = VG_FIELD_VALUE_LONG;
    int r = vg_buf_printf(&head, "%s%s%.*s", type, value.p ? ": " : "", VG_SLICE_ARG(value));
    if (r == 0 && fmt)
        r = vg_buf_vprintf(&detail, fmt, ap);
    if (r < 0)
        e->failed = true;
    else
        note(e, reason, field, &head, vg_buf_slice(&detail));
}

void vg_field_invalid(struct vg_field_errors *e, const char *field, struct vg_slice value_json,
                      const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vg_field_note_v(e, "FieldValueInvalid", field, "Invalid value", value_json, fmt, ap);
    va_end(ap);
}

void vg_field_required(struct vg_field_errors *e, const char *field, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vg_field_note_v(e, "FieldValueRequired", field, "Required value", (struct vg_slice){0}, fmt,
                    ap);
    va_end(ap);
}

void vg_field_forbidden(struct vg_field_errors *e, const char *field, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vg_field_note_v(e, "FieldValueForbidden", field, "Forbidden", (struct vg_slice){0}, fmt, ap);
    va_end(ap);
}

void vg_field_not_supported(struct vg_field_errors *e, const char *field,
                            struct vg_slice value_json, const char *const *supported)
{
    VG_AUTO(buf) head = {0};
    VG_AUTO(buf) detail = {0};
    if (vg_field_errors_is_full(e))
        return;
    int r = vg_buf_printf(&head, "Unsupported value: %.*s", VG_SLICE_ARG(value_json));
    for (const char *const *s = supported; r == 0 && *s; s++) {
        r = vg_buf_printf(&detail, "%s", s == supported ? "supported values: " : ", ");
        if (r == 0)
            r = vg_quote_append(&detail, vg_slice_str(*s));
    }
    if (r < 0)
        e->failed = true;
    else
        note(e, "FieldValueNotSupported", field, &head, vg_buf_slice(&detail));
}

void vg_field_duplicate(struct vg_field_errors *e, const char *field, struct vg_slice value_json)
{
    VG_AUTO(buf) head = {0};
    if (vg_field_errors_is_full(e))
        return;
    if (vg_buf_printf(&head, "Duplicate value: %.*s", VG_SLICE_ARG(value_json)) < 0)
        e->failed = true;
    else
        note(e, "FieldValueDuplicate", field, &head, (struct vg_slice){0});
}

void vg_field_too_long(struct vg_field_errors *e, const char *field, const char *what, size_t max)
{
    VG_AUTO(buf) head = {0};
    if (vg_field_errors_is_full(e))
        return;
    if (vg_buf_printf(&head, "Too long: may not be more than %zu %s", max, what) < 0)
        e->failed = true;
    else
        note(e, "FieldValueTooLong", field, &head, (struct vg_slice){0});
}

static bool was_said(const struct vg_field_errors *e, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (e->v[k].hash == e->v[i].hash && vg_slice_eq(e->v[k].field, e->v[i].field) &&
            vg_slice_eq(e->v[k].message, e->v[i].message))
            return true;
    return false;
}

int vg_field_errors_append(struct vg_buf *b, const struct vg_field_errors *e)
{
    size_t distinct = 0;
    for (size_t i = 0; i < e->n; i++)
        distinct += !was_said(e, i);
    int r = distinct > 1 ? vg_buf_append_byte(b, '[') : 0;
    size_t said = 0;
    for (size_t i = 0; r == 0 && i < e->n; i++) {
        if (was_said(e, i))
            continue;
        r = vg_buf_printf(b, "%s%.*s: %.*s", said++ ? ", " : "", VG_SLICE_ARG(e->v[i].field),
                          VG_SLICE_ARG(e->v[i].message));
    }
    return r == 0 && distinct > 1 ? vg_buf_append_byte(b, ']') : r;
}
