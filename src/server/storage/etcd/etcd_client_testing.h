/* etcd_client_testing.h - for tests: a loop, a client and an etcd, and calls that are waited for.
 */
#ifndef VG_STORAGE_ETCD_CLIENT_TESTING_H
#define VG_STORAGE_ETCD_CLIENT_TESTING_H

#include "test_support.h"

#include <stdio.h>

#include "client.h"
#include "etcd_member.h"

/* 30 s: no call of a test takes so long on any machine; what waits longer has failed. */
#define CALL_MS 30000

struct etcd_test_world {
    struct vg_loop *loop;
    struct vg_etcd_client *client;
    struct vg_test_etcd etcd;
    struct vg_arena arena;
    bool is_ready;
    unsigned n_states;
    char why[2048];
};

/* A call that is waited for. */
struct etcd_test_call {
    struct vg_grpc_call call;
    bool has_ended;
    struct vg_buf messages[64]; /* a stream's */
    size_t n_messages;
};

static inline void etcd_test_on_end(struct vg_grpc_call *c)
{
    VG_CONTAINER_OF(c, struct etcd_test_call, call)->has_ended = true;
}

static inline void etcd_test_on_message(struct vg_grpc_call *c, struct vg_slice message)
{
    struct etcd_test_call *t = VG_CONTAINER_OF(c, struct etcd_test_call, call);
    assert_true(t->n_messages < VG_ARRAY_LEN(t->messages));
    struct vg_buf *b = &t->messages[t->n_messages++];
    assert_int_equal(vg_buf_append_slice(b, message), 0);
}

static inline void etcd_test_call_done(struct etcd_test_call *t)
{
    vg_grpc_cancel(&t->call);
    vg_buf_done(&t->call.answer);
    for (size_t i = 0; i < t->n_messages; i++)
        vg_buf_done(&t->messages[i]);
    *t = (struct etcd_test_call){0};
}

static inline void etcd_test_on_state(struct vg_grpc_pool *pool, bool is_ready, const char *why,
                                      void *arg)
{
    struct etcd_test_world *w = arg;
    (void)pool;
    w->is_ready = is_ready;
    w->n_states++;
    snprintf(w->why, sizeof w->why, "%s", why);
}

static inline void etcd_test_open(struct etcd_test_world *w, const struct vg_etcd_client_opts *more)
{
    struct vg_etcd_client_opts opts = more ? *more : (struct vg_etcd_client_opts){0};
    const char *urls[] = {w->etcd.url};
    struct vg_status status = {0};
    if (!w->loop)
        assert_int_equal(vg_loop_new(vg_clock_system(), &w->loop), 0);
    opts.pool.loop = w->loop;
    if (!opts.pool.endpoints) {
        opts.pool.endpoints = urls;
        opts.pool.n_endpoints = 1;
    }
    opts.pool.on_state = etcd_test_on_state;
    opts.pool.arg = w;
    vg_arena_init(&w->arena, 0, 0);
    int r = vg_etcd_client_new(&opts, &w->client, &status);
    if (r < 0)
        fail_msg("%s", status.message);
}

static inline void etcd_test_close(struct etcd_test_world *w)
{
    vg_etcd_client_free(w->client);
    w->client = NULL;
    vg_arena_done(&w->arena);
    vg_loop_free(w->loop);
    w->loop = NULL;
    w->n_states = 0;
    w->is_ready = false;
}

static inline int etcd_test_start(struct etcd_test_world *w, const struct vg_etcd_method *m,
                                  const ProtobufCMessage *request, struct etcd_test_call *t)
{
    t->call.on_end = etcd_test_on_end;
    t->call.on_message = etcd_test_on_message;
    t->has_ended = false;
    return vg_etcd_call(w->client, m, request, &t->call);
}

/* One call, start to end; the answer in the arena, NULL when it failed (t->call.status). */
static inline void *etcd_test_do(struct etcd_test_world *w, const struct vg_etcd_method *m,
                                 const ProtobufCMessage *request, struct etcd_test_call *t)
{
    void *answer = NULL;
    vg_buf_done(&t->call.answer);
    if (!t->call.timeout_ms)
        t->call.timeout_ms = CALL_MS;
    assert_int_equal(etcd_test_start(w, m, request, t), 0);
    vg_loop_turn_until(w->loop, &t->has_ended);
    if (t->call.status.code == VG_GRPC_OK)
        assert_int_equal(vg_etcd_answer(&t->call, m, &w->arena, &answer), 0);
    return answer;
}

/* The same, and it has to succeed. */
static inline void *etcd_test_must(struct etcd_test_world *w, const struct vg_etcd_method *m,
                                   const ProtobufCMessage *request)
{
    struct etcd_test_call t = {0};
    void *answer = etcd_test_do(w, m, request, &t);
    if (!answer)
        fail_msg("%s: %s: %s", m->path, vg_grpc_code_name(t.call.status.code),
                 t.call.status.message);
    etcd_test_call_done(&t);
    return answer;
}

/* Message i of a stream, when it has come. */
static inline void *etcd_test_next(struct etcd_test_world *w, struct etcd_test_call *t, size_t i,
                                   const struct vg_etcd_method *m)
{
    void *message = NULL;
    while (t->n_messages <= i && !t->has_ended)
        vg_loop_turn(w->loop, true);
    if (t->n_messages <= i)
        fail_msg("the stream ended: %s", t->call.status.message);
    assert_int_equal(
        vg_etcd_unpack(m->response, vg_buf_slice(&t->messages[i]), &w->arena, &message), 0);
    return message;
}

#endif
