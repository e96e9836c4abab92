/* api_delete_test.c - DELETE of objects and of collections over real sockets, on the engine named
 * by the first argument. */
#include "server/api/api_int.h"
#include "write_world.h"

static void deletes_answer_as_the_kind_says(void **state)
{
    (void)state;
    char body[128];
    post(CONFIGS, "{\"metadata\":{\"name\":\"a\"}}", 201);
    snprintf(body, sizeof body, "{\"preconditions\":{\"uid\":\"%s\",\"resourceVersion\":\"1\"}}",
             at("/metadata/uid"));
    erase(CONFIGS "/a", body, 409);
    erase(CONFIGS "/a", "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\"}", 200);
    expect("/kind", "Status");
    expect("/status", "Success");
    expect("/details/kind", "configmaps");
    expect("/code", "");
    erase(CONFIGS "/a", NULL, 404);
    post("/api/v1/namespaces/ns/serviceaccounts", "{\"metadata\":{\"name\":\"s\"}}", 201);
    erase("/api/v1/namespaces/ns/serviceaccounts/s", NULL, 200);
    expect("/kind", "ServiceAccount");
}

static void propagation_adds_finalizers(void **state)
{
    (void)state;
    post(DEPLOYMENTS, "{\"metadata\":{\"name\":\"d\"},\"spec\":{" PODS_OF_IT "}}", 201);
    erase(DEPLOYMENTS "/d?propagationPolicy=Foreground", NULL, 200);
    expect("/metadata/finalizers/0", "foregroundDeletion");
    expect("/metadata/generation", "2");
    post(DEPLOYMENTS, "{\"metadata\":{\"name\":\"e\"},\"spec\":{" PODS_OF_IT "}}", 201);
    erase(DEPLOYMENTS "/e", "{\"orphanDependents\":true}", 200);
    expect("/metadata/finalizers/0", "orphan");
    post("/apis/batch/v1/namespaces/ns/jobs",
         "{\"metadata\":{\"name\":\"j\"},\"spec\":{\"template\":{\"spec\":{\"restartPolicy\":"
         "\"Never\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}",
         201);
    erase("/apis/batch/v1/namespaces/ns/jobs/j", NULL, 200);
    expect("/metadata/finalizers/0", "orphan");
    assert_non_null(vg_reply_field(&reply, "Warning"));
    post(CONFIGS, "{\"metadata\":{\"name\":\"h\",\"finalizers\":[\"x.io/a\"]}}", 201);
    erase(CONFIGS "/h?orphanDependents=false", NULL, 202);
}

static void pods_go_gracefully(void **state)
{
    (void)state;
    post(PODS, "{\"metadata\":{\"name\":\"u\"},\"spec\":{" CONTAINERS "}}", 201);
    unsigned long long first = rev();
    erase(PODS "/u", NULL, 200);
    expect("/kind", "Pod");
    expect("/metadata/deletionGracePeriodSeconds", "0");
    expect("/metadata/generation", "2");
    assert_true(rev() >= first + 2);
    get(PODS "/u", 404);
    expect_events(PODS, first, "MODIFIED u, DELETED u");

    post(PODS, "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"nodeName\":\"n\"," CONTAINERS "}}", 201);
    erase(PODS "/p", NULL, 200);
    expect("/metadata/deletionGracePeriodSeconds", "30");
    unsigned long long marked = rev();
    erase(PODS "/p?gracePeriodSeconds=60", NULL, 200);
    assert_int_equal(rev(), marked);
    erase(PODS "/p?gracePeriodSeconds=5", NULL, 200);
    expect("/metadata/deletionGracePeriodSeconds", "5");
    get(PODS "/p", 200);
    erase(PODS "/p?gracePeriodSeconds=0", NULL, 200);
    get(PODS "/p", 404);
}

enum { THREADS = 4 };

static void make_and_delete(unsigned index, void *arg)
{
    int *status = arg;
    struct vg_reply r = {0};
    for (int i = 0; i < 60; i++) {
        vg_adrv_request(&d, "POST", PODS, JSON,
                        "{\"metadata\":{\"name\":\"r\"},\"spec\":{" CONTAINERS "}}", &r);
        if (r.status != 201 && r.status != 409)
            status[index] = r.status;
        vg_adrv_request(&d, "DELETE", index % 2 ? PODS "/r" : PODS, NULL, NULL, &r);
        if (r.status != 200 && r.status != 404)
            status[index] = r.status;
    }
    vg_reply_done(&r);
}

/* Views of the cache that are a moment old meet deletes in two steps. */
static void deletes_may_race(void **state)
{
    (void)state;
    int status[THREADS] = {0}; /* that should not have been */
    vg_test_threads(THREADS, make_and_delete, status);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(status[i], 0);
    erase(PODS, NULL, 200);
    get(PODS "/r", 404);
}

static void collections_go_by_selector(void **state)
{
    (void)state;
    char body[128];
    for (int i = 0; i < 100; i++) {
        snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"c-%d\",\"labels\":{\"n\":\"%d\"}}}",
                 i, i % 2);
        post(CONFIGS, body, 201);
    }
    erase(CONFIGS "?labelSelector=n%3D1", NULL, 200);
    expect("/kind", "ConfigMapList");
    assert_int_equal(vg_json_get_str(root, "items")->n, 50);
    get(CONFIGS, 200);
    assert_int_equal(vg_json_get_str(root, "items")->n, 50);
    erase(CONFIGS "?limit=3", NULL, 200);
    assert_int_equal(vg_json_get_str(root, "items")->n, 3);
    erase(CONFIGS, NULL, 200);
    get(CONFIGS, 200);
    assert_int_equal(vg_json_get_str(root, "items")->n, 0);
    /* What is served without a cache. */
    post("/api/v1/namespaces/ns/events",
         "{\"metadata\":{\"name\":\"e\"},\"involvedObject\":{\"namespace\":\"ns\"}}", 201);
    patch("/api/v1/namespaces/ns/events/e", "{\"message\":\"m\"}", 200);
    erase("/api/v1/namespaces/ns/events", NULL, 200);
    assert_int_equal(vg_json_get_str(root, "items")->n, 1);
    get("/api/v1/namespaces/ns/events/e", 404);
}

/* Counts what a serving loop allocates in each of its turns, as a measure of its work. */
struct meter {
    struct vg_mail mail;
    struct vg_loop *loop;
    uint64_t most;
    bool is_on;
};

static void measure(struct vg_mail *mail)
{
    struct meter *m = VG_CONTAINER_OF(mail, struct meter, mail);
    uint64_t n = vg_alloc_fail_at(UINT64_MAX, 0);
    m->most = VG_MAX(m->most, n);
    if (m->is_on)
        vg_loop_post(m->loop, &m->mail);
    else
        (void)vg_alloc_fail_at(0, 0);
}

static void switch_meter(struct vg_api_loop *l, void *arg)
{
    struct meter *m = arg;
    m->loop = l->loop;
    m->is_on = !m->is_on;
    m->mail.run = measure;
    (void)vg_alloc_fail_at(UINT64_MAX, 0);
    if (m->is_on)
        vg_loop_post(l->loop, &m->mail);
}

static void nothing(struct vg_api_loop *l, void *arg)
{
    (void)l;
    (void)arg;
}

/* Others have their turn while a large collection goes, or seems to. */
static void collections_go_in_turns(void **state)
{
    (void)state;
    enum { OBJECTS = 5000 };
    struct meter m[2] = {0}; /* of each loop */
    char name[32];
    for (int i = 0; i < OBJECTS; i++) {
        snprintf(name, sizeof name, "turn-%d", i);
        (void)vg_adrv_config(&d, "ns", name, "v");
    }
    for (size_t i = 0; i < 2; i++)
        vg_adrv_call(&d, i, switch_meter, &m[i]);
    erase(CONFIGS "?dryRun=All", NULL, 200);
    assert_int_equal(vg_json_get_str(root, "items")->n, OBJECTS);
    for (size_t i = 0; i < 2; i++) {
        vg_adrv_call(&d, i, switch_meter, &m[i]);
        vg_adrv_call(&d, i, nothing, NULL); /* the last measurement is over */
    }
    assert_in_range(VG_MAX(m[0].most, m[1].most), 1, OBJECTS / 4);
    erase(CONFIGS "?limit=4500", NULL, 200);
    assert_int_equal(vg_json_get_str(root, "items")->n, 4500);
    erase(CONFIGS, NULL, 200);
    assert_int_equal(vg_json_get_str(root, "items")->n, OBJECTS - 4500);
    get(CONFIGS, 200);
    assert_int_equal(vg_json_get_str(root, "items")->n, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        IN_NAMESPACE(deletes_answer_as_the_kind_says),
        IN_NAMESPACE(propagation_adds_finalizers),
        IN_NAMESPACE(pods_go_gracefully),
        IN_NAMESPACE(deletes_may_race),
        IN_NAMESPACE(collections_go_by_selector),
        IN_NAMESPACE(collections_go_in_turns),
    };
    return RUN_ON_ENGINE(argc, argv, tests);
}
