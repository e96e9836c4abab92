/* uuid.h - uids as Kubernetes writes them: RFC 4122, version 4, in lower case. Thread: any. */
#ifndef VG_BASE_UUID_H
#define VG_BASE_UUID_H

#include "macros.h"

#define VG_UUID_TEXT 36u

/* Make a version 4 uuid of 16 random bytes. */
static inline void vg_uuid_mark(unsigned char b[16])
{
    b[6] = (unsigned char)(0x40 | (b[6] & 0x0f));
    b[8] = (unsigned char)(0x80 | (b[8] & 0x3f));
}
/* Its text, without a closing 0. */
void vg_uuid_write(const unsigned char b[16], char ret_text[VG_UUID_TEXT]);

#endif
