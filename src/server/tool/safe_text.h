/* safe_text.h - bytes from a store as text that cannot hurt a terminal or break a line.
 * Unsafe are: control characters (C0, DEL, C1), the characters that reverse or hide text on a
 * screen, and whatever is not UTF-8. Thread: any. */
#ifndef VG_TOOL_SAFE_TEXT_H
#define VG_TOOL_SAFE_TEXT_H

#include "base/buf.h"

enum vg_safe_form {
    VG_SAFE_LINE,    /* stays on one line and can be read back: \\ \n \r \t \xNN */
    VG_SAFE_DISPLAY, /* for eyes: line breaks and tabs stay, unsafe bytes are \xNN */
    VG_SAFE_JSON,    /* a JSON text that stays one: unsafe characters become \uNNNN */
};
/* 0, -ENOMEM, VIGIL_E_TOO_LARGE; then a part may have been appended. */
VG_CHECK int vg_safe_append(struct vg_buf *out, struct vg_slice s, enum vg_safe_form form);

/* 2024-01-01T00:00:00.000Z */
#define VG_TIME_TEXT_SIZE 64
void vg_time_text(int64_t wall_ms, char ret_text[VG_TIME_TEXT_SIZE]);

#endif
