/* fuzz_kubeconfig.c - any bytes as a kubeconfig: a configuration that is whole, or an error that
 * says why. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct vigil_text text, const char *context)
{
    struct vigil_config *c = NULL;
    struct vigil_error err = {0};
    int r = vigil_config_parse(text, "/etc/kube", context, &c, &err);
    if (r < 0) {
        if (c || err.code != r || !err.message[0])
            abort();
        return;
    }
    bool is_https = strncasecmp(vigil_config_server(c), "https://", 8) == 0;
    if (!vigil_config_namespace(c)[0] || c->is_https != is_https ||
        (!is_https && (c->token || c->exec.command || c->username)) ||
        (c->ca.data.p && c->ca.path) || (c->is_insecure && (c->ca.data.p || c->ca.path)))
        abort();
    vigil_config_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vigil_text text = {(const char *)data, size};
    check(text, NULL);
    check(text, "k");
    return 0;
}
