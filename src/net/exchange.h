/* exchange.h - what both codecs share about one request and its answer.
 *
 *   HEAD      fields are being added                        vg_exchange_add_*
 *   BODY      on_head came; the body is being collected     vg_exchange_head, _body
 *   SERVED    on_request came, or on_head answered          vg_exchange_request
 *   CLOSED    on_closed came                                vg_exchange_closed
 *
 * and beside it, how far the answer is: not begun, head sent, ended. A codec embeds an exchange in
 * its own struct and its codec has ops for it; http.h's functions check what callers must obey,
 * keep the flags and call the ops. Rules: C1 to C3 of conn_int.h. The text of a request lies in one
 * buffer, names in lower case; it goes back to the server for the next request when it is released.
 * Thread: the loop's. */
#ifndef VG_NET_EXCHANGE_H
#define VG_NET_EXCHANGE_H

#include "base/list.h"
#include "http.h"
#include "loop/loop.h"

struct vg_conn;
struct vg_net_request;

/* A deadline that never comes. */
#define VG_NET_NEVER UINT64_MAX

/* What a codec does for an answer. Nothing here calls back into the handler. Arguments are checked:
 * respond comes once, write after it and before end, none of them after closed. -ENOMEM from
 * respond or write makes the caller abort the exchange. */
struct vg_exchange_ops {
    int (*respond)(struct vg_http_exchange *x, const struct vg_http_head *head);
    /* Takes the bytes; grows x->unsent by what it queued. Not called for HEAD, 204 and 304, nor
     * with no bytes at all. */
    int (*write)(struct vg_http_exchange *x, const struct vg_slice *v, size_t n,
                 const struct vg_http_pin *pin);
    void (*end)(struct vg_http_exchange *x);
    void (*abort)(struct vg_http_exchange *x);
    /* NULL: not on this carrier. */
    int (*accept_websocket)(struct vg_http_exchange *x, const char *protocol, bool is_binary);
};

enum vg_exchange_state { VG_X_NONE, VG_X_HEAD, VG_X_BODY, VG_X_SERVED, VG_X_CLOSED };

/* How long bytes have been waiting for the other side, for stall_ms and min_rate. */
struct vg_pace {
    uint64_t since_ns; /* bytes wait without a break since; 0: none wait */
    uint64_t moved_ns; /* some were taken last */
    uint64_t bytes;    /* taken since since_ns */
};

/* An idle watch consists of one of these and what its codec adds: so the flags are bits. */
struct vg_http_exchange {
    struct vg_conn *conn; /* its codec's ops have those of the exchange */
    void *user;
    struct vg_net_request *req; /* NULL: released */
    uint64_t left;              /* of the announced length; VG_HTTP_STREAMED */
    struct vg_pace pace;        /* of the answer; while the body arrives, of the body */
    uint32_t unsent;            /* bytes queued that the socket has not taken */
    uint8_t state;              /* enum vg_exchange_state */
    bool is_head_request : 1;
    bool has_no_body : 1; /* HEAD, 204 or 304 */
    bool is_watch : 1;
    bool is_websocket : 1;
    bool has_responded : 1;
    bool has_ended : 1;
    bool is_aborted : 1;
    bool is_full : 1;
    bool did_refuse : 1; /* the answer is the connection's own */
};

/* ---- building the request ---- */

/* Begin: x is zeroed but for conn. 0, -ENOMEM. */
VG_CHECK int vg_exchange_begin(struct vg_http_exchange *x, enum vg_http_carrier carrier);
/* Pieces of the head, in any sizes. 0; -ENOMEM; VIGIL_E_TOO_LARGE: over head_bytes or head_fields
 * (431); VIGIL_E_BUSY: over a limit of share.h (429). A field is its name
 * pieces, its value pieces, and end_field. */
VG_CHECK int vg_exchange_add_method(struct vg_http_exchange *x, const char *p, size_t n);
VG_CHECK int vg_exchange_add_target(struct vg_http_exchange *x, const char *p, size_t n);
VG_CHECK int vg_exchange_add_name(struct vg_http_exchange *x, const char *p, size_t n);
VG_CHECK int vg_exchange_add_value(struct vg_http_exchange *x, const char *p, size_t n);
VG_CHECK int vg_exchange_end_field(struct vg_http_exchange *x);
/* HTTP/2's :authority; HTTP/1.1's is taken from Host by _head. */
VG_CHECK int vg_exchange_set_authority(struct vg_http_exchange *x, const char *p, size_t n);

/* The text moves no more: makes the public request. Called by _head. */
void vg_exchange_seal(struct vg_http_exchange *x);

/* ---- its life ---- */

/* The head is complete: makes the request, then on_head. True: the handler waits for the body, or
 * for vg_exchange_request when there is none. False: it has answered or aborted. */
bool vg_exchange_head(struct vg_http_exchange *x);
/* A piece of the body. 0; -ENOMEM; VIGIL_E_TOO_LARGE: over body_bytes; VIGIL_E_BUSY as above.
 * Dropped once answered. */
VG_CHECK int vg_exchange_body(struct vg_http_exchange *x, const char *p, size_t n);
size_t vg_exchange_body_size(const struct vg_http_exchange *x); /* collected so far */
/* The request is whole: on_request, unless on_head answered. */
void vg_exchange_request(struct vg_http_exchange *x);
/* The connection answers by itself: 400, 408, 413, 431 ..., by handler->refuse. Only before
 * respond; afterwards it aborts. Also without an on_head. */
void vg_exchange_refuse(struct vg_http_exchange *x, int status, const char *why);
/* 1 GiB: far above any unsent_bytes; who writes on nevertheless is cut, and unsent has room. */
#define VG_EXCHANGE_UNSENT_MAX (1u << 30)
/* A codec queued so many bytes of the answer. */
static inline void vg_exchange_queued(struct vg_http_exchange *x, size_t n)
{
    x->unsent += (uint32_t)n;
}
/* Bytes left: unsent falls, on_progress, and on_drained when it was full and is below half. */
void vg_exchange_sent(struct vg_http_exchange *x, size_t n);
/* The last word: on_closed exactly once if on_head came; gives the request back. Idempotent. */
void vg_exchange_closed(struct vg_http_exchange *x, int err);
static inline bool vg_exchange_is_done(const struct vg_http_exchange *x)
{
    return x->is_aborted || (x->has_ended && x->unsent == 0);
}

/* ---- pace ---- */

#define VG_PACE_GRACE_MS 10000u

/* Bytes wait (again): nothing if they did before. */
void vg_pace_wait(struct vg_pace *p, uint64_t now_ns);
void vg_pace_moved(struct vg_pace *p, size_t n, uint64_t now_ns);
static inline void vg_pace_stop(struct vg_pace *p)
{
    *p = (struct vg_pace){0};
}
/* What left the socket since it held *held bytes was taken, too. */
void vg_pace_look(struct vg_pace *p, const struct vg_conn *conn, uint32_t *held, uint64_t now_ns);
/* When to look again; VG_NET_NEVER: nothing waits. At or before now: too slow. No byte for stall_ms
 * is too slow, and so are, after VG_PACE_GRACE_MS, less than min_rate bytes/s since the wait began
 * (0: any rate will do). */
uint64_t vg_pace_due(const struct vg_pace *p, uint64_t stall_ms, uint64_t min_rate);
/* The same of all of it, however fast it moves. */
uint64_t vg_pace_end(const struct vg_pace *p, uint64_t most_ms);

#endif
