/* metrics.h - what operators graph of the cache, of lists and of watches, under kube-apiserver's
 * names (contract section 11; requests are counted by server/http).
 * Thread: any, but a shard has one writer, its loop. Everything takes NULL: not counted. */
#ifndef VG_API_METRICS_H
#define VG_API_METRICS_H

#include <stdatomic.h>

#include "server/cacher/cacher.h"
#include "server/kinds/kinds.h"

struct vg_api_metrics;
struct vg_histogram;
struct vg_metrics;

/* Registers the rows. 0, -ENOMEM, VIGIL_E_EXISTS. The cacher outlives the metrics. */
VG_CHECK int vg_api_metrics_new(struct vg_metrics *registry, struct vg_cacher *cacher,
                                struct vg_api_metrics **ret);
/* No scrape is under way in its callbacks afterwards. */
void vg_api_metrics_free(struct vg_api_metrics *m);

/* Of one kind on one loop: written by that loop alone, so that an event costs no locked add. */
struct vg_watch_count {
    _Atomic uint64_t events, init_events;
    struct vg_histogram *sizes; /* shared by all loops */
};
/* One for each kind; the metrics own it. NULL: not counted. Thread: any. */
struct vg_watch_count *vg_api_metrics_shard(struct vg_api_metrics *m);
/* An event of so many bytes was sent. Thread: the shard's loop. */
void vg_watch_count_event(struct vg_watch_count *c, size_t bytes, bool is_initial);

enum vg_listed { VG_LISTED_CACHE, VG_LISTED_INDEX, VG_LISTED_STORAGE };
/* A list was answered: so many objects were looked at, so many sent. */
void vg_api_count_list(struct vg_api_metrics *m, size_t kind, enum vg_listed from, uint64_t fetched,
                       uint64_t returned);
/* A consistent list was answered by the cache, or had to go to storage. */
void vg_api_count_consistent(struct vg_api_metrics *m, size_t kind, bool fell_back);
/* A request waited until the cache was fresh enough. */
void vg_api_count_wait(struct vg_api_metrics *m, size_t kind, uint64_t ns);
/* Storage answered, after so long; `failed`: with an error of its own, not a conflict. */
enum vg_storage_op {
    VG_STORAGE_GET,
    VG_STORAGE_LIST,
    VG_STORAGE_CREATE,
    VG_STORAGE_UPDATE,
    VG_STORAGE_DELETE,
    VG_STORAGE_OPS
};
void vg_api_count_storage(struct vg_api_metrics *m, size_t kind, enum vg_storage_op op, uint64_t ns,
                          bool failed);
/* The initial events of a watch have been sent. scope: "cluster", "namespace", "resource". */
enum vg_watch_scope { VG_SCOPE_CLUSTER, VG_SCOPE_NAMESPACE, VG_SCOPE_RESOURCE, VG_SCOPES };
void vg_api_count_watch_list(struct vg_api_metrics *m, size_t kind, enum vg_watch_scope scope,
                             uint64_t ns);
/* A watcher was ended because it took nothing. */
void vg_api_count_terminated(struct vg_api_metrics *m, size_t kind);

#endif
