/* print.h - objects on standard output: tables, names, JSON. Thread: main. */
#ifndef VG_CLI_PRINT_H
#define VG_CLI_PRINT_H

#include "cli.h"
#include "columns.h"

/* All lines of a table. An exit status. */
int vg_print_table(const struct vg_table *t);
/* pod/web, deployment.apps/web */
void vg_print_name(const struct vg_kind *kind, const struct vigil_object *o);

/* JSON text over several lines, `depth` levels deep, in a form that cannot hurt a terminal. The
 * text is the server's: what is not JSON comes out as odd, but comes out. */
VG_CHECK int vg_print_json(struct vg_buf *out, struct vigil_text json, unsigned depth);
/* As YAML without a line break behind it; as an item it begins with a break and "- ". 0; -ENOMEM;
 * what the text is refused with when it is no JSON. */
VG_CHECK int vg_print_yaml(struct vg_buf *out, struct vigil_text json, bool is_item);
/* On one line, as received but for what could hurt a terminal. */
VG_CHECK int vg_print_json_line(struct vg_buf *out, struct vigil_text json);

#endif
