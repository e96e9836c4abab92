/* target_test.c - what URLs ask for. */
#include "target.h"

#include <stdio.h>

#include "test_support.h"

struct parsed {
    struct vg_target t;
    char decoded[2048];
    int r;
};

static struct parsed *parse(enum vg_http_method method, const char *target)
{
    static struct parsed p;
    memset(&p, 0xee, sizeof p);
    p.r = vg_target_parse(method, vg_slice_str(target), p.decoded, &p.t, NULL);
    return &p;
}

/* "verb kind[/sub] ns name", or what else it is. */
static void expect(enum vg_http_method method, const char *target, const char *wanted)
{
    static const char *const types[] = {"resource", "api",         "apis", "group",
                                        "version",  "no resource", "other"};
    struct parsed *p = parse(method, target);
    char got[512];
    assert_int_equal(p->r, 0);
    const struct vg_target *t = &p->t;
    if (t->type != VG_TARGET_RESOURCE)
        snprintf(got, sizeof got, "%s", types[t->type]);
    else
        snprintf(got, sizeof got, "%s %s%s%s %.*s %.*s%s", vg_api_verb_name(t->verb),
                 vg_kind_qualified(t->kind), t->sub ? "/" : "", t->sub ? t->sub->name : "",
                 VG_SLICE_ARG(t->ns), VG_SLICE_ARG(t->name), t->is_legacy_watch ? " legacy" : "");
    assert_string_equal(got, wanted);
}

static void collections_are_listed_watched_and_written(void **state)
{
    (void)state;
    expect(VG_HTTP_GET, "/api/v1/pods", "list pods  ");
    expect(VG_HTTP_GET, "/api/v1/namespaces/a/pods?limit=5", "list pods a ");
    expect(VG_HTTP_GET, "/api/v1/namespaces/a/pods?watch=1", "watch pods a ");
    expect(VG_HTTP_GET, "/api/v1/namespaces/a/pods/", "list pods a ");
    expect(VG_HTTP_POST, "/api/v1/namespaces/a/pods", "create pods a ");
    expect(VG_HTTP_DELETE, "/api/v1/namespaces/a/pods", "deletecollection pods a ");
    expect(VG_HTTP_POST, "/api/v1/pods", " pods  ");
    expect(VG_HTTP_DELETE, "/api/v1/pods", " pods  ");
    expect(VG_HTTP_PUT, "/api/v1/namespaces/a/pods", " pods a ");
    expect(VG_HTTP_HEAD, "/api/v1/namespaces/a/pods", " pods a ");
    expect(VG_HTTP_DELETE, "/api/v1/nodes", "deletecollection nodes  ");
    expect(VG_HTTP_GET, "/apis/apps/v1/deployments", "list deployments.apps  ");
}

static void objects_have_names(void **state)
{
    (void)state;
    expect(VG_HTTP_GET, "/api/v1/namespaces/a/pods/x?watch=1", "get pods a x");
    expect(VG_HTTP_PUT, "/api/v1/nodes/n1", "update nodes  n1");
    expect(VG_HTTP_PATCH, "/apis/apps/v1/namespaces/a/deployments/d", "patch deployments.apps a d");
    expect(VG_HTTP_DELETE, "/api/v1/namespaces/a/pods/x", "delete pods a x");
    expect(VG_HTTP_POST, "/api/v1/namespaces/a/pods/x", " pods a x");
    expect(VG_HTTP_GET, "/api/v1/pods/x", "no resource");
    expect(VG_HTTP_GET, "/api/v1/namespaces/a/nodes/x", "no resource");
    expect(VG_HTTP_GET, "/api/v1/namespaces/a/pods/%78%2d1", "get pods a x-1");
}

static void namespaces_are_objects_and_places(void **state)
{
    (void)state;
    expect(VG_HTTP_GET, "/api/v1/namespaces", "list namespaces  ");
    expect(VG_HTTP_GET, "/api/v1/namespaces/a", "get namespaces  a");
    expect(VG_HTTP_PUT, "/api/v1/namespaces/a/finalize", "update namespaces/finalize  a");
    expect(VG_HTTP_GET, "/api/v1/namespaces/a/status", "get namespaces/status  a");
    expect(VG_HTTP_GET, "/api/v1/namespaces/a/other", "no resource");
    expect(VG_HTTP_GET, "/apis/apps/v1/namespaces", "no resource");
}

static void subresources_have_verbs_of_their_own(void **state)
{
    (void)state;
    expect(VG_HTTP_GET, "/api/v1/namespaces/a/pods/x/status", "get pods/status a x");
    expect(VG_HTTP_POST, "/api/v1/namespaces/a/pods/x/binding", "create pods/binding a x");
    expect(VG_HTTP_GET, "/api/v1/namespaces/a/pods/x/binding", " pods/binding a x");
    expect(VG_HTTP_DELETE, "/apis/apps/v1/namespaces/a/deployments/d/scale",
           " deployments.apps/scale a d");
    expect(VG_HTTP_GET, "/api/v1/namespaces/a/pods/x/bogus", "no resource");
    expect(VG_HTTP_GET, "/api/v1/namespaces/a/pods/x/status/more", "no resource");
}

static void legacy_paths_watch(void **state)
{
    (void)state;
    expect(VG_HTTP_GET, "/api/v1/watch/pods", "watch pods   legacy");
    expect(VG_HTTP_GET, "/api/v1/watch/namespaces/a/pods", "watch pods a  legacy");
    expect(VG_HTTP_GET, "/api/v1/watch/namespaces/a/pods/x", "watch pods a x legacy");
    expect(VG_HTTP_GET, "/api/v1/watch/namespaces/a", "watch namespaces  a legacy");
    expect(VG_HTTP_GET, "/api/v1/watch/nodes/n", "watch nodes  n legacy");
    expect(VG_HTTP_POST, "/api/v1/watch/pods", " pods   legacy");
    expect(VG_HTTP_GET, "/api/v1/watch", "no resource");
    expect(VG_HTTP_GET, "/api/v1/watch/namespaces/a/pods/x/status", "no resource");
}

static void other_paths_are_told_apart(void **state)
{
    (void)state;
    expect(VG_HTTP_GET, "/", "other");
    expect(VG_HTTP_GET, "/api", "api");
    expect(VG_HTTP_GET, "/apis/", "apis");
    expect(VG_HTTP_GET, "/apis/apps", "group");
    expect(VG_HTTP_GET, "/apis/apps/v1", "version");
    expect(VG_HTTP_GET, "/api/v1", "version");
    expect(VG_HTTP_GET, "/api/v2/pods", "no resource");
    expect(VG_HTTP_GET, "/apis/bogus.example.com/v1/things", "other");
    expect(VG_HTTP_GET, "/apis/apps/v9/deployments", "no resource");
    expect(VG_HTTP_GET, "/api/v1/things", "no resource");
    expect(VG_HTTP_GET, "/api/v1//pods", "no resource");
    expect(VG_HTTP_GET, "/healthz", "other");
}

static void booleans_are_read_as_kubernetes_reads_them(void **state)
{
    (void)state;
    const char *list[] = {"0", "false", "False", "FALSE"};
    const char *watch[] = {"", "1", "true", "no", "00"};
    char target[64];
    for (size_t i = 0; i < VG_ARRAY_LEN(list); i++) {
        snprintf(target, sizeof target, "/api/v1/pods?watch=%s", list[i]);
        expect(VG_HTTP_GET, target, "list pods  ");
    }
    for (size_t i = 0; i < VG_ARRAY_LEN(watch); i++) {
        snprintf(target, sizeof target, "/api/v1/pods?watch=%s", watch[i]);
        expect(VG_HTTP_GET, target, "watch pods  ");
    }
    expect(VG_HTTP_GET, "/api/v1/pods?watch", "watch pods  ");
    expect(VG_HTTP_GET, "/api/v1/pods?watch=0&watch=1", "list pods  ");
}

static void parameters_are_decoded(void **state)
{
    (void)state;
    struct parsed *p = parse(VG_HTTP_GET, "/api?a=1%2C2+3&b=%zz&c;d=1&e=%4&f&a=2&%67=x%");
    assert_int_equal(p->r, 0);
    assert_int_equal(p->t.n_params, 3);
    assert_true(vg_slice_eq(vg_query_get(&p->t, "a"), VG_SLICE_LIT("1,2 3")));
    assert_null(vg_query_get(&p->t, "b").p);
    assert_null(vg_query_get(&p->t, "c;d").p);
    assert_null(vg_query_get(&p->t, "e").p);
    assert_non_null(vg_query_get(&p->t, "f").p);
    assert_int_equal(vg_query_get(&p->t, "f").n, 0);
}

static void what_is_no_request_is_refused(void **state)
{
    (void)state;
    assert_int_equal(parse(VG_HTTP_GET, "")->r, VIGIL_E_INVALID);
    assert_int_equal(parse(VG_HTTP_OPTIONS, "*")->r, VIGIL_E_INVALID);
    assert_int_equal(parse(VG_HTTP_GET, "http://host/api")->r, VIGIL_E_INVALID);
    assert_int_equal(parse(VG_HTTP_GET, "/api/%zz")->r, VIGIL_E_INVALID);
    assert_int_equal(parse(VG_HTTP_GET, "/api/%4")->r, VIGIL_E_INVALID);
    assert_int_equal(parse(VG_HTTP_GET, "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17")->r,
                     VIGIL_E_INVALID);
    char many[512] = "/api?";
    for (size_t i = 0; i <= VG_QUERY_PARAMS_MAX; i++)
        strncat(many, "a=1&", sizeof many - strlen(many) - 1);
    assert_int_equal(parse(VG_HTTP_GET, many)->r, VIGIL_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collections_are_listed_watched_and_written),
        cmocka_unit_test(objects_have_names),
        cmocka_unit_test(namespaces_are_objects_and_places),
        cmocka_unit_test(subresources_have_verbs_of_their_own),
        cmocka_unit_test(legacy_paths_watch),
        cmocka_unit_test(other_paths_are_told_apart),
        cmocka_unit_test(booleans_are_read_as_kubernetes_reads_them),
        cmocka_unit_test(parameters_are_decoded),
        cmocka_unit_test(what_is_no_request_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
