/* memory.c - what a cached pod costs. The store is an lmdb store that was written by another
 * process and compacted, so that it holds nothing in anonymous memory and the cache has the only
 * copy; everything that grows between opening the cache and ready is counted, whoever asked for it.
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "part.h"
#include "rig.h"

static struct pod_id pod_once(uint64_t i, void *arg)
{
    (void)arg;
    return (struct pod_id){.id = (uint32_t)i, .node = (uint32_t)(i % 5000)};
}

struct building {
    const char *dir;
    uint64_t pods;
};

static void build(struct report *r, void *arg)
{
    const struct building *b = arg;
    struct rig rig;
    (void)r;
    rig_open_store(&rig, b->dir);
    rig_write(&rig, b->pods, pod_once, NULL);
    rig_compact(&rig); /* or the start would refill the window too */
    rig_close(&rig);
}

static double anonymous(void)
{
    FILE *f = fopen("/proc/self/smaps_rollup", "re");
    char line[128];
    double bytes = 0;
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "Anonymous:", 10) == 0)
            bytes = 1024.0 * strtod(line + 10, NULL);
    if (f)
        fclose(f);
    if (bytes <= 0)
        bench_die("/proc/self/smaps_rollup does not say how much is anonymous");
    return bytes;
}

static double heap(void)
{
    struct mallinfo2 m = mallinfo2();
    return (double)(m.uordblks + m.hblkhd);
}

struct sizes {
    size_t n;
    double json, block;
};

/* Of all that the cache holds. */
static struct sizes walk(struct rig *rig)
{
    struct vg_cache_snapshot s;
    struct vg_cache_walk w;
    struct vg_obj_key key;
    struct sizes sum = {0};
    if (vg_cache_newest(rig->cacher, 0, &s) < 0)
        bench_die("the cache is not ready");
    vg_cache_walk_init(&w, rig->cacher, 0, &s, NULL, vg_slice(NULL, 0), &key);
    for (const struct vg_rec *rec = vg_cache_walk_next(&w); rec; rec = vg_cache_walk_next(&w)) {
        sum.n++;
        sum.json += rec->value_len;
        sum.block += (double)vg_rec_size(rec);
    }
    vg_cache_snapshot_done(&s);
    return sum;
}

static void show(struct report *r, struct rig *rig, double rss, double used)
{
    struct sizes s = walk(rig);
    double n = (double)s.n;
    struct vg_cache_kind_stats k;
    vg_cacher_kind_stats(rig->cacher, 0, &k);
    report_one(r, "bytes", s.json / n, "JSON of one of %zu pods with %u labels", s.n, PODS_LABELS);
    report_one(r, "bytes", s.block / n, "its block: JSON, header, key and bookkeeping");
    report_one(r, "bytes", used / n, "malloc'd for each pod");
    report_one(r, "bytes", rss / n, "anonymous memory for each pod");
    report_one(r, "events", (double)k.events, "in the window meanwhile");
    report_bar(r, (rss / n - 200) / (s.json / n), 1.25, "(anonymous memory - 200) over the JSON");
}

void part_memory(struct report *r)
{
    char *dir = bench_path(r->settings.dir, "memory");
    struct building b = {.dir = dir, .pods = r->settings.quick ? 20000 : 50000};
    if (!part_in_child(build, r, &b))
        bench_die("the store was not made");
    struct rig rig;
    rig_open_store(&rig, dir);
    double rss = anonymous(), used = heap();
    rig_open_cache(&rig);
    rss = anonymous() - rss;
    used = heap() - used;
    show(r, &rig, rss, used);
    rig_close(&rig);
    bench_remove_tree(dir);
    free(dir);
}
