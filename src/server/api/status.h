/* status.h - the Kubernetes Status: every refusal that a client sees is one of these.
 * Built in an arena of the call, written once. Constructors exist for each reason in the words of
 * kube-apiserver, so that handlers say what is wrong and not how it is spelled. */
#ifndef VG_API_STATUS_H
#define VG_API_STATUS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "server/kinds/kinds.h"
#include "server/schema/field_errors.h"

/* details.kind is the plural resource, or the Kind for Invalid. Slices live in the arena or are
 * constants. */
struct vg_api_status {
    int code;           /* HTTP */
    const char *reason; /* "NotFound"; "" is left out */
    struct vg_slice message;
    bool is_success;
    bool has_details;
    struct vg_slice name, group, kind, uid;
    const struct vg_cause *causes;
    size_t n_causes;
    uint32_t retry_after_s;         /* also the header */
    struct vg_slice continue_token; /* metadata.continue of a 410 for a page */
};

/* Append compact JSON: {"kind":"Status","apiVersion":"v1","metadata":{},...}. 0, -ENOMEM. */
VG_CHECK int vg_api_status_write(struct vg_buf *out, const struct vg_api_status *s);

/* Constructors: fill *ret. When memory is short they fill a plain constant 500 in its place, so
 * that none can fail. Formats are printf's. */
void vg_status_bad_request(struct vg_arena *a, struct vg_api_status *ret, const char *fmt, ...)
    VG_PRINTF(3, 4);
void vg_status_internal(struct vg_arena *a, struct vg_api_status *ret, const char *fmt, ...)
    VG_PRINTF(3, 4); /* message: Internal error occurred: ... */
/* 500 with an empty reason and the bare text, as for an unparsable resourceVersion. */
void vg_status_unknown(struct vg_arena *a, struct vg_api_status *ret, const char *fmt, ...)
    VG_PRINTF(3, 4);
void vg_status_forbidden(struct vg_arena *a, struct vg_api_status *ret, const struct vg_kind *kind,
                         struct vg_slice name, const char *fmt, ...) VG_PRINTF(5, 6);
void vg_status_unauthorized(struct vg_api_status *ret);
void vg_status_not_found(struct vg_arena *a, struct vg_api_status *ret, const struct vg_kind *kind,
                         struct vg_slice name);
void vg_status_no_resource(
    struct vg_api_status *ret);                   /* 404 could not find the requested resource */
void vg_status_method(struct vg_api_status *ret); /* 405 */
void vg_status_exists(struct vg_arena *a, struct vg_api_status *ret, const struct vg_kind *kind,
                      struct vg_slice name, bool is_being_deleted);
/* 409: Operation cannot be fulfilled on pods "x": ... */
void vg_status_conflict(struct vg_arena *a, struct vg_api_status *ret, const struct vg_kind *kind,
                        struct vg_slice name, const char *fmt, ...) VG_PRINTF(5, 6);
/* The conflict of a stale resourceVersion. */
void vg_status_modified(struct vg_arena *a, struct vg_api_status *ret, const struct vg_kind *kind,
                        struct vg_slice name);
void vg_status_too_many(struct vg_arena *a, struct vg_api_status *ret, uint32_t retry_after_s,
                        const char *message);
void vg_status_timeout(struct vg_arena *a, struct vg_api_status *ret, const char *fmt, ...)
    VG_PRINTF(3, 4);
void vg_status_expired(struct vg_arena *a, struct vg_api_status *ret, const char *fmt, ...)
    VG_PRINTF(3, 4); /* 410 */
/* 504: Timeout: Too large resource version: N, current: C */
void vg_status_too_large_rev(struct vg_arena *a, struct vg_api_status *ret, uint64_t wanted,
                             uint64_t current, bool with_retry);
void vg_status_not_acceptable(struct vg_arena *a, struct vg_api_status *ret, const char *message);
void vg_status_unsupported_media(struct vg_arena *a, struct vg_api_status *ret,
                                 const char *message);
void vg_status_too_large_body(struct vg_arena *a, struct vg_api_status *ret, size_t limit);
void vg_status_unavailable(struct vg_arena *a, struct vg_api_status *ret, uint32_t retry_after_s,
                           const char *message);
/* 500: what lies under this storage key cannot be read, and what is to be done about it. */
void vg_status_unreadable(struct vg_arena *a, struct vg_api_status *ret, struct vg_slice key);
/* What storage, JSON or the cacher said, by the table of errors. */
void vg_status_from_err(struct vg_arena *a, struct vg_api_status *ret, int err,
                        const char *message);

/* Kind[.group] "name" is invalid: ... */
void vg_status_invalid(struct vg_arena *a, struct vg_api_status *ret, const char *group,
                       const char *kind, struct vg_slice name, const struct vg_field_errors *e);

#endif
