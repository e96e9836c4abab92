/* negotiate.h - what the answer shall look like: Accept, pretty, gzip. Contract section 8. */
#ifndef VG_API_NEGOTIATE_H
#define VG_API_NEGOTIATE_H

#include "base/arena.h"
#include "net/http.h"
#include "status.h"
#include "target.h"

enum vg_media_type { VG_MEDIA_JSON, VG_MEDIA_YAML, VG_MEDIA_PROTOBUF };
enum vg_media_transform {
    VG_AS_IS,
    VG_AS_PARTIAL,   /* PartialObjectMetadata, or ...List for a list */
    VG_AS_TABLE,     /* in JSON or YAML */
    VG_AS_DISCOVERY, /* APIGroupDiscoveryList, v2: aggregated discovery */
};

struct vg_media {
    enum vg_media_type type;
    enum vg_media_transform transform;
    bool is_v1beta1; /* of meta.k8s.io */
    bool is_pretty;
    bool wants_gzip;
};

/* For what is being negotiated. */
struct vg_media_scope {
    bool is_list, is_watch;
    bool is_transformable; /* objects are; discovery, Status and scale are not */
    bool is_tabular;       /* there are columns */
    bool is_discovery;     /* /api or /apis: there is an aggregated form */
};
/* 0, or VIGIL_E_UNSUPPORTED with the 406 Status in *ret_status. */
VG_CHECK int vg_media_negotiate(const struct vg_http_exchange *x, const struct vg_target *t,
                                const struct vg_media_scope *scope, struct vg_arena *a,
                                struct vg_media *ret, struct vg_api_status *ret_status);
/* By ?pretty=, else by the User-Agent. */
bool vg_media_is_pretty(const struct vg_http_exchange *x, const struct vg_target *t);
bool vg_media_wants_gzip(const struct vg_http_exchange *x);
const char *vg_media_content_type(const struct vg_media *m); /* static */

#endif
