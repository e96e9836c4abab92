/* crowd.h - many watchers on a rig's port, each with a sink that counts what it is handed and drops
 * it. Thread: the rig's. */
#ifndef BENCH_CACHER_CROWD_H
#define BENCH_CACHER_CROWD_H

#include "rig.h"

struct drop {
    struct vg_sink sink;
    uint64_t frames, bytes;
};

struct crowd {
    struct rig *rig;
    size_t n;
    struct drop *drops;
    struct vg_cache_watcher **watchers;
};

/* Room for n watchers; none is open yet. */
void crowd_init(struct crowd *c, struct rig *r, size_t n);
/* Ends them all. */
void crowd_done(struct crowd *c);

/* The predicate of the i-th, with a reference. */
typedef const struct vg_obj_predicate *crowd_predicate_fn(size_t i, const void *arg);
crowd_predicate_fn crowd_by_node; /* node i */
crowd_predicate_fn crowd_same;    /* arg is the predicate of all */

/* Opens all, from what follows `after` (0: now), with bookmarks and a deadline as an informer asks
 * for, and turns the loop until they are live. Processor time in ns, without making predicates. */
uint64_t crowd_open(struct crowd *c, vg_rev after, crowd_predicate_fn *predicate, const void *arg);

/* Handed over since the last call. */
struct drop crowd_take(struct crowd *c);

#endif
