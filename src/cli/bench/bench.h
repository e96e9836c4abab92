/* bench.h - one run: the options, the server, what has been put there, and the results so far.
 * Everything that is made lies in two namespaces of this run: `ns[VG_BENCH_STOCK]` holds the
 * objects that are listed, `ns[VG_BENCH_STAGE]` those that are changed under the eyes of watchers;
 * both go away with all in them when the run ends, however it ends. Thread: the main one. */
#ifndef VG_CLI_BENCH_BENCH_H
#define VG_CLI_BENCH_BENCH_H

#include "clock.h"
#include "conn.h"
#include "crowd.h"
#include "options.h"
#include "procs.h"
#include "result.h"
#include "writers.h"

enum vg_bench_room { VG_BENCH_STOCK, VG_BENCH_STAGE, VG_BENCH_ROOMS };
#define VG_BENCH_NS_SIZE 40u

struct vg_bench {
    const struct vg_bench_options *o;
    struct vg_bench_target target;
    struct vg_bench_run run;
    struct vg_bench_engine engine; /* of single requests */
    struct vg_bench_conn *conn;
    char ns[VG_BENCH_ROOMS][VG_BENCH_NS_SIZE];
    bool has_ns[VG_BENCH_ROOMS];
    uint32_t filled[VG_BENCH_ROOMS]; /* objects 0 to filled - 1 are there */
    uint32_t filled_nodes[VG_BENCH_ROOMS];
    bool shows_progress;
    char doing[96];          /* for the progress line */
    uint64_t said_ns;        /* when it was last drawn */
    struct vg_status status; /* why the last call failed */
};

/* A scenario as it is run now. */
struct vg_bench_case {
    enum vg_bench_scenario scenario;
    uint32_t watchers, objects;
    enum vg_bench_media media;
    enum vg_bench_http http;
    enum vg_bench_selector selector;
    bool is_gzip;
};

/* ---- scenarios: 0, or negative and b->status says why ---- */

typedef int vg_bench_scenario_fn(struct vg_bench *b, const struct vg_bench_case *k,
                                 struct vg_bench_result *r);
vg_bench_scenario_fn vg_bench_fill, vg_bench_list, vg_bench_page, vg_bench_fanout, vg_bench_idle,
    vg_bench_churn, vg_bench_latency, vg_bench_slow, vg_bench_mixed, vg_bench_relist;
/* All that the options want; results go into b->run. 0, VIGIL_E_CANCELED, -ENOMEM. */
VG_CHECK int vg_bench_run_all(struct vg_bench *b);

/* ---- session.c ---- */

VG_CHECK int vg_bench_open(struct vg_bench *b, const struct vg_bench_options *o);
/* Removes what was made. Negative: something is left, and b->status says what. */
VG_CHECK int vg_bench_close(struct vg_bench *b);
/* One request, its answer's body appended (ret NULL: dropped). The status, or negative. */
VG_CHECK int vg_bench_call(struct vg_bench *b, const struct vg_bench_ask *ask, struct vg_buf *ret);

/* ---- stock.c ---- */

/* "/api/v1/namespaces/NS/pods" */
VG_CHECK int vg_bench_path(const struct vg_bench *b, enum vg_bench_room room, struct vg_buf *out);
/* Objects 0 to n-1 are there, on nodes id % nodes; more may be, unless exactly so many are wanted.
 */
VG_CHECK int vg_bench_stock(struct vg_bench *b, enum vg_bench_room room, uint32_t n, uint32_t nodes,
                            bool is_exact);
/* Make them, measured. */
VG_CHECK int vg_bench_create(struct vg_bench *b, enum vg_bench_room room, uint32_t n,
                             uint32_t nodes, const struct vg_bench_case *k,
                             void (*begin)(void *arg), void *arg,
                             struct vg_bench_writers_result *ret);
/* Remove all objects of the room. */
VG_CHECK int vg_bench_clear(struct vg_bench *b, enum vg_bench_room room);
/* The resourceVersion that a watch of the room may start from, with a 0 byte. */
VG_CHECK int vg_bench_version(struct vg_bench *b, enum vg_bench_room room, struct vg_buf *ret);
/* "name" of object id, and its path. */
VG_CHECK int vg_bench_object_path(const struct vg_bench *b, enum vg_bench_room room, uint32_t id,
                                  struct vg_buf *out);

/* ---- meter.c ---- */

struct vg_bench_meter {
    uint64_t wall_ns, tool_ns, main_ns;
    struct vg_bench_usage server;
    bool has_server;
};
void vg_bench_find_server(struct vg_bench *b); /* its processes, anew */
void vg_bench_meter_begin(struct vg_bench *b, struct vg_bench_meter *m);
/* *m becomes the difference; the tool's share goes into the result, if one is given. */
void vg_bench_meter_end(struct vg_bench *b, struct vg_bench_meter *m, struct vg_bench_result *r);
/* False: the processes are not known. */
bool vg_bench_memory(const struct vg_bench *b, struct vg_bench_usage *ret);
/* Wait until the server is idle, as far as can be seen. */
void vg_bench_settle(struct vg_bench *b);

/* ---- watch.c: what scenarios with watchers share ---- */

struct vg_bench_stage {
    struct vg_bench *b;
    const struct vg_bench_case *k;
    struct vg_buf version; /* with a 0 byte */
    uint32_t pods;         /* that are changed, in turn */
    struct vg_bench_bits written;
    uint64_t numbers; /* given out before this writing began */
    int failed;
    bool has_lost; /* what has not come in time is not waited for again */
    /* As in struct vg_bench_writers_plan; NULL: none. */
    int (*gate)(struct vg_bench_stage *s);
    void (*seen)(struct vg_bench_stage *s, uint64_t at_ns); /* a change was acknowledged; NULL */
    void *arg;
    struct vg_bench_meter meter; /* begins when those who write are connected */
};
/* Opens `watchers` (the last `stalled` of them stall) on the stage and starts to read them. */
VG_CHECK int vg_bench_stage_open(struct vg_bench_stage *s, struct vg_bench *b,
                                 const struct vg_bench_case *k, uint32_t watchers, uint32_t stalled,
                                 struct vg_bench_crowd **ret);
void vg_bench_stage_done(struct vg_bench_stage *s);
/* Change objects of the stage. plan: rate, count, for_ns and clients count; first is set. */
VG_CHECK int vg_bench_stage_write(struct vg_bench_stage *s, struct vg_bench_writers_plan *plan,
                                  struct vg_bench_writers_result *ret);
/* Events that each watcher sees of n changes, all taken together. */
uint64_t vg_bench_stage_expected(const struct vg_bench_stage *s, uint32_t watchers, uint64_t n);
/* Stops the crowd, puts lost, duplicates and ended into the result. */
void vg_bench_stage_judge(struct vg_bench_stage *s, struct vg_bench_crowd *c,
                          struct vg_bench_result *r, struct vg_bench_verdict *ret);

/* ---- progress.c ---- */

void vg_bench_say(struct vg_bench *b, const char *fmt, ...) VG_PRINTF(2, 3);
void vg_bench_say_nothing(struct vg_bench *b);

#endif
