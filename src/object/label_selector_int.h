/* label_selector_int.h - what parsing and matching of label selectors share. */
#ifndef VG_OBJECT_LABEL_SELECTOR_INT_H
#define VG_OBJECT_LABEL_SELECTOR_INT_H

#include "label_selector.h"

/* Decimal, with an optional sign, as Go's ParseInt takes it; false when it does not fit or is no
 * number. */
bool vg_label_parse_int(struct vg_slice s, int64_t *ret);

/* Copy n requirements and all that they point to into a new selector. They obey S2 to S4; sorting
 * them by key, which happens in place, is done here: `reqs` comes in the order of the text.
 * 0, -ENOMEM. */
VG_CHECK int vg_label_selector_compile(struct vg_label_requirement *reqs, uint32_t n,
                                       const struct vg_label_selector **ret_selector);

#endif
