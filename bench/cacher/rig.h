/* rig.h - a store, a cache over it and one port, all turned by hand on the calling thread, so that
 * the processor time of each station is read by itself: rig_write, then rig_feed, then rig_pull.
 * The store has threads of its own. What fails ends the process (bench_die). Thread: one owner. */
#ifndef BENCH_CACHER_RIG_H
#define BENCH_CACHER_RIG_H

#include "measure.h"
#include "pods.h"

struct rig {
    struct pods pods;
    struct vg_loop *io, *feed, *loop; /* of writers, of the cacher, of the port */
    struct vg_storage *storage;
    struct vg_cacher *cacher;
    struct vg_cache_port *port;
};

/* dir: an lmdb store there, without syncs; NULL: a mem store. */
void rig_open_store(struct rig *r, const char *dir);
/* Returns when the cache is ready. The window is bounded by count alone, at kube-apiserver's
 * 102,400 events: the bounds in bytes and time would make what is measured depend on the machine.
 */
void rig_open_cache(struct rig *r);
static inline void rig_open(struct rig *r, const char *dir)
{
    rig_open_store(r, dir);
    rig_open_cache(r);
}
void rig_close_cache(struct rig *r);
void rig_close(struct rig *r); /* all of it; every watcher has ended */

/* Puts pods [0, n) as `choose` says, each in a transaction of its own; returns when all are stored.
 */
typedef struct pod_id rig_choose_fn(uint64_t i, void *arg);
void rig_write(struct rig *r, uint64_t n, rig_choose_fn *choose, void *arg);
void rig_compact(struct rig *r); /* forget all that is superseded */

/* Bring what is stored into the cache, or what is in the cache to the port's watchers. Processor
 * time of the calling thread, in ns. */
uint64_t rig_feed(struct rig *r);
uint64_t rig_pull(struct rig *r);
/* Turn the port's loop until there is nothing left to do. */
uint64_t rig_settle(struct rig *r);

uint64_t rig_cpu_ns(void); /* of the calling thread */

#endif
