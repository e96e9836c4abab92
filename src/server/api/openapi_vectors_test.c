/* openapi_vectors_test.c - the definitions against those of a real server: every one that we
 * declare has the same fields, of the same types, formats and values, required, merged and owned
 * the same. Descriptions are ours. Defaults differ: the original sets many that it does not
 * declare. */
#include "test_support.h"

#include <stdio.h>

#include "openapi.h"
#include "server/kinds/kinds.h"
#include "json/equal.h"
#include "json/json.h"
#include "json/write.h"

/* ---- reading ---- */

static const struct vg_json *parse(struct vg_arena *a, struct vg_slice text)
{
    struct vg_json *root;
    assert_int_equal(vg_json_parse(a, text, NULL, &root, NULL), 0);
    return root;
}

/* ---- comparing ---- */

/* {"allOf":[{"$ref":...}]} is the reference. */
static const struct vg_json *unwrapped(const struct vg_json *v)
{
    const struct vg_json *all = vg_json_get_str(v, "allOf");
    return all && all->n == 1 ? vg_json_at(all, 0) : v;
}

static bool is_ignored(const struct vg_json_member *m, bool is_names)
{
    static const char *const keys[] = {"description", "default", "x-kubernetes-unions",
                                       "x-kubernetes-group-version-kind"};
    for (size_t i = 0; i < VG_ARRAY_LEN(keys) && !is_names; i++)
        if (vg_slice_eq(vg_json_key(m), vg_slice_str(keys[i])))
            return true;
    return false;
}

static void show(const char *whose, const struct vg_json *v)
{
    VG_AUTO(buf) text = {0};
    assert_int_equal(vg_json_write(&text, v, 0), 0);
    print_error("  %s %.*s\n", whose, (int)text.n, text.p);
}

/* Members are compared by keys of a schema; is_names: by names of fields. */
static bool agrees(const struct vg_json *ours, const struct vg_json *theirs, bool is_names)
{
    if (!is_names) {
        ours = unwrapped(ours);
        theirs = unwrapped(theirs);
    }
    if (!ours || ours->type != theirs->type ||
        (theirs->type == VG_JSON_ARRAY && ours->n != theirs->n))
        return false;
    if (vg_json_is(theirs, VG_JSON_STRING))
        return vg_slice_eq(vg_json_text(ours), vg_json_text(theirs));
    for (uint32_t i = 0; theirs->type == VG_JSON_ARRAY && i < theirs->n; i++)
        if (!agrees(&ours->items[i], &theirs->items[i], false))
            return false;
    size_t n = 0;
    VG_JSON_FOREACH_MEMBER (m, theirs) {
        if (is_ignored(m, is_names))
            continue;
        n++;
        bool is_below_names = !is_names && vg_slice_eq(vg_json_key(m), VG_SLICE_LIT("properties"));
        const struct vg_json *own = vg_json_get(ours, vg_json_key(m));
        if (!own || !agrees(own, &m->value, is_below_names)) {
            print_error("  at %.*s\n", VG_SLICE_ARG(vg_json_key(m)));
            return false;
        }
    }
    VG_JSON_FOREACH_MEMBER (m, ours)
        n -= !is_ignored(m, is_names);
    return n == 0;
}

static size_t compare(const struct vg_json *ours, const struct vg_json *theirs)
{
    size_t n = 0;
    VG_JSON_FOREACH_MEMBER (m, ours) {
        const struct vg_json *other = vg_json_get(theirs, vg_json_key(m));
        if (!other)
            fail_msg("%.*s is ours alone", VG_SLICE_ARG(vg_json_key(m)));
        if (!agrees(&m->value, other, false)) {
            show("ours  ", &m->value);
            show("theirs", other);
            fail_msg("%.*s differs", VG_SLICE_ARG(vg_json_key(m)));
        }
        n++;
    }
    return n;
}

/* ---- documents ---- */

/* It stays as long as nobody sweeps. */
static struct vg_slice json_of(struct vg_openapi *o, size_t doc)
{
    bool is_gzip;
    const struct vg_openapi_body *b = vg_openapi_take(o, doc, VG_OPENAPI_JSON, false, 0, &is_gzip);
    assert_non_null(b);
    struct vg_slice bytes = vg_openapi_bytes(b);
    vg_openapi_unref(b);
    return bytes;
}

static void compare_v3(struct vg_openapi *o, const char *group, const char *version, size_t *n)
{
    VG_AUTO(arena) arena = {0};
    VG_AUTO(buf) text = {0};
    char path[256], file[320];
    snprintf(file, sizeof file, "discovery/openapi_v3_%s%s_%s.json", *group ? "apis_" : "api",
             group, version);
    snprintf(path, sizeof path, "%s%s/%s", *group ? "apis/" : "api", group, version);
    size_t doc;
    vg_test_vector(file, &text);
    assert_int_equal(vg_openapi_find(o, vg_slice_str(path), &doc), 0);
    const struct vg_json *ours = parse(&arena, json_of(o, doc));
    const struct vg_json *theirs = parse(&arena, vg_buf_slice(&text));
    *n += compare(vg_json_get_str(vg_json_get_str(ours, "components"), "schemas"),
                  vg_json_get_str(vg_json_get_str(theirs, "components"), "schemas"));
}

static void definitions_of_version_3_are_as_recorded(void **state)
{
    (void)state;
    struct vg_openapi *o;
    size_t n_groups, n = 0;
    const struct vg_group *groups = vg_groups(&n_groups);
    assert_int_equal(vg_openapi_new("v1.36.4", &o), 0);
    compare_v3(o, "", "v1", &n);
    for (size_t i = 0; i < n_groups; i++)
        for (const char *const *v = groups[i].versions; *v; v++)
            compare_v3(o, groups[i].name, *v, &n);
    print_message("%zu definitions\n", n);
    vg_openapi_free(o);
}

static void definitions_of_version_2_are_as_recorded(void **state)
{
    (void)state;
    struct vg_openapi *o;
    VG_AUTO(arena) arena = {0};
    VG_AUTO(buf) text = {0};
    assert_int_equal(vg_openapi_new("v1.36.4", &o), 0);
    vg_test_vector("discovery/openapi_v2.json", &text);
    const struct vg_json *ours = parse(&arena, json_of(o, VG_OPENAPI_V2));
    const struct vg_json *theirs = parse(&arena, vg_buf_slice(&text));
    print_message("%zu definitions\n", compare(vg_json_get_str(ours, "definitions"),
                                               vg_json_get_str(theirs, "definitions")));
    vg_openapi_free(o);
}

/* Generators name functions by operationId, and look at the kind of a body. */
static void compare_operation(const char *path, const struct vg_json_member *method,
                              const struct vg_json *theirs)
{
    static const char *const keys[] = {"operationId", "tags", "x-kubernetes-action",
                                       "x-kubernetes-group-version-kind"};
    if (!theirs)
        fail_msg("%s has no %.*s", path, VG_SLICE_ARG(vg_json_key(method)));
    for (size_t i = 0; i < VG_ARRAY_LEN(keys); i++)
        if (vg_json_equal(vg_json_get_str(&method->value, keys[i]),
                          vg_json_get_str(theirs, keys[i])) != 1)
            fail_msg("%s of %.*s %s differs", keys[i], VG_SLICE_ARG(vg_json_key(method)), path);
}

static void operations_are_as_recorded(void **state)
{
    (void)state;
    struct vg_openapi *o;
    VG_AUTO(arena) arena = {0};
    VG_AUTO(buf) text = {0};
    size_t n = 0;
    assert_int_equal(vg_openapi_new("v1.36.4", &o), 0);
    vg_test_vector("discovery/openapi_v2.json", &text);
    const struct vg_json *ours = parse(&arena, json_of(o, VG_OPENAPI_V2));
    const struct vg_json *theirs = vg_json_get_str(parse(&arena, vg_buf_slice(&text)), "paths");
    VG_JSON_FOREACH_MEMBER (path, vg_json_get_str(ours, "paths")) {
        char name[512];
        snprintf(name, sizeof name, "%.*s", VG_SLICE_ARG(vg_json_key(path)));
        VG_JSON_FOREACH_MEMBER (m, &path->value)
            if (m->value.type == VG_JSON_OBJECT) {
                compare_operation(
                    name, m, vg_json_get(vg_json_get(theirs, vg_json_key(path)), vg_json_key(m)));
                n++;
            }
    }
    print_message("%zu operations\n", n);
    vg_openapi_free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(definitions_of_version_3_are_as_recorded),
        cmocka_unit_test(definitions_of_version_2_are_as_recorded),
        cmocka_unit_test(operations_are_as_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
