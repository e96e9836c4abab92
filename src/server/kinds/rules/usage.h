/* usage.h - what an object counts towards quotas, by the names that quotas have for it (count/pods,
 * requests.cpu, gold.storageclass.storage.k8s.io/requests.storage), and which quotas it counts
 * towards. Trees are of the version that is stored. Thread: any. */
#ifndef VG_RULES_USAGE_H
#define VG_RULES_USAGE_H

#include "amounts.h"
#include "server/kinds/kinds.h"

/* Are objects of this kind counted at all? */
bool vg_usage_counts(const struct vg_kind *kind);
/* Does a resource of this name say something of the kind? */
bool vg_usage_is_of(const struct vg_kind *kind, struct vg_slice resource);
/* Is each object of the kind 1 of it, whatever it says? */
bool vg_usage_is_plain(const struct vg_kind *kind, struct vg_slice resource);
/* What the object uses, at a time in seconds. *ret is written over; names and amounts borrow from
 * the object, or lie in the arena. 0, -ENOMEM. */
VG_CHECK int vg_usage_of(struct vg_arena *a, const struct vg_kind *kind, const struct vg_json *obj,
                         int64_t now_s, struct vg_amounts *ret);
/* Is it within all scopes of the quota? One without scopes is for all. */
bool vg_usage_in_scope(const struct vg_kind *kind, const struct vg_json *quota,
                       const struct vg_json *obj);
/* May an update change what the object counts? At a create it always counts. */
bool vg_usage_may_change(const struct vg_kind *kind, const struct vg_json *old,
                         const struct vg_json *obj);
/* Every container of a pod has to say how much cpu and memory it needs where these are limited: who
 * does not, as a sentence in the arena; empty: all do. hard: names are what is limited. 0, -ENOMEM.
 */
VG_CHECK int vg_usage_missing(struct vg_arena *a, const struct vg_json *pod,
                              const struct vg_json *hard, struct vg_slice *ret);

#endif
