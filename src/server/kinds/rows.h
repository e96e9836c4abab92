/* rows.h - the tables that tools/schema makes of the notation (schema/): kinds and groups. */
#ifndef VG_KINDS_ROWS_H
#define VG_KINDS_ROWS_H

#include "columns/cell.h"
#include "convert.h"
#include "kinds.h"
#include "object/predicate.h"
#include "json/strategic.h"

extern const struct vg_kind vg_kind_rows[];
extern const size_t vg_kind_rows_n;
extern const struct vg_group vg_group_rows[]; /* the core group is the last */
extern const size_t vg_group_rows_n;

#endif
