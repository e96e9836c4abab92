/* advertise.h - the address that the endpoints of the service "kubernetes" name.
 * Thread: main, before the loops run. */
#ifndef VG_MAIN_ADVERTISE_H
#define VG_MAIN_ADVERTISE_H

#include <arpa/inet.h>

#include "base/err.h"

#define VG_ADVERTISE_MAX INET6_ADDRSTRLEN

/* The one that is wanted (--advertise-address; NULL: none is said), or the one that is bound, or of
 * a server on every interface the one of the way out. Empty: only this host can reach us. 0;
 * VIGIL_E_INVALID with a sentence. */
VG_CHECK int vg_advertise_choose(const char *wanted, const char *bound, char ret[VG_ADVERTISE_MAX],
                                 struct vg_status *reterr_status);

#endif
