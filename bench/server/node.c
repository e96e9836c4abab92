/* node.c - an update that concerns one of 1,000 node watchers. */
#include "crowd.h"
#include "rows.h"

#define WATCHERS 1000u
#define NODE_WATCH                                                                                 \
    "/api/v1/"                                                                                     \
    "pods?watch=1&resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&"    \
    "fieldSelector=spec.nodeName%3D" PODS_NODE "%u"

void node_update_us(const struct bench *b, const struct server *s, enum carrier carrier,
                    uint32_t nodes, double *ret_us)
{
    unsigned events = b->quick ? 200 : 1000;
    struct crowd *crowd = crowd_of_watches(s, carrier, NODE_WATCH, WATCHERS, 100);
    struct client c;
    struct vg_buf scratch;
    vg_buf_init(&scratch, 0);
    client_open(&c, s, carrier_is_tls(carrier) ? H1_TLS : H1_PLAIN);
    for (size_t i = 0; i < b->rounds; i++) {
        uint64_t before = server_cpu_ns(s);
        for (uint32_t k = 0; k < events; k++) {
            uint32_t id = k % WATCHERS;
            pod_update(&c, &scratch, (struct pod){id, id % nodes, 1 + k + (uint32_t)i * events});
        }
        crowd_await_quiet(crowd, 50);
        ret_us[i] = (double)(server_cpu_ns(s) - before) / 1e3 / events;
    }
    client_done(&c);
    vg_buf_done(&scratch);
    crowd_free(crowd);
}

static void node_update(const struct bench *b, const struct server *s, enum carrier carrier)
{
    double cpu[ROUNDS_MAX];
    node_update_us(b, s, carrier, WATCHERS, cpu);
    report_row(b->report, "us", cpu, b->rounds, "pod update, 1,000 node watchers, %s, all of it",
               carrier_names[carrier]);
    report_bar(b->report, report_median(cpu, b->rounds), 150, "us for an update, node watchers, %s",
               carrier_names[carrier]);
}

void rows_node(const struct bench *b)
{
    struct server s;
    server_start(&s, b->binary, b->dir);
    pods_fill(&s, WATCHERS, WATCHERS);
    node_update(b, &s, H1_PLAIN);
    node_update(b, &s, H1_TLS);
    node_update(b, &s, H2_TLS);
    rows_latency(b, &s);
    server_stop(&s);
    bench_remove_tree(s.dir);
}
