/* strconv.h - numbers and durations in texts, read and refused as Go's strconv and time do: clients
 * see those texts. Thread: any. */
#ifndef VG_SCHEMA_STRCONV_H
#define VG_SCHEMA_STRCONV_H

#include "base/arena.h"
#include "base/err.h"

/* Decimal. 0; VIGIL_E_INVALID with the error's text in *reterr_why, such as
 * strconv.ParseInt: parsing "x": invalid syntax; -ENOMEM. */
VG_CHECK int vg_strconv_int(struct vg_arena *a, struct vg_slice s, int64_t *ret,
                            struct vg_slice *reterr_why);
/* The same, refused as strconv.Atoi does. */
VG_CHECK int vg_strconv_atoi(struct vg_arena *a, struct vg_slice s, int64_t *ret,
                             struct vg_slice *reterr_why);
VG_CHECK int vg_strconv_uint(struct vg_arena *a, struct vg_slice s, uint64_t *ret,
                             struct vg_slice *reterr_why);
/* 1h2m3.5s, 300ms ... in nanoseconds. Errors as above, such as time: invalid duration "x". */
VG_CHECK int vg_duration_parse(struct vg_arena *a, struct vg_slice s, int64_t *ret_ns,
                               struct vg_slice *reterr_why);

#endif
