/* expiring.h - expiring stores on a clock of the caller's, for tests. */
#ifndef VG_CLIENT_STORE_EXPIRING_H
#define VG_CLIENT_STORE_EXPIRING_H

#include "base/clock.h"
#include "base/err.h"
#include "vigil/store.h"

/* The clock outlives the store. 0 or -ENOMEM. */
VG_CHECK int vg_expiring_new(uint64_t ttl_ms, const struct vg_clock *clock,
                             struct vigil_expiring **ret);

#endif
