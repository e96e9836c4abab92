/* jwt.h - tokens of service accounts: JSON Web Tokens in the compact form, with the claims that
 * kube-apiserver's have. Reading says what a token claims, and not whether that is true: see key.h.
 * Thread: one owner of the arena. */
#ifndef VG_JWT_JWT_H
#define VG_JWT_JWT_H

#include "base/arena.h"
#include "base/err.h"
#include "base/slice.h"

/* 16 KiB: real ones have one or two. */
#define VG_JWT_MAX ((size_t)16 << 10)
/* 64: real ones are for one or two. */
#define VG_JWT_AUDIENCES_MAX 64u

struct vg_jwt_ref {
    struct vg_slice name, uid; /* name empty: it is not claimed */
};

struct vg_jwt_claims {
    struct vg_slice issuer, subject, id;
    const struct vg_slice *audiences;
    size_t n_audiences;
    /* Seconds since 1970; 0: not claimed. */
    int64_t expires_s, issued_s, starts_s, warn_after_s;
    /* kubernetes.io: whose it is, and what it ends with. */
    struct vg_slice ns;
    struct vg_jwt_ref account, pod, secret, node;
};

/* What is signed, and by what. */
struct vg_jwt {
    struct vg_slice algorithm, key_id; /* as the header says; key_id may be empty */
    struct vg_slice text;              /* header and claims as they were sent */
    struct vg_slice signature;         /* its bytes */
    struct vg_jwt_claims claims;
};

/* 0; VIGIL_E_INVALID: it is no such token, or larger than VG_JWT_MAX; -ENOMEM. What is read lies in
 * the arena, but for text. */
VG_CHECK int vg_jwt_read(struct vg_arena *a, struct vg_slice token, struct vg_jwt *ret);
/* Header and claims as they are signed. 0, -ENOMEM. */
VG_CHECK int vg_jwt_write(struct vg_arena *a, const char *algorithm, const char *key_id,
                          const struct vg_jwt_claims *claims, struct vg_slice *ret_text);

#endif
