/* cron.h - timetables of cron jobs, and time zones: are they any? Thread: any. */
#ifndef VG_RULES_CRON_H
#define VG_RULES_CRON_H

#include "base/arena.h"
#include "base/err.h"
#include "base/slice.h"

/* "0 5 * * 1-5", "@hourly", "@every 5m", with "TZ=Europe/Berlin " before it or not. 0;
 * VIGIL_E_INVALID with the original's words, in the arena; -ENOMEM. */
VG_CHECK int vg_cron_check(struct vg_arena *a, struct vg_slice text, struct vg_slice *reterr_why);

/* A name of the IANA database (zones.c), UTC or Local. */
bool vg_zone_is_known(struct vg_slice name);

#endif
