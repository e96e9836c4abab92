/* delete.h - the deletion of one object, for DELETE, for collections and for evictions. */
#ifndef VG_API_DELETE_H
#define VG_API_DELETE_H

#include "stamp.h"

struct vg_deletion {
    struct vg_change change; /* first: vg_change_op */
    struct vg_delete_opts opts;
    bool drops_next;       /* the object was marked; the next round removes it */
    struct vg_rec *marked; /* as it was marked, until done has returned */
    bool is_deleted;       /* result: it is gone */
    void (*done)(struct vg_deletion *d);
};
/* Zeroed but for opts and done. call->state is the caller's business. */
void vg_deletion_start(struct vg_deletion *d, struct vg_api_call *call, const struct vg_kind *kind,
                       struct vg_slice ns, struct vg_slice name);

/* Is the object the one that the preconditions say? 0, or negative with c->status. */
VG_CHECK int vg_deletion_check(struct vg_change *c, const struct vg_delete_opts *opts,
                               const struct vg_meta *m);

#endif
