/* key.h - keys that sign tokens and tell whether they did: RSA (RS256) and EC (ES256, ES384,
 * ES512), by OpenSSL. A key is known by the digest of its public half. Thread: any; a key does not
 * change. */
#ifndef VG_JWT_KEY_H
#define VG_JWT_KEY_H

#include "base/buf.h"
#include "jwt.h"

struct vg_jwt_key;
/* 43 characters: a SHA-256 in base64url. */
#define VG_JWT_KEY_ID 43u

/* 32: more keys than a rotation has. */
#define VG_JWT_KEYS_MAX 32u
struct vg_jwt_keys {
    struct vg_jwt_key *v[VG_JWT_KEYS_MAX];
    size_t n;
};
void vg_jwt_keys_done(struct vg_jwt_keys *keys);
static inline void vg_jwt_keys_cleanup(struct vg_jwt_keys *keys)
{
    vg_jwt_keys_done(keys);
}

/* A new key (EC P-256), as PEM. VIGIL_E_INTERNAL, -ENOMEM. */
VG_CHECK int vg_jwt_key_make(struct vg_buf *out);
/* Add the keys of a PEM text: private ones, public ones, certificates. One that is there already is
 * not added again, unless it brings the private half. `name` is for messages. 0; VIGIL_E_INVALID
 * with a sentence; -ENOMEM. */
VG_CHECK int vg_jwt_keys_add(struct vg_jwt_keys *keys, const char *name, struct vg_slice pem,
                             struct vg_status *reterr_status);

const char *vg_jwt_key_id(const struct vg_jwt_key *key);
const char *vg_jwt_key_algorithm(const struct vg_jwt_key *key); /* "ES256" */
bool vg_jwt_key_can_sign(const struct vg_jwt_key *key);
/* Append the public half as a JSON Web Key. */
VG_CHECK int vg_jwt_key_append_jwk(const struct vg_jwt_key *key, struct vg_buf *out);

/* A token with these claims. VIGIL_E_INTERNAL, -ENOMEM. */
VG_CHECK int vg_jwt_sign(const struct vg_jwt_key *key, struct vg_arena *a,
                         const struct vg_jwt_claims *claims, struct vg_slice *ret_token);
enum vg_jwt_verdict { VG_JWT_GOOD, VG_JWT_NO_KEY, VG_JWT_FORGED };
/* By the key that it names; by all of them when it names none. Its algorithm must be the key's. */
enum vg_jwt_verdict vg_jwt_verify(const struct vg_jwt_keys *keys, const struct vg_jwt *token);

#endif
