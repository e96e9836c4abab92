/* latency.c - how soon a writer has its answer and 1,000 watchers the event, beside bare loops on
 * as many threads that begin to write the same bytes to as many sockets at one moment: nobody can
 * be told sooner than those tell them, by the same readers on the same processors. */
#include "latency.h"

#include <stdlib.h>
#include <time.h>

#include "crowd.h"
#include "floor.h"
#include "rows.h"

#define WATCHERS 1000u
#define EVENT_BYTES 4374u /* a pod of 4 KB as an event in a TLS record */
#define WATCH                                                                                      \
    "/api/v1/"                                                                                     \
    "pods?watch=1&resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"

static unsigned events(const struct bench *b)
{
    return b->quick ? 20 : 100;
}

static double quantile_ms(const struct vg_hist *h, double quantile)
{
    return bench_hist_us(h, quantile) / 1e3;
}

void latency_measure(const struct bench *b, const struct server *s, enum carrier carrier,
                     struct latency *ret)
{
    enum { ANSWER, AFTER_ANSWER, AFTER_BEGIN, N };
    struct crowd *crowd = crowd_of_watches(s, carrier, WATCH, WATCHERS, 10);
    crowd_read_late(crowd, LULL_MS);
    struct vg_hist *h = bench_alloc(N, sizeof *h);
    struct client c;
    struct vg_buf scratch;
    vg_buf_init(&scratch, 0);
    client_open(&c, s, carrier_is_tls(carrier) ? H1_TLS : H1_PLAIN);
    for (uint32_t k = 0; k < events(b); k++) {
        crowd_mark(crowd);
        uint64_t begin = bench_now_ns();
        pod_update(&c, &scratch, (struct pod){0, 0, 5000000 + k});
        uint64_t answered = bench_now_ns();
        nanosleep(&(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
        vg_hist_add(&h[ANSWER], answered - begin);
        crowd_first_arrivals(crowd, answered, &h[AFTER_ANSWER]);
        crowd_first_arrivals(crowd, begin, &h[AFTER_BEGIN]);
    }
    *ret = (struct latency){
        .answer_p50 = quantile_ms(&h[ANSWER], 0.5),
        .p50 = quantile_ms(&h[AFTER_ANSWER], 0.5),
        .p99 = quantile_ms(&h[AFTER_ANSWER], 0.99),
        .begin_p50 = quantile_ms(&h[AFTER_BEGIN], 0.5),
        .begin_p99 = quantile_ms(&h[AFTER_BEGIN], 0.99),
    };
    client_done(&c);
    vg_buf_done(&scratch);
    free(h);
    crowd_free(crowd);
}

static void row_of(const struct bench *b, const struct server *s, enum carrier carrier,
                   const struct latency *floor)
{
    const char *name = carrier_names[carrier];
    struct latency l;
    latency_measure(b, s, carrier, &l);
    report_one(b->report, "ms", l.answer_p50, "write begun to answer, p50, 1,000 watchers, %s",
               name);
    report_one(b->report, "ms", l.p50, "  answer to event, p50");
    report_one(b->report, "ms", l.p99, "    p99");
    report_one(b->report, "ms", l.begin_p50, "  write begun to event, p50");
    report_one(b->report, "ms", l.begin_p99, "    p99");
    report_bar(b->report, l.p50, 3, "ms to an event, p50, %s", name);
    report_bar(b->report, l.p99, 8, "ms to an event, p99, %s", name);
    report_bar(b->report, l.begin_p50 / floor->p50, 1.5, "x floor: write to event, p50, %s", name);
    report_bar(b->report, l.begin_p99 / floor->p99, 1.5, "x floor: write to event, p99, %s", name);
}

void rows_latency(const struct bench *b, const struct server *s)
{
    struct latency floor;
    struct floor_plan plan = {
        .sockets = WATCHERS, .bytes = EVENT_BYTES, .batch = 1, .writes = events(b), .is_tls = true};
    floor_latency_ms(&plan, &floor.p50, &floor.p99);
    row_of(b, s, H1_TLS, &floor);
    row_of(b, s, H2_TLS, &floor);
    report_one(b->report, "ms", floor.p50, "floor: SSL_write to arrival, p50, 1,000 sockets");
    report_one(b->report, "ms", floor.p99, "  p99");
}
