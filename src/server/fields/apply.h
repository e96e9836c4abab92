/* apply.h - server-side apply: a configuration over an object, with who owns what.
 *
 *   merged   = what is there, with the configuration over it
 *   without  what this manager applied before, applies no more, and nobody else owns
 *   conflict: a field that changes by it, and that another manager owns
 *
 * Thread: one owner. */
#ifndef VG_FIELDS_APPLY_H
#define VG_FIELDS_APPLY_H

#include "managers.h"
#include "typed.h"

struct vg_conflict {
    struct vg_manager manager;
    struct vg_slice path; /* .spec.replicas */
};

/* What differs between two objects in another version of their kind: 1; 0: there is no such
 * version. */
typedef int vg_apply_delta_fn(void *arg, struct vg_slice api_version, const struct vg_json *old,
                              const struct vg_json *now, struct vg_fields_delta *ret);

struct vg_apply {
    struct vg_arena *arena;
    const struct vg_schema_type *type;
    const struct vg_json *live;   /* in the order of the tables; NULL: nothing is there */
    const struct vg_json *config; /* checked by vg_typed_check */
    struct vg_manager who;        /* name, version, subresource, time; it applies */
    bool is_forced;
    const struct vg_fields_path *without; /* what the write leaves alone */
    vg_apply_delta_fn *other;             /* for managers of other versions */
    void *arg;

    /* In: of the object. Out: after the apply. */
    struct vg_managers managers;
    struct vg_json all; /* its own: what the configuration says, names and the like too */
    /* Out. */
    struct vg_json result;
    bool is_same; /* result is live */
    const struct vg_conflict *conflicts;
    uint32_t n_conflicts;
};

/* 0; VIGIL_E_CONFLICT: see conflicts, nothing was applied; VIGIL_E_INVALID with a sentence;
 * -ENOMEM.
 */
VG_CHECK int vg_apply(struct vg_apply *x, struct vg_status *reterr_status);

#endif
