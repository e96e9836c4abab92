/* write.h - JSON text out of trees or calls, into a struct vg_buf.
 * Strings are escaped as Go's encoding/json (1.22 and later) does: \" \\ \b \f \n \r \t, \u00xx for
 * other control characters, U+2028 and U+2029 always, and with VG_JSON_ESCAPE_HTML also < > &.
 * Numbers keep their exact text.
 * Indented text is that of json.MarshalIndent(v, "", "  "): "key": value, {} and [] when empty.
 * Thread: one owner per writer. */
#ifndef VG_JSON_WRITE_H
#define VG_JSON_WRITE_H

#include "base/buf.h"
#include "json.h"

enum vg_json_write_flag {
    VG_JSON_INDENT = 1,
    VG_JSON_ESCAPE_HTML = 2,
};

/* Append v as text. 0, -ENOMEM, VIGIL_E_TOO_LARGE (the buffer's cap), VIGIL_E_JSON_DEPTH.
 * On failure the buffer is as before. */
VG_CHECK int vg_json_write(struct vg_buf *out, const struct vg_json *v, unsigned flags);
/* Append s quoted and escaped. s is valid UTF-8; each byte that is not becomes \ufffd. */
VG_CHECK int vg_json_write_string(struct vg_buf *out, struct vg_slice s, unsigned flags);

/* The streaming writer: commas, colons and line breaks are its work, nesting is checked.
 * Errors stick: after the first one all calls do nothing, and vg_json_writer_end() tells it. A call
 * at the wrong place (value without key, key in an array, unbalanced end) is VIGIL_E_INVALID. */
struct vg_json_writer {
    struct vg_buf *out;
    unsigned flags;
    int err;
    uint32_t depth;
    bool first;                                     /* nothing in this container yet */
    bool has_key;                                   /* a key waits for its value */
    bool done;                                      /* the one top-level value is complete */
    uint64_t is_object[VG_JSON_DEPTH_MAX / 64 + 1]; /* one bit per level */
};

void vg_json_writer_init(struct vg_json_writer *w, struct vg_buf *out, unsigned flags);
/* 0 when exactly one complete value was written, else the first error. */
VG_CHECK int vg_json_writer_end(struct vg_json_writer *w);

void vg_json_put_begin_object(struct vg_json_writer *w);
void vg_json_put_end_object(struct vg_json_writer *w);
void vg_json_put_begin_array(struct vg_json_writer *w);
void vg_json_put_end_array(struct vg_json_writer *w);
void vg_json_put_key(struct vg_json_writer *w, struct vg_slice key);
void vg_json_put_string(struct vg_json_writer *w, struct vg_slice s);
void vg_json_put_int(struct vg_json_writer *w, int64_t i);
void vg_json_put_uint(struct vg_json_writer *w, uint64_t u);
void vg_json_put_double(struct vg_json_writer *w, double d); /* not finite: VIGIL_E_INVALID */
void vg_json_put_bool(struct vg_json_writer *w, bool b);
void vg_json_put_null(struct vg_json_writer *w);
/* One JSON value already written; copied as it is, unchecked and not re-indented. */
void vg_json_put_raw(struct vg_json_writer *w, struct vg_slice text);
/* A tree, laid out like the rest. */
void vg_json_put_value(struct vg_json_writer *w, const struct vg_json *v);
/* key and string together, the most frequent pair. */
void vg_json_put_member(struct vg_json_writer *w, const char *key, struct vg_slice s);

#endif
