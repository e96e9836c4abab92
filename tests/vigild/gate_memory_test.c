/* gate_memory_test.c - each allocation of the serving loop fails once, in the middle of every kind
 * of request that server/http answers or lets through. The client gets an answer, an error or a cut
 * connection; the server goes on, counts right and leaks nothing (ASan). */
#include <string.h>

#include "driver.h"
#include "server/http/gate.h"

#define LOOPS 2u

struct fixture {
    struct vg_adrv d;
    struct vg_health health;
    struct vg_metrics *metrics;
    struct vg_gate *gate;
    struct vg_gate_loop *loops[LOOPS];
    size_t n_loops;
};

static const char *say(void *arg)
{
    return arg;
}

static void open_gate_loop(void *arg, struct vg_loop *loop, struct vg_api_loop *api)
{
    struct fixture *f = arg;
    assert_int_equal(vg_gate_loop_open(f->gate, loop, api, &f->loops[f->n_loops++]), 0);
}

static void fixture_open(struct fixture *f, size_t n_loops, const struct vg_authz *authz)
{
    static const struct vg_authz *chain[3];
    static const struct vg_health_check check = {"etcd", VG_LIVEZ, say, NULL, false};
    memset(f, 0, sizeof *f);
    chain[0] = &vg_authz_public;
    chain[1] = authz;
    vg_health_init(&f->health);
    assert_true(vg_health_add(&f->health, &check));
    f->metrics = vg_metrics_new();
    assert_non_null(f->metrics);
    struct vg_gate_opts opts = {.metrics = f->metrics, .authz = chain, .health = &f->health};
    assert_int_equal(vg_gate_new(&opts, &f->gate), 0);
    struct vg_adrv_opts o = {.n_loops = n_loops,
                             .api.call_ops = &vg_gate_call_ops,
                             .handler = vg_gate_handler(f->gate),
                             .on_loop = open_gate_loop,
                             .on_loop_arg = f};
    vg_adrv_open(&f->d, &o);
}

static void fixture_close(struct fixture *f)
{
    vg_adrv_close(&f->d);
    for (size_t i = 0; i < f->n_loops; i++)
        vg_gate_loop_close(f->loops[i]);
    vg_gate_free(f->gate);
    vg_metrics_free(f->metrics);
}

struct fault {
    uint64_t n, count;
};

static void set_fault(struct vg_api_loop *l, void *arg)
{
    struct fault *f = arg;
    (void)l;
    f->count = vg_alloc_fail_at(f->n, 0);
}

/* Made with the n-th allocation failing; true: there were fewer than that. */
static bool try_request(struct fixture *f, const char *method, const char *target,
                        const char *headers, const char *body, int want, uint64_t n)
{
    struct vg_reply r = {0};
    struct fault fault = {.n = n};
    vg_adrv_call(&f->d, 0, set_fault, &fault);
    bool has_head = vg_adrv_try(&f->d, method, target, headers, body, &r);
    fault.n = 0;
    vg_adrv_call(&f->d, 0, set_fault, &fault);
    bool is_over = fault.count < n;
    if (is_over) {
        assert_true(has_head && !r.is_cut);
        assert_int_equal(r.status, want);
    } else if (has_head && !r.is_cut) {
        assert_true(r.status == want || r.status >= 429 || r.status == 409);
    }
    vg_reply_done(&r);
    return is_over;
}

static void survives(struct fixture *f, const char *method, const char *target, const char *headers,
                     const char *body, int want)
{
    uint64_t n = 1;
    while (!try_request(f, method, target, headers, body, want, n))
        n++;
    print_message("%s %s: %llu allocations\n", method, target, (unsigned long long)n - 1);
}

/* Nothing stays behind: no request in flight, no watch that counts. */
static void assert_nothing_left(struct fixture *f)
{
    struct vg_reply r = {0};
    assert_true(vg_adrv_try(&f->d, "GET", "/metrics", NULL, NULL, &r));
    assert_int_equal(r.status, 200);
    assert_non_null(strstr(r.body.p, "inflight_requests{request_kind=\"readOnly\"} 0\n"));
    assert_non_null(strstr(r.body.p, "inflight_requests{request_kind=\"mutating\"} 0\n"));
    vg_reply_done(&r);
}

static void every_failed_allocation_is_survived(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 1, &vg_authz_masters);
    survives(&f, "GET", "/livez?verbose", NULL, NULL, 200);
    survives(&f, "GET", "/", NULL, NULL, 200);
    survives(&f, "GET", "/nosuch", NULL, NULL, 404);
    survives(&f, "GET", "/metrics", NULL, NULL, 200);
    survives(&f, "GET", "/debug/vigil/watches", NULL, NULL, 200);
    survives(&f, "GET", "/api/v1/namespaces", NULL, NULL, 200);
    survives(&f, "GET", "/api/v1/namespaces", "Impersonate-User: x\r\n", NULL, 403);
    survives(&f, "GET", "/livez", "Origin: http://x\r\n", NULL, 403);
    survives(&f, "GET", "/api%zz", NULL, NULL, 400);
    survives(&f, "GET", "/api/v1/pods?watch=1&timeoutSeconds=-1", NULL, NULL, 200);
    assert_nothing_left(&f);
    fixture_close(&f);
}

static void refusals_survive_it_too(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 1, NULL); /* nobody may do anything but look at health */
    survives(&f, "GET", "/api/v1/namespaces/x/pods/y", NULL, NULL, 403);
    survives(&f, "GET", "/metrics", NULL, NULL, 403);
    survives(&f, "GET", "/livez", NULL, NULL, 200);
    fixture_close(&f);
}

/* The list of watches is gathered from loops, one of which is short of memory. */
static void gathering_survives_it_on_another_loop(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, LOOPS, &vg_authz_masters);
    for (uint64_t n = 1; n < 20; n++) {
        struct vg_reply r = {0};
        struct fault fault = {.n = n};
        vg_adrv_call(&f.d, 0, set_fault, &fault);
        (void)vg_adrv_try(&f.d, "GET", "/debug/vigil/watches", NULL, NULL, &r);
        fault.n = 0;
        vg_adrv_call(&f.d, 0, set_fault, &fault);
        vg_reply_done(&r);
    }
    assert_nothing_left(&f);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failed_allocation_is_survived),
        cmocka_unit_test(refusals_survive_it_too),
        cmocka_unit_test(gathering_survives_it_on_another_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
