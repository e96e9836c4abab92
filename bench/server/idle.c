/* idle.c - memory: of an idle server, of 10,000 pods, of watchers that nothing happens to. */
#include <stdlib.h>
#include <unistd.h>

#include "crowd.h"
#include "rows.h"

#define MB (1024.0 * 1024.0)
/* As many as Go's HTTP/2 allows on a connection unless told otherwise; a connection's own cost is
 * shared by them. */
#define STREAMS 250u
#define NODE_WATCH                                                                                 \
    "/api/v1/pods?watch=1&resourceVersion=1&fieldSelector=spec.nodeName%3D" PODS_NODE "%u"

static void watcher_bytes(const struct bench *b, enum carrier carrier, bool by_cert,
                          double limit_kb)
{
    const char *who = by_cert ? ", client certificate" : "";
    unsigned n = b->quick ? 1000 : 5000;
    struct server s;
    server_start(&s, b->binary, b->dir);
    if (by_cert)
        server_show_cert(&s);
    /* What the first few need once is not counted. */
    struct crowd *first = crowd_of_watches(&s, carrier, NODE_WATCH, 4 * STREAMS, STREAMS);
    uint64_t before = server_anonymous_bytes(&s);
    struct crowd *crowd = crowd_of_watches(&s, carrier, NODE_WATCH, n, STREAMS);
    crowd_await_quiet(crowd, 300);
    double each = (double)(server_anonymous_bytes(&s) - before) / n;
    crowd_free(crowd);
    crowd_free(first);
    server_stop(&s);
    bench_remove_tree(s.dir);
    report_one(b->report, "B", each, "idle node watcher, %s%s", carrier_names[carrier], who);
    report_bar(b->report, each / 1024.0, limit_kb, "KB for each idle watcher, %s%s",
               carrier_names[carrier], who);
}

void rows_memory(const struct bench *b)
{
    struct server s;
    server_start(&s, b->binary, b->dir);
    sleep(1);
    double idle = (double)server_anonymous_bytes(&s) / MB;
    report_one(b->report, "MB", idle, "idle, anonymous");
    report_bar(b->report, idle, 12, "MB idle");
    server_stop(&s);
    bench_remove_tree(s.dir);
    watcher_bytes(b, H1_PLAIN, false, 2);
    watcher_bytes(b, H1_TLS, false, 20);
    watcher_bytes(b, H1_TLS, true, 20);
    watcher_bytes(b, H2_TLS, false, 1);

    server_start(&s, b->binary, b->dir);
    pods_fill(&s, 10000, 100);
    sleep(7); /* a checkpoint: what was written leaves the store's memory */
    double filled = (double)server_anonymous_bytes(&s) / MB;
    report_one(b->report, "MB", filled, "with 10,000 pods of 4 KB, just written");
    server_stop(&s);
    server_start_again(&s, b->binary);
    sleep(1);
    report_one(b->report, "MB", (double)server_anonymous_bytes(&s) / MB, "the same, started anew");
    report_bar(b->report, filled, 70, "MB with 10,000 pods");
    server_stop(&s);
    bench_remove_tree(s.dir);
}
