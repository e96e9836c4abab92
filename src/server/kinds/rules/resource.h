/* resource.h - what claims, classes and slices of resource.k8s.io share. Thread: any. */
#ifndef VG_RULES_RESOURCE_H
#define VG_RULES_RESOURCE_H

#include "check.h"

typedef void vg_item_check_fn(struct vg_check *c, const struct vg_at *at, const void *arg);

/* A list of at most max items, each checked; with more than that, nothing else is looked at. true:
 * it is not too long. */
bool vg_check_items(struct vg_check *c, const struct vg_at *at, size_t max, vg_item_check_fn *check,
                    const void *arg);
/* No two items have the same text under `key` (NULL: are the same text); the item is blamed. */
void vg_check_unique(struct vg_check *c, const struct vg_at *at, const char *key);

/* A driver's or the name of a pool: parts between slashes. */
void vg_check_pool_name(struct vg_check *c, const struct vg_at *at);
/* [domain/]identifier. */
void vg_check_device_name(struct vg_check *c, const struct vg_at *at, struct vg_slice name);
/* An attribute of a device. */
void vg_check_device_attribute(struct vg_check *c, const struct vg_at *at);
/* Parameters of a driver: an object. */
void vg_check_device_config(struct vg_check *c, const struct vg_at *at);
/* Conditions that a device waits for before it is bound, and those that end the waiting. */
void vg_check_binding_conditions(struct vg_check *c, const struct vg_at *device);
/* Effects of taints; ends with NULL. */
extern const char *const vg_taint_effects[];

#endif
