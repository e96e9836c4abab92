/* usage_test.c - what pods ask for in all, and what objects count towards quotas. */
#include "rules/usage.h"

#include <errno.h>

#include "test_support.h"

static struct vg_json *parse(struct vg_arena *a, const char *text)
{
    struct vg_json *v = NULL;
    char *copy = vg_arena_copy(a, text, strlen(text) + 1);
    assert_non_null(copy);
    for (char *p = copy; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    assert_int_equal(vg_json_parse(a, vg_slice_str(copy), NULL, &v, NULL), 0);
    return v;
}

/* "a=1,b=2" */
static const char *say(struct vg_arena *a, const struct vg_amounts *list)
{
    struct vg_slice text = VG_SLICE_LIT("");
    char room[VG_QUANTITY_TEXT_MAX];
    for (uint32_t i = 0; i < list->n; i++) {
        struct vg_slice q = vg_quantity_text(&list->v[i].q, room);
        assert_int_equal(vg_arena_printf(a, &text, "%.*s%s%.*s=%.*s", VG_SLICE_ARG(text),
                                         i ? "," : "", VG_SLICE_ARG(list->v[i].name),
                                         VG_SLICE_ARG(q)),
                         0);
    }
    assert_int_equal(vg_arena_printf(a, &text, "%.*s%c", VG_SLICE_ARG(text), 0), 0);
    return text.p;
}

static const struct vg_kind *kind_of(const char *group, const char *resource)
{
    return vg_kind_find(vg_slice_str(group), VG_SLICE_LIT("v1"), vg_slice_str(resource));
}

/* ---- pods ---- */

static void check_pod(const char *pod, bool as_used, const char *requests, const char *limits)
{
    VG_AUTO(arena) a = {0};
    struct vg_amounts list;
    const struct vg_json *v = parse(&a, pod);
    assert_int_equal(vg_amounts_of_pod(&a, v, VG_REQUESTS, as_used, &list), 0);
    assert_string_equal(say(&a, &list), requests);
    assert_int_equal(vg_amounts_of_pod(&a, v, VG_LIMITS, as_used, &list), 0);
    assert_string_equal(say(&a, &list), limits);
}

static void containers_add_up(void **state)
{
    (void)state;
    check_pod(
        "{'spec':{'containers':[{'name':'a','resources':{'requests':{'cpu':'100m','memory':"
        "'1Gi'},'limits':{'cpu':'1'}}},{'name':'b','resources':{'requests':{'cpu':'1.5'}}}]}}",
        false, "cpu=1600m,memory=1Gi", "cpu=1");
    /* The largest moment of the start counts, beside the sidecars that are there by then. */
    check_pod("{'spec':{'containers':[{'name':'a','resources':{'requests':{'cpu':'1'}}}],"
              "'initContainers':[{'name':'i','resources':{'requests':{'cpu':'3','memory':'5'}}},"
              "{'name':'s','restartPolicy':'Always','resources':{'requests':{'cpu':'2'}}},"
              "{'name':'j','resources':{'requests':{'cpu':'1500m'}}}]}}",
              false, "cpu=3500m,memory=5", "");
}

static void the_pod_speaks_for_itself(void **state)
{
    static const char pod[] =
        "{'spec':{'resources':{'requests':{'cpu':'5','hugepages-2Mi':'4Mi'},'limits':{'cpu':'6'}},"
        "'overhead':{'cpu':'10m','memory':'1Mi'},'containers':[{'name':'a','resources':{'requests':"
        "{'cpu':'1','hugepages-2Mi':'2Mi'},'limits':{'memory':'3Mi'}}}]}}";
    (void)state;
    check_pod(pod, false, "cpu=5,hugepages-2Mi=2Mi", "cpu=6,memory=3Mi");
    check_pod(pod, true, "cpu=5010m,hugepages-2Mi=4Mi,memory=1Mi", "cpu=6010m,memory=4Mi");
}

static void what_a_container_has_counts(void **state)
{
    (void)state;
    check_pod("{'spec':{'containers':[{'name':'a','resources':{'requests':{'cpu':'1'}}}]},"
              "'status':{'containerStatuses':[{'name':'a','allocatedResources':{'cpu':'3'},"
              "'resources':{'requests':{'cpu':'2'}}}]}}",
              true, "cpu=3", "");
    check_pod("{'spec':{'containers':[{'name':'a','resources':{'requests':{'cpu':'9'}}}]},"
              "'status':{'conditions':[{'type':'PodResizePending','reason':'Infeasible'}],"
              "'containerStatuses':[{'name':'a','resources':{'requests':{'cpu':'2'}}}]}}",
              true, "cpu=2", "");
}

/* ---- quotas ---- */

static void check_usage(const char *group, const char *resource, const char *obj, int64_t now_s,
                        const char *want)
{
    VG_AUTO(arena) a = {0};
    struct vg_amounts list;
    assert_int_equal(vg_usage_of(&a, kind_of(group, resource), parse(&a, obj), now_s, &list), 0);
    assert_string_equal(say(&a, &list), want);
}

static void objects_are_counted(void **state)
{
    (void)state;
    check_usage("", "pods",
                "{'spec':{'containers':[{'name':'a','resources':{'requests':{'cpu':'1','x.io/gpu':"
                "'2'},'limits':{'cpu':'2','memory':'1Gi','x.io/gpu':'2'}}}]}}",
                0,
                "count/pods=1,cpu=1,limits.cpu=2,limits.memory=1Gi,pods=1,requests.cpu=1,"
                "requests.x.io/gpu=2");
    check_usage("", "pods", "{'status':{'phase':'Failed'}}", 0, "count/pods=1");
    check_usage("", "services",
                "{'spec':{'type':'LoadBalancer','ports':[{'port':1},{'port':2,'nodePort':30000}]}}",
                0, "count/services=1,services=1,services.loadbalancers=1,services.nodeports=2");
    check_usage("", "services",
                "{'spec':{'type':'LoadBalancer','allocateLoadBalancerNodePorts':false,'ports':[{"
                "'port':1},{'port':2,'nodePort':30000}]}}",
                0, "count/services=1,services=1,services.loadbalancers=1,services.nodeports=1");
    check_usage("", "persistentvolumeclaims",
                "{'spec':{'storageClassName':'gold','resources':{'requests':{'storage':'0.5'}}}}",
                0,
                "count/persistentvolumeclaims=1,"
                "gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,"
                "gold.storageclass.storage.k8s.io/requests.storage=1,persistentvolumeclaims=1,"
                "requests.storage=1");
    check_usage("", "secrets", "{}", 0, "count/secrets=1,secrets=1");
    check_usage("apps", "deployments", "{}", 0, "count/deployments.apps=1");
}

static void pods_that_should_be_gone_are_not(void **state)
{
    static const char pod[] = "{'metadata':{'deletionTimestamp':'1970-01-01T00:01:40Z',"
                              "'deletionGracePeriodSeconds':30}}";
    (void)state;
    check_usage("", "pods", pod, 130, "count/pods=1,pods=1");
    check_usage("", "pods", pod, 131, "count/pods=1");
}

static void names_belong_to_kinds(void **state)
{
    static const struct {
        const char *group, *resource, *name;
        bool is_of, is_plain;
    } rows[] = {
        {"", "pods", "requests.cpu", true, false},
        {"", "pods", "count/pods", true, true},
        {"", "pods", "pods", true, false},
        {"", "pods", "requests.x.io/gpu", true, false},
        {"", "pods", "requests.storage", false, false},
        {"", "pods", "hugepages-1Gi", true, false},
        {"", "pods", "services", false, false},
        {"", "services", "services", true, true},
        {"", "services", "services.nodeports", true, false},
        {"", "persistentvolumeclaims", "requests.storage", true, false},
        {"", "persistentvolumeclaims", "a.storageclass.storage.k8s.io/requests.storage", true,
         false},
        {"", "configmaps", "configmaps", true, true},
        {"", "serviceaccounts", "serviceaccounts", false, false},
        {"", "serviceaccounts", "count/serviceaccounts", true, true},
        {"apps", "deployments", "count/deployments.apps", true, true},
        {"apps", "deployments", "count/deployments", false, false},
    };
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        const struct vg_kind *kind = kind_of(rows[i].group, rows[i].resource);
        struct vg_slice name = vg_slice_str(rows[i].name);
        if (vg_usage_is_of(kind, name) != rows[i].is_of ||
            vg_usage_is_plain(kind, name) != rows[i].is_plain)
            fail_msg("%s of %s", rows[i].name, rows[i].resource);
    }
    assert_false(vg_usage_counts(kind_of("", "events")));
    assert_false(vg_usage_counts(kind_of("", "nodes")));
}

static void scopes_are_met_or_not(void **state)
{
    static const struct {
        const char *quota, *pod;
        bool is_in;
    } rows[] = {
        {"{'spec':{}}", "{}", true},
        {"{'spec':{'scopes':['Terminating']}}", "{'spec':{'activeDeadlineSeconds':1}}", true},
        {"{'spec':{'scopes':['NotTerminating']}}", "{'spec':{'activeDeadlineSeconds':1}}", false},
        {"{'spec':{'scopes':['BestEffort']}}", "{'status':{'qosClass':'BestEffort'}}", true},
        {"{'spec':{'scopes':['NotBestEffort','Terminating']}}",
         "{'status':{'qosClass':'Burstable'}}", false},
        {"{'spec':{'scopeSelector':{'matchExpressions':[{'scopeName':'PriorityClass','operator':"
         "'NotIn','values':['a']}]}}}",
         "{'spec':{'priorityClassName':'b'}}", true},
        {"{'spec':{'scopeSelector':{'matchExpressions':[{'scopeName':'PriorityClass','operator':"
         "'NotIn','values':['a']}]}}}",
         "{'spec':{}}", true},
        {"{'spec':{'scopeSelector':{'matchExpressions':[{'scopeName':'PriorityClass','operator':"
         "'DoesNotExist'}]}}}",
         "{'spec':{'priorityClassName':'b'}}", false},
        {"{'spec':{'scopes':['CrossNamespacePodAffinity']}}",
         "{'spec':{'affinity':{'podAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{"
         "'podAffinityTerm':{'namespaceSelector':{}}}]}}}}",
         true},
        {"{'spec':{'scopes':['CrossNamespacePodAffinity']}}",
         "{'spec':{'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"
         "'topologyKey':'x'}]}}}}",
         false},
    };
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        VG_AUTO(arena) a = {0};
        struct vg_json *quota = parse(&a, rows[i].quota), *pod = parse(&a, rows[i].pod);
        if (vg_usage_in_scope(kind_of("", "pods"), quota, pod) != rows[i].is_in)
            fail_msg("row %zu", i);
    }
    VG_AUTO(arena) a = {0};
    struct vg_json *quota = parse(&a, "{'spec':{'scopes':['NotTerminating']}}");
    assert_false(vg_usage_in_scope(kind_of("", "secrets"), quota, parse(&a, "{}")));
}

static void short_memory_is_told(void **state)
{
    bool has_failed = false;
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        VG_AUTO(arena) a = {.first = 64};
        struct vg_quantity q = vg_quantity_of(1, 0, VG_QUANTITY_DECIMAL);
        struct vg_amounts list = {0};
        int r = 0;
        for (char c = 'a'; c < 'z' && r == 0; c++) {
            struct vg_slice name;
            r = vg_arena_printf(&a, &name, "%c", c);
            if (r == 0)
                r = vg_amounts_add(&a, &list, name, &q);
        }
        assert_true(r == 0 || r == -ENOMEM);
        has_failed = has_failed || r < 0;
    }
    assert_true(has_failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(containers_add_up),
        cmocka_unit_test(the_pod_speaks_for_itself),
        cmocka_unit_test(what_a_container_has_counts),
        cmocka_unit_test(objects_are_counted),
        cmocka_unit_test(pods_that_should_be_gone_are_not),
        cmocka_unit_test(names_belong_to_kinds),
        cmocka_unit_test(scopes_are_met_or_not),
        cmocka_unit_test(short_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
