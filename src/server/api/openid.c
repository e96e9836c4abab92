/* openid.c - the two documents by which others check tokens of service accounts: who issues them,
 * and the public keys. */
#include "discovery.h"
#include "respond_int.h"
#include "server/jwt/issuer.h"

bool vg_api_openid(struct vg_api_call *call)
{
    const struct vg_issuer *issuer = call->loop->api->opts.issuer;
    struct vg_slice path = call->ask->target->path;
    bool is_config = vg_slice_eq(path, VG_SLICE_LIT("/.well-known/openid-configuration"));
    if (!issuer || (!is_config && !vg_slice_eq(path, VG_SLICE_LIT("/openid/v1/jwks"))))
        return false;
    struct vg_head_opts opts = {.content_type =
                                    is_config ? "application/json" : "application/jwk-set+json",
                                .cache_control = "public, max-age=3600"};
    if (vg_discovery_admit(call))
        vg_respond_constant(call, &opts,
                            vg_buf_slice(is_config ? &issuer->config : &issuer->key_set));
    return true;
}
