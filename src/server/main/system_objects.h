/* system_objects.h - the namespaces that every cluster has. Thread: main, which turns the loop. */
#ifndef VG_MAIN_SYSTEM_OBJECTS_H
#define VG_MAIN_SYSTEM_OBJECTS_H

#include "server/storage/storage.h"

/* Make those of default, kube-system, kube-public and kube-node-lease that are not there. Turns the
 * loop, which is the caller's and does not run, until storage has answered. Errors of storage. */
VG_CHECK int vg_system_objects_ensure(struct vg_storage *storage, struct vg_loop *loop,
                                      const struct vg_clock *clock,
                                      struct vg_status *reterr_status);

#endif
