/* flow_follow.h - keeps priority and fairness at what the FlowSchema and PriorityLevelConfiguration
 * objects in the cache say, and calls its clock. Runs on one loop, by its port of the cache.
 * Thread: the loop's, or any while the loop does not run. */
#ifndef VG_SERVER_HTTP_FLOW_FOLLOW_H
#define VG_SERVER_HTTP_FLOW_FOLLOW_H

#include "server/api/api.h"
#include "server/flow/flow.h"

struct vg_flow_follow;

struct vg_flow_follow_opts {
    struct vg_flow *flow;
    struct vg_cacher *cacher;
    struct vg_cache_port *port; /* of the loop */
    struct vg_loop *loop;
    const struct vg_log *log;
};
VG_CHECK int vg_flow_follow_open(const struct vg_flow_follow_opts *opts,
                                 struct vg_flow_follow **ret_follow);
void vg_flow_follow_close(struct vg_flow_follow *f); /* NULL allowed */

#endif
