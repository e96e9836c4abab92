/* conn.h - connections to the server, many of them, by one epoll: HTTP/1.1 or HTTP/2, plain or TLS.
 * Made to cost little: one buffer for reading that all share, nothing kept of an answer's body, no
 * allocation for what comes. Answers are told to the owner of the request as they come; when they
 * came is what the kernel says, however late they are read.
 *
 * Rules: callbacks come from vg_bench_engine_turn and, when a connection fails, from asking. They
 * may ask again, on any connection, but must not free one: a connection that failed has told all
 * its requests and stays as it is (vg_bench_conn_is_dead) until its owner frees it between turns.
 * Thread: an engine and all that belongs to it has one at a time. */
#ifndef VG_CLI_BENCH_CONN_H
#define VG_CLI_BENCH_CONN_H

#include "base/list.h"
#include "target.h"

struct epoll_event;
struct vg_bench_conn;
struct vg_bench_reply;

struct vg_bench_engine {
    int epoll;
    char *room;             /* what is read lies here while it is told */
    struct vg_list work;    /* connections that have something to send */
    uint64_t arrived_ns;    /* what is being told: when the last of it came */
    uint64_t wall_ahead_ns; /* as late.h has it, of this turn */
    /* Set by the owner: nothing is read until all connections have got something, or none of them
     * anything new for so long (late.h). 0: everything is read at once. */
    uint64_t lull_ns;
    size_t conns;
    struct epoll_event *events;
    size_t events_max;
};
VG_CHECK int vg_bench_engine_init(struct vg_bench_engine *e);
void vg_bench_engine_done(struct vg_bench_engine *e); /* after all connections; zeroed is fine */
/* Wait at most max_ms (0: not) and do what there is to do. 0 or -errno; a signal ends the wait. */
VG_CHECK int vg_bench_engine_turn(struct vg_bench_engine *e, int max_ms);

/* So many connections can be found ready at once. 0, -ENOMEM. */
VG_CHECK int vg_bench_engine_make_room(struct vg_bench_engine *e, size_t conns);

struct vg_bench_reply_ops {
    void (*on_head)(struct vg_bench_reply *r); /* the status is known; NULL allowed */
    void (*on_data)(struct vg_bench_reply *r, struct vg_slice bytes); /* NULL allowed */
    /* 0: the whole answer came; else -errno or VIGIL_E_NETWORK: it broke. The last call. */
    void (*on_end)(struct vg_bench_reply *r, int err);
};
/* One request under way. Belongs to whoever asks, is zeroed but for ops, and stays in place. */
struct vg_bench_reply {
    const struct vg_bench_reply_ops *ops;
    struct vg_list link;        /* in its connection */
    struct vg_bench_conn *conn; /* NULL: nothing is under way */
    int status;                 /* 0: the head has not come */
    int32_t stream;             /* HTTP/2 */
    struct vg_slice body;       /* HTTP/2: what is left to be sent, of `body_copy` */
    char *body_copy;
};

struct vg_bench_ask {
    const char *method, *path; /* without the target's prefix */
    const char *accept;        /* NULL: JSON */
    const char *type;          /* of the body; NULL: JSON */
    bool is_gzip;
    struct vg_slice body;
};

/* Connecting begins; what is asked meanwhile is sent as soon as it can be. receive_bytes: of the
 * socket's buffer, 0: as the system has it. 0, -ENOMEM, -errno. */
VG_CHECK int vg_bench_conn_new(struct vg_bench_engine *e, const struct vg_bench_target *t,
                               bool is_h2, int receive_bytes, struct vg_bench_conn **ret);
void vg_bench_conn_free(struct vg_bench_conn *c); /* requests under way are told nothing */
/* Freed as above, but for its socket, which is the caller's and does not block; -1: it is dead.
 * What has not been read yet lies there still. */
VG_CHECK int vg_bench_conn_release(struct vg_bench_conn *take_conn);
bool vg_bench_conn_is_dead(const struct vg_bench_conn *c);
bool vg_bench_conn_is_ready(const struct vg_bench_conn *c);       /* connected, TLS too */
const char *vg_bench_conn_trouble(const struct vg_bench_conn *c); /* why it is; "" when not */
/* HTTP/1.1 has one request under way, HTTP/2 many. 0: r is told; else it is not. */
VG_CHECK int vg_bench_conn_ask(struct vg_bench_conn *c, struct vg_bench_reply *r,
                               const struct vg_bench_ask *ask);
/* Read nothing from now on, or again. */
void vg_bench_conn_stall(struct vg_bench_conn *c, bool is_stalled);

#endif
