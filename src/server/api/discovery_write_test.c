/* discovery_write_test.c - the documents of discovery, byte for byte as a real server wrote them:
 * groups, versions, resources, names, short names, kinds, verbs. */
#include "test_support.h"

#include <stdio.h>

#include "discovery_doc.h"
#include "discovery_write.h"
#include "json/json.h"

struct recorded {
    struct vg_buf text;
    struct vg_arena arena;
    struct vg_json *root;
};

static void recorded_open(struct recorded *r, const char *file)
{
    vg_buf_init(&r->text, 0);
    vg_arena_init(&r->arena, 0, 0);
    vg_test_vector(file, &r->text);
    while (r->text.n && r->text.p[r->text.n - 1] == '\n')
        r->text.n--;
    assert_int_equal(vg_json_parse(&r->arena, vg_buf_slice(&r->text), NULL, &r->root, NULL), 0);
}

static void recorded_done(struct recorded *r)
{
    vg_buf_done(&r->text);
    vg_arena_done(&r->arena);
}

/* All of it, byte for byte. */
static void assert_recorded(const struct recorded *r, const struct vg_buf *got)
{
    vg_assert_slice_equal(vg_buf_slice(got), vg_buf_slice(&r->text));
}

static void check_resources(const struct vg_group *group, const char *version)
{
    struct recorded r;
    VG_AUTO(buf) got;
    vg_buf_init(&got, 0);
    char file[256];
    snprintf(file, sizeof file, "discovery/%s%s_%s.json", *group->name ? "apis_" : "api",
             group->name, version);
    recorded_open(&r, file);
    assert_int_equal(vg_discovery_write_resources(&got, group, version), 0);
    assert_recorded(&r, &got);
    recorded_done(&r);
}

static void resources_are_as_recorded(void **state)
{
    (void)state;
    size_t n;
    const struct vg_group *groups = vg_groups(&n);
    check_resources(vg_group_find(VG_SLICE_LIT("")), "v1");
    for (size_t i = 0; i < n; i++)
        for (const char *const *v = groups[i].versions; *v; v++)
            check_resources(&groups[i], *v);
}

static void groups_are_as_recorded(void **state)
{
    (void)state;
    struct recorded all, apps;
    VG_AUTO(buf) got;
    vg_buf_init(&got, 0);
    recorded_open(&all, "discovery/apis.json");
    assert_int_equal(vg_discovery_write_groups(&got), 0);
    assert_recorded(&all, &got);
    recorded_done(&all);
    vg_buf_clear(&got);
    recorded_open(&apps, "discovery/apis_apps.json");
    assert_int_equal(vg_discovery_write_group(&got, vg_group_find(VG_SLICE_LIT("apps"))), 0);
    assert_recorded(&apps, &got);
    recorded_done(&apps);
}

static void core_versions_are_as_recorded(void **state)
{
    (void)state;
    struct recorded r;
    VG_AUTO(buf) got;
    vg_buf_init(&got, 0);
    recorded_open(&r, "discovery/api.json");
    const struct vg_json *list = vg_json_get_str(r.root, "serverAddressByClientCIDRs");
    struct vg_slice address = vg_json_text(vg_json_get_str(vg_json_at(list, 0), "serverAddress"));
    assert_int_equal(vg_discovery_write_versions(&got, address), 0);
    vg_assert_slice_equal(vg_buf_slice(&got), vg_buf_slice(&r.text));
    recorded_done(&r);
}

static void aggregated_documents_are_as_recorded(void **state)
{
    (void)state;
    struct recorded core, all;
    VG_AUTO(buf) got;
    vg_buf_init(&got, 0);
    recorded_open(&core, "discovery/aggregated_v2_api.json");
    assert_int_equal(vg_discovery_write_aggregated(&got, true), 0);
    assert_recorded(&core, &got);
    recorded_done(&core);
    vg_buf_clear(&got);
    recorded_open(&all, "discovery/aggregated_v2_apis.json");
    assert_int_equal(vg_discovery_write_aggregated(&got, false), 0);
    assert_recorded(&all, &got);
    recorded_done(&all);
}

/* Without the recordings this is what is left. */
static void a_small_version_in_full(void **state)
{
    (void)state;
    VG_AUTO(buf) got;
    vg_buf_init(&got, 0);
    const struct vg_group *group = vg_group_find(VG_SLICE_LIT("coordination.k8s.io"));
    assert_int_equal(vg_discovery_write_resources(&got, group, "v1"), 0);
    vg_assert_slice_equal(
        vg_buf_slice(&got),
        VG_SLICE_LIT("{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":"
                     "\"coordination.k8s.io/v1\",\"resources\":[{\"name\":\"leases\","
                     "\"singularName\":\"lease\",\"namespaced\":true,\"kind\":\"Lease\","
                     "\"verbs\":[\"create\",\"delete\",\"deletecollection\",\"get\",\"list\","
                     "\"patch\",\"update\",\"watch\"],\"storageVersionHash\":"
                     "\"gqkMMb/YqFM=\"}]}"));
}

/* ---- documents ---- */

static void a_document_has_a_quoted_sha512(void **state)
{
    (void)state;
    char hash[VG_DOC_HASH_CHARS + 1];
    assert_int_equal(vg_doc_hash(VG_SLICE_LIT("abc"), hash), 0);
    assert_string_equal(hash, "DDAF35A193617ABACC417349AE20413112E6FA4E89A97EA20A9EEEE64B55D39A"
                              "2192992A274FC1A836BA3C23A3FEEBBD454D4423643CE80E2A9AC94FA54CA49F");
    struct vg_doc doc = {0};
    assert_int_equal(vg_buf_printf(&doc.compact, "{\"a\":[1]}"), 0);
    assert_int_equal(vg_doc_finish(&doc), 0);
    vg_assert_slice_equal(vg_buf_slice(&doc.compact), VG_SLICE_LIT("{\"a\":[1]}\n"));
    vg_assert_slice_equal(vg_buf_slice(&doc.pretty), VG_SLICE_LIT("{\n  \"a\": [\n    1\n  ]\n}"));
    assert_int_equal(vg_doc_hash(vg_buf_slice(&doc.compact), hash), 0);
    assert_int_equal(strlen(doc.etag), VG_DOC_HASH_CHARS + 2);
    assert_memory_equal(doc.etag + 1, hash, VG_DOC_HASH_CHARS);
    vg_doc_done(&doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resources_are_as_recorded),
        cmocka_unit_test(groups_are_as_recorded),
        cmocka_unit_test(core_versions_are_as_recorded),
        cmocka_unit_test(aggregated_documents_are_as_recorded),
        cmocka_unit_test(a_small_version_in_full),
        cmocka_unit_test(a_document_has_a_quoted_sha512),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
