/* with_protobuf_c.c - generated code's side: structs to message, message to structs. It allocates
 * from an arena, as ours does; malloc would be slower. */
#include "base/alloc.h"
#include "bench_schema.h"
#include "pod.pb-c.h"

struct state {
    const struct pods *pods;
    struct vg_arena kept, dropped;
    Bench__Pod *made[PODS];
    struct vg_buf out;
};

static void *take(void *arena, size_t n)
{
    return vg_arena_alloc(arena, n, 16);
}

static void leave(void *arena, void *p)
{
    (void)arena;
    (void)p;
}

static Bench__Pod *unpack(struct vg_arena *arena, const struct vg_buf *bytes)
{
    ProtobufCAllocator a = {.alloc = take, .free = leave, .allocator_data = arena};
    Bench__Pod *pod = bench__pod__unpack(&a, bytes->n, (const uint8_t *)bytes->p);
    must(pod ? 0 : -1);
    return pod;
}

static void *open_it(const struct pods *pods)
{
    struct state *s = vg_new(struct state);
    must(s ? 0 : -1);
    s->pods = pods;
    vg_arena_init(&s->kept, 1 << 16, 0);
    vg_arena_init(&s->dropped, 1 << 16, 0);
    for (unsigned i = 0; i < PODS; i++)
        s->made[i] = unpack(&s->kept, &pods->bytes[i]);
    return s;
}

static void encode(void *state)
{
    struct state *s = state;
    for (unsigned i = 0; i < PODS; i++) {
        vg_buf_clear(&s->out);
        must(vg_buf_reserve(&s->out, bench__pod__get_packed_size(s->made[i])));
        s->out.n = bench__pod__pack(s->made[i], (uint8_t *)s->out.p);
    }
}

static void measure(void *state)
{
    struct state *s = state;
    for (unsigned i = 0; i < PODS; i++)
        must(bench__pod__get_packed_size(s->made[i]) == 0 ? -1 : 0);
}

static void decode(void *state)
{
    struct state *s = state;
    for (unsigned i = 0; i < PODS; i++) {
        vg_arena_reset(&s->dropped);
        (void)unpack(&s->dropped, &s->pods->bytes[i]);
    }
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
    vg_arena_done(&s->kept);
    vg_arena_done(&s->dropped);
    vg_buf_done(&s->out);
    vg_free(s);
}

const struct contender with_protobuf_c = {.name = "protobuf-c",
                                          .open = open_it,
                                          .encode = encode,
                                          .decode = decode,
                                          .measure = measure,
                                          .check = check,
                                          .close = close_it};
