/* safe_text.c - see safe_text.h. */
#include "safe_text.h"

#include <stdio.h>
#include <time.h>

#include "base/utf8.h"

/* A character that does something other than show itself. */
static bool is_unsafe(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0xad || code == 0x61c ||
           (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2060 && code <= 0x206f) || code == 0xfeff;
}

static int append_bytes(struct vg_buf *out, struct vg_slice s)
{
    int r = 0;
    for (size_t i = 0; i < s.n && r == 0; i++)
        r = vg_buf_printf(out, "\\x%02x", (unsigned char)s.p[i]);
    return r;
}

/* The short names of a line's usual control characters, and of the backslash. */
static char short_name(uint32_t code)
{
    switch (code) {
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    case '\\':
        return '\\';
    default:
        return 0;
    }
}

static int append_line_char(struct vg_buf *out, struct vg_slice c, uint32_t code)
{
    char name = short_name(code);
    if (name)
        return vg_buf_append(out, (char[]){'\\', name}, 2);
    return is_unsafe(code) ? append_bytes(out, c) : vg_buf_append_slice(out, c);
}

static int append_char(struct vg_buf *out, struct vg_slice c, uint32_t code, enum vg_safe_form form)
{
    bool is_layout = code == '\n' || code == '\t';
    if (form == VG_SAFE_LINE)
        return append_line_char(out, c, code);
    if (is_layout || !is_unsafe(code))
        return vg_buf_append_slice(out, c);
    if (form == VG_SAFE_JSON)
        return vg_buf_printf(out, "\\u%04x", code); /* all of them fit */
    return append_bytes(out, c);
}

int vg_safe_append(struct vg_buf *out, struct vg_slice s, enum vg_safe_form form)
{
    int r = 0;
    while (s.n > 0 && r == 0) {
        uint32_t code;
        size_t n = vg_utf8_next(s, &code);
        if (n)
            r = append_char(out, vg_slice(s.p, n), code, form);
        else
            r = append_bytes(out, vg_slice(s.p, n = 1));
        s = vg_slice(s.p + n, s.n - n);
    }
    return r;
}

void vg_time_text(int64_t wall_ms, char ret_text[VG_TIME_TEXT_SIZE])
{
    int64_t ms = wall_ms % 1000;
    time_t seconds = (time_t)(wall_ms / 1000 - (ms < 0));
    struct tm tm;
    if (!gmtime_r(&seconds, &tm))
        tm = (struct tm){.tm_year = 70, .tm_mday = 1};
    snprintf(ret_text, VG_TIME_TEXT_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900,
             tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
             (int)(ms < 0 ? ms + 1000 : ms));
}
