/* driver.c - a server in the test's process. */
#include "driver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etcd_member.h"
#include "server/api/access.h"
#include "server/http/authz.h"
#include "server/jwt/issuer.h"
#include "json/json.h"

struct vg_adrv_loop {
    struct vg_adrv *d;
    struct vg_loop *loop;
    struct vg_api_loop *api;
    struct vg_http_server *server;
};

void vg_adrv_must(int r, const char *what)
{
    if (r >= 0)
        return;
    fprintf(stderr, "driver: %s: %s\n", what, vg_err_name(r));
    abort();
}

/* ---- requests ---- */

struct request {
    struct vg_api_call call;
    struct vg_api_ask ask;
    struct vg_target target;
    char decoded[];
};

/* Whoever asks is the administrator of the recorded answers. */
static const struct vg_slice admin_groups[] = {{"system:masters", 14},
                                               {"system:authenticated", 20}};
static const struct vg_api_user admin = {.name = {"admin", 5},
                                         .uid = {"admin", 5},
                                         .groups = admin_groups,
                                         .n_groups = VG_ARRAY_LEN(admin_groups)};

static struct vg_adrv_loop *loop_of(struct vg_adrv *d, struct vg_http_exchange *x)
{
    for (size_t i = 0; i < d->n_loops; i++)
        if (d->loops[i].loop == vg_http_loop(x))
            return &d->loops[i];
    abort();
}

static void on_done(struct vg_api_call *call)
{
    struct request *q = VG_CONTAINER_OF(call, struct request, call);
    vg_arena_done(&call->ask->arena);
    vg_free(q);
}

static void answer_text(struct vg_http_exchange *x, int status, const char *text)
{
    struct vg_slice body = vg_slice_str(text);
    struct vg_http_head head = {.status = status, .length = body.n};
    if (vg_http_respond(x, &head) == 0 && vg_http_write(x, &body, 1, NULL) >= 0)
        vg_http_end(x);
}

/* ---- what reviews ask ---- */

static const struct vg_authz *const chain[] = {&vg_authz_basic, &vg_authz_public, &vg_authz_masters,
                                               NULL};

static enum vg_authz_decision decide(struct vg_api_call *call,
                                     const struct vg_authz_attributes *attributes,
                                     const char **ret_reason)
{
    (void)call;
    return vg_authz_decide(chain, attributes, ret_reason);
}

static int each_rule(struct vg_api_call *call, struct vg_slice ns, vg_authz_each_fn *each,
                     void *arg)
{
    return vg_authz_each_rule(chain, call->user, ns, each, arg);
}

/* For this server alone. */
static int identify(struct vg_api_call *call, struct vg_slice token,
                    const struct vg_json *audiences, struct vg_token_owner *ret)
{
    static struct vg_json own = {
        .type = VG_JSON_STRING, .n = sizeof VG_ISSUER_DEFAULT - 1, .text = VG_ISSUER_DEFAULT};
    static struct vg_json list = {.type = VG_JSON_ARRAY, .n = 1, .items = &own};
    bool is_for_us = !audiences || audiences->n == 0;
    (void)call;
    for (uint32_t i = 0; audiences && i < audiences->n; i++)
        is_for_us =
            is_for_us || vg_slice_eq(vg_json_text(&audiences->items[i]), vg_json_text(&own));
    if (!is_for_us || !vg_slice_eq(token, VG_SLICE_LIT("secrettoken")))
        return VIGIL_E_NOT_FOUND;
    ret->user = admin;
    ret->audiences = &list;
    return 0;
}

static const char *store_trouble(struct vg_api_call *call)
{
    (void)call;
    return NULL;
}

static const struct vg_api_access reviews = {decide, each_rule, identify, store_trouble};
static const struct vg_api_call_ops call_ops = {.done = on_done, .access = &reviews};

static void on_request(struct vg_http_exchange *x, void *arg)
{
    struct vg_adrv *d = arg;
    const struct vg_http_request *r = vg_http_request(x);
    struct request *q = vg_malloc(sizeof *q + r->target.n);
    if (!q) {
        vg_http_abort(x);
        return;
    }
    if (vg_target_parse(r->method, r->target, q->decoded, &q->target, NULL) < 0) {
        vg_free(q);
        answer_text(x, 404, "404 page not found\n");
        return;
    }
    q->call = (struct vg_api_call){.x = x,
                                   .loop = loop_of(d, x)->api,
                                   .ask = &q->ask,
                                   .user = &admin,
                                   .started_ns = vg_clock_mono_ns(vg_clock_system())};
    q->ask = (struct vg_api_ask){.target = &q->target};
    vg_arena_init(&q->call.ask->arena, 0, 0);
    vg_http_set_user(x, q);
    vg_api_serve(&q->call);
}

static void on_drained(struct vg_http_exchange *x, void *arg)
{
    struct request *q = vg_http_user(x);
    (void)arg;
    if (q)
        vg_api_on_drained(&q->call);
}

static void on_progress(struct vg_http_exchange *x, size_t n, void *arg)
{
    struct request *q = vg_http_user(x);
    (void)arg;
    if (q)
        vg_api_on_progress(&q->call, n);
}

static void on_closed(struct vg_http_exchange *x, int err, void *arg)
{
    struct request *q = vg_http_user(x);
    (void)arg;
    if (q)
        vg_api_on_closed(&q->call, err);
}

static void on_head(struct vg_http_exchange *x, void *arg)
{
    (void)arg;
    vg_http_authenticated(x);
}

/* ---- calls on a loop ---- */

struct errand {
    struct vg_mail mail;
    struct vg_api_loop *l;
    void (*fn)(struct vg_api_loop *l, void *arg);
    void *arg;
    uv_sem_t done;
};

static void run_errand(struct vg_mail *mail)
{
    struct errand *e = VG_CONTAINER_OF(mail, struct errand, mail);
    e->fn(e->l, e->arg);
    uv_sem_post(&e->done);
}

void vg_adrv_call(struct vg_adrv *d, size_t loop, void (*fn)(struct vg_api_loop *l, void *arg),
                  void *arg)
{
    struct errand e = {.mail = {.run = run_errand}, .l = d->loops[loop].api, .fn = fn, .arg = arg};
    vg_adrv_must(uv_sem_init(&e.done, 0), "semaphore");
    vg_loop_post(d->loops[loop].loop, &e.mail);
    uv_sem_wait(&e.done);
    uv_sem_destroy(&e.done);
}

static void drain_loop(struct vg_api_loop *l, void *arg)
{
    (void)arg;
    vg_api_loop_drain(l);
}

void vg_adrv_drain(struct vg_adrv *d)
{
    for (size_t i = 0; i < d->n_loops; i++)
        vg_adrv_call(d, i, drain_loop, NULL);
}

/* ---- opening ---- */

/* "36" of "36" and "36raw". */
static const char *line_of(const char *version)
{
    static const char *const lines[] = {"34", "35", "36"};
    for (size_t i = 0; i < VG_ARRAY_LEN(lines); i++)
        if (strncmp(lines[i], version, 2) == 0)
            return lines[i];
    return version;
}

bool vg_adrv_has(const char *engine)
{
    return strncmp(engine, "etcd", 4) != 0 || vg_test_etcd_binary(line_of(engine + 4));
}

static int open_etcd(struct vg_adrv *d, const char *version, struct vg_storage_opts *so,
                     struct vg_status *why)
{
    bool is_raw = strlen(version) > 2;
    d->etcd = vg_test_etcd_take(line_of(version));
    const char *servers[] = {d->etcd->url};
    struct vg_etcd_opts eo = {
        .servers = servers, .n_servers = 1, .root = "/registry/", .prefix = "/registry/"};
    if (!is_raw)
        vg_stored_form(VG_STORED_PROTOBUF, NULL, &eo.form);
    so->etcd = &eo;
    int r = vg_storage_open_etcd(so, &d->storage, why);
    so->etcd = NULL;
    return r;
}

static void open_storage(struct vg_adrv *d, const struct vg_adrv_opts *opts)
{
    struct vg_storage_opts so = opts->storage;
    struct vg_status why;
    bool is_mem = !opts->engine || strcmp(opts->engine, "mem") == 0;
    so.size = sizeof so;
    if (!is_mem && strncmp(opts->engine, "etcd", 4) == 0) {
        vg_adrv_must(open_etcd(d, opts->engine + 4, &so, &why), "etcd");
        return;
    }
    if (!is_mem)
        so.dir = d->dir = vg_test_tmpdir();
    vg_adrv_must(is_mem ? vg_storage_open_mem(&so, &d->storage, &why)
                        : vg_storage_open_lmdb(&so, &d->storage, &why),
                 "storage");
}

static void open_cacher(struct vg_adrv *d, const struct vg_adrv_opts *opts)
{
    struct vg_cacher_opts co = opts->cacher;
    co.storage = d->storage;
    co.make_form = vg_api_make_form;
    co.kept_form = vg_api_kept_form;
    co.frame_form = vg_api_frame_form;
    vg_adrv_must(vg_api_cache_kinds(NULL, &co.kinds, &co.n_kinds), "kinds");
    vg_adrv_must(vg_loop_new(vg_clock_system(), &d->feed), "feed loop");
    vg_adrv_must(vg_cacher_open(&co, d->feed, &d->cacher), "cacher");
    if (!opts->is_cold)
        vg_adrv_warm(d);
}

void vg_adrv_warm(struct vg_adrv *d)
{
    vg_adrv_must(vg_loop_start(d->feed, "feed"), "feed thread");
    while (!vg_cacher_is_ready(d->cacher))
        uv_sleep(1);
}

static void open_loop(struct vg_adrv *d, size_t i)
{
    struct vg_adrv_loop *l = &d->loops[i];
    l->d = d;
    vg_adrv_must(vg_loop_new(vg_clock_system(), &l->loop), "loop");
    vg_adrv_must(vg_api_loop_open(d->api, l->loop, &l->api), "api loop");
    vg_adrv_must(vg_http_server_new(d->shared, l->loop, &l->server), "server");
    vg_adrv_must(vg_http_server_listen(l->server, d->listener, NULL), "listen");
}

/* Tokens are given out; nobody asks for one here. */
static void make_issuer(struct vg_adrv *d)
{
    VG_AUTO(buf) pem = {0};
    struct vg_jwt_keys keys = {.n = 0};
    struct vg_issuer_opts opts = {.issuers = VG_ISSUER_DEFAULT,
                                  .jwks_uri = "https://localhost/openid/v1/jwks",
                                  .take_keys = &keys};
    vg_adrv_must(vg_jwt_key_make(&pem), "key");
    vg_adrv_must(vg_jwt_keys_add(&keys, "key", vg_buf_slice(&pem), NULL), "key");
    vg_adrv_must(vg_issuer_new(&opts, &d->issuer, NULL), "issuer");
}

void vg_adrv_open(struct vg_adrv *d, const struct vg_adrv_opts *opts)
{
    static const struct vg_adrv_opts defaults;
    struct vg_status why;
    opts = opts ? opts : &defaults;
    memset(d, 0, sizeof *d);
    open_storage(d, opts);
    vg_adrv_must(vg_loop_new(vg_clock_system(), &d->own), "own loop");
    open_cacher(d, opts);
    struct vg_api_opts ao = opts->api;
    d->metrics = vg_metrics_new();
    ao.storage = d->storage;
    ao.cacher = d->cacher;
    ao.metrics = d->metrics;
    make_issuer(d);
    ao.issuer = d->issuer;
    if (!ao.call_ops) /* else calls are made by another handler */
        ao.call_ops = &call_ops;
    vg_adrv_must(vg_api_new(&ao, &d->api), "api");
    d->handler = (struct vg_http_handler){.on_head = on_head,
                                          .on_request = on_request,
                                          .on_drained = on_drained,
                                          .on_progress = on_progress,
                                          .on_closed = on_closed,
                                          .arg = d};
    if (opts->handler)
        d->handler = *opts->handler;
    struct vg_http_shared_opts ho = {.limits = opts->limits, .handler = &d->handler};
    vg_adrv_must(vg_http_shared_new(&ho, &d->shared), "http");
    vg_adrv_must(vg_listener_open("127.0.0.1", 0, &d->listener, &why), "listener");
    d->port = vg_listener_port(d->listener);
    d->n_loops = opts->n_loops ? opts->n_loops : 1;
    d->loops = vg_calloc(d->n_loops, sizeof *d->loops);
    for (size_t i = 0; i < d->n_loops; i++)
        open_loop(d, i);
    for (size_t i = 0; i < d->n_loops && opts->on_loop; i++)
        opts->on_loop(opts->on_loop_arg, d->loops[i].loop, d->loops[i].api);
    for (size_t i = 0; i < d->n_loops; i++)
        vg_adrv_must(vg_loop_start(d->loops[i].loop, "serve"), "thread");
}

/* ---- closing ---- */

static void close_loop(struct vg_adrv_loop *l)
{
    vg_loop_stop(l->loop);
    vg_api_loop_drain(l->api);
    vg_http_server_free(l->server);
    while (!vg_api_loop_is_idle(l->api)) /* what storage and workers still owe */
        vg_loop_turn(l->loop, true);
    for (int i = 0; i < 100; i++) /* and what follows from it */
        vg_loop_turn(l->loop, false);
    vg_api_loop_close(l->api);
    vg_loop_turn(l->loop, false);
}

void vg_adrv_close(struct vg_adrv *d)
{
    bool is_done = false;
    for (size_t i = 0; i < d->n_loops; i++)
        close_loop(&d->loops[i]);
    vg_api_free(d->api);
    vg_issuer_free(d->issuer);
    vg_loop_stop(d->feed);
    vg_cacher_close(d->cacher, &is_done);
    vg_loop_turn_until(d->feed, &is_done);
    vg_storage_close(d->storage);
    for (size_t i = 0; i < d->n_loops; i++) {
        vg_loop_turn(d->loops[i].loop, false);
        vg_loop_free(d->loops[i].loop);
    }
    vg_loop_turn(d->feed, false);
    vg_loop_free(d->feed);
    vg_loop_turn(d->own, false);
    vg_loop_free(d->own);
    vg_listener_free(d->listener);
    vg_http_shared_free(d->shared);
    vg_metrics_free(d->metrics);
    vg_free(d->loops);
    if (d->dir)
        vg_test_tmpdir_remove(d->dir);
    vg_test_etcd_give(d->etcd);
}
