/* openapi_proto.h - OpenAPI documents in protobuf, as gnostic's OpenAPIv2.proto and OpenAPIv3.proto
 * define them: what kubectl asks for first. Made from the JSON by tables. */
#ifndef VG_API_OPENAPI_PROTO_H
#define VG_API_OPENAPI_PROTO_H

#include "base/buf.h"
#include "json/json.h"

/* Append the document. 0, -ENOMEM; VIGIL_E_INVALID: the JSON has a member that the tables do not
 * know. */
VG_CHECK int vg_openapi_proto_v2(struct vg_buf *out, const struct vg_json *document);
VG_CHECK int vg_openapi_proto_v3(struct vg_buf *out, const struct vg_json *document);

#endif
