/* proto_client.h - protobuf as a client sees it, for tests: bodies and frames as JSON, and back.
 * What cannot be done fails the test. Thread: any. */
#ifndef VG_TESTS_API_PROTO_CLIENT_H
#define VG_TESTS_API_PROTO_CLIENT_H

#include "base/buf.h"

/* An object in its envelope as compact JSON with kind and apiVersion; lists likewise. `ret` is
 * overwritten and NUL-terminated (n does not count it). */
void vg_proto_client_json(struct vg_slice body, struct vg_buf *ret);
/* The envelope of an object in compact JSON. `ret` is overwritten. */
void vg_proto_client_body(struct vg_slice json, struct vg_buf *ret);
/* A frame of a watch without its length: the type, and the object's envelope. */
void vg_proto_client_event(struct vg_slice frame, struct vg_slice *ret_type,
                           struct vg_slice *ret_body);
/* The same as {"type":..,"object":..}. */
void vg_proto_client_event_json(struct vg_slice frame, struct vg_buf *ret);
/* Field `number` of a message, which is bytes; p NULL: it is not there (again). *at: where to go
 * on; 0 to begin. */
struct vg_slice vg_proto_client_field(struct vg_slice message, unsigned number, size_t *at);

#endif
