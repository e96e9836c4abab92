/* decode.h - a tree of JSON as an object of a type, and the order in which it is printed.
 *
 *   parse --> vg_schema_decode --> defaults, changes, rules --> vg_schema_arrange --> seal
 *
 * Decoding does what Go's decoder does with a struct: every value gets its type or the sentence
 * that Go has for it; what is unknown is told and dropped; null is as good as absent; quantities,
 * times and bytes are brought into the one form that is printed. Arranging puts members into the
 * order of the table and leaves out, or writes out, what is empty, so that equal objects are equal
 * bytes (design D1). Both work in place, in the arena of the tree. Thread: one owner. */
#ifndef VG_SCHEMA_DECODE_H
#define VG_SCHEMA_DECODE_H

#include "schema.h"
#include "json/json.h"

/* Unknown fields that are told of one body, as many as the original keeps. */
#define VG_SCHEMA_UNKNOWN_MAX 100u

/* root: an object. Paths of unknown fields go to `unknown`,
 * an array of strings (NULL: nowhere): spec.containers[0].bogus. The tree is changed in place. 0;
 * VIGIL_E_INVALID with Go's sentence; -ENOMEM. After a failure the tree is of no more use. */
VG_CHECK int vg_schema_decode(struct vg_arena *a, const struct vg_schema_type *type,
                              struct vg_json *root, struct vg_json *unknown,
                              struct vg_status *reterr_status);
/* The same in the words of the original's conversion of maps, which a strategic patch's result goes
 * through; a whole number may be written with a fraction there. Unknown fields are told sorted. */
VG_CHECK int vg_schema_decode_map(struct vg_arena *a, const struct vg_schema_type *type,
                                  struct vg_json *root, struct vg_json *unknown,
                                  struct vg_status *reterr_status);
/* A decoded tree in the order that is printed, as another tree with lists and objects of its own:
 * it may be changed and the first one stays. They share texts, and values that no type describes.
 * 0, -ENOMEM. */
VG_CHECK int vg_schema_arrange(struct vg_arena *a, const struct vg_schema_type *type,
                               const struct vg_json *root, struct vg_json *ret);
/* The same to be written and not changed: members of the outermost level that equal those of `old`,
 * which was arranged, are taken from there, with their offsets in its source; all others have none.
 * What is arranged already is shared with root. 0, -ENOMEM. */
VG_CHECK int vg_schema_arrange_like(struct vg_arena *a, const struct vg_schema_type *type,
                                    const struct vg_json *root, const struct vg_json *old,
                                    struct vg_json *ret);
/* What is printed of a field that an object does not have; a struct's inside is not filled. False:
 * nothing. */
bool vg_schema_zero(const struct vg_schema_field *f, struct vg_json *ret);

#endif
