/* api_write_test.c - POST, PUT and PATCH over real sockets, on the engine named by the first
 * argument. */
#include "write_world.h"

/* ---- create ---- */

static void create_stamps_and_wipes(void **state)
{
    (void)state;
    post(CONFIGS,
         "{\"metadata\":{\"name\":\"a\",\"uid\":\"mine\",\"creationTimestamp\":\"2001-01-01T00:00:"
         "00Z\","
         "\"deletionTimestamp\":\"2001-01-01T00:00:00Z\",\"selfLink\":\"x\","
         "\"labels\":{\"z\":\"1\",\"b\":null}},\"data\":{\"k\":\"v\"}}",
         201);
    expect("/kind", "ConfigMap");
    expect("/apiVersion", "v1");
    expect("/metadata/namespace", "ns");
    expect("/metadata/deletionTimestamp", "");
    expect("/metadata/labels/b", "");
    assert_int_equal(strlen(at("/metadata/uid")), 36);
    assert_int_equal(at("/metadata/uid")[14], '4');
    assert_int_not_equal(strncmp(at("/metadata/creationTimestamp"), "2001", 4), 0);
    unsigned long long before = rev();
    get(CONFIGS "/a", 200);
    assert_int_equal(rev(), before);
    post(CONFIGS, "{\"metadata\":{\"name\":\"a\"}}", 409);
    expect("/message", "configmaps \"a\" already exists");
}

static void names_are_generated(void **state)
{
    (void)state;
    post(CONFIGS, "{\"metadata\":{\"generateName\":\"web-\"}}", 201);
    assert_int_equal(strlen(at("/metadata/name")), 9);
    expect("/metadata/generateName", "web-");
    char body[256], prefix[101];
    memset(prefix, 'x', 100);
    prefix[100] = '\0';
    snprintf(body, sizeof body, "{\"metadata\":{\"generateName\":\"%s\"}}", prefix);
    post(CONFIGS, body, 201);
    assert_int_equal(strlen(at("/metadata/name")), 63);
}

static void status_and_generation_begin_as_the_kind_says(void **state)
{
    (void)state;
    post(DEPLOYMENTS,
         "{\"metadata\":{\"name\":\"d\",\"generation\":7},\"spec\":{\"replicas\":2," PODS_OF_IT "},"
         "\"status\":{\"replicas\":9}}",
         201);
    expect("/metadata/generation", "1");
    expect("/status/replicas", "");
    post("/api/v1/nodes", "{\"metadata\":{\"name\":\"n\"},\"status\":{\"phase\":\"x\"}}", 201);
    expect("/status/phase", "x");
    post(PODS, "{\"metadata\":{\"name\":\"p\"},\"spec\":{" CONTAINERS "}}", 201);
    expect("/status/phase", "Pending");
    expect("/metadata/generation", "1");
}

static void dry_runs_write_nothing(void **state)
{
    (void)state;
    post(CONFIGS "?dryRun=All", "{\"metadata\":{\"name\":\"a\"}}", 201);
    expect("/metadata/resourceVersion", "");
    get(CONFIGS "/a", 404);
    post(CONFIGS, "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"1\"}}", 201);
    unsigned long long before = rev();
    post(CONFIGS "?dryRun=All", "{\"metadata\":{\"name\":\"a\"}}", 409);
    patch(CONFIGS "/a?dryRun=All", "{\"data\":{\"k\":\"2\"}}", 200);
    expect("/data/k", "2");
    assert_int_equal(rev(), before);
    erase(CONFIGS "/a?dryRun=All", NULL, 200);
    erase(CONFIGS "?dryRun=All", NULL, 200);
    get(CONFIGS "/a", 200);
    assert_int_equal(rev(), before);
    expect("/data/k", "1");
}

static void namespaces_must_be_there_and_stay(void **state)
{
    (void)state;
    post("/api/v1/namespaces/other/configmaps", "{\"metadata\":{\"name\":\"a\"}}", 404);
    expect("/message", "namespaces \"other\" not found");
    /* Made a moment ago: the cache need not know it yet. */
    for (int i = 0; i < 20; i++) {
        char body[128], target[128];
        snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"fresh-%d\"}}", i);
        post("/api/v1/namespaces", body, 201);
        snprintf(target, sizeof target, "/api/v1/namespaces/fresh-%d/configmaps", i);
        post(target, "{\"metadata\":{\"name\":\"a\"}}", 201);
    }
    erase("/api/v1/namespaces/ns", NULL, 200);
    expect("/status/phase", "Terminating");
    expect("/spec/finalizers/0", "kubernetes");
    post(CONFIGS, "{\"metadata\":{\"name\":\"a\"}}", 403);
    expect("/message",
           "configmaps \"a\" is forbidden: unable to create new content in namespace ns "
           "because it is being terminated");
    expect("/details/causes/0/reason", "NamespaceTerminating");
    erase("/api/v1/namespaces/ns", NULL, 200);
    put("/api/v1/namespaces/ns/finalize",
        "{\"metadata\":{\"name\":\"ns\"},\"spec\":{\"finalizers\":[\"kubernetes\",\"x.io/a\"]}}",
        200);
    put("/api/v1/namespaces/ns/finalize",
        "{\"metadata\":{\"name\":\"ns\"},\"spec\":{\"finalizers\":[\"x.io/a\",\"bad one\"]}}", 422);
    expect("/details/causes/0/field", "spec.finalizers[1]");
    expect("/details/causes/1/message",
           "Invalid value: \"bad one\": name is neither a standard finalizer name nor is it fully "
           "qualified");
    put("/api/v1/namespaces/ns/finalize", "{\"metadata\":{\"name\":\"ns\"},\"spec\":{}}", 200);
    get("/api/v1/namespaces/ns", 404);
    erase("/api/v1/namespaces/default", NULL, 403);
    expect("/message", "namespaces \"default\" is forbidden: this namespace may not be deleted");
}

/* ---- update ---- */

static void updates_keep_what_is_the_servers(void **state)
{
    (void)state;
    post(DEPLOYMENTS, "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":2," PODS_OF_IT "}}",
         201);
    char uid[40];
    snprintf(uid, sizeof uid, "%s", at("/metadata/uid"));
    put(DEPLOYMENTS "/d",
        "{\"metadata\":{\"name\":\"d\",\"generation\":50},\"spec\":{\"replicas\":3," PODS_OF_IT "},"
        "\"status\":{\"replicas\":3}}",
        200);
    expect("/metadata/uid", uid);
    expect("/metadata/generation", "2");
    expect("/status/replicas", "");
    put(DEPLOYMENTS "/d/status",
        "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":9},\"status\":{\"replicas\":3}}",
        200);
    expect("/metadata/generation", "2");
    expect("/spec/replicas", "3");
    expect("/status/replicas", "3");
    patch(DEPLOYMENTS "/d", "{\"metadata\":{\"annotations\":{\"a\":\"b\"}}}", 200);
    expect("/metadata/generation", "3");
    patch(DEPLOYMENTS "/d", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}", 200);
    expect("/metadata/generation", "3");
    put(DEPLOYMENTS "/d", "{\"metadata\":{\"name\":\"e\"}}", 400);
    put(DEPLOYMENTS "/d", "{\"metadata\":{\"name\":\"d\",\"uid\":\"x\"}}", 409);
}

static void what_changes_nothing_writes_nothing(void **state)
{
    (void)state;
    post(CONFIGS,
         "{\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":\"1\",\"y\":\"2\"}},"
         "\"data\":{\"k\":\"v\",\"l\":\"w\"}}",
         201);
    unsigned long long before = rev();
    put(CONFIGS "/a",
        "{\"data\":{\"l\":\"w\",\"k\":\"v\"},\"metadata\":{\"labels\":{\"y\":\"2\",\"x\":"
        "\"1\"},\"annotations\":{},\"name\":\"a\"}}",
        200);
    assert_int_equal(rev(), before);
    patch(CONFIGS "/a", "{\"data\":{\"k\":\"v\"}}", 200);
    assert_int_equal(rev(), before);
    patch(CONFIGS "/a", "{\"data\":{\"k\":\"u\"}}", 200);
    expect_events(CONFIGS, before, "MODIFIED a");
}

static void stale_revisions_conflict(void **state)
{
    (void)state;
    char body[160];
    post(CONFIGS, "{\"metadata\":{\"name\":\"a\"}}", 201);
    unsigned long long first = rev();
    for (int i = 0; i < 10; i++) { /* each right after the last: the cache may be behind */
        snprintf(
            body, sizeof body,
            "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"%llu\"},\"data\":{\"i\":\"%d\"}}",
            rev(), i);
        put(CONFIGS "/a", body, 200);
    }
    snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"%llu\"}}",
             first);
    put(CONFIGS "/a", body, 409);
    patch(CONFIGS "/a", body, 409);
    put("/apis/coordination.k8s.io/v1/namespaces/ns/leases/l", "{\"metadata\":{\"name\":\"l\"}}",
        201);
    put("/apis/coordination.k8s.io/v1/namespaces/ns/leases/l", "{\"metadata\":{\"name\":\"l\"}}",
        422);
    put(CONFIGS "/none", "{\"metadata\":{\"name\":\"none\"}}", 404);
}

static void last_finalizer_deletes(void **state)
{
    (void)state;
    post(CONFIGS, "{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"x.io/a\",\"x.io/b\"]}}", 201);
    unsigned long long first = rev();
    erase(CONFIGS "/a", NULL, 200);
    expect("/kind", "ConfigMap");
    expect("/metadata/deletionGracePeriodSeconds", "0");
    unsigned long long marked = rev();
    erase(CONFIGS "/a", NULL, 200);
    assert_int_equal(rev(), marked);
    patch(CONFIGS "/a", "{\"metadata\":{\"finalizers\":[\"x.io/a\",\"x.io/c\"]}}", 422);
    patch(CONFIGS "/a", "{\"metadata\":{\"finalizers\":[\"x.io/b\"]}}", 200);
    unsigned long long held = rev();
    patch(CONFIGS "/a", "{\"metadata\":{\"finalizers\":null}}", 200);
    expect("/metadata/finalizers/0", "");
    assert_int_equal(rev(), held);
    get(CONFIGS "/a", 404);
    expect_events(CONFIGS, first, "MODIFIED a held, MODIFIED a held, DELETED a held");
}

/* ---- patch ---- */

enum { THREADS = 4 };

static void patch_many(unsigned index, void *arg)
{
    int *status = arg;
    struct vg_reply r = {0};
    for (unsigned i = 0; i < 20; i++) {
        char body[64];
        snprintf(body, sizeof body, "{\"data\":{\"k%u\":\"v\"}}", index * 100 + i);
        vg_adrv_request(&d, "PATCH", CONFIGS "/a", MERGE, body, &r);
        if (r.status != 200)
            status[index] = r.status;
    }
    vg_reply_done(&r);
}

static void patches_of_one_object_never_conflict(void **state)
{
    (void)state;
    int status[THREADS] = {0}; /* that was not 200 */
    post(CONFIGS, "{\"metadata\":{\"name\":\"a\"},\"data\":{}}", 201);
    vg_test_threads(THREADS, patch_many, status);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(status[i], 0);
    get(CONFIGS "/a", 200);
    assert_int_equal(vg_json_get_str(root, "data")->n, THREADS * 20);
}

static void patch_types(void **state)
{
    (void)state;
    post(DEPLOYMENTS,
         "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"selector\":{\"matchLabels\":{\"a\":\"b\"}},"
         "\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":["
         "{\"name\":\"a\",\"image\":\"1\"},{\"name\":\"b\",\"image\":\"1\"}]}}}}",
         201);
    ask("PATCH", DEPLOYMENTS "/d", "Content-Type: application/strategic-merge-patch+json\r\n",
        "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"b\",\"image\":\"2\"}]}}}}");
    expect_status(200);
    expect("/spec/template/spec/containers/0/image", "1");
    expect("/spec/template/spec/containers/1/image", "2");
    ask("PATCH", DEPLOYMENTS "/d", "Content-Type: application/json-patch+json\r\n",
        "[{\"op\":\"test\",\"path\":\"/metadata/name\",\"value\":\"d\"},"
        "{\"op\":\"remove\",\"path\":\"/spec/template/spec/containers/0\"}]");
    expect_status(200);
    expect("/spec/template/spec/containers/0/name", "b");
    ask("PATCH", DEPLOYMENTS "/d", "Content-Type: application/json-patch+json\r\n",
        "[{\"op\":\"test\",\"path\":\"/metadata/name\",\"value\":\"e\"}]");
    expect_status(422);
    ask("PATCH", DEPLOYMENTS "/d?fieldManager=x", "Content-Type: application/apply-patch+yaml\r\n",
        "{}");
    expect_status(400); /* a configuration names its type */
    patch(DEPLOYMENTS "/none", "{}", 404);
}

static void string_data_goes_into_data(void **state)
{
    (void)state;
    post("/api/v1/namespaces/ns/secrets",
         "{\"metadata\":{\"name\":\"s\"},\"data\":{\"a\":\"MQ==\",\"b\":\"Mg==\"},"
         "\"stringData\":{\"b\":\"two\",\"c\":\"\",\"d\":\"x\\n\"}}",
         201);
    expect("/data/a", "MQ==");
    expect("/data/b", "dHdv");
    expect("/data/d", "eAo=");
    assert_null(vg_json_get_str(root, "stringData"));
    patch("/api/v1/namespaces/ns/secrets/s", "{\"stringData\":{\"a\":\"12345\"}}", 200);
    expect("/data/a", "MTIzNDU=");
    assert_null(vg_json_get_str(root, "stringData"));
}

/* ---- subresources ---- */

static void pods_are_bound_once(void **state)
{
    (void)state;
    static const char binding[] = "{\"metadata\":{\"name\":\"p\",\"annotations\":{\"by\":\"s\"}},"
                                  "\"target\":{\"kind\":\"Node\",\"name\":\"n1\"}}";
    post(PODS, "{\"metadata\":{\"name\":\"p\"},\"spec\":{" CONTAINERS "}}", 201);
    post(PODS "/p/binding", binding, 201);
    expect("/status", "Success");
    expect("/code", "201");
    get(PODS "/p", 200);
    expect("/spec/nodeName", "n1");
    expect("/metadata/annotations/by", "s");
    expect("/metadata/generation", "1");
    expect("/status/conditions/0/type", "PodScheduled");
    post(PODS "/p/binding", binding, 409);
    expect("/message", "Operation cannot be fulfilled on pods/binding \"p\": pod p is already "
                       "assigned to node \"n1\"");
    post("/api/v1/namespaces/ns/bindings",
         "{\"metadata\":{\"name\":\"none\"},\"target\":{\"name\":\"n1\"}}", 404);
}

static void replicas_are_scaled(void **state)
{
    (void)state;
    post(DEPLOYMENTS,
         "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":2,\"selector\":{\"matchLabels\":"
         "{\"b\":\"1\",\"a\":\"2\"},\"matchExpressions\":[{\"key\":\"c\",\"operator\":\"In\","
         "\"values\":[\"y\",\"x\"]}]},\"template\":{\"metadata\":{\"labels\":{\"a\":\"2\",\"b\":"
         "\"1\",\"c\":\"x\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}",
         201);
    get(DEPLOYMENTS "/d/scale", 200);
    expect("/kind", "Scale");
    expect("/spec/replicas", "2");
    expect("/status/selector", "a=2,b=1,c in (x,y)");
    put(DEPLOYMENTS "/d/scale", "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":5}}", 200);
    expect("/spec/replicas", "5");
    patch(DEPLOYMENTS "/d/scale", "{\"spec\":{\"replicas\":6}}", 200);
    expect("/spec/replicas", "6");
    get(DEPLOYMENTS "/d", 200);
    expect("/spec/replicas", "6");
    expect("/metadata/generation", "3");
    patch(DEPLOYMENTS "/d/scale", "{\"spec\":{\"replicas\":-1}}", 422);
}

/* ---- bodies ---- */

static void yaml_bodies_are_read(void **state)
{
    (void)state;
    ask("POST", CONFIGS "?fieldValidation=Warn", "Content-Type: application/yaml\r\n",
        "kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: y\ndata:\n  k: \"1\"\n  k: \"2\"\n");
    expect_status(400); /* y is true */
    ask("POST", CONFIGS, "Content-Type: application/yaml\r\n",
        "kind: ConfigMap\nmetadata:\n  name: yy\ndata:\n  k: \"1\"\n  k: \"2\"\n");
    expect_status(201);
    expect("/data/k", "2");
    assert_string_equal(vg_reply_field(&reply, "Warning"),
                        "299 - \"line 6: key \\\"k\\\" already set in map\"");
    ask("POST", CONFIGS, "Content-Type: application/vnd.kubernetes.protobuf\r\n", "k8s");
    expect_status(400);
    assert_non_null(strstr(reply.body.p, "does not appear to be a protobuf message"));
    ask("POST", CONFIGS, "Content-Type: text/plain\r\n", "{}");
    expect_status(415);
    assert_non_null(strstr(reply.body.p, "application/vnd.kubernetes.protobuf"));
}

/* Clients give up on header lines of 64 KiB. */
static void warnings_have_a_cap(void **state)
{
    (void)state;
    VG_AUTO(buf) body = {0};
    const char *owner = "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"x\",\"uid\":";
    int r = vg_buf_printf(&body, "{\"metadata\":{\"name\":\"w\",\"ownerReferences\":[");
    for (int i = 0; i < 4000 && r == 0; i++)
        r = vg_buf_printf(&body, "%s%s\"owner-number-%d\"}", i ? "," : "", owner, i / 2);
    assert_int_equal(r, 0);
    assert_int_equal(vg_buf_printf(&body, "]}}%c", 0), 0);
    post(CONFIGS, body.p, 201);
    assert_int_equal(strlen(vg_reply_field(&reply, "Warning")), strlen("299 - \"\"") + 256);
}

/* A client that leaves while its write is under way costs nothing and hurts nobody. */
static void clients_may_leave(void **state)
{
    (void)state;
    post(CONFIGS, "{\"metadata\":{\"name\":\"a\"}}", 201);
    for (int i = 0; i < 50; i++) {
        char body[96];
        snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"l-%d\"}}", i);
        vg_adrv_shoot(&d, "POST", CONFIGS, JSON, body);
        vg_adrv_shoot(&d, "PATCH", CONFIGS "/a", MERGE, "{\"data\":{\"k\":\"v\"}}");
        vg_adrv_shoot(&d, "DELETE", CONFIGS "?labelSelector=none", NULL, NULL);
    }
    get(CONFIGS "/a", 200);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        IN_NAMESPACE(create_stamps_and_wipes),
        IN_NAMESPACE(names_are_generated),
        IN_NAMESPACE(status_and_generation_begin_as_the_kind_says),
        IN_NAMESPACE(dry_runs_write_nothing),
        IN_NAMESPACE(namespaces_must_be_there_and_stay),
        IN_NAMESPACE(updates_keep_what_is_the_servers),
        IN_NAMESPACE(what_changes_nothing_writes_nothing),
        IN_NAMESPACE(stale_revisions_conflict),
        IN_NAMESPACE(last_finalizer_deletes),
        IN_NAMESPACE(patches_of_one_object_never_conflict),
        IN_NAMESPACE(patch_types),
        IN_NAMESPACE(string_data_goes_into_data),
        IN_NAMESPACE(pods_are_bound_once),
        IN_NAMESPACE(replicas_are_scaled),
        IN_NAMESPACE(yaml_bodies_are_read),
        IN_NAMESPACE(warnings_have_a_cap),
        IN_NAMESPACE(clients_may_leave),
    };
    return RUN_ON_ENGINE(argc, argv, tests);
}
