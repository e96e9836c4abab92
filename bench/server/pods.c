/* pods.c - see pods.h. */
#include "pods.h"

#include <pthread.h>
#include <stdio.h>

#include "measure.h"

#define FILL_THREADS 32u
/* With what the server adds, managers and all, a pod is 4 KB as it is stored and sent. */
#define ENV_COUNT 6u

static void must(int r)
{
    if (r < 0)
        bench_die("out of memory");
}

static void write_labels(struct vg_buf *b, uint32_t id)
{
    must(vg_buf_printf(b, "\"labels\":{\"app\":\"web-%u\"", id % 50));
    for (uint32_t i = 0; i < 12; i++)
        must(vg_buf_printf(b, ",\"team.example.com/label-%u\":\"value-%u-%u\"", i, id % 7, i));
    must(vg_buf_printf(b, "},\"annotations\":{\"example.com/version\":"));
}

static void write_containers(struct vg_buf *b, uint32_t id)
{
    for (uint32_t c = 0; c < 2; c++) {
        must(vg_buf_printf(
            b, "%s{\"name\":\"c%u\",\"image\":\"registry.example.com/team/web:%u\",\"env\":[",
            c ? "," : "", c, id % 100));
        for (uint32_t i = 0; i < ENV_COUNT; i++)
            must(vg_buf_printf(b, "%s{\"name\":\"SETTING_%u\",\"value\":\"value-%08x-%u\"}",
                               i ? "," : "", i, id * 2654435761u, i));
        must(vg_buf_printf(b, "],\"resources\":{},\"imagePullPolicy\":\"IfNotPresent\"}"));
    }
}

void pod_write(struct vg_buf *b, struct pod pod)
{
    vg_buf_clear(b);
    must(
        vg_buf_printf(b,
                      "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web-%06u\","
                      "\"namespace\":\"" PODS_NS "\",",
                      pod.id));
    write_labels(b, pod.id);
    must(vg_buf_printf(b, "\"v%u\"}},\"spec\":{\"containers\":[", pod.version));
    write_containers(b, pod.id);
    must(vg_buf_printf(b, "],\"restartPolicy\":\"Always\",\"nodeName\":\"node-%u\"}}", pod.node));
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
    client_must(c, &(struct ask){"PUT", path, NULL, vg_buf_slice(scratch)});
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
    client_open(&c, f->server, f->server->plain == 0);
    for (uint32_t id = f->first; id < f->n; id += FILL_THREADS) {
        pod_write(&body, (struct pod){id, id % f->nodes, 0});
        client_must(&c, &(struct ask){"POST", PODS_PATH, NULL, vg_buf_slice(&body)});
    }
    client_done(&c);
    vg_buf_done(&body);
    return NULL;
}

void pods_fill(const struct server *s, uint32_t n, uint32_t nodes)
{
    struct client c;
    client_open(&c, s, s->plain == 0);
    client_must(&c, &(struct ask){"POST", "/api/v1/namespaces", NULL,
                                  VG_SLICE_LIT("{\"kind\":\"Namespace\",\"apiVersion\":\"v1\","
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
