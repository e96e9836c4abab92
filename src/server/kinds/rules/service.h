/* service.h - what the rules of services share; see service.c. Thread: one owner. */
#ifndef VG_RULES_SERVICE_H
#define VG_RULES_SERVICE_H

#include "rules.h"

static inline bool vg_service_is(const struct vg_json *spec, const char *type)
{
    return vg_slice_eq(vg_json_text(vg_json_get_str(spec, "type")), vg_slice_str(type));
}
/* clusterIPs is ["None"]. */
bool vg_service_is_headless(const struct vg_json *spec);
/* Can it be reached from outside: NodePort, LoadBalancer, or with external addresses? */
bool vg_service_is_external(const struct vg_json *spec);
/* Does a load balancer ask its nodes for their health? */
bool vg_service_has_health_check(const struct vg_json *spec);

/* service_addresses.c: clusterIPs, ipFamilies and their policy; before: those of the old one. */
void vg_service_check_addresses(struct vg_check *c, const struct vg_at *spec,
                                const struct vg_json *before);
/* What may not change about them. */
void vg_service_check_address_update(struct vg_check *c, const struct vg_at *spec,
                                     const struct vg_json *old);
/* service_prepare.c */
vg_rules_prepare_fn vg_service_prepare;
/* service_claims.c */
int vg_service_claim(struct vg_claims *cl, struct vg_check *c, struct vg_json *obj,
                     const struct vg_json *old);

/* An address that a load balancer gave to a service or ingress. before: the list there was.
 * has_mode: an address needs an ipMode. And warnings of all that are in a status. */
void vg_check_balancer_item(struct vg_check *c, const struct vg_at *item,
                            const struct vg_json *before, bool has_mode);
void vg_warn_balancer_status(struct vg_check *c, const struct vg_at *obj,
                             const struct vg_json *old);

#endif
