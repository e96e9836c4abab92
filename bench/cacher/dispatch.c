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

/* Short turns of both sides in alternation: what else the machine does meanwhile strikes both, and
 * a ratio of neighbours that it did strike is outvoted. */
#define EVENTS 1000u
#define TURNS_PER_ROUND 3u
#define TURNS_MAX (ROUNDS_MAX * TURNS_PER_ROUND)
/* Of "nodes in turn": as many on both sides, so that it is not their memory that differs. */
#define SPREAD_PODS 3000u

struct spread {
    uint32_t first, pods;
    uint32_t nodes; /* the pods are on nodes below this, and stay there */
    uint32_t version;
};

static struct pod_id pod_of_node(uint64_t i, void *arg)
{
    struct spread *s = arg;
    uint32_t n = s->version++ % s->pods;
    (void)i;
    return (struct pod_id){s->first + n, n * 7919 % s->nodes, s->version};
}

/* A crowd on a rig of its own: on one port it would see the other's events. */
struct side {
    struct rig rig;
    struct crowd crowd;
    struct spread one, all;
    double one_ns[TURNS_MAX], all_ns[TURNS_MAX];
};

static double cost(struct side *side, struct spread *s)
{
    rig_write(&side->rig, EVENTS, pod_of_node, s);
    rig_settle(&side->rig);
    rig_feed(&side->rig);
    uint64_t ns = rig_pull(&side->rig);
    if (crowd_take(&side->crowd).frames != EVENTS)
        bench_die("an event did not reach exactly one watcher");
    return (double)ns / EVENTS;
}

static void open_side(struct side *s, size_t n)
{
    *s = (struct side){.one = {0, 1, 1, 0}, .all = {1, SPREAD_PODS, (uint32_t)n, 0}};
    rig_open(&s->rig, NULL);
    crowd_init(&s->crowd, &s->rig, n);
    crowd_open(&s->crowd, 0, crowd_by_node, NULL);
    cost(s, &s->one);
    for (uint32_t i = 0; i < SPREAD_PODS / EVENTS; i++) /* then every pod is there */
        cost(s, &s->all);
}

static void close_side(struct side *s)
{
    crowd_done(&s->crowd);
    rig_close(&s->rig);
}

static void report_side(struct report *r, const struct side *s, size_t turns)
{
    size_t n = s->crowd.n;
    report_row(r, "ns", s->one_ns, turns, "per event, %zu watchers, a pod of one node", n);
    report_row(r, "ns", s->all_ns, turns, "per event, %zu watchers, nodes in turn", n);
}

void part_uninterested(struct report *r)
{
    static struct side few, many;
    double ratio[TURNS_MAX];
    size_t turns = r->settings.rounds * TURNS_PER_ROUND;
    open_side(&few, 10);
    open_side(&many, 100000);
    for (size_t i = 0; i < turns; i++) {
        few.one_ns[i] = cost(&few, &few.one);
        many.one_ns[i] = cost(&many, &many.one);
        few.all_ns[i] = cost(&few, &few.all);
        many.all_ns[i] = cost(&many, &many.all);
        ratio[i] = many.one_ns[i] / few.one_ns[i];
    }
    report_side(r, &few, turns);
    report_side(r, &many, turns);
    report_row(r, "times", ratio, turns,
               "100000 watchers over 10, a pod of one node, turn by turn");
    report_bar(r, report_median(ratio, turns), 1.5,
               "100,000 node watchers, of whom one cares, over 10");
    close_side(&few);
    close_side(&many);
}
