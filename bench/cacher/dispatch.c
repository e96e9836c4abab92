/* dispatch.c - what an event costs on the way to its watchers: those that care, and those that do
 * not. Events are written and fed first; what is timed is the port alone. */
#include "crowd.h"
#include "part.h"

#define PODS 1000u

/* ---- all are interested ---- */

static struct pod_id any_pod(uint64_t i, void *arg)
{
    uint32_t *version = arg;
    return (struct pod_id){.id = (uint32_t)(i % PODS), .node = 0, .version = ++*version};
}

struct dispatching {
    struct rig *rig;
    uint32_t version;
    size_t rounds;
};

/* ns per delivered event of each round. */
static void measure(struct dispatching *d, struct crowd *c, uint64_t events, double *ret)
{
    for (size_t i = 0; i <= d->rounds; i++) { /* one more: the first warms up */
        rig_write(d->rig, events, any_pod, &d->version);
        rig_settle(d->rig); /* timers that came due meanwhile are not the events' */
        rig_feed(d->rig);
        uint64_t ns = rig_pull(d->rig);
        if (crowd_take(c).frames != events * c->n)
            bench_die("not every watcher was told of every event");
        if (i > 0)
            ret[i - 1] = (double)ns / (double)(events * c->n);
    }
    rig_compact(d->rig);
}

static void run_size(struct report *r, struct dispatching *d, size_t n, const char *labels)
{
    static const uint64_t deliveries = 2000000;
    double ns[ROUNDS_MAX], open_ns;
    uint64_t events = VG_MAX(VG_MIN(deliveries / n, (uint64_t)4000), (uint64_t)10);
    const struct vg_obj_predicate *p = pods_predicate(labels, NULL);
    struct crowd c;
    crowd_init(&c, d->rig, n);
    open_ns = (double)crowd_open(&c, 0, crowd_same, p);
    measure(d, &c, r->settings.quick ? VG_MAX(events / 2, (uint64_t)10) : events, ns);
    report_row(r, "ns", ns, d->rounds, "per delivered event, %zu watchers%s", n,
               labels ? " with three labels" : "");
    if (n == 100000)
        report_one(r, "ns", open_ns / (double)n, "to open one of %zu watchers and make it live", n);
    crowd_done(&c);
    vg_obj_predicate_unref(p);
}

void part_dispatch(struct report *r)
{
    static const size_t sizes[] = {10, 1000, 10000, 100000};
    struct rig rig;
    struct dispatching d = {.rig = &rig, .rounds = r->settings.rounds};
    rig_open(&rig, NULL);
    rig_write(&rig, PODS, any_pod, &d.version);
    rig_feed(&rig);
    rig_pull(&rig);
    for (size_t i = 0; i < VG_ARRAY_LEN(sizes); i++)
        run_size(r, &d, sizes[i], NULL);
    run_size(r, &d, 10000, "app.kubernetes.io/name,example.com/label-07,example.com/label-19");
    rig_close(&rig);
}

/* ---- one of many is ---- */

#define EVENTS 3000u

struct spread {
    uint32_t nodes; /* events go to nodes below this */
    uint32_t version;
};

static struct pod_id pod_of_node(uint64_t i, void *arg)
{
    struct spread *s = arg;
    uint32_t id = (uint32_t)(i * 7919 % s->nodes);
    return (struct pod_id){.id = id, .node = id, .version = ++s->version};
}

static double cost(struct rig *rig, struct crowd *c, struct spread *s)
{
    rig_write(rig, EVENTS, pod_of_node, s);
    rig_settle(rig);
    rig_feed(rig);
    uint64_t ns = rig_pull(rig);
    if (crowd_take(c).frames != EVENTS)
        bench_die("an event did not reach exactly one watcher");
    return (double)ns / EVENTS;
}

struct costs {
    double one[ROUNDS_MAX], many[ROUNDS_MAX];
};

/* Interleaved would be fairer, but two crowds on one port would see each other's events. */
static void run_nodes(struct report *r, size_t n, struct costs *ret)
{
    struct rig rig;
    struct crowd c;
    struct spread one = {.nodes = 1}, many = {.nodes = (uint32_t)n};
    rig_open(&rig, NULL);
    crowd_init(&c, &rig, n);
    crowd_open(&c, 0, crowd_by_node, NULL);
    cost(&rig, &c, &one);
    for (size_t i = 0; i < r->settings.rounds; i++) {
        ret->one[i] = cost(&rig, &c, &one);
        ret->many[i] = cost(&rig, &c, &many);
    }
    crowd_done(&c);
    rig_close(&rig);
    report_row(r, "ns", ret->one, r->settings.rounds, "per event, %zu watchers, one node's", n);
    report_row(r, "ns", ret->many, r->settings.rounds, "per event, %zu watchers, all in turn", n);
}

void part_uninterested(struct report *r)
{
    struct costs few, crowd;
    size_t n = r->settings.rounds;
    run_nodes(r, 10, &few);
    run_nodes(r, 100000, &crowd);
    report_bar(r, report_median(crowd.one, n) / report_median(few.one, n), 1.5,
               "100,000 node watchers, of whom one cares, over 10");
}
