/* api_memory_test.c - each allocation of the serving loop fails once, in the middle of every kind
 * of request. The client gets an answer, an error or a cut connection; the server goes on, loses
 * nothing and leaks nothing (ASan). */
#include <stdio.h>
#include <string.h>

#include "engine_world.h"
#include "server/api/admission.h"

struct fault {
    uint64_t n;     /* which allocation shall fail */
    uint64_t count; /* how many there were */
};

static void set_fault(struct vg_api_loop *l, void *arg)
{
    struct fault *f = arg;
    (void)l;
    f->count = vg_alloc_fail_at(f->n, 0);
}

/* Made with `n` failing; true: there were fewer allocations than that. */
static bool try_request(const char *method, const char *target, const char *headers,
                        const char *body, uint64_t n)
{
    struct vg_reply r = {0};
    struct fault f = {.n = n};
    vg_adrv_call(&d, 0, set_fault, &f);
    bool has_head = vg_adrv_try(&d, method, target, headers, body, &r);
    f.n = 0;
    vg_adrv_call(&d, 0, set_fault, &f);
    if (has_head && !r.is_cut)
        assert_true(r.status == 200 || r.status == 201 || r.status == 409 || r.status >= 500 ||
                    r.status == 431);
    if (f.count < n)
        assert_true(has_head && !r.is_cut && r.status < 500);
    vg_reply_done(&r);
    return f.count < n;
}

static void every_failure_is_survived(const char *method, const char *target, const char *headers,
                                      const char *body)
{
    uint64_t n = 1;
    while (!try_request(method, target, headers, body, n))
        n++;
    print_message("%s %s: %llu allocations\n", method, target, (unsigned long long)n - 1);
}

static void put_pods(void)
{
    char padding[4000], name[16];
    memset(padding, 'x', sizeof padding);
    for (unsigned i = 0; i < 100; i++) {
        VG_AUTO(buf) json = {0};
        snprintf(name, sizeof name, "p-%03u", i);
        assert_int_equal(vg_buf_printf(&json,
                                       "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{"
                                       "\"name\":\"%s\",\"namespace\":\"a\"},\"spec\":{\"pad\":"
                                       "\"%.4000s\"}}%c",
                                       name, padding, '\0'),
                         0);
        vg_adrv_put(&d, "", "pods", "a", name, json.p);
        vg_adrv_put(&d, "", "events", "a", name, json.p);
    }
}

static void reading_survives_every_failed_allocation(void **state)
{
    (void)state;
    open_driver((struct vg_adrv_opts){0});
    put_pods();
    every_failure_is_survived("GET", "/api/v1/namespaces/a/pods/p-001", NULL, NULL);
    every_failure_is_survived("GET", "/api/v1/namespaces/a/pods/p-001?pretty=1", NULL, NULL);
    every_failure_is_survived("GET", "/api/v1/namespaces/a/pods?limit=3", NULL, NULL);
    every_failure_is_survived("GET", "/api/v1/pods?labelSelector=%21x", NULL, NULL);
    every_failure_is_survived("GET", "/api/v1/pods", "Accept-Encoding: gzip\r\n", NULL);
    every_failure_is_survived("GET", "/api/v1/pods?limit=60",
                              "Accept: application/json;as=PartialObjectMetadataList;v=v1;"
                              "g=meta.k8s.io\r\n",
                              NULL);
    every_failure_is_survived("GET", "/api/v1/events?limit=70", NULL, NULL);
    every_failure_is_survived("GET", "/api/v1/pods?watch=1&timeoutSeconds=-1", NULL, NULL);
    vg_adrv_close(&d);
}

/* A watch that has begun; it ends by its time. */
static void watching_survives_every_failed_allocation(void **state)
{
    (void)state;
    open_driver((struct vg_adrv_opts){0});
    put_pods();
    for (uint64_t n = 1, done = 0; !done && n < 200; n++) {
        struct fault f = {.n = n};
        struct vg_stream s;
        vg_adrv_call(&d, 0, set_fault, &f);
        bool is_open = vg_stream_try(&d, "/api/v1/pods?watch=1&allowWatchBookmarks=1", NULL, &s);
        size_t lines = 0;
        while (is_open && s.status == 200 && lines < 101 && vg_stream_line(&s))
            lines++;
        f.n = 0;
        vg_adrv_call(&d, 0, set_fault, &f);
        done = f.count < n;
        if (done)
            assert_int_equal(lines, 101); /* with the bookmark at the end of the state */
        if (is_open)
            vg_stream_close(&s);
    }
    vg_adrv_close(&d);
}

/* What the plugins of admission go by, in the namespace a; the revision of the last. */
static vg_rev put_policies(void)
{
    vg_adrv_put(&d, "", "namespaces", "", "a",
                "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"},"
                "\"spec\":{\"finalizers\":[\"kubernetes\"]},\"status\":{\"phase\":\"Active\"}}");
    vg_adrv_put(&d, "scheduling.k8s.io", "priorityclasses", "", "usual",
                "{\"kind\":\"PriorityClass\",\"apiVersion\":\"scheduling.k8s.io/v1\",\"metadata\":{"
                "\"name\":\"usual\"},\"value\":7,\"globalDefault\":true,"
                "\"preemptionPolicy\":\"Never\"}");
    vg_adrv_put(&d, "", "serviceaccounts", "a", "default",
                "{\"kind\":\"ServiceAccount\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                "\"default\",\"namespace\":\"a\"},\"imagePullSecrets\":[{\"name\":\"p\"}]}");
    vg_adrv_put(&d, "node.k8s.io", "runtimeclasses", "", "vm",
                "{\"kind\":\"RuntimeClass\",\"apiVersion\":\"node.k8s.io/v1\",\"metadata\":{"
                "\"name\":\"vm\"},\"handler\":\"h\",\"overhead\":{\"podFixed\":{\"cpu\":\"1m\"}},"
                "\"scheduling\":{\"nodeSelector\":{\"a\":\"b\"},\"tolerations\":[{\"key\":\"k\","
                "\"operator\":\"Exists\"}]}}");
    vg_adrv_put(&d, "", "limitranges", "a", "l",
                "{\"kind\":\"LimitRange\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"l\","
                "\"namespace\":\"a\"},\"spec\":{\"limits\":[{\"type\":\"Container\",\"default\":{"
                "\"cpu\":\"2m\"},\"defaultRequest\":{\"cpu\":\"1m\"},\"max\":{\"cpu\":\"1\"}},{"
                "\"type\":\"Pod\",\"min\":{\"cpu\":\"1m\"}}]}}");
    return vg_adrv_put(
        &d, "", "resourcequotas", "a", "q",
        "{\"kind\":\"ResourceQuota\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"q\","
        "\"namespace\":\"a\"},\"spec\":{\"hard\":{\"pods\":\"100k\",\"requests.cpu\":"
        "\"1M\"}},\"status\":{\"hard\":{\"pods\":\"100k\",\"requests.cpu\":\"1M\"},\"used\":{"
        "\"pods\":\"0\",\"requests.cpu\":\"0\"}}}");
}

/* The cache knows of them: they were written behind the server's back. */
static void wait_for_policies(vg_rev rev)
{
    char target[128];
    int status = 504;
    snprintf(target, sizeof target,
             "/api/v1/namespaces/a/resourcequotas?resourceVersion=%llu&limit=1",
             (unsigned long long)rev);
    while (status == 504) {
        struct vg_reply r = {0};
        assert_true(vg_adrv_try(&d, "GET", target, NULL, NULL, &r));
        status = r.status;
        vg_reply_done(&r);
    }
    assert_int_equal(status, 200);
}

static size_t count_pods(void)
{
    struct vg_reply r = {0};
    size_t n = 0;
    assert_true(vg_adrv_try(&d, "GET", "/api/v1/namespaces/a/pods", NULL, NULL, &r));
    for (const char *at = r.body.p; (at = strstr(at, "\"generateName\"")); at++)
        n++;
    vg_reply_done(&r);
    return n;
}

/* Whatever became of a request: what is there has been counted, and nothing else. */
static void admission_survives_every_failed_allocation(void **state)
{
    (void)state;
    char want[64];
    struct vg_reply r = {0};
    struct vg_adrv_opts opts = {.engine = engine, .storage = {.unsafe_no_fsync = true}};
    assert_int_equal(vg_admission_parse("ServiceAccount", NULL, &opts.api.admission, NULL), 0);
    vg_adrv_open(&d, &opts);
    wait_for_policies(put_policies());
    every_failure_is_survived(
        "POST", "/api/v1/namespaces/a/pods", "Content-Type: application/json\r\n",
        "{\"metadata\":{\"generateName\":\"p-\",\"annotations\":{\"a\":\"b\",\"z\":\"y\"}},"
        "\"spec\":"
        "{\"runtimeClassName\":\"vm\",\"containers\":[{\"name\":\"c\",\"image\":\"x\"}],"
        "\"initContainers\":[{\"name\":\"i\",\"image\":\"x\"}]}}");
    snprintf(want, sizeof want, "\"used\":{\"pods\":\"%zu\",", count_pods());
    assert_true(vg_adrv_try(&d, "GET", "/api/v1/namespaces/a/resourcequotas/q", NULL, NULL, &r));
    if (!strstr(r.body.p, want))
        fail_msg("%s is not in %s", want, r.body.p);
    vg_reply_done(&r);
    vg_adrv_close(&d);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_survives_every_failed_allocation),
        cmocka_unit_test(watching_survives_every_failed_allocation),
        cmocka_unit_test(admission_survives_every_failed_allocation),
    };
    return RUN_ON_ENGINE(argc, argv, tests);
}
