/* rows.h - the parts of this bench; each adds its rows and bars to the report. Every measurement is
 * made `rounds` times, floor and server in turn, and the median of the ratios counts. */
#ifndef BENCH_SERVER_ROWS_H
#define BENCH_SERVER_ROWS_H

#include "pods.h"
#include "report.h"

struct bench {
    struct report *report;
    const char *binary, *dir;
    size_t rounds;
    bool quick;
};

void rows_start(const struct bench *b);
void rows_memory(const struct bench *b);
void rows_list(const struct bench *b);
void rows_fanout(const struct bench *b);
void rows_node(const struct bench *b);
void rows_writes(const struct bench *b);
void rows_storm(const struct bench *b);

/* The same work, carried differently. */
enum carrier { H1_PLAIN, H1_TLS, H2_PLAIN, H2_TLS, CARRIERS };
extern const char *const carrier_names[CARRIERS];
static inline bool carrier_is_tls(enum carrier c)
{
    return c == H1_TLS || c == H2_TLS;
}
static inline bool carrier_is_h2(enum carrier c)
{
    return c == H2_PLAIN || c == H2_TLS;
}

struct crowd;
/* A crowd of n watches; `path` may hold one %u, which becomes the watch's number. HTTP/2 puts
 * `streams` of them on one connection. */
struct crowd *crowd_of_watches(const struct server *s, enum carrier carrier, const char *path,
                               unsigned n, unsigned streams);

#endif
