/* openapi_test.c - do the documents declare every kind, and say in protobuf what they say in JSON?
 */
#include "test_support.h"

#include <errno.h>
#include <stdio.h>

#include "openapi.h"
#include "openapi_proto.h"
#include "openapi_write.h"
#include "server/schema/schema.h"
#include "json/json.h"

struct fixture {
    struct vg_openapi *openapi;
    struct vg_arena arena;
};

static int setup(void **state)
{
    static struct fixture f;
    vg_arena_init(&f.arena, 0, 0);
    *state = &f;
    return vg_openapi_new("v1.36.4+vigil", &f.openapi);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    vg_openapi_free(f->openapi);
    vg_arena_done(&f->arena);
    return 0;
}

/* The bytes of a document, which stay as long as nobody sweeps. */
static struct vg_slice bytes_of(struct vg_openapi *o, size_t doc, enum vg_openapi_form form)
{
    bool is_gzip;
    const struct vg_openapi_body *b = vg_openapi_take(o, doc, form, false, 0, &is_gzip);
    assert_non_null(b);
    struct vg_slice bytes = vg_openapi_bytes(b);
    vg_openapi_unref(b);
    return bytes;
}

static struct vg_json *parse(struct fixture *f, size_t doc)
{
    struct vg_json *root;
    struct vg_json_opts opts = {.on_dup = VG_JSON_DUP_FAIL};
    assert_int_equal(
        vg_json_parse(&f->arena, bytes_of(f->openapi, doc, VG_OPENAPI_JSON), &opts, &root, NULL),
        0);
    return root;
}

/* ---- JSON ---- */

static void assert_refs_resolve(const struct vg_json *root, const struct vg_json *definitions)
{
    struct vg_json_walk w;
    vg_json_walk_init(&w, root);
    size_t n = 0;
    while (vg_json_walk_next(&w) > 0) {
        if (!w.member || !vg_slice_eq(vg_json_key(w.member), VG_SLICE_LIT("$ref")) ||
            !vg_json_is(w.node, VG_JSON_STRING)) /* a schema of schemas has a property $ref */
            continue;
        struct vg_slice ref = vg_json_text(w.node);
        const char *slash = memrchr(ref.p, '/', ref.n);
        assert_non_null(
            vg_json_get(definitions, vg_slice(slash + 1, (size_t)(ref.p + ref.n - slash) - 1)));
        n++;
    }
    assert_true(n > 0);
    vg_json_walk_done(&w);
}

static void assert_gvk(const struct vg_json *gvk, const struct vg_kind *kind)
{
    vg_assert_slice_equal(vg_json_text(vg_json_get_str(gvk, "group")), vg_slice_str(kind->group));
    vg_assert_slice_equal(vg_json_text(vg_json_get_str(gvk, "kind")), vg_slice_str(kind->kind));
    vg_assert_slice_equal(vg_json_text(vg_json_get_str(gvk, "version")),
                          vg_slice_str(kind->version));
}

static bool has_parameter(const struct vg_json *operation, const char *name)
{
    const struct vg_json *list = vg_json_get_str(operation, "parameters");
    for (size_t i = 0; vg_json_at(list, i); i++)
        if (vg_slice_eq(vg_json_text(vg_json_get_str(vg_json_at(list, i), "name")),
                        vg_slice_str(name)))
            return true;
    return false;
}

static void assert_declared(const struct vg_json *definitions, const struct vg_json *paths,
                            const struct vg_kind *kind)
{
    char text[VG_OPENAPI_NAME_MAX];
    vg_openapi_definition(text, kind->group, kind->version, kind->kind);
    const struct vg_json *definition = vg_json_get_str(definitions, text);
    const char *key = "x-kubernetes-group-version-kind";
    assert_gvk(vg_json_at(vg_json_get_str(definition, key), 0), kind);
    const struct vg_json *properties = vg_json_get_str(definition, "properties");
    assert_int_equal(properties->n, kind->type->n);
    if (!(kind->verbs & VG_VERB_PATCH))
        return;
    snprintf(text, sizeof text, "/%s/%s/%s%s/{name}", *kind->group ? "apis" : "api",
             kind->api_version,
             vg_kind_is(kind, VG_KIND_NAMESPACED) ? "namespaces/{namespace}/" : "", kind->resource);
    const struct vg_json *patch = vg_json_get_str(vg_json_get_str(paths, text), "patch");
    assert_gvk(vg_json_get_str(patch, key), kind);
    assert_true(has_parameter(patch, "dryRun") && has_parameter(patch, "fieldValidation"));
}

static void version_2_declares_every_kind(void **state)
{
    struct fixture *f = *state;
    const struct vg_json *root = parse(f, VG_OPENAPI_V2);
    const struct vg_json *definitions = vg_json_get_str(root, "definitions");
    size_t n;
    const struct vg_kind *v = vg_kinds(&n);
    for (size_t i = 0; i < n; i++)
        assert_declared(definitions, vg_json_get_str(root, "paths"), &v[i]);
    assert_refs_resolve(root, definitions);
}

static void version_3_declares_the_kinds_of_each_group(void **state)
{
    struct fixture *f = *state;
    size_t n;
    const struct vg_kind *v = vg_kinds(&n);
    for (size_t i = 0; i < n; i++) {
        char path[VG_OPENAPI_NAME_MAX];
        size_t doc;
        snprintf(path, sizeof path, "%s/%s", *v[i].group ? "apis" : "api", v[i].api_version);
        assert_int_equal(vg_openapi_find(f->openapi, vg_slice_str(path), &doc), 0);
        const struct vg_json *root = parse(f, doc);
        const struct vg_json *definitions =
            vg_json_get_str(vg_json_get_str(root, "components"), "schemas");
        assert_declared(definitions, vg_json_get_str(root, "paths"), &v[i]);
        assert_refs_resolve(root, definitions);
    }
}

static void the_index_names_each_document_by_its_hash(void **state)
{
    struct fixture *f = *state;
    VG_AUTO(buf) text = {0};
    struct vg_json *root;
    assert_int_equal(vg_openapi_index(f->openapi, &text), 0);
    assert_int_equal(vg_json_parse(&f->arena, vg_buf_slice(&text), NULL, &root, NULL), 0);
    const struct vg_json *paths = vg_json_get_str(root, "paths");
    assert_true(paths->n >= 4);
    VG_JSON_FOREACH_MEMBER (m, paths) {
        size_t doc;
        char url[1024];
        assert_int_equal(vg_openapi_find(f->openapi, vg_json_key(m), &doc), 0);
        snprintf(url, sizeof url, "/openapi/v3/%.*s?hash=%.128s", VG_SLICE_ARG(vg_json_key(m)),
                 vg_openapi_etag(f->openapi, doc) + 1);
        vg_assert_slice_equal(vg_json_text(vg_json_get_str(&m->value, "serverRelativeURL")),
                              vg_slice_str(url));
    }
}

static void other_paths_have_no_document(void **state)
{
    struct fixture *f = *state;
    static const char *const paths[] = {"", "api", "api/v2", "apis/apps", "apis/v1", "apis//v1"};
    size_t doc;
    for (size_t i = 0; i < VG_ARRAY_LEN(paths); i++)
        assert_int_equal(vg_openapi_find(f->openapi, vg_slice_str(paths[i]), &doc),
                         VIGIL_E_NOT_FOUND);
}

/* ---- protobuf ---- */

/* One field off the front; its number, and its bytes when it has some. */
static unsigned next_field(struct vg_slice *in, struct vg_slice *ret_bytes)
{
    uint64_t v[2] = {0, 0};
    for (size_t i = 0; i < 2; i++) {
        unsigned shift = 0;
        unsigned char c;
        do {
            assert_true(in->n > 0 && shift < 64);
            c = (unsigned char)*in->p;
            *in = vg_slice(in->p + 1, in->n - 1);
            v[i] |= (uint64_t)(c & 0x7f) << shift;
            shift += 7;
        } while (c & 0x80);
    }
    *ret_bytes = vg_slice(NULL, 0);
    if ((v[0] & 7) == 2) {
        assert_true(v[1] <= in->n);
        *ret_bytes = vg_slice(in->p, v[1]);
        *in = vg_slice(in->p + v[1], in->n - v[1]);
    } else {
        assert_int_equal(v[0] & 7, 0);
    }
    return (unsigned)(v[0] >> 3);
}

/* The n-th field of that number; empty: there are fewer. */
static struct vg_slice find_field(struct vg_slice in, unsigned number, size_t n)
{
    struct vg_slice bytes;
    while (in.n)
        if (next_field(&in, &bytes) == number && n-- == 0)
            return bytes;
    return vg_slice(NULL, 0);
}

/* Both have the same names in the same order. */
static void assert_same_names(struct vg_slice pairs, unsigned number, const struct vg_json *object)
{
    size_t i = 0;
    VG_JSON_FOREACH_MEMBER (m, object)
        vg_assert_slice_equal(find_field(find_field(pairs, number, i++), 1, 0), vg_json_key(m));
    assert_int_equal(find_field(pairs, number, i).n, 0);
}

static void protobuf_has_the_same_paths_and_definitions(void **state)
{
    struct fixture *f = *state;
    size_t v3;
    assert_int_equal(vg_openapi_find(f->openapi, VG_SLICE_LIT("api/v1"), &v3), 0);
    const struct vg_json *root = parse(f, VG_OPENAPI_V2);
    struct vg_slice proto = bytes_of(f->openapi, VG_OPENAPI_V2, VG_OPENAPI_PROTO);
    assert_same_names(find_field(proto, 8, 0), 2, vg_json_get_str(root, "paths"));
    assert_same_names(find_field(proto, 9, 0), 1, vg_json_get_str(root, "definitions"));
    root = parse(f, v3);
    proto = bytes_of(f->openapi, v3, VG_OPENAPI_PROTO);
    assert_same_names(find_field(proto, 4, 0), 1, vg_json_get_str(root, "paths"));
    assert_same_names(find_field(find_field(proto, 5, 0), 1, 0), 1,
                      vg_json_get_str(vg_json_get_str(root, "components"), "schemas"));
}

static void assert_proto(struct fixture *f, const char *json, struct vg_slice want)
{
    VG_AUTO(buf) out = {0};
    struct vg_json *root;
    assert_int_equal(vg_json_parse(&f->arena, vg_slice_str(json), NULL, &root, NULL), 0);
    assert_int_equal(vg_openapi_proto_v2(&out, root), 0);
    vg_assert_slice_equal(vg_buf_slice(&out), want);
}

/* Worked out by hand from OpenAPIv2.proto. */
static void protobuf_is_laid_out_as_the_definition_says(void **state)
{
    struct fixture *f = *state;
    assert_proto(f, "{\"swagger\":\"2.0\",\"info\":{\"title\":\"K\",\"version\":\"1\"}}",
                 VG_SLICE_LIT("\x0a\x03"
                              "2.0"
                              "\x12\x06\x0a\x01K\x12\x01"
                              "1"));
    assert_proto(f, "{\"definitions\":{\"D\":{\"type\":\"object\",\"x-a\":[1]}}}",
                 VG_SLICE_LIT("\x4a\x21\x0a\x1f\x0a\x01"
                              "D\x12\x1a"
                              "\xb2\x01\x08\x0a\x06object"
                              "\xfa\x01\x0c\x0a\x03x-a\x12\x05\x12\x03[1]"));
    assert_proto(f,
                 "{\"paths\":{\"/p\":{\"parameters\":[{\"name\":\"n\",\"in\":\"path\","
                 "\"required\":true}]}}}",
                 VG_SLICE_LIT("\x42\x1b\x12\x19\x0a\x02/p\x12\x13"
                              "\x4a\x11\x0a\x0f\x12\x0d\x22\x0b\x22\x01n\x12\x04path\x08\x01"));
}

static void what_no_table_knows_is_refused(void **state)
{
    struct fixture *f = *state;
    VG_AUTO(buf) out = {0};
    struct vg_json *root;
    assert_int_equal(
        vg_json_parse(&f->arena, VG_SLICE_LIT("{\"info\":{\"nope\":1}}"), NULL, &root, NULL), 0);
    assert_int_equal(vg_openapi_proto_v2(&out, root), VIGIL_E_INVALID);
    assert_int_equal(vg_openapi_proto_v3(&out, root), VIGIL_E_INVALID);
}

static void a_document_that_could_not_be_made_is_made_later(void **state)
{
    (void)state;
    struct vg_openapi *o;
    assert_int_equal(vg_openapi_new("v1", &o), 0);
    VG_ALLOC_FAIL_LOOP (n) {
        size_t doc;
        bool is_gzip;
        assert_int_equal(vg_openapi_find(o, VG_SLICE_LIT("apis/coordination.k8s.io/v1"), &doc), 0);
        const struct vg_openapi_body *b =
            vg_openapi_take(o, doc, VG_OPENAPI_PROTO, false, 0, &is_gzip);
        assert_int_equal(b == NULL, vg_test_alloc_failed());
        vg_openapi_unref(b);
    }
    vg_openapi_free(o);
}

/* kubectl explain has something to say of everything. */
static void every_definition_and_field_is_described(void **state)
{
    struct fixture *f = *state;
    const struct vg_json *root = parse(f, VG_OPENAPI_V2);
    const struct vg_json *definitions = vg_json_get_str(root, "definitions");
    size_t n = 0;
    VG_JSON_FOREACH_MEMBER (d, definitions) {
        const struct vg_json *properties = vg_json_get_str(&d->value, "properties");
        if (!vg_json_get_str(&d->value, "description"))
            fail_msg("%.*s is not described", VG_SLICE_ARG(vg_json_key(d)));
        if (!properties)
            continue;
        VG_JSON_FOREACH_MEMBER (p, properties) {
            if (!vg_json_get_str(&p->value, "description"))
                fail_msg("%.*s of %.*s is not described", VG_SLICE_ARG(vg_json_key(p)),
                         VG_SLICE_ARG(vg_json_key(d)));
            n++;
        }
    }
    assert_true(n > 2000);
}

static void what_nobody_asks_for_is_dropped(void **state)
{
    struct fixture *f = *state;
    bool is_gzip;
    char etag[200];
    assert_int_equal(vg_openapi_kept_bytes(f->openapi), 0);
    snprintf(etag, sizeof etag, "%s", vg_openapi_etag(f->openapi, VG_OPENAPI_V2));
    assert_int_equal(vg_openapi_kept_bytes(f->openapi), 0);
    const struct vg_openapi_body *b =
        vg_openapi_take(f->openapi, VG_OPENAPI_V2, VG_OPENAPI_JSON, true, 1000, &is_gzip);
    assert_true(b && is_gzip && vg_openapi_kept_bytes(f->openapi) > 0);
    assert_true(vg_openapi_sweep(f->openapi, VG_OPENAPI_IDLE_MS + 999));
    assert_false(vg_openapi_sweep(f->openapi, VG_OPENAPI_IDLE_MS + 1000));
    assert_int_equal(vg_openapi_kept_bytes(f->openapi), 0);
    /* What is on its way stays, and the next one is the same. */
    const struct vg_openapi_body *next =
        vg_openapi_take(f->openapi, VG_OPENAPI_V2, VG_OPENAPI_JSON, true, 2000, &is_gzip);
    assert_non_null(next);
    assert_ptr_not_equal(next, b);
    vg_assert_slice_equal(vg_openapi_bytes(b), vg_openapi_bytes(next));
    assert_string_equal(etag, vg_openapi_etag(f->openapi, VG_OPENAPI_V2));
    vg_openapi_unref(b);
    vg_openapi_unref(next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(version_2_declares_every_kind, setup, teardown),
        cmocka_unit_test_setup_teardown(every_definition_and_field_is_described, setup, teardown),
        cmocka_unit_test_setup_teardown(version_3_declares_the_kinds_of_each_group, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_index_names_each_document_by_its_hash, setup, teardown),
        cmocka_unit_test_setup_teardown(other_paths_have_no_document, setup, teardown),
        cmocka_unit_test_setup_teardown(protobuf_has_the_same_paths_and_definitions, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(protobuf_is_laid_out_as_the_definition_says, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_no_table_knows_is_refused, setup, teardown),
        cmocka_unit_test(a_document_that_could_not_be_made_is_made_later),
        cmocka_unit_test_setup_teardown(what_nobody_asks_for_is_dropped, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
