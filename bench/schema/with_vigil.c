/* with_vigil.c - our side: text to message, message to tree. */
#include "base/alloc.h"
#include "bench_schema.h"

struct state {
    const struct pods *pods;
    struct vg_proto_encoder encoder;
    struct vg_buf out;
    struct vg_arena arena;
};

static void *open_it(const struct pods *pods)
{
    struct state *s = vg_new(struct state);
    must(s ? 0 : -1);
    s->pods = pods;
    vg_arena_init(&s->arena, 1 << 16, 0);
    return s;
}

static void encode(void *state)
{
    struct state *s = state;
    for (unsigned i = 0; i < PODS; i++) {
        vg_buf_clear(&s->out);
        must(vg_proto_encode(&s->encoder, s->pods->type, vg_buf_slice(&s->pods->json[i]), REVISION,
                             &s->out));
    }
}

static void decode(void *state)
{
    struct state *s = state;
    for (unsigned i = 0; i < PODS; i++) {
        struct vg_proto_envelope x = {.raw = vg_buf_slice(&s->pods->bytes[i])};
        struct vg_json v;
        vg_arena_reset(&s->arena);
        must(vg_proto_decode(&s->arena, s->pods->type, &x, &v, NULL));
    }
}

static void measure(void *state)
{
    struct state *s = state;
    uint64_t n;
    for (unsigned i = 0; i < PODS; i++)
        must(vg_proto_size(&s->encoder, s->pods->type, vg_buf_slice(&s->pods->json[i]), REVISION,
                           &n));
}

static bool check(void *state)
{
    struct state *s = state;
    encode(s);
    return vg_slice_eq(vg_buf_slice(&s->out), vg_buf_slice(&s->pods->bytes[PODS - 1]));
}

static void close_it(void *state)
{
    struct state *s = state;
    vg_proto_encoder_done(&s->encoder);
    vg_buf_done(&s->out);
    vg_arena_done(&s->arena);
    vg_free(s);
}

const struct contender with_vigil = {.name = "vigil",
                                     .open = open_it,
                                     .encode = encode,
                                     .decode = decode,
                                     .measure = measure,
                                     .check = check,
                                     .close = close_it};
