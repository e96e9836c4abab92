/* gate.c - see gate.h: the process's part and the loops'. Requests are in request.c. */
#include "gate.h"

#include <errno.h>

#include "base/alloc.h"
#include "gate_int.h"
#include "request.h"

static const struct vg_metric_desc inflight_desc = {
    .name = "apiserver_current_inflight_requests",
    .help = "Requests that are being served now, by kind: readOnly or mutating.",
    .type = VG_METRIC_GAUGE,
    .labels = {"request_kind"},
};

static void collect_inflight(void *arg, struct vg_metric_writer *writer)
{
    struct vg_gate *g = arg;
    static const struct vg_slice kinds[] = {
        [VG_INFLIGHT_READ] = {"readOnly", 8}, [VG_INFLIGHT_WRITE] = {"mutating", 8}};
    for (size_t i = 0; i < VG_INFLIGHT_KINDS; i++)
        vg_metric_emit(writer, &kinds[i], atomic_load(&g->inflight[i]));
}

static int add_metrics(struct vg_gate *g)
{
    if (!g->opts.metrics)
        return 0;
    int r = vg_request_metrics_new(g->opts.metrics, &g->metrics);
    if (r == 0)
        r = vg_metrics_add_callback(g->opts.metrics, &inflight_desc, collect_inflight, g,
                                    &g->inflight_metric);
    return r;
}

/* A user has a quarter of the bytes of requests: three users who begin bodies and end none leave
 * room for others, and one who has much to write does not notice. */
#define BODY_SHARE 4u

static int add_flow(struct vg_gate *g)
{
    struct vg_flow_opts o = {.clock = g->clock,
                             .log = g->log,
                             .metrics = g->opts.metrics,
                             .seats = g->opts.max_inflight + g->opts.max_mutating};
    size_t n;
    (void)vg_kinds(&n);
    g->watchers = vg_calloc(n, sizeof *g->watchers);
    if (!g->watchers)
        return -ENOMEM;
    return g->opts.has_fairness && o.seats ? vg_flow_new(&o, &g->flow) : 0;
}

int vg_gate_new(const struct vg_gate_opts *opts, struct vg_gate **ret_gate)
{
    struct vg_gate *g = vg_new(struct vg_gate);
    if (!g)
        return -ENOMEM;
    g->opts = *opts;
    g->opts.body_max = opts->body_max ? opts->body_max : 3145728;
    g->opts.slow_ms = opts->slow_ms ? opts->slow_ms : 500;
    g->opts.tokens = vg_tokens_ref(opts->tokens);
    g->clock = opts->clock ? opts->clock : vg_clock_system();
    g->log = opts->log;
    g->handler = vg_request_handler;
    g->handler.arg = g;
    g->opts.request_timeout_ms = opts->request_timeout_ms ? opts->request_timeout_ms : 60000;
    g->opts.request_bytes = opts->request_bytes ? opts->request_bytes : (size_t)256 << 20;
    vg_watch_caps_init(&g->caps, opts->max_watches_per_user ? opts->max_watches_per_user : 100000);
    vg_body_shares_init(&g->bodies, g->opts.request_bytes / BODY_SHARE);
    int r = add_metrics(g);
    if (r == 0)
        r = add_flow(g);
    if (r < 0) {
        vg_gate_free(g);
        return r;
    }
    *ret_gate = g;
    return 0;
}

void vg_gate_free(struct vg_gate *g)
{
    if (!g)
        return;
    vg_metric_stop(g->inflight_metric);
    vg_request_metrics_free(g->metrics);
    vg_flow_free(g->flow);
    vg_free(g->watchers);
    vg_body_shares_done(&g->bodies);
    vg_watch_caps_done(&g->caps);
    vg_tokens_unref(g->opts.tokens);
    vg_free(g);
}

const struct vg_http_handler *vg_gate_handler(struct vg_gate *g)
{
    return &g->handler;
}

void vg_gate_shut(struct vg_gate *g)
{
    atomic_store(&g->is_shut, true);
}

/* ---- loops ---- */

/* The first loop follows the objects. */
static int open_flow(struct vg_gate_loop *l)
{
    struct vg_gate *g = l->gate;
    if (!g->flow)
        return 0;
    int r = vg_flow_loop_open(g->flow, l->loop, &l->flow);
    if (r < 0 || g->n_loops > 0 || !g->opts.cacher)
        return r;
    struct vg_flow_follow_opts o = {.flow = g->flow,
                                    .cacher = g->opts.cacher,
                                    .port = vg_api_loop_port(l->api),
                                    .loop = l->loop,
                                    .log = g->log};
    r = vg_flow_follow_open(&o, &g->follow);
    if (r < 0) {
        vg_flow_loop_close(vg_steal(l->flow));
        return r;
    }
    l->has_follow = true;
    return 0;
}

int vg_gate_loop_open(struct vg_gate *g, struct vg_loop *loop, struct vg_api_loop *api,
                      struct vg_gate_loop **ret_loop)
{
    uint64_t seed;
    if (g->n_loops == VG_GATE_LOOPS_MAX)
        return VIGIL_E_TOO_LARGE;
    int r = vg_random_bytes(&seed, sizeof seed);
    if (r < 0)
        return r;
    struct vg_gate_loop *l = vg_new(struct vg_gate_loop);
    if (!l)
        return -ENOMEM;
    l->gate = g;
    l->loop = loop;
    l->api = api;
    r = open_flow(l);
    if (r < 0) {
        vg_free(l);
        return r;
    }
    l->tokens = vg_tokens_ref(g->opts.tokens);
    vg_accounts_init(&l->accounts, g->opts.issuer, g->opts.cacher);
    vg_users_init(&l->users, &g->bodies);
    vg_request_cache_init(&l->series);
    vg_rng_seed(&l->rng, seed);
    g->loops[g->n_loops++] = l;
    *ret_loop = l;
    return 0;
}

void vg_gate_loop_close(struct vg_gate_loop *l)
{
    if (!l)
        return;
    struct vg_gate *g = l->gate;
    for (size_t i = 0; i < g->n_loops; i++) {
        if (g->loops[i] == l)
            g->loops[i] = g->loops[--g->n_loops];
    }
    if (l->has_follow)
        vg_flow_follow_close(vg_steal(g->follow));
    vg_flow_loop_close(l->flow);
    vg_accounts_done(&l->accounts);
    vg_users_done(&l->users);
    vg_request_cache_done(&l->series);
    vg_tokens_unref(l->tokens);
    vg_request_texts_done(l);
    vg_free(l);
}

void vg_gate_loop_when_idle(struct vg_gate_loop *l, void (*idle)(void *arg), void *arg)
{
    if (l->n_requests == 0) {
        idle(arg);
        return;
    }
    l->idle = idle;
    l->idle_arg = arg;
}

/* ---- tokens ---- */

struct token_mail {
    struct vg_mail mail;
    struct vg_gate_loop *l;
    struct vg_tokens *tokens; /* reference */
};

static void change_tokens(struct vg_mail *mail)
{
    struct token_mail *m = VG_CONTAINER_OF(mail, struct token_mail, mail);
    vg_tokens_unref(m->l->tokens);
    m->l->tokens = m->tokens;
    vg_free(m);
}

int vg_gate_set_tokens(struct vg_gate *g, struct vg_tokens *take_tokens)
{
    struct token_mail *mails[VG_GATE_LOOPS_MAX];
    size_t n = 0;
    for (; n < g->n_loops; n++) {
        mails[n] = vg_new(struct token_mail);
        if (!mails[n])
            break;
        mails[n]->mail.run = change_tokens;
        mails[n]->l = g->loops[n];
    }
    bool is_whole = n == g->n_loops;
    for (size_t i = 0; i < n; i++) {
        if (is_whole) {
            mails[i]->tokens = vg_tokens_ref(take_tokens);
            vg_loop_post(g->loops[i]->loop, &mails[i]->mail);
        } else {
            vg_free(mails[i]);
        }
    }
    vg_tokens_unref(take_tokens);
    return is_whole ? 0 : -ENOMEM;
}
