/* pods.h - the objects of this bench: the pods of `vigil bench` (objects.h), of about 4 KB each.
 * Thread: any, each with a client of its own. */
#ifndef BENCH_SERVER_PODS_H
#define BENCH_SERVER_PODS_H

#include "client.h"

#define PODS_NS "bench"
#define PODS_NODE PODS_NS "-node-" /* and its number */
#define PODS_PATH "/api/v1/namespaces/" PODS_NS "/pods"

struct pod {
    uint32_t id, node, version;
};
/* Its JSON replaces what `b` held. */
void pod_write(struct vg_buf *b, struct pod pod);
void pod_path(char *path, size_t n, uint32_t id);

/* Make the namespace, then pods 0 to n-1 on nodes id % nodes, by several connections. */
void pods_fill(const struct server *s, uint32_t n, uint32_t nodes);
/* One update of a pod, over an open connection. */
void pod_update(struct client *c, struct vg_buf *scratch, struct pod pod);

#endif
