/* proto_decode_int.h - what the files of the decoder share. */
#ifndef VG_SCHEMA_PROTO_DECODE_INT_H
#define VG_SCHEMA_PROTO_DECODE_INT_H

#include "proto_int.h"

#define VG_PROTO_NONE UINT32_MAX

/* One field on the wire. */
struct vg_proto_seen {
    const char *p; /* BYTES: where they are */
    uint64_t v;    /* the number, or how many bytes */
    uint32_t next; /* the next one of the same field, or VG_PROTO_NONE */
    uint8_t wire;  /* enum vg_proto_wire */
};
static inline struct vg_slice vg_proto_bytes(const struct vg_proto_seen *x)
{
    return vg_slice(x->p, (size_t)x->v);
}

/* All of them that belong to one field of one message, by index in `seen`. */
struct vg_proto_run {
    uint32_t first, last, n;
};

struct vg_proto_decode {
    struct vg_slice all; /* the bytes of the outermost message */
    struct vg_arena *arena;
    struct vg_status *status;
    struct vg_proto_seen *seen; /* a stack: those of the messages that are being read */
    size_t seen_n, seen_cap;
    struct vg_json_scratch scratch; /* for the JSON in it */
    unsigned depth;
};

/* ---- proto_wire.c ---- */

VG_CHECK int vg_proto_take_long(const char **p, const char *end, unsigned *ret_number,
                                struct vg_proto_seen *ret, struct vg_status *reterr_status);
/* A varint; false: it is cut off or too long. */
VG_CHECK bool vg_proto_take_varint(const char **p, const char *end, uint64_t *ret);

/* 1 and the next field with *p past it, 0: the end, VIGIL_E_INVALID with what is wrong. Numbers
 * below 16 with lengths and values below 128 are nearly all there are. */
VG_CHECK static inline int vg_proto_take(const char **p, const char *end, unsigned *ret_number,
                                         struct vg_proto_seen *ret, struct vg_status *reterr_status)
{
    const char *q = *p;
    if (VG_UNLIKELY(q == end))
        return 0;
    unsigned tag = (unsigned char)q[0], wire = tag & 7;
    if (VG_LIKELY(tag < 0x80 && tag >= 8 && end - q > 1 && (unsigned char)q[1] < 0x80 &&
                  (wire == VG_PROTO_BYTES || wire == VG_PROTO_VARINT))) {
        unsigned v = (unsigned char)q[1];
        q += 2;
        unsigned n = wire == VG_PROTO_BYTES ? v : 0;
        if (VG_LIKELY((size_t)(end - q) >= n)) {
            *ret = (struct vg_proto_seen){
                .p = q, .v = v, .next = VG_PROTO_NONE, .wire = (uint8_t)wire};
            *ret_number = tag >> 3;
            *p = q + n;
            return 1;
        }
    }
    return vg_proto_take_long(p, end, ret_number, ret, reterr_status);
}

/* ---- proto_decode_value.c ---- */

/* Is this how such a value travels? */
bool vg_proto_wire_fits(const struct vg_schema_field *f, unsigned wire);
/* A value that is there; no bytes and no number: one that is zero. */
VG_CHECK int vg_proto_get_value(struct vg_proto_decode *d, const struct vg_schema_field *f,
                                const struct vg_proto_seen *x, struct vg_json *ret);
VG_CHECK int vg_proto_get_string(struct vg_proto_decode *d, struct vg_slice s, struct vg_json *ret);

/* ---- proto_decode.c ---- */

VG_CHECK int vg_proto_get_object(struct vg_proto_decode *d, const struct vg_schema_type *t,
                                 struct vg_slice message, struct vg_json *ret);

#endif
