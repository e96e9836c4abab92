/* gojson.h - what Go's encoding/json says of a text that is no JSON, word for word.
 * Clients and people know those sentences. Only a body that our parser refused is read again here,
 * so that refusing costs a second look and accepting costs none. Thread: any. */
#ifndef VG_SCHEMA_GOJSON_H
#define VG_SCHEMA_GOJSON_H

#include "json/json.h"

/* Fill ret->message: "unexpected end of JSON input", "invalid character 'x' after object key", ...
 * max_depth: nested containers that are allowed. Returns false when Go would find nothing wrong. */
bool vg_gojson_complain(struct vg_slice text, uint32_t max_depth, struct vg_status *ret);

/* How Go names a value that does not fit: "number", "object"; static. */
const char *vg_gojson_type(const struct vg_json *v);

#endif
