/* table.h - rows of cells that become aligned lines of text.
 * What comes from a server cannot hurt a terminal: characters that control it, or that turn or hide
 * text, are shown as '?'. Memory that runs out is remembered and told at the end: vg_table.err.
 * Thread: one owner. */
#ifndef VG_CLI_TABLE_H
#define VG_CLI_TABLE_H

#include "base/buf.h"

#define VG_TABLE_COLUMNS_MAX 24u
/* Between two columns. */
#define VG_TABLE_GAP 3u

struct vg_table_cell {
    size_t at, n;   /* in text */
    unsigned width; /* in places of a terminal */
};

struct vg_table {
    unsigned columns;
    unsigned widths[VG_TABLE_COLUMNS_MAX]; /* of the widest cell so far */
    struct vg_buf text;
    struct vg_table_cell *cells; /* row after row */
    size_t n, cap;
    int err; /* 0 or -ENOMEM; then cells are missing */
};

void vg_table_init(struct vg_table *t, unsigned columns);
void vg_table_done(struct vg_table *t);
/* Forget the cells and keep the widths, so that a table drawn anew does not jump. */
void vg_table_clear(struct vg_table *t);
/* The next cell, of this row or, after the last column, of the next. */
void vg_table_put(struct vg_table *t, struct vg_slice text);
void vg_table_put_str(struct vg_table *t, const char *text);
void vg_table_printf(struct vg_table *t, const char *fmt, ...) VG_PRINTF(2, 3);
size_t vg_table_rows(const struct vg_table *t);
/* One row without a line break, nothing behind its last text; cut to `limit` places, 0: not. */
VG_CHECK int vg_table_line(const struct vg_table *t, size_t row, unsigned limit,
                           struct vg_buf *out);

/* Text that is safe to show on one line, and how many places it takes: wide characters take two,
 * combining ones none, as far as the locale's character set (LC_CTYPE) knows them. */
VG_CHECK int vg_table_safe(struct vg_buf *out, struct vg_slice s, unsigned *ret_width);

#endif
