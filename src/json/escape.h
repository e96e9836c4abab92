/* escape.h - strings on their way out, shared within the folder. */
#ifndef VG_JSON_ESCAPE_H
#define VG_JSON_ESCAPE_H

#include "base/buf.h"

/* Append s in quotes, escaped as write.h says; flags are enum vg_json_write_flag.
 * 0, -ENOMEM, VIGIL_E_TOO_LARGE; on failure a part may have been appended. */
VG_CHECK int vg_json_append_quoted(struct vg_buf *out, struct vg_slice s, unsigned flags);

#endif
