/* leader_int.h - one candidate for a Lease. All of it belongs to the client's loop, but for what is
 * marked.
 *
 *   ACQUIRING  the lease is free, or nobody renewed it for its time  -> LEADING    on_started
 *   LEADING    not renewed before the deadline, or not ours any more  -> RELEASING  on_stopped
 *   ACQUIRING, LEADING  vigil_leader_free                             -> RELEASING  on_stopped
 *   RELEASING  given up, not possible, or nothing to give up          -> ENDED
 *
 * Invariant: L1 on_started to on_stopped, and is_leading, lie within renew_ms of the moment at
 * which the last write that succeeded was begun. Others wait for lease_ms, which is longer, from
 * when they first see that write. So on_stopped comes before another can start, as long as our
 * loop is not blocked; is_leading holds to it even then.
 *
 * An attempt is GET and then PATCH (CREATE when there is no lease); a leader first tries a PATCH of
 * what it knows. Every PATCH names the resourceVersion that it rests on, so of two only one gets
 * through. A lease counts as held for its duration after we last saw it change, by our clock. */
#ifndef VG_CLIENT_LEADER_LEADER_INT_H
#define VG_CLIENT_LEADER_LEADER_INT_H

#include <stdatomic.h>

#include "base/rng.h"
#include "client/object/object_int.h"
#include "client/transport/transport.h"
#include "vigil/leader.h"

enum vg_leader_state {
    VG_LEADER_ACQUIRING,
    VG_LEADER_LEADING,
    VG_LEADER_RELEASING,
    VG_LEADER_ENDED
};
enum vg_leader_step {
    VG_STEP_RENEW,
    VG_STEP_READ,
    VG_STEP_CREATE,
    VG_STEP_TAKE,
    VG_STEP_RELEASE_READ,
    VG_STEP_RELEASE
};

struct vigil_leader {
    struct vigil_client *c;
    struct vg_loop *loop;
    struct vigil_leader_opts opts; /* its texts are in `texts` */
    char *texts;
    struct vg_rng rng;
    enum vg_leader_state state;
    enum vg_leader_step step; /* of the exchange under way */
    struct vg_exchange *x;
    struct vg_buf answer;
    struct vg_timer next, deadline;
    const struct vigil_object *seen; /* the lease as we saw it last; NULL: never */
    uint64_t seen_ns;                /* when it last changed */
    struct vg_buf told;              /* the leader that on_new_leader was told of, ended by 0 */
    uint64_t begun_ns;               /* when the last attempt began */
    uint64_t written_ns;             /* when the last write was begun */
    _Atomic uint64_t leads_until_ns; /* any thread; 0: does not lead (L1) */
    struct vg_mutex mu;              /* rank CLIENT_CALL */
    struct vg_cond ended;
    bool has_ended VG_GUARDED_BY(mu);
};

/* ---- lease.c ---- */

/* The record that makes us the holder; empties it when `releases`. `base` NULL: a whole object.
 * 0 or -ENOMEM. */
VG_CHECK int vg_lease_write(struct vigil_leader *l, const struct vigil_object *base, bool releases,
                            struct vg_buf *out);
bool vg_lease_is_ours(const struct vigil_leader *l);
/* Has somebody a hold on what we saw last? */
bool vg_lease_is_held(const struct vigil_leader *l);
/* Keep what was seen; its time starts anew when it changed. */
void vg_lease_see(struct vigil_leader *l, const struct vigil_object *take_o);

#endif
