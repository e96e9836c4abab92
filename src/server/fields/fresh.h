/* fresh.h - the fields of a new object, by one walk. Thread: one owner. */
#ifndef VG_FIELDS_FRESH_H
#define VG_FIELDS_FRESH_H

#include "compare.h"

/* Append, as a set is stored, what vg_fields_compare() calls changed when there was nothing. 0;
 * VIGIL_E_INVALID with a sentence; -ENOMEM, VIGIL_E_TOO_LARGE. */
VG_CHECK int vg_fields_print_fresh(struct vg_arena *a, const struct vg_schema_type *type,
                                   const struct vg_json *now, const struct vg_fields_path *without,
                                   struct vg_buf *out, struct vg_status *reterr_status);

#endif
