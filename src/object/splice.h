/* splice.h - a stored object on its way to the wire, without copying it.
 * A stored value carries no revision; what is sent is a few slices of the block with the revision
 * between them:
 *
 *   object  {"kind":..,"metadata":{"name":..,"uid":"u" | ,"resourceVersion":"42" | ,"labels":..}
 *   item    { | "metadata":{"name":..,"uid":"u" | ,"resourceVersion":"42" | ,"labels":..}
 *   frame   {"type":"ADDED","object": | ..the object.. | }\n
 *
 * The revision is the object's own, or another: a DELETED event shows the previous content at the
 * revision of the change. Nothing here allocates or fails. Thread: one owner of each splice. */
#ifndef VG_OBJECT_SPLICE_H
#define VG_OBJECT_SPLICE_H

#include "base/buf.h"
#include "header.h"

/* What a watch stream says of an object; NONE is never sent. */
enum vg_obj_change {
    VG_OBJ_NONE,
    VG_OBJ_ADDED,
    VG_OBJ_MODIFIED,
    VG_OBJ_DELETED,
};
const char *vg_obj_change_name(enum vg_obj_change change); /* "ADDED"; "" for NONE */

#define VG_OBJ_SLICES_MAX 5u
/* ,"resourceVersion":"18446744073709551615" */
#define VG_OBJ_REV_TEXT_MAX 48u

/* Slices to be sent in order. They borrow from the object's block and from this struct itself: do
 * not move or copy it while they are in use. */
struct vg_obj_splice {
    struct vg_slice v[VG_OBJ_SLICES_MAX];
    uint32_t n;
    char rev[VG_OBJ_REV_TEXT_MAX];
};

/* A whole object: 3 slices. */
void vg_obj_splice_object(struct vg_obj_splice *s, const struct vg_obj_header *h, uint64_t rev);
/* An item of a typed list, without kind and apiVersion: 4 slices. Items of custom resources keep
 * them: those are whole objects. Commas between items and all around them are the caller's. */
void vg_obj_splice_item(struct vg_obj_splice *s, const struct vg_obj_header *h, uint64_t rev);
/* A frame of a JSON watch stream: 5 slices. */
void vg_obj_splice_frame(struct vg_obj_splice *s, enum vg_obj_change change,
                         const struct vg_obj_header *h, uint64_t rev);
/* The same around a body that is complete already, such as a form (form.h): 3 slices. */
void vg_obj_splice_frame_of(struct vg_obj_splice *s, enum vg_obj_change change,
                            struct vg_slice body);

/* Bytes in all. */
size_t vg_obj_splice_size(const struct vg_obj_splice *s);
/* Append all slices, or nothing. 0, -ENOMEM, VIGIL_E_TOO_LARGE. */
VG_CHECK int vg_obj_splice_append(struct vg_buf *out, const struct vg_obj_splice *s);

#endif
