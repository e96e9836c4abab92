/* table.h - objects as rows of a Table of meta.k8s.io: what kubectl get shows.
 * A Table has the columns of a kind (kinds/columns.h) and for each object its cells, with the
 * object's metadata, all of it or nothing beside them. Rows are made of an object's JSON as it is
 * stored when they leave, one after the other, and never kept: their ages are of the moment. */
#ifndef VG_API_TABLE_H
#define VG_API_TABLE_H

#include "base/buf.h"
#include "negotiate.h"
#include "server/kinds/kinds.h"
#include "json/json.h"

enum vg_table_include { VG_TABLE_METADATA, VG_TABLE_NONE, VG_TABLE_OBJECT };

struct vg_table {
    const struct vg_kind *kind;       /* as which it is served */
    const struct vg_columns *columns; /* NULL: of the kind */
    enum vg_table_include include;
    bool is_v1beta1;
    int64_t now_ms;
    struct vg_json_scratch *scratch; /* NULL allowed */
};

/* By ?includeObject=. 0, or VIGIL_E_INVALID with a 400 in *ret_status. */
VG_CHECK int vg_table_include(const struct vg_target *t, struct vg_arena *a,
                              enum vg_table_include *ret, struct vg_api_status *ret_status);

/* {"kind":"Table",...,"metadata":META,"columnDefinitions":[...],"rows":[ with the given META;
 * without definitions they are null. The end is VG_TABLE_TAIL. 0, -ENOMEM. */
VG_CHECK int vg_table_begin(const struct vg_table *t, struct vg_slice meta, bool with_definitions,
                            struct vg_buf *out);
#define VG_TABLE_TAIL VG_SLICE_LIT("]}")
/* A row of an object, given as its text and as the tree of that text. The arena is for what is
 * needed on the way. 0, -ENOMEM, VIGIL_E_STORE_DAMAGED. */
VG_CHECK int vg_table_row(const struct vg_table *t, struct vg_slice text,
                          const struct vg_json *object, struct vg_arena *a, struct vg_buf *out);
/* The same of the text alone, which is parsed into the arena. */
VG_CHECK int vg_table_row_of(const struct vg_table *t, struct vg_slice text, struct vg_arena *a,
                             struct vg_buf *out);
/* A Table of one object, given as its text. */
VG_CHECK int vg_table_of(const struct vg_table *t, struct vg_slice text, struct vg_buf *out);
/* {"type":TYPE,"object":TABLE}\n of a frame of a watch in JSON. */
VG_CHECK int vg_table_frame(const struct vg_table *t, struct vg_slice frame, bool with_definitions,
                            struct vg_buf *out);

#endif
