/* initial.h - a state that streams in: objects by key, in the order in which they came.
 * Thread: one owner. */
#ifndef VG_CLIENT_REFLECTOR_INITIAL_H
#define VG_CLIENT_REFLECTOR_INITIAL_H

#include "base/map.h"
#include "client/object/object_int.h"

struct vg_initial {
    const struct vigil_object **v; /* NULL: was removed */
    size_t n, cap;
    struct vg_map by_key; /* place + 1; keys are those of the objects */
};

void vg_initial_done(struct vg_initial *s); /* empty and usable again */
VG_CHECK int vg_initial_put(struct vg_initial *s, const struct vigil_object *take_o);
void vg_initial_remove(struct vg_initial *s, const struct vigil_object *o);
/* Closes gaps; the objects stay the set's. */
size_t vg_initial_pack(struct vg_initial *s);

#endif
