/* Tests of authz.c. */
#include "test_support.h"

#include "authz.h"

static const struct vg_slice masters[] = {{"system:authenticated", 20}, {"system:masters", 14}};
static const struct vg_slice plain[] = {{"system:authenticated", 20}};
static const struct vg_slice nobody[] = {{"system:unauthenticated", 22}};
static const struct vg_api_user admin = {{"root", 4}, {0}, masters, 2, NULL, 0};
static const struct vg_api_user alice = {{"alice", 5}, {0}, plain, 1, NULL, 0};
static const struct vg_api_user anonymous = {{VG_USER_ANONYMOUS, 16}, {0}, nobody, 1, NULL, 0};

static const struct vg_authz *const by_masters[] = {&vg_authz_basic, &vg_authz_public,
                                                    &vg_authz_masters, NULL};
static const struct vg_authz *const by_anyone[] = {&vg_authz_basic, &vg_authz_public,
                                                   &vg_authz_always_allow, NULL};

static bool may(const struct vg_authz *const *chain, const struct vg_api_user *user,
                enum vg_http_method method, const char *method_text, const char *path)
{
    char decoded[256], verb[16];
    struct vg_target t;
    struct vg_authz_attributes a;
    const char *reason;
    assert_int_equal(vg_target_parse(method, vg_slice_str(path), decoded, &t, NULL), 0);
    vg_authz_attributes(user, &t, vg_slice_str(method_text), verb, &a);
    return vg_authz_is_allowed(chain, &a, &reason);
}

static void masters_may_do_all_and_others_nothing(void **state)
{
    (void)state;
    static const char *const paths[] = {"/api/v1/pods",
                                        "/api/v1/namespaces/x",
                                        "/metrics",
                                        "/apix",
                                        "/debug/vigil/watches",
                                        "/",
                                        "/x"};
    for (size_t i = 0; i < VG_ARRAY_LEN(paths); i++) {
        assert_true(may(by_masters, &admin, VG_HTTP_GET, "GET", paths[i]));
        assert_false(may(by_masters, &alice, VG_HTTP_GET, "GET", paths[i]));
        assert_false(may(by_masters, &anonymous, VG_HTTP_GET, "GET", paths[i]));
        assert_true(may(by_anyone, &alice, VG_HTTP_GET, "GET", paths[i]));
        assert_false(may(by_anyone, &anonymous, VG_HTTP_GET, "GET", paths[i]));
    }
}

static void who_is_known_may_look_around_and_ask_about_themselves(void **state)
{
    (void)state;
    static const char *const paths[] = {"/api", "/api/v1", "/apis", "/apis/apps/v1", "/openapi/v3"};
    static const char *const questions[] = {
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
        "/apis/authentication.k8s.io/v1/selfsubjectreviews"};
    for (size_t i = 0; i < VG_ARRAY_LEN(paths); i++) {
        assert_true(may(by_masters, &alice, VG_HTTP_GET, "GET", paths[i]));
        assert_false(may(by_masters, &alice, VG_HTTP_POST, "POST", paths[i]));
        assert_false(may(by_masters, &anonymous, VG_HTTP_GET, "GET", paths[i]));
    }
    for (size_t i = 0; i < VG_ARRAY_LEN(questions); i++) {
        assert_true(may(by_masters, &alice, VG_HTTP_POST, "POST", questions[i]));
        assert_false(may(by_masters, &alice, VG_HTTP_GET, "GET", questions[i]));
        assert_false(may(by_masters, &anonymous, VG_HTTP_POST, "POST", questions[i]));
    }
    assert_false(may(by_masters, &alice, VG_HTTP_POST, "POST",
                     "/apis/authorization.k8s.io/v1/subjectaccessreviews"));
    assert_false(may(by_masters, &alice, VG_HTTP_POST, "POST",
                     "/apis/authentication.k8s.io/v1/tokenreviews"));
}

static int count_rule(void *arg, const struct vg_authz_rule *rule)
{
    size_t *n = arg;
    n[rule->urls != NULL]++;
    return 0;
}

static void what_is_allowed_can_be_listed(void **state)
{
    (void)state;
    static const struct {
        const struct vg_api_user *user;
        size_t resources, paths;
    } cases[] = {{&admin, 3, 3}, {&alice, 2, 2}, {&anonymous, 0, 1}};
    for (size_t i = 0; i < VG_ARRAY_LEN(cases); i++) {
        size_t n[2] = {0, 0};
        assert_int_equal(
            vg_authz_each_rule(by_masters, cases[i].user, VG_SLICE_LIT("default"), count_rule, n),
            0);
        assert_int_equal(n[0], cases[i].resources);
        assert_int_equal(n[1], cases[i].paths);
    }
}

static void everybody_may_ask_for_health_and_version(void **state)
{
    (void)state;
    static const char *const paths[] = {"/livez", "/readyz", "/healthz?verbose", "/version"};
    for (size_t i = 0; i < VG_ARRAY_LEN(paths); i++) {
        assert_true(may(by_masters, &anonymous, VG_HTTP_GET, "GET", paths[i]));
        assert_true(may(by_masters, &alice, VG_HTTP_HEAD, "HEAD", paths[i]));
        assert_false(may(by_masters, &anonymous, VG_HTTP_POST, "POST", paths[i]));
    }
    assert_false(may(by_masters, &anonymous, VG_HTTP_GET, "GET", "/livez/ping"));
    assert_false(may(by_masters, &anonymous, VG_HTTP_GET, "GET", "/livezz"));
}

static void explained(const struct vg_api_user *user, enum vg_http_method method,
                      const char *method_text, const char *path, const char *reason,
                      const char *want)
{
    char decoded[256], verb[16];
    struct vg_target t;
    struct vg_authz_attributes a;
    VG_AUTO(buf) text = {0};
    assert_int_equal(vg_target_parse(method, vg_slice_str(path), decoded, &t, NULL), 0);
    vg_authz_attributes(user, &t, vg_slice_str(method_text), verb, &a);
    assert_int_equal(vg_authz_explain(&text, &a, reason), 0);
    vg_assert_slice_equal(vg_buf_slice(&text), vg_slice_str(want));
}

static void refusals_use_the_known_words(void **state)
{
    (void)state;
    explained(&alice, VG_HTTP_GET, "GET", "/api/v1/namespaces/default/pods", NULL,
              "User \"alice\" cannot list resource \"pods\" in API group \"\" in the namespace "
              "\"default\"");
    explained(&alice, VG_HTTP_GET, "GET", "/api/v1/pods?watch=1", NULL,
              "User \"alice\" cannot watch resource \"pods\" in API group \"\" at the cluster "
              "scope");
    explained(&alice, VG_HTTP_PUT, "PUT", "/apis/apps/v1/namespaces/x/deployments/d/status",
              "because",
              "User \"alice\" cannot update resource \"deployments/status\" in API group "
              "\"apps\" in the namespace \"x\": because");
    explained(&anonymous, VG_HTTP_GET, "GET", "/metrics", NULL,
              "User \"system:anonymous\" cannot get path \"/metrics\"");
    struct vg_api_user odd = {{"a\"<b>\n", 6}, {0}, NULL, 0, NULL, 0};
    explained(&odd, VG_HTTP_OTHER, "PROPFIND", "/x", NULL,
              "User \"a\\\"&lt;b&gt;\\x0a\" cannot propfind path \"/x\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masters_may_do_all_and_others_nothing),
        cmocka_unit_test(who_is_known_may_look_around_and_ask_about_themselves),
        cmocka_unit_test(what_is_allowed_can_be_listed),
        cmocka_unit_test(everybody_may_ask_for_health_and_version),
        cmocka_unit_test(refusals_use_the_known_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
