/* writers.h - clients that write: each has one request under way, as fast as they are answered or
 * at a rate, all by one epoll on the calling thread. A request that the server has no room for now
 * (429) is sent again. Thread: the caller's. */
#ifndef VG_CLI_BENCH_WRITERS_H
#define VG_CLI_BENCH_WRITERS_H

#include "base/hist.h"
#include "conn.h"

/* What a request is made of; the buffers are reused. */
struct vg_bench_request {
    const char *method;
    const char *type; /* NULL: JSON */
    struct vg_buf path, body;
};

struct vg_bench_writers_plan {
    const struct vg_bench_target *target;
    bool is_h2;
    unsigned streams; /* HTTP/2: clients on a connection */
    unsigned clients;
    uint64_t first;           /* number of the first request */
    uint64_t count;           /* of requests; 0: as many as there is time for */
    uint64_t for_ns;          /* no new request after this long; 0: no limit */
    double rate;              /* in a second, of all; 0: as fast as they are answered */
    void (*begin)(void *arg); /* all are connected; NULL allowed */
    /* May the next one be sent? 1; 0: not yet, and it is asked again soon; negative: end. NULL: it
     * always may. With it there is no rate. */
    int (*gate)(void *arg);
    /* Fill in request `number`, which is sent at once. Buffers are cleared before. */
    int (*make)(void *arg, uint64_t number, struct vg_bench_request *out);
    /* NULL allowed. Called for each answer that is not 429, with the time when it came. */
    void (*answered)(void *arg, uint64_t number, int status, uint64_t at_ns);
    /* Several times in a second; NULL allowed. Non-zero ends it early. */
    int (*progress)(void *arg, uint64_t done);
    void *arg;
};

#define VG_BENCH_REFUSAL_MAX 200u
struct vg_bench_writers_result {
    uint64_t sent;      /* numbers first to first + sent - 1 */
    uint64_t answers;   /* 2xx */
    uint64_t refused;   /* another status */
    uint64_t throttled; /* 429, sent again */
    uint64_t late;      /* with a rate: begun more than 10 ms after their time */
    uint64_t took_ns;
    struct vg_hist latency;             /* of the 2xx: from sending to the end of the answer */
    char refusal[VG_BENCH_REFUSAL_MAX]; /* what the first one said */
};

/* 0; -errno or VIGIL_E_NETWORK: a connection broke or nothing was answered for a minute, with a
 * sentence; VIGIL_E_CANCELED: the user wants to stop. */
VG_CHECK int vg_bench_writers_run(const struct vg_bench_writers_plan *plan,
                                  struct vg_bench_writers_result *ret,
                                  struct vg_status *reterr_status);

#endif
