/* columns.h - what a table shows of an object: the columns of its kind, and the cells of its row.
 * Columns are written in the notation (docs/kinds.md) and lie in the row of the kind. A cell is
 * made of the object by a rule, or where no rule can say it by a function under columns/. Cells are
 * made when they are asked for and never kept: ages change while nothing else does. The object is
 * of the version in which the kind is stored. Thread: any. */
#ifndef VG_KINDS_COLUMNS_H
#define VG_KINDS_COLUMNS_H

#include "base/buf.h"
#include "json/json.h"

struct vg_cell;
/* Puts the text of a cell (columns/cell.h). */
typedef void vg_cell_fn(struct vg_cell *c);

enum vg_cell_rule {
    VG_CELL_AT,       /* the value */
    VG_CELL_FIRST,    /* of a list: its first item, or `text`, a member of that */
    VG_CELL_AGE,      /* how long ago that time is */
    VG_CELL_COUNT,    /* items of a list, members of a map; of several: their sum */
    VG_CELL_JOIN,     /* items of a list, or `text`, a member of each, with commas */
    VG_CELL_RATIO,    /* two numbers: 1/3 */
    VG_CELL_LABELS,   /* a map: a=b,c=d */
    VG_CELL_SELECTOR, /* a LabelSelector: a=b,c in (d,e) */
    VG_CELL_TEXT,     /* `text` with values in place of {path} */
    VG_CELL_CALL,
};

struct vg_column {
    const char *name; /* NULL: a cell that no definition tells of */
    const char *type, *format;
    const char *about; /* its description: the paths that it shows */
    uint8_t priority;  /* 0: always shown, 1: when asked for more */
    uint8_t rule;      /* enum vg_cell_rule */
    bool empty_is_missing;
    const char *const *paths; /* ends with NULL */
    const char *text;         /* see the rules */
    const char *missing;      /* as JSON: what is shown when there is nothing */
    vg_cell_fn *call;
};

/* An object at whose end nothing more is to be expected: a condition of its row says so. */
struct vg_row_end {
    const char *path, *value; /* when this is that */
    const char *message;
};

struct vg_columns {
    const struct vg_column *v;
    size_t n;
    const struct vg_row_end *ends; /* ends with a NULL path; NULL: none */
};

/* Append the columnDefinitions, a JSON array. 0, -ENOMEM. */
VG_CHECK int vg_columns_define(const struct vg_columns *columns, struct vg_buf *out);
/* Append "cells":[...] and, if there are some, ,"conditions":[...] of an object. The arena is for
 * what is needed on the way. 0, -ENOMEM. */
VG_CHECK int vg_columns_row(const struct vg_columns *columns, const struct vg_json *object,
                            int64_t now_ms, struct vg_arena *a, struct vg_buf *out);

#endif
