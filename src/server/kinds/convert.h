/* convert.h - kinds that are served in more versions than the stored one: from it and to it.
 * The notation names a conversion: `stored v1.Event by event` is vg_conversion_event. Objects are
 * complete and decoded; what comes out shares values with what went in and is arranged by its type.
 * Thread: inputs are read only; the arena has one owner. */
#ifndef VG_KINDS_CONVERT_H
#define VG_KINDS_CONVERT_H

#include "kinds.h"
#include "json/json.h"

/* A new object in *ret, without kind and apiVersion. 0, -ENOMEM. */
typedef int vg_convert_fn(struct vg_arena *a, const struct vg_json *from, struct vg_json *ret);

struct vg_conversion {
    vg_convert_fn *to_stored, *from_stored;
};
extern const struct vg_conversion vg_conversion_autoscaler, vg_conversion_event;

/* An object of kind->stored as one of the kind; kind->stored is not NULL. 0, -ENOMEM. */
VG_CHECK int vg_kind_from_stored(struct vg_arena *a, const struct vg_kind *kind,
                                 const struct vg_json *root, struct vg_json *ret);
/* And back. */
VG_CHECK int vg_kind_to_stored(struct vg_arena *a, const struct vg_kind *kind,
                               const struct vg_json *root, struct vg_json *ret);

#endif
