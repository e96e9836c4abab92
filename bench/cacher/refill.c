/* refill.c - a start over a store with a long history: how long until the cache is ready, with the
 * window read back so that watchers from before go on. The store's files are in the page cache. */
#include <stdlib.h>

#include "part.h"
#include "rig.h"

#define PODS 10000u

static struct pod_id pod_in_turn(uint64_t i, void *arg)
{
    (void)arg;
    uint32_t id = (uint32_t)(i * 7919 % PODS);
    return (struct pod_id){.id = id, .node = id % 5000, .version = (uint32_t)i};
}

struct building {
    const char *dir;
    uint64_t changes;
};

static void build(struct report *r, void *arg)
{
    const struct building *b = arg;
    struct rig rig;
    (void)r;
    rig_open_store(&rig, b->dir);
    rig_write(&rig, b->changes, pod_in_turn, NULL);
    rig_close(&rig);
}

struct starts {
    double wall_ms[ROUNDS_MAX], feed_us[ROUNDS_MAX], all_us[ROUNDS_MAX], per_event_us[ROUNDS_MAX];
    size_t events;
};

static void start_once(struct rig *rig, struct starts *s, size_t i)
{
    struct bench_usage from, to;
    struct vg_cache_kind_stats k;
    bench_usage_now(&from);
    rig_open_cache(rig);
    bench_usage_now(&to);
    vg_cacher_kind_stats(rig->cacher, 0, &k);
    s->events = k.events;
    double n = (double)VG_MAX(k.events, (size_t)1);
    s->wall_ms[i] = (double)(to.wall_ns - from.wall_ns) / 1e6;
    s->per_event_us[i] = (double)(to.wall_ns - from.wall_ns) / 1e3 / n;
    s->feed_us[i] = (double)(to.thread_ns - from.thread_ns) / 1e3 / n;
    s->all_us[i] = (double)(to.cpu_ns - from.cpu_ns) / 1e3 / n;
    rig_close_cache(rig);
}

static void show(struct report *r, const struct starts *s, size_t rounds)
{
    report_row(r, "ms", s->wall_ms, rounds, "from open to ready, %zu events in the window, %u pods",
               s->events, PODS);
    report_row(r, "us", s->per_event_us, rounds, "elapsed per event");
    report_row(r, "us", s->feed_us, rounds, "per event, the feed's thread");
    report_row(r, "us", s->all_us, rounds, "per event, with the store's threads");
}

void part_refill(struct report *r)
{
    char *dir = bench_path(r->settings.dir, "refill");
    struct building b = {.dir = dir, .changes = PODS + (r->settings.quick ? 20000 : 100000)};
    struct starts s = {0};
    size_t rounds = VG_MIN(r->settings.rounds, (size_t)3);
    if (!part_in_child(build, r, &b))
        bench_die("the store was not made");
    bench_tree_warm(dir);
    struct rig rig;
    rig_open_store(&rig, dir);
    for (size_t i = 0; i < rounds; i++)
        start_once(&rig, &s, i);
    rig_close(&rig);
    show(r, &s, rounds);
    bench_remove_tree(dir);
    free(dir);
}
