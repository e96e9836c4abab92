/* digest.c - see digest.h. */
#include "digest.h"

#include <endian.h>
#include <errno.h>
#include <openssl/evp.h>

#include "base/alloc.h"

struct vg_digest {
    EVP_MD_CTX *ctx;
};

int vg_digest_new(struct vg_digest **ret_digest)
{
    struct vg_digest *d = vg_new(struct vg_digest);
    if (!d)
        return -ENOMEM;
    d->ctx = EVP_MD_CTX_new();
    if (!d->ctx || EVP_DigestInit_ex(d->ctx, EVP_sha256(), NULL) != 1) {
        vg_digest_free(d);
        return -ENOMEM;
    }
    *ret_digest = d;
    return 0;
}

void vg_digest_free(struct vg_digest *d)
{
    if (!d)
        return;
    EVP_MD_CTX_free(d->ctx);
    vg_free(d);
}

/* The length first, so that no two lists of texts look alike. */
static bool add_text(struct vg_digest *d, struct vg_slice text)
{
    uint64_t n = htole64((uint64_t)text.n);
    return EVP_DigestUpdate(d->ctx, &n, sizeof n) == 1 &&
           (text.n == 0 || EVP_DigestUpdate(d->ctx, text.p, text.n) == 1);
}

int vg_digest_add(struct vg_digest *d, const struct vg_rec *rec)
{
    return add_text(d, vg_rec_key(rec)) && add_text(d, vg_rec_value(rec)) ? 0 : VIGIL_E_INTERNAL;
}

int vg_digest_get(const struct vg_digest *d, unsigned char ret_sum[VG_DIGEST_SIZE])
{
    EVP_MD_CTX *copy = EVP_MD_CTX_new();
    bool is_good = copy && EVP_MD_CTX_copy_ex(copy, d->ctx) == 1 &&
                   EVP_DigestFinal_ex(copy, ret_sum, NULL) == 1;
    EVP_MD_CTX_free(copy);
    return is_good ? 0 : -ENOMEM;
}

void vg_digest_text(const unsigned char sum[VG_DIGEST_SIZE], char ret_text[VG_DIGEST_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < VG_DIGEST_SIZE; i++) {
        ret_text[2 * i] = digits[sum[i] >> 4];
        ret_text[2 * i + 1] = digits[sum[i] & 15];
    }
    ret_text[VG_DIGEST_TEXT - 1] = '\0';
}
