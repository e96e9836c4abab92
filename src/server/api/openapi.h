/* openapi.h - the OpenAPI documents, each made when it is first asked for and then kept.
 * Thread: any. */
#ifndef VG_API_OPENAPI_H
#define VG_API_OPENAPI_H

#include "base/buf.h"
#include "base/err.h"

struct vg_openapi;

VG_CHECK int vg_openapi_new(const char *git_version, struct vg_openapi **ret_openapi);
void vg_openapi_free(struct vg_openapi *o);

enum vg_openapi_form { VG_OPENAPI_JSON, VG_OPENAPI_PROTO, VG_OPENAPI_FORMS };

struct vg_openapi_doc {
    /* Compressed ones are empty when the body is too short for it to pay. */
    struct vg_buf body[VG_OPENAPI_FORMS], gzip[VG_OPENAPI_FORMS];
    char etag[132]; /* quoted; the hash is what lies between the quotes */
};

/* /openapi/v2; NULL: memory is short. */
const struct vg_openapi_doc *vg_openapi_v2(struct vg_openapi *o);
/* By what follows /openapi/v3/ : "api/v1", "apis/apps/v1". 0; VIGIL_E_NOT_FOUND; -ENOMEM. */
VG_CHECK int vg_openapi_v3(struct vg_openapi *o, struct vg_slice path,
                           const struct vg_openapi_doc **ret_doc);
/* Append the index of /openapi/v3. 0, -ENOMEM. */
VG_CHECK int vg_openapi_index(struct vg_openapi *o, struct vg_buf *out);

#endif
