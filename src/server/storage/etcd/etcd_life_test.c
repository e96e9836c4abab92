/* etcd_life_test.c - the client and members of etcd that ask for passwords and certificates, die,
 * stop and come back, or are not etcd at all. */
#include "etcd_client_testing.h"

#include <errno.h>

#include "net/tls_testing.h"

static const char *const versions[] = {"34", "35", "36"};

static int try_put(struct etcd_test_world *w, const char *value, struct etcd_test_call *t)
{
    struct vg_status status;
    Etcd__PutRequest m = ETCD__PUT_REQUEST__INIT;
    m.key = vg_etcd_data(VG_SLICE_LIT("/k"));
    m.value = vg_etcd_data(vg_slice_str(value));
    etcd_test_do(w, &vg_etcd_put, &m.base, t);
    return vg_etcd_error(&t->call.status, true, &status);
}

static void put(struct etcd_test_world *w, const char *value)
{
    struct etcd_test_call t = {0};
    if (try_put(w, value, &t) < 0)
        fail_msg("%s", t.call.status.message);
    etcd_test_call_done(&t);
}

static void holds(struct etcd_test_world *w, const char *value)
{
    Etcd__RangeRequest m = ETCD__RANGE_REQUEST__INIT;
    m.key = vg_etcd_data(VG_SLICE_LIT("/k"));
    Etcd__RangeResponse *r = etcd_test_must(w, &vg_etcd_range, &m.base);
    assert_int_equal(r->n_kvs, 1);
    vg_assert_slice_equal(vg_etcd_bytes(r->kvs[0]->value), vg_slice_str(value));
}

static void says(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("\"%s\" does not say \"%s\"", text, words);
}

/* A call that fails; what it says. */
static const char *fails(struct etcd_test_world *w, int err, struct etcd_test_call *t)
{
    int r = try_put(w, "never", t);
    if (r != err)
        fail_msg("%s instead of %s: %s", vg_err_name(r), vg_err_name(err), t->call.status.message);
    return t->call.status.message;
}

/* ---- passwords ---- */

/* Messages of two texts: name and password, user and role. */
static void manage(struct etcd_test_world *w, const char *method, const char *a, const char *b)
{
    char path[64];
    struct vg_etcd_method m = vg_etcd_authenticate;
    snprintf(path, sizeof path, "/etcdserverpb.Auth/%s", method);
    m.path = path;
    m.flags = 0;
    m.response = &etcd__put_response__descriptor; /* a header is all they have in common */
    Etcd__AuthenticateRequest request = ETCD__AUTHENTICATE_REQUEST__INIT;
    request.name = (char *)(uintptr_t)a;
    request.password = (char *)(uintptr_t)b;
    etcd_test_must(w, &m, &request.base);
}

static void enable_auth(struct etcd_test_world *w)
{
    manage(w, "UserAdd", "root", "right");
    manage(w, "UserGrantRole", "root", "root");
    manage(w, "AuthEnable", "", "");
}

static void passwords_are_asked_for(struct etcd_test_world *w)
{
    struct etcd_test_call t = {0};
    struct vg_etcd_client_opts login = {.username = "root", .password = "right"};
    struct vg_etcd_client_opts wrong = {.username = "root", .password = "wrong"};
    etcd_test_open(w, &login); /* before there is authentication: it does no harm */
    put(w, "1");
    enable_auth(w);
    put(w, "2"); /* it notices */
    holds(w, "2");
    vg_test_etcd_kill(&w->etcd); /* tokens are gone with it */
    while (w->is_ready)
        vg_loop_turn(w->loop, true);
    vg_test_etcd_start(&w->etcd);
    struct etcd_test_call waits = {.call.flags = VG_GRPC_WAIT};
    assert_int_equal(try_put(w, "3", &waits), 0);
    etcd_test_call_done(&waits);
    holds(w, "3");
    assert_null(vg_etcd_client_login_trouble(w->client));
    etcd_test_close(w);

    etcd_test_open(w, &wrong);
    says(fails(w, VIGIL_E_UNAUTHORIZED, &t),
         "login as root failed: etcdserver: authentication failed");
    assert_int_equal(t.call.status.fate, VG_GRPC_NOT_SENT);
    assert_non_null(vg_etcd_client_login_trouble(w->client));
    etcd_test_close(w);

    etcd_test_open(w, NULL);
    says(fails(w, VIGIL_E_UNAUTHORIZED, &t), "user name is empty");
    etcd_test_close(w);
    etcd_test_call_done(&t);
}

/* ---- certificates ---- */

struct certs {
    const char *dir;
    char ca[300], other_ca[300], server[300], server_key[300], client[300], client_key[300];
};

static void make_certs(struct certs *c)
{
    struct tls_test_pair ca =
        tls_test_make(&(struct tls_test_cert){.cn = "ca", .is_ca = true}, NULL);
    struct tls_test_pair other =
        tls_test_make(&(struct tls_test_cert){.cn = "other", .is_ca = true}, NULL);
    struct tls_test_pair server = tls_test_make(
        &(struct tls_test_cert){
            .cn = "etcd", .usage = "serverAuth,clientAuth", .san = "IP:127.0.0.1,DNS:etcd.test"},
        &ca);
    struct tls_test_pair client =
        tls_test_make(&(struct tls_test_cert){.cn = "vigil", .usage = "clientAuth"}, &ca);
    c->dir = vg_test_tmpdir();
    tls_test_save(&ca, c->dir, "ca");
    tls_test_save(&other, c->dir, "other");
    tls_test_save(&server, c->dir, "server");
    tls_test_save(&client, c->dir, "client");
    snprintf(c->ca, sizeof c->ca, "%s/ca.crt", c->dir);
    snprintf(c->other_ca, sizeof c->other_ca, "%s/other.crt", c->dir);
    snprintf(c->server, sizeof c->server, "%s/server.crt", c->dir);
    snprintf(c->server_key, sizeof c->server_key, "%s/server.key", c->dir);
    snprintf(c->client, sizeof c->client, "%s/client.crt", c->dir);
    snprintf(c->client_key, sizeof c->client_key, "%s/client.key", c->dir);
    tls_test_free(&ca);
    tls_test_free(&other);
    tls_test_free(&server);
    tls_test_free(&client);
}

/* Opens with these options, and cannot: what it says. */
static void refused(struct etcd_test_world *w, const struct vg_etcd_client_opts *o,
                    const char *words)
{
    struct etcd_test_call t = {0};
    etcd_test_open(w, o);
    says(fails(w, VIGIL_E_NETWORK, &t), words);
    assert_int_equal(t.call.status.fate, VG_GRPC_NOT_SENT);
    assert_false(w->is_ready);
    etcd_test_close(w);
    etcd_test_call_done(&t);
}

static void long_values_over_tls(struct etcd_test_world *w)
{
    size_t n = 1400 * 1024;
    char *value = vg_malloc(n + 1);
    memset(value, 't', n);
    value[n] = 0;
    put(w, value);
    holds(w, value);
    vg_free(value);
}

static void certificates_are_asked_for(struct etcd_test_world *w)
{
    struct certs c;
    make_certs(&c);
    const char *extra[] = {
        "--cert-file",       c.server, "--key-file", c.server_key, "--client-cert-auth",
        "--trusted-ca-file", c.ca,     NULL};
    w->etcd.extra = extra;
    w->etcd.is_tls = true;
    vg_test_etcd_start(&w->etcd);
    char plain[64];
    snprintf(plain, sizeof plain, "http://127.0.0.1:%d", w->etcd.client_port);
    const char *plain_url = plain;

    struct vg_etcd_client_opts o = {0};
    o.pool.tls =
        (struct vg_grpc_tls){.ca_file = c.ca, .cert_file = c.client, .key_file = c.client_key};
    etcd_test_open(w, &o);
    put(w, "1");
    holds(w, "1");
    long_values_over_tls(w);
    etcd_test_close(w);

    o.pool.tls.server_name = "etcd.test";
    etcd_test_open(w, &o);
    put(w, "2");
    etcd_test_close(w);
    o.pool.tls.server_name = "elsewhere.test";
    refused(w, &o, "its certificate is not accepted for elsewhere.test: hostname mismatch");
    o.pool.tls.server_name = NULL;
    o.pool.tls.ca_file = c.other_ca;
    refused(w, &o, "its certificate is not accepted for 127.0.0.1");
    o.pool.tls.ca_file = c.ca;
    o.pool.tls.cert_file = o.pool.tls.key_file = NULL;
    refused(w, &o, "alert"); /* "certificate required", or "bad certificate" of older ones */
    o.pool.tls = (struct vg_grpc_tls){0};
    o.pool.endpoints = &plain_url;
    o.pool.n_endpoints = 1;
    refused(w, &o, ":"); /* Go answers a plain word in HTTP/1, or hangs up */
    vg_test_tmpdir_remove(c.dir);
}

static void not_every_server_is_etcd(struct etcd_test_world *w)
{
    char https[64], metrics[64];
    struct vg_etcd_client_opts o = {0};
    const char *url;
    snprintf(https, sizeof https, "https://127.0.0.1:%d", w->etcd.client_port);
    snprintf(metrics, sizeof metrics, "http://127.0.0.1:%d", w->etcd.metrics_port);
    o.pool.endpoints = &url;
    o.pool.n_endpoints = 1;
    url = https;
    refused(w, &o, "if it does not speak TLS, use http://");
    url = metrics;
    refused(w, &o, "not a gRPC endpoint");
    url = "http://no-such-host.invalid:2379";
    refused(w, &o, "cannot resolve no-such-host.invalid");
    url = "http://127.0.0.1:1";
    refused(w, &o, "cannot connect: Connection refused");
    url = "unix:///nonexistent/socket";
    refused(w, &o, "cannot connect: No such file or directory");
}

/* ---- life and death ---- */

static void start_watch(struct etcd_test_world *w, struct etcd_test_call *t)
{
    Etcd__WatchCreateRequest create = ETCD__WATCH_CREATE_REQUEST__INIT;
    Etcd__WatchRequest m = ETCD__WATCH_REQUEST__INIT;
    create.key = vg_etcd_data(VG_SLICE_LIT("/"));
    create.range_end = vg_etcd_data(VG_SLICE_LIT("0"));
    m.request_union_case = ETCD__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST;
    m.create_request = &create;
    assert_int_equal(etcd_test_start(w, &vg_etcd_watch, &m.base, t), 0);
    etcd_test_next(w, t, 0, &vg_etcd_watch);
}

static void a_member_dies_and_comes_back(struct etcd_test_world *w)
{
    struct etcd_test_call watch = {0}, t = {0}, waits = {.call.flags = VG_GRPC_WAIT};
    etcd_test_open(w, NULL);
    put(w, "1");
    start_watch(w, &watch);
    vg_test_etcd_kill(&w->etcd);
    vg_loop_turn_until(w->loop, &watch.has_ended);
    assert_int_equal(watch.call.status.code, VG_GRPC_UNAVAILABLE);
    says(watch.call.status.message, w->etcd.url);
    while (w->is_ready || w->n_states < 2)
        vg_loop_turn(w->loop, true);
    says(w->why, "it closed the connection");
    fails(w, VIGIL_E_NETWORK, &t);
    assert_int_equal(t.call.status.fate, VG_GRPC_NOT_SENT);
    vg_test_etcd_start(&w->etcd);
    assert_int_equal(try_put(w, "2", &waits), 0);
    assert_true(w->is_ready);
    holds(w, "2");
    etcd_test_call_done(&watch);
    etcd_test_call_done(&t);
    etcd_test_call_done(&waits);
    etcd_test_close(w);
}

/* It is there, takes bytes and does nothing: the write's outcome is not known, the connection is
 * doubted and given up, and all is well when it goes on. */
static void a_paused_member_is_noticed(struct etcd_test_world *w)
{
    struct etcd_test_call watch = {0}, t = {.call.timeout_ms = 200};
    struct etcd_test_call waits = {.call.flags = VG_GRPC_WAIT};
    struct vg_etcd_client_opts o = {.pool.keepalive_timeout_ms = 500};
    etcd_test_open(w, &o);
    put(w, "1");
    start_watch(w, &watch);
    vg_test_etcd_pause(&w->etcd);
    fails(w, VIGIL_E_UNKNOWN_OUTCOME, &t);
    assert_int_equal(t.call.status.code, VG_GRPC_DEADLINE_EXCEEDED);
    assert_int_equal(t.call.status.fate, VG_GRPC_MAYBE);
    vg_loop_turn_until(w->loop, &watch.has_ended);
    says(watch.call.status.message, "no answer to a ping");
    vg_test_etcd_go_on(&w->etcd);
    assert_int_equal(try_put(w, "2", &waits), 0);
    holds(w, "2");
    etcd_test_call_done(&watch);
    etcd_test_call_done(&t);
    etcd_test_call_done(&waits);
    etcd_test_close(w);
}

/* Two members that know nothing of each other are enough to see where calls go. */
static void calls_go_to_whoever_is_well(struct etcd_test_world *w)
{
    struct vg_test_etcd other = {.binary = w->etcd.binary};
    struct etcd_test_call t = {0};
    vg_test_etcd_start(&other);
    const char *urls[] = {w->etcd.url, other.url, "http://127.0.0.1:1"};
    struct vg_etcd_client_opts o = {.pool.endpoints = urls, .pool.n_endpoints = 3};
    etcd_test_open(w, &o);
    struct vg_grpc_pool *pool = vg_etcd_client_pool(w->client);
    while (!vg_grpc_pool_is_ready(pool, 1) || !vg_grpc_pool_is_ready(pool, 2))
        vg_loop_turn(w->loop, true);
    for (int i = 0; i < 3; i++) {
        struct vg_test_etcd *e = i % 2 ? &other : &w->etcd;
        vg_test_etcd_kill(e); /* a write that finds it dead is not lost */
        while (vg_grpc_pool_is_ready(pool, i % 2 ? 2 : 1))
            vg_loop_turn(w->loop, true);
        put(w, "x");
        assert_int_equal(vg_grpc_pool_current(pool), i % 2 ? 1 : 2);
        vg_test_etcd_start(e);
        while (!vg_grpc_pool_is_ready(pool, i % 2 ? 2 : 1))
            vg_loop_turn(w->loop, true);
    }
    Etcd__StatusRequest ask = ETCD__STATUS_REQUEST__INIT;
    for (t.call.endpoint = 1; t.call.endpoint <= 2; t.call.endpoint++) {
        assert_non_null(etcd_test_do(w, &vg_etcd_status, &ask.base, &t));
        assert_int_equal(t.call.used, t.call.endpoint);
    }
    VG_AUTO(buf) text = {0};
    assert_int_equal(vg_grpc_pool_describe(pool, &text), 0);
    assert_int_equal(vg_buf_append_byte(&text, 0), 0);
    says(text.p, "http://127.0.0.1:1: cannot connect");
    etcd_test_call_done(&t);
    etcd_test_close(w);
    vg_test_etcd_remove(&other);
}

/* ---- */

static void each_version(void (*test)(struct etcd_test_world *w), bool is_running)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(versions); i++) {
        struct etcd_test_world w = {.etcd.binary = vg_test_etcd_binary(versions[i])};
        if (!w.etcd.binary)
            continue;
        if (is_running)
            vg_test_etcd_start(&w.etcd);
        test(&w);
        vg_test_etcd_remove(&w.etcd);
    }
}

static void passwords_on_every_version(void **state)
{
    (void)state;
    each_version(passwords_are_asked_for, true);
}
static void certificates_on_every_version(void **state)
{
    (void)state;
    each_version(certificates_are_asked_for, false);
}
static void wrong_endpoints_on_every_version(void **state)
{
    (void)state;
    each_version(not_every_server_is_etcd, true);
}
static void deaths_on_every_version(void **state)
{
    (void)state;
    each_version(a_member_dies_and_comes_back, true);
}
static void pauses_on_every_version(void **state)
{
    (void)state;
    each_version(a_paused_member_is_noticed, true);
}
static void failover_on_every_version(void **state)
{
    (void)state;
    each_version(calls_go_to_whoever_is_well, true);
}

static bool has_any(void)
{
    size_t n = 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(versions); i++)
        n += vg_test_etcd_binary(versions[i]) != NULL;
    return n > 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passwords_on_every_version),
        cmocka_unit_test(certificates_on_every_version),
        cmocka_unit_test(wrong_endpoints_on_every_version),
        cmocka_unit_test(deaths_on_every_version),
        cmocka_unit_test(pauses_on_every_version),
        cmocka_unit_test(failover_on_every_version),
    };
    return has_any() ? cmocka_run_group_tests(tests, NULL, NULL) : 77; /* skipped, for ctest */
}
