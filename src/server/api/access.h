/* access.h - who asks, and what they may: what the reviews of authentication.k8s.io and
 * authorization.k8s.io ask of whoever made the call. server/http answers; this room only carries
 * questions and answers. Thread: the call's loop; answering neither blocks nor waits. */
#ifndef VG_API_ACCESS_H
#define VG_API_ACCESS_H

#include "base/slice.h"

#include "api.h"

struct vg_api_call;
struct vg_json;

struct vg_token_owner {
    struct vg_api_user user;
    struct vg_json *audiences; /* an array of texts */
    struct vg_slice why;       /* it is not taken; empty: there is no more to say */
};

struct vg_authz_attributes {
    const struct vg_api_user *user;
    struct vg_slice verb; /* "list"; of other paths the method: "get" */
    bool is_resource;
    struct vg_slice group, version, resource, subresource, ns, name; /* of a resource */
    struct vg_slice path;
};

enum vg_authz_decision { VG_AUTHZ_NO_OPINION, VG_AUTHZ_ALLOW, VG_AUTHZ_DENY };

/* Something that is allowed. Each list ends with NULL; "*" is all. */
struct vg_authz_rule {
    const char *const *verbs;
    const char *const *groups, *const *resources, *const *names; /* NULL: not said */
    const char *const *urls; /* not NULL: of paths, and not of resources */
};
typedef int vg_authz_each_fn(void *arg, const struct vg_authz_rule *rule);

struct vg_api_access {
    /* *ret_reason: why, or NULL; a text that stays. */
    enum vg_authz_decision (*decide)(struct vg_api_call *call,
                                     const struct vg_authz_attributes *attributes,
                                     const char **ret_reason);
    /* What the call's user may do in a namespace. The first error of `each` ends it and is its
     * own. */
    int (*each_rule)(struct vg_api_call *call, struct vg_slice ns, vg_authz_each_fn *each,
                     void *arg);
    /* Whose token it is, and for which of these audiences it is good (NULL or empty: those of this
     * server). 0; VIGIL_E_NOT_FOUND: nobody's, see why; -ENOMEM. What is told lives in the call's
     * arena, or until the next call. */
    int (*identify)(struct vg_api_call *call, struct vg_slice token,
                    const struct vg_json *audiences, struct vg_token_owner *ret);
    /* NULL: the store is well; else why not, a text that stays. */
    const char *(*store_trouble)(struct vg_api_call *call);
};

#endif
