/* uuid.c - see uuid.h. */
#include "uuid.h"

void vg_uuid_write(const unsigned char b[16], char ret_text[VG_UUID_TEXT])
{
    static const char hex[] = "0123456789abcdef";
    char *p = ret_text;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *p++ = '-';
        *p++ = hex[b[i] >> 4];
        *p++ = hex[b[i] & 15];
    }
}
