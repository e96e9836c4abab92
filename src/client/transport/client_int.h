/* client_int.h - the client and its exchanges, as the files of this room see them. All but what is
 * marked is touched on the loop alone. */
#ifndef VG_CLIENT_TRANSPORT_CLIENT_INT_H
#define VG_CLIENT_TRANSPORT_CLIENT_INT_H

#include <stdatomic.h>

#include "base/lock.h"
#include "creds.h"
#include "mux.h"
#include "transport.h"

/* How long a connection may take, TLS included. */
#define VG_CONNECT_MS 30000L
/* A connection that is silent is asked after 30 s, and is dead when nothing that was sent, data or
 * question, is acknowledged for 45 s: what client-go does by HTTP/2 pings. */
#define VG_KEEPALIVE_IDLE_S 30L
#define VG_KEEPALIVE_EVERY_S 15L
#define VG_USER_TIMEOUT_MS 45000u
/* What libcurl reads at once. Each transfer has a buffer of this size. */
#define VG_READ_BYTES 65536L

/* A token bucket. A turn is taken when it is asked for, and then waited for: first come, first
 * served. */
struct vg_rate {
    double qps, burst; /* qps <= 0: no limit */
    double tokens;
    uint64_t at_ns;
};
void vg_rate_init(struct vg_rate *l, double qps, double burst, uint64_t now_ns);
uint64_t vg_rate_take(struct vg_rate *l, uint64_t now_ns); /* how long to wait, in ns */

struct vigil_client {
    struct vigil_config *config; /* const after init */
    enum vigil_loop_mode mode;   /* const after init */
    uint64_t timeout_ms;         /* const after init */
    char *user_agent;            /* const after init */
    struct vg_log log;
    vigil_log_fn *log_fn;
    void *log_arg;
    struct vg_loop *loop;
    struct vg_mux *mux;
    struct vg_creds creds;
    bool has_creds;
    _Atomic bool is_closing; /* any thread: no exchange begins any more (vigil_client_free) */
    struct vg_rate limit;
    struct vg_list exchanges;
    unsigned epoch;     /* counts how often connections fell silent */
    uint64_t heard_ns;  /* when bytes of any answer last came */
    bool is_turning;    /* OWN_LOOP: within a step */
    struct vg_mutex mu; /* rank CLIENT_CALL; for those who wait */
    struct vg_cond done;
};

enum vg_exchange_state {
    VG_EXCHANGE_WAITING, /* for the rate limit, or to try again */
    VG_EXCHANGE_CREDS,   /* for credentials */
    VG_EXCHANGE_ACTIVE   /* libcurl has it */
};

struct vg_exchange {
    struct vg_list link; /* in the client's exchanges */
    struct vigil_client *c;
    struct vg_exchange_opts opts; /* its texts are ours */
    char *texts;                  /* the block that holds them */
    enum vg_exchange_state state;
    unsigned tries;
    bool is_paused, is_canceled;
    bool has_head;         /* of a 2xx answer, in this try */
    unsigned n_sent;       /* how often libcurl sent it in this try */
    long stream, port;     /* HTTP/2 stream and local port of the connection, as libcurl said; 0 */
    bool is_not_processed; /* the server has said so: it may be sent again, whatever it is */
    uint64_t begun_ns;
    size_t body_at; /* what was sent of the body */
    int data_error; /* what on_data ended it with */
    CURL *easy;
    struct curl_slist *headers, *connect_to;
    unsigned generation;      /* of the certificates it goes by */
    unsigned epoch;           /* the client's when the try began */
    struct vg_buf error_body; /* of an answer that is not 2xx */
    struct vg_timer deadline, wait, stall;
    uint64_t heard_ns; /* when bytes last came */
    struct vg_creds_waiter waiter;
    struct vg_mux_job job;
    char curl_error[CURL_ERROR_SIZE];
};

/* exchange_curl.c: a handle for the next try. 0, -ENOMEM. */
VG_CHECK int vg_exchange_open(struct vg_exchange *x);
void vg_exchange_close(struct vg_exchange *x); /* takes it from libcurl too */
/* Has the server said that it did not process what was sent? `result` is libcurl's. */
bool vg_exchange_is_not_processed(struct vg_exchange *x, CURLcode result);
/* What a failed try means. `result` is libcurl's. */
void vg_exchange_explain(struct vg_exchange *x, CURLcode result, struct vg_exchange_end *end);
/* exchange.c */
void vg_exchange_on_result(void *exchange, CURLcode result);
void vg_exchange_cancel_all(struct vigil_client *c); /* on_done comes, with VIGIL_E_CANCELED */

#endif
