/* vigil/workqueue.h - keys that need work: each at most once in the queue, never by two at a time,
 * later when it failed. Thread: any, for everything here. */
#ifndef VIGIL_WORKQUEUE_H
#define VIGIL_WORKQUEUE_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vigil_workqueue;

struct vigil_workqueue_opts {
    size_t size;
    uint64_t base_delay_ms, max_delay_ms; /* of one key that fails: 5 ms doubling to 1000 s */
    double qps;                           /* of all keys together: 0 = 10, negative = no limit */
    unsigned burst;                       /* 0 = 100 */
    /* Not 0: in place of doubling, so many failures of a key wait fast_delay_ms each, and those
     * that follow slow_delay_ms. */
    unsigned fast_tries;
    uint64_t fast_delay_ms, slow_delay_ms;
};
/* opts NULL: defaults. A key that failed waits as long as its own failures say or as the limit of
 * all keys says, whichever is longer. */
VIGIL_API VIGIL_CHECKED int vigil_workqueue_new(const struct vigil_workqueue_opts *opts,
                                                struct vigil_workqueue **ret,
                                                struct vigil_error *err);
VIGIL_API void vigil_workqueue_free(struct vigil_workqueue *q); /* nobody waits in it any more */

/* Keys are copied, at most 1024 bytes. Ignored when the queue is shut down or has the key. 0;
 * VIGIL_E_INVALID; VIGIL_E_MEMORY. */
VIGIL_API int vigil_workqueue_add(struct vigil_workqueue *q, struct vigil_text key);
/* Of a key that waits already the earlier time counts. */
VIGIL_API int vigil_workqueue_add_after(struct vigil_workqueue *q, struct vigil_text key,
                                        uint64_t delay_ms);
/* As late as the limits say: for a key whose work failed. */
VIGIL_API int vigil_workqueue_add_limited(struct vigil_workqueue *q, struct vigil_text key);
/* The work of this key succeeded: its failures are forgotten. */
VIGIL_API void vigil_workqueue_forget(struct vigil_workqueue *q, struct vigil_text key);
VIGIL_API unsigned vigil_workqueue_failures(struct vigil_workqueue *q, struct vigil_text key);

/* The next key, copied to buf with a 0 byte: its length. Waits until there is one; timeout_ms 0:
 * for ever. VIGIL_E_TIMEOUT; VIGIL_E_CLOSED: shut down and empty; VIGIL_E_TOO_LARGE: buf is too
 * small, and the key stays. Say done when the work is over, also when it failed. */
VIGIL_API VIGIL_CHECKED long vigil_workqueue_get(struct vigil_workqueue *q, char *buf, size_t size,
                                                 uint64_t timeout_ms);
VIGIL_API void vigil_workqueue_done(struct vigil_workqueue *q, struct vigil_text key);
VIGIL_API size_t vigil_workqueue_length(struct vigil_workqueue *q); /* that wait now */

/* No new keys; those in the queue are still handed out, those whose time has not come are dropped.
 * With `drain` it returns when all work that was under way is done, that of keys which were added
 * again meanwhile included, or when somebody shuts down without. */
VIGIL_API void vigil_workqueue_shut_down(struct vigil_workqueue *q, bool drain);

#ifdef __cplusplus
}
#endif

#endif
