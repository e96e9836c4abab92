/* discovery_doc.h - a document that is made once and served as it is from then on.
 * Thread: one maker, then any number of readers. */
#ifndef VG_API_DISCOVERY_DOC_H
#define VG_API_DISCOVERY_DOC_H

#include "base/buf.h"

/* Of a SHA-512 in hexadecimal. */
#define VG_DOC_HASH_CHARS 128u

struct vg_doc {
    struct vg_buf compact, pretty;            /* the first ends with a line break, the second not */
    struct vg_buf protobuf;                   /* where it was asked for with vg_doc_add_protobuf */
    char etag[1 + VG_DOC_HASH_CHARS + 1 + 1]; /* quoted */
};
/* Zeroed memory is an empty document. */
void vg_doc_done(struct vg_doc *d);

/* Whoever has appended the compact JSON calls this: the other forms and the ETag are made.
 * 0, -ENOMEM, VIGIL_E_INTERNAL. */
VG_CHECK int vg_doc_finish(struct vg_doc *d);
/* After that: in protobuf too, under the same ETag. Errors as those of protobuf.h. */
VG_CHECK int vg_doc_add_protobuf(struct vg_doc *d);
/* The SHA-512 of bytes in upper case, NUL-terminated. 0, VIGIL_E_INTERNAL. */
VG_CHECK int vg_doc_hash(struct vg_slice bytes, char ret[VG_DOC_HASH_CHARS + 1]);

#endif
