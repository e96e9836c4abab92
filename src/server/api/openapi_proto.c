/* openapi_proto.c - JSON to protobuf by tables, one per message; see openapi_proto.h.
 * A message's table says for each JSON key the field's number and what its value is. Maps become
 * repeated pairs of name and value; keys that begin with x- become such pairs whose value is a text
 * in YAML, which JSON is. Where a value may be one of several messages, choose() says which and in
 * what it is wrapped. Depth is that of our own documents. */
#include "openapi_proto.h"

#include "base/err.h"
#include "json/write.h"

enum value_type {
    STRING,
    BOOL,
    STRINGS,  /* repeated */
    MESSAGE,  /* one object */
    MESSAGES, /* repeated, from an array */
    MAP,      /* a message that holds pairs in field `pairs` */
    ANYS,     /* repeated Any {string yaml = 2}, from an array */
    DEFAULT,  /* DefaultType {double number = 1; bool boolean = 2; string string = 3} */
    TYPE_V2,  /* message TypeItem {repeated string value = 1} from one string */
};

struct message;

struct field {
    const char *key;
    uint8_t number;
    uint8_t type;  /* enum value_type */
    uint8_t pairs; /* MAP: the number of the pairs in the message in between */
    const struct message *of;
};

/* The messages that wrap a value, outermost first, each with one field; ends with 0. */
typedef uint8_t wraps[3];

struct message {
    const struct field *v;
    size_t n;
    uint8_t extensions; /* number of the x- pairs; 0: none */
    /* When set, the rest is that of what it gives. */
    const struct message *(*choose)(const struct vg_json *value, wraps ret);
};

/* ---- the wire ---- */

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2 };

static int put_varint(struct vg_buf *out, uint64_t v)
{
    char bytes[10];
    size_t n = 0;
    do {
        bytes[n++] = (char)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        v >>= 7;
    } while (v);
    return vg_buf_append(out, bytes, n);
}

static int put_tag(struct vg_buf *out, unsigned number, unsigned wire)
{
    return put_varint(out, number << 3 | wire);
}

static int put_bytes(struct vg_buf *out, unsigned number, struct vg_slice s)
{
    int err = put_tag(out, number, WIRE_BYTES);
    if (err == 0)
        err = put_varint(out, s.n);
    return err < 0 ? err : vg_buf_append_slice(out, s);
}

/* What was appended since `start` becomes the field `number`: its tag and length are put before
 * it. Moving bytes at each level costs less than a pass that counts them. */
static int close_field(struct vg_buf *out, size_t start, unsigned number)
{
    size_t n = out->n - start;
    int err = put_tag(out, number, WIRE_BYTES);
    if (err == 0)
        err = put_varint(out, n);
    if (err < 0)
        return err;
    char head[20];
    size_t head_n = out->n - start - n;
    memcpy(head, out->p + start + n, head_n);
    memmove(out->p + start + head_n, out->p + start, n);
    memcpy(out->p + start, head, head_n);
    return 0;
}

/* ---- values ---- */

static int put_message(struct vg_buf *out, const struct message *m, const struct vg_json *value);

static int put_wrapped(struct vg_buf *out, unsigned number, const struct message *m,
                       const struct vg_json *value)
{
    size_t start = out->n;
    int err = put_message(out, m, value);
    return err < 0 ? err : close_field(out, start, number);
}

/* Pairs: {string name = 1; <message> value = 2}. */
static int put_pair(struct vg_buf *out, unsigned number, const struct vg_json_member *member,
                    const struct message *of)
{
    size_t start = out->n;
    int err = put_bytes(out, 1, vg_json_key(member));
    if (err == 0)
        err = put_wrapped(out, 2, of, &member->value);
    return err < 0 ? err : close_field(out, start, number);
}

static int put_map(struct vg_buf *out, const struct field *f, const struct vg_json *value)
{
    size_t start = out->n;
    int err = 0;
    VG_JSON_FOREACH_MEMBER (m, value) {
        if (err == 0)
            err = put_pair(out, f->pairs, m, f->of);
    }
    return err < 0 ? err : close_field(out, start, f->number);
}

/* Any {string yaml = 2}, as the field `number`. */
static int put_any(struct vg_buf *out, unsigned number, const struct vg_json *value)
{
    VG_AUTO(buf) yaml = {0};
    int err = vg_json_write(&yaml, value, 0);
    size_t start = out->n;
    if (err == 0)
        err = put_bytes(out, 2, vg_buf_slice(&yaml));
    return err < 0 ? err : close_field(out, start, number);
}

/* NamedAny {name = 1; Any value = 2}. */
static int put_extension(struct vg_buf *out, unsigned number, const struct vg_json_member *member)
{
    size_t start = out->n;
    int err = put_bytes(out, 1, vg_json_key(member));
    if (err == 0)
        err = put_any(out, 2, &member->value);
    return err < 0 ? err : close_field(out, start, number);
}

static int put_items(struct vg_buf *out, const struct field *f, const struct vg_json *value)
{
    int err = 0;
    VG_JSON_FOREACH_ITEM (item, value) {
        if (err == 0)
            err = f->type == STRINGS ? put_bytes(out, f->number, vg_json_text(item))
                  : f->type == ANYS  ? put_any(out, f->number, item)
                                     : put_wrapped(out, f->number, f->of, item);
    }
    return err;
}

static int put_bool(struct vg_buf *out, const struct field *f, const struct vg_json *value)
{
    int err = put_tag(out, f->number, WIRE_VARINT);
    return err < 0 ? err : put_varint(out, vg_json_is_true(value));
}

/* An object or list has no place in it: an empty message then, as the original has it. */
static int put_default(struct vg_buf *out, const struct field *f, const struct vg_json *value)
{
    size_t start = out->n;
    int err = 0;
    double number = 0;
    if (vg_json_is(value, VG_JSON_STRING)) {
        err = put_bytes(out, 3, vg_json_text(value));
    } else if (vg_json_is(value, VG_JSON_BOOL)) {
        err = put_tag(out, 2, WIRE_VARINT);
        err = err < 0 ? err : put_varint(out, vg_json_is_true(value));
    } else if (vg_json_to_double(value, &number) == 0) {
        err = put_tag(out, 1, WIRE_64);
        err = err < 0 ? err : vg_buf_append(out, &number, sizeof number);
    }
    return err < 0 ? err : close_field(out, start, f->number);
}

static int put_type_v2(struct vg_buf *out, const struct field *f, const struct vg_json *value)
{
    size_t start = out->n;
    int err = put_bytes(out, 1, vg_json_text(value));
    return err < 0 ? err : close_field(out, start, f->number);
}

static int put_field(struct vg_buf *out, const struct field *f, const struct vg_json *value)
{
    switch ((enum value_type)f->type) {
    case STRING:
        return put_bytes(out, f->number, vg_json_text(value));
    case BOOL:
        return put_bool(out, f, value);
    case STRINGS:
    case ANYS:
    case MESSAGES:
        return put_items(out, f, value);
    case MESSAGE:
        return put_wrapped(out, f->number, f->of, value);
    case MAP:
        return put_map(out, f, value);
    case DEFAULT:
        return put_default(out, f, value);
    case TYPE_V2:
        return put_type_v2(out, f, value);
    }
    return VIGIL_E_INVALID;
}

static int put_member(struct vg_buf *out, const struct message *m,
                      const struct vg_json_member *member)
{
    struct vg_slice key = vg_json_key(member);
    if (m->extensions && vg_slice_has_prefix(key, VG_SLICE_LIT("x-")))
        return put_extension(out, m->extensions, member);
    for (size_t i = 0; i < m->n; i++)
        if (vg_slice_eq(key, vg_slice_str(m->v[i].key)))
            return put_field(out, &m->v[i], &member->value);
    return VIGIL_E_INVALID;
}

static int put_message(struct vg_buf *out, const struct message *m, const struct vg_json *value)
{
    wraps around = {0};
    if (m->choose)
        m = m->choose(value, around);
    size_t start = out->n;
    int err = 0;
    VG_JSON_FOREACH_MEMBER (member, value) {
        if (err == 0)
            err = put_member(out, m, member);
    }
    for (size_t i = VG_ARRAY_LEN(around); i-- > 0 && err == 0;)
        if (around[i])
            err = close_field(out, start, around[i]);
    return err;
}

/* ---- tables ---- */

/* clang-format off */
#define FIELDS(name_) .v = name_, .n = VG_ARRAY_LEN(name_)
#define ROW(key_, number_, type_) .key = key_, .number = number_, .type = type_
#define TEXT(key_, number_) {ROW(key_, number_, STRING)}
#define FLAG(key_, number_) {ROW(key_, number_, BOOL)}
#define TEXTS(key_, number_) {ROW(key_, number_, STRINGS)}
#define VALUES(key_, number_) {ROW(key_, number_, ANYS)}
#define DEFAULT_VALUE(key_, number_) {ROW(key_, number_, DEFAULT)}
#define TYPE(key_, number_) {ROW(key_, number_, TYPE_V2)}
#define ONE(key_, number_, of_) {ROW(key_, number_, MESSAGE), .of = &of_}
#define MANY(key_, number_, of_) {ROW(key_, number_, MESSAGES), .of = &of_}
#define PAIRS(key_, number_, pairs_, of_) {ROW(key_, number_, MAP), .pairs = pairs_, .of = &of_}
/* clang-format on */

static bool has(const struct vg_json *value, const char *key)
{
    return vg_json_get_str(value, key);
}

static bool is_in(const struct vg_json *value, const char *place)
{
    return vg_slice_eq(vg_json_text(vg_json_get_str(value, "in")), vg_slice_str(place));
}

/* -- 2.0 -- */

static const struct message v2_schema;

/* SchemaItem, AdditionalPropertiesItem and ItemsItem all have the schema as their field 1. */
static const struct message *choose_v2_schema(const struct vg_json *value, wraps ret)
{
    (void)value;
    ret[0] = 1;
    return &v2_schema;
}
static const struct message v2_schema_item = {.choose = choose_v2_schema};

static const struct field v2_schema_fields[] = {
    TEXT("$ref", 1),
    TEXT("format", 2),
    TEXT("description", 4),
    TEXTS("required", 19),
    VALUES("enum", 20),
    ONE("additionalProperties", 21, v2_schema_item),
    TYPE("type", 22),
    ONE("items", 23, v2_schema_item),
    PAIRS("properties", 25, 1, v2_schema),
};
static const struct message v2_schema = {FIELDS(v2_schema_fields), .extensions = 31};

static const struct field v2_body_fields[] = {
    TEXT("description", 1),      TEXT("name", 2), TEXT("in", 3), FLAG("required", 4),
    ONE("schema", 5, v2_schema),
};
static const struct field v2_query_fields[] = {
    FLAG("required", 1), TEXT("in", 2),   TEXT("description", 3),
    TEXT("name", 4),     TEXT("type", 6), FLAG("uniqueItems", 20),
};
static const struct field v2_path_fields[] = {
    FLAG("required", 1), TEXT("in", 2),   TEXT("description", 3),
    TEXT("name", 4),     TEXT("type", 5), FLAG("uniqueItems", 19),
};
static const struct message v2_body = {FIELDS(v2_body_fields)};
static const struct message v2_query = {FIELDS(v2_query_fields)};
static const struct message v2_path = {FIELDS(v2_path_fields)};

/* ParametersItem.parameter = 1, Parameter.body_parameter = 1 or .non_body_parameter = 2, and there
 * .query = 3, .path = 4. */
static const struct message *choose_v2_parameter(const struct vg_json *value, wraps ret)
{
    ret[0] = 1;
    ret[1] = is_in(value, "body") ? 1 : 2;
    ret[2] = is_in(value, "body") ? 0 : is_in(value, "path") ? 4 : 3;
    return is_in(value, "body") ? &v2_body : is_in(value, "path") ? &v2_path : &v2_query;
}
static const struct message v2_parameter = {.choose = choose_v2_parameter};

static const struct field v2_response_fields[] = {
    TEXT("description", 1),
    ONE("schema", 2, v2_schema_item),
};
static const struct message v2_response = {FIELDS(v2_response_fields)};
static const struct message *choose_v2_response(const struct vg_json *value, wraps ret)
{
    (void)value;
    ret[0] = 1; /* ResponseValue.response */
    return &v2_response;
}
static const struct message v2_response_value = {.choose = choose_v2_response};

static const struct field v2_operation_fields[] = {
    TEXTS("tags", 1),
    TEXT("description", 3),
    TEXT("operationId", 5),
    TEXTS("produces", 6),
    TEXTS("consumes", 7),
    MANY("parameters", 8, v2_parameter),
    PAIRS("responses", 9, 1, v2_response_value),
};
static const struct message v2_operation = {FIELDS(v2_operation_fields), .extensions = 13};

static const struct field v2_path_item_fields[] = {
    ONE("get", 2, v2_operation),   ONE("put", 3, v2_operation),
    ONE("post", 4, v2_operation),  ONE("delete", 5, v2_operation),
    ONE("patch", 8, v2_operation), MANY("parameters", 9, v2_parameter),
};
static const struct message v2_path_item = {FIELDS(v2_path_item_fields), .extensions = 10};

static const struct field v2_info_fields[] = {TEXT("title", 1), TEXT("version", 2)};
static const struct message v2_info = {FIELDS(v2_info_fields)};

static const struct field v2_document_fields[] = {
    TEXT("swagger", 1),
    ONE("info", 2, v2_info),
    PAIRS("paths", 8, 2, v2_path_item),
    PAIRS("definitions", 9, 1, v2_schema),
};
static const struct message v2_document = {FIELDS(v2_document_fields)};

/* -- 3.0 -- */

static const struct message v3_schema_or_ref;

static const struct field v3_ref_fields[] = {TEXT("$ref", 1)};
static const struct message v3_ref = {FIELDS(v3_ref_fields)};

/* ItemsItem and AdditionalPropertiesItem have a SchemaOrReference as their field 1. */
static const struct message *choose_v3_item(const struct vg_json *value, wraps ret);
static const struct message v3_item = {.choose = choose_v3_item};

static const struct field v3_schema_fields[] = {
    FLAG("uniqueItems", 20),
    TEXTS("required", 23),
    VALUES("enum", 24),
    TEXT("type", 25),
    MANY("allOf", 26, v3_schema_or_ref),
    MANY("oneOf", 27, v3_schema_or_ref),
    ONE("items", 30, v3_item),
    PAIRS("properties", 31, 1, v3_schema_or_ref),
    ONE("additionalProperties", 32, v3_item),
    DEFAULT_VALUE("default", 33),
    TEXT("description", 34),
    TEXT("format", 35),
};
static const struct message v3_schema = {FIELDS(v3_schema_fields), .extensions = 36};

static const struct message *choose_v3_schema(const struct vg_json *value, wraps ret)
{
    ret[0] = has(value, "$ref") ? 2 : 1;
    return has(value, "$ref") ? &v3_ref : &v3_schema;
}
static const struct message v3_schema_or_ref = {.choose = choose_v3_schema};

static const struct message *choose_v3_item(const struct vg_json *value, wraps ret)
{
    const struct message *m = choose_v3_schema(value, ret);
    ret[1] = ret[0];
    ret[0] = 1;
    return m;
}

/* The field 1 of the message that allows for a reference, which we do not use. */
#define NEVER_A_REFERENCE(name_)                                                                   \
    static const struct message *choose_##name_(const struct vg_json *value, wraps ret)            \
    {                                                                                              \
        (void)value;                                                                               \
        ret[0] = 1;                                                                                \
        return &name_;                                                                             \
    }                                                                                              \
    static const struct message name_##_or_ref = {.choose = choose_##name_}

static const struct field v3_parameter_fields[] = {
    TEXT("name", 1),
    TEXT("in", 2),
    TEXT("description", 3),
    FLAG("required", 4),
    ONE("schema", 10, v3_schema_or_ref),
};
static const struct message v3_parameter = {FIELDS(v3_parameter_fields)};
NEVER_A_REFERENCE(v3_parameter);

static const struct field v3_media_fields[] = {ONE("schema", 1, v3_schema_or_ref)};
static const struct message v3_media = {FIELDS(v3_media_fields)};

static const struct field v3_body_fields[] = {
    PAIRS("content", 2, 1, v3_media),
    FLAG("required", 3),
};
static const struct message v3_body = {FIELDS(v3_body_fields)};
NEVER_A_REFERENCE(v3_body);

static const struct field v3_response_fields[] = {
    TEXT("description", 1),
    PAIRS("content", 3, 1, v3_media),
};
static const struct message v3_response = {FIELDS(v3_response_fields)};
NEVER_A_REFERENCE(v3_response);

static const struct field v3_operation_fields[] = {
    TEXTS("tags", 1),
    TEXT("description", 3),
    TEXT("operationId", 5),
    MANY("parameters", 6, v3_parameter_or_ref),
    ONE("requestBody", 7, v3_body_or_ref),
    PAIRS("responses", 8, 2, v3_response_or_ref),
};
static const struct message v3_operation = {FIELDS(v3_operation_fields), .extensions = 13};

static const struct field v3_path_item_fields[] = {
    ONE("get", 4, v3_operation),    ONE("put", 5, v3_operation),
    ONE("post", 6, v3_operation),   ONE("delete", 7, v3_operation),
    ONE("patch", 10, v3_operation), MANY("parameters", 13, v3_parameter_or_ref),
};
static const struct message v3_path_item = {FIELDS(v3_path_item_fields), .extensions = 14};

static const struct field v3_components_fields[] = {
    PAIRS("schemas", 1, 1, v3_schema_or_ref),
};
static const struct message v3_components = {FIELDS(v3_components_fields)};

static const struct field v3_info_fields[] = {TEXT("title", 1), TEXT("version", 6)};
static const struct message v3_info = {FIELDS(v3_info_fields)};

static const struct field v3_document_fields[] = {
    TEXT("openapi", 1),
    ONE("info", 2, v3_info),
    PAIRS("paths", 4, 1, v3_path_item),
    ONE("components", 5, v3_components),
};
static const struct message v3_document = {FIELDS(v3_document_fields)};

int vg_openapi_proto_v2(struct vg_buf *out, const struct vg_json *document)
{
    return put_message(out, &v2_document, document);
}

int vg_openapi_proto_v3(struct vg_buf *out, const struct vg_json *document)
{
    return put_message(out, &v3_document, document);
}
