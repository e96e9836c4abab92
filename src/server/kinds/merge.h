/* merge.h - what strategic merge patches need to know of each kind: which lists are merged, by
 * which key; as its type says. Thread: any. */
#ifndef VG_KINDS_MERGE_H
#define VG_KINDS_MERGE_H

#include "kinds.h"
#include "json/strategic.h"

/* Never NULL. */
const struct vg_merge_schema *vg_kind_merge_schema(const struct vg_kind *kind);

#endif
