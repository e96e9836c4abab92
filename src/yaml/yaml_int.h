/* yaml_int.h - what the files of this folder share: YAML nodes as read, scalars as resolved. */
#ifndef VG_YAML_YAML_INT_H
#define VG_YAML_YAML_INT_H

#include "yaml.h"

/* ---- nodes: the document as it was written, aliases not yet expanded ---- */

enum vg_yaml_kind { VG_YAML_SCALAR, VG_YAML_SEQUENCE, VG_YAML_MAPPING, VG_YAML_ALIAS };

struct vg_yaml_node {
    uint8_t kind;     /* enum vg_yaml_kind */
    bool is_implicit; /* SCALAR: plain and without a tag */
    bool is_open;     /* ALIAS: being expanded right now */
    uint32_t line;    /* from 0 */
    uint32_t n;       /* nodes of a sequence, keys and values of a mapping */
    struct vg_slice tag;
    struct vg_slice text;             /* SCALAR: value; ALIAS: name of the anchor */
    struct vg_yaml_node *first;       /* of a container; ALIAS: what it stands for */
    struct vg_yaml_node *last, *next; /* siblings are a list in order */
};

/* Read the first document. Nodes lie in `nodes`, texts in `texts`. *ret_root is NULL when there is
 * no document. Errors as vg_yaml_parse. */
VG_CHECK int vg_yaml_read(struct vg_arena *nodes, struct vg_arena *texts, struct vg_slice text,
                          uint32_t max_depth, size_t max_nodes, struct vg_yaml_node **ret_root,
                          struct vg_status *reterr_status);

/* Nodes as JSON: aliases expanded, scalars resolved, keys made strings. opts has no zeros. */
VG_CHECK int vg_yaml_decode(struct vg_arena *arena, struct vg_yaml_node *root,
                            const struct vg_yaml_opts *opts, struct vg_json *ret,
                            struct vg_status *reterr_status);

/* ---- scalars ---- */

enum vg_yaml_type {
    VG_YAML_STR,
    VG_YAML_NULL,
    VG_YAML_BOOL,
    VG_YAML_INT,
    VG_YAML_FLOAT,
    VG_YAML_TIMESTAMP, /* told apart only because such text must be quoted when written */
    VG_YAML_BINARY,
    VG_YAML_OTHER, /* a tag that means nothing here: the text is a string */
};

struct vg_yaml_value {
    enum vg_yaml_type type;
    bool is_true;       /* BOOL */
    bool is_negative;   /* INT: sign of magnitude */
    uint64_t magnitude; /* INT */
    double number;      /* FLOAT; may be infinite or not a number */
};

/* What a plain scalar means. -ENOMEM is the only failure. */
VG_CHECK int vg_yaml_resolve(struct vg_slice text, bool try_timestamp, struct vg_yaml_value *ret);
/* The type that a tag asks for; OTHER when it is none of ours. */
enum vg_yaml_type vg_yaml_type_of_tag(struct vg_slice tag);
const char *vg_yaml_type_name(enum vg_yaml_type type); /* "!!str" */
bool vg_yaml_is_timestamp(struct vg_slice text);

/* d as YAML text, with the shortest digits that read back the same as a double, or as a float (so
 * sigs.k8s.io/yaml prints keys). Returns bytes used. */
#define VG_YAML_NUMBER_MAX 64
size_t vg_yaml_format_double(double d, char out[VG_YAML_NUMBER_MAX]);
size_t vg_yaml_format_float(double d, char out[VG_YAML_NUMBER_MAX]);

/* ---- writing ---- */

/* The emitter's memory of what it wrote last: enough to know where blanks and breaks are due. */
struct vg_yaml_out {
    struct vg_buf *buf;
    uint32_t column;    /* characters in this line */
    int32_t indent;     /* of the innermost block; -1 outside of all */
    bool is_whitespace; /* the last thing written was a blank or counts as one */
    bool is_indention;  /* nothing but indentation and "- ? :" in this line */
    int err;            /* sticks */
};

void vg_yaml_put(struct vg_yaml_out *o, const char *p, size_t n, uint32_t columns);
void vg_yaml_put_break(struct vg_yaml_out *o);
void vg_yaml_put_indent(struct vg_yaml_out *o);
void vg_yaml_put_indicator(struct vg_yaml_out *o, const char *text, bool is_whitespace,
                           bool is_indention);

/* A string in the style that keeps it a string. A simple key stays on its line. */
void vg_yaml_put_string(struct vg_yaml_out *o, struct vg_slice s, bool is_simple_key);
/* Text that is written plain whatever it looks like: numbers, true, null. */
void vg_yaml_put_plain(struct vg_yaml_out *o, struct vg_slice s);
/* Fits a key on one line before its colon? */
bool vg_yaml_is_simple_key(struct vg_slice key);

/* Order of keys: letters by code, digits by the number they form, others before letters. */
int vg_yaml_key_cmp(struct vg_slice a, struct vg_slice b);

#endif
