/* request_metrics.h - the rows that operators graph: requests by verb, resource and code.
 * The names, labels and buckets are kube-apiserver's. A loop looks a combination up once and keeps
 * pointers to its series, so that a request costs a hash and a few relaxed additions, without a
 * lock. Thread: struct vg_request_metrics any; a cache belongs to its loop. */
#ifndef VG_SERVER_HTTP_REQUEST_METRICS_H
#define VG_SERVER_HTTP_REQUEST_METRICS_H

#include "base/map.h"
#include "base/metrics.h"
#include "server/api/target.h"

enum vg_request_scope { VG_SCOPE_NONE, VG_SCOPE_CLUSTER, VG_SCOPE_NAMESPACE, VG_SCOPE_RESOURCE };

/* What the labels say; zeroed first, since its bytes are the key of a map. */
struct vg_request_key {
    const struct vg_kind *kind; /* NULL: not a resource */
    const char *sub; /* the subresource, or without a kind the path: a constant; NULL: none */
    uint16_t code;
    uint8_t verb;   /* enum vg_api_verb; 0: method */
    uint8_t method; /* enum vg_http_method */
    uint8_t scope;
    uint8_t is_dry_run;
    uint8_t unused[2];
};

struct vg_request_metrics;
VG_CHECK int vg_request_metrics_new(struct vg_metrics *registry,
                                    struct vg_request_metrics **ret_metrics);
void vg_request_metrics_free(struct vg_request_metrics *m);

struct vg_request_cache {
    struct vg_map map;
};
void vg_request_cache_init(struct vg_request_cache *c);
void vg_request_cache_done(struct vg_request_cache *c);

void vg_request_key_fill(struct vg_request_key *k, enum vg_http_method method,
                         const struct vg_target *target);
/* "LIST", "GET", "other". */
const char *vg_request_verb(const struct vg_request_key *k);
/* A request has ended. */
void vg_request_count(struct vg_request_metrics *m, struct vg_request_cache *c,
                      const struct vg_request_key *key, uint64_t ns, uint64_t bytes);
/* A watch began (+1) or ended (-1). key->code is not looked at. False: it could not be counted. */
bool vg_request_count_running(struct vg_request_metrics *m, struct vg_request_cache *c,
                              const struct vg_request_key *key, int delta);
/* Who asked could be told (true) or not. */
void vg_request_count_authentication(struct vg_request_metrics *m, bool is_known);

#endif
