/* objects.h - what the bench writes: pods of about 4 KB as a cluster has them, config maps of any
 * size, leases. All are valid, all differ, and each carries a mark (events.h). Pods are on nodes
 * that do not exist, so that no kubelet runs them and no scheduler looks at them.
 * Errors: 0, -ENOMEM, VIGIL_E_TOO_LARGE. Thread: any. */
#ifndef VG_CLI_BENCH_OBJECTS_H
#define VG_CLI_BENCH_OBJECTS_H

#include "base/buf.h"

struct vg_bench_object {
    const char *ns;
    uint32_t id;              /* web-%06u, cm-%06u, node-%u */
    uint32_t node;            /* pods: on node-%u */
    uint32_t bytes;           /* config maps: of data */
    uint64_t number, ns_sent; /* of the mark */
};
/* Each replaces what `out` held. */
VG_CHECK int vg_bench_pod_write(struct vg_buf *out, const struct vg_bench_object *o);
VG_CHECK int vg_bench_configmap_write(struct vg_buf *out, const struct vg_bench_object *o);
VG_CHECK int vg_bench_lease_write(struct vg_buf *out, const struct vg_bench_object *o);
/* What a node sends every ten seconds: a merge patch. */
VG_CHECK int vg_bench_lease_patch(struct vg_buf *out);
/* A merge patch that sets the mark and nothing else. */
VG_CHECK int vg_bench_mark_patch(struct vg_buf *out, uint64_t number, uint64_t sent_ns);
/* The status that a kubelet reports of a pod, as a merge patch. */
VG_CHECK int vg_bench_status_patch(struct vg_buf *out, const char *phase);

#endif
