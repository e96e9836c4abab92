/* status_int.h - texts in an arena, for those who build a Status. */
#ifndef VG_API_STATUS_INT_H
#define VG_API_STATUS_INT_H

#include "status.h"

/* The plain 500 that is sent when there is no memory to say anything else. */
void vg_status_no_memory(struct vg_api_status *ret);

/* A text in the arena. 0, -ENOMEM, VIGIL_E_TOO_LARGE. */
VG_CHECK int vg_arena_printf(struct vg_arena *a, struct vg_slice *ret, const char *fmt, ...)
    VG_PRINTF(3, 4);
VG_CHECK int vg_arena_printf_v(struct vg_arena *a, struct vg_slice *ret, const char *fmt,
                               va_list ap) VG_PRINTF(3, 0);
/* A copy; the empty text needs no memory. 0, -ENOMEM. */
VG_CHECK int vg_arena_keep(struct vg_arena *a, struct vg_slice s, struct vg_slice *ret);

#endif
