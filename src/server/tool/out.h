/* out.h - answers on standard output, as text or as JSON.
 * Whatever a store holds is made safe on its way (safe_text.h). Errors stick: the call that writes
 * out (flush, end) tells the first one. Thread: one owner of each output. */
#ifndef VG_TOOL_OUT_H
#define VG_TOOL_OUT_H

#include "options.h"
#include "json/write.h"

struct vg_out {
    bool is_json, is_pretty;
    int err;
    struct vg_buf text;         /* not yet written */
    struct vg_json_writer json; /* into text; one document at a time */
};

void vg_out_init(struct vg_out *o, const struct vg_options *options);
void vg_out_done(struct vg_out *o);
static inline void vg_out_cleanup(struct vg_out *o)
{
    vg_out_done(o);
}

/* Write what there is so far. -errno, VIGIL_E_TOO_LARGE. */
VG_CHECK int vg_out_flush(struct vg_out *o, struct vg_status *reterr_status);

/* A JSON document from begin to end, which writes it out; in text they begin and end nothing. */
void vg_out_begin(struct vg_out *o);
VG_CHECK int vg_out_end(struct vg_out *o, struct vg_status *reterr_status);

/* One fact: "label   value" as text, "name": value as JSON. */
void vg_out_uint(struct vg_out *o, const char *name, const char *label, uint64_t n);
void vg_out_string(struct vg_out *o, const char *name, const char *label, struct vg_slice s);
void vg_out_seconds(struct vg_out *o, const char *name, const char *label, uint64_t ns);
void vg_out_bytes(struct vg_out *o, const char *name, const char *label, uint64_t bytes);

/* JSON alone: "name": "..." when it is UTF-8, else "nameBase64": "...". */
void vg_out_json_bytes(struct vg_out *o, const char *name, struct vg_slice s);
/* JSON alone: the members of a record; the value unless it is left out or a delete has none. */
void vg_out_json_record(struct vg_out *o, const struct vg_rec *rec, bool has_value);

/* Text alone. */
void vg_out_printf(struct vg_out *o, const char *fmt, ...) VG_PRINTF(2, 3);
/* On one line, escaped. */
void vg_out_escaped(struct vg_out *o, struct vg_slice s);
/* A value as a person wants it: laid out if it is JSON and that was asked for. `is_exact`: its
 * bytes as they are. */
void vg_out_value(struct vg_out *o, struct vg_slice value, bool is_exact);

/* "12.3 MiB" */
#define VG_SIZE_TEXT_SIZE 32
const char *vg_size_text(uint64_t bytes, char text[VG_SIZE_TEXT_SIZE]);

#endif
