/* reflector.h - the reflector as the rest of the library sees it; see vigil/informer.h.
 * A sink's put, remove and replace may return VG_SINK_FULL: what was given is taken, and no more
 * comes until vg_reflector_resume. */
#ifndef VG_CLIENT_REFLECTOR_REFLECTOR_H
#define VG_CLIENT_REFLECTOR_REFLECTOR_H

#include "base/err.h"
#include "base/slice.h"
#include "vigil/informer.h"

#define VG_SINK_FULL 1

/* All of it may be zero: the defaults of client-go. */
struct vg_reflector_tuning {
    uint64_t backoff_ns;       /* 0 = 800 ms */
    uint64_t backoff_cap_ns;   /* 0 = 30 s */
    uint64_t backoff_reset_ns; /* 0 = 2 min */
    bool no_jitter;
    uint64_t min_watch_s;   /* below 5 min = 5 min */
    uint64_t retry_500_ns;  /* how long ERROR 500 is answered by watching again; 0 = not */
    uint64_t list_stall_ms; /* 0 = 60 s */
    uint64_t bookmark_ms;   /* silence after a bookmark; 0 = 3 min */
    uint64_t seed;          /* 0 = from the kernel */
};

VG_CHECK int vg_reflector_new(struct vigil_client *c, const struct vigil_informer_opts *opts,
                              const struct vigil_sink *sink,
                              const struct vg_reflector_tuning *tuning,
                              struct vigil_reflector **ret, struct vigil_error *err);
/* The sink has room again. Waits for the loop; thread: any that the loop does not wait for. */
void vg_reflector_resume(struct vigil_reflector *r);

/* Thread: the loop's. */
struct vg_slice vg_reflector_version(const struct vigil_reflector *r);
uint64_t vg_reflector_wait_ns(const struct vigil_reflector *r); /* of the wait under way, or 0 */

#endif
