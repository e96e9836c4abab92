/* proto_int.h - the wire format, shared by encoder and decoder. */
#ifndef VG_SCHEMA_PROTO_INT_H
#define VG_SCHEMA_PROTO_INT_H

#include <errno.h>

#include "proto.h"

enum vg_proto_wire {
    VG_PROTO_VARINT = 0,
    VG_PROTO_FIXED64 = 1,
    VG_PROTO_BYTES = 2,
    VG_PROTO_FIXED32 = 5,
};

#define VG_PROTO_VARINT_MAX 10u
#define VG_PROTO_TAG_MAX 3u

static inline size_t vg_proto_varint_size(uint64_t v)
{
    return (size_t)(63 - __builtin_clzll(v | 1)) / 7 + 1;
}

static inline char *vg_proto_write_varint(char *o, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        *o++ = (char)(v | 0x80);
    *o++ = (char)v;
    return o;
}

static inline char *vg_proto_write_tag(char *o, unsigned number, enum vg_proto_wire wire)
{
    return vg_proto_write_varint(o, (uint64_t)number << 3 | (unsigned)wire);
}

/* ---- a place to write to: a buffer with its cursor at hand ---- */

struct vg_proto_sink {
    char *o, *end;
    struct vg_buf *buf; /* its n is stale until vg_proto_sink_close */
};
/* At the end of the buffer, with room for `n` bytes. 0, -ENOMEM, VIGIL_E_TOO_LARGE. */
VG_CHECK static inline int vg_proto_sink_open(struct vg_proto_sink *s, struct vg_buf *buf, size_t n)
{
    int r = vg_buf_reserve(buf, n + 1);
    if (r < 0)
        return r;
    *s = (struct vg_proto_sink){buf->p + buf->n, buf->p + buf->cap, buf};
    return 0;
}
static inline size_t vg_proto_sink_at(const struct vg_proto_sink *s)
{
    return (size_t)(s->o - s->buf->p);
}
VG_CHECK int vg_proto_sink_grow(struct vg_proto_sink *s, size_t n);
/* Room for n bytes, and sixteen more that a copy may overrun. */
VG_CHECK static inline int vg_proto_sink_room(struct vg_proto_sink *s, size_t n)
{
    return VG_LIKELY((size_t)(s->end - s->o) >= n + 16) ? 0 : vg_proto_sink_grow(s, n + 16);
}

/* A message whose length is not known yet begins: one byte is kept for it. Room must be there. */
static inline size_t vg_proto_begin(struct vg_proto_sink *s)
{
    size_t at = vg_proto_sink_at(s);
    s->o++;
    return at;
}
VG_CHECK int vg_proto_end_long(struct vg_proto_sink *s, size_t at);
VG_CHECK static inline int vg_proto_end(struct vg_proto_sink *s, size_t at)
{
    size_t n = vg_proto_sink_at(s) - at - 1;
    if (VG_UNLIKELY(n >= 0x80))
        return vg_proto_end_long(s, at);
    s->buf->p[at] = (char)n;
    return 0;
}

/* What a value is of which nothing is there, with that tag. */
VG_CHECK int vg_proto_put_zero_other(struct vg_proto_sink *s, const struct vg_schema_field *f,
                                     unsigned number);
VG_CHECK static inline int vg_proto_put_zero(struct vg_proto_sink *s,
                                             const struct vg_schema_field *f, unsigned number)
{
    int r = vg_proto_sink_room(s, VG_PROTO_TAG_MAX + VG_PROTO_VARINT_MAX);
    if (r < 0)
        return r;
    if (VG_UNLIKELY(f->value > VG_SCHEMA_INT64))
        return vg_proto_put_zero_other(s, f, number);
    s->o = vg_proto_write_tag(s->o, number,
                              f->value == VG_SCHEMA_STRING ? VG_PROTO_BYTES : VG_PROTO_VARINT);
    *s->o++ = 0;
    return 0;
}

#endif
