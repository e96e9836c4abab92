/* rows.h - the measurements: followers of a vigild that has so many pods, ours and client-go's in
 * turn, each a process of its own, from nothing. Thread: main. */
#ifndef BENCH_CLIENT_ROWS_H
#define BENCH_CLIENT_ROWS_H

#include "pods.h"
#include "report.h"

#define NODES 100u

struct rows {
    struct report *report;
    const char *ours, *go; /* programs; go NULL: not there */
    struct server server;
    uint32_t pods;
    uint64_t bytes; /* of the pods as a list */
    size_t rounds;
};

/* With one informer of all pods, or one for each of so many nodes. */
void rows_follow(const struct rows *b, unsigned informers, bool has_bars);

#endif
