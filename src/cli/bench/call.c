/* call.c - see call.h. */
#include "call.h"

#include "base/alloc.h"
#include "clock.h"
#include "conn_int.h"

#define CALL_LIMIT_NS (90 * VG_NS_PER_S)

struct call {
    struct vg_bench_reply reply;
    struct vg_bench_answer *answer;
    bool is_done;
    int err;
};

static void on_data(struct vg_bench_reply *r, struct vg_slice bytes)
{
    struct call *c = VG_CONTAINER_OF(r, struct call, reply);
    c->answer->bytes += bytes.n;
    if (c->answer->body && c->err == 0)
        c->err = vg_buf_append_slice(c->answer->body, bytes);
}

static void on_end(struct vg_bench_reply *r, int err)
{
    struct call *c = VG_CONTAINER_OF(r, struct call, reply);
    c->is_done = true;
    c->err = c->err ? c->err : err;
}

static const struct vg_bench_reply_ops ops = {NULL, on_data, on_end};

int vg_bench_call_on(struct vg_bench_conn *c, const struct vg_bench_ask *ask,
                     struct vg_bench_answer *ret)
{
    struct call call = {.reply.ops = &ops, .answer = ret};
    ret->bytes = 0;
    int r = vg_bench_conn_ask(c, &call.reply, ask);
    for (uint64_t begin = vg_bench_now(); r == 0 && !call.is_done;) {
        r = vg_bench_engine_turn(c->engine, 100);
        if (r == 0 && vg_bench_is_interrupted())
            r = VIGIL_E_CANCELED;
        if (r == 0 && vg_bench_now() - begin > CALL_LIMIT_NS)
            r = VIGIL_E_TIMEOUT;
    }
    ret->status = call.reply.status;
    if (call.reply.conn) { /* it is not over: who frees the connection must not find it there */
        vg_list_remove(&call.reply.link);
        vg_free(call.reply.body_copy);
    }
    return r == 0 ? call.err : r;
}
