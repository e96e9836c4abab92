/* kube.c - rows whose bars are times, beside kube-apiserver and etcd on the same machine: where it
 * is slower or busier than the one that the bars are from, the ratios count. */
#include <stdio.h>
#include <unistd.h>

#include "crowd.h"
#include "latency.h"
#include "rows.h"

#define NODES 100u
#define PODS 10000u

struct figures {
    double list[ROUNDS_MAX], update[ROUNDS_MAX];
    struct latency latency;
};

static void measure(const struct bench *b, struct server *s, struct figures *ret)
{
    bench_progress("kube: filling %u pods", PODS);
    pods_fill(s, PODS, NODES);
    sleep(7); /* checkpoints are over */
    bench_progress("kube: lists");
    (void)node_list_ms(b, s, ret->list);
    bench_progress("kube: updates");
    node_update_us(b, s, H1_TLS, NODES, ret->update);
    bench_progress("kube: latency");
    latency_measure(b, s, H1_TLS, &ret->latency);
    server_stop(s);
    bench_remove_tree(s->dir);
}

static void compare(const struct bench *b, double ours, double theirs, double bar, const char *what,
                    const char *unit)
{
    report_one(b->report, unit, ours, "%s, vigild", what);
    report_one(b->report, unit, theirs, "%s, kube-apiserver with etcd", what);
    report_bar(b->report, ours / theirs, bar, "x kube-apiserver: %s", what);
}

void rows_kube(const struct bench *b)
{
    static struct figures ours, theirs;
    struct server s;
    if (!b->kube || !server_start_kube(&s, b->kube, b->dir)) {
        printf("kube: not measured; --kube DIR names a folder with etcd and kube-apiserver\n");
        return;
    }
    measure(b, &s, &theirs);
    server_start(&s, b->binary, b->dir);
    measure(b, &s, &ours);
    size_t n = b->rounds;
    compare(b, report_median(ours.list, n), report_median(theirs.list, n), 0.3 / 4.0,
            "LIST by spec.nodeName, 100 of 10,000, TLS", "ms");
    compare(b, report_median(ours.update, n), report_median(theirs.update, n), 150.0 / 2500,
            "pod update, 1,000 node watchers, TLS", "us");
    const struct latency *l = &ours.latency, *k = &theirs.latency;
    compare(b, l->answer_p50, k->answer_p50, 1, "write to answer, p50, 1,000 watchers, TLS", "ms");
    compare(b, l->p50, k->p50, 3.0 / 20, "answer to event, p50, 1,000 watchers, TLS", "ms");
    compare(b, l->p99, k->p99, 8.0 / 44, "answer to event, p99, 1,000 watchers, TLS", "ms");
    compare(b, l->begin_p50, k->begin_p50, 1, "write to event, p50, 1,000 watchers, TLS", "ms");
    compare(b, l->begin_p99, k->begin_p99, 1, "write to event, p99, 1,000 watchers, TLS", "ms");
}
