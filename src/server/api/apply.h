/* apply.h - server-side apply, a PATCH of its own. Thread: the call's loop. */
#ifndef VG_API_APPLY_H
#define VG_API_APPLY_H

#include "write.h"

struct vg_apply;

void vg_api_apply(struct vg_api_call *call);

/* FAIL with a 409 that names the conflicts of x, one at least. */
enum vg_verdict vg_apply_refuse(struct vg_change *c, const struct vg_apply *x);

#endif
