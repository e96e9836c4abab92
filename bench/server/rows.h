/* rows.h - the parts of this bench; each adds its rows and bars to the report. Every measurement is
 * made `rounds` times, floor and server in turn, and the median of the ratios counts.
 * Thread: main. */
#ifndef BENCH_SERVER_ROWS_H
#define BENCH_SERVER_ROWS_H

#include "pods.h"
#include "report.h"

struct bench {
    struct report *report;
    const char *binary, *dir;
    const char *kube; /* where etcd and kube-apiserver lie; NULL: nowhere */
    size_t rounds;
    bool quick;
};

void rows_start(const struct bench *b);
void rows_memory(const struct bench *b);
void rows_list(const struct bench *b);
void rows_fanout(const struct bench *b);
void rows_node(const struct bench *b);
void rows_latency(const struct bench *b, const struct server *s); /* a part of the node's */
void rows_writes(const struct bench *b);
void rows_kube(const struct bench *b);
void rows_etcd(const struct bench *b);
void rows_storm(const struct bench *b);

struct crowd;
/* A crowd of n watches; `path` may hold one %u, which becomes the watch's number. HTTP/2 puts
 * `streams` of them on one connection. */
struct crowd *crowd_of_watches(const struct server *s, enum carrier carrier, const char *path,
                               unsigned n, unsigned streams);

/* What is measured of a rival too: b->rounds values. nodes: that pods were spread over. */
uint64_t node_list_ms(const struct bench *b, const struct server *s, double *ret_ms);
void node_update_us(const struct bench *b, const struct server *s, enum carrier carrier,
                    uint32_t nodes, double *ret_us);
struct latency;
void latency_measure(const struct bench *b, const struct server *s, enum carrier carrier,
                     struct latency *ret);

#endif
