/* fuzz_bench_events.c - the bytes of a watch or a list, cut where the input says: whatever they
 * are, cutting them differently gives the same events. */
#include <stdlib.h>

#include "events.h"

struct seen {
    bool is_protobuf;
    uint64_t n, bytes, sum;
};

static void on_event(void *arg, const struct vg_bench_event *e)
{
    struct seen *s = arg;
    s->n++;
    s->bytes += e->bytes.n;
    s->sum += e->has_mark ? e->number + e->sent_ns : 0;
    s->sum += vg_bench_event_type(e, s->is_protobuf).n * 3 +
              vg_bench_event_version(e, s->is_protobuf).n * 5;
}

static void feed(struct seen *seen, struct vg_slice s, size_t step)
{
    struct vg_bench_events e = {.is_protobuf = seen->is_protobuf};
    while (s.n) {
        size_t n = VG_MIN(step, s.n);
        if (vg_bench_events_feed(&e, vg_slice(s.p, n), on_event, seen) < 0)
            break;
        s = vg_slice(s.p + n, s.n - n);
    }
    vg_bench_events_done(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct vg_slice text = {(const char *)data + 2, size - 2};
    struct seen whole = {.is_protobuf = data[0] & 1}, cut = {.is_protobuf = data[0] & 1};
    feed(&whole, text, text.n ? text.n : 1);
    feed(&cut, text, (size_t)data[1] + 1);
    if (whole.n != cut.n || whole.bytes != cut.bytes || whole.sum != cut.sum)
        abort();
    (void)vg_bench_list_version(text, data[0] & 1);
    (void)vg_bench_list_continue(text, data[0] & 1);
    return 0;
}
