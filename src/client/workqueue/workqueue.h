/* workqueue.h - work queues on a clock of the caller's, for tests. */
#ifndef VG_CLIENT_WORKQUEUE_WORKQUEUE_H
#define VG_CLIENT_WORKQUEUE_WORKQUEUE_H

#include "base/clock.h"
#include "base/err.h"
#include "vigil/workqueue.h"

/* 1 KiB: a namespace and a name have 63 and 253 bytes. */
#define VG_WORKQUEUE_KEY_MAX 1024u

/* The clock outlives the queue. 0; VIGIL_E_INVALID; -ENOMEM; -ENOSPC: a fake clock with too many
 * hooks. */
VG_CHECK int vg_workqueue_new(const struct vigil_workqueue_opts *opts, const struct vg_clock *clock,
                              struct vigil_workqueue **ret);

#endif
