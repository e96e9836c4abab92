/* amounts.h - how much of each resource: lists that are added up, as those of a pod's containers.
 * Sorted by name, each name once. Names and written amounts are borrowed from the objects that they
 * were read from; the lists lie in an arena. Thread: one owner. */
#ifndef VG_RULES_AMOUNTS_H
#define VG_RULES_AMOUNTS_H

#include "resources.h"

struct vg_amount {
    struct vg_slice name;
    struct vg_quantity q;
};

struct vg_amounts {
    struct vg_amount *v;
    uint32_t n, room;
};

/* NULL: it is not there. */
const struct vg_amount *vg_amounts_find(const struct vg_amounts *list, struct vg_slice name);
/* Set one; add to one, which is 0 when it is not there; let one be at least so much. 0, -ENOMEM. A
 * sum that has no room stays as it is: it is beyond any amount there is. */
VG_CHECK int vg_amounts_set(struct vg_arena *a, struct vg_amounts *list, struct vg_slice name,
                            const struct vg_quantity *q);
VG_CHECK int vg_amounts_add(struct vg_arena *a, struct vg_amounts *list, struct vg_slice name,
                            const struct vg_quantity *q);
VG_CHECK int vg_amounts_raise(struct vg_arena *a, struct vg_amounts *list, struct vg_slice name,
                              const struct vg_quantity *q);
/* The same with each of a list. */
typedef int vg_amounts_fn(struct vg_arena *a, struct vg_amounts *list, struct vg_slice name,
                          const struct vg_quantity *q);
VG_CHECK int vg_amounts_each(struct vg_arena *a, struct vg_amounts *list,
                             const struct vg_amounts *with, vg_amounts_fn *fn);
/* With each of a map of an object, NULL: none. */
VG_CHECK int vg_amounts_each_of(struct vg_arena *a, struct vg_amounts *list,
                                const struct vg_json *map, vg_amounts_fn *fn);

enum vg_amounts_of { VG_REQUESTS, VG_LIMITS };
/* What a pod asks for in all, by its containers and what it says for itself: as limit ranges count
 * it; with as_used as quotas do: with the pod's overhead, huge pages of the pod, and what its
 * status says that containers have. *ret is written over. 0, -ENOMEM. */
VG_CHECK int vg_amounts_of_pod(struct vg_arena *a, const struct vg_json *pod,
                               enum vg_amounts_of which, bool as_used, struct vg_amounts *ret);
/* Does the pod say what it needs as a whole? */
bool vg_amounts_pod_says(const struct vg_json *pod);

#endif
