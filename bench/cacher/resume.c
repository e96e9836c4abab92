/* resume.c - watchers that come back: what each event costs that they missed, beside the cost of an
 * event when one watcher is told of all. */
#include "crowd.h"
#include "part.h"

#define PODS 10000u

struct plan {
    uint32_t nodes;
};

/* 7919 is prime to PODS: every pod gets as many, and a node's events lie far apart. */
static struct pod_id pod_in_turn(uint64_t i, void *arg)
{
    const struct plan *plan = arg;
    uint32_t id = (uint32_t)(i * 7919 % PODS);
    return (struct pod_id){.id = id, .node = id % plan->nodes, .version = (uint32_t)i};
}

/* ns of all of it, opening the watchers included. */
static double resume(struct rig *rig, size_t n, vg_rev after, uint64_t events,
                     const struct vg_obj_predicate *same)
{
    struct crowd c;
    crowd_init(&c, rig, n);
    uint64_t ns = crowd_open(&c, after, same ? crowd_same : crowd_by_node, same);
    uint64_t frames = crowd_take(&c).frames;
    if (frames != events)
        bench_die("%llu events were replayed, not %llu", (unsigned long long)frames,
                  (unsigned long long)events);
    crowd_done(&c);
    return (double)ns;
}

static void measure(struct report *r, struct rig *rig, uint32_t nodes, vg_rev after,
                    uint64_t events)
{
    double plain[ROUNDS_MAX], own[ROUNDS_MAX], none[ROUNDS_MAX], ratio[ROUNDS_MAX];
    double n = (double)events;
    size_t rounds = r->settings.rounds;
    const struct vg_obj_predicate *all = pods_predicate(NULL, NULL);
    for (size_t i = 0; i < rounds; i++) {
        plain[i] = resume(rig, 1, after, events, all) / n;
        own[i] = resume(rig, nodes, after, events, NULL) / n;
        none[i] = resume(rig, nodes, after + events, 0, NULL) / nodes;
        ratio[i] = own[i] / plain[i];
    }
    vg_obj_predicate_unref(all);
    report_row(r, "ns", plain, rounds, "per event, one watcher is told of all %llu",
               (unsigned long long)events);
    report_row(r, "ns", own, rounds, "per event, %u node watchers get %llu each", nodes,
               (unsigned long long)(events / nodes));
    report_row(r, "ns", none, rounds, "per watcher when it missed nothing");
    report_row(r, "times", ratio, rounds, "node watchers over plain replay, round by round");
    report_bar(r, report_median(ratio, rounds), 2,
               "an event of a resuming node watcher, over plain replay");
}

void part_resume(struct report *r)
{
    struct plan plan = {.nodes = r->settings.quick ? 1000 : 5000};
    uint64_t events = r->settings.quick ? 20000 : 100000;
    struct rig rig;
    rig_open(&rig, NULL);
    rig_write(&rig, PODS, pod_in_turn, &plan);
    rig_feed(&rig);
    vg_rev after = vg_cacher_revision(rig.cacher);
    rig_write(&rig, events, pod_in_turn, &plan);
    rig_feed(&rig);
    rig_pull(&rig);
    measure(r, &rig, plan.nodes, after, events);
    rig_close(&rig);
}
