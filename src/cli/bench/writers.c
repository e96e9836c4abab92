/* writers.c - see writers.h. */
#include "writers.h"

#include <errno.h>
#include <stdio.h>

#include "base/alloc.h"
#include "clock.h"

#define SILENCE_NS (60 * VG_NS_PER_S)
#define LATE_NS (10 * VG_NS_PER_MS)
#define AGAIN_NS (100 * VG_NS_PER_MS)
#define PROGRESS_NS (200 * VG_NS_PER_MS)
#define IDLE UINT64_MAX

struct client {
    struct vg_bench_reply reply;
    struct writers *writers;
    struct vg_bench_conn *conn;
    uint64_t number; /* IDLE: none */
    uint64_t sent_ns;
    uint64_t again_ns; /* when to send it again; 0: it is under way */
};

struct writers {
    const struct vg_bench_writers_plan *plan;
    struct vg_bench_writers_result *result;
    struct vg_bench_engine engine;
    struct vg_bench_conn **conns;
    unsigned n_conns;
    struct client *clients;
    unsigned busy;
    uint64_t begin_ns, end_ns /* no new ones; 0: no limit */, heard_ns;
    struct vg_bench_request request;
    int err;
};

/* ---- answers ---- */

static struct client *client_of(struct vg_bench_reply *r)
{
    return VG_CONTAINER_OF(r, struct client, reply);
}

static void on_data(struct vg_bench_reply *r, struct vg_slice bytes)
{
    struct vg_bench_writers_result *result = client_of(r)->writers->result;
    if (r->status >= 300 && r->status != 429 && !result->refusal[0])
        snprintf(result->refusal, sizeof result->refusal, "answered %d: %.*s", r->status,
                 (int)VG_MIN(bytes.n, (size_t)150), bytes.p);
}

static int ask(struct writers *w, struct client *c, uint64_t number);
static bool may_begin(const struct writers *w, uint64_t now);

static void count(struct writers *w, struct client *c, int status, uint64_t at_ns)
{
    if (status >= 200 && status < 300) {
        w->result->answers++;
        vg_hist_add(&w->result->latency, at_ns > c->sent_ns ? at_ns - c->sent_ns : 0);
    } else {
        w->result->refused++;
        if (!w->result->refusal[0])
            snprintf(w->result->refusal, sizeof w->result->refusal, "answered %d", status);
    }
    if (w->plan->answered)
        w->plan->answered(w->plan->arg, c->number, status, at_ns);
}

static void on_end(struct vg_bench_reply *r, int err)
{
    struct client *c = client_of(r);
    struct writers *w = c->writers;
    uint64_t now = vg_bench_now();
    w->heard_ns = now;
    if (err < 0) {
        w->err = w->err ? w->err : err;
        return;
    }
    if (r->status == 429) {
        w->result->throttled++;
        c->again_ns = now + AGAIN_NS;
        return;
    }
    count(w, c, r->status, w->engine.arrived_ns);
    c->number = IDLE;
    w->busy--;
    if (w->plan->rate <= 0 && !w->plan->gate && may_begin(w, now))
        w->err = w->err ? w->err : ask(w, c, w->plan->first + w->result->sent++);
}

static const struct vg_bench_reply_ops ops = {NULL, on_data, on_end};

/* ---- questions ---- */

static bool may_begin(const struct writers *w, uint64_t now)
{
    return !w->err && (!w->plan->count || w->result->sent < w->plan->count) &&
           (!w->end_ns || now < w->end_ns) && !vg_bench_is_interrupted();
}

static int ask(struct writers *w, struct client *c, uint64_t number)
{
    struct vg_bench_request *q = &w->request;
    vg_buf_clear(&q->path);
    vg_buf_clear(&q->body);
    q->type = NULL;
    if (c->number == IDLE)
        w->busy++;
    c->number = number;
    c->again_ns = 0;
    c->sent_ns = vg_bench_now();
    int r = w->plan->make(w->plan->arg, number, q);
    if (r == 0)
        r = vg_buf_append_byte(&q->path, 0);
    if (r == 0)
        r = vg_bench_conn_ask(c->conn, &c->reply,
                              &(struct vg_bench_ask){.method = q->method,
                                                     .path = q->path.p,
                                                     .type = q->type,
                                                     .body = vg_buf_slice(&q->body)});
    return r;
}

static int open_clients(struct writers *w)
{
    unsigned each = w->plan->is_h2 ? VG_MAX(w->plan->streams, 1u) : 1;
    w->conns = vg_calloc(w->plan->clients, sizeof(struct vg_bench_conn *));
    w->clients = vg_calloc(w->plan->clients, sizeof *w->clients);
    if (!w->conns || !w->clients)
        return -ENOMEM;
    for (unsigned i = 0; i < w->plan->clients; i++) {
        if (i % each == 0) {
            int r = vg_bench_conn_new(&w->engine, w->plan->target, w->plan->is_h2, 0,
                                      &w->conns[w->n_conns]);
            if (r < 0)
                return r;
            w->n_conns++;
        }
        w->clients[i] = (struct client){
            .reply.ops = &ops, .writers = w, .conn = w->conns[w->n_conns - 1], .number = IDLE};
    }
    return 0;
}

/* ---- the run ---- */

/* Whose time has come: those to be sent again, and the next ones of a rate. How long to wait. */
static int send_due(struct writers *w, uint64_t now, int *ret_wait_ms)
{
    const struct vg_bench_writers_plan *p = w->plan;
    int r = 0;
    *ret_wait_ms = 50;
    for (unsigned i = 0; r == 0 && i < p->clients; i++) {
        struct client *c = &w->clients[i];
        if (c->again_ns && now >= c->again_ns)
            r = ask(w, c, c->number);
        if (r < 0 || c->number != IDLE || (p->rate <= 0 && !p->gate) || !may_begin(w, now))
            continue;
        if (p->gate) {
            *ret_wait_ms = 1;
            int may = p->gate(p->arg);
            r = may > 0 ? ask(w, c, p->first + w->result->sent++) : may;
            continue;
        }
        uint64_t due = w->begin_ns + (uint64_t)((double)w->result->sent * 1e9 / p->rate);
        if (due > now) {
            *ret_wait_ms = (int)VG_MIN((due - now) / VG_NS_PER_MS + 1, UINT64_C(50));
            break;
        }
        w->result->late += now - due > LATE_NS;
        r = ask(w, c, p->first + w->result->sent++);
    }
    return r;
}

/* What connecting costs is not what is measured. */
static int connect_all(struct writers *w)
{
    uint64_t since = vg_bench_now();
    for (unsigned i = 0; i < w->n_conns;) {
        if (vg_bench_conn_is_ready(w->conns[i])) {
            i++;
            continue;
        }
        int r = vg_bench_engine_turn(&w->engine, 50);
        if (r < 0 || vg_bench_conn_is_dead(w->conns[i]))
            return r < 0 ? r : VIGIL_E_NETWORK;
        if (vg_bench_is_interrupted())
            return VIGIL_E_CANCELED;
        if (vg_bench_now() - since > SILENCE_NS)
            return VIGIL_E_TIMEOUT;
    }
    return 0;
}

static int begin(struct writers *w)
{
    int r = 0;
    if (w->plan->begin)
        w->plan->begin(w->plan->arg);
    w->begin_ns = w->heard_ns = vg_bench_now();
    w->end_ns = w->plan->for_ns ? w->begin_ns + w->plan->for_ns : 0;
    bool at_once = w->plan->rate <= 0 && !w->plan->gate;
    for (unsigned i = 0; at_once && r == 0 && i < w->plan->clients; i++)
        if (may_begin(w, w->begin_ns))
            r = ask(w, &w->clients[i], w->plan->first + w->result->sent++);
    return r;
}

static int run(struct writers *w)
{
    int r = begin(w), wait_ms = 0;
    uint64_t told = w->begin_ns, now = told;
    while (r == 0 && (w->busy || may_begin(w, now))) {
        r = send_due(w, now, &wait_ms);
        if (r == 0)
            r = vg_bench_engine_turn(&w->engine, wait_ms);
        now = vg_bench_now();
        if (r == 0)
            r = w->err;
        if (r == 0 && w->busy && now - w->heard_ns > SILENCE_NS)
            r = VIGIL_E_TIMEOUT;
        if (!w->busy)
            w->heard_ns = now;
        if (r == 0 && w->plan->progress && now - told > PROGRESS_NS) {
            told = now;
            r = w->plan->progress(w->plan->arg, w->result->answers + w->result->refused);
        }
    }
    w->result->took_ns = vg_bench_now() - w->begin_ns;
    return r == 0 && vg_bench_is_interrupted() ? VIGIL_E_CANCELED : r;
}

static int explain(const struct writers *w, int err, struct vg_status *status)
{
    for (unsigned i = 0; i < w->n_conns; i++)
        if (vg_bench_conn_is_dead(w->conns[i]))
            return vg_fail(status, err, "a connection broke: %s",
                           vg_bench_conn_trouble(w->conns[i]));
    if (err == VIGIL_E_TIMEOUT)
        return vg_fail(status, err, "the server has not answered for a minute");
    return vg_fail(status, err, "%s", err == VIGIL_E_CANCELED ? "interrupted" : vg_err_text(err));
}

int vg_bench_writers_run(const struct vg_bench_writers_plan *plan,
                         struct vg_bench_writers_result *ret, struct vg_status *reterr_status)
{
    struct writers w = {.plan = plan, .result = ret};
    *ret = (struct vg_bench_writers_result){0};
    int r = vg_bench_engine_init(&w.engine);
    if (r == 0)
        r = open_clients(&w);
    if (r == 0)
        r = connect_all(&w);
    if (r == 0)
        r = run(&w);
    if (r < 0)
        r = explain(&w, r, reterr_status);
    for (unsigned i = 0; i < w.n_conns; i++)
        vg_bench_conn_free(w.conns[i]);
    vg_bench_engine_done(&w.engine);
    vg_buf_done(&w.request.path);
    vg_buf_done(&w.request.body);
    vg_free(w.clients);
    vg_free(w.conns);
    return r;
}
