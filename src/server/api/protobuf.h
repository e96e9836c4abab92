/* protobuf.h - objects in protobuf on their way out: in envelopes, in frames, kept with records.
 * What is stored is JSON (design D1); protobuf is made of it by the tables of server/schema. The
 * whole object at its own revision is asked for again and again, by lists and by watches that begin
 * with a state, so that this one form is hung on the record itself, as long as a cap allows it; it
 * goes when the record goes. Thread: any. */
#ifndef VG_API_PROTOBUF_H
#define VG_API_PROTOBUF_H

#include "base/buf.h"
#include "object/splice.h"
#include "server/kinds/kinds.h"
#include "server/schema/proto.h"
#include "server/storage/record.h"

#define VG_PROTOBUF_TYPE "application/vnd.kubernetes.protobuf"
#define VG_PROTOBUF_STREAM "application/vnd.kubernetes.protobuf;stream=watch"

/* Which message is made of an object. */
enum vg_protobuf_as { VG_PROTOBUF_WHOLE, VG_PROTOBUF_PARTIAL, VG_PROTOBUF_PARTIAL_V1BETA1 };

/* The envelope of any object of ours, from its compact JSON; kind and apiVersion say what it is. 0;
 * VIGIL_E_UNSUPPORTED: there is no such type; VIGIL_E_JSON_*, -ENOMEM, VIGIL_E_TOO_LARGE. */
VG_CHECK int vg_protobuf_of_json(struct vg_slice json, struct vg_buf *out);
/* The envelope of a stored value at a revision; 0: without one. Errors likewise. */
VG_CHECK int vg_protobuf_of_value(struct vg_slice value, vg_rev rev, enum vg_protobuf_as as,
                                  struct vg_buf *out);
/* The bare message alone, as an item of a list has it. `kind` is the object's. */
VG_CHECK int vg_protobuf_item(const struct vg_kind *kind, const struct vg_rec *rec,
                              enum vg_protobuf_as as, struct vg_buf *out);
VG_CHECK int vg_protobuf_item_size(const struct vg_kind *kind, const struct vg_rec *rec,
                                   enum vg_protobuf_as as, uint64_t *ret);

/* The whole object at its own revision as it is kept: it lies as long as the record does. NULL: it
 * is not kept. */
struct vg_protobuf_kept;
const struct vg_protobuf_kept *vg_protobuf_kept(const struct vg_rec *rec);
/* Make and keep it, unless that was done. NULL: there is no room, no memory, or no such type. */
const struct vg_protobuf_kept *vg_protobuf_keep(const struct vg_rec *rec);
struct vg_slice vg_protobuf_kept_body(const struct vg_protobuf_kept *k); /* in its envelope */
struct vg_slice vg_protobuf_kept_item(const struct vg_protobuf_kept *k); /* the bare message */
/* Bytes that are kept now, of how many at most. */
#define VG_PROTOBUF_KEPT_MAX ((size_t)64 << 20)
size_t vg_protobuf_kept_bytes(void);

/* A frame of a watch around an envelope: 2 slices. 0, VIGIL_E_TOO_LARGE. */
VG_CHECK int vg_protobuf_frame(struct vg_obj_splice *s, const char *type, struct vg_slice body);

#endif
