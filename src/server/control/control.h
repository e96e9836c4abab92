/* control.h - the small controllers: what a cluster does by itself, so that a bare server surprises
 * nobody. Each follows kinds in the cache and acts through the API like any client (net/inside), on
 * one loop of its own. Each has its name of kube-controller-manager and its switch, for those who
 * run that.
 *
 *   cache --events--> follow --> keys that need work --> run: look in the cache, ask the API
 *
 * Thread: the loop's. */
#ifndef VG_CONTROL_CONTROL_H
#define VG_CONTROL_CONTROL_H

#include "net/inside.h"
#include "server/api/api.h"

struct vg_control;

enum vg_controller {
    VG_CONTROL_BOOTSTRAP,
    VG_CONTROL_NAMESPACE,
    VG_CONTROL_SERVICE_ACCOUNT,
    VG_CONTROL_ROOT_CA,
    VG_CONTROL_GARBAGE,
    VG_CONTROL_QUOTA,
    VG_CONTROL_FLOW,
    VG_CONTROLLERS
};
#define VG_CONTROL_ALL ((1u << VG_CONTROLLERS) - 1)

/* A list as kube-controller-manager takes it: "*" is all, "name" on, "-name" off; empty or NULL:
 * none. VIGIL_E_INVALID with a sentence. */
VG_CHECK int vg_control_parse(const char *list, unsigned *ret_set, struct vg_status *reterr_status);

struct vg_control_opts {
    unsigned set; /* a bit for each of enum vg_controller */
    struct vg_loop *loop;
    struct vg_cacher *cacher;
    struct vg_cache_port *port; /* of the loop */
    struct vg_storage *storage;
    struct vg_http_server *server; /* of the loop */
    const struct vg_log *log;
    struct vg_slice root_ca;       /* PEM; for VG_CONTROL_ROOT_CA */
    struct vg_slice client_ca;     /* PEM: by which clients are known; for VG_CONTROL_BOOTSTRAP */
    const char *advertised;        /* address by which others reach us; NULL: they cannot */
    const char *service_ranges[2]; /* of cluster addresses; for VG_CONTROL_BOOTSTRAP, as the rest */
    const char *service_ip;        /* of the service "kubernetes" */
    unsigned secure_port;          /* that it leads to */
    /* Not NULL: others serve the same store, and only the holder of a lease runs the controllers.
     * Under this name, which no other has: letters, digits and "-._". */
    const char *identity;
    uint64_t lease_ms; /* with identity: what nobody has renewed for so long is free; whole seconds,
                        * at least 3 */
};
VG_CHECK int vg_control_open(const struct vg_control_opts *opts, struct vg_control **ret_control);
/* Start following, or trying to lead; on the loop's thread or while it does not run. */
VG_CHECK int vg_control_start(struct vg_control *c);
/* Stop following and asking. Before the port is drained. What runs ends with its requests. */
void vg_control_stop(struct vg_control *c);
void vg_control_free(struct vg_control *c); /* stopped, and before the server is freed */

#endif
