/* key.c - see key.h. What is signed with EC is, in a token, two numbers of the curve's length one
 * after the other; OpenSSL has them in DER. */
#include "key.h"

#include <errno.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <string.h>

#include "base/alloc.h"
#include "base/base64.h"

/* The largest signature: RSA of 16384 bits. */
#define SIGNATURE_MAX 2048u

static const struct algorithm {
    const char *name, *curve; /* of an EC key, as JSON Web Keys have it; NULL: RSA */
    const char *group;        /* as OpenSSL has it */
    size_t half;              /* bytes of each number of a signature */
    const EVP_MD *(*digest)(void);
} algorithms[] = {
    {"RS256", NULL, NULL, 0, EVP_sha256},
    {"ES256", "P-256", "prime256v1", 32, EVP_sha256},
    {"ES384", "P-384", "secp384r1", 48, EVP_sha384},
    {"ES512", "P-521", "secp521r1", 66, EVP_sha512},
};

struct vg_jwt_key {
    EVP_PKEY *key;
    bool is_private;
    const struct algorithm *algorithm;
    char id[VG_JWT_KEY_ID + 1];
};

static void key_free(struct vg_jwt_key *key)
{
    if (!key)
        return;
    EVP_PKEY_free(key->key);
    vg_free(key);
}

void vg_jwt_keys_done(struct vg_jwt_keys *keys)
{
    for (size_t i = 0; i < keys->n; i++)
        key_free(keys->v[i]);
    keys->n = 0;
}

int vg_jwt_key_make(struct vg_buf *out)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    BIO *bio = BIO_new(BIO_s_secmem());
    int r = key && bio && PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL)
                ? 0
                : VIGIL_E_INTERNAL;
    if (r == 0) {
        char *p;
        long n = BIO_get_mem_data(bio, &p);
        r = vg_buf_append(out, p, (size_t)n);
    }
    BIO_free(bio);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return r;
}

/* ---- reading ---- */

static const struct algorithm *algorithm_of(EVP_PKEY *key)
{
    char group[64];
    if (EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA)
        return &algorithms[0];
    if (EVP_PKEY_get_base_id(key) != EVP_PKEY_EC ||
        EVP_PKEY_get_group_name(key, group, sizeof group, NULL) != 1)
        return NULL;
    for (size_t i = 1; i < VG_ARRAY_LEN(algorithms); i++)
        if (strcmp(group, algorithms[i].group) == 0)
            return &algorithms[i];
    return NULL;
}

/* The digest of the public half in DER. */
static int name_key(struct vg_jwt_key *key)
{
    unsigned char digest[SHA256_DIGEST_LENGTH], *der = NULL;
    char text[VG_JWT_KEY_ID + 2]; /* one for the padding */
    int n = i2d_PUBKEY(key->key, &der);
    if (n <= 0)
        return -ENOMEM;
    SHA256(der, (size_t)n, digest);
    OPENSSL_free(der);
    (void)vg_base64_url_encode(vg_slice(digest, sizeof digest), text);
    memcpy(key->id, text, VG_JWT_KEY_ID);
    key->id[VG_JWT_KEY_ID] = '\0';
    return 0;
}

/* A block of PEM as a key; NULL: it is none. */
static EVP_PKEY *open_block(const char *type, const unsigned char *der, long n, bool *ret_private)
{
    size_t len = strlen(type);
    *ret_private = len >= 11 && strcmp(type + len - 11, "PRIVATE KEY") == 0;
    if (*ret_private)
        return d2i_AutoPrivateKey(NULL, &der, n);
    if (strcmp(type, "PUBLIC KEY") == 0)
        return d2i_PUBKEY(NULL, &der, n);
    if (strcmp(type, "RSA PUBLIC KEY") == 0)
        return d2i_PublicKey(EVP_PKEY_RSA, NULL, &der, n);
    if (strcmp(type, "CERTIFICATE") != 0)
        return NULL;
    X509 *cert = d2i_X509(NULL, &der, n);
    EVP_PKEY *key = cert ? X509_get_pubkey(cert) : NULL;
    X509_free(cert);
    return key;
}

/* Takes the key. */
static int add_key(struct vg_jwt_keys *keys, EVP_PKEY *take_key, bool is_private)
{
    struct vg_jwt_key *key = vg_new(struct vg_jwt_key);
    const struct algorithm *algorithm = algorithm_of(take_key);
    if (!key) {
        EVP_PKEY_free(take_key);
        return -ENOMEM;
    }
    *key = (struct vg_jwt_key){.key = take_key, .is_private = is_private, .algorithm = algorithm};
    int r = !algorithm ? VIGIL_E_UNSUPPORTED : name_key(key);
    for (size_t i = 0; i < keys->n && r == 0; i++) {
        if (strcmp(keys->v[i]->id, key->id) != 0)
            continue;
        if (is_private && !keys->v[i]->is_private) {
            struct vg_jwt_key *public = keys->v[i];
            keys->v[i] = key;
            key = public;
        }
        key_free(key);
        return 0;
    }
    if (r == 0 && keys->n == VG_JWT_KEYS_MAX)
        r = VIGIL_E_TOO_LARGE;
    if (r < 0) {
        key_free(key);
        return r;
    }
    keys->v[keys->n++] = key;
    return 0;
}

static int refuse(struct vg_status *reterr_status, const char *name, int err)
{
    if (err == VIGIL_E_UNSUPPORTED)
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "%s: a key is of a type that signs no tokens: use RSA, or EC with P-256, "
                       "P-384 or P-521",
                       name);
    if (err == VIGIL_E_TOO_LARGE)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "%s: there are more than %u keys", name,
                       VG_JWT_KEYS_MAX);
    return err;
}

int vg_jwt_keys_add(struct vg_jwt_keys *keys, const char *name, struct vg_slice pem,
                    struct vg_status *reterr_status)
{
    BIO *bio = BIO_new_mem_buf(pem.p, (int)VG_MIN(pem.n, (size_t)INT32_MAX));
    char *type = NULL, *header = NULL;
    unsigned char *der = NULL;
    long n = 0;
    size_t found = 0;
    int r = bio ? 0 : -ENOMEM;
    while (r == 0 && PEM_read_bio(bio, &type, &header, &der, &n)) {
        bool is_private = false;
        EVP_PKEY *key = open_block(type, der, n, &is_private);
        if (key)
            r = add_key(keys, key, is_private);
        found += key != NULL;
        OPENSSL_cleanse(der, (size_t)n);
        OPENSSL_free(type);
        OPENSSL_free(header);
        OPENSSL_free(der);
    }
    BIO_free(bio);
    ERR_clear_error();
    if (r < 0)
        return refuse(reterr_status, name, r);
    return found ? 0
                 : vg_fail(reterr_status, VIGIL_E_INVALID,
                           "%s: there is no key in it; a PEM file with an RSA or EC key is wanted",
                           name);
}

const char *vg_jwt_key_id(const struct vg_jwt_key *key)
{
    return key->id;
}

const char *vg_jwt_key_algorithm(const struct vg_jwt_key *key)
{
    return key->algorithm->name;
}

bool vg_jwt_key_can_sign(const struct vg_jwt_key *key)
{
    return key->is_private;
}

/* ---- as a JSON Web Key ---- */

/* A number of the key, in base64url: of so many bytes, 0: of as many as it has. */
static int append_number(const struct vg_jwt_key *key, const char *param, size_t size,
                         const char *name, struct vg_buf *out)
{
    unsigned char bytes[SIGNATURE_MAX];
    char text[SIGNATURE_MAX / 3 * 4 + 8];
    BIGNUM *number = NULL;
    int r = VIGIL_E_INTERNAL;
    if (EVP_PKEY_get_bn_param(key->key, param, &number) == 1) {
        int n = size ? (int)size : BN_num_bytes(number);
        if (n > 0 && (size_t)n <= sizeof bytes && BN_bn2binpad(number, bytes, n) == n) {
            size_t len = vg_base64_url_encode(vg_slice(bytes, (size_t)n), text);
            r = vg_buf_printf(out, ",\"%s\":\"%.*s\"", name, (int)len, text);
        }
    }
    BN_free(number);
    ERR_clear_error();
    return r;
}

int vg_jwt_key_append_jwk(const struct vg_jwt_key *key, struct vg_buf *out)
{
    const struct algorithm *a = key->algorithm;
    int r = vg_buf_printf(out, "{\"use\":\"sig\",\"kty\":\"%s\",\"kid\":\"%s\"",
                          a->curve ? "EC" : "RSA", key->id);
    if (r == 0 && a->curve)
        r = vg_buf_printf(out, ",\"crv\":\"%s\"", a->curve);
    if (r == 0)
        r = vg_buf_printf(out, ",\"alg\":\"%s\"", a->name);
    if (r == 0)
        r = append_number(key, a->curve ? OSSL_PKEY_PARAM_EC_PUB_X : OSSL_PKEY_PARAM_RSA_N, a->half,
                          a->curve ? "x" : "n", out);
    if (r == 0)
        r = append_number(key, a->curve ? OSSL_PKEY_PARAM_EC_PUB_Y : OSSL_PKEY_PARAM_RSA_E, a->half,
                          a->curve ? "y" : "e", out);
    return r < 0 ? r : vg_buf_append_byte(out, '}');
}

/* ---- signatures ---- */

/* DER to the two numbers, in place. */
static bool to_plain(const struct algorithm *a, unsigned char *bytes, size_t *n)
{
    const unsigned char *p = bytes;
    ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &p, (long)*n);
    int half = (int)a->half;
    bool ok = sig && BN_bn2binpad(ECDSA_SIG_get0_r(sig), bytes, half) == half &&
              BN_bn2binpad(ECDSA_SIG_get0_s(sig), bytes + half, half) == half;
    ECDSA_SIG_free(sig);
    *n = 2 * a->half;
    return ok;
}

/* And back; 0: it cannot be. */
static size_t to_der(const struct algorithm *a, struct vg_slice plain,
                     unsigned char out[SIGNATURE_MAX])
{
    const unsigned char *p = (const unsigned char *)plain.p;
    int half = (int)a->half, n = 0;
    if (plain.n != 2 * a->half)
        return 0;
    ECDSA_SIG *sig = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(p, half, NULL), *s = BN_bin2bn(p + half, half, NULL);
    if (sig && r && s && ECDSA_SIG_set0(sig, r, s)) {
        r = s = NULL; /* the signature's now */
        unsigned char *at = out;
        n = i2d_ECDSA_SIG(sig, NULL) <= (int)SIGNATURE_MAX ? i2d_ECDSA_SIG(sig, &at) : 0;
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(sig);
    return n > 0 ? (size_t)n : 0;
}

int vg_jwt_sign(const struct vg_jwt_key *key, struct vg_arena *a,
                const struct vg_jwt_claims *claims, struct vg_slice *ret_token)
{
    unsigned char bytes[SIGNATURE_MAX];
    char signature[SIGNATURE_MAX / 3 * 4 + 8];
    size_t n = sizeof bytes;
    struct vg_slice text;
    int r = vg_jwt_write(a, key->algorithm->name, key->id, claims, &text);
    if (r < 0)
        return r;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = ctx && EVP_DigestSignInit(ctx, NULL, key->algorithm->digest(), NULL, key->key) == 1 &&
              EVP_DigestSign(ctx, bytes, &n, (const unsigned char *)text.p, text.n) == 1 &&
              (!key->algorithm->curve || to_plain(key->algorithm, bytes, &n));
    EVP_MD_CTX_free(ctx);
    ERR_clear_error();
    if (!ok)
        return VIGIL_E_INTERNAL;
    size_t len = vg_base64_url_encode(vg_slice(bytes, n), signature);
    return vg_arena_printf(a, ret_token, "%.*s.%.*s", VG_SLICE_ARG(text), (int)len, signature);
}

static bool is_signed_by(const struct vg_jwt_key *key, const struct vg_jwt *token)
{
    unsigned char der[SIGNATURE_MAX];
    const unsigned char *p = (const unsigned char *)token->signature.p;
    size_t n = token->signature.n;
    if (!vg_slice_eq(token->algorithm, vg_slice_str(key->algorithm->name)))
        return false;
    if (key->algorithm->curve) {
        n = to_der(key->algorithm, token->signature, der);
        p = der;
    }
    EVP_MD_CTX *ctx = n ? EVP_MD_CTX_new() : NULL;
    bool ok = ctx &&
              EVP_DigestVerifyInit(ctx, NULL, key->algorithm->digest(), NULL, key->key) == 1 &&
              EVP_DigestVerify(ctx, p, n, (const unsigned char *)token->text.p, token->text.n) == 1;
    EVP_MD_CTX_free(ctx);
    ERR_clear_error();
    return ok;
}

enum vg_jwt_verdict vg_jwt_verify(const struct vg_jwt_keys *keys, const struct vg_jwt *token)
{
    enum vg_jwt_verdict verdict = VG_JWT_NO_KEY;
    for (size_t i = 0; i < keys->n; i++) {
        const struct vg_jwt_key *key = keys->v[i];
        if (token->key_id.n && !vg_slice_eq(token->key_id, vg_slice_str(key->id)))
            continue;
        if (is_signed_by(key, token))
            return VG_JWT_GOOD;
        verdict = VG_JWT_FORGED;
    }
    return verdict;
}
