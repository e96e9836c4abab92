/* latency.h - how soon a writer has its answer and the watchers the event: milliseconds.
 * Thread: main. */
#ifndef BENCH_SERVER_LATENCY_H
#define BENCH_SERVER_LATENCY_H

struct latency {
    double answer_p50;           /* a write is begun until it is answered */
    double p50, p99;             /* answered until an event has come; 0: it was there before */
    double begin_p50, begin_p99; /* begun until an event has come */
};

#endif
