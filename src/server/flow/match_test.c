/* Tests of match.c, read.c and flow.c: which schema a request belongs to. */
#include "test_support.h"

#include <errno.h>
#include <stdio.h>

#include "defaults.h"
#include "flow_int.h"

struct fixture {
    struct vg_flow *flow;
    struct vg_loop *loop;
    struct vg_flow_loop *l;
};

static struct vg_slice object(struct vg_buf *b, const char *name, const char *spec)
{
    vg_buf_clear(b);
    assert_int_equal(
        vg_buf_printf(b, "{\"metadata\":{\"name\":\"%s\",\"uid\":\"uid-%s\"},\"spec\":%s}", name,
                      name, spec),
        0);
    return vg_buf_slice(b);
}

/* The defaults, and one schema and one level more if they are given. */
static void configure(struct vg_flow *f, const char *schema, const char *level)
{
    struct vg_buf texts[64] = {0};
    struct vg_slice schemas[32], levels[32];
    size_t n = 0, n_schemas = 0, n_levels = 0;
    for (const struct vg_flow_default *d = vg_flow_default_schemas; d->name; d++)
        schemas[n_schemas++] = object(&texts[n++], d->name, d->spec);
    for (const struct vg_flow_default *d = vg_flow_default_levels; d->name; d++)
        levels[n_levels++] = object(&texts[n++], d->name, d->spec);
    if (schema)
        schemas[n_schemas++] = object(&texts[n++], "mine", schema);
    if (level)
        levels[n_levels++] = object(&texts[n++], "own", level);
    assert_int_equal(vg_flow_configure(f, schemas, n_schemas, levels, n_levels), 0);
    for (size_t i = 0; i < n; i++)
        vg_buf_done(&texts[i]);
}

static void fixture_open(struct fixture *x)
{
    struct vg_flow_opts o = {.seats = 600};
    assert_int_equal(vg_flow_new(&o, &x->flow), 0);
    assert_int_equal(vg_loop_new(vg_clock_system(), &x->loop), 0);
    assert_int_equal(vg_flow_loop_open(x->flow, x->loop, &x->l), 0);
}

static void fixture_close(struct fixture *x)
{
    vg_flow_loop_close(x->l);
    vg_loop_free(x->loop);
    vg_flow_free(x->flow);
}

static void expect(struct fixture *x, const struct vg_flow_attributes *a, const char *want)
{
    static const struct vg_flow_likeness like = {0};
    struct vg_flow_subject_cache cache = {0};
    struct vg_flow_ticket t = {0};
    vg_flow_classify(x->l, a, &like, &cache, &t);
    vg_assert_slice_equal(vg_flow_schema_name(&t), vg_slice_str(want));
    vg_flow_ticket_done(x->l, &t);
    /* Again, with what is known of the user. */
    struct vg_flow_ticket again = {0};
    vg_flow_classify(x->l, a, &like, &cache, &again);
    vg_assert_slice_equal(vg_flow_schema_name(&again), vg_slice_str(want));
    vg_flow_ticket_done(x->l, &again);
}

#define S(text) VG_SLICE_LIT(text)
static const struct vg_slice masters[] = {{"system:masters", 14}, {"system:authenticated", 20}},
                             authenticated[] = {{"system:authenticated", 20}},
                             nodes[] = {{"system:nodes", 12}, {"system:authenticated", 20}},
                             accounts[] = {{"system:serviceaccounts", 22},
                                           {"system:authenticated", 20}},
                             nobody[] = {{"system:unauthenticated", 22}};

static struct vg_flow_attributes ask(struct vg_slice user, const struct vg_slice *groups, size_t n,
                                     const char *verb, const char *group, const char *resource,
                                     const char *ns)
{
    return (struct vg_flow_attributes){.user = user,
                                       .groups = groups,
                                       .n_groups = n,
                                       .verb = vg_slice_str(verb),
                                       .is_resource = true,
                                       .group = vg_slice_str(group),
                                       .resource = vg_slice_str(resource),
                                       .ns = vg_slice_str(ns)};
}

static void defaults_sort_requests_as_kube_apiserver_does(void **state)
{
    struct fixture x;
    (void)state;
    fixture_open(&x);
    configure(x.flow, NULL, NULL);
    struct vg_flow_attributes a = ask(S("root"), masters, 2, "get", "", "pods", "default");
    expect(&x, &a, "exempt");
    a = ask(S("alice"), authenticated, 1, "list", "", "pods", "");
    expect(&x, &a, "global-default");
    a = ask(S("system:node:n1"), nodes, 2, "update", "", "nodes", "");
    expect(&x, &a, "system-node-high");
    a.subresource = S("status");
    expect(&x, &a, "system-node-high");
    a = ask(S("system:node:n1"), nodes, 2, "get", "", "pods", "default");
    expect(&x, &a, "system-nodes");
    a = ask(S("system:kube-scheduler"), authenticated, 1, "create", "", "bindings", "default");
    expect(&x, &a, "kube-scheduler");
    a = ask(S("system:kube-scheduler"), authenticated, 1, "update", "coordination.k8s.io", "leases",
            "kube-system");
    expect(&x, &a, "system-leader-election");
    a = ask(S("system:serviceaccount:kube-system:x"), accounts, 2, "get", "", "pods", "default");
    expect(&x, &a, "kube-system-service-accounts");
    a = ask(S("system:serviceaccount:other:x"), accounts, 2, "get", "", "pods", "default");
    expect(&x, &a, "service-accounts");
    fixture_close(&x);
}

static void paths_match_themselves_and_what_lies_below(void **state)
{
    struct fixture x;
    (void)state;
    fixture_open(&x);
    configure(x.flow, NULL, NULL);
    struct vg_flow_attributes a = {.user = S("system:anonymous"),
                                   .groups = nobody,
                                   .n_groups = 1,
                                   .verb = S("get"),
                                   .path = S("/livez")};
    expect(&x, &a, "probes");
    a.path = S("/livez/ping");
    expect(&x, &a, "probes");
    a.path = S("/livezy");
    expect(&x, &a, "global-default");
    a.n_groups = 0; /* cannot be, and is nobody's */
    expect(&x, &a, "catch-all");
    fixture_close(&x);
}

static const char mine[] =
    "{\"priorityLevelConfiguration\":{\"name\":\"own\"},\"matchingPrecedence\":10,\"rules\":[{"
    "\"subjects\":[{\"kind\":\"User\",\"user\":{\"name\":\"alice\"}}],\"resourceRules\":[{"
    "\"verbs\":[\"get\",\"list\"],\"apiGroups\":[\"apps\"],\"resources\":[\"deployments/scale\"],"
    "\"namespaces\":[\"one\"]}]}]}";
static const char own[] = "{\"type\":\"Limited\",\"limited\":{\"nominalConcurrencyShares\":10,"
                          "\"limitResponse\":{\"type\":\"Reject\"}}}";

static void every_part_of_a_rule_must_match(void **state)
{
    struct fixture x;
    (void)state;
    fixture_open(&x);
    configure(x.flow, mine, own);
    struct vg_flow_attributes right =
        ask(S("alice"), authenticated, 1, "list", "apps", "deployments", "one");
    right.subresource = S("scale");
    expect(&x, &right, "mine");
    struct vg_flow_attributes a = right;
    a.verb = S("update");
    expect(&x, &a, "global-default");
    a = right;
    a.group = S("");
    expect(&x, &a, "global-default");
    a = right;
    a.subresource = S("");
    expect(&x, &a, "global-default");
    a = right;
    a.ns = S("two");
    expect(&x, &a, "global-default");
    a = right;
    a.ns = S("");
    expect(&x, &a, "global-default");
    a = right;
    a.user = S("bob");
    expect(&x, &a, "global-default");
    fixture_close(&x);
}

/* What is remembered of a user ends with the table, and is not used where namespaces matter. */
static void what_is_remembered_stays_true(void **state)
{
    struct fixture x;
    struct vg_flow_subject_cache cache = {0};
    struct vg_flow_likeness like = {.kind = &x, .verb = 2, .has_namespace = true};
    (void)state;
    fixture_open(&x);
    configure(x.flow, NULL, NULL);
    struct vg_flow_attributes a = ask(S("alice"), authenticated, 1, "list", "", "pods", "one");
    struct vg_flow_ticket t = {0}, u = {0}, v = {0};
    assert_false(vg_flow_classify_again(x.l, &like, &cache, &t));
    vg_flow_classify(x.l, &a, &like, &cache, &t);
    assert_true(vg_flow_classify_again(x.l, &like, &cache, &u));
    vg_assert_slice_equal(vg_flow_schema_name(&u), S("global-default"));
    like.has_namespace = false;
    assert_false(vg_flow_classify_again(x.l, &like, &cache, &v));
    like.has_namespace = true;
    configure(x.flow, mine, own);
    assert_false(vg_flow_classify_again(x.l, &like, &cache, &v)); /* another table */
    vg_flow_classify(x.l, &a, &like, &cache, &v);
    vg_assert_slice_equal(vg_flow_schema_name(&v), S("global-default"));
    struct vg_flow_ticket w = {0};
    assert_false(vg_flow_classify_again(x.l, &like, &cache, &w)); /* "mine" names a namespace */
    vg_flow_ticket_done(x.l, &t);
    vg_flow_ticket_done(x.l, &u);
    vg_flow_ticket_done(x.l, &v);
    fixture_close(&x);
}

static void headers_have_the_uids(void **state)
{
    struct fixture x;
    struct vg_flow_subject_cache cache = {0};
    struct vg_flow_likeness like = {0};
    struct vg_flow_ticket t = {0};
    (void)state;
    fixture_open(&x);
    configure(x.flow, NULL, NULL);
    struct vg_flow_attributes a = ask(S("alice"), authenticated, 1, "list", "", "pods", "");
    vg_flow_classify(x.l, &a, &like, &cache, &t);
    vg_assert_slice_equal(vg_flow_headers(&t)->lines,
                          S("X-Kubernetes-Pf-Flowschema-Uid: uid-global-default\r\n"
                            "X-Kubernetes-Pf-Prioritylevel-Uid: uid-global-default\r\n"));
    vg_flow_ticket_done(x.l, &t);
    fixture_close(&x);
}

static void schemas_without_a_level_and_nonsense_are_left_out(void **state)
{
    struct fixture x;
    struct vg_slice bad[] = {S("{}"), S("[1]"), S("{\"metadata\":{\"name\":\"x\"},\"spec\":{}}")};
    (void)state;
    fixture_open(&x);
    configure(x.flow, mine, NULL);
    struct vg_flow_attributes a =
        ask(S("alice"), authenticated, 1, "list", "apps", "deployments", "one");
    a.subresource = S("scale");
    expect(&x, &a, "global-default");
    assert_int_equal(vg_flow_configure(x.flow, bad, 3, bad, 3), 0);
    expect(&x, &a, "catch-all");
    a = ask(S("root"), masters, 2, "get", "", "pods", "default");
    expect(&x, &a, "exempt");
    fixture_close(&x);
}

static void no_memory_leaves_what_was_there(void **state)
{
    struct fixture x;
    (void)state;
    fixture_open(&x);
    configure(x.flow, NULL, NULL);
    struct vg_slice level = S("{\"metadata\":{\"name\":\"new\"},\"spec\":{\"type\":\"Limited\","
                              "\"limited\":{\"nominalConcurrencyShares\":10,\"limitResponse\":{"
                              "\"type\":\"Queue\",\"queuing\":{\"queues\":4,\"handSize\":2,"
                              "\"queueLengthLimit\":3}}}}}");
    VG_ALLOC_FAIL_LOOP (n) {
        int r = vg_flow_configure(x.flow, NULL, 0, &level, 1);
        if (vg_test_alloc_failed())
            assert_int_equal(r, -ENOMEM);
        else
            assert_int_equal(r, 0);
        struct vg_flow_attributes a = ask(S("root"), masters, 2, "get", "", "pods", "default");
        expect(&x, &a, "exempt");
    }
    fixture_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_sort_requests_as_kube_apiserver_does),
        cmocka_unit_test(paths_match_themselves_and_what_lies_below),
        cmocka_unit_test(every_part_of_a_rule_must_match),
        cmocka_unit_test(what_is_remembered_stays_true),
        cmocka_unit_test(headers_have_the_uids),
        cmocka_unit_test(schemas_without_a_level_and_nonsense_are_left_out),
        cmocka_unit_test(no_memory_leaves_what_was_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
