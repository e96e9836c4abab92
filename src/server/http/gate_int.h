/* gate_int.h - what the files of this room share. */
#ifndef VG_SERVER_HTTP_GATE_INT_H
#define VG_SERVER_HTTP_GATE_INT_H

#include "accounts.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/rng.h"
#include "body_share.h"
#include "flow_follow.h"
#include "gate.h"
#include "request_metrics.h"
#include "server/api/respond.h"
#include "users.h"

enum vg_inflight_kind { VG_INFLIGHT_READ, VG_INFLIGHT_WRITE, VG_INFLIGHT_KINDS, VG_INFLIGHT_NONE };

struct vg_gate {
    struct vg_gate_opts opts; /* defaults filled in; const after new */
    const struct vg_clock *clock;
    const struct vg_log *log;
    struct vg_http_handler handler;
    struct vg_request_metrics *metrics; /* NULL: not counted */
    struct vg_metric *inflight_metric;
    struct vg_watch_caps caps;
    struct vg_body_shares bodies;
    struct vg_flow *flow;          /* NULL: without priority and fairness */
    struct vg_flow_follow *follow; /* on the first loop; NULL: none */
    _Atomic uint32_t *watchers;    /* of all namespaces, by kind; NULL: not counted */
    _Atomic uint32_t inflight[VG_INFLIGHT_KINDS];
    _Atomic bool is_shut;
    struct vg_gate_loop *loops[VG_GATE_LOOPS_MAX]; /* const while serving */
    size_t n_loops;
};

struct vg_gate_loop {
    struct vg_gate *gate;
    struct vg_loop *loop;
    struct vg_api_loop *api;
    struct vg_flow_loop *flow; /* NULL: without priority and fairness */
    struct vg_tokens *tokens;  /* reference */
    struct vg_accounts accounts;
    struct vg_users users;
    struct vg_rng rng; /* of audit ids */
    struct vg_request_cache series;
    bool has_follow; /* the gate's */
    size_t n_requests;
    struct vg_request_text *spare; /* for requests to come, linked by `next` */
    unsigned n_spare;
    void (*idle)(void *arg);
    void *idle_arg;
};

/* What a request is about, kept apart from the rest: a running watch needs it no more. The bytes
 * are the target as sent, then room for what its escapes become. */
struct vg_request_text {
    struct vg_api_ask ask;
    struct vg_target target;
    struct vg_slice raw;
    struct vg_flow_ticket ticket;
    struct vg_flow_series *series; /* of the ticket, which may be over; NULL: none */
    struct vg_request_wait *wait;  /* for seats; NULL: it does not wait */
    struct vg_request_look *look;  /* at its seats, while its answer is sent; NULL: none */
    size_t reserved;               /* of its user's share of bodies */
    uint64_t complete_ns;          /* the body was there */
    uint64_t first_byte_ns;        /* the first byte of the answer left */
    struct vg_request_text *next;
    size_t cap; /* of bytes */
    char bytes[];
};
void vg_request_texts_done(struct vg_gate_loop *l);

/* One request from head to close. Freed when the call is done and the exchange is closed. */
struct vg_request {
    struct vg_api_call call; /* first */
    struct vg_gate_loop *l;
    struct vg_request_key key; /* for metrics: verb, kind, scope */
    uint8_t inflight;          /* enum vg_inflight_kind */
    bool is_watch : 1;
    bool has_cap : 1;    /* counts as one of its user's watches */
    bool is_running : 1; /* counts as long-running */
    bool is_wide : 1;    /* counts as one of the gate's watchers of a kind */
    bool is_active : 1;  /* somebody answers it: done will come */
    bool is_held : 1;    /* waits for seats, or a debug request for other loops */
    bool is_done : 1;
    bool is_closed : 1;
    char given_id[]; /* the audit id, if the client chose it */
};

/* NULL: a watch that runs. */
static inline struct vg_request_text *vg_request_text(const struct vg_request *q)
{
    return q->call.ask ? VG_CONTAINER_OF(q->call.ask, struct vg_request_text, ask) : NULL;
}
/* The request has a reference. NULL: not known. */
static inline struct vg_user *vg_request_user(const struct vg_request *q)
{
    return q->call.user ? VG_CONTAINER_OF(q->call.user, struct vg_user, api) : NULL;
}

static inline struct vg_request *vg_request_of(struct vg_api_call *call)
{
    return VG_CONTAINER_OF(call, struct vg_request, call);
}

/* admit.c: may it come in? False: it has been answered. */
bool vg_request_admit(struct vg_request *q);

/* request_flow.c: seats. */
void vg_request_classify(struct vg_request *q, const struct vg_authz_attributes *a);
/* Count the body that is announced. False: answered with 429. */
bool vg_request_reserve_body(struct vg_request *q);
/* True: run it. False: it waits, or it has been answered with 429. */
bool vg_request_take_seats(struct vg_request *q);
void vg_request_give_seats(struct vg_request *q);
/* It runs. Seats that it still has are given back when its client does not take the answer. */
void vg_request_watch_seats(struct vg_request *q);
/* Its exchange is closed: if it waits, it waits no more. */
void vg_request_leave_queue(struct vg_request *q);
/* Seats and bytes are given back, before the text goes. */
void vg_request_flow_done(struct vg_request *q);
/* Requests that run now, for metrics; and the limit without priority and fairness. False: too many.
 */
bool vg_inflight_take(struct vg_request *q);
void vg_inflight_give(struct vg_request *q);

/* access.c: what reviews ask. */
extern const struct vg_api_access vg_request_access;

/* local.c: paths that are no resource and not discovery. */
void vg_request_serve_local(struct vg_request *q);
/* Answer in text. nosniff: as Go's http.Error. */
void vg_request_say(struct vg_request *q, int code, const char *text);
/* 429 in text, as kube-apiserver's filters. */
void vg_request_refuse_busy(struct vg_request *q, uint32_t retry_after_s);
void vg_request_fail(struct vg_request *q, const struct vg_api_status *status);

/* debug_watches.c */
void vg_request_list_watches(struct vg_request *q);

/* request.c: serve it. */
void vg_request_run(struct vg_request *q);
/* What was held goes on, or ends if nobody is there any more. */
bool vg_request_unhold(struct vg_request *q);

#endif
