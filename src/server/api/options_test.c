/* options_test.c - list options: defaults, refusals, predicates. */
#include "options.h"

#include "test_support.h"

static struct vg_arena arena;
static struct vg_target target;
static char decoded[4096];

static int parse(const char *url, struct vg_list_options *o, struct vg_api_status *s)
{
    assert_int_equal(vg_target_parse(VG_HTTP_GET, vg_slice_str(url), decoded, &target, NULL), 0);
    assert_int_equal(target.type, VG_TARGET_RESOURCE);
    return vg_list_options_parse(&target, &arena, o, s);
}

static void refused(const char *url, int code, const char *message)
{
    struct vg_list_options o;
    struct vg_api_status s;
    assert_true(parse(url, &o, &s) < 0);
    assert_int_equal(s.code, code);
    assert_int_equal(s.message.n, strlen(message));
    assert_memory_equal(s.message.p, message, s.message.n);
}

static struct vg_list_options accepted(const char *url)
{
    struct vg_list_options o;
    struct vg_api_status s;
    assert_int_equal(parse(url, &o, &s), 0);
    return o;
}

static void watches_without_a_revision_begin_with_the_state(void **state)
{
    (void)state;
    struct vg_list_options o = accepted("/api/v1/pods?watch=1");
    assert_int_equal(o.send_initial, VG_TRI_TRUE);
    vg_list_options_done(&o);
    o = accepted("/api/v1/pods?watch=1&resourceVersion=0");
    assert_int_equal(o.send_initial, VG_TRI_TRUE);
    vg_list_options_done(&o);
    o = accepted("/api/v1/pods?watch=1&resourceVersion=5");
    assert_int_equal(o.send_initial, VG_TRI_UNSET);
    vg_list_options_done(&o);
    o = accepted("/api/v1/watch/pods"); /* validated as a list */
    assert_int_equal(o.send_initial, VG_TRI_UNSET);
    assert_false(o.is_watch);
    vg_list_options_done(&o);
}

static void bad_parameters_are_refused_in_order(void **state)
{
    (void)state;
    refused("/api/v1/pods?limit=1.5&labelSelector=a%20b", 400,
            "strconv.ParseInt: parsing \"1.5\": invalid syntax");
    refused("/api/v1/pods?labelSelector=a%20b&resourceVersionMatch=Exact", 400,
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
    refused("/api/v1/pods?fieldSelector=a", 400, "invalid selector: 'a'; can't understand 'a'");
    refused("/api/v1/pods?fieldSelector=spec.bogus=1&resourceVersionMatch=Exact", 422,
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
            "resourceVersionMatch is forbidden unless resourceVersion is provided");
    refused("/api/v1/pods?fieldSelector=spec.bogus=1", 400,
            "field label not supported: spec.bogus");
    refused("/api/v1/configmaps?fieldSelector=data.k=v", 400,
            "\"data.k\" is not a known field selector: only \"metadata.name\", "
            "\"metadata.namespace\"");
}

static void lists_are_validated(void **state)
{
    (void)state;
#define INVALID "ListOptions.meta.k8s.io \"\" is invalid: "
    refused("/api/v1/pods?resourceVersionMatch=Bogus", 422,
            INVALID "[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless "
                    "resourceVersion is provided, resourceVersionMatch: Unsupported value: "
                    "\"Bogus\": supported values: \"Exact\", \"NotOlderThan\", \"\"]");
    refused("/api/v1/pods?resourceVersionMatch=Exact&resourceVersion=0", 422,
            INVALID "resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden "
                    "for resourceVersion \"0\"");
    refused("/api/v1/pods?sendInitialEvents=false", 422,
            INVALID "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list");
    refused("/api/v1/watch/pods?sendInitialEvents=true", 422,
            INVALID "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list");
}

static void watches_are_validated(void **state)
{
    (void)state;
    refused("/api/v1/pods?watch=1&sendInitialEvents=1&resourceVersionMatch=Exact", 422,
            INVALID "[resourceVersionMatch: Forbidden: sendInitialEvents requires setting "
                    "resourceVersionMatch to NotOlderThan, resourceVersionMatch: Unsupported "
                    "value: \"Exact\": supported values: \"NotOlderThan\"]");
    refused("/api/v1/pods?watch=1&resourceVersionMatch=NotOlderThan", 422,
            INVALID "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch "
                    "unless sendInitialEvents is provided");
    refused("/api/v1/pods?watch=1&continue=bogus", 422,
            INVALID "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when "
                    "continue is provided");
    struct vg_list_options o = accepted("/api/v1/pods?watch=1&continue=x&resourceVersion=7");
    vg_list_options_done(&o);
}

static void legacy_paths_pin_a_name(void **state)
{
    (void)state;
    struct vg_list_options o = accepted("/api/v1/watch/namespaces/a/pods/x");
    assert_true(o.is_name_pinned);
    assert_false(o.has_selector);
    vg_list_options_done(&o);
    o = accepted("/api/v1/watch/namespaces/a/pods/x?fieldSelector=metadata.name%3Dx");
    vg_list_options_done(&o);
    refused("/api/v1/watch/namespaces/a/pods/x?fieldSelector=metadata.name%3Dy", 400,
            "fieldSelector metadata.name doesn't match requested name");
    refused("/api/v1/watch/namespaces/a/pods/x?fieldSelector=spec.nodeName%3Dy", 400,
            "fieldSelector metadata.name doesn't match requested name");
}

static void revisions_are_read(void **state)
{
    (void)state;
    uint64_t rev;
    struct vg_slice why;
    assert_int_equal(vg_rev_parse(&arena, VG_SLICE_LIT("42"), &rev, &why), 0);
    assert_int_equal(rev, 42);
    assert_int_equal(vg_rev_parse(&arena, VG_SLICE_LIT("a\"b"), &rev, &why), VIGIL_E_INVALID);
    const char *wanted = "resourceVersion: Invalid value: \"a\\\"b\": strconv.ParseUint: parsing "
                         "\"a\\\"b\": invalid syntax";
    assert_int_equal(why.n, strlen(wanted));
    assert_memory_equal(why.p, wanted, why.n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(watches_without_a_revision_begin_with_the_state),
        cmocka_unit_test(bad_parameters_are_refused_in_order),
        cmocka_unit_test(lists_are_validated),
        cmocka_unit_test(watches_are_validated),
        cmocka_unit_test(legacy_paths_pin_a_name),
        cmocka_unit_test(revisions_are_read),
    };
    vg_arena_init(&arena, 0, 0);
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    vg_arena_done(&arena);
    return r;
}
