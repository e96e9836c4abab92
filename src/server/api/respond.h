/* respond.h - answers: heads, Status, objects, bodies. Every handler answers through these, so that
 * Audit-Id, Cache-Control, Warning, gzip and pretty printing are in one place.
 * Each answers the call's exchange, ends it, and sees to it that call->done comes. None fails: when
 * memory is short the exchange is aborted. Thread: the call's loop. */
#ifndef VG_API_RESPOND_H
#define VG_API_RESPOND_H

#include "api.h"

void vg_respond_status(struct vg_api_call *call, const struct vg_api_status *status);
/* A stored object at a revision, in the form that call->media says. A reference of rec is taken. */
void vg_respond_object(struct vg_api_call *call, int code, const struct vg_rec *rec, vg_rev rev);
/* Objects that were never stored (dry run): value and header as vg_obj_seal made them; rev 0 shows
 * no resourceVersion. */
void vg_respond_sealed(struct vg_api_call *call, int code, const struct vg_obj_sealed *sealed,
                       vg_rev rev);
/* Compact JSON text, made pretty, YAML or gzip as the media says. Consumes the buffer. */
void vg_respond_json(struct vg_api_call *call, int code, struct vg_buf *take_json);
/* Bytes as they are. Consumes the buffer. */
void vg_respond_bytes(struct vg_api_call *call, int code, const char *content_type,
                      struct vg_buf *take_body);

void vg_call_warn(struct vg_api_call *call, const char *fmt, ...) VG_PRINTF(2, 3);

#endif
