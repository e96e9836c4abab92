/* merge.h - what strategic merge patches need to know of each kind: which lists are merged, by
 * which key. Tables of constants in merge_*.c; a kind without a table of its own merges what every
 * object's metadata asks for. Thread: any. */
#ifndef VG_KINDS_MERGE_H
#define VG_KINDS_MERGE_H

#include "kinds.h"
#include "json/strategic.h"

/* Never NULL. */
const struct vg_merge_schema *vg_kind_merge_schema(const struct vg_kind *kind);

#endif
