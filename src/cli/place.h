/* place.h - which server, and who asks: what the flags of `vigil` and of `vigil bench` say of it.
 * Texts are borrowed from argv. Thread: any. */
#ifndef VG_CLI_PLACE_H
#define VG_CLI_PLACE_H

#include <stdbool.h>

#include "base/macros.h"

struct vigil_config;
struct vigil_error;

struct vg_cli_place {
    const char *kubeconfig, *context;    /* NULL: where kubectl looks */
    const char *server;                  /* NULL: a kubeconfig says */
    const char *token, *ca, *cert, *key; /* these and is_insecure need server */
    bool is_insecure;
};

/* The caller frees *ret. 0, or as vigil_config_new and vigil_config_load have it. */
VG_CHECK int vg_cli_place_config(const struct vg_cli_place *p, struct vigil_config **ret,
                                 struct vigil_error *reterr);

#endif
