/* columns.h - which columns a kind has, and an object as a row of them. For servers that make no
 * tables themselves (server_table.h), and for watches, which have objects. Thread: main. */
#ifndef VG_CLI_COLUMNS_H
#define VG_CLI_COLUMNS_H

#include "table.h"
#include "vigil/client.h"

struct vg_column {
    const char *name;
    void (*put)(const struct vg_column *c, const struct vigil_object *o, struct vg_table *t);
    const char *path, *path2; /* what `put` looks at; NULL: it knows */
};

#define VG_COLUMNS_OWN_MAX 4u
struct vg_columns {
    bool has_namespace, is_wide;
    /* Between NAME and AGE, and behind AGE when it is wide. */
    struct vg_column own[VG_COLUMNS_OWN_MAX], wide[VG_COLUMNS_OWN_MAX];
};
struct vg_columns vg_columns_of(const struct vigil_resource *r, bool has_namespace, bool is_wide);
unsigned vg_columns_count(const struct vg_columns *c);
void vg_columns_head(const struct vg_columns *c, struct vg_table *t);
void vg_columns_row(const struct vg_columns *c, struct vg_table *t, const struct vigil_object *o,
                    int64_t now_s);
/* How long ago a time was, as a cell. */
void vg_columns_age(struct vg_table *t, struct vigil_text time, int64_t now_s);

#endif
