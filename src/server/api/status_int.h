/* status_int.h - for those who build a Status. */
#ifndef VG_API_STATUS_INT_H
#define VG_API_STATUS_INT_H

#include "status.h"

/* The plain 500 that is sent when there is no memory to say anything else. */
void vg_status_no_memory(struct vg_api_status *ret);

#endif
