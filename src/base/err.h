/* err.h - errors are ints: 0 or positive is success, -errno comes from the system, VIGIL_E_* are
 * ours. One table (err.def) says for each what it means to a person, to HTTP and to a Kubernetes
 * client. Detail for a user travels in a struct vg_status that the caller passes as the last
 * argument. */
#ifndef VG_BASE_ERR_H
#define VG_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>

#include "macros.h"

/* Own codes lie below every errno. */
#define VIGIL_E_BASE (-100000)

enum vg_err_code {
#define VG_ERR(name, number, http, reason, retriable, text)                                        \
    VIGIL_E_##name = VIGIL_E_BASE - (number),
#define VG_ERRNO(name, http, reason, retriable)
#include "err.def"
#undef VG_ERR
#undef VG_ERRNO
};

/* All of these accept any int; a code without a row reads as an internal error. */
const char *vg_err_text(int err);   /* for a person; static, or strerror's for -errno */
const char *vg_err_name(int err);   /* "VIGIL_E_CONFLICT", "ENOSPC"; for logs and metrics */
const char *vg_err_reason(int err); /* Kubernetes Status reason */
int vg_err_http(int err);           /* HTTP status code; 200 for success */
bool vg_err_is_retriable(int err);  /* may the same request succeed later, unchanged? */

/* What a failed call wants its user to know: the code and one sentence. Embedded by value; callers
 * that do not care pass NULL. A long message is cut, always at a character boundary. */
#define VG_STATUS_MESSAGE_MAX 512
struct vg_status {
    int err;
    char message[VG_STATUS_MESSAGE_MAX];
};

/* Fill *status (NULL allowed) and return err, so that failing is one line. The arguments may
 * include status->message itself, to put words around it: return vg_fail(reterr_status,
 * VIGIL_E_CONFLICT, "key %.*s is at revision ...", ...); */
int vg_fail(struct vg_status *status, int err, const char *fmt, ...) VG_PRINTF(3, 4);
int vg_fail_v(struct vg_status *status, int err, const char *fmt, va_list ap) VG_PRINTF(3, 0);

#endif
