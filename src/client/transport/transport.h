/* transport.h - requests as the rest of the library makes them: exchanges whose answers come in
 * pieces, with pausing and cancelling; who else needs the client's loop finds it here.
 *
 * An exchange is tried again by itself, at most VG_EXCHANGE_RETRIES times: when the answer is 429
 * or 5xx with a Retry-After that ends within VG_EXCHANGE_RETRY_S and the exchange's own time, and
 * for GET when the connection broke before the answer began. It
 * waits for the rate limit and for credentials. Thread: the client's loop, but for what says
 * otherwise. */
#ifndef VG_CLIENT_TRANSPORT_TRANSPORT_H
#define VG_CLIENT_TRANSPORT_TRANSPORT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "client/object/error.h"
#include "loop/loop.h"
#include "vigil/client.h"

#define VG_EXCHANGE_RETRIES 10u
/* Longer waits are left to the owner, who can tell of them. */
#define VG_EXCHANGE_RETRY_S 30u
/* A failed answer's body is kept for its message; a Status is a few hundred bytes. */
#define VG_ERROR_BODY_MAX ((size_t)256 << 10)

/* How an exchange ended. */
struct vg_exchange_end {
    struct vigil_error err;    /* code 0: the whole body of a 2xx answer came */
    bool was_open;             /* the head of a 2xx answer had come */
    bool is_unreached;         /* no connection: refused, no route, no such name, no TLS */
    bool is_lost;              /* the connection broke, or was silent for too long */
    bool is_version_too_large; /* the server has not reached the resourceVersion yet */
};

struct vg_exchange_opts {
    const char *method;                /* "GET" */
    const char *path;                  /* with its query; copied */
    const char *accept, *content_type; /* NULL: JSON, none; copied */
    struct vg_slice body;              /* copied */
    uint64_t timeout_ms;               /* for all of it, tries included; 0: none */
    uint64_t stall_ms; /* silence after which the connection counts as dead; 0: for ever */
    uint64_t
        head_ms;   /* the same until the head of a 2xx answer has come, with on_open; 0: as above */
    bool is_watch; /* its first try does not count for the rate limit; never times out */
    /* The head of a 2xx answer is here; NULL allowed. */
    void (*on_open)(void *arg);
    /* A piece of a 2xx body. 0; 1: taken, and pause; negative: end with this code. */
    int (*on_data)(void *arg, struct vg_slice bytes);
    /* A try has failed in this way and another one follows; NULL allowed. */
    void (*on_retry)(void *arg, const struct vg_exchange_end *end);
    /* Once, unless it was canceled. The exchange is gone afterwards. */
    void (*on_done)(void *arg, const struct vg_exchange_end *end);
    void *arg;
};

struct vg_exchange;
/* 0, -ENOMEM, or VIGIL_E_CLOSED while the client is being freed; on_done comes later, never from
 * within. */
VG_CHECK int vg_exchange_start(struct vigil_client *c, const struct vg_exchange_opts *opts,
                               struct vg_exchange **ret);
/* From on_data too. No callback comes any more. NULL allowed. */
void vg_exchange_cancel(struct vg_exchange *x);
/* Bytes stop coming; the server feels it when windows and buffers are full. */
void vg_exchange_pause(struct vg_exchange *x);
void vg_exchange_resume(struct vg_exchange *x);
void vg_exchange_set_stall(struct vg_exchange *x, uint64_t stall_ms);

/* ---- the client, for the rooms above ---- */

/* As vigil_client_new on another clock. libcurl's own timers are always real. */
VG_CHECK int vg_client_new(const struct vigil_config *config, const struct vigil_client_opts *opts,
                           const struct vg_clock *clock, struct vigil_client **ret,
                           struct vigil_error *err);
struct vg_loop *vg_client_loop(struct vigil_client *c);
const struct vg_log *vg_client_log(const struct vigil_client *c);
/* Run fn(arg) on the loop and wait until it has: at once when called on it. Thread: any; with
 * VIGIL_OWN_LOOP other threads wait for the program's next step. */
void vg_client_run(struct vigil_client *c, void (*fn)(void *arg), void *arg);
/* With VIGIL_OWN_LOOP on its thread: one turn that may sleep; false: this thread has no turn to
 * give, or is within one. For calls that wait. */
bool vg_client_turn(struct vigil_client *c);
/* Would it give one? */
bool vg_client_may_turn(const struct vigil_client *c);

/* ---- paths and answers ---- */

/* Append /api/v1/namespaces/ns/pods/name/sub; ns, name and sub may be NULL or "". */
VG_CHECK int vg_path_resource(struct vg_buf *out, const struct vigil_resource *r, const char *ns,
                              const char *name, const char *sub);
/* Append ?name=value or &name=value, escaped; nothing when value is NULL or "". */
VG_CHECK int vg_path_query(struct vg_buf *out, const char *name, const char *value);
/* Append s with all but unreserved characters as %xx. */
VG_CHECK int vg_path_escape(struct vg_buf *out, struct vg_slice s);

/* Fill *err from a Status, as an answer's body (http > 0) or in an ERROR event (http 0). True: the
 * server says that it has not reached the resourceVersion. */
bool vg_answer_error(struct vg_slice body, int http, struct vigil_error *err);

#endif
