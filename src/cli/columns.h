/* columns.h - which columns a kind has, and an object as a row of them. */
#ifndef VG_CLI_COLUMNS_H
#define VG_CLI_COLUMNS_H

#include "table.h"
#include "vigil/client.h"

struct vg_columns {
    bool has_namespace;
    const char *status_name; /* NULL: no such column */
    void (*status)(const struct vg_columns *c, const struct vigil_object *o, struct vg_table *t);
    const char *ready, *wanted; /* paths of counts, for the status of workloads */
};
struct vg_columns vg_columns_of(const struct vigil_resource *r, bool has_namespace);
unsigned vg_columns_count(const struct vg_columns *c);
void vg_columns_head(const struct vg_columns *c, struct vg_table *t);
void vg_columns_row(const struct vg_columns *c, struct vg_table *t, const struct vigil_object *o,
                    int64_t now_s);
/* How long ago a time was, as a cell. */
void vg_columns_age(struct vg_table *t, struct vigil_text time, int64_t now_s);

#endif
