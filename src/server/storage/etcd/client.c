/* client.c - logging in, and starting calls; see client.h.
 * The pool holds calls back until there is a token, and asks for another when etcd says that the
 * one it has is no good (renew). A cluster without authentication says so, and needs none. */
#include "client.h"

#include <errno.h>
#include <stdio.h>

#include "base/alloc.h"

/* 10 s: a login costs etcd a bcrypt, a tenth of a second or so on an idle machine. */
#define LOGIN_MS 10000
/* 16 KiB: a token is 20 bytes, or a few hundred (JWT). */
#define LOGIN_ANSWER_MAX ((size_t)16 << 10)

struct vg_etcd_client {
    struct vg_grpc_pool *pool;
    char *username, *password;
    struct vg_grpc_call login;
    char trouble[VG_GRPC_MESSAGE_MAX];
    void (*on_state)(struct vg_grpc_pool *pool, bool is_ready, const char *why, void *arg);
    void *arg;
};

const struct vg_grpc_field vg_etcd_require_leader[1] = {
    {.name = {"hasleader", 9}, .value = {"true", 4}}};

/* ---- logging in ---- */

/* etcd has looked no further than the token. */
static bool is_refused(const struct vg_grpc_status *s, void *arg)
{
    (void)arg;
    return s->code == VG_GRPC_UNAUTHENTICATED ||
           strcmp(s->message, "etcdserver: revision of auth store is old") == 0 ||
           strcmp(s->message, "etcdserver: user name is empty") == 0;
}

/* A learner serves almost nothing; a member without a leader refuses who asked it to. Neither has
 * done anything. */
static bool is_elsewhere(const struct vg_grpc_status *s, void *arg)
{
    (void)arg;
    return strcmp(s->message, "etcdserver: rpc not supported for learner") == 0 ||
           strcmp(s->message, "etcdserver: no leader") == 0;
}

static bool needs_no_login(const struct vg_grpc_status *s)
{
    return strcmp(s->message, "etcdserver: authentication is not enabled") == 0;
}

static void login_failed(struct vg_etcd_client *c, struct vg_grpc_status *status)
{
    char why[VG_GRPC_MESSAGE_MAX];
    snprintf(why, sizeof why, "login as %.64s failed: %.400s", c->username, status->message);
    memcpy(status->message, why, sizeof why);
    snprintf(c->trouble, sizeof c->trouble, "%s", status->message);
    if (status->code == VG_GRPC_INVALID_ARGUMENT)
        status->code = VG_GRPC_UNAUTHENTICATED; /* it was the login's argument, not the call's */
    vg_grpc_pool_no_token(c->pool, status);
}

static int take_token(struct vg_etcd_client *c, struct vg_slice answer)
{
    VG_AUTO(arena) arena;
    vg_arena_init(&arena, 0, LOGIN_ANSWER_MAX);
    Etcd__AuthenticateResponse *m;
    int r = vg_etcd_unpack(&etcd__authenticate_response__descriptor, answer, &arena, &m);
    return r < 0 ? r : vg_grpc_pool_set_token(c->pool, "token", vg_slice_str(m->token));
}

static void on_login(struct vg_grpc_call *call)
{
    struct vg_etcd_client *c = VG_CONTAINER_OF(call, struct vg_etcd_client, login);
    struct vg_grpc_status status = call->status;
    int r = 0;
    if (status.code == VG_GRPC_OK)
        r = take_token(c, vg_buf_slice(&call->answer));
    else if (needs_no_login(&status))
        r = vg_grpc_pool_set_token(c->pool, NULL, (struct vg_slice){0});
    else {
        login_failed(c, &status);
        return;
    }
    vg_buf_done(&call->answer);
    c->trouble[0] = 0;
    if (r == 0)
        return;
    status.code = VG_GRPC_INTERNAL;
    snprintf(status.message, sizeof status.message, "its answer is not usable: %s", vg_err_text(r));
    login_failed(c, &status);
}

static void renew(struct vg_grpc_pool *pool, void *arg)
{
    struct vg_etcd_client *c = arg;
    Etcd__AuthenticateRequest m = ETCD__AUTHENTICATE_REQUEST__INIT;
    (void)pool;
    m.name = c->username;
    m.password = c->password;
    vg_buf_done(&c->login.answer);
    c->login =
        (struct vg_grpc_call){.timeout_ms = LOGIN_MS, .flags = VG_GRPC_WAIT, .on_end = on_login};
    if (vg_etcd_call(c, &vg_etcd_authenticate, &m.base, &c->login) == 0)
        return;
    struct vg_grpc_status status = {.code = VG_GRPC_RESOURCE_EXHAUSTED, .message = "out of memory"};
    login_failed(c, &status);
}

/* ---- birth and death ---- */

static void on_state(struct vg_grpc_pool *pool, bool is_ready, const char *why, void *arg)
{
    const struct vg_etcd_client *c = arg;
    if (c->on_state)
        c->on_state(pool, is_ready, why, c->arg);
}

static int set_up(struct vg_etcd_client *c, const struct vg_etcd_client_opts *opts,
                  struct vg_status *status)
{
    struct vg_grpc_pool_opts pool = opts->pool;
    c->on_state = pool.on_state;
    c->arg = pool.arg;
    pool.on_state = on_state;
    pool.is_elsewhere = is_elsewhere;
    pool.arg = c;
    if (opts->username) {
        c->username = vg_strdup(opts->username);
        c->password = vg_strdup(opts->password ? opts->password : "");
        if (!c->username || !c->password)
            return vg_fail(status, -ENOMEM, "out of memory");
        pool.is_refused = is_refused;
        pool.renew = renew;
    }
    return vg_grpc_pool_new(&pool, &c->pool, status);
}

int vg_etcd_client_new(const struct vg_etcd_client_opts *opts, struct vg_etcd_client **ret_client,
                       struct vg_status *reterr_status)
{
    struct vg_etcd_client *c = vg_new(struct vg_etcd_client);
    if (!c)
        return vg_fail(reterr_status, -ENOMEM, "out of memory");
    int r = set_up(c, opts, reterr_status);
    if (r < 0)
        vg_etcd_client_free(c);
    else
        *ret_client = c;
    return r;
}

void vg_etcd_client_free(struct vg_etcd_client *c)
{
    if (!c)
        return;
    vg_grpc_pool_free(c->pool);
    vg_buf_done(&c->login.answer);
    vg_free(c->username);
    vg_free(c->password);
    vg_free(c);
}

struct vg_grpc_pool *vg_etcd_client_pool(struct vg_etcd_client *c)
{
    return c->pool;
}

const char *vg_etcd_client_login_trouble(const struct vg_etcd_client *c)
{
    return c->trouble[0] ? c->trouble : NULL;
}

/* ---- calls ---- */

int vg_etcd_call(struct vg_etcd_client *c, const struct vg_etcd_method *method,
                 const ProtobufCMessage *request, struct vg_grpc_call *call)
{
    call->path = method->path;
    call->flags |= method->flags;
    call->msg = request ? vg_etcd_pack(request) : NULL;
    if (request && !call->msg)
        return -ENOMEM;
    return vg_grpc_start(c->pool, call);
}

int vg_etcd_answer(const struct vg_grpc_call *call, const struct vg_etcd_method *method,
                   struct vg_arena *arena, void *ret_message)
{
    return vg_etcd_unpack(method->response, vg_buf_slice(&call->answer), arena, ret_message);
}
