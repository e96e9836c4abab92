/* authz.h - may this user do that? The interface is kube-apiserver's: attributes in, a decision and
 * its reason out, several authorizers asked in turn; whoever has an opinion ends the search, and
 * nobody's opinion is a no. RBAC will be one more of them. Thread: any; deciding neither blocks nor
 * allocates. */
#ifndef VG_SERVER_HTTP_AUTHZ_H
#define VG_SERVER_HTTP_AUTHZ_H

#include "base/buf.h"
#include "server/api/access.h"
#include "server/api/api.h"

#define VG_GROUP_MASTERS "system:masters"
#define VG_GROUP_AUTHENTICATED "system:authenticated"
#define VG_GROUP_ACCOUNTS "system:serviceaccounts"
#define VG_GROUP_UNAUTHENTICATED "system:unauthenticated"
#define VG_USER_ANONYMOUS "system:anonymous"

struct vg_authz {
    const char *name;
    /* *ret_reason: why, for the answer; NULL or a text that stays. */
    enum vg_authz_decision (*decide)(const struct vg_authz *self,
                                     const struct vg_authz_attributes *attributes,
                                     const char **ret_reason);
    /* What it would allow the user in a namespace. The first error of `each` ends it and is its
     * own. */
    int (*each_rule)(const struct vg_authz *self, const struct vg_api_user *user,
                     struct vg_slice ns, vg_authz_each_fn *each, void *arg);
};

/* Everybody may get /livez, /readyz, /healthz and /version. */
extern const struct vg_authz vg_authz_public;
/* Whoever is authenticated may ask who they are, what they may do, and what is served: as the roles
 * system:basic-user and system:discovery of a stock cluster have it. */
extern const struct vg_authz vg_authz_basic;
/* The group system:masters may do everything. */
extern const struct vg_authz vg_authz_masters;
/* Whoever is authenticated may do everything: --authorization-mode=AlwaysAllow. */
extern const struct vg_authz vg_authz_always_allow;

/* Ask a chain that ends with NULL. */
enum vg_authz_decision vg_authz_decide(const struct vg_authz *const *chain,
                                       const struct vg_authz_attributes *attributes,
                                       const char **ret_reason);
bool vg_authz_is_allowed(const struct vg_authz *const *chain,
                         const struct vg_authz_attributes *attributes, const char **ret_reason);
/* What all of a chain allow. */
VG_CHECK int vg_authz_each_rule(const struct vg_authz *const *chain, const struct vg_api_user *user,
                                struct vg_slice ns, vg_authz_each_fn *each, void *arg);
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
