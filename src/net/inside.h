/* inside.h - requests that a part of this process makes of its own server, with no bytes in
 * between. They take the way of every other request: the same handler, so the same checks, limits,
 * metrics and log. Only the socket is missing, and the credentials: the peer says which part of the
 * process asks (struct vg_http_peer), and nobody outside can say so.
 *
 *   vg_inside_send(call) --> on_head, on_request ... respond, write, end --> call->done
 *
 * Thread: the server's loop. */
#ifndef VG_NET_INSIDE_H
#define VG_NET_INSIDE_H

#include "base/list.h"
#include "http.h"

struct vg_http_server;
struct vg_inside;

/* 64 MiB: an answer beyond it is cut off, as VIGIL_E_TOO_LARGE. */
#define VG_INSIDE_ANSWER_MAX ((size_t)64 << 20)

/* `who` is shown in the log as the peer, and is what the peer's `inside` says; it outlives both. */
VG_CHECK int vg_inside_new(struct vg_http_server *server, const char *who,
                           struct vg_inside **ret_inside);
/* Calls under way end with VIGIL_E_CANCELED, from within. Before the server is freed. */
void vg_inside_free(struct vg_inside *inside);

/* One request; the caller's, who zeroes it and fills the first part. */
struct vg_inside_call {
    const char *method;
    struct vg_slice target;
    const char *content_type; /* NULL: no body */
    struct vg_slice body;     /* copied */
    /* Exactly once, never from within vg_inside_send. The call is the caller's again; the answer is
     * freed with vg_inside_call_done. */
    void (*done)(struct vg_inside_call *call);

    int err; /* 0: there is an answer; VIGIL_E_CANCELED, VIGIL_E_TOO_LARGE, -ENOMEM: it was cut */
    int status; /* of HTTP */
    struct vg_buf answer;
};
/* 0, or -ENOMEM, VIGIL_E_TOO_LARGE: nothing was asked and done will not come. */
VG_CHECK int vg_inside_send(struct vg_inside *inside, struct vg_inside_call *call);
void vg_inside_call_done(struct vg_inside_call *call);

#endif
