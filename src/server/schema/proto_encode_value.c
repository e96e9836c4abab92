/* proto_encode_value.c - one value of JSON as one value of protobuf; see proto.h. */
#include "base/base64.h"
#include "gotime.h"
#include "proto_encode_int.h"
#include "json/skip.h"

int vg_proto_skip_value(struct vg_proto_encode *e)
{
    const char *q = NULL;
    bool escaped;
    switch (vg_proto_peek(e)) {
    case '"':
        q = vg_json_skip_string(e->p, e->end, &escaped);
        break;
    case '{':
    case '[':
        q = vg_json_skip_container(e->p, e->end);
        break;
    default:
        for (q = e->p; q < e->end && *q != ',' && *q != ']' && *q != '}' && *q != '"';)
            q++;
        if (q == e->p)
            q = NULL;
    }
    if (!q)
        return VIGIL_E_JSON_SYNTAX;
    e->p = q;
    return 0;
}

/* ---- strings ---- */

/* Copies that may read and write up to sixteen bytes too many where both sides have them. */
static inline void copy_short(char *o, const char *p, size_t n, const char *end)
{
#if defined(__SSE2__)
    if (VG_LIKELY(n <= 64 && (size_t)(end - p) >= n + 16)) {
        for (size_t i = 0; i < n; i += 16)
            _mm_storeu_si128((__m128i *)(void *)(o + i),
                             _mm_loadu_si128((const __m128i *)(const void *)(p + i)));
        return;
    }
#endif
    (void)end;
    memcpy(o, p, n);
}

/* p is past the opening quote, and somewhere behind it is an escape. */
static int put_escaped(struct vg_proto_encode *e, const char *p)
{
    bool escaped;
    const char *past = vg_json_skip_string(p - 1, e->end, &escaped);
    if (!past)
        return VIGIL_E_JSON_SYNTAX;
    const char *close = past - 1;
    int r = vg_proto_sink_room(&e->out, 3 * (size_t)(close - p) + VG_PROTO_VARINT_MAX);
    if (r < 0)
        return r;
    size_t at = vg_proto_begin(&e->out), n = (size_t)(close - p), i = 0;
    while (i < n) {
        const char *q = vg_proto_find_quote(p + i, close);
        size_t plain = q ? (size_t)(q - p) - i : n - i;
        memcpy(e->out.o, p + i, plain);
        e->out.o += plain;
        i += plain;
        if (i == n)
            break;
        const char *after = p + i;
        char unit[4];
        size_t unit_n = vg_json_decode_unit(&after, close, unit);
        if (unit_n == 0)
            return VIGIL_E_JSON_SYNTAX;
        memcpy(e->out.o, unit, unit_n);
        e->out.o += unit_n;
        i = (size_t)(after - p);
    }
    e->p = past;
    return vg_proto_end(&e->out, at);
}

int vg_proto_put_string(struct vg_proto_encode *e)
{
    if (VG_UNLIKELY(vg_proto_peek(e) != '"'))
        return VIGIL_E_JSON_TYPE;
    const char *p = e->p + 1;
    const char *q = vg_proto_find_quote(p, e->end);
    if (VG_UNLIKELY(!q))
        return VIGIL_E_JSON_SYNTAX;
    if (VG_UNLIKELY(*q == '\\'))
        return put_escaped(e, p);
    size_t n = (size_t)(q - p);
    int r = vg_proto_sink_room(&e->out, n + VG_PROTO_VARINT_MAX);
    if (r < 0)
        return r;
    char *o = vg_proto_write_varint(e->out.o, n);
    copy_short(o, p, n, e->end);
    e->out.o = o + n;
    e->p = q + 1;
    return 0;
}

/* ---- numbers and words ---- */

static int put_int(struct vg_proto_encode *e, bool is_32)
{
    int64_t v;
    int r = vg_proto_read_int(e, &v);
    if (r < 0)
        return r == -ERANGE ? VIGIL_E_JSON_TYPE : r;
    if (is_32 && (v < INT32_MIN || v > INT32_MAX))
        return VIGIL_E_JSON_TYPE;
    e->out.o = vg_proto_write_varint(e->out.o, (uint64_t)v);
    return 0;
}

static int put_bool(struct vg_proto_encode *e)
{
    bool is_true = vg_proto_peek(e) == 't';
    size_t n = is_true ? 4 : 5;
    if ((size_t)(e->end - e->p) < n || memcmp(e->p, is_true ? "true" : "false", n) != 0)
        return VIGIL_E_JSON_TYPE;
    e->p += n;
    *e->out.o++ = is_true;
    return 0;
}

static int put_double(struct vg_proto_encode *e)
{
    const char *p = e->p;
    int r = vg_proto_skip_value(e);
    if (r < 0)
        return r;
    char c = *p;
    if (c != '-' && (c < '0' || c > '9'))
        return VIGIL_E_JSON_TYPE;
    struct vg_json number = {.type = VG_JSON_NUMBER, .n = (uint32_t)(e->p - p), .text = p};
    double d;
    if (vg_json_to_double(&number, &d) < 0)
        return VIGIL_E_JSON_TYPE;
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    for (unsigned i = 0; i < 8; i++)
        *e->out.o++ = (char)(bits >> 8 * i);
    return 0;
}

/* ---- bytes ---- */

static int put_bytes(struct vg_proto_encode *e)
{
    if (vg_proto_peek(e) != '"')
        return VIGIL_E_JSON_TYPE;
    const char *p = e->p + 1;
    const char *q = vg_proto_find_quote(p, e->end);
    if (!q || *q == '\\') /* a base64 text has nothing to escape */
        return VIGIL_E_JSON_SYNTAX;
    size_t n = (size_t)(q - p);
    int r = vg_proto_sink_room(&e->out, n + VG_PROTO_VARINT_MAX);
    if (r < 0)
        return r;
    size_t at = vg_proto_begin(&e->out), got;
    if (!vg_base64_decode(vg_slice(p, n), e->out.o, &got))
        return VIGIL_E_JSON_TYPE;
    e->out.o += got;
    e->p = q + 1;
    return vg_proto_end(&e->out, at);
}

/* {1 bytes}: the text of the value as it stands. */
static int put_raw(struct vg_proto_encode *e)
{
    const char *p = e->p;
    int r = vg_proto_skip_value(e);
    if (r < 0)
        return r;
    size_t n = (size_t)(e->p - p);
    r = vg_proto_sink_room(&e->out, n + 2 * VG_PROTO_VARINT_MAX + 1);
    if (r < 0)
        return r;
    if (n > VG_PROTO_MESSAGE_MAX)
        return VIGIL_E_TOO_LARGE;
    char *o = vg_proto_write_varint(e->out.o, n + 1 + vg_proto_varint_size(n));
    *o++ = 0x0a;
    o = vg_proto_write_varint(o, n);
    memcpy(o, p, n);
    e->out.o = o + n;
    return 0;
}

/* ---- times ---- */

static int put_time(struct vg_proto_encode *e, bool is_micro)
{
    if (vg_proto_peek(e) != '"')
        return VIGIL_E_JSON_TYPE;
    const char *p = e->p + 1;
    const char *q = vg_proto_find_quote(p, e->end);
    struct vg_gotime t;
    if (!q || *q != '"' || vg_gotime_parse(vg_slice(p, (size_t)(q - p)), is_micro, &t, NULL) < 0)
        return VIGIL_E_JSON_TYPE;
    e->p = q + 1;
    size_t at = vg_proto_begin(&e->out);
    t.ns = is_micro ? t.ns / 1000 * 1000 : 0;
    if (t.s != VG_GOTIME_ZERO_S || t.ns != 0) {
        *e->out.o++ = 0x08;
        e->out.o = vg_proto_write_varint(e->out.o, (uint64_t)t.s);
        *e->out.o++ = 0x10;
        e->out.o = vg_proto_write_varint(e->out.o, (uint64_t)t.ns);
    }
    return vg_proto_end(&e->out, at);
}

/* ---- small messages ---- */

/* {1 string}; a number of JSON is taken as its text. */
static int put_quantity(struct vg_proto_encode *e)
{
    size_t at = vg_proto_begin(&e->out);
    *e->out.o++ = 0x0a;
    if (vg_proto_peek(e) != '"')
        return VIGIL_E_JSON_TYPE;
    int r = vg_proto_put_string(e);
    return r < 0 ? r : vg_proto_end(&e->out, at);
}

/* {1 type, 2 int, 3 string}, all of them always. */
static int put_int_or_string(struct vg_proto_encode *e)
{
    size_t at = vg_proto_begin(&e->out);
    bool is_string = vg_proto_peek(e) == '"';
    *e->out.o++ = 0x08;
    *e->out.o++ = is_string;
    *e->out.o++ = 0x10;
    int r = 0;
    if (is_string)
        *e->out.o++ = 0;
    else
        r = put_int(e, true);
    *e->out.o++ = 0x1a;
    if (is_string)
        r = vg_proto_put_string(e);
    else
        *e->out.o++ = 0;
    return r < 0 ? r : vg_proto_end(&e->out, at);
}

/* Each string of a list, with that number. */
static int put_strings(struct vg_proto_encode *e, unsigned number)
{
    int r = vg_proto_enter(e, '[', ']');
    while (r > 0) {
        r = vg_proto_sink_room(&e->out, VG_PROTO_TAG_MAX);
        if (r < 0)
            return r;
        e->out.o = vg_proto_write_tag(e->out.o, number, VG_PROTO_BYTES);
        r = vg_proto_put_string(e);
        if (r == 0)
            r = vg_proto_next(e, ']');
    }
    return r;
}

static int put_schemas(struct vg_proto_encode *e, const struct vg_schema_type *t)
{
    int r = vg_proto_enter(e, '[', ']');
    while (r > 0) {
        r = vg_proto_sink_room(&e->out, VG_PROTO_TAG_MAX + 1);
        if (r < 0)
            return r;
        *e->out.o++ = 0x12;
        r = vg_proto_put_object(e, t);
        if (r == 0)
            r = vg_proto_next(e, ']');
    }
    return r;
}

/* A schema, or what the value is instead. */
static int put_or(struct vg_proto_encode *e, const struct vg_schema_field *f)
{
    size_t at = vg_proto_begin(&e->out);
    char c = vg_proto_peek(e);
    int r = 0;
    if (f->value == VG_SCHEMA_OR_BOOL) {
        *e->out.o++ = 0x08;
        if (c != '{')
            r = put_bool(e);
        else
            *e->out.o++ = 1;
    }
    if (c == '{') {
        *e->out.o++ = f->value == VG_SCHEMA_OR_BOOL ? 0x12 : 0x0a;
        r = vg_proto_put_object(e, f->type);
    } else if (f->value == VG_SCHEMA_OR_STRINGS) {
        r = put_strings(e, 2);
    } else if (f->value == VG_SCHEMA_OR_ARRAY) {
        r = put_schemas(e, f->type);
    }
    return r < 0 ? r : vg_proto_end(&e->out, at);
}

static int put_list_message(struct vg_proto_encode *e)
{
    size_t at = vg_proto_begin(&e->out);
    int r = put_strings(e, 1);
    return r < 0 ? r : vg_proto_end(&e->out, at);
}

/* Numbers and times fit into what is reserved here. */
#define SMALL_VALUE 48

int vg_proto_put_value(struct vg_proto_encode *e, const struct vg_schema_field *f, unsigned number)
{
    int r = vg_proto_sink_room(&e->out, SMALL_VALUE);
    if (r < 0)
        return r;
    if (VG_LIKELY(f->value == VG_SCHEMA_STRING)) {
        e->out.o = vg_proto_write_tag(e->out.o, number, VG_PROTO_BYTES);
        return vg_proto_put_string(e);
    }
    bool is_varint =
        f->value == VG_SCHEMA_BOOL || f->value == VG_SCHEMA_INT32 || f->value == VG_SCHEMA_INT64;
    e->out.o = vg_proto_write_tag(e->out.o, number,
                                  is_varint                      ? VG_PROTO_VARINT
                                  : f->value == VG_SCHEMA_DOUBLE ? VG_PROTO_FIXED64
                                                                 : VG_PROTO_BYTES);
    switch ((enum vg_schema_value)f->value) {
    case VG_SCHEMA_STRING:
        break;
    case VG_SCHEMA_TYPE:
        return vg_proto_put_object(e, f->type);
    case VG_SCHEMA_BOOL:
        return put_bool(e);
    case VG_SCHEMA_INT32:
    case VG_SCHEMA_INT64:
        return put_int(e, f->value == VG_SCHEMA_INT32);
    case VG_SCHEMA_DOUBLE:
        return put_double(e);
    case VG_SCHEMA_BYTES:
        return put_bytes(e);
    case VG_SCHEMA_QUANTITY:
        return put_quantity(e);
    case VG_SCHEMA_INT_OR_STRING:
        return put_int_or_string(e);
    case VG_SCHEMA_TIME:
    case VG_SCHEMA_MICRO_TIME:
        return put_time(e, f->value == VG_SCHEMA_MICRO_TIME);
    case VG_SCHEMA_RAW:
    case VG_SCHEMA_JSON:
    case VG_SCHEMA_FIELDS:
        return put_raw(e);
    case VG_SCHEMA_STRINGS:
        return put_list_message(e);
    case VG_SCHEMA_OR_ARRAY:
    case VG_SCHEMA_OR_BOOL:
    case VG_SCHEMA_OR_STRINGS:
        return put_or(e, f);
    }
    return VIGIL_E_INTERNAL;
}
