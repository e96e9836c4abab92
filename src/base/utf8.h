/* utf8.h - reading UTF-8 that may be broken (RFC 3629: no overlong forms, no surrogates).
 * Thread: any. */
#ifndef VG_BASE_UTF8_H
#define VG_BASE_UTF8_H

#include "slice.h"

/* The first character of s, which is not empty: its length in bytes, 1 to 4, and its code in
 * *ret_code; 0 when s does not begin with a whole valid character. */
size_t vg_utf8_next(struct vg_slice s, uint32_t *ret_code);

bool vg_utf8_is_valid(struct vg_slice s);

#endif
