/* list.c - reading everything from the cache: walk and splice every item into a writer that drops
 * it, or into one that copies as a socket would. And the other side of a large state: what the feed
 * does with an event. */
#include <stdlib.h>

#include "base/alloc.h"
#include "part.h"
#include "rig.h"

#define ROOM ((size_t)256 << 10)
#define UPDATES 5000u

struct listing {
    struct rig *rig;
    const struct vg_obj_predicate *predicate;
    char *room; /* NULL: bytes are dropped */
    size_t at;
    uint64_t objects, bytes, allocations;
};

static void copy(struct listing *l, struct vg_slice s)
{
    if (l->at + s.n > ROOM)
        l->at = 0;
    memcpy(l->room + l->at, s.p, s.n);
    l->at += s.n;
}

static void write_item(struct listing *l, const struct vg_rec *rec)
{
    struct vg_obj_header h;
    struct vg_obj_splice s;
    vg_obj_header_read(vg_rec_header(rec), vg_rec_value(rec), &h);
    vg_obj_splice_item(&s, &h, rec->rev);
    for (uint32_t i = 0; l->room && i < s.n; i++)
        copy(l, s.v[i]);
    l->bytes += vg_obj_splice_size(&s);
    l->objects++;
}

static void list_all(struct listing *l)
{
    struct vg_cache_snapshot s;
    struct vg_cache_walk w;
    struct vg_obj_key key;
    if (vg_cache_newest(l->rig->cacher, 0, &s) < 0)
        bench_die("the cache is not ready");
    vg_cache_walk_init(&w, l->rig->cacher, 0, &s, l->predicate, vg_slice(NULL, 0), &key);
    for (const struct vg_rec *rec = vg_cache_walk_next(&w); rec; rec = vg_cache_walk_next(&w))
        write_item(l, rec);
    vg_cache_snapshot_done(&s);
}

/* ns of one list. */
static double timed_list(struct listing *l)
{
    l->objects = l->bytes = 0;
    (void)vg_alloc_fail_at(UINT64_MAX, 0);
    uint64_t begin = rig_cpu_ns();
    list_all(l);
    uint64_t ns = rig_cpu_ns() - begin;
    l->allocations += vg_alloc_fail_at(0, 0);
    return (double)ns;
}

static void run_list(struct report *r, struct listing *l, double per, const char *what)
{
    double ns[ROUNDS_MAX];
    for (size_t i = 0; i < r->settings.rounds; i++) {
        double one = timed_list(l);
        ns[i] = one / (per > 0 ? per : (double)l->objects);
    }
    report_row(r, "ns", ns, r->settings.rounds, "%s", what);
}

static void run_selected(struct report *r, struct listing *l, double pods)
{
    l->predicate = pods_predicate("app.kubernetes.io/name=web-7", NULL);
    run_list(r, l, pods, "per object looked at, one in 50 has the label");
    vg_obj_predicate_unref(l->predicate);
    l->predicate = pods_of_node(7);
    run_list(r, l, 0, "per object given, all of one node, by the index");
    vg_obj_predicate_unref(l->predicate);
    l->predicate = NULL;
}

static void run_lists(struct report *r, struct rig *rig, double pods)
{
    struct listing l = {.rig = rig};
    run_list(r, &l, 0, "per object, all of them, bytes dropped");
    if ((double)l.objects != pods)
        bench_die("a list was not complete");
    double size = (double)l.bytes / pods;
    run_selected(r, &l, pods);
    double lists = 3.0 * (double)r->settings.rounds;
    report_one(r, "each", (double)l.allocations / lists, "allocations in a list of %.0f objects",
               pods);
    l.room = bench_alloc(1, ROOM);
    run_list(r, &l, 0, "per object, all of them, bytes copied");
    free(l.room);
    report_one(r, "bytes", size, "in an item");
    report_bar(r, (double)l.allocations / lists / pods, 0.001,
               "allocations for each object listed");
}

static struct pod_id pod_once(uint64_t i, void *arg)
{
    const uint32_t *version = arg;
    uint32_t id = (uint32_t)i;
    return (struct pod_id){.id = id, .node = id % 5000, .version = *version};
}

struct updates {
    uint32_t pods, version;
};

static struct pod_id some_pod(uint64_t i, void *arg)
{
    struct updates *u = arg;
    uint32_t id = (uint32_t)(i * 7919 % u->pods);
    return (struct pod_id){.id = id, .node = id % 5000, .version = ++u->version};
}

static void run_feed(struct report *r, struct rig *rig, uint32_t pods)
{
    struct updates u = {.pods = pods};
    double ns[ROUNDS_MAX];
    for (size_t i = 0; i < r->settings.rounds; i++) {
        rig_write(rig, UPDATES, some_pod, &u);
        ns[i] = (double)rig_feed(rig) / UPDATES;
        rig_pull(rig);
        rig_compact(rig);
    }
    report_row(r, "ns", ns, r->settings.rounds, "to apply one update, %u objects, two trees", pods);
}

void part_list(struct report *r)
{
    uint32_t pods = r->settings.quick ? 20000 : 100000, version = 0;
    struct rig rig;
    rig_open(&rig, NULL);
    rig_write(&rig, pods, pod_once, &version);
    rig_feed(&rig);
    rig_pull(&rig);
    run_lists(r, &rig, pods);
    run_feed(r, &rig, pods);
    rig_close(&rig);
}
