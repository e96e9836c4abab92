/* versions.h - stored objects as another version of their kind (kinds/convert.h).
 * A kind with `stored` is served from the records of that one: each that leaves is converted,
 * parsed and sealed anew, into a record that is nobody else's. These kinds are few and rarely read;
 * a watch shares what was made with all who ask for the same form. Thread: any. */
#ifndef VG_API_VERSIONS_H
#define VG_API_VERSIONS_H

#include "object/seal.h"
#include "server/kinds/kinds.h"
#include "server/storage/record.h"

/* A record of the kind's version at the same revision: converted, or the same one when it is stored
 * as it is. One reference in *ret. 0, -ENOMEM, VIGIL_E_STORE_DAMAGED. */
VG_CHECK int vg_version_rec(const struct vg_kind *kind, const struct vg_rec *rec,
                            struct vg_rec **ret);
/* A value that was sealed, likewise, in *out; kind->stored is not NULL. */
VG_CHECK int vg_version_seal(const struct vg_kind *kind, struct vg_slice value,
                             struct vg_obj_sealed *out);
/* A body, decoded and with its version's defaults, as an object of the stored version; that one's
 * defaults come when it has been checked. It stays as it is when kind is NULL or stored as it is.
 * 0, -ENOMEM. */
VG_CHECK int vg_version_store(struct vg_arena *a, const struct vg_kind *kind, struct vg_json *root);
/* The kind that is served from the records of this one in another version; NULL: none. A kind has
 * one such at most. */
const struct vg_kind *vg_version_other(struct vg_slice stored_value);

#endif
