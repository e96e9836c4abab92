/* columns_test.c - cells of objects: what no recorded example has. */
#include "test_support.h"

#include "columns.h"
#include "kinds.h"

/* 2026-01-01T01:00:00Z, an hour after MIDNIGHT. */
#define NOW_MS INT64_C(1767229200000)
#define MIDNIGHT "2026-01-01T00:00:00Z"

struct row {
    const char *group, *version, *resource;
    const char *object; /* with ' for " */
    const char *cells;  /* likewise; a prefix of the row */
};

static const char *unquote(const char *text, char *room, size_t size)
{
    size_t n = strlen(text);
    assert_true(n < size);
    for (size_t i = 0; i <= n; i++)
        room[i] = (char)(text[i] == '\'' ? '"' : text[i]);
    return room;
}

static void check(const struct row *r)
{
    static char object[8192], want[2048];
    VG_AUTO(arena) arena = {0};
    VG_AUTO(buf) out = {0};
    struct vg_json *root;
    const struct vg_kind *kind =
        vg_kind_find(vg_slice_str(r->group), vg_slice_str(r->version), vg_slice_str(r->resource));
    assert_non_null(kind);
    unquote(r->object, object, sizeof object);
    unquote(r->cells, want, sizeof want);
    assert_int_equal(vg_json_parse(&arena, vg_slice_str(object), NULL, &root, NULL), 0);
    assert_int_equal(vg_columns_row(&kind->columns, root, NOW_MS, &arena, &out), 0);
    assert_int_equal(vg_buf_append_byte(&out, '\0'), 0);
    if (strncmp(out.p, want, strlen(want)) != 0)
        print_error("%s\n  is    %s\n  wants %s\n", r->object, out.p, want);
    assert_int_equal(strncmp(out.p, want, strlen(want)), 0);
}

static void check_all(const struct row *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        check(&v[i]);
}

/* ---- pods ---- */

#define POD(spec, status)                                                                          \
    "", "v1", "pods",                                                                              \
        "{'metadata':{'name':'p','creationTimestamp':'" MIDNIGHT "'},'spec':{" spec                \
        "},'status':{" status "}}"
#define TWO "'containers':[{'name':'a'},{'name':'b'}]"
#define INIT "'initContainers':[{'name':'i'},{'name':'s','restartPolicy':'Always'}]," TWO

static void a_pod_in_a_word(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {POD(TWO, "'phase':'Pending'"), "'cells':['p','0/2','Pending','0','60m'"},
        {POD(TWO, "'phase':'Failed','reason':'Evicted'"), "'cells':['p','0/2','Evicted','0','60m'"},
        {POD(TWO, "'phase':'Running','containerStatuses':[{'name':'a','ready':true,'state':{"
                  "'running':{}}},{'name':'b','ready':true,'state':{'running':{}}}]"),
         "'cells':['p','2/2','Running','0'"},
        {POD(TWO, "'phase':'Running','containerStatuses':[{'name':'a','ready':true,'restartCount':"
                  "2,'state':{'running':{}},'lastState':{'terminated':{'finishedAt':"
                  "'2026-01-01T00:58:00Z'}}},{'name':'b','restartCount':1,'state':{'waiting':{"
                  "'reason':'CrashLoopBackOff'}}}]"),
         "'cells':['p','1/2','CrashLoopBackOff','3 (2m ago)'"},
        {POD(TWO, "'phase':'Running','containerStatuses':[{'state':{'terminated':{'exitCode':3}}},"
                  "{'state':{'terminated':{'exitCode':0,'signal':9}}}]"),
         "'cells':['p','0/2','ExitCode:3'"},
        {POD(TWO, "'phase':'Running','conditions':[{'type':'Ready','status':'True'}],"
                  "'containerStatuses':[{'state':{'terminated':{'reason':'Completed'}}},"
                  "{'ready':true,'state':{'running':{}}}]"),
         "'cells':['p','1/2','Running'"},
        {POD(TWO, "'phase':'Running','containerStatuses':[{'state':{'terminated':{'reason':"
                  "'Completed'}}},{'ready':true,'state':{'running':{}}}]"),
         "'cells':['p','1/2','NotReady'"},
        {POD(TWO, "'phase':'Running','containerStatuses':[{'state':{'terminated':{'reason':"
                  "'Completed'}}},{'state':{'terminated':{'reason':'Error','exitCode':1}}}]"),
         "'cells':['p','0/2','Error'"},
        {POD(TWO, "'phase':'Pending','conditions':[{'type':'PodScheduled','reason':"
                  "'SchedulingGated'}]"),
         "'cells':['p','0/2','SchedulingGated'"},
    };
    check_all(rows, VG_ARRAY_LEN(rows));
}

static void init_containers_come_first(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {POD(INIT, "'phase':'Pending','initContainerStatuses':[{'name':'i','state':{'running':{}}}"
                   "]"),
         "'cells':['p','0/3','Init:0/2','0'"},
        {POD(INIT, "'phase':'Pending','initContainerStatuses':[{'name':'i','restartCount':4,"
                   "'state':{'terminated':{'exitCode':7}}}]"),
         "'cells':['p','0/3','Init:ExitCode:7','4'"},
        {POD(INIT, "'phase':'Pending','initContainerStatuses':[{'name':'i','state':{'terminated':{"
                   "'exitCode':1,'signal':9}}}]"),
         "'cells':['p','0/3','Init:Signal:9'"},
        {POD(INIT, "'phase':'Pending','initContainerStatuses':[{'name':'i','state':{'waiting':{"
                   "'reason':'ErrImagePull'}}}]"),
         "'cells':['p','0/3','Init:ErrImagePull'"},
        /* One that runs beside the others counts with them. */
        {POD(INIT, "'phase':'Running','initContainerStatuses':[{'name':'i','restartCount':4,"
                   "'state':{'terminated':{'exitCode':0}}},{'name':'s','restartCount':1,'started':"
                   "true,'ready':true,'state':{'running':{}}}],'containerStatuses':[{'ready':true,"
                   "'state':{'running':{}}}]"),
         "'cells':['p','2/3','Running','1'"},
    };
    check_all(rows, VG_ARRAY_LEN(rows));
}

static void a_pod_that_goes_and_one_that_is_done(void **state)
{
    (void)state;
#define GOING(status)                                                                              \
    "", "v1", "pods",                                                                              \
        "{'metadata':{'name':'p','deletionTimestamp':'" MIDNIGHT "'},'spec':{" TWO                 \
        "},'status':{" status "}}"
    static const struct row rows[] = {
        {GOING("'phase':'Running'"),
         "'cells':['p','0/2','Terminating','0','\\u003cunknown\\u003e'"},
        {GOING("'phase':'Running','reason':'NodeLost'"), "'cells':['p','0/2','Unknown'"},
        {GOING("'phase':'Succeeded','podIPs':[{'ip':'10.0.0.1'},{'ip':'::1'}]"),
         "'cells':['p','0/2','Succeeded','0','\\u003cunknown\\u003e','10.0.0.1',"
         "'\\u003cnone\\u003e','\\u003cnone\\u003e','\\u003cnone\\u003e'],'conditions':[{'type':"
         "'Completed','status':'True','reason':'Succeeded','message':"},
    };
    check_all(rows, VG_ARRAY_LEN(rows));
}

/* ---- others ---- */

static void workloads(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"batch", "v1", "jobs",
         "{'metadata':{'name':'j'},'spec':{'parallelism':3},'status':{'succeeded':1,'startTime':"
         "'" MIDNIGHT "','conditions':[{'type':'Suspended','status':'True'}]}}",
         "'cells':['j','Suspended','1/1 of 3','60m'"},
        {"batch", "v1", "jobs",
         "{'metadata':{'name':'j','deletionTimestamp':'" MIDNIGHT "'},'spec':{'completions':2},"
         "'status':{'conditions':[{'type':'Complete','status':'False'}]}}",
         "'cells':['j','Terminating','0/2',''"},
        {"apps", "v1", "deployments",
         "{'metadata':{'name':'d'},'spec':{'replicas':2,'selector':{'matchExpressions':[{'key':'z',"
         "'operator':'NotIn','values':['b','a']},{'key':'a','operator':'DoesNotExist'}],"
         "'matchLabels':{'k':'v'}}},'status':{'updatedReplicas':1}}",
         "'cells':['d','0/2',1,0,'\\u003cunknown\\u003e','','','!a,k=v,z notin (a,b)']"},
        {"apps", "v1", "controllerrevisions",
         "{'metadata':{'name':'r','ownerReferences':[{'apiVersion':'apps/v1','kind':'DaemonSet',"
         "'name':'x'},{'apiVersion':'apps/v1','kind':'StatefulSet','name':'y','controller':true}]},"
         "'revision':7}",
         "'cells':['r','statefulset.apps/y',7"},
        {"autoscaling", "v1", "horizontalpodautoscalers",
         "{'metadata':{'name':'h'},'spec':{'scaleTargetRef':{'kind':'D','name':'d'},'maxReplicas':"
         "3,"
         "'metrics':[{'type':'Pods','pods':{'target':{'averageValue':'5'}}},{'type':'Object',"
         "'object':{'target':{'averageValue':'7'}}},{'type':'External'}]},'status':{"
         "'currentMetrics':[{'type':'Pods','pods':{'current':{'averageValue':'4'}}}]}}",
         "'cells':['h','D/d','4/5, \\u003cunknown\\u003e/7 (avg) + 1 more...',"
         "'\\u003cunset\\u003e',3,0"},
    };
    check_all(rows, VG_ARRAY_LEN(rows));
}

static void services_and_endpoints(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"", "v1", "services",
         "{'metadata':{'name':'s'},'spec':{'type':'LoadBalancer','clusterIPs':['10.0.0.1','::1'],"
         "'ports':[{'port':80,'nodePort':30080,'protocol':'TCP'},{'port':53,'protocol':'UDP'}]}}",
         "'cells':['s','LoadBalancer','10.0.0.1','\\u003cpending\\u003e','80:30080/TCP,53/UDP'"},
        {"", "v1", "services",
         "{'metadata':{'name':'s'},'spec':{'type':'LoadBalancer'},'status':{'loadBalancer':{"
         "'ingress':[{'ip':'2.2.2.2'},{'hostname':'b'},{'ip':'1.1.1.1'},{'ip':'2.2.2.2'}]}}}",
         "'cells':['s','LoadBalancer','\\u003cnone\\u003e','1.1.1.1,2.2.2.2,b','\\u003cnone"},
        {"", "v1", "endpoints",
         "{'metadata':{'name':'e'},'subsets':[{'addresses':[{'ip':'::1'},{'ip':'1.1.1.1'}],"
         "'ports':[{'port':1},{'port':2}]}]}",
         "'cells':['e','[::1]:1,1.1.1.1:1,[::1]:2 + 1 more...'"},
        {"", "v1", "endpoints",
         "{'metadata':{'name':'e'},'subsets':[{'addresses':[{'ip':'::1'}]}]}",
         "'cells':['e','::1'"},
        {"networking.k8s.io", "v1", "ingresses",
         "{'metadata':{'name':'i'},'spec':{'rules':[{'host':'a'},{},{'host':'b'},{'host':'c'},"
         "{'host':'d'}]}}",
         "'cells':['i','\\u003cnone\\u003e','a,b,c + 2 more...'"},
        {"discovery.k8s.io", "v1", "endpointslices",
         "{'metadata':{'name':'s'},'addressType':'IPv4','ports':[{},{'port':1},{'name':'n'},"
         "{'port':2}],'endpoints':[{'addresses':['1','2']},{'addresses':['3','4','5']}]}",
         "'cells':['s','IPv4','*,1,n + 1 more...','1,2,3 + 2 more...'"},
    };
    check_all(rows, VG_ARRAY_LEN(rows));
}

static void nodes_volumes_and_events(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"", "v1", "nodes",
         "{'metadata':{'name':'n','labels':{'node-role.kubernetes.io/z':'','kubernetes.io/role':"
         "'a','node-role.kubernetes.io/':''}},'status':{'conditions':[{'type':'Ready','status':"
         "'Unknown'}]}}",
         "'cells':['n','NotReady','a,z'"},
        {"", "v1", "persistentvolumeclaims",
         "{'metadata':{'name':'c','annotations':{'volume.beta.kubernetes.io/storage-class':'old'}},"
         "'spec':{'volumeName':'v','storageClassName':'new','volumeAttributesClassName':''},"
         "'status':{'phase':'Bound','accessModes':['ReadWriteOncePod','ReadWriteOnce',"
         "'ReadWriteOnce']}}",
         "'cells':['c','Bound','v','0','RWO,RWOP','old',''"},
        {"", "v1", "events",
         "{'metadata':{'name':'e'},'involvedObject':{'kind':'Pod'},'eventTime':"
         "'2026-01-01T00:59:50.500000Z','message':' spaces \\n','reportingComponent':'k'}",
         "'cells':['9s','','','pod','','k','spaces','9s',1,'e']"},
        {"", "v1", "services",
         "{'metadata':{'name':'s'},'spec':{'type':'ClusterIP','selector':{'a':'1','a-b':'2','ab':"
         "'3'}}}",
         "'cells':['s','ClusterIP','\\u003cnone\\u003e','\\u003cnone\\u003e','\\u003cnone\\u003e',"
         "'\\u003cunknown\\u003e','a-b=2,a=1,ab=3']"},
        {"storage.k8s.io", "v1", "storageclasses",
         "{'metadata':{'name':'s','annotations':{'storageclass.kubernetes.io/is-default-class':"
         "'true'}},'provisioner':'p'}",
         "'cells':['s (default)','p','Delete','Immediate',false"},
        {"", "v1", "resourcequotas",
         "{'metadata':{'name':'q'},'status':{'hard':{'pods':'4','limits.cpu':'1','cpu':'2'},"
         "'used':{'cpu':'500m'}}}",
         "'cells':['q','cpu: 500m/2, pods: 0/4','limits.cpu: 0/1'"},
    };
    check_all(rows, VG_ARRAY_LEN(rows));
}

/* Every kind has columns, and a row of nothing at all. */
static void an_empty_object_has_a_row(void **state)
{
    (void)state;
    size_t n;
    const struct vg_kind *kinds = vg_kinds(&n);
    for (size_t i = 0; i < n; i++) {
        static const char *const objects[] = {"{}", "{'metadata':3,'spec':[],'status':'x'}", "7"};
        for (size_t k = 0; k < VG_ARRAY_LEN(objects); k++) {
            struct row r = {kinds[i].group, kinds[i].version, kinds[i].resource, objects[k],
                            "'cells':["};
            check(&r);
        }
        VG_AUTO(buf) out = {0};
        assert_int_equal(vg_columns_define(&kinds[i].columns, &out), 0);
        assert_true(kinds[i].columns.n > 0 && out.n > 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_in_a_word),
        cmocka_unit_test(init_containers_come_first),
        cmocka_unit_test(a_pod_that_goes_and_one_that_is_done),
        cmocka_unit_test(workloads),
        cmocka_unit_test(services_and_endpoints),
        cmocka_unit_test(nodes_volumes_and_events),
        cmocka_unit_test(an_empty_object_has_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
