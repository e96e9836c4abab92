/* fuzz_jwt.c - any bytes as a token: refused, or read; and never found to be signed by a key that
 * signed nothing. What is read can be written again. */
#include <stdlib.h>

#include "key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct vg_jwt_keys keys;
    VG_AUTO(arena) a = {.max = (size_t)16 << 20};
    struct vg_jwt token;
    struct vg_slice again;
    if (keys.n == 0) {
        VG_AUTO(buf) pem = {0};
        if (vg_jwt_key_make(&pem) < 0 ||
            vg_jwt_keys_add(&keys, "key", vg_buf_slice(&pem), NULL) < 0)
            abort();
    }
    if (vg_jwt_read(&a, vg_slice(data, size), &token) < 0)
        return 0;
    token.key_id = VG_SLICE_LIT("");
    if (vg_jwt_verify(&keys, &token) != VG_JWT_FORGED)
        abort();
    if (vg_jwt_write(&a, "ES256", "k", &token.claims, &again) < 0)
        abort();
    return 0;
}
