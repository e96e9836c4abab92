/* load.h - clients that create objects as fast as they are answered: n connections, one request
 * under way on each, one thread for all. Against vigild, or against the floor's bare server. */
#ifndef BENCH_SERVER_LOAD_H
#define BENCH_SERVER_LOAD_H

#include "client.h"

struct load_plan {
    uint16_t port;
    bool is_tls;
    unsigned clients;
    uint64_t ms;
    /* Writes the n-th request, whole, into `out`. */
    void (*make)(struct vg_buf *out, uint64_t n);
};
struct load_result {
    uint64_t answers; /* 200 or 201 */
    uint64_t refused; /* anything else */
    double secs;
};
void load_run(const struct load_plan *plan, struct load_result *ret);

#endif
