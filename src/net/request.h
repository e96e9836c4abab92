/* request.h - the text of one request while it arrives and as long as it is kept.
 * Requests come from a list that the server keeps, so that a busy connection stops allocating and
 * an idle one holds none. */
#ifndef VG_NET_REQUEST_H
#define VG_NET_REQUEST_H

#include "base/buf.h"
#include "http.h"

struct vg_http_server;

struct vg_net_span {
    size_t at, n; /* in text */
};

/* Fields lie in text one behind the other: name, value, name, value. Their pointers are set when
 * the head is whole, because text moves while it grows. */
struct vg_net_request {
    struct vg_http_request pub;
    struct vg_net_request *next; /* in the server's list */
    struct vg_buf text, body;
    struct vg_http_field *fields;
    size_t n_fields, cap_fields;
    struct vg_net_span method, target, authority;
    size_t fields_at; /* where the first name begins */
    size_t name_at, value_at;
    size_t held; /* counted in its connection's share (share.h) */
    bool in_field, in_value;
};

struct vg_net_request *vg_net_request_take(struct vg_http_server *s); /* NULL: out of memory */
void vg_net_request_give(struct vg_http_server *s, struct vg_net_request *r);
void vg_net_requests_done(struct vg_http_server *s); /* frees those that are kept */

#endif
