/* apply.h - server-side apply, a PATCH of its own. Thread: the call's loop. */
#ifndef VG_API_APPLY_H
#define VG_API_APPLY_H

#include "write.h"

void vg_api_apply(struct vg_api_call *call);

#endif
