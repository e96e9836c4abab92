/* feed.c - the one watch over everything under the prefix: it fills the tail (E1).
 *
 * DOWN     | start(): a stream with a watch from the last revision told
 * UP       | created: etcd will bring what follows; the member's version is asked for
 *          | events: gathered until their fragments are whole, then published
 *          | progress: nothing happened up to there; published as such
 *          | the stream ends, or the watch is cancelled: DOWN, and again after a moment
 *          | cancelled because of compaction: a gap is published, so that those who follow ask the
 *          | log and learn that it is gone; then from the newest revision on
 *
 * The watch starts at the last revision told and not behind it: etcd then refuses it exactly when a
 * change behind that revision may be gone. What is told twice is left out. */
#include <errno.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "engine.h"

#define RETRY_FIRST_MS 50u
#define RETRY_MAX_MS 2000u

static void start(struct vg_etcd_engine *e);

static struct vg_etcd_engine *engine_of(struct vg_grpc_call *call)
{
    return VG_CONTAINER_OF(call, struct vg_etcd_engine, feed.call);
}

/* ---- requests ---- */

int vg_etcd_start_watch(struct vg_etcd_engine *e, vg_rev from, struct vg_grpc_call *call)
{
    Etcd__WatchRequest req = ETCD__WATCH_REQUEST__INIT;
    Etcd__WatchCreateRequest create = ETCD__WATCH_CREATE_REQUEST__INIT;
    create.key = vg_etcd_data(e->feed.with_barrier ? e->space.barrier : e->space.prefix_s);
    create.range_end = vg_etcd_data(e->space.end_s);
    create.start_revision = (int64_t)VG_MAX(from, (vg_rev)1);
    create.prev_kv = true;
    create.fragment = true;
    req.request_union_case = ETCD__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST;
    req.create_request = &create;
    call->path = vg_etcd_watch.path;
    call->msg = vg_etcd_pack(&req.base);
    call->fields = vg_etcd_require_leader;
    call->n_fields = VG_ARRAY_LEN(vg_etcd_require_leader);
    call->flags = vg_etcd_watch.flags | VG_GRPC_WAIT;
    return call->msg ? vg_grpc_start(vg_etcd_client_pool(e->client), call) : -ENOMEM;
}

int vg_etcd_ask_progress(struct vg_grpc_call *stream)
{
    Etcd__WatchRequest req = ETCD__WATCH_REQUEST__INIT;
    Etcd__WatchProgressRequest progress = ETCD__WATCH_PROGRESS_REQUEST__INIT;
    req.request_union_case = ETCD__WATCH_REQUEST__REQUEST_UNION_PROGRESS_REQUEST;
    req.progress_request = &progress;
    struct vg_grpc_msg *msg = vg_etcd_pack(&req.base);
    return msg ? vg_grpc_send(stream, msg) : -ENOMEM;
}

/* ---- publishing ---- */

static void forget_parts(struct vg_etcd_feed *f)
{
    f->n_parts = 0;
    vg_arena_reset(&f->arena);
}

static void publish(struct vg_etcd_engine *e, struct vg_commit_batch *take_batch)
{
    struct vg_commit_batch *b = take_batch;
    e->feed.told = b->last;
    vg_etcd_saw_rev(e, (int64_t)b->last);
    vg_tail_publish(&e->tail, &b->tail);
    vg_etcd_own_trim(e);
}

static struct vg_commit_batch *new_batch(vg_rev last, size_t room)
{
    struct vg_commit_batch *b = vg_malloc(sizeof *b + room * sizeof b->events[0]);
    if (!b)
        return NULL;
    memset(b, 0, sizeof *b);
    b->tail.free = vg_commit_batch_free;
    b->last = last;
    return b;
}

void vg_etcd_feed_advance(struct vg_etcd_engine *e, vg_rev rev)
{
    struct vg_commit_batch *b = rev > e->feed.told ? new_batch(rev, 0) : NULL;
    if (b) /* without memory: the next one will do */
        publish(e, b);
}

static int fill_batch(struct vg_etcd_engine *e, struct vg_commit_batch *b)
{
    struct vg_etcd_feed *f = &e->feed;
    struct vg_etcd_order order = {0};
    b->lacks_prev = atomic_load_explicit(&e->prev_watches, memory_order_relaxed) == 0;
    for (size_t i = 0; i < f->n_parts; i++) {
        const Etcd__Event *ev = f->parts[i];
        vg_rev rev = ev->kv ? (vg_rev)ev->kv->mod_revision : 0;
        if (rev <= f->told)
            continue; /* told before the stream broke */
        uint32_t sub = vg_etcd_place(&order, rev);
        int r = vg_etcd_feed_event(e, ev, sub, !b->lacks_prev, &b->events[b->n]);
        if (r == VIGIL_E_COMPACTED) {
            b->lacks_prev = true;
            r = vg_etcd_feed_event(e, ev, sub, false, &b->events[b->n]);
        }
        if (r < 0 && r != VIGIL_E_KEY_INVALID)
            return r;
        b->n += r == 0;
        b->last = VG_MAX(b->last, rev);
    }
    return 0;
}

static int publish_parts(struct vg_etcd_engine *e)
{
    struct vg_etcd_feed *f = &e->feed;
    struct vg_commit_batch *b = new_batch(f->told, f->n_parts);
    if (!b)
        return -ENOMEM;
    int r = fill_batch(e, b);
    if (r < 0 || b->last == f->told) {
        vg_commit_batch_free(&b->tail);
        return r;
    }
    f->newest_event = b->last;
    f->is_certain = true;
    publish(e, b);
    return 0;
}

/* ---- the stream ---- */

static void on_retry(struct vg_timer *t)
{
    start(VG_CONTAINER_OF(t, struct vg_etcd_engine, feed.retry));
}

static void lose(struct vg_etcd_engine *e, const char *why)
{
    struct vg_etcd_feed *f = &e->feed;
    vg_grpc_cancel(&f->call);
    vg_grpc_cancel(&f->status);
    f->is_up = f->is_created = f->is_asking = f->orders_progress = false;
    if (e->is_draining) {
        forget_parts(f);
        return;
    }
    uint64_t wait_ms = RETRY_FIRST_MS << VG_MIN(f->failures, (uint32_t)6);
    f->failures++;
    atomic_fetch_add_explicit(&e->n_restarts, 1, memory_order_relaxed);
    vg_warn(e->opts.log, "watch_lost", "told=%" PRIu64 " why=%s", f->told, why);
    forget_parts(f); /* `why` may lie there */
    vg_timer_start(e->loop, &f->retry, VG_MIN(wait_ms, (uint64_t)RETRY_MAX_MS) * VG_NS_PER_MS,
                   on_retry);
}

static void on_version(struct vg_grpc_call *call)
{
    struct vg_etcd_engine *e = VG_CONTAINER_OF(call, struct vg_etcd_engine, feed.status);
    VG_AUTO(arena) arena = {0};
    Etcd__StatusResponse *res;
    e->feed.is_asking = false;
    if (call->status.code == VG_GRPC_OK &&
        vg_etcd_answer(call, &vg_etcd_status, &arena, &res) == 0) {
        e->feed.orders_progress = vg_etcd_orders_progress(res->version);
        atomic_store_explicit(&e->db_bytes, (uint64_t)res->dbsize, memory_order_relaxed);
        vg_info(e->opts.log, "watch_up", "endpoint=%s version=%s told=%" PRIu64 " progress=%s",
                vg_grpc_pool_endpoint(vg_etcd_client_pool(e->client), call->used), res->version,
                e->feed.told, e->feed.orders_progress ? "requests" : "barrier");
    }
    vg_buf_done(&call->answer);
    /* Without its version nobody could tell how far the watch is. */
    if (call->status.code == VG_GRPC_UNAVAILABLE ||
        call->status.code == VG_GRPC_DEADLINE_EXCEEDED) {
        lose(e, call->status.message);
    } else if (!e->feed.orders_progress && !e->feed.with_barrier) {
        e->feed.with_barrier = true;
        lose(e, "the member is of an older version: the watch begins with the barrier");
    }
}

/* Of the member to which the stream goes: another's may differ while a cluster is upgraded. */
static void ask_version(struct vg_etcd_engine *e)
{
    Etcd__StatusRequest req = ETCD__STATUS_REQUEST__INIT;
    struct vg_etcd_feed *f = &e->feed;
    if (f->is_asking)
        return;
    f->status = (struct vg_grpc_call){.on_end = on_version, .endpoint = f->call.used};
    f->is_asking = vg_etcd_start(e, &vg_etcd_status, &req.base, &f->status) == 0;
}

/* ---- after a gap ---- */

static void on_look(struct vg_grpc_call *call)
{
    struct vg_etcd_engine *e = VG_CONTAINER_OF(call, struct vg_etcd_engine, feed.look);
    VG_AUTO(arena) arena = {0};
    Etcd__RangeResponse *res;
    e->feed.is_looking = false;
    int r = call->status.code == VG_GRPC_OK ? vg_etcd_answer(call, &vg_etcd_range, &arena, &res)
                                            : VIGIL_E_NETWORK;
    vg_buf_done(&call->answer);
    struct vg_commit_batch *b =
        r == 0 && res->header ? new_batch((vg_rev)res->header->revision, 0) : NULL;
    if (!b) {
        lose(e, "the revision cannot be read");
        return;
    }
    b->is_gap = true;
    e->feed.newest_event = b->last;
    e->feed.is_certain = false;
    publish(e, b);
    start(e);
}

/* The history behind what was told is gone: from the present on. */
static void skip_gap(struct vg_etcd_engine *e)
{
    Etcd__RangeRequest req = ETCD__RANGE_REQUEST__INIT;
    struct vg_etcd_feed *f = &e->feed;
    vg_grpc_cancel(&f->call);
    f->is_up = f->is_created = false;
    forget_parts(f);
    vg_warn(e->opts.log, "watch_compacted", "told=%" PRIu64, f->told);
    req.key = vg_etcd_data(e->space.prefix_s);
    req.count_only = true;
    f->look = (struct vg_grpc_call){.on_end = on_look};
    f->is_looking = vg_etcd_start(e, &vg_etcd_range, &req.base, &f->look) == 0;
    if (!f->is_looking)
        lose(e, "out of memory");
}

/* ---- messages ---- */

static int gather(struct vg_etcd_feed *f, const Etcd__WatchResponse *res)
{
    size_t want = f->n_parts + res->n_events;
    if (want > f->cap_parts) {
        Etcd__Event **v = vg_reallocarray(f->parts, want * 2, sizeof *v);
        if (!v)
            return -ENOMEM;
        f->parts = v;
        f->cap_parts = want * 2;
    }
    if (res->n_events)
        memcpy(f->parts + f->n_parts, res->events, res->n_events * sizeof *f->parts);
    f->n_parts = want;
    return 0;
}

static void take_events(struct vg_etcd_engine *e, const Etcd__WatchResponse *res)
{
    struct vg_etcd_feed *f = &e->feed;
    int r = gather(f, res);
    if (r == 0 && res->fragment)
        return;
    if (r == 0)
        r = publish_parts(e);
    forget_parts(f);
    if (r < 0)
        lose(e, vg_err_text(r));
}

static void on_message(struct vg_grpc_call *call, struct vg_slice message)
{
    struct vg_etcd_engine *e = engine_of(call);
    struct vg_etcd_feed *f = &e->feed;
    Etcd__WatchResponse *res;
    int r = vg_etcd_unpack(&etcd__watch_response__descriptor, message, &f->arena, &res);
    if (r < 0) {
        lose(e, vg_err_text(r));
        return;
    }
    if (res->canceled && res->compact_revision > 0) {
        vg_etcd_saw_compacted(e, (vg_rev)res->compact_revision);
        skip_gap(e);
    } else if (res->canceled) {
        lose(e, res->cancel_reason[0] ? res->cancel_reason : "cancelled by etcd");
    } else if (res->created) {
        f->is_created = true;
        f->failures = 0;
        forget_parts(f);
        ask_version(e);
    } else if (res->n_events) {
        take_events(e, res);
    } else {
        vg_rev rev = res->header && f->orders_progress ? (vg_rev)res->header->revision : 0;
        if (f->n_parts == 0) {
            forget_parts(f);
            vg_etcd_feed_advance(e, rev);
        }
    }
}

static void on_end(struct vg_grpc_call *call)
{
    struct vg_etcd_engine *e = engine_of(call);
    lose(e, call->status.message[0] ? call->status.message : vg_grpc_code_name(call->status.code));
}

static void start(struct vg_etcd_engine *e)
{
    struct vg_etcd_feed *f = &e->feed;
    if (f->is_up || e->is_draining)
        return;
    f->call = (struct vg_grpc_call){.on_message = on_message, .on_end = on_end};
    int r = vg_etcd_start_watch(e, f->told, &f->call);
    f->is_up = r == 0;
    if (r < 0)
        lose(e, vg_err_text(r));
}

void vg_etcd_feed_start(struct vg_etcd_engine *e)
{
    start(e);
}

void vg_etcd_feed_stop(struct vg_etcd_engine *e)
{
    struct vg_etcd_feed *f = &e->feed;
    vg_timer_stop(e->loop, &f->retry);
    vg_grpc_cancel(&f->call);
    vg_grpc_cancel(&f->status);
    vg_grpc_cancel(&f->look);
    f->is_up = f->is_asking = f->is_looking = false;
    vg_buf_done(&f->status.answer);
    vg_buf_done(&f->look.answer);
    vg_arena_done(&f->arena);
    vg_free(f->parts);
    f->parts = NULL;
    f->n_parts = f->cap_parts = 0;
}
