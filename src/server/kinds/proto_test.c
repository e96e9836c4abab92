/* The protobuf codec on types that there are: what is refused, put right, merged and left out. */
#include "test_support.h"

#include <errno.h>

#include "server/schema/proto.h"
#include "types.h"
#include "json/write.h"

static const struct vg_schema_type *type_of(const char *group, const char *name)
{
    const struct vg_schema_type *t =
        vg_schema_find(vg_slice_str(group), VG_SLICE_LIT("v1"), vg_slice_str(name));
    assert_non_null(t);
    return t;
}

/* ' stands for ". */
static void quoted(struct vg_buf *b, const char *text)
{
    assert_int_equal(vg_buf_append(b, text, strlen(text)), 0);
    for (size_t i = 0; i < b->n; i++)
        if (b->p[i] == '\'')
            b->p[i] = '"';
}

static void encode(const struct vg_schema_type *t, const char *json, const char *revision,
                   struct vg_buf *ret)
{
    VG_AUTO(proto_encoder) e = {0};
    VG_AUTO(buf) text = {0};
    quoted(&text, json);
    int r = vg_proto_encode(&e, t, vg_buf_slice(&text), vg_slice_str(revision), ret);
    if (r < 0)
        fail_msg("%s: %s", json, vg_err_text(r));
}

static int decode(const struct vg_schema_type *t, struct vg_slice bytes, struct vg_buf *ret,
                  struct vg_status *reterr_status)
{
    VG_AUTO(arena) arena;
    struct vg_json v;
    struct vg_proto_envelope x = {.raw = bytes};
    vg_arena_init(&arena, 0, 0);
    int r = vg_proto_decode(&arena, t, &x, &v, reterr_status);
    return r < 0 ? r : vg_json_write(ret, &v, 0);
}

static void assert_decodes(const struct vg_schema_type *t, struct vg_slice bytes, const char *json)
{
    VG_AUTO(buf) got = {0};
    VG_AUTO(buf) want = {0};
    struct vg_status status;
    quoted(&want, json);
    if (decode(t, bytes, &got, &status) < 0)
        fail_msg("%s: %s", json, status.message);
    vg_assert_slice_equal(vg_buf_slice(&got), vg_buf_slice(&want));
}

static void assert_refused(const struct vg_schema_type *t, struct vg_slice bytes, int err,
                           const char *message)
{
    VG_AUTO(buf) got = {0};
    struct vg_status status = {0};
    assert_int_equal(decode(t, bytes, &got, &status), err);
    assert_string_equal(status.message, message);
}

/* Encoded and decoded again it is `after`. */
static void assert_becomes(const struct vg_schema_type *t, const char *before, const char *after)
{
    VG_AUTO(buf) bytes = {0};
    encode(t, before, "", &bytes);
    assert_decodes(t, vg_buf_slice(&bytes), after);
}

#define BYTES(lit) VG_SLICE_LIT(lit)

/* ---- decoding ---- */

static void broken_bytes_are_refused(void **state)
{
    (void)state;
    const struct vg_schema_type *t = type_of("", "ConfigMap");
    assert_refused(t, BYTES("\x0a\x05\x01"), VIGIL_E_INVALID, "unexpected EOF");
    assert_refused(t, BYTES("\x0a"), VIGIL_E_INVALID, "unexpected EOF");
    assert_refused(t, BYTES("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), VIGIL_E_INVALID,
                   "proto: integer overflow");
    assert_refused(t, BYTES("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), VIGIL_E_INVALID,
                   "unexpected EOF");
    assert_refused(t, BYTES("\x02\x00"), VIGIL_E_INVALID, "proto: illegal tag 0 (wire type 2)");
    assert_refused(t, BYTES("\x7b\x7c"), VIGIL_E_INVALID, "proto: illegal wireType 3");
    assert_refused(t, BYTES("\x7c"), VIGIL_E_INVALID, "proto: illegal wireType 4");
    assert_refused(t, BYTES("\x08\x01"), VIGIL_E_INVALID,
                   "proto: wrong wireType = 0 for field v1.ConfigMap.metadata");
    assert_refused(t, BYTES("\x79\x01\x02"), VIGIL_E_INVALID, "unexpected EOF");
}

static void values_that_json_cannot_have_are_refused(void **state)
{
    (void)state;
    const struct vg_schema_type *t = type_of("", "ResourceQuota");
    assert_refused(t,
                   BYTES("\x12\x0d\x0a\x0b\x0a\x03"
                         "cpu\x12\x04\x0a\x02"
                         "1x"),
                   VIGIL_E_INVALID,
                   "quantities must match the regular expression "
                   "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
    t = type_of("", "ConfigMap");
    assert_refused(t, BYTES("\x0a\x0b\x42\x09\x08\xff\xff\xff\xff\xff\xff\xff\x01"),
                   VIGIL_E_INVALID, "creationTimestamp: year is not in the range [0, 9999]");
    t = type_of("apps", "ControllerRevision");
    VG_AUTO(buf) got = {0};
    assert_int_equal(decode(t, BYTES("\x12\x03\x0a\x01{"), &got, NULL), VIGIL_E_INVALID);
}

static void unknown_fields_are_passed_over(void **state)
{
    (void)state;
    assert_decodes(type_of("", "ConfigMap"),
                   BYTES("\x0a\x06\x0a\x01x\xd2\x0f\x00\x78\x07\x79"
                         "12345678\x7d"
                         "1234\x82\x7d\x01z"),
                   "{'metadata':{'name':'x'}}");
}

static void of_scalars_the_last_counts_and_messages_are_merged(void **state)
{
    (void)state;
    assert_decodes(type_of("", "ConfigMap"),
                   BYTES("\x0a\x03\x0a\x01x\x0a\x06\x0a\x01y\x1a\x01n\x0a\x02\x1a\x00"),
                   "{'metadata':{'name':'y'}}");
    assert_decodes(type_of("", "Pod"), BYTES("\x12\x04\x58\x01\x58\x00"),
                   "{'metadata':{},'spec':{'containers':null},'status':{}}");
}

static void maps_are_sorted_and_the_last_of_equal_keys_stays(void **state)
{
    (void)state;
    assert_decodes(type_of("", "ConfigMap"),
                   BYTES("\x12\x06\x0a\x01"
                         "b\x12\x01"
                         "1\x12\x06\x0a\x01"
                         "a\x12\x01"
                         "2\x12\x06\x0a\x01"
                         "b\x12\x01"
                         "3\x12\x00"),
                   "{'metadata':{},'data':{'':'','a':'2','b':'3'}}");
}

static void lists_of_numbers_may_be_packed(void **state)
{
    (void)state;
    assert_decodes(type_of("", "Pod"), BYTES("\x12\x09\x72\x07\x20\x01\x22\x03\x02\x80\x01"),
                   "{'metadata':{},'spec':{'containers':null,'securityContext':{"
                   "'supplementalGroups':[1,2,128]}},'status':{}}");
}

static void bad_utf8_becomes_the_replacement_character(void **state)
{
    (void)state;
    assert_decodes(type_of("", "ConfigMap"), BYTES("\x0a\x05\x0a\x03x\xff\xfe"),
                   "{'metadata':{'name':'x\xEF\xBF\xBD\xEF\xBF\xBD'}}");
}

static void times_quantities_and_bytes_are_canonical(void **state)
{
    (void)state;
    assert_decodes(type_of("", "ConfigMap"), BYTES("\x0a\x06\x42\x04\x08\x00\x10\x05"),
                   "{'metadata':{'creationTimestamp':'1970-01-01T00:00:00Z'}}");
    assert_decodes(type_of("", "ConfigMap"), BYTES("\x0a\x02\x4a\x00"), "{'metadata':{}}");
    assert_decodes(type_of("", "ResourceQuota"),
                   BYTES("\x12\x0f\x0a\x0d\x0a\x01"
                         "c\x12\x08\x0a\x06"
                         "1024Mi\x1a\x00"),
                   "{'metadata':{},'spec':{'hard':{'c':'1Gi'}},'status':{}}");
    assert_decodes(type_of("", "Secret"), BYTES("\x12\x07\x0a\x01k\x12\x02\x00\xff"),
                   "{'metadata':{},'data':{'k':'AP8='}}");
}

/* Schemas in schemas, `depth` of them. */
static void put_nested(struct vg_buf *b, const char *open, const char *close, unsigned depth)
{
    for (unsigned i = 0; i < depth; i++)
        quoted(b, open);
    for (unsigned i = 0; i < depth; i++)
        quoted(b, close);
}

/* Written to `ret` as JSON and as protobuf. */
static int encode_nested(unsigned depth, struct vg_buf *ret_text, struct vg_buf *ret)
{
    const struct vg_schema_type *t = type_of("apiextensions.k8s.io", "JSONSchemaProps");
    VG_AUTO(proto_encoder) e = {0};
    put_nested(ret_text, "{'not':", "", depth - 1);
    assert_int_equal(vg_buf_append(ret_text, "{}", 2), 0);
    put_nested(ret_text, "", "}", depth - 1);
    return vg_proto_encode(&e, t, vg_buf_slice(ret_text), VG_SLICE_LIT(""), ret);
}

static void deep_messages_are_refused(void **state)
{
    (void)state;
    const struct vg_schema_type *t = type_of("apiextensions.k8s.io", "JSONSchemaProps");
    static const unsigned depths[] = {VG_PROTO_DECODE_DEPTH_MAX, VG_PROTO_DECODE_DEPTH_MAX + 1,
                                      VG_PROTO_DEPTH_MAX, VG_PROTO_DEPTH_MAX + 1};
    for (size_t i = 0; i < VG_ARRAY_LEN(depths); i++) {
        VG_AUTO(buf) given = {0};
        VG_AUTO(buf) out = {0};
        VG_AUTO(buf) text = {0};
        bool is_written = depths[i] <= VG_PROTO_DEPTH_MAX;
        bool is_read = depths[i] <= VG_PROTO_DECODE_DEPTH_MAX;
        assert_int_equal(encode_nested(depths[i], &given, &out),
                         is_written ? 0 : VIGIL_E_JSON_DEPTH);
        assert_int_equal(out.n > 0, is_written);
        if (!is_written)
            continue;
        assert_int_equal(decode(t, vg_buf_slice(&out), &text, NULL),
                         is_read ? 0 : VIGIL_E_JSON_DEPTH);
        if (is_read)
            vg_assert_slice_equal(vg_buf_slice(&text), vg_buf_slice(&given));
    }
}

/* ---- encoding ---- */

static void keys_in_any_order_give_the_same_bytes(void **state)
{
    (void)state;
    const struct vg_schema_type *t = type_of("", "Pod");
    VG_AUTO(buf) a = {0};
    VG_AUTO(buf) b = {0};
    encode(t,
           "{'kind':'Pod','apiVersion':'v1','metadata':{'name':'x','uid':'u'},'spec':{'volumes':[{"
           "'name':'v','emptyDir':{}}],'initContainers':[{'name':'i'}],'containers':[{'name':'c',"
           "'image':'m','env':[{'name':'e'}],'startupProbe':{'timeoutSeconds':2},'tty':true}],"
           "'nodeName':'n'},'status':{'phase':'P'}}",
           "", &a);
    encode(t,
           "{'status':{'phase':'P'},'zzz':[1,{'a':null}],'spec':{'nodeName':'n','containers':[{"
           "'tty':true,'env':[{'name':'e'}],'startupProbe':{'timeoutSeconds':2},'image':'m',"
           "'name':'c'}],'volumes':[{'emptyDir':{},'name':'v'}],'initContainers':[{'name':'i'}]},"
           "'apiVersion':'v1','metadata':{'uid':'u','name':'x'}}",
           "", &b);
    vg_assert_slice_equal(vg_buf_slice(&a), vg_buf_slice(&b));
}

/* Each level begun anew for itself would be two to the power of their number. */
static void keys_out_of_order_are_read_twice_and_not_more(void **state)
{
    (void)state;
    const struct vg_schema_type *t = type_of("apiextensions.k8s.io", "JSONSchemaProps");
    VG_AUTO(buf) sorted = {0};
    VG_AUTO(buf) shuffled = {0};
    VG_AUTO(buf) a = {0};
    VG_AUTO(buf) b = {0};
    for (unsigned i = 0; i < 150; i++) {
        quoted(&sorted, "{'description':'d','not':");
        quoted(&shuffled, "{'not':");
    }
    quoted(&sorted, "{}");
    quoted(&shuffled, "{}");
    for (unsigned i = 0; i < 150; i++) {
        quoted(&sorted, "}");
        quoted(&shuffled, ",'description':'d'}");
    }
    VG_AUTO(proto_encoder) e = {0};
    uint64_t n = 0;
    struct vg_slice none = {0};
    assert_int_equal(vg_proto_encode(&e, t, vg_buf_slice(&sorted), none, &a), 0);
    assert_int_equal(vg_proto_encode(&e, t, vg_buf_slice(&shuffled), none, &b), 0);
    vg_assert_slice_equal(vg_buf_slice(&a), vg_buf_slice(&b));
    assert_int_equal(vg_proto_size(&e, t, vg_buf_slice(&shuffled), none, &n), 0);
    assert_int_equal(n, b.n);
}

static void texts_are_unescaped(void **state)
{
    (void)state;
    VG_AUTO(buf) bytes = {0};
    encode(type_of("", "ConfigMap"), "{'data':{'k':'a\\n\\u00e9\\ud83d\\ude00\\u003c'}}", "",
           &bytes);
    assert_decodes(type_of("", "ConfigMap"), vg_buf_slice(&bytes),
                   "{'metadata':{},'data':{'k':'a\\n\xc3\xa9\xf0\x9f\x98\x80<'}}");
    struct vg_buf longer = {0};
    quoted(&longer, "{'metadata':{},'data':{'k':'");
    for (unsigned i = 0; i < 3000; i++)
        quoted(&longer, "\\\\x");
    quoted(&longer, "'}}");
    VG_AUTO(buf) text = longer;
    assert_int_equal(vg_buf_append_byte(&text, '\0'), 0);
    assert_becomes(type_of("", "ConfigMap"), text.p, text.p);
}

static void null_is_nothing(void **state)
{
    (void)state;
    assert_becomes(type_of("", "Pod"),
                   "{'metadata':{'name':null,'creationTimestamp':null,'labels':null},'spec':null,"
                   "'status':{'startTime':null,'conditions':[{'type':'a','status':'b',"
                   "'lastProbeTime':null,'lastTransitionTime':null}]}}",
                   "{'metadata':{},'spec':{'containers':null},'status':{'conditions':[{'type':'a',"
                   "'status':'b','lastProbeTime':null,'lastTransitionTime':null}]}}");
    assert_becomes(type_of("", "Secret"), "{'data':{'a':null,'b':''}}",
                   "{'metadata':{},'data':{'a':'','b':''}}");
}

static void the_revision_goes_into_the_objects_own_metadata(void **state)
{
    (void)state;
    VG_AUTO(buf) bytes = {0};
    encode(type_of("apps", "Deployment"),
           "{'metadata':{'name':'d'},'spec':{'selector':{},'template':{'metadata':{},'spec':{"
           "'containers':[]}},'strategy':{}},'status':{}}",
           "42", &bytes);
    assert_decodes(type_of("apps", "Deployment"), vg_buf_slice(&bytes),
                   "{'metadata':{'name':'d','resourceVersion':'42'},'spec':{'selector':{},"
                   "'template':{'metadata':{},'spec':{'containers':null}},'strategy':{}},"
                   "'status':{}}");
}

static void texts_of_other_objects_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        int err;
    } rows[] = {
        {"", VIGIL_E_JSON_TYPE},
        {"[]", VIGIL_E_JSON_TYPE},
        {"{", VIGIL_E_JSON_SYNTAX},
        {"{}x", VIGIL_E_JSON_SYNTAX},
        {"{'metadata'", VIGIL_E_JSON_SYNTAX},
        {"{'metadata':", VIGIL_E_JSON_TYPE},
        {"{'metadata':1}", VIGIL_E_JSON_TYPE},
        {"{'metadata':{'name':'x}", VIGIL_E_JSON_SYNTAX},
        {"{'metadata':{'name':'x'", VIGIL_E_JSON_SYNTAX},
        {"{'metadata':{'name':7}}", VIGIL_E_JSON_TYPE},
        {"{'metadata':{'name':'\\q'}}", VIGIL_E_JSON_SYNTAX},
        {"{'metadata':{'generation':'7'}}", VIGIL_E_JSON_TYPE},
        {"{'metadata':{'generation':1.5}}", VIGIL_E_JSON_TYPE},
        {"{'metadata':{'generation':99999999999999999999}}", VIGIL_E_JSON_TYPE},
        {"{'metadata':{'creationTimestamp':'yesterday'}}", VIGIL_E_JSON_TYPE},
        {"{'metadata':{'labels':['a']}}", VIGIL_E_JSON_TYPE},
        {"{'metadata':{'labels':{'a' 'b'}}}", VIGIL_E_JSON_SYNTAX},
        {"{'metadata':{'finalizers':{}}}", VIGIL_E_JSON_TYPE},
        {"{'metadata':{'finalizers':['a' 'b']}}", VIGIL_E_JSON_SYNTAX},
        {"{'immutable':maybe}", VIGIL_E_JSON_TYPE},
        {"{'data':{'a':'!'}}", VIGIL_E_JSON_TYPE},
    };
    const struct vg_schema_type *t = type_of("", "Secret");
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        VG_AUTO(proto_encoder) e = {0};
        VG_AUTO(buf) text = {0};
        VG_AUTO(buf) out = {0};
        quoted(&text, rows[i].json);
        assert_int_equal(vg_buf_append_byte(&out, 'k'), 0);
        int r =
            vg_proto_encode(&e, t, vg_slice(text.p ? text.p : "", text.n), VG_SLICE_LIT(""), &out);
        if (r != rows[i].err)
            fail_msg("%s: %s", rows[i].json, vg_err_text(r));
        assert_int_equal(out.n, 1);
        uint64_t size;
        r = vg_proto_size(&e, t, vg_slice(text.p ? text.p : "", text.n), VG_SLICE_LIT(""), &size);
        assert_true(r < 0);
    }
}

/* ---- around messages ---- */

static void bodies_without_an_envelope_are_refused(void **state)
{
    (void)state;
    struct vg_proto_envelope x;
    struct vg_status status;
    assert_int_equal(vg_proto_open(VG_SLICE_LIT(""), &x, &status), VIGIL_E_INVALID);
    assert_string_equal(status.message, "empty data");
    assert_int_equal(vg_proto_open(VG_SLICE_LIT("k8s"), &x, &status), VIGIL_E_INVALID);
    assert_string_equal(status.message, "provided data does not appear to be a protobuf message, "
                                        "expected prefix [107 56 115 0]");
    assert_int_equal(vg_proto_open(VG_SLICE_LIT("k8s\0"), &x, &status), VIGIL_E_INVALID);
    assert_string_equal(status.message, "empty body");
    assert_int_equal(vg_proto_open(VG_SLICE_LIT("k8s\0\x0a\x7f"), &x, &status), VIGIL_E_INVALID);
    assert_int_equal(vg_proto_open(VG_SLICE_LIT("k8s\0\x12\x01z"), &x, &status), 0);
    vg_assert_slice_equal(x.raw, VG_SLICE_LIT("z"));
    assert_int_equal(x.kind.n, 0);
}

static void sizes_are_told_before_the_bytes(void **state)
{
    (void)state;
    VG_AUTO(buf) out = {0};
    for (uint64_t n = 0; n < 3000000; n = n * 3 + 1) {
        vg_buf_clear(&out);
        assert_int_equal(vg_proto_put_head(&out, VG_SLICE_LIT("v1"), VG_SLICE_LIT("Pod"), n), 0);
        assert_int_equal(vg_proto_envelope_size(VG_SLICE_LIT("v1"), VG_SLICE_LIT("Pod"), n),
                         out.n + n + VG_PROTO_TAIL.n);
        vg_buf_clear(&out);
        assert_int_equal(vg_proto_put_item_head(&out, n), 0);
        assert_int_equal(vg_proto_item_size(n), out.n + n);
        vg_buf_clear(&out);
        assert_int_equal(vg_proto_put_watch_head(&out, VG_SLICE_LIT("ADDED"), n), 0);
        uint32_t told = 0;
        for (unsigned i = 0; i < 4; i++)
            told = told << 8 | (unsigned char)out.p[i];
        assert_int_equal(told, out.n - 4 + n);
    }
    assert_int_equal(vg_proto_put_watch_head(&out, VG_SLICE_LIT("ADDED"), VG_PROTO_MESSAGE_MAX + 1),
                     VIGIL_E_TOO_LARGE);
}

/* ---- memory ---- */

static void running_out_of_memory_is_told(void **state)
{
    (void)state;
    const struct vg_schema_type *t = type_of("", "Pod");
    VG_AUTO(buf) text = {0};
    quoted(&text, "{'metadata':{'name':'x','labels':{'a':'b'},'managedFields':[{'fieldsV1':{'f':{}}"
                  "}]},'spec':{'containers':[{'name':'c','resources':{'limits':{'cpu':'1024Mi'}}}]"
                  "},'status':{}}");
    VG_ALLOC_FAIL_LOOP (n) {
        VG_AUTO(proto_encoder) e = {0};
        VG_AUTO(arena) arena;
        VG_AUTO(buf) out = {0};
        struct vg_json v;
        vg_arena_init(&arena, 64, 0);
        int r = vg_proto_encode_object(&e, t, VG_SLICE_LIT("v1"), VG_SLICE_LIT("Pod"),
                                       vg_buf_slice(&text), VG_SLICE_LIT("1"), &out);
        struct vg_proto_envelope x;
        if (r == 0)
            r = vg_proto_open(vg_buf_slice(&out), &x, NULL);
        if (r == 0)
            r = vg_proto_decode(&arena, t, &x, &v, NULL);
        uint64_t size;
        if (r == 0)
            r = vg_proto_size(&e, t, vg_buf_slice(&text), VG_SLICE_LIT("1"), &size);
        assert_int_equal(r, vg_test_alloc_failed() ? -ENOMEM : 0);
    }
}

static void a_capped_arena_ends_it(void **state)
{
    (void)state;
    /* Two bytes each on the wire, a hundred in the tree. */
    VG_AUTO(buf) b = {0};
    assert_int_equal(vg_buf_append(&b, "\x12\x80\x90\x0c", 4), 0);
    for (unsigned i = 0; i < 100 * 1024; i++)
        assert_int_equal(vg_buf_append(&b, "\x12\x00", 2), 0);
    VG_AUTO(arena) arena;
    vg_arena_init(&arena, 0, 1 << 20);
    struct vg_json v;
    struct vg_proto_envelope x = {.raw = vg_buf_slice(&b)};
    b.p[1] = (char)(0x80 | (200 * 1024 & 0x7f));
    b.p[2] = (char)(0x80 | (200 * 1024 >> 7 & 0x7f));
    b.p[3] = (char)(200 * 1024 >> 14);
    assert_int_equal(vg_proto_decode(&arena, type_of("", "Pod"), &x, &v, NULL), -ENOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_bytes_are_refused),
        cmocka_unit_test(values_that_json_cannot_have_are_refused),
        cmocka_unit_test(unknown_fields_are_passed_over),
        cmocka_unit_test(of_scalars_the_last_counts_and_messages_are_merged),
        cmocka_unit_test(maps_are_sorted_and_the_last_of_equal_keys_stays),
        cmocka_unit_test(lists_of_numbers_may_be_packed),
        cmocka_unit_test(bad_utf8_becomes_the_replacement_character),
        cmocka_unit_test(times_quantities_and_bytes_are_canonical),
        cmocka_unit_test(deep_messages_are_refused),
        cmocka_unit_test(keys_in_any_order_give_the_same_bytes),
        cmocka_unit_test(keys_out_of_order_are_read_twice_and_not_more),
        cmocka_unit_test(texts_are_unescaped),
        cmocka_unit_test(null_is_nothing),
        cmocka_unit_test(the_revision_goes_into_the_objects_own_metadata),
        cmocka_unit_test(texts_of_other_objects_are_refused),
        cmocka_unit_test(bodies_without_an_envelope_are_refused),
        cmocka_unit_test(sizes_are_told_before_the_bytes),
        cmocka_unit_test(running_out_of_memory_is_told),
        cmocka_unit_test(a_capped_arena_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
