/* vigil/leader.h - one of many is the leader, by a Lease. Time is measured here, never taken from
 * the lease's own stamps, so clocks may differ. There is no fencing. A leader that cannot renew its
 * lease stops renew_ms after it began the last renewal that succeeded; another can take over
 * lease_ms after that at the earliest. A leader that reads that it is not the holder (somebody
 * edited or deleted the lease) stops at once. */
#ifndef VIGIL_LEADER_H
#define VIGIL_LEADER_H

#include "client.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vigil_leader;

struct vigil_leader_opts {
    size_t size;
    const char *ns, *name; /* of the Lease */
    const char *identity;  /* NULL: host name and a random suffix */
    uint64_t lease_ms;     /* 0 = 15 s */
    uint64_t renew_ms;     /* deadline; 0 = 10 s; less than lease_ms */
    uint64_t retry_ms;     /* 0 = 2 s; 1.2 times less than renew_ms */
    bool release;          /* give the lease up when stopped, after on_stopped */
    /* All on the client's loop. on_stopped is late when a callback blocks that loop: work that must
     * not go on asks vigil_leader_is_leading. */
    void (*on_started)(void *arg);
    void (*on_stopped)(void *arg); /* always, when it ends; also if it never led. The last one */
    void (*on_new_leader)(void *arg, const char *identity);
    void *arg;
};
/* Begins to run for the lease. Thread: any. */
VIGIL_API VIGIL_CHECKED int vigil_leader_new(struct vigil_client *c,
                                             const struct vigil_leader_opts *opts,
                                             struct vigil_leader **ret, struct vigil_error *err);
/* False as soon as the renew deadline has passed, or another holder was read. Thread: any. */
VIGIL_API bool vigil_leader_is_leading(const struct vigil_leader *l);
/* Stops, and gives the lease up if `release` is set, for which it waits renew_ms at most. Thread:
 * any but the loop's. */
VIGIL_API void vigil_leader_free(struct vigil_leader *l);

#ifdef __cplusplus
}
#endif

#endif
