/* conn_int.h - a connection as conn.c and the two protocols see it. Thread: as in conn.h. */
#ifndef VG_CLI_BENCH_CONN_INT_H
#define VG_CLI_BENCH_CONN_INT_H

#include "conn.h"
#include "llhttp.h"

#define VG_BENCH_TROUBLE_MAX 160u

struct vg_bench_conn {
    struct vg_bench_engine *engine;
    const struct vg_bench_target *target;
    int fd;
    struct ssl_st *ssl;
    bool is_h2, is_connected, is_ready /* TLS too */, is_dead, is_stalled;
    bool is_drained;     /* nothing is left to be read until epoll says so */
    bool may_be_over;    /* epoll has seen the other side's end */
    bool is_over;        /* it was read */
    unsigned events;     /* that epoll is asked for */
    struct vg_list work; /* in the engine's, while it waits to be flushed */
    struct vg_list replies;
    struct vg_buf out;
    llhttp_t parser;                 /* HTTP/1.1 */
    struct nghttp2_session *session; /* HTTP/2 */
    char trouble[VG_BENCH_TROUBLE_MAX];
};

/* Parse what came; what goes wrong is told by the code. */
VG_CHECK int vg_bench_h1_read(struct vg_bench_conn *c, struct vg_slice bytes);
VG_CHECK int vg_bench_h1_ask(struct vg_bench_conn *c, const struct vg_bench_ask *ask);
void vg_bench_h1_init(struct vg_bench_conn *c);
/* The other side has closed: may end an answer that has no length. */
void vg_bench_h1_eof(struct vg_bench_conn *c);

VG_CHECK int vg_bench_h2_init(struct vg_bench_conn *c);
void vg_bench_h2_done(struct vg_bench_conn *c);
VG_CHECK int vg_bench_h2_read(struct vg_bench_conn *c, struct vg_slice bytes);
VG_CHECK int vg_bench_h2_ask(struct vg_bench_conn *c, struct vg_bench_reply *r,
                             const struct vg_bench_ask *ask);
/* What nghttp2 has to say goes to c->out. */
VG_CHECK int vg_bench_h2_pump(struct vg_bench_conn *c);

/* As recv does; the engine's arrived_ns is when the last of the bytes came. */
VG_CHECK ssize_t vg_bench_io_read(struct vg_bench_conn *c, void *to, size_t room);
/* c->ssl reads and writes by it. 0, -ENOMEM. */
VG_CHECK int vg_bench_io_attach(struct vg_bench_conn *c);

/* The reply leaves its connection and is told. */
void vg_bench_reply_end(struct vg_bench_reply *r, int err);

#endif
