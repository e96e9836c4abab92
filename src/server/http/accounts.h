/* accounts.h - service accounts that show a token of theirs: is it signed by us, still good, and is
 * what it stands for still there? A signature is checked once for as long as the token is in use;
 * that the account is there, and what the token is bound to, is looked up in the cache for every
 * request. Thread: a struct vg_accounts belongs to its loop. */
#ifndef VG_SERVER_HTTP_ACCOUNTS_H
#define VG_SERVER_HTTP_ACCOUNTS_H

#include "base/map.h"
#include "server/api/api.h"

struct vg_issuer;

/* 1024 tokens of 1 or 2 KB each, for a loop: kubelets and controllers of a large cluster. With more
 * in use their signatures are checked more often. */
#define VG_ACCOUNTS_KNOWN_MAX 1024u

struct vg_accounts {
    const struct vg_issuer *issuer; /* NULL: there are no such tokens */
    struct vg_cacher *cacher;
    struct vg_map known; /* by their digest */
};
void vg_accounts_init(struct vg_accounts *acc, const struct vg_issuer *issuer,
                      struct vg_cacher *cacher);
void vg_accounts_done(struct vg_accounts *acc);

/* credential-id, node-name, node-uid, pod-name, pod-uid */
#define VG_ACCOUNT_EXTRA_MAX 5u
struct vg_account {
    struct vg_api_user user;
    struct vg_slice groups[2];
    struct vg_user_extra extra[VG_ACCOUNT_EXTRA_MAX];
    const struct vg_slice *audiences; /* of those wanted */
    size_t n_audiences;
};
/* Who shows this token, to one of the audiences wanted (n 0: this server's). 0: *ret is good until
 * the next call; VIGIL_E_NOT_FOUND: not a token of ours; VIGIL_E_INVALID: one that is not good,
 * *reterr_why says why; VIGIL_E_BUSY: the cache is being filled; -ENOMEM. Texts are put into the
 * arena. */
VG_CHECK int vg_accounts_identify(struct vg_accounts *acc, struct vg_arena *a,
                                  struct vg_slice token, int64_t now_s,
                                  const struct vg_slice *wanted, size_t n_wanted,
                                  struct vg_account *ret, struct vg_slice *reterr_why);

#endif
