/* crowd.h - many watches, read by a thread of their own at little cost: events are cut out of the
 * streams, their marks are counted and checked, and nothing is kept.
 *
 * A crowd is opened and closed by its owner; between start and stop it belongs to its thread, and
 * the owner may only ask for what is marked "any". Numbers: watcher i must see every marked event
 * whose number is i modulo `modulus`, once, and no other. */
#ifndef VG_CLI_BENCH_CROWD_H
#define VG_CLI_BENCH_CROWD_H

#include "base/hist.h"
#include "bits.h"
#include "conn.h"

struct vg_bench_crowd;

struct vg_bench_crowd_opts {
    const struct vg_bench_target *target;
    uint32_t n;
    uint32_t modulus; /* 1: all see all */
    uint32_t stalled; /* the last so many stop reading once they are open */
    unsigned streams; /* HTTP/2: watches on a connection */
    bool is_h2, is_protobuf;
    bool only_added; /* marks count in ADDED events alone */
    /* The path of a watch, with its query: appended. */
    int (*path)(void *arg, uint32_t id, struct vg_buf *out);
    void *arg;
    /* While they are opened, now and then; NULL allowed. */
    void (*progress)(void *arg, uint32_t done);
};

/* All are open when it returns. 0, or a sentence. */
VG_CHECK int vg_bench_crowd_open(const struct vg_bench_crowd_opts *opts,
                                 struct vg_bench_crowd **ret, struct vg_status *reterr_status);
VG_CHECK int vg_bench_crowd_start(struct vg_bench_crowd *c);
void vg_bench_crowd_stop(struct vg_bench_crowd *c);
void vg_bench_crowd_free(struct vg_bench_crowd *c); /* stops it; NULL allowed */

/* ---- any thread ---- */

uint64_t vg_bench_crowd_marks(const struct vg_bench_crowd *c); /* seen by all who read */
uint64_t vg_bench_crowd_bytes(const struct vg_bench_crowd *c); /* of events, without framing */
uint32_t vg_bench_crowd_ended(const struct vg_bench_crowd *c);
/* Wait for so many marks. False: none has come for limit_ns, or the user wants to stop. */
bool vg_bench_crowd_await(const struct vg_bench_crowd *c, uint64_t marks, uint64_t limit_ns);
/* Read only when nobody has got anything new for a moment. When something came is not when it is
 * read: see conn.h. */
void vg_bench_crowd_wait_for_lull(struct vg_bench_crowd *c, bool does);
/* Latencies of marks with this number and above are kept; UINT64_MAX: of none. */
void vg_bench_crowd_measure_from(struct vg_bench_crowd *c, uint64_t number);
/* For each watcher when its last mark came: how long after since_ns, 0 when before. */
void vg_bench_crowd_arrivals(const struct vg_bench_crowd *c, uint64_t since_ns,
                             struct vg_hist *into);

/* ---- when it is stopped ---- */

const struct vg_hist *vg_bench_crowd_latency(const struct vg_bench_crowd *c);

struct vg_bench_verdict {
    uint64_t lost, duplicates;
    uint64_t foreign;       /* events that were somebody else's, or not asked for */
    uint32_t ended;         /* watchers that the server ended, of those that read */
    uint32_t stalled_ended; /* of the others */
};
/* `written`: the numbers that were acknowledged. Those who stalled are read to see whether they
 * were ended; they and the ended ones lose nothing by this count. */
void vg_bench_crowd_judge(struct vg_bench_crowd *c, const struct vg_bench_bits *written,
                          uint64_t numbers, struct vg_bench_verdict *ret);

#endif
