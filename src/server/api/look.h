/* look.h - one object as it is now, for verbs that have to know of others than their own. The cache
 * answers when it is surely as new as storage, else storage does. Thread: the call's loop. */
#ifndef VG_API_LOOK_H
#define VG_API_LOOK_H

#include "write.h"

/* Zeroed, then filled by its maker; lives in the arena of the call. May be used again once it is
 * done. */
struct vg_look {
    struct vg_api_call *call;
    const struct vg_kind *kind;
    struct vg_slice ns, name;
    void (*done)(struct vg_look *l);

    bool is_in_flight; /* storage has something of ours */
    struct vg_obj_key key;
    struct vg_range range;

    /* Results, when done is called. */
    int err;            /* of storage; 0: rec is what there is */
    struct vg_rec *rec; /* with a reference; NULL: nothing */
};
/* done may be called from within; also when the client has left. */
void vg_look_start(struct vg_look *l);
void vg_look_release(struct vg_look *l);
/* What was found, as a tree in the call's arena. 0; negative with *ret_status: there is none, or it
 * cannot be read. */
VG_CHECK int vg_look_tree(const struct vg_look *l, struct vg_json **ret,
                          struct vg_api_status *ret_status);
/* For calls whose state begins with a vg_look. */
extern const struct vg_api_op vg_look_op;

#endif
