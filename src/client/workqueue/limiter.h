/* limiter.h - how long a key that failed waits: by its own failures, and by a bucket of tokens that
 * all keys share; the longer of the two counts. Thread: the owner's lock. */
#ifndef VG_CLIENT_WORKQUEUE_LIMITER_H
#define VG_CLIENT_WORKQUEUE_LIMITER_H

#include <stdbool.h>

#include "base/err.h"
#include "vigil/workqueue.h"

struct vg_limiter {
    uint64_t base_ns, max_ns;
    unsigned fast_tries; /* 0: the delay doubles */
    uint64_t fast_ns, slow_ns;
    double qps; /* negative: no bucket */
    double burst, tokens;
    uint64_t filled_ns; /* when tokens was true */
};

/* Defaults are filled in. 0; VIGIL_E_INVALID: qps is no number. */
VG_CHECK int vg_limiter_init(struct vg_limiter *l, const struct vigil_workqueue_opts *opts,
                             uint64_t now_ns);
/* After so many failures, this one not counted. */
uint64_t vg_limiter_by_failures(const struct vg_limiter *l, unsigned failures);
/* Takes a token; how long until there is one for it. */
uint64_t vg_limiter_by_bucket(struct vg_limiter *l, uint64_t now_ns);

#endif
