/* pods.c - see pods.h. */
#include "pods.h"

#include <pthread.h>
#include <stdio.h>

#include "measure.h"
#include "objects.h"

#define FILL_THREADS 32u

void pod_write(struct vg_buf *b, struct pod pod)
{
    struct vg_bench_object o = {
        .ns = PODS_NS, .id = pod.id, .node = pod.node, .number = pod.version};
    if (vg_bench_pod_write(b, &o) < 0)
        bench_die("out of memory");
}

void pod_path(char *path, size_t n, uint32_t id)
{
    snprintf(path, n, PODS_PATH "/web-%06u", id);
}

void pod_update(struct client *c, struct vg_buf *scratch, struct pod pod)
{
    char path[96];
    pod_path(path, sizeof path, pod.id);
    pod_write(scratch, pod);
    client_must(
        c, &(struct vg_bench_ask){.method = "PUT", .path = path, .body = vg_buf_slice(scratch)});
}

struct fill {
    const struct server *server;
    uint32_t first, n, nodes;
};

static void *fill_some(void *arg)
{
    const struct fill *f = arg;
    struct client c;
    struct vg_buf body;
    vg_buf_init(&body, 0);
    client_open(&c, f->server, f->server->plain ? H1_PLAIN : H1_TLS);
    for (uint32_t id = f->first; id < f->n; id += FILL_THREADS) {
        pod_write(&body, (struct pod){id, id % f->nodes, 0});
        client_must(&c, &(struct vg_bench_ask){
                            .method = "POST", .path = PODS_PATH, .body = vg_buf_slice(&body)});
    }
    client_done(&c);
    vg_buf_done(&body);
    return NULL;
}

void pods_fill(const struct server *s, uint32_t n, uint32_t nodes)
{
    struct client c;
    client_open(&c, s, s->plain ? H1_PLAIN : H1_TLS);
    client_must(&c, &(struct vg_bench_ask){
                        .method = "POST",
                        .path = "/api/v1/namespaces",
                        .body = VG_SLICE_LIT("{\"kind\":\"Namespace\",\"apiVersion\":\"v1\","
                                             "\"metadata\":{\"name\":\"" PODS_NS "\"}}")});
    client_done(&c);
    pthread_t threads[FILL_THREADS];
    struct fill fills[FILL_THREADS];
    for (uint32_t i = 0; i < FILL_THREADS; i++) {
        fills[i] = (struct fill){s, i, n, nodes};
        if (pthread_create(&threads[i], NULL, fill_some, &fills[i]) != 0)
            bench_die("no thread");
    }
    for (uint32_t i = 0; i < FILL_THREADS; i++)
        pthread_join(threads[i], NULL);
}
