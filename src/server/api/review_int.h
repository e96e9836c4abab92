/* review_int.h - what the reviews share: each makes the status of an answer from what was asked. */
#ifndef VG_API_REVIEW_INT_H
#define VG_API_REVIEW_INT_H

#include "access.h"
#include "write.h"

struct vg_review {
    struct vg_api_call *call;
    struct vg_body body;
    /* Of the answer: set by who reviews; metadata is what was asked, without what a server sets. */
    struct vg_json metadata, status;
    struct vg_json *spec; /* NULL: none */
};

/* 0, or negative with *ret_status. */
typedef int vg_review_fn(struct vg_review *r, struct vg_api_status *ret_status);
vg_review_fn vg_review_subject_access; /* SubjectAccessReview and its kin */
vg_review_fn vg_review_rules;

/* name: text; nothing when it is empty. -ENOMEM. */
VG_CHECK int vg_review_put(struct vg_review *r, struct vg_json *object, const char *name,
                           struct vg_slice text);
/* A user as UserInfo. -ENOMEM. */
VG_CHECK int vg_review_user(struct vg_review *r, const struct vg_api_user *user,
                            struct vg_json *ret);

#endif
