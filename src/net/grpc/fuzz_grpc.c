/* fuzz_grpc.c - what a gRPC server may send, in random pieces: to a session with calls under way.
 * Checked: each call ends exactly once, whatever comes; after the connection is lost no stream is
 * left; a message is never longer than allowed; the output stays bounded. The first byte chooses
 * how the calls behave; what follows is the server's. */
#include "base/alloc.h"
#include "base/rng.h"
#include "fuzz.h"
#include "session.h"

#define MESSAGE_MAX 5000
#define CALLS 4

struct fuzz_call {
    struct vg_grpc_call call;
    bool has_ended, is_pausing;
    unsigned n_messages;
};

static void on_message(struct vg_grpc_call *c, struct vg_slice m)
{
    struct fuzz_call *f = VG_CONTAINER_OF(c, struct fuzz_call, call);
    VG_MUST(m.n <= MESSAGE_MAX && !f->has_ended);
    f->n_messages++;
    if (f->is_pausing && f->n_messages % 3 == 0)
        vg_grpc_pause(c);
}
static void on_end(struct vg_grpc_call *c)
{
    struct fuzz_call *f = VG_CONTAINER_OF(c, struct fuzz_call, call);
    VG_MUST(!f->has_ended && c->stream == NULL);
    VG_MUST(memchr(c->status.message, 0, sizeof c->status.message) != NULL);
    VG_MUST(c->answer.n <= MESSAGE_MAX);
    f->has_ended = true;
}

static void on_wake(struct vg_grpc_session *s)
{
    (void)s;
}
static void on_going(struct vg_grpc_session *s, const char *why)
{
    (void)s;
    VG_MUST(strlen(why) < 256);
}
static void on_ended(struct vg_grpc_session *s, struct vg_grpc_call *c)
{
    (void)s;
    c->on_end(c);
}
static const struct vg_grpc_session_ops ops = {on_wake, on_wake, on_going, on_wake, on_ended};

static void start_calls(struct vg_grpc_session *s, struct fuzz_call *calls, unsigned how)
{
    static const struct vg_grpc_field none = {0};
    for (size_t i = 0; i < CALLS; i++) {
        uint8_t *bytes;
        calls[i] = (struct fuzz_call){.is_pausing = how & 1};
        struct vg_grpc_call *c = &calls[i].call;
        c->path = "/x.Y/Z";
        c->flags = (how >> i) & 2 ? VG_GRPC_STREAM : 0;
        c->on_message = on_message;
        c->on_end = on_end;
        c->msg = vg_grpc_msg_new(300, &bytes);
        VG_MUST(c->msg);
        memset(bytes, 'x', 300);
        VG_MUST(vg_grpc_session_start(s, c, &none, 1000) == 0);
    }
}

/* The client's side is sent, and forgotten. */
static int speak(struct vg_grpc_session *s)
{
    int r = vg_grpc_session_fill(s, NULL);
    VG_MUST(s->out.n < 2 * VG_GRPC_OUT_MAX);
    size_t n = s->out.n;
    vg_outq_consume(&s->out, n);
    vg_grpc_session_sent(s, n, 0);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vg_outq_pool pool = {0};
    struct vg_grpc_session s;
    struct fuzz_call calls[CALLS];
    struct vg_rng rng;
    struct vg_grpc_session_opts opts = {.ops = &ops,
                                        .name = "http://fuzz",
                                        .authority = "fuzz",
                                        .message_max = MESSAGE_MAX,
                                        .window = 70000,
                                        .pool = &pool};
    unsigned how = size ? data[0] : 0;
    VG_MUST(vg_grpc_session_init(&s, &opts) == 0);
    start_calls(&s, calls, how);
    int r = speak(&s);
    vg_rng_seed(&rng, size);
    for (size_t at = 1; at < size && r == 0;) {
        size_t piece = 1 + vg_rng_below(&rng, how & 0x80 ? 9 : 4000);
        piece = VG_MIN(piece, size - at);
        r = vg_grpc_session_receive(&s, data + at, piece, NULL);
        at += piece;
        if (r == 0)
            r = speak(&s);
        for (size_t i = 0; i < CALLS; i++)
            vg_grpc_resume(&calls[i].call);
    }
    vg_grpc_session_lost(&s, "the end");
    VG_MUST(s.n_streams == 0);
    for (size_t i = 0; i < CALLS; i++) {
        VG_MUST(calls[i].has_ended);
        vg_grpc_msg_unref(calls[i].call.msg);
        vg_buf_done(&calls[i].call.answer);
    }
    vg_grpc_session_done(&s);
    vg_outq_pool_done(&pool);
    return 0;
}
