/* server.h - listening sockets and connections of one loop.
 * One vg_http_server per loop; all of them share one vg_http_shared, which holds the limits that
 * count over all loops, the TLS context and the counters. A listening socket is opened once and
 * polled by every loop that adds it; whoever accepts hands the connection to the listening loop
 * that has the fewest. Thread: a server belongs to its loop; vg_http_shared may be used by any. */
#ifndef VG_NET_SERVER_H
#define VG_NET_SERVER_H

#include "http.h"
#include "loop/loop.h"

struct vg_log;
struct vg_tls;
struct vg_http_server;
struct vg_http_shared;

/* 0 = the default, which is in parentheses. */
struct vg_http_limits {
    size_t head_bytes;                /* request line and fields (64 KiB) */
    size_t head_fields;               /* (128) */
    size_t body_bytes;                /* (3145728) */
    size_t unsent_bytes;              /* an exchange is full beyond this (64 KiB) */
    uint32_t connections;             /* in all (100000) */
    uint32_t connections_per_address; /* (50000 on loopback addresses, else 5000) */
    uint64_t request_bytes;           /* heads and bodies under way, in all (256 MiB) */
    uint32_t handshakes;              /* TLS handshakes under way, in all (1000) */
    uint32_t handshakes_per_address;  /* (a quarter of them) */
    uint32_t streams;                 /* of one HTTP/2 connection, at a time (1000) */
    uint32_t resets_per_second; /* by the client of one HTTP/2 connection (200), also settings,
                                 * pings and empty frames: more means GOAWAY */
    size_t read_ahead;          /* bytes of further HTTP/1.1 requests, kept while one is answered
                                 * (16 KiB) */
    uint64_t handshake_ms;      /* from accept to the end of the handshake (10 s) */
    uint64_t head_ms;           /* from its first byte to the end of the head (32 s) */
    uint64_t body_ms;           /* between two pieces of a body (30 s) */
    uint64_t request_ms;        /* from the end of the head to the end of the body (60 s) */
    uint64_t idle_ms;           /* a connection without a request (180 s) */
    uint64_t stall_ms;          /* bytes wait and the socket takes none (60 s) */
    uint64_t min_rate;          /* bytes/s of an answer that is not a watch, after 10 s (1 KiB) */
};

struct vg_http_shared_opts {
    struct vg_http_limits limits;
    const struct vg_http_handler *handler; /* borrowed */
    const struct vg_log *log;              /* NULL = silent */
};
VG_CHECK int vg_http_shared_new(const struct vg_http_shared_opts *opts,
                                struct vg_http_shared **ret_shared);
void vg_http_shared_free(struct vg_http_shared *s); /* every server is closed */

struct vg_http_stats {
    uint64_t accepted, refused; /* connections; refused: over a limit */
    uint64_t open, open_tls, open_h2;
    uint64_t handshakes_failed;
    uint64_t requests, malformed, timeouts, floods;
    uint64_t bytes_in, bytes_out;
};
void vg_http_stats(struct vg_http_shared *s, struct vg_http_stats *ret_stats);

VG_CHECK int vg_http_server_new(struct vg_http_shared *shared, struct vg_loop *loop,
                                struct vg_http_server **ret_server);
/* All connections are cut, on_closed comes for each exchange from within. Thread: the loop's. The
 * loop is turned once more before it is freed. */
void vg_http_server_free(struct vg_http_server *s);

/* Could one listen there, were the port free? 0; VIGIL_E_INVALID, -errno with a sentence. */
VG_CHECK int vg_listener_probe(const char *host, struct vg_status *reterr_status);

/* A listening TCP socket. host: a numeric address; port 0 picks one. 0, -errno with a sentence. */
struct vg_listener;
VG_CHECK int vg_listener_open(const char *host, uint16_t port, struct vg_listener **ret_listener,
                              struct vg_status *reterr_status);
/* Take over a socket that somebody else opened (socket activation). */
VG_CHECK int vg_listener_adopt(int fd, struct vg_listener **ret_listener,
                               struct vg_status *reterr_status);
uint16_t vg_listener_port(const struct vg_listener *l);
void vg_listener_free(struct vg_listener *l);

/* Accept on it from this loop. tls NULL: plain. Both must outlive the server. */
VG_CHECK int vg_http_server_listen(struct vg_http_server *s, struct vg_listener *l,
                                   struct vg_tls *tls);
/* Serve one connected socket, which is taken (for tests: a socketpair). */
VG_CHECK int vg_http_server_adopt(struct vg_http_server *s, int take_fd, struct vg_tls *tls);

/* No new connections, but those that wait for the last loop to accept them: they have a second to
 * bring a request. HTTP/2 gets GOAWAY, HTTP/1.1 answers "Connection: close", idle ones close.
 * done comes when the last exchange has ended and every connection has said its last word (HTTP/2
 * takes requests that are under way for a second more); exchanges that go on are the caller's to
 * end. */
void vg_http_server_drain(struct vg_http_server *s, void (*done)(void *arg), void *arg);
size_t vg_http_server_connections(const struct vg_http_server *s);

#endif
