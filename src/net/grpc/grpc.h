/* grpc.h - a small gRPC client: calls to the members of one cluster.
 *
 * A pool keeps a connection to each endpoint of a cluster and sends calls to one of them, the
 * current one, as long as it is well; else to the next that is. Beneath it a channel is one
 * endpoint: it connects, backs off, pings, moves to a new connection when the server says GOAWAY.
 *
 * A call is a struct that its caller owns, from vg_grpc_start until on_end or vg_grpc_cancel. A
 * unary call sends one message and gets one; a stream sends and gets any number. Ends come with a
 * status, and with the call's fate: whether the server can have seen the request. That is what
 * tells a write that surely did not happen from one that may have.
 *
 * Nothing here calls back from within what the caller called. Callbacks may call anything but
 * vg_grpc_pool_free. Thread: everything of a pool happens on its loop; messages may be made
 * anywhere. */
#ifndef VG_NET_GRPC_GRPC_H
#define VG_NET_GRPC_GRPC_H

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "loop/loop.h"

/* ---- status ---- */

/* The codes of gRPC; a status that is none of them is read as UNKNOWN. */
enum vg_grpc_code {
    VG_GRPC_OK = 0,
    VG_GRPC_CANCELLED = 1,
    VG_GRPC_UNKNOWN = 2,
    VG_GRPC_INVALID_ARGUMENT = 3,
    VG_GRPC_DEADLINE_EXCEEDED = 4,
    VG_GRPC_NOT_FOUND = 5,
    VG_GRPC_ALREADY_EXISTS = 6,
    VG_GRPC_PERMISSION_DENIED = 7,
    VG_GRPC_RESOURCE_EXHAUSTED = 8,
    VG_GRPC_FAILED_PRECONDITION = 9,
    VG_GRPC_ABORTED = 10,
    VG_GRPC_OUT_OF_RANGE = 11,
    VG_GRPC_UNIMPLEMENTED = 12,
    VG_GRPC_INTERNAL = 13,
    VG_GRPC_UNAVAILABLE = 14,
    VG_GRPC_DATA_LOSS = 15,
    VG_GRPC_UNAUTHENTICATED = 16,
};
const char *vg_grpc_code_name(enum vg_grpc_code code); /* "UNAVAILABLE" */

/* What the server can have seen of the request. */
enum vg_grpc_fate {
    VG_GRPC_NOT_SENT = 0, /* nothing of it left, or the server said that it did not touch it */
    VG_GRPC_MAYBE = 1, /* some of it left and no status came back: it may have been carried out */
    VG_GRPC_ANSWERED = 2, /* the status is the server's own word */
};

/* 512: what people and logs can use; etcd's longest is a third of it. Longer ones are cut. */
#define VG_GRPC_MESSAGE_MAX 512
struct vg_grpc_status {
    enum vg_grpc_code code;
    enum vg_grpc_fate fate;
    char message[VG_GRPC_MESSAGE_MAX]; /* the server's, decoded; or ours, naming the endpoint */
};

/* ---- messages ---- */

/* Bytes to be sent, in one block with room for their prefix, sent from where they are. Counted, so
 * that a message can be sent again; the count is not atomic: one thread at a time. */
struct vg_grpc_msg;
/* A message of n bytes, to be filled in. NULL: out of memory. Thread: any. */
VG_CHECK struct vg_grpc_msg *vg_grpc_msg_new(size_t n, uint8_t **ret_bytes);
struct vg_grpc_msg *vg_grpc_msg_ref(struct vg_grpc_msg *m);
struct vg_grpc_msg *vg_grpc_msg_unref(struct vg_grpc_msg *m); /* NULL allowed; returns NULL */
struct vg_slice vg_grpc_msg_bytes(const struct vg_grpc_msg *m);

/* ---- calls ---- */

/* Metadata beside the call's own; names are lower case. */
struct vg_grpc_field {
    struct vg_slice name, value;
};

/* Without it a call is unary. */
#define VG_GRPC_STREAM 1u
/* Harmless when carried out twice (a read): the pool tries it on another endpoint also when its
 * fate is MAYBE and the status says UNAVAILABLE. Others are tried again only when NOT_SENT. */
#define VG_GRPC_REPEATABLE 2u
/* While no endpoint is ready, wait for one until the timeout. Without it such a call ends with
 * UNAVAILABLE and the pool's sentence, unless the pool is new and has not tried them all yet. */
#define VG_GRPC_WAIT 4u
/* Goes out without the pool's metadata, and does not wait for it: the call that gets the token. */
#define VG_GRPC_NO_TOKEN 8u

struct vg_grpc_stream;
struct vg_grpc_pool;

/* Zeroed, then filled in by the caller. */
struct vg_grpc_call {
    const char *path;        /* "/etcdserverpb.KV/Txn"; borrowed until the end */
    struct vg_grpc_msg *msg; /* the request; a stream's first message or NULL. Taken by start. */
    const struct vg_grpc_field *fields; /* borrowed until the end */
    size_t n_fields;
    uint64_t timeout_ms; /* for all of it, waiting and trying again included; 0 = none */
    unsigned flags;
    int endpoint; /* this one alone, counted from 1; 0 = whichever is well */
    /* Streams: a message came; borrowed for the time of the call. */
    void (*on_message)(struct vg_grpc_call *c, struct vg_slice message);
    /* The last that is heard of it: status and results are there, and the struct is the caller's
     * again (to free, or to start once more). */
    void (*on_end)(struct vg_grpc_call *c);

    /* Results. */
    struct vg_grpc_status status;
    struct vg_buf
        answer; /* unary, OK: the message; the caller's to keep or free, whatever the end */
    int used;   /* the endpoint that it went to last, counted from 1; 0: none. Set from the start of
                 * a try on: a stream may ask. */

    /* The pool's. */
    struct vg_grpc_stream *stream; /* on a connection; NULL: waits */
    struct vg_grpc_pool *pool;     /* NULL: not under way */
    struct vg_list link;
    struct vg_timer timer;
    unsigned tries, token_age;
    bool has_tried_token;
};

/* Start a call: 0, and on_end will come; or, with nothing started and msg given back to nobody
 * (it is released): VIGIL_E_INVALID (no such endpoint), VIGIL_E_TOO_LARGE, VIGIL_E_BUSY
 * (VG_GRPC_CALLS_MAX), -ENOMEM. */
VG_CHECK int vg_grpc_start(struct vg_grpc_pool *pool, struct vg_grpc_call *c);
/* 10,000: more than this under way at once on one pool is a bug or a pile-up. */
#define VG_GRPC_CALLS_MAX 10000u
/* Forget it: no callback comes any more, and the struct is the caller's. Harmless when it is not
 * under way. */
void vg_grpc_cancel(struct vg_grpc_call *c);

/* Streams. After its end is noted (on_end is about to come) these do nothing and answer
 * VIGIL_E_CLOSED. */
VG_CHECK int vg_grpc_send(struct vg_grpc_call *c, struct vg_grpc_msg *take_msg);
void vg_grpc_half_close(struct vg_grpc_call *c); /* no more messages from here */
/* Bytes of messages that the socket has not taken yet. */
size_t vg_grpc_unsent(const struct vg_grpc_call *c);
/* No on_message until resume: the stream's window is left shut, so that the server waits. */
void vg_grpc_pause(struct vg_grpc_call *c);
void vg_grpc_resume(struct vg_grpc_call *c);

/* ---- the pool ---- */

struct vg_log;

/* Files are read anew for each connection, so that they can be replaced while it runs. */
struct vg_grpc_tls {
    const char *ca_file;              /* PEM; NULL: the system's */
    const char *cert_file, *key_file; /* PEM; NULL: no client certificate */
    const char *server_name; /* what the certificate must be for; NULL: the endpoint's host */
};

struct vg_grpc_pool_opts {
    struct vg_loop *loop;
    const struct vg_log *log; /* NULL = silent; only changes of state are logged */
    /* "https://etcd-1:2379", "http://[::1]:2379", "unix:///run/x.sock", or "host:port" (plain). */
    const char *const *endpoints;
    size_t n_endpoints;     /* at most VG_GRPC_ENDPOINTS_MAX */
    struct vg_grpc_tls tls; /* for https; all are copied */
    size_t message_max;     /* of a received message; 0 = 512 MiB */
    size_t window;          /* of a stream; 0 = 4 MiB; a connection has four times that */
    uint64_t connect_ms;    /* resolve, connect, handshake, settings; 0 = 5000 */
    uint64_t keepalive_ms;  /* silence after which a call's connection is pinged; 0 = 6000 (etcd
                             * allows one ping in 5 s) */
    uint64_t keepalive_timeout_ms;           /* the ping's answer; 0 = 4000 */
    uint64_t backoff_min_ms, backoff_max_ms; /* between tries to connect; 0 = 100, 5000 */
    /* With is_refused set, calls wait for a token (vg_grpc_pool_set_token), renew() is told to get
     * one, and a unary call that ends with a status that is_refused() knows waits for the next
     * token and is tried once more. Streams end with that status; renew() is told, too. */
    bool (*is_refused)(const struct vg_grpc_status *status, void *arg);
    /* A status by which an endpoint says that it did nothing and others may: it is avoided, and the
     * call tried elsewhere, as if it had not been sent. NULL: there is none. */
    bool (*is_elsewhere)(const struct vg_grpc_status *status, void *arg);
    void (*renew)(struct vg_grpc_pool *pool, void *arg);
    /* Some endpoint became ready (why: which), or none is any more (why: each one's trouble). Comes
     * on the loop, never from within a call; NULL allowed. */
    void (*on_state)(struct vg_grpc_pool *pool, bool is_ready, const char *why, void *arg);
    void *arg;
};
#define VG_GRPC_ENDPOINTS_MAX 16
/* 0; VIGIL_E_INVALID with a sentence (a malformed endpoint, a file that cannot be read); -ENOMEM.
 * It begins to connect at once; nothing is waited for. */
VG_CHECK int vg_grpc_pool_new(const struct vg_grpc_pool_opts *opts, struct vg_grpc_pool **ret_pool,
                              struct vg_status *reterr_status);
/* Calls that are under way are forgotten without on_end. Not from within a callback. The loop must
 * turn once more before it is freed (vg_loop_free does). NULL allowed. */
void vg_grpc_pool_free(struct vg_grpc_pool *pool);

/* The metadata that every call from now on carries: calls that waited for it go on. value.p NULL:
 * none is needed. Copied. 0, -ENOMEM. */
VG_CHECK int vg_grpc_pool_set_token(struct vg_grpc_pool *pool, const char *name,
                                    struct vg_slice value);
/* There will be no token for now: those who wait for it end with this status, and the next call
 * makes renew() be told again. */
void vg_grpc_pool_no_token(struct vg_grpc_pool *pool, const struct vg_grpc_status *status);
/* The token is no good any more (a stream's message said so). */
void vg_grpc_pool_renew_token(struct vg_grpc_pool *pool);
/* This endpoint (counted from 1) answers but does not serve: prefer others for avoid_ms. The pool
 * does so by itself for UNAVAILABLE and DEADLINE_EXCEEDED. */
void vg_grpc_pool_avoid(struct vg_grpc_pool *pool, int endpoint, uint64_t avoid_ms);
const char *vg_grpc_pool_endpoint(const struct vg_grpc_pool *pool, int endpoint); /* as given */
int vg_grpc_pool_current(const struct vg_grpc_pool *pool); /* 0: none is ready */
bool vg_grpc_pool_is_ready(const struct vg_grpc_pool *pool, int endpoint);
/* One sentence on each endpoint that is not ready: what was tried and what came of it. */
VG_CHECK int vg_grpc_pool_describe(const struct vg_grpc_pool *pool, struct vg_buf *out);

struct vg_grpc_counts {
    uint64_t calls, streams;        /* started */
    uint64_t failed;                /* ended with another status than OK */
    uint64_t retries;               /* tried again on another endpoint */
    uint64_t connects, disconnects; /* connections that became ready, and that were lost */
    uint64_t bytes_in, bytes_out;
};
/* Thread: the loop's. */
void vg_grpc_pool_counts(const struct vg_grpc_pool *pool, struct vg_grpc_counts *ret_counts);

#endif
