/* field_errors.h - what is wrong with which field, collected until a 422 is made of it.
 * Each error is a cause of the Status; the texts are those of apimachinery. Everything lies in the
 * arena. Thread: one owner. */
#ifndef VG_SCHEMA_FIELD_ERRORS_H
#define VG_SCHEMA_FIELD_ERRORS_H

#include "base/arena.h"
#include "base/slice.h"

struct vg_cause {
    const char *reason; /* "FieldValueInvalid" */
    struct vg_slice message, field;
    uint64_t hash; /* of the message: long ones are told apart without reading them */
};

struct vg_field_errors {
    struct vg_arena *arena;
    struct vg_cause *v;
    size_t n, room;
    size_t bytes; /* of their messages */
    bool failed;  /* memory was short */
};
/* 256 errors: more than a person reads; a body of 3 MiB could make a million. */
#define VG_FIELD_ERRORS_MAX 256u
/* 4 MiB of messages, and the one that gets there: a message can show a body of 3 MiB, a Status has
 * it twice. */
#define VG_FIELD_ERRORS_BYTES_MAX ((size_t)4 << 20)
/* 1 MiB of a value is shown in a message; of more, "..." alone: with all that belongs there, `{}`
 * can be hundreds of bytes. */
#define VG_FIELD_VALUE_MAX ((size_t)1 << 20)
#define VG_FIELD_VALUE_LONG VG_SLICE_LIT("\"...\"")
/* No more are taken: whoever would make a long text for one asks first. */
static inline bool vg_field_errors_is_full(const struct vg_field_errors *e)
{
    return e->failed || e->n == VG_FIELD_ERRORS_MAX || e->bytes >= VG_FIELD_ERRORS_BYTES_MAX;
}
/* Forget those after the first n: what was found wrong may stay as it is. */
void vg_field_errors_cut(struct vg_field_errors *e, size_t n);
/* Forget the i-th; those after it move up. */
void vg_field_errors_drop(struct vg_field_errors *e, size_t i);
/* One error in general: its reason, field, what is said of it ("Invalid value"), the value as JSON
 * (without: p is NULL) and a detail (NULL: none). */
void vg_field_note_v(struct vg_field_errors *e, const char *reason, const char *field,
                     const char *type, struct vg_slice value, const char *fmt, va_list ap)
    VG_PRINTF(6, 0);
void vg_field_invalid(struct vg_field_errors *e, const char *field, struct vg_slice value_json,
                      const char *fmt, ...) VG_PRINTF(4, 5); /* Invalid value: <value>: <why> */
void vg_field_required(struct vg_field_errors *e, const char *field, const char *fmt, ...)
    VG_PRINTF(3, 4);
void vg_field_forbidden(struct vg_field_errors *e, const char *field, const char *fmt, ...)
    VG_PRINTF(3, 4);
/* supported: ends with NULL; printed in the order given. */
void vg_field_not_supported(struct vg_field_errors *e, const char *field,
                            struct vg_slice value_json, const char *const *supported);
void vg_field_duplicate(struct vg_field_errors *e, const char *field, struct vg_slice value_json);
void vg_field_too_long(struct vg_field_errors *e, const char *field, const char *what, size_t max);
/* All of them as one sentence: each text once, in brackets when there are several, as
 * apimachinery's aggregate has it. 0, -ENOMEM. */
struct vg_buf;
VG_CHECK int vg_field_errors_append(struct vg_buf *b, const struct vg_field_errors *e);

#endif
