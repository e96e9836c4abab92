/* authz.h - may this user do that? The interface is kube-apiserver's: attributes in, a decision and
 * its reason out, several authorizers asked in turn; whoever has an opinion ends the search, and
 * nobody's opinion is a no. RBAC will be one more of them. Thread: any; deciding neither blocks nor
 * allocates. */
#ifndef VG_SERVER_HTTP_AUTHZ_H
#define VG_SERVER_HTTP_AUTHZ_H

#include "base/buf.h"
#include "server/api/api.h"

#define VG_GROUP_MASTERS "system:masters"
#define VG_GROUP_AUTHENTICATED "system:authenticated"
#define VG_GROUP_UNAUTHENTICATED "system:unauthenticated"
#define VG_USER_ANONYMOUS "system:anonymous"

struct vg_authz_attributes {
    const struct vg_api_user *user;
    struct vg_slice verb; /* "list"; of other paths the method: "get" */
    bool is_resource;
    struct vg_slice group, version, resource, subresource, ns, name; /* of a resource */
    struct vg_slice path;
};

enum vg_authz_decision { VG_AUTHZ_NO_OPINION, VG_AUTHZ_ALLOW, VG_AUTHZ_DENY };

struct vg_authz {
    const char *name;
    /* *ret_reason: why, for the answer; NULL or a text that stays. */
    enum vg_authz_decision (*decide)(const struct vg_authz *self,
                                     const struct vg_authz_attributes *attributes,
                                     const char **ret_reason);
};

/* Everybody may get /livez, /readyz, /healthz and /version. */
extern const struct vg_authz vg_authz_public;
/* The group system:masters may do everything. */
extern const struct vg_authz vg_authz_masters;
/* Whoever is authenticated may do everything: --authorization-mode=AlwaysAllow. */
extern const struct vg_authz vg_authz_always_allow;

/* Ask a chain that ends with NULL. */
bool vg_authz_is_allowed(const struct vg_authz *const *chain,
                         const struct vg_authz_attributes *attributes, const char **ret_reason);
bool vg_user_has_group(const struct vg_api_user *user, const char *group);

/* What a request asks for. `verb` holds the lower-case method where that is the verb. */
void vg_authz_attributes(const struct vg_api_user *user, const struct vg_target *target,
                         struct vg_slice method, char verb[16],
                         struct vg_authz_attributes *ret_attributes);
/* Append the sentence of a refusal, without the "... is forbidden: " before it:
 *   User "x" cannot list resource "pods" in API group "" in the namespace "default" */
VG_CHECK int vg_authz_explain(struct vg_buf *out, const struct vg_authz_attributes *attributes,
                              const char *reason);

#endif
