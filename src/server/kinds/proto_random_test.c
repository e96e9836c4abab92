/* Random objects of every kind, made by the tables in canonical form: what was encoded decodes to
 * the same text. VG_SEED repeats a run, VG_LONG makes it long. */
#include "test_support.h"

#include "base/rng.h"
#include "kinds.h"
#include "server/schema/proto.h"
#include "types.h"
#include "json/write.h"

/* Deeper down only what must be there is made. */
#define DEPTH_MAX 7u

struct maker {
    struct vg_rng rng;
    struct vg_buf out;
    unsigned depth;
};

static void put(struct maker *m, const char *text)
{
    assert_int_equal(vg_buf_append(&m->out, text, strlen(text)), 0);
}

#define PICK(m, list) ((list)[vg_rng_below(&(m)->rng, VG_ARRAY_LEN(list))])

static void put_object(struct maker *m, const struct vg_schema_type *t);

/* ---- values ---- */

static void put_string(struct maker *m)
{
    static const char *const texts[] = {"\"a\"",
                                        "\"longer-than-sixteen-bytes\"",
                                        "\"\\\"\\\\\\n\"",
                                        "\"\xc3\xa9\xe4\xb8\x96\"",
                                        "\"\\u0001 \\u2028\"",
                                        "\"fifteen bytes..\"",
                                        "\"sixteen bytes...\""};
    if (vg_rng_below(&m->rng, 40) == 0) {
        put(m, "\"");
        for (uint64_t n = 100 + vg_rng_below(&m->rng, 20000); n > 0; n--)
            put(m, "x");
        put(m, "\"");
        return;
    }
    put(m, PICK(m, texts));
}

static void put_json(struct maker *m)
{
    static const char *const texts[] = {"{}", "{\"k\":[1,2.50,\"x\\n\",null,true]}",
                                        "{\"z\":{\"a\":{}}}"};
    put(m, PICK(m, texts));
}

static void put_int(struct maker *m, bool is_32)
{
    int64_t v = (int64_t)vg_rng_u64(&m->rng) >> vg_rng_below(&m->rng, 64);
    v = is_32 ? (int32_t)v : v;
    assert_int_equal(vg_buf_printf(&m->out, "%lld", (long long)(v ? v : 1)), 0);
}

static void put_schema_or(struct maker *m, const struct vg_schema_field *f)
{
    if (vg_rng_below(&m->rng, 2)) {
        put_object(m, f->type);
    } else if (f->value == VG_SCHEMA_OR_BOOL) {
        put(m, vg_rng_below(&m->rng, 2) ? "true" : "false");
    } else if (f->value == VG_SCHEMA_OR_STRINGS) {
        put(m, "[\"a\",\"b\"]");
    } else {
        put(m, "[");
        put_object(m, f->type);
        put(m, "]");
    }
}

/* One that is not empty. */
static void put_value(struct maker *m, const struct vg_schema_field *f)
{
    static const char *const quantities[] = {"\"0\"",   "\"1\"",   "\"100m\"",     "\"1536Mi\"",
                                             "\"5e3\"", "\"-3k\"", "\"123456789\""};
    static const char *const doubles[] = {"1.5", "-0.25", "100", "1e+21", "1e-7"};
    static const char *const times[] = {"\"2024-02-29T23:59:59Z\"", "\"1969-12-31T23:59:59Z\"",
                                        "\"9999-12-31T23:59:59Z\""};
    static const char *const micros[] = {"\"2024-02-29T23:59:59.000001Z\"",
                                         "\"1969-12-31T23:59:59.999999Z\""};
    static const char *const bytes[] = {"\"AA==\"", "\"AAEC\"", "\"/+8=\""};
    switch ((enum vg_schema_value)f->value) {
    case VG_SCHEMA_STRING:
        put_string(m);
        return;
    case VG_SCHEMA_BOOL:
        put(m, "true");
        return;
    case VG_SCHEMA_INT32:
    case VG_SCHEMA_INT64:
        put_int(m, f->value == VG_SCHEMA_INT32);
        return;
    case VG_SCHEMA_DOUBLE:
        put(m, PICK(m, doubles));
        return;
    case VG_SCHEMA_BYTES:
        put(m, PICK(m, bytes));
        return;
    case VG_SCHEMA_QUANTITY:
        put(m, PICK(m, quantities));
        return;
    case VG_SCHEMA_INT_OR_STRING:
        put(m, vg_rng_below(&m->rng, 2) ? "8080" : "\"http\"");
        return;
    case VG_SCHEMA_TIME:
        put(m, PICK(m, times));
        return;
    case VG_SCHEMA_MICRO_TIME:
        put(m, PICK(m, micros));
        return;
    case VG_SCHEMA_RAW:
    case VG_SCHEMA_JSON:
    case VG_SCHEMA_FIELDS:
        put_json(m);
        return;
    case VG_SCHEMA_STRINGS:
        put(m, "[\"s\",\"\"]");
        return;
    case VG_SCHEMA_TYPE:
        put_object(m, f->type);
        return;
    default:
        put_schema_or(m, f);
    }
}

/* ---- fields ---- */

static bool is_nilable(const struct vg_schema_field *f)
{
    return f->shape != VG_SCHEMA_ONE || vg_schema_is(f, VG_SCHEMA_POINTER) ||
           f->value == VG_SCHEMA_BYTES;
}

static bool is_scalar(const struct vg_schema_field *f)
{
    return f->value <= VG_SCHEMA_BYTES;
}

/* What it is when nothing is there. */
static const char *zero_of(const struct vg_schema_field *f)
{
    if (is_nilable(f))
        return "null";
    switch ((enum vg_schema_value)f->value) {
    case VG_SCHEMA_STRING:
        return "\"\"";
    case VG_SCHEMA_BOOL:
        return "false";
    case VG_SCHEMA_INT32:
    case VG_SCHEMA_INT64:
    case VG_SCHEMA_DOUBLE:
    case VG_SCHEMA_INT_OR_STRING:
        return "0";
    case VG_SCHEMA_QUANTITY:
        return "\"0\"";
    default:
        return "null";
    }
}

static void put_list(struct maker *m, const struct vg_schema_field *f)
{
    put(m, "[");
    for (uint64_t i = 0, n = 1 + vg_rng_below(&m->rng, 3); i < n; i++) {
        put(m, i ? "," : "");
        put_value(m, f);
    }
    put(m, "]");
}

static void put_map(struct maker *m, const struct vg_schema_field *f)
{
    static const char *const keys[] = {"\"\":", "\"a\":", "\"b/c.d\":", "\"\xc3\xa9\":"};
    put(m, "{");
    bool is_first = true;
    for (size_t i = 0; i < VG_ARRAY_LEN(keys); i++) {
        if (!is_first && vg_rng_below(&m->rng, 2))
            continue;
        put(m, is_first ? "" : ",");
        put(m, keys[i]);
        put_value(m, f);
        is_first = false;
    }
    put(m, "}");
}

static void put_member(struct maker *m, const struct vg_schema_field *f, bool *is_first)
{
    bool is_empty = m->depth >= DEPTH_MAX || vg_rng_below(&m->rng, 3) != 0;
    bool is_struct = f->value == VG_SCHEMA_TYPE && !is_nilable(f);
    bool is_printed = !is_empty || !vg_schema_is(f, VG_SCHEMA_OMIT_EMPTY) ||
                      (!is_nilable(f) && !is_scalar(f) && !vg_schema_is(f, VG_SCHEMA_OMIT_ZERO));
    if (f->number == 0 || !is_printed)
        return;
    assert_int_equal(vg_buf_printf(&m->out, "%s\"%s\":", *is_first ? "" : ",", f->name), 0);
    *is_first = false;
    if (is_struct)
        put_object(m, f->type);
    else if (is_empty)
        put(m, zero_of(f));
    else if (f->shape == VG_SCHEMA_ONE)
        put_value(m, f);
    else if (f->shape == VG_SCHEMA_LIST)
        put_list(m, f);
    else
        put_map(m, f);
}

static void put_object(struct maker *m, const struct vg_schema_type *t)
{
    bool is_first = true;
    put(m, "{");
    m->depth++;
    for (unsigned i = 0; i < t->n; i++)
        put_member(m, &t->fields[i], &is_first);
    m->depth--;
    put(m, "}");
}

/* ---- the test ---- */

static void assert_comes_back(const struct vg_kind *kind, const struct vg_schema_type *t,
                              struct vg_slice text)
{
    VG_AUTO(proto_encoder) e = {0};
    VG_AUTO(arena) arena;
    VG_AUTO(buf) bytes = {0};
    VG_AUTO(buf) got = {0};
    struct vg_proto_envelope x;
    struct vg_json v;
    struct vg_status status = {0};
    vg_arena_init(&arena, 0, 0);
    int r = vg_proto_encode_object(&e, t, vg_slice_str(kind->version), vg_slice_str(kind->kind),
                                   text, VG_SLICE_LIT(""), &bytes);
    if (r < 0)
        fail_msg("%s: %s: %.*s", kind->kind, vg_err_text(r), VG_SLICE_ARG(text));
    assert_int_equal(vg_proto_open(vg_buf_slice(&bytes), &x, NULL), 0);
    uint64_t size;
    assert_int_equal(vg_proto_size(&e, t, text, VG_SLICE_LIT(""), &size), 0);
    assert_int_equal(size, x.raw.n);
    x.kind = x.api_version = VG_SLICE_LIT("");
    if (vg_proto_decode(&arena, t, &x, &v, &status) < 0)
        fail_msg("%s: %s", kind->kind, status.message);
    assert_int_equal(vg_json_write(&got, &v, 0), 0);
    vg_assert_slice_equal(vg_buf_slice(&got), text);
}

static void every_kind_comes_back(void **state)
{
    (void)state;
    struct maker m = {0};
    vg_rng_seed(&m.rng, vg_test_seed());
    size_t n;
    const struct vg_kind *kinds = vg_kinds(&n);
    unsigned rounds = vg_test_is_long() ? 500 : 5;
    for (unsigned k = 0; k < rounds; k++)
        for (size_t i = 0; i < n; i++) {
            const struct vg_schema_type *t = vg_kind_type(&kinds[i]);
            if (!t)
                continue;
            vg_buf_clear(&m.out);
            put_object(&m, t);
            assert_comes_back(&kinds[i], t, vg_buf_slice(&m.out));
        }
    vg_buf_done(&m.out);
}

static void schemas_of_custom_resources_come_back(void **state)
{
    (void)state;
    struct maker m = {0};
    vg_rng_seed(&m.rng, vg_test_seed());
    const struct vg_kind any = {.kind = "JSONSchemaProps", .version = "v1"};
    const struct vg_schema_type *t = vg_schema_find(VG_SLICE_LIT("apiextensions.k8s.io"),
                                                    VG_SLICE_LIT("v1"), vg_slice_str(any.kind));
    assert_non_null(t);
    for (unsigned k = 0; k < 20; k++) {
        vg_buf_clear(&m.out);
        m.depth = 4; /* they branch */
        put_object(&m, t);
        assert_comes_back(&any, t, vg_buf_slice(&m.out));
    }
    vg_buf_done(&m.out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_comes_back),
        cmocka_unit_test(schemas_of_custom_resources_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
