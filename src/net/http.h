/* http.h - one request and its answer, whatever carries them: HTTP/1.1, HTTP/2 or a WebSocket, over
 * TLS or plain TCP.
 *
 *   head arrived --> on_head --> body collected --> on_request --> respond, write ..., end
 *                       |                                              | on_drained, on_progress
 *                       +-- may answer at once (401, 404 ...)          v
 *                                                                   on_closed, the last call
 *
 * Whoever answers hands over slices. They point into blocks that stay as they are while a pin is
 * held, or are copied; nothing is encoded here. What was written leaves at the end of the loop's
 * turn, so that events that are ready together share a system call or a TLS record. An exchange may
 * say that it is full: the bytes were taken, but they are the last until on_drained.
 * Thread: everything about an exchange happens on the loop of its connection. */
#ifndef VG_NET_HTTP_H
#define VG_NET_HTTP_H

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

struct vg_http_exchange;
struct vg_loop;

enum vg_http_method {
    VG_HTTP_GET,
    VG_HTTP_HEAD,
    VG_HTTP_POST,
    VG_HTTP_PUT,
    VG_HTTP_PATCH,
    VG_HTTP_DELETE,
    VG_HTTP_OPTIONS,
    VG_HTTP_OTHER, /* method_text says which */
};

enum vg_http_carrier { VG_HTTP_1_0, VG_HTTP_1_1, VG_HTTP_2 };

/* A header line. Names are lower case in requests; values have no white space around them. */
struct vg_http_field {
    struct vg_slice name, value;
};

/* Who is on the other side; lives as long as the connection. */
struct vg_tls_identity;
struct vg_http_peer {
    char address[64]; /* "127.0.0.1:40312", "[::1]:40312" */
    bool is_tls;
    const struct vg_tls_identity *identity; /* verified client certificate (tls.h); NULL: none */
    const char *inside; /* a part of this process (inside.h), by its name; NULL: from outside */
};

/* A length that is not known beforehand. */
#define VG_HTTP_STREAMED UINT64_MAX

/* Borrowed from the exchange until vg_http_release_request or on_closed. */
struct vg_http_request {
    enum vg_http_method method;
    enum vg_http_carrier carrier;
    struct vg_slice method_text;
    struct vg_slice target;    /* path and query as sent */
    struct vg_slice authority; /* Host, or :authority */
    const struct vg_http_field *fields;
    size_t n_fields;
    struct vg_slice body; /* whole, from on_request on */
    uint64_t body_length; /* as announced; 0: there is no body; VG_HTTP_STREAMED: not announced */
    bool wants_websocket; /* a well-formed upgrade to a WebSocket: see vg_http_accept_websocket */
};

/* What the server does with requests; the same for all of its exchanges. `arg` is the server's. */
struct vg_http_handler {
    /* The head is there, the body is not. Either leave it at that, then the body is collected (up
     * to the limit, else 413 by refuse) and on_request comes; or answer now: what is left of the
     * body is dropped and on_request does not come. */
    void (*on_head)(struct vg_http_exchange *x, void *arg);
    void (*on_request)(struct vg_http_exchange *x, void *arg);
    /* Full no more: below half of the limit. */
    void (*on_drained)(struct vg_http_exchange *x, void *arg);
    /* The socket (HTTP/2: the stream's share of it) took n bytes of this answer. */
    void (*on_progress)(struct vg_http_exchange *x, size_t n, void *arg);
    /* The last call. 0: all of the answer left; VIGIL_E_CANCELED: the other side went away or reset
     * the stream; VIGIL_E_TIMEOUT: it was too slow (a limit); -errno. Comes exactly once for each
     * exchange for which on_head came, also when the server closes. */
    void (*on_closed)(struct vg_http_exchange *x, int err, void *arg);
    /* The connection refuses by itself, before or after on_head: a malformed request (400), a head
     * (431) or body (413) over its limit, a timeout (408). Writes the body to send; content_type
     * too. NULL: a text. May be called with x NULL when there is no exchange yet. */
    void (*refuse)(struct vg_http_exchange *x, int status, const char *why, struct vg_buf *ret_body,
                   const char **ret_content_type, void *arg);
    void *arg;
};

const struct vg_http_request *vg_http_request(const struct vg_http_exchange *x);
const struct vg_http_peer *vg_http_peer(const struct vg_http_exchange *x);
/* The first field of this (lower-case) name; empty slice with p NULL: none. */
struct vg_slice vg_http_field(const struct vg_http_exchange *x, const char *name);
struct vg_loop *vg_http_loop(const struct vg_http_exchange *x);
/* What the handler keeps with the exchange; NULL at first. */
void vg_http_set_user(struct vg_http_exchange *x, void *user);
void *vg_http_user(const struct vg_http_exchange *x);
/* Forget the head and the body of the request: a watch lives for an hour, its request need not. */
void vg_http_release_request(struct vg_http_exchange *x);

/* Whoever sent this request has authenticated: from now on its connection may use what is kept from
 * the unauthenticated (share.h), and does not wait in their queue. */
void vg_http_authenticated(struct vg_http_exchange *x);

/* ---- answering ---- */

/* Fields that many answers have in common. They are constants of one line each, and `lines` is how
 * HTTP/1.1 writes them: "Name: value\r\n" for each. */
#define VG_HTTP_BLOCK_FIELDS 2u
struct vg_http_block {
    struct vg_slice lines;
    struct vg_http_field fields[VG_HTTP_BLOCK_FIELDS];
};

/* The head of an answer. Date, Connection, Content-Length and Transfer-Encoding are added here. */
struct vg_http_head {
    int status;
    const struct vg_http_field *fields; /* names as they shall be seen on HTTP/1.1 */
    size_t n_fields;
    const struct vg_http_block *block; /* more fields; NULL: none */
    uint64_t length;                   /* of the body, or VG_HTTP_STREAMED */
    bool is_watch;                     /* may be quiet for long: no minimum rate */
};
/* Once for each exchange, before the first write. 0; -ENOMEM; VIGIL_E_CANCELED: nobody is there any
 * more (on_closed comes or is under way). */
VG_CHECK int vg_http_respond(struct vg_http_exchange *x, const struct vg_http_head *head);

/* What keeps written slices valid. `ref` is called for what cannot be sent at once. */
struct vg_http_pin {
    const void *block;
    void (*ref)(const void *block);
    void (*unref)(const void *block);
};
enum { VG_HTTP_OPEN = 0, VG_HTTP_FULL = 1 };
/* Write a piece of the body. pin NULL: all slices are copied. Else slices of a few hundred bytes or
 * more are kept by reference under the pin (so they must point into its block or be constants), and
 * shorter ones are copied: those may lie anywhere.
 * VG_HTTP_OPEN, VG_HTTP_FULL: taken. VIGIL_E_CANCELED: nobody is there; -ENOMEM: the exchange has
 * been aborted. Over a WebSocket each call is one message. */
VG_CHECK int vg_http_write(struct vg_http_exchange *x, const struct vg_slice *v, size_t n,
                           const struct vg_http_pin *pin);
/* The answer is complete. on_closed comes later, never from within. */
void vg_http_end(struct vg_http_exchange *x);
/* Cut it off: HTTP/1.1 closes the connection, HTTP/2 resets the stream. on_closed comes later. */
void vg_http_abort(struct vg_http_exchange *x);
/* Bytes of the answer that the socket has not taken yet. */
size_t vg_http_unsent(const struct vg_http_exchange *x);

/* Answer an upgrade (request.wants_websocket) with 101; from then on each vg_http_write is one
 * message, text or binary, vg_http_end closes with code 1000, and what the client sends is read and
 * dropped (pings are answered). `protocol`: the subprotocol to name, or NULL. Errors as respond. */
VG_CHECK int vg_http_accept_websocket(struct vg_http_exchange *x, const char *protocol,
                                      bool is_binary);

#endif
