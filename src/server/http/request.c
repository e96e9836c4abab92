/* request.c - one request, from its head to its close.
 * Until somebody answers it, a request ends when its exchange is closed. From then on it is the
 * answerer's until call->done, which comes after the exchange is closed. */
#include "request.h"

#include <errno.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "gate_int.h"

static struct vg_gate_loop *loop_of(struct vg_gate *g, const struct vg_http_exchange *x)
{
    struct vg_loop *loop = vg_http_loop(x);
    for (size_t i = 0; i < g->n_loops; i++) {
        if (g->loops[i]->loop == loop)
            return g->loops[i];
    }
    return NULL;
}

/* ---- birth and death ---- */

/* A client's own audit id is kept, so that its logs and ours can be read together; or nothing. */
static struct vg_slice given_audit_id(const struct vg_http_exchange *x)
{
    struct vg_slice given = vg_http_field(x, "audit-id");
    size_t n = 0;
    while (n < given.n && given.p[n] > ' ' && given.p[n] < 0x7f)
        n++;
    return n == given.n && n < VG_AUDIT_ID_SIZE ? given : vg_slice(NULL, 0);
}

static void set_audit_id(struct vg_request *q, struct vg_slice given)
{
    uint8_t *id = q->call.audit.uuid;
    if (given.n > 0) {
        memcpy(q->given_id, given.p, given.n);
        q->call.audit.given = q->given_id;
        q->call.has_given_id = true;
        return;
    }
    vg_rng_bytes(&q->l->rng, id, sizeof q->call.audit.uuid);
    id[6] = (uint8_t)((id[6] & 0x0f) | 0x40);
    id[8] = (uint8_t)((id[8] & 0x3f) | 0x80);
}

/* Texts of requests that are over are used again with the first memory of their arenas, which is
 * too large for malloc's own caches: 128 of 5 KB for each loop, as many as a group of writes by 256
 * clients sets free at once. Debug builds keep none, so that who holds on to a part of one is
 * caught. */
#define SPARE_MAX 128u
#define SPARE_BYTES 256u
#define SPARE_ARENA_MAX ((size_t)4096)

static struct vg_request_text *text_alloc(struct vg_gate_loop *l, size_t need)
{
    struct vg_request_text *t = l->spare;
    if (t && t->cap >= need) {
        l->spare = t->next;
        l->n_spare--;
        return t;
    }
    size_t cap = VG_MAX(need, (size_t)SPARE_BYTES);
    t = vg_malloc(sizeof *t + cap);
    if (t) {
        t->cap = cap;
        vg_arena_init(&t->ask.arena, 0, VG_API_ARENA_MAX);
    }
    return t;
}

static bool may_keep(const struct vg_gate_loop *l, const struct vg_request_text *t)
{
#ifdef VG_DEBUG_CHECKS
    (void)l, (void)t;
    return false;
#else
    return l->n_spare < SPARE_MAX && t->cap == SPARE_BYTES && t->ask.arena.used <= SPARE_ARENA_MAX;
#endif
}

static struct vg_request_text *text_new(struct vg_gate_loop *l, struct vg_slice raw)
{
    struct vg_request_text *t = text_alloc(l, 2 * raw.n);
    if (!t)
        return NULL;
    t->ask = (struct vg_api_ask){.target = &t->target, .arena = t->ask.arena};
    memset(&t->target, 0, sizeof t->target);
    t->ticket = (struct vg_flow_ticket){0};
    t->series = NULL;
    t->wait = NULL;
    t->look = NULL;
    t->reserved = 0;
    t->complete_ns = t->first_byte_ns = 0;
    memcpy(t->bytes, raw.p, raw.n);
    t->raw = vg_slice(t->bytes, raw.n);
    return t;
}

static void text_free(struct vg_request *q)
{
    struct vg_request_text *t = vg_request_text(q);
    struct vg_gate_loop *l = q->l;
    if (!t)
        return;
    q->call.ask = NULL;
    vg_arena_reset(&t->ask.arena);
    if (may_keep(l, t)) {
        t->next = l->spare;
        l->spare = t;
        l->n_spare++;
        return;
    }
    vg_arena_done(&t->ask.arena);
    vg_free(t);
}

void vg_request_texts_done(struct vg_gate_loop *l)
{
    while (l->spare) {
        struct vg_request_text *t = l->spare;
        l->spare = t->next;
        vg_arena_done(&t->ask.arena);
        vg_free(t);
    }
    l->n_spare = 0;
}

/* Watches of all namespaces: each write of their kind is an event for each of them. */
static void count_watcher(struct vg_request *q, int delta)
{
    size_t kind = vg_kind_index(q->key.kind);
    atomic_fetch_add_explicit(&q->l->gate->watchers[kind], (uint32_t)delta, memory_order_relaxed);
}

static void request_free(struct vg_request *q)
{
    struct vg_gate_loop *l = q->l;
    struct vg_user *user = vg_request_user(q);
    vg_request_flow_done(q);
    if (q->is_running)
        vg_request_count_running(l->gate->metrics, &l->series, &q->key, -1);
    if (q->is_wide)
        count_watcher(q, -1);
    if (q->has_cap)
        vg_watch_caps_give(&l->gate->caps, user->api.name);
    if (user)
        vg_users_put(&l->users, user);
    text_free(q);
    vg_free(q);
    if (--l->n_requests == 0 && l->idle) {
        void (*idle)(void *arg) = l->idle;
        l->idle = NULL;
        idle(l->idle_arg);
    }
}

static void free_if_over(struct vg_request *q)
{
    if (q->is_closed && !q->is_held && (q->is_done || !q->is_active))
        request_free(q);
}

bool vg_request_unhold(struct vg_request *q)
{
    q->is_held = false;
    if (!q->is_closed)
        return true;
    free_if_over(q);
    return false;
}

static void on_done(struct vg_api_call *call)
{
    struct vg_request *q = vg_request_of(call);
    q->is_done = true;
    vg_request_give_seats(q);
    free_if_over(q);
}

static void on_finished(struct vg_api_call *call)
{
    vg_request_give_seats(vg_request_of(call));
}

/* The initial phase of a watch is over: it holds no seats any more, and lives for long. */
static void on_settled(struct vg_api_call *call)
{
    struct vg_request *q = vg_request_of(call);
    const struct vg_request_text *t = vg_request_text(q);
    uint64_t now = vg_clock_mono_ns(q->l->gate->clock);
    if (t->series)
        vg_flow_observe_execution(t->series, now - t->complete_ns, true);
    vg_request_flow_done(q);
    text_free(q);
}

const struct vg_api_call_ops vg_gate_call_ops = {
    .done = on_done, .finished = on_finished, .settled = on_settled, .access = &vg_request_access};

static struct vg_request *request_new(struct vg_gate_loop *l, struct vg_http_exchange *x)
{
    const struct vg_http_request *r = vg_http_request(x);
    struct vg_slice given = given_audit_id(x);
    struct vg_request *q = vg_calloc(1, sizeof *q + (given.n ? given.n + 1 : 0));
    struct vg_request_text *text = q ? text_new(l, r->target) : NULL;
    if (!text) {
        vg_free(q);
        return NULL;
    }
    q->l = l;
    q->inflight = VG_INFLIGHT_NONE;
    q->call.x = x;
    q->call.loop = l->api;
    q->call.ask = &text->ask;
    q->call.started_ns = vg_clock_mono_ns(l->gate->clock);
    set_audit_id(q, given);
    l->n_requests++;
    return q;
}

/* ---- what net calls ---- */

static void begin_watch(struct vg_request *q)
{
    struct vg_gate_loop *l = q->l;
    const struct vg_target *t = &vg_request_text(q)->target;
    q->is_running = vg_request_count_running(l->gate->metrics, &l->series, &q->key, 1);
    q->is_wide = l->gate->watchers && t->ns.n == 0 && t->name.n == 0;
    if (q->is_wide)
        count_watcher(q, 1);
}

static void on_head(struct vg_http_exchange *x, void *arg)
{
    struct vg_gate_loop *l = loop_of(arg, x);
    struct vg_request *q = VG_NEVER(!l) ? NULL : request_new(l, x);
    if (!q) {
        vg_http_abort(x);
        return;
    }
    vg_http_set_user(x, q);
    if (!vg_request_admit(q))
        return;
    if (q->is_watch)
        begin_watch(q);
}

void vg_request_run(struct vg_request *q)
{
    if (vg_request_text(q)->target.type == VG_TARGET_OTHER) {
        vg_request_serve_local(q);
        return;
    }
    q->is_active = true;
    vg_api_serve(&q->call);
    vg_request_watch_seats(q);
}

static void on_request(struct vg_http_exchange *x, void *arg)
{
    (void)arg;
    struct vg_request *q = vg_http_user(x);
    if (!q || q->is_active)
        return;
    vg_request_text(q)->complete_ns = vg_clock_mono_ns(q->l->gate->clock);
    if (VG_LIKELY(vg_request_take_seats(q)))
        vg_request_run(q);
}

static void on_drained(struct vg_http_exchange *x, void *arg)
{
    (void)arg;
    struct vg_request *q = vg_http_user(x);
    if (q && q->is_active && !q->is_done)
        vg_api_on_drained(&q->call);
}

static void on_progress(struct vg_http_exchange *x, size_t n, void *arg)
{
    (void)arg;
    struct vg_request *q = vg_http_user(x);
    if (!q)
        return;
    struct vg_request_text *text = vg_request_text(q);
    if (text && text->first_byte_ns == 0)
        text->first_byte_ns = vg_clock_mono_ns(q->l->gate->clock);
    if (q->is_active && !q->is_done)
        vg_api_on_progress(&q->call, n);
}

/* ---- the end ---- */

static double ms_between(uint64_t from, uint64_t to)
{
    return from && to > from ? (double)(to - from) / 1e6 : 0;
}

/* Quiet by default: errors of ours and slow requests at info, the rest at debug. A watch is never
 * slow. Neither bodies nor credentials are among the fields. */
static void log_request(struct vg_request *q, int code, uint64_t now)
{
    struct vg_gate *g = q->l->gate;
    double ms = ms_between(q->call.started_ns, now);
    const struct vg_request_text *text = vg_request_text(q);
    uint64_t complete_ns = text ? text->complete_ns : 0;
    /* A refused request ends when its client has sent its body or left: that time is not ours. */
    bool is_slow = !q->is_watch && complete_ns && ms > (double)g->opts.slow_ms;
    enum vg_log_level level = is_slow || (code >= 500 && code != 504) ? VG_LOG_INFO : VG_LOG_DEBUG;
    if (!vg_log_is_on(g->log, level))
        return;
    const struct vg_kind *kind = q->key.kind;
    struct vg_slice verb = vg_slice_str(vg_request_verb(&q->key));
    struct vg_slice what = text ? text->raw : vg_slice_str(kind ? kind->resource : "");
    uint64_t first_byte_ns = text ? text->first_byte_ns : 0;
    char id[VG_AUDIT_ID_SIZE];
    struct vg_slice user = q->call.user ? q->call.user->name : VG_SLICE_LIT("");
    vg_log_write(g->log, level, is_slow ? "slow_request" : "request",
                 "verb=%.*s target=%.*s code=%d user=%.*s peer=%s ms=%.1f body_ms=%.1f "
                 "first_byte_ms=%.1f send_ms=%.1f bytes=%" PRIu64 " audit=%s",
                 VG_SLICE_ARG(verb), VG_SLICE_ARG(what), code, VG_SLICE_ARG(user),
                 vg_http_peer(q->call.x)->address, ms, ms_between(q->call.started_ns, complete_ns),
                 ms_between(complete_ns, first_byte_ns), ms_between(first_byte_ns, now),
                 q->call.bytes_out, vg_api_audit_id(&q->call, id));
}

/* From the body to the end of the answer: the client's reading is a part of it, as it is of what
 * kube-apiserver measures. */
static void observe_execution(const struct vg_request *q, uint64_t now)
{
    const struct vg_request_text *t = vg_request_text(q);
    if (t && t->series && t->complete_ns && q->is_active)
        vg_flow_observe_execution(t->series, now - t->complete_ns, false);
}

/* 499, as others say it too: the client went away before there was an answer. */
#define CODE_GONE 499

static void on_closed(struct vg_http_exchange *x, int err, void *arg)
{
    (void)arg;
    struct vg_request *q = vg_http_user(x);
    if (!q)
        return;
    uint64_t now = vg_clock_mono_ns(q->l->gate->clock);
    int code = q->call.status_code ? q->call.status_code : CODE_GONE;
    q->key.code = (uint16_t)code;
    vg_request_count(q->l->gate->metrics, &q->l->series, &q->key, now - q->call.started_ns,
                     q->call.bytes_out);
    log_request(q, code, now);
    observe_execution(q, now);
    q->is_closed = true;
    vg_request_leave_queue(q);
    if (q->is_active && !q->is_done)
        vg_api_on_closed(&q->call, err);
    else
        free_if_over(q);
}

/* ---- what the connection refuses by itself ---- */

static void refuse(struct vg_http_exchange *x, int status, const char *why, struct vg_buf *ret_body,
                   const char **ret_content_type, void *arg)
{
    const struct vg_gate *g = arg;
    struct vg_request *q = x ? vg_http_user(x) : NULL;
    int r;
    if (q)
        q->call.status_code = (uint16_t)status;
    if (status == 413) {
        VG_AUTO(arena) a = {0};
        struct vg_api_status s;
        vg_status_too_large_body(&a, &s, g->opts.body_max);
        r = vg_api_status_write(ret_body, &s);
        *ret_content_type = "application/json";
    } else {
        r = vg_buf_printf(ret_body, "%d %s\n", status, why);
        *ret_content_type = "text/plain; charset=utf-8";
    }
    if (r < 0)
        vg_buf_clear(ret_body);
}

const struct vg_http_handler vg_request_handler = {
    .on_head = on_head,
    .on_request = on_request,
    .on_drained = on_drained,
    .on_progress = on_progress,
    .on_closed = on_closed,
    .refuse = refuse,
};
