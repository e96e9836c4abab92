/* issuer.h - who gives out tokens of service accounts, and by which names: what the flags
 * --service-account-* and --api-audiences say, with the keys, and the two documents by which others
 * check such tokens (OpenID discovery). Made once; does not change. Thread: any. */
#ifndef VG_JWT_ISSUER_H
#define VG_JWT_ISSUER_H

#include "key.h"

/* What tokens are issued by and good for when nothing else is said. */
#define VG_ISSUER_DEFAULT "https://kubernetes.default.svc"
/* 16: old names are kept while tokens of theirs live. */
#define VG_ISSUER_NAMES_MAX 16u

struct vg_issuer_opts {
    const char *issuers;   /* parted by commas; the first is ours, tokens of all are taken */
    const char *audiences; /* of this server; NULL: the issuers */
    const char *jwks_uri;  /* where our keys are */
    uint64_t max_s;        /* longest life of a token; 0: as long as was asked for */
    bool extends;          /* tokens of pods live longer than was asked for */
    struct vg_jwt_keys *take_keys; /* the first one signs; taken, also on failure */
};

struct vg_issuer {
    struct vg_slice issuers[VG_ISSUER_NAMES_MAX];
    size_t n_issuers;
    struct vg_slice audiences[VG_ISSUER_NAMES_MAX];
    size_t n_audiences;
    uint64_t max_s;
    bool extends;
    struct vg_jwt_keys keys;
    struct vg_buf config, key_set; /* documents */
    struct vg_arena arena;         /* of the names */
};

/* 0; VIGIL_E_INVALID with a sentence; -ENOMEM, VIGIL_E_INTERNAL. */
VG_CHECK int vg_issuer_new(const struct vg_issuer_opts *opts, struct vg_issuer **ret_issuer,
                           struct vg_status *reterr_status);
void vg_issuer_free(struct vg_issuer *issuer);
bool vg_issuer_is_ours(const struct vg_issuer *issuer, struct vg_slice name);

#endif
