/* discovery_write.h - the documents of discovery as compact JSON, made from the table of kinds.
 * Order of keys and what is left out are kube-apiserver's. Each appends one value to `out`.
 * 0, -ENOMEM. Thread: any. */
#ifndef VG_API_DISCOVERY_WRITE_H
#define VG_API_DISCOVERY_WRITE_H

#include "base/buf.h"
#include "server/kinds/kinds.h"

/* /api: APIVersions; address is where the client reached the server. */
VG_CHECK int vg_discovery_write_versions(struct vg_buf *out, struct vg_slice address);
/* /apis: APIGroupList */
VG_CHECK int vg_discovery_write_groups(struct vg_buf *out);
/* /apis/G: APIGroup */
VG_CHECK int vg_discovery_write_group(struct vg_buf *out, const struct vg_group *group);
/* /api/v1, /apis/G/V: APIResourceList */
VG_CHECK int vg_discovery_write_resources(struct vg_buf *out, const struct vg_group *group,
                                          const char *version);
/* /api, /apis aggregated: APIGroupDiscoveryList of the core group, or of all others. */
VG_CHECK int vg_discovery_write_aggregated(struct vg_buf *out, bool is_core);

#endif
