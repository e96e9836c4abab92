/* pool_int.h - what the files under a pool share: the pool (pool.c, calls.c), its channels, one per
 * endpoint (channel.c), and their connections (link.c).
 *
 *   pool ----> channel ----> link: the one that takes calls, or connects
 *                  |-------> links that the server told to go: they end with their last call
 *
 * Rules:
 *   P1 a link reports to its channel: up once, going once at most, down once, then it is gone.
 *   P2 nothing that a caller calls takes a link down or calls back: what is due is done from the
 *      loop (descriptors, timers, the end of the turn).
 *   P3 a call is in pool->waiting, or in pool->active with a stream; in neither when it has ended.
 */
#ifndef VG_NET_GRPC_POOL_INT_H
#define VG_NET_GRPC_POOL_INT_H

#include "base/log.h"
#include "base/rng.h"
#include "net/tls_client.h"
#include "session.h"

struct vg_grpc_channel;
struct addrinfo;

/* ---- link.c ---- */

enum vg_grpc_link_state {
    VG_GRPC_LINK_RESOLVING,
    VG_GRPC_LINK_CONNECTING,
    VG_GRPC_LINK_SHAKING,  /* TLS */
    VG_GRPC_LINK_GREETING, /* waits for the server's settings */
    VG_GRPC_LINK_READY,
    VG_GRPC_LINK_GOING,
    VG_GRPC_LINK_DEAD,
};

struct vg_grpc_link {
    struct vg_grpc_session session; /* from GREETING on */
    struct vg_grpc_channel *channel;
    enum vg_grpc_link_state state;
    uv_poll_t poll;
    int fd;
    int poll_events;
    struct vg_tls_session *tls;
    struct vg_grpc_resolve *resolve; /* under way */
    struct addrinfo *addresses;
    const struct addrinfo *next; /* to be tried */
    struct vg_timer timer;       /* connecting, later silence */
    uint64_t due_ns;             /* until then it has to be ready */
    struct vg_list link;         /* channel->links */
    struct vg_list dirty;        /* pool->dirty */
    uint64_t up_ns;              /* since when it is ready */
    uint64_t heard_ns;
    uint64_t ping_ns;   /* one is under way; 0: none */
    uint64_t pinged_ns; /* the last one */
    bool has_session, has_poll;
    bool is_blocked;         /* the socket takes no more */
    bool is_reading_blocked; /* TLS must write before it can read */
    char trouble[256];       /* what came of the addresses tried so far */
};
/* 0, -ENOMEM. What becomes of it is told later, never from within. */
VG_CHECK int vg_grpc_link_new(struct vg_grpc_channel *ch, struct vg_grpc_link **ret_link);
/* Take it down at once: its calls end, it is gone. down is not told. */
void vg_grpc_link_kill(struct vg_grpc_link *l, const char *why);
void vg_grpc_link_flush(struct vg_grpc_link *l);
/* A call went onto it; or one got no answer in time: look soon whether anybody is there. */
void vg_grpc_link_used(struct vg_grpc_link *l);
void vg_grpc_link_doubt(struct vg_grpc_link *l);

/* Between link.c and link_connect.c. */
void vg_grpc_link_alarm(struct vg_grpc_link *l, uint64_t delay_ns);
void vg_grpc_link_poll(struct vg_grpc_link *l);  /* for what it waits now */
void vg_grpc_link_greet(struct vg_grpc_link *l); /* bytes can flow: HTTP/2 begins */
/* Whatever it was doing, it cannot go on: its channel and its calls are told, and it is gone. */
void vg_grpc_link_down(struct vg_grpc_link *l, const char *why);
VG_CHECK int vg_grpc_link_begin(struct vg_grpc_link *l); /* 0, -ENOMEM */
void vg_grpc_link_connected(struct vg_grpc_link *l);     /* or not: the socket is asked */
/* Its time has come, or the one that is tried has had its share of the time. False: there is no
 * other address. */
bool vg_grpc_link_try_next(struct vg_grpc_link *l);
void vg_grpc_link_shake(struct vg_grpc_link *l);
void vg_grpc_link_give_up(struct vg_grpc_link *l); /* names and addresses, if any */

/* ---- channel.c ---- */

struct vg_grpc_channel {
    struct vg_grpc_pool *pool;
    int index;  /* counted from 1 */
    char *url;  /* as given */
    char *host; /* or the path of a socket */
    char *port; /* NULL: a socket of this machine */
    char *authority;
    const char *tls_host; /* what the certificate must be for */
    bool is_tls;
    struct vg_grpc_link *current; /* NULL: waits to connect */
    bool is_ready;                /* current takes calls */
    bool has_failed;              /* the last try to connect, or the connection, did */
    struct vg_list links;
    struct vg_timer timer; /* the next try */
    uint64_t backoff_ms;
    uint64_t avoid_ns; /* until then others are preferred */
    char why[320];     /* it is not ready because */
};
VG_CHECK int vg_grpc_channel_init(struct vg_grpc_channel *ch, struct vg_grpc_pool *pool, int index,
                                  const char *url, struct vg_status *reterr_status);
void vg_grpc_channel_done(struct vg_grpc_channel *ch);
void vg_grpc_channel_open(struct vg_grpc_channel *ch);
/* From link.c. */
void vg_grpc_channel_up(struct vg_grpc_channel *ch, struct vg_grpc_link *l);
void vg_grpc_channel_going(struct vg_grpc_channel *ch, struct vg_grpc_link *l, const char *why);
void vg_grpc_channel_down(struct vg_grpc_channel *ch, struct vg_grpc_link *l, const char *why);

/* ---- pool.c ---- */

enum vg_grpc_token_state {
    VG_GRPC_TOKEN_NONE,     /* nobody asks for one */
    VG_GRPC_TOKEN_WANTED,   /* renew() has to be told, when a call needs it */
    VG_GRPC_TOKEN_RENEWING, /* it was */
    VG_GRPC_TOKEN_THERE,
};

struct vg_grpc_pool {
    struct vg_grpc_pool_opts opts; /* defaults filled in; texts are copies */
    struct vg_loop *loop;
    const struct vg_log *log;
    struct vg_grpc_channel *channels;
    size_t n_channels;
    int current; /* the endpoint that calls go to while it is well */
    struct vg_list waiting, active;
    size_t n_calls;
    struct vg_timer kick; /* serve those who wait */
    struct vg_rng rng;    /* jitter */
    enum vg_grpc_token_state token_state;
    unsigned token_age; /* which token it is */
    char *token_name, *token_value;
    size_t token_size;
    uint64_t token_failed_ns; /* when there was none the last time; 0: never */
    struct vg_grpc_status token_trouble;
    bool is_ready_told, is_down_told;
    bool is_closing;
    uv_prepare_t turn_end;
    struct vg_list dirty;
    struct vg_outq_pool outq;
    char *in, *staging;
    struct vg_grpc_counts counts;
};
uint64_t vg_grpc_pool_now(const struct vg_grpc_pool *pool);
/* A channel became ready or lost its connection. */
void vg_grpc_pool_changed(struct vg_grpc_pool *pool, struct vg_grpc_channel *ch);

/* ---- calls.c ---- */

/* A try has ended; the call goes on elsewhere or ends. */
void vg_grpc_call_ended(struct vg_grpc_channel *ch, struct vg_grpc_call *c);
/* Those who wait are served, or end, at the next turn; or now. */
void vg_grpc_pool_kick(struct vg_grpc_pool *pool);
void vg_grpc_pool_serve(struct vg_grpc_pool *pool);
/* Not tried yet, or ready: a call may hope. */
bool vg_grpc_pool_has_hope(const struct vg_grpc_pool *pool, int endpoint);

#endif
