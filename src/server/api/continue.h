/* continue.h - continue tokens of paged lists, in kube-apiserver's format: unpadded base64url of
 *     {"v":"meta.k8s.io/v1","rv":42,"start":"default/web-0\u0000"}
 * where start is the key to go on from, without the root of the list. Thread: any. */
#ifndef VG_API_CONTINUE_H
#define VG_API_CONTINUE_H

#include "base/arena.h"
#include "object/key.h"

struct vg_continue {
    int64_t rev;             /* -1: the latest; never 0 */
    struct vg_obj_key start; /* whole, with the list's root */
};

/* The token's text, in the arena. `start` begins with `root`. rev -1: the latest. 0, -ENOMEM. */
VG_CHECK int vg_continue_encode(struct vg_arena *a, int64_t rev, struct vg_slice root,
                                struct vg_slice start, struct vg_slice *ret_token);
/* 0; VIGIL_E_INVALID with what follows "invalid continue token: " in *reterr_why; -ENOMEM. */
VG_CHECK int vg_continue_decode(struct vg_arena *a, struct vg_slice token, struct vg_slice root,
                                struct vg_continue *ret, struct vg_slice *reterr_why);

#endif
