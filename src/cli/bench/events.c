/* events.c - see events.h. */
#include "events.h"

#include <inttypes.h>
#include <stdio.h>

#define MARK_BEGIN "vgb~"
#define NUMBER_DIGITS 10u
#define TIME_DIGITS 19u
#define LENGTH_BYTES 4u
/* A server that sends each event in two pieces needs it for each. */
#define REST_KEPT ((size_t)16 << 10)

/* ---- marks ---- */

void vg_bench_mark(char text[VG_BENCH_MARK_SIZE], uint64_t number, uint64_t sent_ns)
{
    snprintf(text, VG_BENCH_MARK_SIZE, MARK_BEGIN "%010" PRIu64 "~%019" PRIu64 "~",
             number % UINT64_C(10000000000), sent_ns % UINT64_C(10000000000000000000));
}

static bool read_digits(const char *p, size_t n, uint64_t *ret)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned d = (unsigned)(unsigned char)p[i] - '0';
        if (d > 9)
            return false;
        v = v * 10 + d;
    }
    *ret = v;
    return p[n] == '~';
}

static void find_mark(struct vg_bench_event *e)
{
    static const size_t begin = sizeof MARK_BEGIN - 1;
    const char *at = memmem(e->bytes.p, e->bytes.n, MARK_BEGIN, begin);
    size_t left = at ? (size_t)(e->bytes.p + e->bytes.n - at) : 0;
    if (left < VG_BENCH_MARK_SIZE - 1)
        return;
    at += begin;
    e->has_mark = read_digits(at, NUMBER_DIGITS, &e->number) &&
                  read_digits(at + NUMBER_DIGITS + 1, TIME_DIGITS, &e->sent_ns);
}

/* ---- cutting ---- */

/* The first event of the bytes: how many it takes; 0: it is not whole. */
static size_t cut(const struct vg_bench_events *e, struct vg_slice in, struct vg_slice *ret)
{
    if (!e->is_protobuf) {
        const char *end = memchr(in.p, '\n', in.n);
        *ret = vg_slice(in.p, end ? (size_t)(end - in.p) : 0);
        return end ? ret->n + 1 : 0;
    }
    if (in.n < LENGTH_BYTES)
        return 0;
    const unsigned char *p = (const unsigned char *)in.p;
    size_t n = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
    *ret = vg_slice(in.p + LENGTH_BYTES, n);
    return in.n - LENGTH_BYTES < n ? 0 : LENGTH_BYTES + n;
}

int vg_bench_events_feed(struct vg_bench_events *e, struct vg_slice bytes,
                         void (*fn)(void *arg, const struct vg_bench_event *event), void *arg)
{
    struct vg_slice in = bytes;
    if (e->rest.n) {
        e->rest.max = VG_BENCH_EVENT_MAX;
        int r = vg_buf_append_slice(&e->rest, bytes);
        if (r < 0)
            return r;
        in = vg_buf_slice(&e->rest);
    }
    size_t n;
    struct vg_bench_event event = {0};
    while (in.n && (n = cut(e, in, &event.bytes)) > 0) {
        event.has_mark = false;
        find_mark(&event);
        if (event.bytes.n)
            fn(arg, &event);
        in = vg_slice(in.p + n, in.n - n);
    }
    if (e->rest.n) {
        vg_buf_consume(&e->rest, e->rest.n - in.n);
        if (!e->rest.n && e->rest.cap > REST_KEPT)
            vg_buf_done(&e->rest); /* there are thousands of streams */
        return 0;
    }
    return in.n ? vg_buf_append_slice(&e->rest, in) : 0;
}

/* ---- protobuf, as far as it takes ---- */

static bool read_varint(struct vg_slice *s, uint64_t *ret)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64 && s->n; shift += 7) {
        unsigned char c = (unsigned char)*s->p;
        *s = vg_slice(s->p + 1, s->n - 1);
        v |= (uint64_t)(c & 0x7f) << shift;
        if (!(c & 0x80)) {
            *ret = v;
            return true;
        }
    }
    return false;
}

/* The first field of that number with a length; it may be cut off at the end of what is here. */
static struct vg_slice proto_field(struct vg_slice s, unsigned number)
{
    static const size_t fixed[] = {[1] = 8, [5] = 4};
    uint64_t key, n;
    while (read_varint(&s, &key)) {
        unsigned type = (unsigned)(key & 7);
        if (type == 0) {
            if (!read_varint(&s, &n))
                break;
            continue;
        }
        if (type == 2 ? !read_varint(&s, &n) : type != 1 && type != 5)
            break;
        if (type != 2)
            n = fixed[type];
        if (type == 2 && key >> 3 == number)
            return vg_slice(s.p, (size_t)VG_MIN(n, (uint64_t)s.n));
        if (n > s.n)
            break;
        s = vg_slice(s.p + n, s.n - (size_t)n);
    }
    return vg_slice(NULL, 0);
}

/* What a runtime.Unknown wraps, behind the four bytes that begin it. */
static struct vg_slice proto_unwrap(struct vg_slice s)
{
    return s.n > 4 ? proto_field(vg_slice(s.p + 4, s.n - 4), 2) : vg_slice(NULL, 0);
}

/* ---- JSON, as far as it takes ---- */

static struct vg_slice json_text(struct vg_slice s, struct vg_slice key)
{
    const char *at = memmem(s.p, s.n, key.p, key.n);
    if (!at)
        return vg_slice(NULL, 0);
    at += key.n;
    const char *end = memchr(at, '"', (size_t)(s.p + s.n - at));
    return end ? vg_slice(at, (size_t)(end - at)) : vg_slice(NULL, 0);
}

struct vg_slice vg_bench_event_type(const struct vg_bench_event *e, bool is_protobuf)
{
    return is_protobuf ? proto_field(e->bytes, 1)
                       : json_text(e->bytes, VG_SLICE_LIT("\"type\":\""));
}

struct vg_slice vg_bench_event_version(const struct vg_bench_event *e, bool is_protobuf)
{
    if (!is_protobuf)
        return json_text(e->bytes, VG_SLICE_LIT("\"resourceVersion\":\""));
    struct vg_slice object = proto_unwrap(proto_field(proto_field(e->bytes, 2), 1));
    return proto_field(proto_field(object, 1), 6);
}

struct vg_slice vg_bench_list_version(struct vg_slice head, bool is_protobuf)
{
    return is_protobuf ? proto_field(proto_field(proto_unwrap(head), 1), 2)
                       : json_text(head, VG_SLICE_LIT("\"resourceVersion\":\""));
}

struct vg_slice vg_bench_list_continue(struct vg_slice head, bool is_protobuf)
{
    return is_protobuf ? proto_field(proto_field(proto_unwrap(head), 1), 3)
                       : json_text(head, VG_SLICE_LIT("\"continue\":\""));
}
