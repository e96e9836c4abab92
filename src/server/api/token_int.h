/* token_int.h - a TokenRequest on its way; see token.c. */
#ifndef VG_API_TOKEN_INT_H
#define VG_API_TOKEN_INT_H

#include "look.h"
#include "server/jwt/issuer.h"

#define VG_TOKEN_GROUP "authentication.k8s.io"
#define VG_TOKEN_KIND "TokenRequest"

struct vg_token_request {
    struct vg_look look; /* first */
    struct vg_body body;
    struct vg_kind kind; /* of the body, for who records its owners */
    struct vg_json *managed, *spec;
    struct vg_jwt_claims claims;
    struct vg_slice account; /* its name */
    int64_t asked_s, now_s;
    vg_rev newest; /* of what was looked at */
    bool is_of_pod;
    bool is_waiting;
    struct vg_cache_wait wait;
};

/* All claims but whose it is and what it is bound to. The random source's error, -ENOMEM.
 * (token_answer.c) */
VG_CHECK int vg_token_claims(struct vg_token_request *w, const struct vg_issuer *issuer);
/* The request with its token, as JSON. -ENOMEM. */
VG_CHECK int vg_token_write(struct vg_token_request *w, struct vg_slice token, struct vg_buf *out);

#endif
