/* proto_wire.c - fields of a message, one after another, and the envelope; see proto.h.
 * Every length is compared with what is left before anything is read. */
#include "proto_decode_int.h"

bool vg_proto_take_varint(const char **p, const char *end, uint64_t *ret)
{
    const char *q = *p;
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (q == end)
            return false;
        unsigned char c = (unsigned char)*q++;
        v |= (uint64_t)(c & 0x7f) << shift;
        if (c < 0x80) {
            *p = q;
            *ret = v;
            return true;
        }
    }
    return false;
}

static uint64_t read_fixed(const char *p, unsigned n)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < n; i++)
        v |= (uint64_t)(unsigned char)p[i] << 8 * i;
    return v;
}

/* Why there is no number at p, in Go's words. */
static int refuse_varint(const char *p, const char *end, struct vg_status *reterr_status)
{
    return vg_fail(reterr_status, VIGIL_E_INVALID,
                   end - p < 10 ? "unexpected EOF" : "proto: integer overflow");
}

static int take_body(const char **p, const char *end, struct vg_proto_seen *x,
                     struct vg_status *reterr_status)
{
    unsigned n = x->wire == VG_PROTO_FIXED64 ? 8 : 4;
    const char *begin = *p;
    switch (x->wire) {
    case VG_PROTO_VARINT:
        if (!vg_proto_take_varint(p, end, &x->v))
            return refuse_varint(begin, end, reterr_status);
        return 1;
    case VG_PROTO_FIXED64:
    case VG_PROTO_FIXED32:
        if ((size_t)(end - *p) < n)
            return vg_fail(reterr_status, VIGIL_E_INVALID, "unexpected EOF");
        x->v = read_fixed(*p, n);
        *p += n;
        return 1;
    case VG_PROTO_BYTES:
        if (!vg_proto_take_varint(p, end, &x->v))
            return refuse_varint(begin, end, reterr_status);
        if (x->v > (uint64_t)(end - *p))
            return vg_fail(reterr_status, VIGIL_E_INVALID, "unexpected EOF");
        x->p = *p;
        *p += x->v;
        return 1;
    default: /* groups: nothing of Kubernetes has them */
        return vg_fail(reterr_status, VIGIL_E_INVALID, "proto: illegal wireType %d", x->wire);
    }
}

int vg_proto_take_long(const char **p, const char *end, unsigned *ret_number,
                       struct vg_proto_seen *ret, struct vg_status *reterr_status)
{
    uint64_t tag;
    const char *begin = *p;
    if (!vg_proto_take_varint(p, end, &tag))
        return refuse_varint(begin, end, reterr_status);
    if (tag >> 3 == 0 || tag >> 3 > INT32_MAX)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "proto: illegal tag %d (wire type %d)",
                       (int)(tag >> 3), (int)(tag & 7));
    *ret_number = (unsigned)(tag >> 3);
    *ret = (struct vg_proto_seen){.wire = tag & 7, .next = VG_PROTO_NONE};
    return take_body(p, end, ret, reterr_status);
}

/* ---- the envelope ---- */

struct strings {
    struct vg_slice *at[4]; /* by number - 1; NULL: passed over */
};

/* A message of nothing but strings. */
static int read_strings(struct vg_slice message, const struct strings *to,
                        struct vg_status *reterr_status)
{
    const char *p = message.p, *end = message.p + message.n;
    struct vg_proto_seen x = {0};
    unsigned number = 0;
    int r;
    while ((r = vg_proto_take(&p, end, &number, &x, reterr_status)) > 0) {
        if (number > VG_ARRAY_LEN(to->at) || !to->at[number - 1])
            continue;
        if (x.wire != VG_PROTO_BYTES)
            return vg_fail(reterr_status, VIGIL_E_INVALID,
                           "proto: wrong wireType = %d for field %u", x.wire, number);
        *to->at[number - 1] = vg_proto_bytes(&x);
    }
    return r;
}

int vg_proto_open(struct vg_slice body, struct vg_proto_envelope *ret,
                  struct vg_status *reterr_status)
{
    if (body.n == 0)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "empty data");
    if (!vg_slice_has_prefix(body, VG_PROTO_PREFIX))
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "provided data does not appear to be a protobuf message, expected prefix "
                       "[107 56 115 0]");
    if (body.n == VG_PROTO_PREFIX.n)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "empty body");
    const struct vg_slice none = VG_SLICE_LIT("");
    struct vg_proto_envelope x = {none, none, none, none, none};
    struct vg_slice meta = VG_SLICE_LIT("");
    const struct strings outer = {{&meta, &x.raw, &x.content_encoding, &x.content_type}};
    const struct strings inner = {{&x.api_version, &x.kind}};
    struct vg_slice rest = {body.p + VG_PROTO_PREFIX.n, body.n - VG_PROTO_PREFIX.n};
    int r = read_strings(rest, &outer, reterr_status);
    if (r == 0)
        r = read_strings(meta, &inner, reterr_status);
    if (r == 0)
        *ret = x;
    return r;
}
