/* server_int.h - what the files of this room share about servers: one per loop, one shared part. */
#ifndef VG_NET_SERVER_INT_H
#define VG_NET_SERVER_INT_H

#include <stdatomic.h>

#include "base/list.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/map.h"
#include "outq.h"
#include "server.h"
#include "share.h"

/* 64 KiB: what one read takes at most; one buffer per loop, none per connection. */
#define VG_NET_READ_MAX (64u * 1024u)
/* 16 KiB: the largest TLS record; slices are gathered here and encrypted as one. */
#define VG_NET_RECORD_MAX (16u * 1024u)

/* Written by one loop, read by any: plain adds that readers may see late. */
struct vg_net_counts {
    _Atomic uint64_t accepted, refused, open_tls, open_h2, handshakes_failed;
    _Atomic uint64_t requests, malformed, timeouts, floods, bytes_in, bytes_out;
    _Atomic uint64_t trims; /* times that memory was given back; for tests */
};
static inline void vg_net_count(_Atomic uint64_t *n, uint64_t add)
{
    uint64_t was = atomic_load_explicit(n, memory_order_relaxed);
    atomic_store_explicit(n, was + add, memory_order_relaxed);
}

struct vg_net_request;

struct vg_http_server {
    struct vg_http_shared *shared;
    const struct vg_http_limits *limits; /* defaults filled in */
    const struct vg_http_handler *handler;
    const struct vg_log *log;
    struct vg_loop *loop;
    struct vg_outq_pool pool;
    struct vg_net_request *free_requests; /* for reuse, see request.h */
    size_t n_free_requests;
    struct vg_net_counts counts;
    struct vg_list link;    /* in shared->servers */
    struct vg_list conns;   /* all */
    struct vg_list dirty;   /* have something to do at the end of the turn */
    struct vg_list shaking; /* TLS handshakes under way, oldest first */
    struct vg_list
        unauthenticated;      /* connections on which nobody has authenticated, oldest first */
    struct vg_list queued;    /* of them, those that can go on: conn_queue.c */
    struct vg_list listening; /* struct listening of listener.c */
    /* Connections that other loops accepted for this one; see listener.c. */
    struct vg_list arriving VG_GUARDED_BY(shared->mu);
    bool is_called VG_GUARDED_BY(shared->mu); /* the mail is on its way */
    struct vg_mail call;
    _Atomic bool is_listening;
    _Atomic uint32_t n_load; /* connections, and those on their way */
    size_t n_conns;
    size_t n_exchanges; /* on_head came, on_closed did not */
    size_t n_handles;   /* uv handles that are not closed */
    uv_prepare_t turn_end;
    uint64_t trim_peak; /* trim.c */
    struct vg_timer trim_timer;
    uv_check_t queue_check; /* conn_queue.c */
    uv_idle_t queue_idle;
    bool is_draining, is_closing;
    void (*drained)(void *arg);
    void *drained_arg;
    int64_t date_s; /* of `date`, made at most once in a second */
    char date[32];
    char *in;      /* VG_NET_READ_MAX */
    char *staging; /* VG_TRANSPORT_STAGING, of which little is touched before a long answer */
};

/* An address and its connections over all loops. */
struct vg_net_address {
    struct vg_slice key; /* the bytes that count as one address */
    uint32_t n;
    _Atomic uint32_t handshakes; /* of them, under way */
    struct vg_share_sum share;   /* what their requests hold */
    bool is_loopback;
    char bytes[16];
};

struct vg_http_shared {
    struct vg_http_limits limits;
    const struct vg_http_handler *handler;
    const struct vg_log *log;
    _Atomic uint32_t open, handshakes;
    struct vg_share_sum share; /* what all requests hold */
    struct vg_mutex mu;        /* rank NET */
    struct vg_map addresses VG_GUARDED_BY(mu);
    struct vg_list servers VG_GUARDED_BY(mu);
    struct vg_http_stats past VG_GUARDED_BY(mu); /* of servers that are closed */
};

/* "Sun, 06 Nov 1994 08:49:37 GMT" by the loop's wall clock; valid until the next call. */
struct vg_slice vg_net_date(struct vg_http_server *s);

/* A connection over the limits is not admitted: 0; VIGIL_E_BUSY, and *ret_address is that address
 * if it is the one that has too many, to be compared and not looked into; -ENOMEM. */
struct sockaddr;
VG_CHECK int vg_net_admit(struct vg_http_shared *s, const struct sockaddr *from,
                          struct vg_net_address **ret_address);
void vg_net_dismiss(struct vg_http_shared *s, struct vg_net_address *address);

/* A connection of this server, counted in n_load, is over. */
void vg_net_leave(struct vg_http_server *s, struct vg_net_address *address);

/* conn.c. A connected socket, which is taken. address: admitted, and n_load counted; both are given
 * back at its end. */
VG_CHECK int vg_conn_open(struct vg_http_server *s, int take_fd, struct vg_tls *tls,
                          struct vg_net_address *address);
/* Cut the oldest handshake of this loop (of an address; NULL: of any), if it has had its second:
 * false, it has not. */
bool vg_conn_cut_handshake(struct vg_http_server *s, const struct vg_net_address *address);
/* Cut, however young it is, a handshake of an address that has many more of them under way than
 * this one: false, there is none among the oldest. */
bool vg_conn_cut_handshake_of_more(struct vg_http_server *s, const struct vg_net_address *address);
/* Flush every connection that has something to do. */
void vg_conn_flush_dirty(struct vg_http_server *s);
/* trim.c: at the end of a turn. */
void vg_trim_look(struct vg_http_server *s);
/* conn_queue.c: the handles of the queue. Closing them ends by vg_net_handle_closed. */
void vg_conn_queue_open(struct vg_http_server *s);
void vg_conn_queue_close(struct vg_http_server *s);
/* Cut the oldest connection of this loop on which nobody has authenticated (of an address; NULL: of
 * any), if it has had its second: false, there is none. */
bool vg_conn_cut_unauthenticated(struct vg_http_server *s, const struct vg_net_address *address);
/* Cut every connection. */
void vg_conn_close_all(struct vg_http_server *s, int err);
/* A handle of the server has been closed; the last one frees a server that is closing. */
void vg_net_handle_closed(struct vg_http_server *s);

#endif
