/* gate.h - the way in: every request passes here on its way from the wire to the verbs.
 *
 *   on_head     target -> plain port's rules -> who asks (401) -> impersonation (403)
 *               -> may they (403) -> bytes of bodies (429) -> body
 *   on_request  priority and fairness: seats now, later, or 429; health, metrics, debug here; all
 * else vg_api_serve on_closed   log line, metrics
 *
 * One vg_gate for the process, one vg_gate_loop for each loop that serves. Loops share little that
 * is written per request: counters of requests in flight, and the seats of priority levels.
 * Thread: a vg_gate_loop belongs to its loop; of vg_gate only what says so may be called by any. */
#ifndef VG_SERVER_HTTP_GATE_H
#define VG_SERVER_HTTP_GATE_H

#include "authz.h"
#include "health.h"
#include "server/api/api.h"
#include "tokens.h"

struct vg_cacher;
struct vg_gate;
struct vg_gate_loop;
struct vg_issuer;

/* 64: more loops than that have not been seen to help. */
#define VG_GATE_LOOPS_MAX 64u

struct vg_gate_opts {
    const struct vg_clock *clock;        /* NULL = the system's */
    const struct vg_log *log;            /* NULL = silent */
    struct vg_metrics *metrics;          /* NULL: not counted, no /metrics */
    const struct vg_authz *const *authz; /* ends with NULL; borrowed */
    const struct vg_health *health;      /* borrowed */
    struct vg_tokens *tokens;            /* NULL: none; a reference is taken */
    const struct vg_issuer *issuer;      /* of accounts' tokens; borrowed; NULL: none */
    struct vg_cacher *cacher;            /* where the accounts are; with issuer */
    /* With priority and fairness the sum of both is the server's seats; without, each is a limit of
     * its own, and 0 is none. */
    uint32_t max_inflight, max_mutating;
    bool has_fairness;             /* if the sum is not 0 */
    uint64_t request_timeout_ms;   /* a quarter of it is the longest wait for seats; 0 = 60 s */
    size_t request_bytes;          /* net's limit; a quarter is a user's share; 0 = 256 MiB */
    uint32_t max_watches_per_user; /* 0 = 100000 */
    size_t body_max;               /* net's limit, to be named in refusals; 0 = 3145728 */
    uint64_t slow_ms;              /* requests slower than this are logged; 0 = 500 */
};
VG_CHECK int vg_gate_new(const struct vg_gate_opts *opts, struct vg_gate **ret_gate);
/* For vg_api_opts: the gate makes the calls. */
extern const struct vg_api_call_ops vg_gate_call_ops;
void vg_gate_free(struct vg_gate *g); /* every loop is closed */
const struct vg_http_handler *vg_gate_handler(struct vg_gate *g);

/* All loops are opened before the first one serves. -ENOMEM, VIGIL_E_TOO_LARGE. */
VG_CHECK int vg_gate_loop_open(struct vg_gate *g, struct vg_loop *loop, struct vg_api_loop *api,
                               struct vg_gate_loop **ret_loop);
/* No request is left, and nothing serves on any loop. Thread: any. */
void vg_gate_loop_close(struct vg_gate_loop *l);
/* Call idle(arg) as soon as the loop has no request, perhaps at once. */
void vg_gate_loop_when_idle(struct vg_gate_loop *l, void (*idle)(void *arg), void *arg);

/* From the next request on, on each loop. Consumes the reference. 0, -ENOMEM. Thread: any one that
 * is not a serving loop, while the loops run. */
VG_CHECK int vg_gate_set_tokens(struct vg_gate *g, struct vg_tokens *take_tokens);
/* The server is about to end: new watches are refused with 503. Thread: any. */
void vg_gate_shut(struct vg_gate *g);

#endif
