/* quote.h - text between double quotes as Go's %q writes it, because kube-apiserver's messages show
 * a user's values that way and clients compare messages. Thread: any. */
#ifndef VG_OBJECT_QUOTE_H
#define VG_OBJECT_QUOTE_H

#include "base/buf.h"

/* Append s in quotes: backslash, quote and what cannot be printed are escaped, printable Unicode
 * stays, a byte that is not UTF-8 becomes \xNN; so what is appended is always valid UTF-8 and at
 * most four times as long as s, and two more. 0, -ENOMEM, VIGIL_E_TOO_LARGE; what was appended
 * before a failure stays. */
VG_CHECK int vg_quote_append(struct vg_buf *b, struct vg_slice s);

#endif
