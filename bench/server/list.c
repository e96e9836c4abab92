/* list.c - lists of 10,000 pods and of 100 among them, beside writing the same bytes. */
#include <stdlib.h>
#include <unistd.h>

#include "crowd.h"
#include "floor.h"
#include "rows.h"

#define LIST "/api/v1/pods?resourceVersion=0"
#define WATCH_LIST                                                                                 \
    "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"               \
    "allowWatchBookmarks=true&timeoutSeconds=1"
#define NODE_LIST "/api/v1/pods?resourceVersion=0&fieldSelector=spec.nodeName%3D" PODS_NODE "7"

struct one_list {
    enum carrier carrier;
    const char *path, *accept; /* accept NULL: JSON */
    bool is_gzip;
};

/* Over a connection that is open already: *ret_cpu is what the server had used before. */
static uint64_t get(const struct server *s, const struct one_list *l, uint64_t *ret_cpu)
{
    uint64_t bytes = 0;
    struct vg_bench_ask ask = {
        .method = "GET", .path = l->path, .accept = l->accept, .is_gzip = l->is_gzip};
    struct client c;
    client_open(&c, s, l->carrier);
    client_must(&c, &(struct vg_bench_ask){.method = "GET", .path = "/version"});
    *ret_cpu = server_cpu_ns(s);
    int status = client_ask(&c, &ask, &bytes);
    if (status != 200)
        bench_die("%s was answered %d", l->path, status);
    client_done(&c);
    return bytes;
}

/* Processor time of the server for one list, in ms. */
static double list_ms(const struct server *s, const struct one_list *l, uint64_t *ret_bytes)
{
    uint64_t before;
    *ret_bytes = get(s, l, &before);
    return (double)(server_cpu_ns(s) - before) / 1e6;
}

static void against_floor(const struct bench *b, const struct server *s, const struct one_list *l,
                          const char *what, double limit)
{
    double cpu[ROUNDS_MAX], ratio[ROUNDS_MAX];
    uint64_t bytes = 0;
    for (size_t i = 0; i < b->rounds; i++) {
        cpu[i] = list_ms(s, l, &bytes);
        double floor = floor_bulk_ns(bytes, carrier_is_tls(l->carrier)) / 1e6;
        ratio[i] = cpu[i] / floor;
    }
    report_row(b->report, "ms", cpu, b->rounds, "%s, %s, %.0f MB", what, carrier_names[l->carrier],
               (double)bytes / 1e6);
    report_row(b->report, "x", ratio, b->rounds, "  times the floor");
    if (limit > 0)
        report_bar(b->report, report_median(ratio, b->rounds), limit, "x floor: %s, %s", what,
                   carrier_names[l->carrier]);
}

static void gzip_list(const struct bench *b, const struct server *s)
{
    double cpu[ROUNDS_MAX];
    uint64_t bytes = 0;
    struct one_list l = {H1_TLS, LIST, NULL, true};
    for (size_t i = 0; i < b->rounds; i++)
        cpu[i] = list_ms(s, &l, &bytes);
    report_row(b->report, "ms", cpu, b->rounds, "LIST with gzip, TLS, %.1f MB sent",
               (double)bytes / 1e6);
    report_bar(b->report, report_median(cpu, b->rounds), 130, "ms for LIST with gzip");
}

/* A third of what kube-apiserver 1.36.4 needs for the same: 186 and 267 ms. */
#define PROTOBUF_LIST_MS (186.0 / 3)
#define PROTOBUF_WATCH_LIST_MS (267.0 / 3)
#define KB 1024.0

/* The first list makes what the others find; what that holds in memory is told too. */
static void protobuf_lists(const struct bench *b, const struct server *s)
{
    double cpu[ROUNDS_MAX];
    uint64_t bytes = 0, before = server_anonymous_bytes(s);
    struct one_list l = {H1_TLS, LIST, ACCEPT_PROTOBUF, false};
    report_one(b->report, "ms", list_ms(s, &l, &bytes), "LIST in protobuf, the first, TLS");
    report_one(b->report, "KB", (double)(server_anonymous_bytes(s) - before) / KB / 10000,
               "  held for each pod from then on");
    for (size_t i = 0; i < b->rounds; i++)
        cpu[i] = list_ms(s, &l, &bytes);
    report_row(b->report, "ms", cpu, b->rounds, "LIST in protobuf, TLS, %.1f MB",
               (double)bytes / 1e6);
    report_bar(b->report, report_median(cpu, b->rounds), PROTOBUF_LIST_MS,
               "ms for LIST in protobuf");
    l.path = WATCH_LIST;
    for (size_t i = 0; i < b->rounds; i++)
        cpu[i] = list_ms(s, &l, &bytes);
    report_row(b->report, "ms", cpu, b->rounds, "WatchList in protobuf, TLS, %.1f MB",
               (double)bytes / 1e6);
    report_bar(b->report, report_median(cpu, b->rounds), PROTOBUF_WATCH_LIST_MS,
               "ms for WatchList in protobuf");
}

uint64_t node_list_ms(const struct bench *b, const struct server *s, double *ret_ms)
{
    struct vg_bench_ask ask = {.method = "GET", .path = NODE_LIST};
    unsigned times = b->quick ? 50 : 200;
    uint64_t bytes = 0;
    for (size_t i = 0; i < b->rounds; i++) {
        struct client c;
        client_open(&c, s, H1_TLS);
        if (client_ask(&c, &ask, &bytes) != 200)
            bench_die("no list by node");
        uint64_t before = server_cpu_ns(s);
        for (unsigned k = 0; k < times; k++)
            client_must(&c, &ask);
        ret_ms[i] = (double)(server_cpu_ns(s) - before) / 1e6 / times;
        client_done(&c);
    }
    return bytes;
}

static void node_list(const struct bench *b, const struct server *s)
{
    double cpu[ROUNDS_MAX], ratio[ROUNDS_MAX];
    uint64_t bytes = node_list_ms(b, s, cpu);
    for (size_t i = 0; i < b->rounds; i++)
        ratio[i] = cpu[i] / (floor_bulk_ns(bytes * 50, true) / 1e6 / 50);
    report_row(b->report, "ms", cpu, b->rounds, "LIST by spec.nodeName, 100 of 10,000, TLS");
    report_row(b->report, "x", ratio, b->rounds, "  times the floor");
    report_bar(b->report, report_median(cpu, b->rounds), 0.3, "ms for LIST by node");
}

void rows_list(const struct bench *b)
{
    struct server s;
    server_start(&s, b->binary, b->dir);
    bench_progress("list: filling 10000 pods");
    pods_fill(&s, 10000, 100);
    sleep(7); /* the store's checkpoint is over */
    against_floor(b, &s, &(struct one_list){H1_TLS, LIST, NULL, false}, "LIST of 10,000", 1.5);
    against_floor(b, &s, &(struct one_list){H2_TLS, LIST, NULL, false}, "LIST of 10,000", 1.5);
    against_floor(b, &s, &(struct one_list){H1_PLAIN, LIST, NULL, false}, "LIST of 10,000", 0);
    gzip_list(b, &s);
    against_floor(b, &s, &(struct one_list){H1_TLS, WATCH_LIST, NULL, false}, "WatchList of 10,000",
                  1.7);
    against_floor(b, &s, &(struct one_list){H2_TLS, WATCH_LIST, NULL, false}, "WatchList of 10,000",
                  1.7);
    protobuf_lists(b, &s);
    node_list(b, &s);
    server_stop(&s);
    bench_remove_tree(s.dir);
}
