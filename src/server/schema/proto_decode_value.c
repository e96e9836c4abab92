/* proto_decode_value.c - one value of protobuf as one value of JSON; see proto.h. */
#include "base/base64.h"
#include "base/utf8.h"
#include "gotime.h"
#include "proto_decode_int.h"
#include "quantity.h"
#include "json/bytes.h"

bool vg_proto_wire_fits(const struct vg_schema_field *f, unsigned wire)
{
    if (f->shape == VG_SCHEMA_MAP)
        return wire == VG_PROTO_BYTES;
    bool is_packed = f->shape == VG_SCHEMA_LIST && wire == VG_PROTO_BYTES;
    switch ((enum vg_schema_value)f->value) {
    case VG_SCHEMA_BOOL:
    case VG_SCHEMA_INT32:
    case VG_SCHEMA_INT64:
        return wire == VG_PROTO_VARINT || is_packed;
    case VG_SCHEMA_DOUBLE:
        return wire == VG_PROTO_FIXED64 || is_packed;
    default:
        return wire == VG_PROTO_BYTES;
    }
}

/* ---- strings ---- */

/* Each byte that is no UTF-8 becomes U+FFFD, as in the JSON that Go would print. */
static int replace_bad(struct vg_proto_decode *d, struct vg_slice s, struct vg_json *ret)
{
    if (s.n > UINT32_MAX / 3)
        return VIGIL_E_TOO_LARGE;
    char *out = vg_arena_alloc(d->arena, 3 * s.n, 1);
    if (!out)
        return -ENOMEM;
    size_t n = 0;
    while (s.n) {
        uint32_t code;
        size_t len = vg_utf8_next(s, &code);
        memcpy(out + n, len ? s.p : "\xEF\xBF\xBD", len ? len : 3);
        n += len ? len : 3;
        len += !len;
        s = vg_slice(s.p + len, s.n - len);
    }
    *ret = vg_json_string_ref(vg_slice(out, n));
    return 0;
}

/* The first byte that is not plain, or the end. Short strings are looked at in one go where as much
 * may be read behind them. */
static inline const char *skip_plain(const struct vg_proto_decode *d, struct vg_slice s)
{
#if defined(__SSE2__)
    if (VG_LIKELY(s.n < 16 && d->all.n >= 16 &&
                  (uintptr_t)s.p - (uintptr_t)d->all.p <= d->all.n - 16)) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)s.p);
        unsigned mask = vg_json_special_mask(v) | 1u << s.n;
        return s.p + __builtin_ctz(mask);
    }
#endif
    (void)d;
    return vg_json_skip_plain(s.p, s.p + s.n);
}

int vg_proto_get_string(struct vg_proto_decode *d, struct vg_slice s, struct vg_json *ret)
{
    *ret = vg_json_string_ref(s);
    const char *q = skip_plain(d, s);
    if (VG_LIKELY(q == s.p + s.n)) {
        ret->flags = VG_JSON_PLAIN;
        return 0;
    }
    return vg_utf8_is_valid(vg_slice(q, (size_t)(s.p + s.n - q))) ? 0 : replace_bad(d, s, ret);
}

static int get_bytes(struct vg_proto_decode *d, struct vg_slice s, struct vg_json *ret)
{
    size_t n = vg_base64_size(s.n);
    char *out = vg_arena_alloc(d->arena, n, 1);
    if (!out)
        return -ENOMEM;
    vg_base64_encode(s, out);
    *ret = vg_json_string_ref(vg_slice(out, n));
    ret->flags = VG_JSON_PLAIN;
    return 0;
}

static int get_double(struct vg_proto_decode *d, const struct vg_schema_field *f, uint64_t bits,
                      struct vg_json *ret)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    int r = vg_json_make_double(d->arena, v, ret);
    if (r == VIGIL_E_INVALID)
        return vg_fail(d->status, r, "%s: not a number that JSON has", f->name);
    return r;
}

/* ---- messages of one or two scalars ---- */

/* Fields 1 to 3 of a message, the last of each; those that are not there have number 0 bytes. */
struct few {
    struct vg_proto_seen at[3];
    bool has[3];
};

/* wires: which wire type each must have. */
static int read_few(struct vg_proto_decode *d, const struct vg_schema_field *f,
                    struct vg_slice message, const uint8_t wires[3], struct few *ret)
{
    const char *p = message.p, *end = message.p + message.n;
    struct vg_proto_seen x;
    unsigned number;
    int r;
    *ret = (struct few){0};
    while ((r = vg_proto_take(&p, end, &number, &x, d->status)) > 0) {
        if (number > 3 || wires[number - 1] == UINT8_MAX)
            continue;
        if (x.wire != wires[number - 1])
            return vg_fail(d->status, VIGIL_E_INVALID, "proto: wrong wireType = %d for field %s",
                           x.wire, f->name);
        ret->at[number - 1] = x;
        ret->has[number - 1] = true;
    }
    return r;
}

static int get_quantity(struct vg_proto_decode *d, const struct vg_schema_field *f,
                        struct vg_slice message, struct vg_json *ret)
{
    static const uint8_t wires[3] = {VG_PROTO_BYTES, UINT8_MAX, UINT8_MAX};
    struct few x;
    int r = read_few(d, f, message, wires, &x);
    if (r < 0)
        return r;
    if (!x.has[0]) {
        *ret = vg_json_string_ref(VG_SLICE_LIT("0"));
        return 0;
    }
    struct vg_slice given = vg_proto_bytes(&x.at[0]);
    if (VG_LIKELY(vg_quantity_is_plain(given))) {
        *ret = vg_json_string_ref(given);
        ret->flags = VG_JSON_PLAIN;
        return 0;
    }
    struct vg_quantity q;
    r = vg_quantity_parse(given, &q, d->status);
    if (r < 0)
        return r;
    char room[VG_QUANTITY_TEXT_MAX];
    struct vg_slice text = vg_quantity_text(&q, room);
    if (text.p == room)
        return vg_json_make_string(d->arena, text, ret);
    *ret = vg_json_string_ref(text);
    ret->flags = VG_JSON_PLAIN;
    return 0;
}

static int get_int_or_string(struct vg_proto_decode *d, const struct vg_schema_field *f,
                             struct vg_slice message, struct vg_json *ret)
{
    static const uint8_t wires[3] = {VG_PROTO_VARINT, VG_PROTO_VARINT, VG_PROTO_BYTES};
    struct few x;
    int r = read_few(d, f, message, wires, &x);
    if (r < 0)
        return r;
    uint64_t type = x.has[0] ? x.at[0].v : 0;
    if (type > 1)
        return vg_fail(d->status, VIGIL_E_INVALID, "%s: impossible IntOrString.Type", f->name);
    if (type == 0)
        return vg_json_make_int(d->arena, x.has[1] ? (int32_t)(uint32_t)x.at[1].v : 0, ret);
    return vg_proto_get_string(d, x.has[2] ? vg_proto_bytes(&x.at[2]) : VG_SLICE_LIT(""), ret);
}

#define SECOND_NS INT64_C(1000000000)
#define YEAR_0_S (-INT64_C(62167219200))
#define YEAR_10000_S INT64_C(253402300800)

/* null is the zero time. */
static int get_time(struct vg_proto_decode *d, const struct vg_schema_field *f,
                    struct vg_slice message, struct vg_json *ret)
{
    static const uint8_t wires[3] = {VG_PROTO_VARINT, VG_PROTO_VARINT, UINT8_MAX};
    struct few x;
    int r = read_few(d, f, message, wires, &x);
    if (r < 0)
        return r;
    bool is_micro = f->value == VG_SCHEMA_MICRO_TIME;
    int64_t s = x.has[0] ? (int64_t)x.at[0].v : 0;
    int64_t ns = is_micro && x.has[1] ? (int32_t)(uint32_t)x.at[1].v / 1000 * 1000 : 0;
    *ret = vg_json_null();
    if (s > -INT64_MAX / 2 && s < INT64_MAX / 2)
        s += ns / SECOND_NS - (ns % SECOND_NS < 0); /* carried, as Go does */
    ns = (ns % SECOND_NS + SECOND_NS) % SECOND_NS;
    if (s < YEAR_0_S || s >= YEAR_10000_S)
        return vg_fail(d->status, VIGIL_E_INVALID, "%s: year is not in the range [0, 9999]",
                       f->name);
    if (message.n == 0 || (s == VG_GOTIME_ZERO_S && ns == 0))
        return 0;
    char text[VG_TIME_TEXT_MAX];
    size_t n = vg_gotime_format((struct vg_gotime){.s = s, .ns = (int32_t)ns}, is_micro, text);
    r = vg_json_make_string(d->arena, vg_slice(text, n), ret);
    ret->flags = VG_JSON_PLAIN;
    return r;
}

/* ---- JSON in bytes ---- */

/* The tree is put together from several texts: it must not carry offsets into any of them. The
 * parser's own limit bounds the depth. */
static void forget_offsets(struct vg_json *v)
{
    v->begin = v->end = 0;
    VG_JSON_FOREACH_ITEM (item, v)
        forget_offsets(item);
    VG_JSON_FOREACH_MEMBER (m, v) {
        m->key_begin = 0;
        forget_offsets(&m->value);
    }
}

static int get_raw(struct vg_proto_decode *d, const struct vg_schema_field *f,
                   struct vg_slice message, struct vg_json *ret)
{
    static const uint8_t wires[3] = {VG_PROTO_BYTES, UINT8_MAX, UINT8_MAX};
    struct few x;
    int r = read_few(d, f, message, wires, &x);
    if (r < 0)
        return r;
    *ret = vg_json_null();
    if (!x.has[0] || (x.at[0].v == 0 && f->value == VG_SCHEMA_JSON))
        return 0;
    const struct vg_json_opts opts = {.replace_bad_utf8 = true, .scratch = &d->scratch};
    struct vg_json *root;
    r = vg_json_parse(d->arena, vg_proto_bytes(&x.at[0]), &opts, &root, d->status);
    if (r == -ENOMEM || r == VIGIL_E_TOO_LARGE)
        return r;
    if (r < 0)
        return vg_fail(d->status, VIGIL_E_INVALID, "%s: %s", f->name,
                       d->status ? d->status->message : "");
    forget_offsets(root);
    *ret = *root;
    return 0;
}

/* ---- lists and schemas in messages ---- */

static int push_string(struct vg_proto_decode *d, struct vg_json *list, struct vg_slice s)
{
    struct vg_json v;
    int r = vg_proto_get_string(d, s, &v);
    return r < 0 ? r : vg_json_array_push(d->arena, list, v);
}

static int get_strings(struct vg_proto_decode *d, const struct vg_schema_field *f,
                       struct vg_slice message, struct vg_json *ret)
{
    const char *p = message.p, *end = message.p + message.n;
    struct vg_proto_seen x;
    unsigned number;
    int r;
    struct vg_json list = vg_json_array();
    while ((r = vg_proto_take(&p, end, &number, &x, d->status)) > 0) {
        if (number != 1)
            continue;
        if (x.wire != VG_PROTO_BYTES)
            return vg_fail(d->status, VIGIL_E_INVALID, "proto: wrong wireType = %d for field %s",
                           x.wire, f->name);
        r = push_string(d, &list, vg_proto_bytes(&x));
        if (r < 0)
            return r;
    }
    *ret = list; /* never nil to Go, once the message is there */
    return r;
}

static int push_schema(struct vg_proto_decode *d, const struct vg_schema_field *f,
                       struct vg_json *list, struct vg_slice s)
{
    struct vg_json v;
    int r = vg_proto_get_object(d, f->type, s, &v);
    return r < 0 ? r : vg_json_array_push(d->arena, list, v);
}

/* Field 2 of a value that may be a list. */
static int push_either(struct vg_proto_decode *d, const struct vg_schema_field *f,
                       struct vg_json *list, struct vg_slice s)
{
    return f->value == VG_SCHEMA_OR_ARRAY ? push_schema(d, f, list, s) : push_string(d, list, s);
}

static int get_or_list(struct vg_proto_decode *d, const struct vg_schema_field *f,
                       struct vg_slice message, struct vg_json *ret)
{
    const char *p = message.p, *end = message.p + message.n;
    struct vg_proto_seen x;
    unsigned number;
    int r;
    struct vg_json list = vg_json_array(), schema = vg_json_null();
    while ((r = vg_proto_take(&p, end, &number, &x, d->status)) > 0) {
        if (number > 2)
            continue;
        if (x.wire != VG_PROTO_BYTES)
            return vg_fail(d->status, VIGIL_E_INVALID, "proto: wrong wireType = %d for field %s",
                           x.wire, f->name);
        r = number == 1 ? vg_proto_get_object(d, f->type, vg_proto_bytes(&x), &schema)
                        : push_either(d, f, &list, vg_proto_bytes(&x));
        if (r < 0)
            return r;
    }
    *ret = list.n ? list : schema;
    return r;
}

static int get_or_bool(struct vg_proto_decode *d, const struct vg_schema_field *f,
                       struct vg_slice message, struct vg_json *ret)
{
    static const uint8_t wires[3] = {VG_PROTO_VARINT, VG_PROTO_BYTES, UINT8_MAX};
    struct few x;
    int r = read_few(d, f, message, wires, &x);
    if (r < 0)
        return r;
    if (x.has[1])
        return vg_proto_get_object(d, f->type, vg_proto_bytes(&x.at[1]), ret);
    *ret = vg_json_bool(x.has[0] && x.at[0].v);
    return 0;
}

/* ---- by type ---- */

int vg_proto_get_value(struct vg_proto_decode *d, const struct vg_schema_field *f,
                       const struct vg_proto_seen *x, struct vg_json *ret)
{
    switch ((enum vg_schema_value)f->value) {
    case VG_SCHEMA_STRING:
        return vg_proto_get_string(d, vg_proto_bytes(x), ret);
    case VG_SCHEMA_TYPE:
        return vg_proto_get_object(d, f->type, vg_proto_bytes(x), ret);
    case VG_SCHEMA_BOOL:
        *ret = vg_json_bool(x->v != 0);
        return 0;
    case VG_SCHEMA_INT32:
        return vg_json_make_int(d->arena, (int32_t)(uint32_t)x->v, ret);
    case VG_SCHEMA_INT64:
        return vg_json_make_int(d->arena, (int64_t)x->v, ret);
    case VG_SCHEMA_DOUBLE:
        return get_double(d, f, x->v, ret);
    case VG_SCHEMA_BYTES:
        return get_bytes(d, vg_proto_bytes(x), ret);
    case VG_SCHEMA_QUANTITY:
        return get_quantity(d, f, vg_proto_bytes(x), ret);
    case VG_SCHEMA_INT_OR_STRING:
        return get_int_or_string(d, f, vg_proto_bytes(x), ret);
    case VG_SCHEMA_TIME:
    case VG_SCHEMA_MICRO_TIME:
        return get_time(d, f, vg_proto_bytes(x), ret);
    case VG_SCHEMA_RAW:
    case VG_SCHEMA_JSON:
    case VG_SCHEMA_FIELDS:
        return get_raw(d, f, vg_proto_bytes(x), ret);
    case VG_SCHEMA_STRINGS:
        return get_strings(d, f, vg_proto_bytes(x), ret);
    case VG_SCHEMA_OR_ARRAY:
    case VG_SCHEMA_OR_STRINGS:
        return get_or_list(d, f, vg_proto_bytes(x), ret);
    case VG_SCHEMA_OR_BOOL:
        return get_or_bool(d, f, vg_proto_bytes(x), ret);
    }
    return VIGIL_E_INTERNAL;
}
