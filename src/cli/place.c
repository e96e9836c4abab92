/* place.c - see place.h. */
#include "place.h"

#include "vigil/vigil.h"

int vg_cli_place_config(const struct vg_cli_place *p, struct vigil_config **ret,
                        struct vigil_error *reterr)
{
    struct vigil_config_opts by_hand = VIGIL_INIT(struct vigil_config_opts);
    by_hand.server = p->server;
    by_hand.token = p->token;
    by_hand.ca_file = p->ca;
    by_hand.cert_file = p->cert;
    by_hand.key_file = p->key;
    by_hand.insecure_skip_tls_verify = p->is_insecure;
    return p->server ? vigil_config_new(&by_hand, ret, reterr)
                     : vigil_config_load(p->kubeconfig, p->context, ret, reterr);
}
