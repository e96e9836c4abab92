/* floor.h - the least that sending can cost: bare loops of send() and SSL_write() that write the
 * same bytes to the same number of loopback sockets, read by the same crowd. Costs are processor
 * time of the thread that sends. */
#ifndef BENCH_SERVER_FLOOR_H
#define BENCH_SERVER_FLOOR_H

#include "measure.h"

struct floor_plan {
    size_t sockets;
    size_t bytes;  /* of one event */
    size_t batch;  /* events in one write */
    size_t writes; /* to each socket */
    bool is_tls;
    bool reads_later; /* the crowd waits until all is sent, as vigil bench does */
};
/* Nanoseconds per event and socket. */
double floor_fanout_ns(const struct floor_plan *plan);
/* From the moment at which all threads begin to write one event until a socket has got it, ten
 * times a second. plan->batch is not looked at. */
void floor_latency_ms(const struct floor_plan *plan, double *ret_p50, double *ret_p99);
/* Nanoseconds of writing so many bytes to one socket. */
double floor_bulk_ns(size_t bytes, bool is_tls);

#endif
