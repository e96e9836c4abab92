/* node.c - an update that concerns one of 1,000 node watchers; and how soon 1,000 watchers hear of
 * a write that was acknowledged. */
#include <stdlib.h>
#include <time.h>

#include "crowd.h"
#include "rows.h"

#define WATCHERS 1000u
#define NODE_WATCH                                                                                 \
    "/api/v1/"                                                                                     \
    "pods?watch=1&resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&"    \
    "fieldSelector=spec.nodeName%3Dnode-%u"
#define ALL_WATCH                                                                                  \
    "/api/v1/"                                                                                     \
    "pods?watch=1&resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"

void node_update_us(const struct bench *b, const struct server *s, enum carrier carrier,
                    uint32_t nodes, double *ret_us)
{
    unsigned events = b->quick ? 200 : 1000;
    struct crowd *crowd = crowd_of_watches(s, carrier, NODE_WATCH, WATCHERS, 100);
    struct client c;
    struct vg_buf scratch;
    vg_buf_init(&scratch, 0);
    client_open(&c, s, carrier_is_tls(carrier));
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

void node_latency_ms(const struct bench *b, const struct server *s, enum carrier carrier,
                     double *ret_p50, double *ret_p99)
{
    unsigned events = b->quick ? 20 : 100;
    struct crowd *crowd = crowd_of_watches(s, carrier, ALL_WATCH, WATCHERS, 10);
    struct vg_hist *h = bench_alloc(1, sizeof *h);
    struct client c;
    struct vg_buf scratch;
    vg_buf_init(&scratch, 0);
    client_open(&c, s, carrier_is_tls(carrier));
    for (uint32_t k = 0; k < events; k++) {
        crowd_mark(crowd);
        pod_update(&c, &scratch, (struct pod){0, 0, 5000000 + k});
        uint64_t acknowledged = bench_now_ns();
        nanosleep(&(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
        crowd_first_arrivals(crowd, acknowledged, h);
    }
    *ret_p50 = bench_hist_us(h, 0.5) / 1e3;
    *ret_p99 = bench_hist_us(h, 0.99) / 1e3;
    client_done(&c);
    vg_buf_done(&scratch);
    free(h);
    crowd_free(crowd);
}

static void latency(const struct bench *b, const struct server *s, enum carrier carrier)
{
    double p50, p99;
    node_latency_ms(b, s, carrier, &p50, &p99);
    report_one(b->report, "ms", p50,
               "write acknowledged to event received, p50, 1,000 watchers, %s",
               carrier_names[carrier]);
    report_one(b->report, "ms", p99, "  p99");
    report_bar(b->report, p50, 3, "ms to an event, p50, %s", carrier_names[carrier]);
    report_bar(b->report, p99, 8, "ms to an event, p99, %s", carrier_names[carrier]);
}

void rows_node(const struct bench *b)
{
    struct server s;
    server_start(&s, b->binary, b->dir);
    pods_fill(&s, WATCHERS, WATCHERS);
    node_update(b, &s, H1_PLAIN);
    node_update(b, &s, H1_TLS);
    node_update(b, &s, H2_TLS);
    latency(b, &s, H1_TLS);
    latency(b, &s, H2_TLS);
    server_stop(&s);
    bench_remove_tree(s.dir);
}
