/* target.h - what a URL asks for.
 *   /api/v1/namespaces/NS/pods/NAME/status?pretty=true
 * Parsed once when the head of a request has come, before anybody is authenticated: cheap, bounded,
 * no allocation. Percent escapes are decoded into the caller's buffer.
 * Invariants: slices point into the target text or into `decoded`. */
#ifndef VG_API_TARGET_H
#define VG_API_TARGET_H

#include "net/http.h"
#include "server/kinds/kinds.h"

/* 8 KiB of path and 64 KiB of query come with the limit of the head; parameters are few. */
#define VG_TARGET_SEGMENTS_MAX 16u
#define VG_QUERY_PARAMS_MAX 64u

enum vg_target_type {
    VG_TARGET_RESOURCE,    /* kind, verb and the rest are set */
    VG_TARGET_API,         /* /api */
    VG_TARGET_APIS,        /* /apis */
    VG_TARGET_GROUP,       /* /apis/G */
    VG_TARGET_VERSION,     /* /api/v1, /apis/G/V: group and version are set */
    VG_TARGET_NO_RESOURCE, /* a served group, no such version or resource: 404 Status */
    VG_TARGET_OTHER,       /* any other path: health, version, metrics, openapi, or 404 in text */
};

enum vg_api_verb {
    VG_API_NONE, /* 405 */
    VG_API_GET,
    VG_API_LIST,
    VG_API_WATCH,
    VG_API_CREATE,
    VG_API_UPDATE,
    VG_API_PATCH,
    VG_API_DELETE,
    VG_API_DELETECOLLECTION,
};
const char *vg_api_verb_name(enum vg_api_verb verb); /* "get", for authorization and metrics */

struct vg_query_param {
    struct vg_slice name, value;
};

struct vg_target {
    enum vg_target_type type;
    struct vg_slice path; /* decoded, without the query */
    struct vg_slice group, version;
    const struct vg_kind *kind;
    const struct vg_kind_sub *sub; /* NULL: the object itself */
    struct vg_slice sub_rest;      /* what follows a subresource, as in proxy/path */
    struct vg_slice ns, name;      /* empty: none */
    enum vg_api_verb verb;
    bool is_legacy_watch; /* by a watch/ path */
    struct vg_query_param params[VG_QUERY_PARAMS_MAX];
    size_t n_params;
};

/* Parse a request's method and target. `decoded` holds what percent escapes become; it needs as
 * many bytes as the target has. 0; VIGIL_E_INVALID: a malformed escape in the path, a target that
 * is no path, too many segments or parameters. (A malformed escape in the query skips that
 * parameter, as Go does.) */
VG_CHECK int vg_target_parse(enum vg_http_method method, struct vg_slice target, char *decoded,
                             struct vg_target *ret, struct vg_status *reterr_status);
/* The first value of a parameter; p NULL: absent. */
struct vg_slice vg_query_get(const struct vg_target *t, const char *name);
/* As kube-apiserver reads booleans: absent, "0", "false" in any case are false, all else is true,
 * even "". */
bool vg_query_bool(const struct vg_target *t, const char *name);
bool vg_query_is_true(struct vg_slice value); /* p NULL: absent */

#endif
