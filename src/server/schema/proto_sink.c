/* proto_sink.c - growing, lengths and absent values; see proto_int.h. */
#include "proto_int.h"

int vg_proto_sink_grow(struct vg_proto_sink *s, size_t n)
{
    s->buf->n = vg_proto_sink_at(s);
    int r = vg_buf_reserve(s->buf, n);
    if (r < 0)
        return r;
    s->o = s->buf->p + s->buf->n;
    s->end = s->buf->p + s->buf->cap;
    return 0;
}

int vg_proto_end_long(struct vg_proto_sink *s, size_t at)
{
    size_t n = vg_proto_sink_at(s) - at - 1;
    if (n > VG_PROTO_MESSAGE_MAX)
        return VIGIL_E_TOO_LARGE;
    size_t more = vg_proto_varint_size(n) - 1;
    int r = vg_proto_sink_room(s, more);
    if (r < 0)
        return r;
    char *p = s->buf->p + at;
    memmove(p + 1 + more, p + 1, n);
    (void)vg_proto_write_varint(p, n);
    s->o += more;
    return 0;
}

/* ---- absent values ---- */

static int put_zero_message(struct vg_proto_sink *s, const struct vg_schema_type *t,
                            const struct vg_schema_part *part)
{
    size_t at = vg_proto_begin(s);
    int r = 0;
    for (unsigned i = 0; r == 0 && i < part->n; i++) {
        const struct vg_schema_entry *x = &part->entries[i];
        if (!x->is_part) {
            if (t->always >> x->index & 1)
                r = vg_proto_put_zero(s, &t->fields[x->index], x->number);
            continue;
        }
        r = vg_proto_sink_room(s, VG_PROTO_TAG_MAX + 1);
        if (r < 0)
            return r;
        s->o = vg_proto_write_tag(s->o, x->number, VG_PROTO_BYTES);
        r = put_zero_message(s, t, &t->parts[x->index]);
    }
    return r < 0 ? r : vg_proto_end(s, at);
}

/* The bytes after the tag of values that are not messages of a type. */
static struct vg_slice zero_bytes(enum vg_schema_value value)
{
    switch (value) {
    case VG_SCHEMA_DOUBLE:
        return VG_SLICE_LIT("\0\0\0\0\0\0\0\0");
    case VG_SCHEMA_QUANTITY:
        return VG_SLICE_LIT("\x03\x0a\x01"
                            "0");
    case VG_SCHEMA_INT_OR_STRING:
        return VG_SLICE_LIT("\x06\x08\0\x10\0\x1a\0");
    case VG_SCHEMA_OR_BOOL:
        return VG_SLICE_LIT("\x02\x08\0");
    default:
        return VG_SLICE_LIT("\0");
    }
}

int vg_proto_put_zero_other(struct vg_proto_sink *s, const struct vg_schema_field *f,
                            unsigned number)
{
    s->o = vg_proto_write_tag(s->o, number,
                              f->value == VG_SCHEMA_DOUBLE ? VG_PROTO_FIXED64 : VG_PROTO_BYTES);
    if (f->value == VG_SCHEMA_TYPE)
        return put_zero_message(s, f->type, &f->type->parts[0]);
    struct vg_slice bytes = zero_bytes(f->value);
    memcpy(s->o, bytes.p, bytes.n);
    s->o += bytes.n;
    return 0;
}
