/* evict_int.h - evictions and the budgets they keep to; see evict.c. */
#ifndef VG_API_EVICT_INT_H
#define VG_API_EVICT_INT_H

#include "delete.h"
#include "look.h"

struct vg_eviction {
    struct vg_look look; /* the pod */
    struct vg_delete_opts opts;
    struct vg_api_status bad; /* what is wrong with them, told when it comes to deleting; code 0 */
    bool was_rev_given;       /* by the client: then nothing is tried again */
    uint32_t tries;

    /* Budgets of its namespace. */
    bool is_listing;
    struct vg_obj_key_range span;
    struct vg_range range;
    struct vg_slice budget; /* the name of the pod's own; in the arena */

    struct vg_change change; /* of the budget, then of the pod */
    struct vg_deletion deletion;
};

/* May a pod in this state go without asking budgets, and must it then be the very one that was
 * looked at? */
bool vg_budget_is_idle(const struct vg_json *pod);
bool vg_budget_may_race(const struct vg_json *pod);

/* Which budgets of the range are the pod's? The first one's tree, which lives as long as the range,
 * and how many there are. 0; negative: one cannot be read. (evict_budget.c) */
VG_CHECK int vg_budget_find(struct vg_eviction *w, const struct vg_json *pod,
                            struct vg_json **ret_budget, size_t *ret_n);
/* A pod that is not ready is none that the budget counts on: may it go? */
bool vg_budget_spares(const struct vg_json *budget, const struct vg_json *pod);
/* One disruption less, and the pod noted; or a refusal. Of w->change. */
vg_change_make_fn vg_budget_take;
/* 429: come again. */
void vg_budget_say_busy(struct vg_eviction *w, struct vg_api_status *ret);

#endif
