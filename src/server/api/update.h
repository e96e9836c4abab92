/* update.h - what update, patch and scale share: a new content for an object that is there. */
#ifndef VG_API_UPDATE_H
#define VG_API_UPDATE_H

#include "stamp.h"

struct vg_update {
    struct vg_change change; /* first: vg_change_op */
    struct vg_admit admit;   /* of an update that may create */
    struct vg_body body;     /* PUT: as sent */
    struct vg_rec *goodbye;  /* the writer's object, when its write removed the last finalizer */
    bool was_created;
};

/* Name and namespace of a body against the URL's. 0, or VIGIL_E_INVALID with the 400. */
VG_CHECK int vg_update_match_url(struct vg_api_call *call, const struct vg_meta *m,
                                 struct vg_api_status *ret_status);
/* Is this revision the one that is there? 0, or VIGIL_E_INVALID with the status set. */
VG_CHECK int vg_update_check_rev(struct vg_change *c, struct vg_slice rev);
/* A new content, by the subresource that the target names; checks, stamps, seals. */
enum vg_verdict vg_update_apply(struct vg_update *w, const struct vg_body *next,
                                const struct vg_body *cur);
/* The done of updates. */
void vg_update_done(struct vg_change *c);
/* Scale (scale.c): the subresource of a kind's replicas. */
void vg_api_update_scale(struct vg_api_call *call);
/* The Scale of an object at a revision, as a tree in the arena. 0, -ENOMEM. */
VG_CHECK int vg_scale_tree(struct vg_arena *a, const struct vg_kind *kind, const struct vg_body *of,
                           vg_rev rev, struct vg_json *ret);
/* The content that a Scale asks for; c->status says what is wrong. PUT, or FAIL. */
enum vg_verdict vg_scale_apply(struct vg_update *w, const struct vg_body *scale,
                               const struct vg_body *cur);
/* The done of scale's writes. */
void vg_scale_done(struct vg_change *c);
/* A subresource that is listed and not built. */
void vg_api_refuse_sub(struct vg_api_call *call);
/* A vg_update in the call's arena, with the op of writes; NULL: memory was short, 500 was said. */
struct vg_update *vg_update_new(struct vg_api_call *call);

#endif
