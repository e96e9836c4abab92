/* health.h - /livez, /readyz and /healthz: named checks and what they say, in kube-apiserver's
 * words. Checks are added before serving begins; asking runs them on the asking loop, so they must
 * be quick and safe from any thread. Thread: adding one, asking any. */
#ifndef VG_SERVER_HTTP_HEALTH_H
#define VG_SERVER_HTTP_HEALTH_H

#include "base/buf.h"
#include "server/api/target.h"

enum vg_health_endpoint { VG_LIVEZ = 1, VG_READYZ = 2, VG_HEALTHZ = 4 };
#define VG_HEALTH_CHECKS_MAX 16u

struct vg_health_check {
    const char *name;
    unsigned endpoints; /* enum vg_health_endpoint */
    /* NULL: well. Else why not, for the log alone: clients are told "reason withheld". */
    const char *(*check)(void *arg);
    void *arg;
    bool is_notice; /* what it says is told in full, and fails nothing but its own path */
};

struct vg_health {
    struct vg_health_check checks[VG_HEALTH_CHECKS_MAX];
    size_t n;
};

/* Starts with the checks `ping` and `log`, which pass whenever somebody can ask. */
void vg_health_init(struct vg_health *h);
/* False: there is no room. */
VG_CHECK bool vg_health_add(struct vg_health *h, const struct vg_health_check *check);

/* What one check says: NULL when it is well, or is not there. */
const char *vg_health_trouble(const struct vg_health *h, const char *name);

struct vg_health_answer {
    int code;
    bool is_sniffable; /* without X-Content-Type-Options: nosniff */
};
/* Answer a path such as /readyz or /readyz/ping; of the query `verbose` and each `exclude` count.
 * VIGIL_E_NOT_FOUND: no path of health; -ENOMEM. */
VG_CHECK int vg_health_answer(const struct vg_health *h, const struct vg_target *target,
                              struct vg_buf *out, struct vg_health_answer *ret);
/* The paths that there are, for the list at "/". Ends at the first error of `each`. */
VG_CHECK int vg_health_paths(const struct vg_health *h, int (*each)(void *arg, const char *path),
                             void *arg);

#endif
