/* decode_int.h - the parts of decoding that know nothing of documents. */
#ifndef VG_YAML_DECODE_INT_H
#define VG_YAML_DECODE_INT_H

#include "yaml_int.h"

/* Text of !!binary: base64, line breaks ignored. What is no UTF-8 becomes U+FFFD, as in Go's JSON.
 * 0, -ENOMEM, VIGIL_E_JSON_SYNTAX. */
VG_CHECK int vg_yaml_decode_binary(struct vg_arena *arena, struct vg_slice text,
                                   struct vg_json *ret, struct vg_status *reterr_status);

/* Append v as Go's %#v shows it: map[interface {}]interface {}{"a":"b"}. */
VG_CHECK int vg_yaml_show(struct vg_buf *out, const struct vg_json *v);

#endif
