/* request_flow.c - a request and its seats: what it is expected to cost, taking seats when its body
 * is there, waiting for them, and giving them back.
 *
 *   on_head     classified, before it is known whether it may come in: refusals have the headers
 *   on_request  seats are taken: it runs, or it waits in a queue and is held meanwhile, or 429
 *   finished    seats are given back, when the answer is net's to send; of a watch when it has
 *               settled. A client that does not read its answer holds no seat: not of a short one,
 * and of a long one not for long.
 *
 * An unfinished body has no seat: it costs its bytes, of which each user has a share. */
#include <stdio.h>

#include "gate_int.h"
#include "server/schema/strconv.h"

/* As kube-apiserver estimates lists: a seat for 100 kB that are in memory at once, of a list from
 * the cache at most 1 MB. */
#define BYTES_PER_SEAT 100000u
#define LIST_BYTES_MAX 1000000u
#define LIST_SEATS_MAX 100u
/* And writes: a seat for 10 watchers, for 5 ms, in at most 10 seats. */
#define WATCHERS_PER_SEAT 10u
#define EVENT_US 5000u
#define WRITE_SEATS_MAX 10u
/* kube-apiserver lets nothing wait longer than that, whatever the deadline. */
#define WAIT_MAX_MS 60000u

/* ---- classification ---- */

/* kube-apiserver does not limit what runs for long but watches: it goes on to a node. */
static bool is_unlimited(const struct vg_target *t)
{
    return t->type == VG_TARGET_RESOURCE && t->sub && t->sub->type == VG_SUB_CONNECT;
}

static void attributes_of(const struct vg_authz_attributes *a, struct vg_flow_attributes *ret)
{
    *ret = (struct vg_flow_attributes){
        .user = a->user->name,
        .groups = a->user->groups,
        .n_groups = a->user->n_groups,
        .verb = a->verb,
        .is_resource = a->is_resource,
        .group = a->group,
        .version = a->version,
        .resource = a->resource,
        .subresource = a->subresource,
        .ns = a->ns,
        .name = a->name,
        .path = a->path,
    };
}

void vg_request_classify(struct vg_request *q, const struct vg_authz_attributes *a)
{
    struct vg_request_text *t = vg_request_text(q);
    struct vg_flow_loop *l = q->l->flow;
    struct vg_flow_subject_cache *cache = &vg_request_user(q)->subject;
    struct vg_flow_attributes attributes;
    if (!l || is_unlimited(&t->target))
        return;
    const struct vg_flow_likeness like = {t->target.kind, t->target.sub, t->target.verb,
                                          t->target.ns.n > 0};
    if (!like.kind || !vg_flow_classify_again(l, &like, cache, &t->ticket)) {
        attributes_of(a, &attributes);
        vg_flow_classify(l, &attributes, &like, cache, &t->ticket);
    }
    t->series = vg_flow_series_of(&t->ticket);
    t->ask.block = vg_flow_headers(&t->ticket);
}

/* ---- bodies ---- */

bool vg_request_reserve_body(struct vg_request *q)
{
    uint64_t announced = vg_http_request(q->call.x)->body_length;
    struct vg_gate *g = q->l->gate;
    if (VG_LIKELY(announced == 0))
        return true;
    size_t bytes = (size_t)VG_MIN(announced, (uint64_t)g->opts.body_max);
    if (!vg_body_share_take(vg_request_user(q)->share, bytes, g->bodies.max)) {
        vg_request_refuse_busy(q, 1);
        return false;
    }
    vg_request_text(q)->reserved = bytes;
    return true;
}

/* ---- estimates ---- */

static uint64_t limit_param(const struct vg_target *t)
{
    struct vg_slice v = vg_query_get(t, "limit");
    uint64_t n = 0;
    for (size_t i = 0; i < v.n && i < 18; i++) {
        if (v.p[i] < '0' || v.p[i] > '9')
            return 0;
        n = 10 * n + (uint64_t)(v.p[i] - '0');
    }
    return n;
}

/* A list of one object, by its name. */
static bool is_single(const struct vg_target *t)
{
    static const struct vg_slice prefix = {"metadata.name=", 14};
    struct vg_slice v = vg_query_get(t, "fieldSelector");
    return t->name.n || (vg_slice_has_prefix(v, prefix) && !memchr(v.p, ',', v.n));
}

static bool sends_state(const struct vg_target *t)
{
    struct vg_slice rev = vg_query_get(t, "resourceVersion");
    return rev.n == 0 || vg_slice_eq(rev, VG_SLICE_LIT("0")) ||
           vg_query_bool(t, "sendInitialEvents");
}

static void estimate_list(const struct vg_request *q, struct vg_flow_work *w)
{
    const struct vg_request_text *text = vg_request_text(q);
    const struct vg_target *t = &text->target;
    struct vg_cacher *cacher = q->l->gate->opts.cacher;
    struct vg_cache_kind_numbers numbers;
    if (!cacher || (t->verb == VG_API_WATCH && !sends_state(t)))
        return;
    vg_cacher_kind_numbers(cacher, vg_kind_index(t->kind), &numbers);
    if (numbers.objects == 0)
        return;
    uint64_t limit = limit_param(t), n = numbers.objects;
    if (is_single(t))
        n = 1;
    else if (limit && limit < n)
        n = limit;
    double bytes = (double)numbers.object_bytes / (double)numbers.objects * (double)n;
    uint32_t at_once = bytes < LIST_BYTES_MAX ? (uint32_t)bytes : LIST_BYTES_MAX;
    uint32_t seats = (at_once + BYTES_PER_SEAT - 1) / BYTES_PER_SEAT;
    w->initial = VG_MAX(VG_MIN(seats, vg_flow_seats_max(&text->ticket, LIST_SEATS_MAX)), 1u);
}

/* Every watcher of the kind gets an event of it. Those of single namespaces are not counted: they
 * are many where each gets few. */
static void estimate_write(const struct vg_request *q, struct vg_flow_work *w)
{
    const struct vg_request_text *text = vg_request_text(q);
    const struct vg_target *t = &text->target;
    size_t kind = vg_kind_index(t->kind);
    uint32_t watchers = 0;
    if (q->l->gate->watchers)
        watchers = atomic_load_explicit(&q->l->gate->watchers[kind], memory_order_relaxed);
    vg_flow_observe_watch_count(&text->ticket, watchers);
    if (watchers < WATCHERS_PER_SEAT || (t->sub && t->sub->type == VG_SUB_TOKEN))
        return;
    uint32_t seats = (watchers + WATCHERS_PER_SEAT - 1) / WATCHERS_PER_SEAT;
    uint64_t work_us = (uint64_t)seats * EVENT_US;
    w->final = VG_MIN(seats, vg_flow_seats_max(&text->ticket, WRITE_SEATS_MAX));
    w->linger_us = (uint32_t)VG_MIN(work_us / w->final, WAIT_MAX_MS * UINT64_C(1000));
}

static void estimate(const struct vg_request *q, struct vg_flow_work *w)
{
    const struct vg_target *t = &vg_request_text(q)->target;
    *w = (struct vg_flow_work){.initial = 1};
    if (t->type != VG_TARGET_RESOURCE || t->verb == VG_API_GET ||
        vg_flow_is_exempt(&vg_request_text(q)->ticket))
        return;
    switch (t->verb) {
    case VG_API_LIST:
    case VG_API_WATCH:
        estimate_list(q, w);
        return;
    case VG_API_CREATE:
    case VG_API_UPDATE:
    case VG_API_PATCH:
    case VG_API_DELETE:
        estimate_write(q, w);
        return;
    default:
        return;
    }
}

/* ---- waiting ---- */

struct vg_request_wait {
    struct vg_flow_wait flow; /* first */
    struct vg_timer timer;
    struct vg_request *q;
    char verb[16];
};

/* A quarter of the time that the request has. */
static uint64_t wait_ns(struct vg_request *q)
{
    uint64_t ms = q->l->gate->opts.request_timeout_ms;
    struct vg_slice text = vg_query_get(&vg_request_text(q)->target, "timeout"), why;
    int64_t ns;
    if (text.n && !q->is_watch && vg_duration_parse(&q->call.ask->arena, text, &ns, &why) == 0 &&
        ns > 0)
        ms = VG_MIN(ms, (uint64_t)ns / VG_NS_PER_MS);
    return VG_MIN(ms / 4, WAIT_MAX_MS) * VG_NS_PER_MS;
}

static void reject(struct vg_request *q)
{
    vg_request_refuse_busy(q, vg_flow_retry_after(&vg_request_text(q)->ticket));
}

static void stop_waiting(struct vg_request *q)
{
    struct vg_request_wait *w = vg_steal(vg_request_text(q)->wait);
    vg_timer_stop(q->l->loop, &w->timer);
}

static void on_seats(struct vg_flow_wait *flow)
{
    struct vg_request *q = VG_CONTAINER_OF(flow, struct vg_request_wait, flow)->q;
    stop_waiting(q);
    vg_inflight_take(q);
    if (vg_request_unhold(q))
        vg_request_run(q);
}

static void on_too_long(struct vg_timer *timer)
{
    struct vg_request *q = VG_CONTAINER_OF(timer, struct vg_request_wait, timer)->q;
    if (!vg_flow_cancel(&vg_request_text(q)->wait->flow))
        return; /* its turn has just come */
    stop_waiting(q);
    if (vg_request_unhold(q))
        reject(q);
}

void vg_request_leave_queue(struct vg_request *q)
{
    struct vg_request_text *t = vg_request_text(q);
    if (!t || !t->wait || !vg_flow_cancel(&t->wait->flow))
        return;
    stop_waiting(q);
    q->is_held = false;
}

static enum vg_flow_answer wait_for_seats(struct vg_request *q, const struct vg_flow_work *work)
{
    struct vg_request_text *t = vg_request_text(q);
    struct vg_request_wait *w = vg_arena_new(&t->ask.arena, struct vg_request_wait);
    struct vg_authz_attributes a;
    if (!w)
        return VG_FLOW_REJECT;
    *w = (struct vg_request_wait){.q = q, .flow = {.loop = q->l->loop, .go = on_seats}};
    vg_authz_attributes(q->call.user, &t->target, vg_http_request(q->call.x)->method_text, w->verb,
                        &a);
    attributes_of(&a, &w->flow.attributes);
    enum vg_flow_answer answer = vg_flow_enqueue(&t->ticket, work, &w->flow);
    if (answer != VG_FLOW_MUST_WAIT)
        return answer;
    t->wait = w;
    q->is_held = true;
    vg_timer_start(q->l->loop, &w->timer, wait_ns(q), on_too_long);
    return answer;
}

/* ---- clients that do not read ---- */

/* A long answer is written as the client takes it. Its seats are looked at each time that so much
 * of the time of a request has passed: 1 s, and others wait for seats fifteen times as long. */
#define LOOKS_PER_TIMEOUT 60u
/* 1 MiB: who takes less of it from look to look is who we wait for. */
#define SLOW_BYTES (UINT64_C(1) << 20)

struct vg_request_look {
    struct vg_timer timer;
    struct vg_request *q;
    uint64_t bytes_out; /* at the last look */
};

static bool has_seats(const struct vg_request *q)
{
    const struct vg_request_text *t = vg_request_text(q);
    if (!t || !q->l->flow)
        return t && q->inflight != VG_INFLIGHT_NONE;
    return t->ticket.state == VG_FLOW_EXECUTING && !vg_flow_is_exempt(&t->ticket);
}

static void on_look(struct vg_timer *timer);

static void look_later(struct vg_request_look *k)
{
    uint64_t ms = k->q->l->gate->opts.request_timeout_ms / LOOKS_PER_TIMEOUT;
    k->bytes_out = k->q->call.bytes_out;
    vg_timer_start(k->q->l->loop, &k->timer, VG_MAX(ms, 1u) * VG_NS_PER_MS, on_look);
}

static void on_look(struct vg_timer *timer)
{
    struct vg_request_look *k = VG_CONTAINER_OF(timer, struct vg_request_look, timer);
    struct vg_request *q = k->q;
    bool waits_for_us = vg_http_unsent(q->call.x) == 0;
    if (waits_for_us || q->call.bytes_out - k->bytes_out >= SLOW_BYTES)
        look_later(k);
    else
        vg_request_give_seats(q);
}

void vg_request_watch_seats(struct vg_request *q)
{
    struct vg_request_text *t = vg_request_text(q);
    if (VG_LIKELY(!has_seats(q)))
        return;
    if (t->target.verb != VG_API_LIST && t->target.verb != VG_API_WATCH)
        return;
    t->look = vg_arena_new(&t->ask.arena, struct vg_request_look);
    if (!t->look)
        return; /* it keeps its seats until it ends */
    *t->look = (struct vg_request_look){.q = q};
    look_later(t->look);
}

static void stop_looking(struct vg_request *q)
{
    struct vg_request_text *t = vg_request_text(q);
    struct vg_request_look *k = t ? vg_steal(t->look) : NULL;
    if (VG_UNLIKELY(k))
        vg_timer_stop(q->l->loop, &k->timer);
}

/* ---- seats ---- */

static bool take_classified(struct vg_request *q)
{
    struct vg_request_text *t = vg_request_text(q);
    struct vg_flow_work work;
    estimate(q, &work);
    enum vg_flow_answer answer = vg_flow_take(&t->ticket, &work);
    if (VG_UNLIKELY(answer != VG_FLOW_GO))
        answer = wait_for_seats(q, &work);
    if (answer == VG_FLOW_REJECT)
        reject(q);
    if (answer == VG_FLOW_GO)
        vg_inflight_take(q);
    return answer == VG_FLOW_GO;
}

bool vg_request_take_seats(struct vg_request *q)
{
    if (vg_request_text(q)->ticket.schema)
        return take_classified(q);
    if (q->l->flow || vg_inflight_take(q))
        return true;
    vg_request_refuse_busy(q, 1);
    return false;
}

void vg_request_give_seats(struct vg_request *q)
{
    struct vg_request_text *t = vg_request_text(q);
    stop_looking(q);
    vg_inflight_give(q);
    if (t && t->ticket.schema && t->ticket.state != VG_FLOW_WAITING) {
        vg_flow_ticket_done(q->l->flow, &t->ticket);
        t->ask.block = NULL; /* it was the table's */
    }
}

void vg_request_flow_done(struct vg_request *q)
{
    struct vg_request_text *t = vg_request_text(q);
    vg_request_give_seats(q);
    if (t && t->reserved) {
        vg_body_share_give(vg_request_user(q)->share, t->reserved);
        t->reserved = 0;
    }
}

/* ---- without priority and fairness ---- */

static bool is_read(const struct vg_target *t)
{
    return t->verb == VG_API_GET || t->verb == VG_API_LIST || t->verb == VG_API_WATCH;
}

void vg_inflight_give(struct vg_request *q)
{
    if (q->inflight != VG_INFLIGHT_NONE)
        atomic_fetch_sub_explicit(&q->l->gate->inflight[q->inflight], 1, memory_order_relaxed);
    q->inflight = VG_INFLIGHT_NONE;
}

bool vg_inflight_take(struct vg_request *q)
{
    struct vg_gate *g = q->l->gate;
    const struct vg_target *t = &vg_request_text(q)->target;
    if (t->type != VG_TARGET_RESOURCE || is_unlimited(t))
        return true;
    q->inflight = is_read(t) ? VG_INFLIGHT_READ : VG_INFLIGHT_WRITE;
    uint32_t max = is_read(t) ? g->opts.max_inflight : g->opts.max_mutating;
    uint32_t before = atomic_fetch_add_explicit(&g->inflight[q->inflight], 1, memory_order_relaxed);
    if (q->l->flow || max == 0 || before < max || vg_user_has_group(q->call.user, VG_GROUP_MASTERS))
        return true;
    vg_inflight_give(q);
    return false;
}
