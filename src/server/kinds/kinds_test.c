/* kinds_test.c - is the table what kinds.h promises, and what a kube-apiserver says of itself? */
#include "test_support.h"

#include <stdio.h>

#include "kinds.h"
#include "object/predicate.h"
#include "server/schema/decode.h"
#include "json/json.h"
#include "json/write.h"

static const struct vg_kind *must_find(const char *group, const char *resource)
{
    const struct vg_kind *kind =
        vg_kind_find(vg_slice_str(group), VG_SLICE_LIT("v1"), vg_slice_str(resource));
    assert_non_null(kind);
    return kind;
}

/* ---- the table by itself ---- */

static int compare_rows(const struct vg_kind *a, const struct vg_kind *b)
{
    int c = strcmp(a->group, b->group);
    c = c ? c : strcmp(a->version, b->version);
    return c ? c : strcmp(a->resource, b->resource);
}

static void rows_are_sorted_and_found(void **state)
{
    (void)state;
    size_t n;
    const struct vg_kind *v = vg_kinds(&n);
    for (size_t i = 0; i < n; i++) {
        struct vg_slice group = vg_slice_str(v[i].group), version = vg_slice_str(v[i].version);
        if (i)
            assert_true(compare_rows(&v[i - 1], &v[i]) < 0);
        assert_ptr_equal(vg_kind_find(group, version, vg_slice_str(v[i].resource)), &v[i]);
        assert_ptr_equal(vg_kind_find_kind(group, version, vg_slice_str(v[i].kind)), &v[i]);
        assert_ptr_equal(&v[vg_kind_index(&v[i])], vg_kind_stored(&v[i]));
        assert_non_null(vg_group_find(group));
    }
}

static void what_is_not_served_is_not_found(void **state)
{
    (void)state;
    struct vg_slice v1 = VG_SLICE_LIT("v1"), core = VG_SLICE_LIT(""), apps = VG_SLICE_LIT("apps");
    size_t n;
    assert_null(vg_kind_find(core, v1, VG_SLICE_LIT("pod")));
    assert_null(vg_kind_find(core, v1, VG_SLICE_LIT("podss")));
    assert_null(vg_kind_find(core, v1, VG_SLICE_LIT("")));
    assert_null(vg_kind_find(core, v1, VG_SLICE_LIT("zzz")));
    assert_null(vg_kind_find(apps, v1, VG_SLICE_LIT("pods")));
    assert_null(vg_kind_find(apps, VG_SLICE_LIT("v2"), VG_SLICE_LIT("deployments")));
    assert_null(vg_kind_find(VG_SLICE_LIT("zzz"), v1, VG_SLICE_LIT("zzz")));
    assert_null(vg_kind_find_kind(core, v1, VG_SLICE_LIT("Deployment")));
    assert_null(vg_kinds_of(apps, VG_SLICE_LIT("v0"), &n));
    assert_null(vg_group_find(VG_SLICE_LIT("app")));
    assert_null(vg_kind_sub(must_find("", "pods"), VG_SLICE_LIT("scale")));
    assert_non_null(vg_kind_sub(must_find("", "pods"), VG_SLICE_LIT("binding")));
}

static void each_group_has_rows_in_each_of_its_versions(void **state)
{
    (void)state;
    size_t n_groups, n_rows, n, sum = 0;
    const struct vg_group *groups = vg_groups(&n_groups);
    (void)vg_kinds(&n_rows);
    for (size_t i = 0; i < n_groups + 1; i++) {
        const struct vg_group *g = i < n_groups ? &groups[i] : vg_group_find(VG_SLICE_LIT(""));
        for (const char *const *v = g->versions; *v; v++) {
            assert_non_null(vg_kinds_of(vg_slice_str(g->name), vg_slice_str(*v), &n));
            sum += n;
        }
    }
    assert_int_equal(sum, n_rows);
}

static void prefixes_do_not_overlap(void **state)
{
    (void)state;
    size_t n;
    const struct vg_kind *v = vg_kinds(&n);
    for (size_t i = 0; i < n; i++) {
        struct vg_slice a = vg_slice_str(v[i].prefix);
        assert_true(vg_slice_has_prefix(a, VG_SLICE_LIT("/registry/")));
        assert_true(a.p[a.n - 1] == '/' && a.n > strlen("/registry/"));
        for (size_t k = 0; k < n; k++)
            assert_true(i == k || v[i].stored || v[k].stored ||
                        !vg_slice_has_prefix(vg_slice_str(v[k].prefix), a));
    }
}

static void names_are_made_of_one_another(void **state)
{
    (void)state;
    size_t n;
    const struct vg_kind *v = vg_kinds(&n);
    for (size_t i = 0; i < n; i++) {
        char text[256];
        snprintf(text, sizeof text, "%sList", v[i].kind);
        assert_string_equal(v[i].list_kind, text);
        const char *slash = *v[i].group ? "/" : "", *dot = *v[i].group ? "." : "";
        snprintf(text, sizeof text, "%s%s%s", v[i].group, slash, v[i].version);
        assert_string_equal(vg_kind_api_version(&v[i]), text);
        snprintf(text, sizeof text, "%s%s%s", v[i].resource, dot, v[i].group);
        assert_string_equal(vg_kind_qualified(&v[i]), text);
    }
}

static void check_sub(const struct vg_kind *kind, const struct vg_kind_sub *sub)
{
    bool is_own = sub->type == VG_SUB_STATUS || sub->type == VG_SUB_FINALIZE;
    assert_true(sub->verbs != 0 && sub->kind && *sub->kind);
    assert_true(!is_own || strcmp(sub->kind, kind->kind) == 0);
    assert_int_equal(!sub->group, !sub->version);
    if (sub->type == VG_SUB_SCALE)
        assert_non_null(kind->scale);
    if (sub->type == VG_SUB_FINALIZE)
        assert_true(vg_kind_is(kind, VG_KIND_FINALIZED_BY_SPEC));
    if (sub > kind->subs)
        assert_true(strcmp(sub[-1].name, sub->name) < 0);
}

static void subresources_and_flags_agree(void **state)
{
    (void)state;
    size_t n;
    const struct vg_kind *v = vg_kinds(&n);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < v[i].n_subs; k++)
            check_sub(&v[i], &v[i].subs[k]);
        const struct vg_kind_sub *status = vg_kind_sub(&v[i], VG_SLICE_LIT("status"));
        const struct vg_kind_sub *scale = vg_kind_sub(&v[i], VG_SLICE_LIT("scale"));
        assert_int_equal(vg_kind_is(&v[i], VG_KIND_HAS_STATUS), status != NULL);
        assert_int_equal(v[i].scale != NULL, scale != NULL);
        assert_true(vg_kind_is(&v[i], VG_KIND_HAS_GENERATION) || !v[i].spec);
        assert_true(!v[i].new_status || status);
        bool is_stored = !vg_kind_is(&v[i], VG_KIND_NOT_STORED);
        assert_int_equal(is_stored, v[i].storage_hash != NULL);
        /* What is not stored is asked, or looked at. */
        unsigned look = VG_VERB_GET | VG_VERB_LIST, least = look | VG_VERB_WATCH;
        assert_true(is_stored ? (v[i].verbs & least) == least
                              : v[i].verbs == VG_VERB_CREATE || v[i].verbs == look);
    }
}

/* An empty object, as its type prints it. */
static void bookmarks_show_the_empty_object(void **state)
{
    (void)state;
    size_t n;
    const struct vg_kind *v = vg_kinds(&n);
    for (size_t i = 0; i < n; i++) {
        VG_AUTO(arena) arena = {0};
        VG_AUTO(buf) out = {0};
        struct vg_json empty = vg_json_object(), arranged;
        assert_true(v[i].about && *v[i].about);
        assert_int_equal(vg_schema_arrange(&arena, v[i].type, &empty, &arranged), 0);
        assert_int_equal(vg_json_write(&out, &arranged, 0), 0);
        /* {"metadata":{},"spec":... */
        struct vg_slice want = vg_buf_slice(&out);
        size_t skip = strlen("{\"metadata\":{}");
        assert_true(want.n > skip);
        want = vg_slice(want.p + skip, want.n - skip - 1);
        if (!strstr(v[i].bookmark_tail,
                    "\"replicas\":0,\"selector\"")) /* `empty` in the notation */
            vg_assert_slice_equal(vg_slice_str(v[i].bookmark_tail), want);
    }
}

static void constant_texts_are_json(void **state)
{
    (void)state;
    size_t n;
    const struct vg_kind *v = vg_kinds(&n);
    VG_AUTO(arena) arena;
    vg_arena_init(&arena, 0, 0);
    for (size_t i = 0; i < n; i++) {
        char text[2048];
        struct vg_json *root;
        snprintf(text, sizeof text, "{\"metadata\":{}%s,\"new\":%s}", v[i].bookmark_tail,
                 v[i].new_status ? v[i].new_status : "{}");
        struct vg_json_opts opts = {.on_dup = VG_JSON_DUP_FAIL};
        assert_int_equal(vg_json_parse(&arena, vg_slice_str(text), &opts, &root, NULL), 0);
        assert_true(vg_json_is(vg_json_get_str(root, "new"), VG_JSON_OBJECT));
    }
}

/* ---- selectable fields ---- */

static void check_label(const struct vg_kind *kind, const struct vg_field_label *label)
{
    struct vg_slice name = label->canonical.n ? label->canonical : label->name;
    if (label->index == VG_OBJ_FIELD_NAME) {
        vg_assert_slice_equal(name, VG_SLICE_LIT("metadata.name"));
    } else if (label->index == VG_OBJ_FIELD_NAMESPACE) {
        vg_assert_slice_equal(name, VG_SLICE_LIT("metadata.namespace"));
    } else {
        assert_true(label->index < kind->fields->n);
        vg_assert_slice_equal(name, vg_slice_str(kind->fields->v[label->index].label));
    }
}

static void labels_name_the_fields_that_they_index(void **state)
{
    (void)state;
    size_t n;
    const struct vg_kind *v = vg_kinds(&n);
    for (size_t i = 0; i < n; i++) {
        assert_true(v[i].fields->n <= VG_OBJ_FIELDS_MAX);
        assert_true(v[i].fields->trigger == VG_OBJ_NO_TRIGGER ||
                    v[i].fields->trigger < v[i].fields->n);
        bool is_found[VG_OBJ_FIELDS_MAX] = {false};
        for (uint32_t k = 0; k < v[i].labels->n; k++) {
            const struct vg_field_label *label = &v[i].labels->v[k];
            check_label(&v[i], label);
            if (label->index < VG_OBJ_FIELDS_MAX)
                is_found[label->index] = true;
        }
        for (uint32_t k = 0; k < v[i].fields->n; k++)
            assert_true(is_found[k] || v[i].stored);
    }
}

/* The answer to a selector: its canonical text, or the refusal. */
static void assert_resolves(const struct vg_kind *kind, const char *selector, const char *answer)
{
    const struct vg_field_selector *parsed = NULL, *resolved = NULL;
    VG_AUTO(buf) text;
    vg_buf_init(&text, 0);
    assert_int_equal(vg_field_selector_parse(vg_slice_str(selector), &parsed, NULL), 0);
    int err = vg_field_selector_resolve(parsed, kind->labels, &resolved, &text);
    if (err == 0)
        assert_int_equal(vg_field_selector_append(&text, resolved), 0);
    vg_assert_slice_equal(vg_buf_slice(&text), vg_slice_str(answer));
    vg_field_selector_free(parsed);
    vg_field_selector_free(resolved);
}

static void fields_are_taken_and_refused_in_the_words_of_each_kind(void **state)
{
    (void)state;
    static const struct {
        const char *group, *resource, *selector, *answer;
    } cases[] = {
        {"", "pods", "spec.host=n", "spec.nodeName=n"},
        {"", "pods", "status.podIPs!=1", "status.podIPs!=1"},
        {"", "pods", "spec.bogus=1", "field label not supported: spec.bogus"},
        {"", "nodes", "metadata.namespace=x", "field label not supported: metadata.namespace"},
        {"", "namespaces", "status.phase=Active", "status.phase=Active"},
        {"", "namespaces", "metadata.namespace=x", "field label not supported: metadata.namespace"},
        {"", "secrets", "type=Opaque", "type=Opaque"},
        {"", "events", "involvedObject.name=p,type!=Normal", "involvedObject.name=p,type!=Normal"},
        {"", "persistentvolumes", "metadata.namespace=x", "metadata.namespace=x"},
        {"", "configmaps", "spec.bogus=1",
         "\"spec.bogus\" is not a known field selector: only \"metadata.name\", "
         "\"metadata.namespace\""},
        {"batch", "jobs", "status.successful=1", "status.successful=1"},
        {"batch", "jobs", "spec.bogus=1", "field label \"spec.bogus\" not supported for Job"},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(cases); i++)
        assert_resolves(must_find(cases[i].group, cases[i].resource), cases[i].selector,
                        cases[i].answer);
}

/* The values of a kind's fields in an object, by label. */
static void assert_field(const char *resource, const char *json, const char *label,
                         const char *want)
{
    const struct vg_kind *kind = must_find("", resource);
    VG_AUTO(arena) arena;
    VG_AUTO(obj_sealed) sealed;
    vg_arena_init(&arena, 0, 0);
    vg_obj_sealed_init(&sealed);
    struct vg_obj_header h;
    assert_int_equal(vg_obj_seal_text(kind->fields, vg_slice_str(json), &arena, &sealed, NULL), 0);
    assert_int_equal(
        vg_obj_header_open(vg_buf_slice(&sealed.header), vg_buf_slice(&sealed.value), &h), 0);
    vg_assert_slice_equal(vg_obj_field(&h, vg_obj_fields_find(kind->fields, vg_slice_str(label))),
                          vg_slice_str(want));
}

static void fields_have_the_values_that_a_real_server_compares(void **state)
{
    (void)state;
#define META "{\"metadata\":{\"name\":\"n\"}"
    assert_field("pods", META "}", "spec.hostNetwork", "false");
    assert_field("pods", META "}", "spec.restartPolicy", "Always");
    assert_field("pods", META ",\"spec\":{\"nodeName\":\"a\"}}", "spec.nodeName", "a");
    assert_field("services", META "}", "spec.type", "ClusterIP");
    assert_field("events", META ",\"source\":{\"component\":\"a\"}}", "source", "a");
    assert_field("events", META ",\"reportingComponent\":\"b\"}", "source", "b");
    assert_field("events", META ",\"source\":{\"component\":\"\"},\"reportingComponent\":\"b\"}",
                 "source", "b");
    assert_field("events", META "}", "source", "");
#undef META
}

/* ---- against the recorded discovery ---- */

static void assert_text(const struct vg_json *v, const char *key, const char *want)
{
    vg_assert_slice_equal(vg_json_text(vg_json_get_str(v, key)), vg_slice_str(want ? want : ""));
}

static void assert_list(const struct vg_json *v, const char *key, const char *const *want)
{
    const struct vg_json *list = vg_json_get_str(v, key);
    size_t n = 0;
    for (; want && want[n]; n++)
        vg_assert_slice_equal(vg_json_text(vg_json_at(list, n)), vg_slice_str(want[n]));
    assert_int_equal(list ? list->n : 0, n);
}

static void assert_verbs(const struct vg_json *v, unsigned verbs)
{
    const struct vg_json *list = vg_json_get_str(v, "verbs");
    uint32_t n = 0;
    for (unsigned bit = 1; bit <= VG_VERB_WATCH; bit <<= 1)
        if (verbs & bit)
            vg_assert_slice_equal(vg_json_text(vg_json_at(list, n++)),
                                  vg_slice_str(vg_verb_name((enum vg_verb)bit)));
    assert_int_equal(list->n, n);
}

static void assert_is_recorded(const struct vg_kind *kind, const struct vg_json *r)
{
    assert_text(r, "name", kind->resource);
    assert_text(r, "singularName", kind->singular);
    assert_text(r, "kind", kind->kind);
    assert_text(r, "storageVersionHash", kind->storage_hash);
    assert_int_equal(vg_json_is_true(vg_json_get_str(r, "namespaced")),
                     vg_kind_is(kind, VG_KIND_NAMESPACED));
    assert_list(r, "shortNames", kind->short_names);
    assert_list(r, "categories", kind->categories);
    assert_verbs(r, kind->verbs);
}

/* r is "pods/status". */
static void assert_sub_is_recorded(const struct vg_kind *kind, struct vg_slice name,
                                   const struct vg_json *r)
{
    const struct vg_kind_sub *sub = vg_kind_sub(kind, name);
    assert_non_null(sub);
    assert_text(r, "kind", sub->kind);
    assert_text(r, "group", sub->group);
    assert_text(r, "version", sub->version);
    assert_verbs(r, sub->verbs);
}

/* How many of the recorded rows are served here. */
static size_t compare_recorded(const char *group, const char *version, const struct vg_json *list)
{
    size_t served = 0;
    VG_JSON_FOREACH_ITEM (r, list) {
        struct vg_slice name = vg_json_text(vg_json_get_str(r, "name"));
        const char *slash = memchr(name.p, '/', name.n);
        size_t n = slash ? (size_t)(slash - name.p) : name.n;
        const struct vg_kind *kind =
            vg_kind_find(vg_slice_str(group), vg_slice_str(version), vg_slice(name.p, n));
        assert_non_null(kind);
        served++;
        if (slash)
            assert_sub_is_recorded(kind, vg_slice(slash + 1, name.n - n - 1), r);
        else
            assert_is_recorded(kind, r);
    }
    return served;
}

static void compare_version(const char *group, const char *version)
{
    VG_AUTO(buf) text;
    VG_AUTO(arena) arena;
    vg_buf_init(&text, 0);
    vg_arena_init(&arena, 0, 0);
    char file[256];
    snprintf(file, sizeof file, "discovery/%s%s_%s.json", *group ? "apis_" : "api", group, version);
    vg_test_vector(file, &text);
    struct vg_json *root;
    assert_int_equal(vg_json_parse(&arena, vg_buf_slice(&text), NULL, &root, NULL), 0);
    size_t n, ours = 0;
    const struct vg_kind *rows = vg_kinds_of(vg_slice_str(group), vg_slice_str(version), &n);
    for (size_t k = 0; k < n; k++)
        ours += 1 + rows[k].n_subs;
    assert_int_equal(compare_recorded(group, version, vg_json_get_str(root, "resources")), ours);
}

static void rows_are_as_a_real_server_says(void **state)
{
    (void)state;
    size_t n;
    const struct vg_group *groups = vg_groups(&n);
    compare_version("", "v1");
    for (size_t i = 0; i < n; i++)
        for (const char *const *v = groups[i].versions; *v; v++)
            compare_version(groups[i].name, *v);
}

/* Groups and versions that a real server has are here in its order. */
static void groups_are_in_the_order_of_a_real_server(void **state)
{
    (void)state;
    VG_AUTO(buf) text = {0};
    VG_AUTO(arena) arena = {0};
    struct vg_json *root;
    size_t n, at = 0;
    const struct vg_group *groups = vg_groups(&n);
    vg_test_vector("discovery/apis.json", &text);
    assert_int_equal(vg_json_parse(&arena, vg_buf_slice(&text), NULL, &root, NULL), 0);
    VG_JSON_FOREACH_ITEM (g, vg_json_get_str(root, "groups")) {
        struct vg_slice name = vg_json_text(vg_json_get_str(g, "name"));
        if (!vg_group_find(name)) {
            assert_true(vg_slice_has_prefix(name, VG_SLICE_LIT("auth"))); /* reviews */
            continue;
        }
        assert_true(at < n);
        vg_assert_slice_equal(name, vg_slice_str(groups[at].name));
        const struct vg_json *versions = vg_json_get_str(g, "versions");
        for (size_t k = 0; groups[at].versions[k]; k++)
            vg_assert_slice_equal(vg_json_text(vg_json_get_str(vg_json_at(versions, k), "version")),
                                  vg_slice_str(groups[at].versions[k]));
        at++;
    }
    assert_int_equal(at, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_sorted_and_found),
        cmocka_unit_test(what_is_not_served_is_not_found),
        cmocka_unit_test(each_group_has_rows_in_each_of_its_versions),
        cmocka_unit_test(prefixes_do_not_overlap),
        cmocka_unit_test(names_are_made_of_one_another),
        cmocka_unit_test(subresources_and_flags_agree),
        cmocka_unit_test(bookmarks_show_the_empty_object),
        cmocka_unit_test(constant_texts_are_json),
        cmocka_unit_test(labels_name_the_fields_that_they_index),
        cmocka_unit_test(fields_are_taken_and_refused_in_the_words_of_each_kind),
        cmocka_unit_test(fields_have_the_values_that_a_real_server_compares),
        cmocka_unit_test(rows_are_as_a_real_server_says),
        cmocka_unit_test(groups_are_in_the_order_of_a_real_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
