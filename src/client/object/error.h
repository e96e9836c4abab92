/* error.h - from codes of ours to what a user of the library sees. Thread: any. */
#ifndef VG_CLIENT_OBJECT_ERROR_H
#define VG_CLIENT_OBJECT_ERROR_H

#include "base/err.h"
#include "base/slice.h"
#include "vigil/base.h"

/* The public code for one of ours: memory, JSON and errno codes have no public name of their own.
 */
int vg_error_code(int code);
/* Fill *err (NULL allowed) with the public code and a sentence; returns the public code. */
int vg_error_set(struct vigil_error *err, int code, const char *fmt, ...) VG_PRINTF(3, 4);

/* What is said of an options struct whose size is 0. */
#define VG_NO_SIZE "options without a size: use VIGIL_INIT"

static inline struct vg_slice vg_slice_of(struct vigil_text t)
{
    return vg_slice(t.p, t.n);
}
static inline struct vigil_text vg_text_of(struct vg_slice s)
{
    return (struct vigil_text){s.p, s.n};
}

#endif
