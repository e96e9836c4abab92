/* openapi.h - the OpenAPI documents: each is made when it is asked for, kept for those who ask soon
 * after, and dropped when nobody does. They are larger than the rest of a small server's heap, and
 * kubectl asks for some of them in every command, for none between commands. What is kept for ever
 * is their hash, so that a client that has a document already costs nothing. Thread: any. */
#ifndef VG_API_OPENAPI_H
#define VG_API_OPENAPI_H

#include "base/buf.h"
#include "base/err.h"

/* 60 s: longer than a script thinks between two commands. */
#define VG_OPENAPI_IDLE_MS INT64_C(60000)

struct vg_openapi;
struct vg_openapi_body;

VG_CHECK int vg_openapi_new(const char *git_version, struct vg_openapi **ret_openapi);
void vg_openapi_free(struct vg_openapi *o);

enum vg_openapi_form { VG_OPENAPI_JSON, VG_OPENAPI_PROTO, VG_OPENAPI_FORMS };

/* A document's number: that of 2.0, or by what follows /openapi/v3/ : "api/v1", "apis/apps/v1". */
#define VG_OPENAPI_V2 0u
VG_CHECK int vg_openapi_find(const struct vg_openapi *o, struct vg_slice path,
                             size_t *ret_doc); /* 0, VIGIL_E_NOT_FOUND */
/* Its ETag, quoted: the hash is what lies between the quotes. It lives as long as *o. NULL: memory
 * is short. */
const char *vg_openapi_etag(struct vg_openapi *o, size_t doc);
/* One reference to its bytes in a form; compressed if that is wanted and pays. NULL: memory is
 * short. */
const struct vg_openapi_body *vg_openapi_take(struct vg_openapi *o, size_t doc,
                                              enum vg_openapi_form form, bool wants_gzip,
                                              int64_t now_ms, bool *ret_is_gzip);
struct vg_slice vg_openapi_bytes(const struct vg_openapi_body *b);
/* Of a struct vg_openapi_body, as a pin wants it. */
void vg_openapi_ref(const void *body);
void vg_openapi_unref(const void *body);

/* Drop what nobody has taken for VG_OPENAPI_IDLE_MS; references that are out stay good. True: there
 * is more, for later. */
bool vg_openapi_sweep(struct vg_openapi *o, int64_t now_ms);
size_t vg_openapi_kept_bytes(struct vg_openapi *o);

/* Append the index of /openapi/v3. 0, -ENOMEM. */
VG_CHECK int vg_openapi_index(struct vg_openapi *o, struct vg_buf *out);

#endif
