/* proto_encode_int.h - what the two files of the encoder share. */
#ifndef VG_SCHEMA_PROTO_ENCODE_INT_H
#define VG_SCHEMA_PROTO_ENCODE_INT_H

#include "proto_int.h"
#include "json/bytes.h"

/* The text being read and the bytes being written. */
struct vg_proto_encode {
    const char *p, *end; /* what is left of the text */
    struct vg_proto_sink out;
    struct vg_buf *order;                      /* for types whose fields have to change places */
    const struct vg_schema_field *in_revision; /* the field that gets `revision` when absent */
    struct vg_slice revision;
    unsigned depth;
};

/* e->p is at a value: '\0' at the end of the text. */
static inline char vg_proto_peek(const struct vg_proto_encode *e)
{
    return VG_LIKELY(e->p < e->end) ? *e->p : '\0';
}
/* Past a value of whatever type. */
VG_CHECK int vg_proto_skip_value(struct vg_proto_encode *e);
/* 1 and past it when the value is null, else 0. */
static inline int vg_proto_take_null(struct vg_proto_encode *e)
{
    if (VG_LIKELY(vg_proto_peek(e) != 'n') || e->end - e->p < 4 || memcmp(e->p, "null", 4) != 0)
        return 0;
    e->p += 4;
    return 1;
}
/* In a list or object after a value: 1 and past the comma, 0 and past the bracket. */
VG_CHECK static inline int vg_proto_next(struct vg_proto_encode *e, char close)
{
    char c = vg_proto_peek(e);
    if (VG_UNLIKELY(c != ',' && c != close))
        return VIGIL_E_JSON_SYNTAX;
    e->p++;
    return c == ',';
}
/* At a list or object: 1 and past the bracket, 0 and past it when it is empty. */
VG_CHECK static inline int vg_proto_enter(struct vg_proto_encode *e, char open, char close)
{
    if (VG_UNLIKELY(vg_proto_peek(e) != open))
        return VIGIL_E_JSON_TYPE;
    e->p++;
    if (VG_LIKELY(vg_proto_peek(e) != close))
        return 1;
    e->p++;
    return 0;
}

/* A string of JSON as length and bytes. */
VG_CHECK int vg_proto_put_string(struct vg_proto_encode *e);
/* A value that is not null, with that tag. */
VG_CHECK int vg_proto_put_value(struct vg_proto_encode *e, const struct vg_schema_field *f,
                                unsigned number);
/* An object of JSON as length and message. */
VG_CHECK int vg_proto_put_object(struct vg_proto_encode *e, const struct vg_schema_type *t);

#endif
