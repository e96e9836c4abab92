/* resources.h - names of resources (cpu, hugepages-2Mi, example.com/gpu) and amounts of them.
 * Thread: any. */
#ifndef VG_RULES_RESOURCES_H
#define VG_RULES_RESOURCES_H

#include "check.h"
#include "server/schema/quantity.h"

/* In the namespace of Kubernetes itself: without a prefix, or below kubernetes.io/. */
bool vg_resource_is_native(struct vg_slice name);
/* Of someone else, and fit for a quota. */
bool vg_resource_is_extended(struct vg_slice name);
/* Counted in whole ones. */
bool vg_resource_is_whole(struct vg_slice name);
/* What pods ask for, by the names that quotas have for it: cpu, limits.memory, hugepages-*; and
 * pods themselves. */
bool vg_resource_is_of_pods(struct vg_slice name);
/* Known to the system: cpu, requests.memory, pods, hugepages-*. */
bool vg_resource_is_standard(struct vg_slice name);
/* May be asked for more often than there is of it. */
bool vg_resource_may_overcommit(struct vg_slice name);
static inline bool vg_resource_is_huge(struct vg_slice name)
{
    return vg_slice_has_prefix(name, VG_SLICE_LIT("hugepages-"));
}

/* The name `name`, blamed on `at`: a qualified name, and a standard one when it has no prefix. */
bool vg_check_resource_name(struct vg_check *c, const struct vg_at *at, struct vg_slice name);
/* The same, and one that a container may ask for. */
void vg_check_container_resource_name(struct vg_check *c, const struct vg_at *at,
                                      struct vg_slice name);
/* The amount at `at` of the resource: not negative; whole if it is counted so. */
void vg_check_resource_amount(struct vg_check *c, const struct vg_at *at, struct vg_slice name);

/* Is there a quantity, and which? *ret is 0 when there is none. */
bool vg_at_quantity(const struct vg_at *at, struct vg_quantity *ret);
static inline bool vg_json_quantity(const struct vg_json *v, struct vg_quantity *ret)
{
    struct vg_at at = vg_at_root(v);
    return vg_at_quantity(&at, ret);
}

#endif
