/* crowd.c - see crowd.h. */
#include "crowd.h"

#include <stdlib.h>

static int drop_write(struct vg_sink *sink, const struct vg_frame *frame)
{
    struct drop *d = VG_CONTAINER_OF(sink, struct drop, sink);
    d->frames++;
    d->bytes += vg_frame_size(frame);
    return VG_SINK_OPEN;
}

static void drop_end(struct vg_sink *sink, enum vg_watch_end why, uint64_t oldest)
{
    (void)sink;
    (void)oldest;
    bench_die("a watcher ended: %s", vg_watch_end_name(why));
}

static const struct vg_sink_ops drop_ops = {.write = drop_write, .end = drop_end};

void crowd_init(struct crowd *c, struct rig *r, size_t n)
{
    *c = (struct crowd){.rig = r, .n = n};
    c->drops = bench_alloc(n, sizeof *c->drops);
    c->watchers = bench_alloc(n, sizeof *c->watchers);
    for (size_t i = 0; i < n; i++)
        c->drops[i].sink.ops = &drop_ops;
}

void crowd_done(struct crowd *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->watchers[i])
            vg_cache_watcher_stop(c->watchers[i]);
    rig_settle(c->rig);
    free(c->watchers);
    free(c->drops);
}

const struct vg_obj_predicate *crowd_by_node(size_t i, const void *arg)
{
    (void)arg;
    return pods_of_node((uint32_t)i);
}

const struct vg_obj_predicate *crowd_same(size_t i, const void *arg)
{
    (void)i;
    return vg_obj_predicate_ref(arg);
}

static void open_one(struct crowd *c, size_t i, vg_rev after, const struct vg_obj_predicate *p)
{
    struct vg_cache_watch_opts o = {
        .predicate = p,
        .start = after ? VG_WATCH_AFTER : VG_WATCH_NOW,
        .rev = after,
        .with_bookmarks = true,
        .timeout_ms = 40 * 60 * 1000 + i % 600000,
        .sink = &c->drops[i].sink,
    };
    vg_rev oldest = 0;
    int r = vg_cache_watch(c->rig->port, &o, &c->watchers[i], &oldest);
    if (r < 0)
        bench_die("a watch was refused: %s", vg_err_text(r));
}

uint64_t crowd_open(struct crowd *c, vg_rev after, crowd_predicate_fn *predicate, const void *arg)
{
    const struct vg_obj_predicate **ps = bench_alloc(c->n, sizeof *ps);
    for (size_t i = 0; i < c->n; i++)
        ps[i] = predicate(i, arg);
    uint64_t begin = rig_cpu_ns();
    for (size_t i = 0; i < c->n; i++)
        open_one(c, i, after, ps[i]);
    rig_settle(c->rig);
    uint64_t used = rig_cpu_ns() - begin;
    for (size_t i = 0; i < c->n; i++)
        vg_obj_predicate_unref(ps[i]);
    free(ps);
    return used;
}

struct drop crowd_take(struct crowd *c)
{
    struct drop sum = {0};
    for (size_t i = 0; i < c->n; i++) {
        sum.frames += c->drops[i].frames;
        sum.bytes += c->drops[i].bytes;
        c->drops[i].frames = c->drops[i].bytes = 0;
    }
    return sum;
}
