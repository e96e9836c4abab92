/* body_share.h - how many bytes of request bodies each user has under way, over all loops. Whoever
 * begins many bodies and ends none fills a share of its own, not the pool of everybody. A body
 * counts with the length that its head announced; without an announced length it counts as the
 * largest that is allowed. A loop finds the share of a user when it first sees the user, under a
 * lock; requests change it by atomic additions.
 * Thread: any. Owner: struct vg_body_shares is the gate's; a share is held by the users of loops.
 */
#ifndef VG_SERVER_HTTP_BODY_SHARE_H
#define VG_SERVER_HTTP_BODY_SHARE_H

#include <stdatomic.h>

#include "base/lock.h"
#include "base/map.h"

struct vg_body_shares {
    struct vg_mutex mu;                  /* rank BODY_SHARES */
    struct vg_map map VG_GUARDED_BY(mu); /* user name -> struct vg_body_share */
    size_t max;                          /* bytes of one user */
};

struct vg_body_share {
    _Atomic size_t bytes;
    size_t refs; /* guarded by the lock */
    struct vg_slice name;
};

void vg_body_shares_init(struct vg_body_shares *s, size_t max);
void vg_body_shares_done(struct vg_body_shares *s); /* no share is held */
/* The user's, with a reference. NULL: out of memory. */
struct vg_body_share *vg_body_share_get(struct vg_body_shares *s, struct vg_slice name);
void vg_body_share_put(struct vg_body_shares *s, struct vg_body_share *share);

/* Count a body. A user who has nothing under way may have one of any size. False: too much. */
bool vg_body_share_take(struct vg_body_share *share, size_t bytes, size_t max);
void vg_body_share_give(struct vg_body_share *share, size_t bytes);

#endif
