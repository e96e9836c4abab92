/* gotime.h - times as objects have them: RFC 3339, read as strictly and refused as wordily as Go
 * does, printed in UTC. Thread: any. */
#ifndef VG_SCHEMA_GOTIME_H
#define VG_SCHEMA_GOTIME_H

#include "base/err.h"
#include "base/slice.h"

#define VG_TIME_TEXT_MAX 32u

struct vg_gotime {
    int64_t s; /* since 1970 */
    int32_t ns;
};
/* The zero time of Go, the first second of the year 1, which objects print as null. */
#define VG_GOTIME_ZERO_S INT64_C(-62135596800)

/* "2026-11-15T09:05:39Z", is_micro: "2026-11-15T09:05:39.000000Z"; its length. */
size_t vg_gotime_format(struct vg_gotime t, bool is_micro, char ret_text[VG_TIME_TEXT_MAX]);
/* Any offset. is_micro: six digits after the point are a must; else any fraction may be there. 0;
 * VIGIL_E_INVALID with Go's sentence. */
VG_CHECK int vg_gotime_parse(struct vg_slice text, bool is_micro, struct vg_gotime *ret,
                             struct vg_status *reterr_status);

/* The same in whole seconds. */
size_t vg_time_format(int64_t wall_ms, char ret_text[VG_TIME_TEXT_MAX]);
VG_CHECK int vg_time_parse(struct vg_slice text, int64_t *ret_s, struct vg_status *reterr_status);

#endif
