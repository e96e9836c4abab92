/* request.h - a request that is waited for; what the verbs are made of. */
#ifndef VG_CLIENT_TRANSPORT_REQUEST_H
#define VG_CLIENT_TRANSPORT_REQUEST_H

#include "base/buf.h"
#include "client/object/error.h"
#include "vigil/client.h"

/* The body of one answer, where it is kept whole. Lists that may be longer are read as they come.
 */
#define VG_ANSWER_MAX ((size_t)256 << 20)

struct vg_call {
    const char *method, *path, *content_type;
    struct vigil_text body;
    struct vg_buf answer; /* the caller ends it */
    struct vigil_error err;
};
/* Thread: any but the client's; with VIGIL_OWN_LOOP it turns the loop. The code of call->err. */
VG_CHECK int vg_call(struct vigil_client *c, struct vg_call *call);

#endif
