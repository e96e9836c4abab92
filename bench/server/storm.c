/* storm.c - watchers under many updates, and watchers after a kill: how many does the server end,
 * how many must list anew? */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "crowd.h"
#include "rows.h"

#define WRITERS 8u

struct writer {
    const struct server *server;
    uint32_t id;
    uint64_t ms;
    _Atomic uint64_t *updates;
};

static void *update_often(void *arg)
{
    struct writer *w = arg;
    struct client c;
    struct vg_buf scratch;
    vg_buf_init(&scratch, 0);
    client_open(&c, w->server, H1_TLS);
    uint64_t begin = bench_now_ns();
    for (uint32_t v = 1; bench_now_ns() - begin < w->ms * 1000000; v++) {
        pod_update(&c, &scratch, (struct pod){w->id, w->id, v});
        atomic_fetch_add(w->updates, 1);
    }
    client_done(&c);
    vg_buf_done(&scratch);
    return NULL;
}

static void many_updates(const struct bench *b, const struct server *s)
{
    _Atomic uint64_t updates = 0;
    uint64_t ms = b->quick ? 1000 : 5000;
    struct crowd *crowd = crowd_of_watches(
        s, H1_TLS,
        "/api/v1/"
        "pods?watch=1&resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan",
        10, 1);
    pthread_t threads[WRITERS];
    struct writer writers[WRITERS];
    for (uint32_t i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){s, i, ms, &updates};
        if (pthread_create(&threads[i], NULL, update_often, &writers[i]) != 0)
            bench_die("no thread");
    }
    for (uint32_t i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    crowd_await_quiet(crowd, 500);
    double per_s = (double)atomic_load(&updates) * 1000.0 / (double)ms;
    report_one(b->report, "/s", per_s, "updates that 10 watchers saw, TLS");
    report_bar(b->report, (double)crowd_closed(crowd), 0, "watchers ended by the server");
    crowd_free(crowd);
}

/* Watch from a revision over an open server; the first event tells: 410 comes as an ERROR. */
static bool must_relist(const struct server *s, const char *path)
{
    char first[256];
    client_watch_begin(s, H1_TLS, path, first, sizeof first);
    return !first[0] || strstr(first, "\"ERROR\"") != NULL;
}

static void after_kill(const struct bench *b, struct server *s)
{
    size_t relists = 0, rounds = b->quick ? 2 : 4, watches = 50;
    for (size_t k = 0; k < rounds; k++) {
        struct client c;
        struct vg_buf scratch;
        vg_buf_init(&scratch, 0);
        client_open(&c, s, H1_TLS);
        /* The revision a watcher would hold, with changes after it, then the kill. */
        struct vg_bench_ask ask = {.method = "GET", .path = PODS_PATH "/web-000000"};
        if (client_ask_body(&c, &ask) != 200)
            bench_die("the pod is gone");
        const char *at = strstr(c.in.p, "\"resourceVersion\":\"");
        unsigned long long rev = at ? strtoull(at + 19, NULL, 10) : 0;
        for (uint32_t v = 0; v < 50; v++)
            pod_update(&c, &scratch, (struct pod){v % 8, v % 8, 9000000 + v + (uint32_t)k * 100});
        client_done(&c);
        vg_buf_done(&scratch);
        server_kill(s);
        server_start_again(s, b->binary);
        char path[128];
        snprintf(path, sizeof path, "/api/v1/pods?watch=1&resourceVersion=%llu", rev);
        for (size_t i = 0; i < watches; i++)
            relists += must_relist(s, path);
    }
    report_bar(b->report, (double)relists, 0, "watches that must relist after %zu kills", rounds);
}

void rows_storm(const struct bench *b)
{
    struct server s;
    server_start(&s, b->binary, b->dir);
    pods_fill(&s, WRITERS, WRITERS);
    many_updates(b, &s);
    after_kill(b, &s);
    server_stop(&s);
    bench_remove_tree(s.dir);
}
