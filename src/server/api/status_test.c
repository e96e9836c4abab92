/* status_test.c - refusals as kube-apiserver writes them. */
#include "status.h"

#include "test_support.h"

static struct vg_arena arena;

static const struct vg_kind *kind(const char *group, const char *resource)
{
    const struct vg_kind *k =
        vg_kind_find(vg_slice_str(group), VG_SLICE_LIT("v1"), vg_slice_str(resource));
    assert_non_null(k);
    return k;
}

static void expect(const struct vg_api_status *s, const char *wanted)
{
    VG_AUTO(buf) b = {0};
    assert_int_equal(vg_api_status_write(&b, s), 0);
    assert_int_equal(vg_buf_append_byte(&b, '\0'), 0);
    assert_string_equal(b.p, wanted);
}

#define HEAD "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","

static void objects_that_are_not_there(void **state)
{
    (void)state;
    struct vg_api_status s;
    vg_status_not_found(&arena, &s, kind("apps", "deployments"), VG_SLICE_LIT("x"));
    expect(&s, HEAD "\"message\":\"deployments.apps \\\"x\\\" not found\",\"reason\":\"NotFound\","
                    "\"details\":{\"name\":\"x\",\"group\":\"apps\",\"kind\":\"deployments\"},"
                    "\"code\":404}");
    vg_status_exists(&arena, &s, kind("", "pods"), VG_SLICE_LIT("x"), true);
    expect(&s, HEAD "\"message\":\"object is being deleted: pods \\\"x\\\" already exists\","
                    "\"reason\":\"AlreadyExists\",\"details\":{\"name\":\"x\",\"kind\":\"pods\"},"
                    "\"code\":409}");
    vg_status_modified(&arena, &s, kind("", "pods"), VG_SLICE_LIT("x"));
    expect(&s,
           HEAD "\"message\":\"Operation cannot be fulfilled on pods \\\"x\\\": the object has "
                "been modified; please apply your changes to the latest version and try "
                "again\",\"reason\":\"Conflict\",\"details\":{\"name\":\"x\",\"kind\":\"pods\"},"
                "\"code\":409}");
}

static void routes_that_are_not_there(void **state)
{
    (void)state;
    struct vg_api_status s;
    vg_status_no_resource(&s);
    expect(&s, HEAD "\"message\":\"the server could not find the requested resource\","
                    "\"reason\":\"NotFound\",\"details\":{},\"code\":404}");
    vg_status_method(&s);
    expect(&s, HEAD "\"message\":\"the server does not allow this method on the requested "
                    "resource\",\"reason\":\"MethodNotAllowed\",\"details\":{},\"code\":405}");
}

static void revisions_that_are_not_there(void **state)
{
    (void)state;
    struct vg_api_status s;
    vg_status_too_large_rev(&arena, &s, 9, 3, true);
    expect(&s, HEAD "\"message\":\"Timeout: Too large resource version: 9, current: 3\","
                    "\"reason\":\"Timeout\",\"details\":{\"causes\":[{\"reason\":"
                    "\"ResourceVersionTooLarge\",\"message\":\"Too large resource version\"}],"
                    "\"retryAfterSeconds\":1},\"code\":504}");
    vg_status_expired(&arena, &s, "too old resource version: %d (%d)", 1, 5);
    expect(&s, HEAD "\"message\":\"too old resource version: 1 (5)\",\"reason\":\"Expired\","
                    "\"code\":410}");
    s.continue_token = VG_SLICE_LIT("abc");
    expect(&s, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{\"continue\":\"abc\"},"
               "\"status\":\"Failure\",\"message\":\"too old resource version: 1 (5)\","
               "\"reason\":\"Expired\",\"code\":410}");
}

static void forbidden_names_what_it_knows(void **state)
{
    (void)state;
    struct vg_api_status s;
    vg_status_forbidden(&arena, &s, kind("", "pods"), VG_SLICE_LIT("x"), "no %s", "way");
    assert_true(vg_slice_eq(s.message, VG_SLICE_LIT("pods \"x\" is forbidden: no way")));
    vg_status_forbidden(&arena, &s, kind("", "pods"), VG_SLICE_LIT(""), "no");
    assert_true(vg_slice_eq(s.message, VG_SLICE_LIT("pods is forbidden: no")));
    vg_status_forbidden(&arena, &s, NULL, VG_SLICE_LIT(""), "no");
    assert_true(vg_slice_eq(s.message, VG_SLICE_LIT("forbidden: no")));
}

static void internal_errors_repeat_their_cause(void **state)
{
    (void)state;
    struct vg_api_status s;
    vg_status_internal(&arena, &s, "broken %d", 1);
    expect(&s, HEAD "\"message\":\"Internal error occurred: broken 1\",\"reason\":"
                    "\"InternalError\",\"details\":{\"causes\":[{\"message\":\"broken 1\"}]},"
                    "\"code\":500}");
    vg_status_unknown(&arena, &s, "bare");
    expect(&s, HEAD "\"message\":\"bare\",\"code\":500}");
}

static void field_errors_are_listed_once(void **state)
{
    (void)state;
    struct vg_api_status s;
    struct vg_field_errors e = {.arena = &arena};
    vg_field_forbidden(&e, "a", "why %d", 1);
    vg_status_invalid(&arena, &s, "meta.k8s.io", "ListOptions", VG_SLICE_LIT(""), &e);
    expect(&s, HEAD "\"message\":\"ListOptions.meta.k8s.io \\\"\\\" is invalid: a: Forbidden: why "
                    "1\",\"reason\":\"Invalid\",\"details\":{\"group\":\"meta.k8s.io\",\"kind\":"
                    "\"ListOptions\",\"causes\":[{\"reason\":\"FieldValueForbidden\",\"message\":"
                    "\"Forbidden: why 1\",\"field\":\"a\"}]},\"code\":422}");
    const char *const choices[] = {"x", "", NULL};
    vg_field_not_supported(&e, "b", VG_SLICE_LIT("\"q\""), choices);
    vg_field_forbidden(&e, "a", "why 1");
    vg_field_required(&e, "c", "%s", "");
    vg_field_too_long(&e, "d", "bytes", 63);
    vg_field_duplicate(&e, "e", VG_SLICE_LIT("1"));
    vg_field_invalid(&e, "f", VG_SLICE_LIT("null"), "bad");
    vg_status_invalid(&arena, &s, "", "Pod", VG_SLICE_LIT("p"), &e);
    assert_int_equal(s.n_causes, 7);
    const char *wanted =
        "Pod \"p\" is invalid: [a: Forbidden: why 1, b: Unsupported value: \"q\": supported "
        "values: \"x\", \"\", c: Required value, d: Too long: may not be more than 63 bytes, e: "
        "Duplicate value: 1, f: Invalid value: null: bad]";
    assert_int_equal(s.message.n, strlen(wanted));
    assert_memory_equal(s.message.p, wanted, s.message.n);
}

static void success_has_a_code_only_when_it_created(void **state)
{
    (void)state;
    struct vg_api_status s = {.code = 200, .is_success = true};
    expect(&s,
           "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\"}");
    s.code = 201;
    expect(&s, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\","
               "\"code\":201}");
}

static void without_memory_a_constant_is_said(void **state)
{
    (void)state;
    struct vg_api_status s;
    VG_AUTO(arena) tiny;
    vg_arena_init(&tiny, 0, 1);
    vg_status_not_found(&tiny, &s, kind("", "pods"), VG_SLICE_LIT("x"));
    assert_int_equal(s.code, 500);
    vg_status_internal(&tiny, &s, "x");
    assert_int_equal(s.code, 500);
    struct vg_field_errors e = {.arena = &tiny};
    vg_field_required(&e, "f", "x");
    vg_status_invalid(&tiny, &s, "", "Pod", VG_SLICE_LIT(""), &e);
    assert_int_equal(s.code, 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_that_are_not_there),
        cmocka_unit_test(routes_that_are_not_there),
        cmocka_unit_test(revisions_that_are_not_there),
        cmocka_unit_test(forbidden_names_what_it_knows),
        cmocka_unit_test(internal_errors_repeat_their_cause),
        cmocka_unit_test(field_errors_are_listed_once),
        cmocka_unit_test(success_has_a_code_only_when_it_created),
        cmocka_unit_test(without_memory_a_constant_is_said),
    };
    vg_arena_init(&arena, 0, 0);
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    vg_arena_done(&arena);
    return r;
}
