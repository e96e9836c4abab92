/* compact.h - is a JSON text written already as we would write it?
 * Then it can be copied in the place of writing its tree again, which costs ten times as much.
 * Thread: any. */
#ifndef VG_JSON_COMPACT_H
#define VG_JSON_COMPACT_H

#include "base/slice.h"

/* Of one valid JSON value without duplicate keys: would vg_json_write() of its tree with
 * VG_JSON_ESCAPE_HTML give these very bytes? False is always safe to say, and is said of what is
 * rare: anything but ASCII, and escapes that have another spelling. */
bool vg_json_is_compact(struct vg_slice value);

#endif
