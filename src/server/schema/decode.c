/* decode.c - see decode.h. Recursion follows the tables, which nest no deeper than the parser lets
 * a text be. Of several mistakes the first is told, as Go does. */
#include "decode.h"

#include <errno.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/buf.h"
#include "gotime.h"
#include "quantity.h"

/* Where decoding is: one of these per type on the way, on the stack. */
struct frame {
    const struct frame *up;
    const struct vg_schema_type *type;
    const struct vg_schema_field *field; /* that is being read */
    uint32_t index;                      /* of its item */
    struct vg_slice key;                 /* of its value in a map; p NULL: none */
};

struct decoder {
    struct vg_arena *arena;
    struct vg_json *unknown;
    struct vg_status *status;
    bool is_map; /* refusals are those of maps */
};

static int decode_type(struct decoder *d, const struct frame *up, const struct vg_schema_type *type,
                       struct vg_json *v);

/* ---- sentences ---- */

static const char *go_type_of(const struct vg_json *v)
{
    return v->type == VG_JSON_BOOL ? "bool" : vg_json_type_name((enum vg_json_type)v->type);
}

/* The way to a field as Go tells it: names of embedded types are part of it, indices are not. */
static int append_go_path(struct vg_buf *b, const struct frame *f)
{
    int r = f->up ? append_go_path(b, f->up) : 0;
    if (r == 0 && f->up)
        r = vg_buf_append_byte(b, '.');
    if (r == 0 && f->field->part) {
        const char *go = f->type->parts[f->field->part].go;
        r = vg_buf_printf(b, "%s.", strchr(go, '.') + 1);
    }
    return r < 0 ? r : vg_buf_printf(b, "%s", f->field->name);
}

/* The way as strict decoding tells it: with indices, without embedded types. */
static int append_path(struct vg_buf *b, const struct frame *f)
{
    int r = f->up ? append_path(b, f->up) : 0;
    if (r == 0)
        r = vg_buf_printf(b, "%s%s", f->up ? "." : "", f->field->name);
    if (r == 0 && f->field->shape == VG_SCHEMA_LIST)
        r = vg_buf_printf(b, "[%u]", f->index);
    if (r == 0 && f->key.p)
        r = vg_buf_printf(b, ".%.*s", VG_SLICE_ARG(f->key));
    return r;
}

/* What Go calls a value that it has in a map. */
static const char *go_kind_of(const struct vg_json *v)
{
    int64_t i;
    switch ((enum vg_json_type)v->type) {
    case VG_JSON_OBJECT:
        return "map";
    case VG_JSON_ARRAY:
        return "slice";
    case VG_JSON_NUMBER:
        return vg_json_to_int64(v, &i) == 0 ? "int64" : "float64";
    default:
        return go_type_of(v);
    }
}

/* Types that read themselves have their own words, without the way to them. */
static bool reads_itself(const struct vg_schema_field *f)
{
    return f->value == VG_SCHEMA_TIME || f->value == VG_SCHEMA_MICRO_TIME ||
           f->value == VG_SCHEMA_INT_OR_STRING || f->value >= VG_SCHEMA_OR_ARRAY;
}

static int refuse_of_map(struct decoder *d, const struct vg_schema_field *f,
                         const struct vg_json *v, const char *wanted)
{
    const char *kind = go_kind_of(v);
    bool is_number = v->type == VG_JSON_NUMBER;
    bool is_int = f->value == VG_SCHEMA_INT32 || f->value == VG_SCHEMA_INT64;
    if (f->shape == VG_SCHEMA_LIST && wanted == f->more->go)
        return vg_fail(d->status, VIGIL_E_INVALID, "cannot restore slice from %s", kind);
    if (f->shape == VG_SCHEMA_MAP && wanted == f->more->go)
        return vg_fail(d->status, VIGIL_E_INVALID, "cannot restore map from %s", kind);
    if (f->value == VG_SCHEMA_TYPE)
        return vg_fail(d->status, VIGIL_E_INVALID, "cannot restore struct from: %s", kind);
    if (f->value == VG_SCHEMA_BYTES || f->value == VG_SCHEMA_STRINGS)
        return vg_fail(d->status, VIGIL_E_INVALID, "cannot restore slice from %s", kind);
    if (reads_itself(f))
        return vg_fail(d->status, VIGIL_E_INVALID,
                       "json: cannot unmarshal %s into Go value of type %s", go_type_of(v), wanted);
    if (is_number && (is_int || (f->value == VG_SCHEMA_STRING && strcmp(kind, "int64") == 0)))
        return vg_fail(d->status, VIGIL_E_INVALID, "cannot convert %s to %s", kind, wanted);
    return vg_fail(d->status, VIGIL_E_INVALID, "unrecognized type: %s",
                   f->value == VG_SCHEMA_STRING ? "string" : wanted);
}

static int refuse(struct decoder *d, const struct frame *f, const struct vg_json *v,
                  const char *wanted, bool with_number)
{
    if (d->is_map)
        return refuse_of_map(d, f->field, v, wanted);
    VG_AUTO(buf) path = {0};
    if (append_go_path(&path, f) < 0)
        return -ENOMEM;
    bool shows = with_number && v->type == VG_JSON_NUMBER;
    return vg_fail(d->status, VIGIL_E_INVALID,
                   "json: cannot unmarshal %s%s%.*s into Go struct field %s.%.*s of type %s",
                   go_type_of(v), shows ? " " : "",
                   VG_SLICE_ARG(shows ? vg_json_text(v) : VG_SLICE_LIT("")), f->type->name,
                   VG_SLICE_ARG(vg_buf_slice(&path)), wanted);
}

static int note_unknown(struct decoder *d, const struct frame *up, struct vg_slice key)
{
    if (!d->unknown || d->unknown->n >= VG_SCHEMA_UNKNOWN_MAX)
        return 0;
    VG_AUTO(buf) path = {0};
    int r = up ? append_path(&path, up) : 0;
    if (r == 0 && up)
        r = vg_buf_append_byte(&path, '.');
    if (r == 0)
        r = vg_buf_append_slice(&path, key);
    struct vg_slice kept = {0};
    if (r == 0)
        r = vg_arena_keep(d->arena, vg_buf_slice(&path), &kept);
    return r < 0 ? r : vg_json_array_push(d->arena, d->unknown, vg_json_string_ref(kept));
}

/* ---- values ---- */

/* A string with this text, in the arena; the old one stays when it is the same. */
static int put_text(struct decoder *d, struct vg_json *v, struct vg_slice text)
{
    if (v->type == VG_JSON_STRING && vg_slice_eq(vg_json_text(v), text))
        return 0;
    return vg_json_make_string(d->arena, text, v);
}

/* 3.0 is whole. */
static int take_whole(struct decoder *d, struct vg_json *v)
{
    double x;
    int64_t i;
    bool is_float = vg_json_to_int64(v, &i) < 0 && vg_json_to_double(v, &x) == 0;
    if (!is_float || !(x >= -9007199254740992.0 && x <= 9007199254740992.0))
        return 0;
    i = (int64_t)x;
    return (double)i == x ? vg_json_make_int(d->arena, i, v) : 0;
}

static int decode_int(struct decoder *d, const struct frame *f, struct vg_json *v)
{
    int64_t i;
    bool is_32 = f->field->value == VG_SCHEMA_INT32;
    if (d->is_map && take_whole(d, v) < 0)
        return -ENOMEM;
    if (vg_json_to_int64(v, &i) < 0 || (is_32 && (i < INT32_MIN || i > INT32_MAX)))
        return refuse(d, f, v, is_32 ? "int32" : "int64", true);
    return 0;
}

/* The first byte that is wrong in a text that is no base64, as Go counts; SIZE_MAX: it is some. */
static size_t base64_fault(struct vg_slice s)
{
    size_t digits = 0, pad = 0;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool is_digit = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                        (c >= '0' && c <= '9') || c == '+' || c == '/';
        if (c == '\r' || c == '\n')
            continue;
        if (c == '=' && digits % 4 >= 2 && pad < 4 - digits % 4)
            pad++;
        else if (!is_digit || pad)
            return i;
        else
            digits++;
    }
    return (digits + pad) % 4 ? s.n - (digits + pad) % 4 : SIZE_MAX;
}

/* Printed without line breaks, and with its unused bits zero. */
static int decode_bytes(struct decoder *d, const struct frame *f, struct vg_json *v)
{
    if (v->type != VG_JSON_STRING)
        return refuse(d, f, v, "[]uint8", false);
    struct vg_slice s = vg_json_text(v);
    size_t n = 0, fault = base64_fault(s);
    if (fault != SIZE_MAX)
        return vg_fail(d->status, VIGIL_E_INVALID, "%sillegal base64 data at input byte %zu",
                       d->is_map ? "error decoding from json: " : "", fault);
    char *clean = vg_arena_alloc(d->arena, vg_base64_size(s.n) + 1, 1);
    char *bytes = vg_arena_alloc(d->arena, s.n + 1, 1);
    if (!clean || !bytes)
        return -ENOMEM;
    size_t k = 0;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] != '\r' && s.p[i] != '\n')
            clean[k++] = s.p[i];
    if (!vg_base64_decode(vg_slice(clean, k), bytes, &n))
        return vg_fail(d->status, VIGIL_E_INVALID, "illegal base64 data at input byte %zu", k);
    vg_base64_encode(vg_slice(bytes, n), clean);
    return put_text(d, v, vg_slice(clean, vg_base64_size(n)));
}

static int decode_quantity(struct decoder *d, struct vg_json *v)
{
    struct vg_quantity q;
    char room[VG_QUANTITY_TEXT_MAX];
    /* Whatever it is, Go hands over its text. */
    struct vg_slice text = vg_json_text(v);
    int err = vg_quantity_parse(text, &q, d->status);
    return err < 0 ? err : put_text(d, v, vg_quantity_text(&q, room));
}

static int decode_time(struct decoder *d, const struct frame *f, struct vg_json *v, bool is_micro)
{
    struct vg_gotime t;
    char text[VG_TIME_TEXT_MAX];
    if (v->type != VG_JSON_STRING)
        return refuse(d, f, v, "string", false);
    int err = vg_gotime_parse(vg_json_text(v), is_micro, &t, d->status);
    if (err < 0)
        return err;
    if (t.s == VG_GOTIME_ZERO_S && t.ns == 0) {
        *v = vg_json_null();
        return 0;
    }
    return put_text(d, v, vg_slice(text, vg_gotime_format(t, is_micro, text)));
}

static int decode_int_or_string(struct decoder *d, const struct frame *f, const struct vg_json *v)
{
    int64_t i;
    bool is_int = vg_json_to_int64(v, &i) == 0 && i >= INT32_MIN && i <= INT32_MAX;
    return is_int || v->type == VG_JSON_STRING ? 0 : refuse(d, f, v, "int32", true);
}

static int decode_strings(struct decoder *d, const struct frame *f, struct vg_json *v)
{
    if (v->type != VG_JSON_ARRAY)
        return refuse(d, f, v, f->field->more->item_go, false);
    VG_JSON_FOREACH_ITEM (it, v) {
        if (it->type == VG_JSON_NULL)
            *it = vg_json_string_ref(VG_SLICE_LIT(""));
        else if (it->type != VG_JSON_STRING)
            return refuse(d, f, it, "string", false);
    }
    return 0;
}

/* A schema, or what stands for one: a list, a boolean, names. */
static int decode_schema_or(struct decoder *d, const struct frame *f, struct vg_json *v)
{
    if (v->type == VG_JSON_OBJECT)
        return decode_type(d, f, f->field->type, v);
    if (f->field->value == VG_SCHEMA_OR_STRINGS && v->type == VG_JSON_ARRAY)
        return decode_strings(d, f, v);
    if (f->field->value == VG_SCHEMA_OR_BOOL && v->type == VG_JSON_BOOL)
        return 0;
    if (f->field->value == VG_SCHEMA_OR_BOOL)
        return vg_fail(d->status, VIGIL_E_INVALID, "boolean or JSON schema expected");
    if (v->type != VG_JSON_ARRAY) { /* Go takes it for one without a schema */
        *v = vg_json_null();
        return 0;
    }
    int err = 0;
    VG_JSON_FOREACH_ITEM (it, v) {
        if (it->type == VG_JSON_NULL)
            *it = vg_json_object();
        else if (it->type != VG_JSON_OBJECT)
            return refuse(d, f, it, f->field->type->go, false);
        if (err == 0)
            err = decode_type(d, f, f->field->type, it);
    }
    return err;
}

static int decode_value(struct decoder *d, const struct frame *f, struct vg_json *v)
{
    const struct vg_schema_field *field = f->field;
    double x;
    switch ((enum vg_schema_value)field->value) {
    case VG_SCHEMA_STRING:
        return v->type == VG_JSON_STRING ? 0 : refuse(d, f, v, field->more->item_go, false);
    case VG_SCHEMA_BOOL:
        return v->type == VG_JSON_BOOL ? 0 : refuse(d, f, v, "bool", false);
    case VG_SCHEMA_INT32:
    case VG_SCHEMA_INT64:
        return decode_int(d, f, v);
    case VG_SCHEMA_DOUBLE:
        return vg_json_to_double(v, &x) == 0 ? 0 : refuse(d, f, v, "float64", true);
    case VG_SCHEMA_BYTES:
        return decode_bytes(d, f, v);
    case VG_SCHEMA_QUANTITY:
        return decode_quantity(d, v);
    case VG_SCHEMA_INT_OR_STRING:
        return decode_int_or_string(d, f, v);
    case VG_SCHEMA_TIME:
    case VG_SCHEMA_MICRO_TIME:
        return decode_time(d, f, v, field->value == VG_SCHEMA_MICRO_TIME);
    case VG_SCHEMA_RAW:
    case VG_SCHEMA_JSON:
    case VG_SCHEMA_FIELDS:
        return 0;
    case VG_SCHEMA_STRINGS:
        return decode_strings(d, f, v);
    case VG_SCHEMA_OR_ARRAY:
    case VG_SCHEMA_OR_BOOL:
    case VG_SCHEMA_OR_STRINGS:
        return decode_schema_or(d, f, v);
    case VG_SCHEMA_TYPE:
        break;
    }
    if (v->type != VG_JSON_OBJECT)
        return refuse(d, f, v, field->more->item_go, false);
    return decode_type(d, f, field->type, v);
}

/* What null is as an item of a list or a value of a map. */
static struct vg_json zero_of(const struct vg_schema_field *f)
{
    switch ((enum vg_schema_value)f->value) {
    case VG_SCHEMA_STRING:
        return vg_json_string_ref(VG_SLICE_LIT(""));
    case VG_SCHEMA_BOOL:
        return vg_json_bool(false);
    case VG_SCHEMA_TYPE:
        return vg_json_object();
    case VG_SCHEMA_QUANTITY:
        return vg_json_string_ref(VG_SLICE_LIT("0"));
    case VG_SCHEMA_INT32:
    case VG_SCHEMA_INT64:
    case VG_SCHEMA_DOUBLE:
    case VG_SCHEMA_INT_OR_STRING:
        return (struct vg_json){
            .type = VG_JSON_NUMBER, .flags = VG_JSON_INTEGER, .n = 1, .text = "0"};
    default:
        return vg_json_null();
    }
}

/* ---- fields ---- */

static int decode_list(struct decoder *d, struct frame *f, struct vg_json *v)
{
    if (v->type != VG_JSON_ARRAY)
        return refuse(d, f, v, f->field->more->go, false);
    int err = 0;
    for (uint32_t i = 0; i < v->n && err == 0; i++) {
        f->index = i;
        if (v->items[i].type == VG_JSON_NULL)
            v->items[i] = zero_of(f->field);
        else
            err = decode_value(d, f, &v->items[i]);
    }
    return err;
}

static int decode_map(struct decoder *d, struct frame *f, struct vg_json *v)
{
    if (v->type != VG_JSON_OBJECT)
        return refuse(d, f, v, f->field->more->go, false);
    int err = 0;
    for (uint32_t i = 0; i < v->n && err == 0; i++) {
        f->key = vg_json_key(&v->members[i]);
        if (v->members[i].value.type == VG_JSON_NULL)
            v->members[i].value = zero_of(f->field);
        else
            err = decode_value(d, f, &v->members[i].value);
    }
    return err;
}

static int decode_field(struct decoder *d, struct frame *f, struct vg_json *v)
{
    switch ((enum vg_schema_shape)f->field->shape) {
    case VG_SCHEMA_LIST:
        return decode_list(d, f, v);
    case VG_SCHEMA_MAP:
        return decode_map(d, f, v);
    case VG_SCHEMA_ONE:
        break;
    }
    return decode_value(d, f, v);
}

static int decode_type(struct decoder *d, const struct frame *up, const struct vg_schema_type *type,
                       struct vg_json *v)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        struct vg_json_member *m = &v->members[i];
        struct frame f = {.up = up, .type = type, .field = vg_schema_field(type, vg_json_key(m))};
        int err = 0;
        bool stays = false;
        if (f.field && m->value.type != VG_JSON_NULL) {
            err = decode_field(d, &f, &m->value);
            stays = m->value.type != VG_JSON_NULL;
            m->key = f.field->name; /* the table's own, by which it is found again */
        } else if (!f.field) {
            err = note_unknown(d, up, vg_json_key(m));
        }
        if (err < 0)
            return err;
        if (stays)
            v->members[kept++] = *m;
    }
    if (kept != v->n)
        v->begin = v->end = 0; /* no longer what the source says */
    v->n = kept;
    return 0;
}

int vg_schema_decode(struct vg_arena *a, const struct vg_schema_type *type, struct vg_json *root,
                     struct vg_json *unknown, struct vg_status *reterr_status)
{
    struct decoder d = {.arena = a, .unknown = unknown, .status = reterr_status};
    return decode_type(&d, NULL, type, root);
}

static int compare_texts(const void *a, const void *b)
{
    return vg_slice_cmp(vg_json_text(a), vg_json_text(b));
}

int vg_schema_decode_map(struct vg_arena *a, const struct vg_schema_type *type,
                         struct vg_json *root, struct vg_json *unknown,
                         struct vg_status *reterr_status)
{
    struct decoder d = {.arena = a, .unknown = unknown, .status = reterr_status, .is_map = true};
    int err = decode_type(&d, NULL, type, root);
    if (err == 0 && unknown && unknown->n > 1)
        qsort(unknown->items, unknown->n, sizeof *unknown->items, compare_texts);
    return err;
}
