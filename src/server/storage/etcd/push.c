/* push.c - how new must a state be to be current, and bringing the tail there.
 *
 * "How new" is the revision of a linearizable read. Who asks while one is under way shares the
 * next, since the one under way may have begun before.
 *
 * The tail gets there by itself when the revision is a change of ours under the prefix: its event
 * comes. Others may not: the key may lie outside the prefix, and etcd says nothing of it. So after
 * a moment the watch is asked how far it is. Members since 3.4.31, 3.5.13 and 3.6 answer that in
 * order with the changes (and not at all before the watch has caught up, so it is asked again).
 * Older ones may name a revision whose changes are still to come: there a key of ours is written
 * instead, the barrier. Its event comes behind all that was before it. One is under way at a time,
 * for everybody. */
#include <errno.h>

#include "engine.h"

/* 5 ms: most often the event is on its way already. */
#define FIRST_NS (5 * VG_NS_PER_MS)
#define AGAIN_NS (100 * VG_NS_PER_MS)

/* ---- pushing ---- */

static bool is_wanted(struct vg_etcd_engine *e)
{
    return e->push.wanted > e->feed.told && e->push.wanted > e->push.own;
}

static void on_barrier(struct vg_grpc_call *call)
{
    struct vg_etcd_engine *e = VG_CONTAINER_OF(call, struct vg_etcd_engine, push.barrier);
    VG_AUTO(arena) arena = {0};
    Etcd__PutResponse *res;
    e->push.barrier_is_up = false;
    if (call->status.code == VG_GRPC_OK && vg_etcd_answer(call, &vg_etcd_put, &arena, &res) == 0 &&
        res->header) {
        vg_etcd_saw_rev(e, res->header->revision);
        e->push.own = VG_MAX(e->push.own, (vg_rev)res->header->revision);
    }
    vg_buf_done(&call->answer);
}

void vg_etcd_push_barrier(struct vg_etcd_engine *e)
{
    Etcd__PutRequest req = ETCD__PUT_REQUEST__INIT;
    if (e->push.barrier_is_up)
        return;
    req.key = vg_etcd_data(e->space.barrier);
    e->push.barrier = (struct vg_grpc_call){.on_end = on_barrier};
    e->push.barrier_is_up = vg_etcd_start(e, &vg_etcd_put, &req.base, &e->push.barrier) == 0;
    if (e->push.barrier_is_up)
        atomic_fetch_add_explicit(&e->n_barriers, 1, memory_order_relaxed);
}

/* Was a write of ours under way when the revision came to be known? It may be that one. */
static bool may_be_ours(struct vg_etcd_engine *e)
{
    VG_LIST_FOREACH (n, &e->calls) {
        const struct vg_etcd_job *job = VG_CONTAINER_OF(n, struct vg_etcd_job, link);
        if (job->number >= e->push.since)
            return false;
        if (job->is_write)
            return true;
    }
    return false;
}

static void on_timer(struct vg_timer *t)
{
    struct vg_etcd_engine *e = VG_CONTAINER_OF(t, struct vg_etcd_engine, push.timer);
    if (!is_wanted(e))
        return;
    if (e->feed.with_barrier && may_be_ours(e)) {
        vg_timer_start(e->loop, t, FIRST_NS, on_timer);
        return;
    }
    if (e->feed.is_created && e->feed.orders_progress) {
        if (vg_etcd_ask_progress(&e->feed.call) == 0)
            atomic_fetch_add_explicit(&e->n_progress, 1, memory_order_relaxed);
    } else if (e->feed.is_created && !e->feed.is_asking && e->feed.with_barrier) {
        vg_etcd_push_barrier(e);
    }
    vg_timer_start(e->loop, t, AGAIN_NS, on_timer);
}

void vg_etcd_push_want(struct vg_etcd_engine *e, vg_rev rev)
{
    if (rev > e->push.wanted) {
        e->push.wanted = rev;
        e->push.since = e->n_jobs;
    }
    if (is_wanted(e) && !e->push.timer.armed && !e->is_draining)
        vg_timer_start(e->loop, &e->push.timer, FIRST_NS, on_timer);
}

static void on_hurry(struct vg_mail *mail)
{
    struct vg_etcd_engine *e = VG_CONTAINER_OF(mail, struct vg_etcd_engine, push.mail);
    atomic_store_explicit(&e->push.is_posted, false, memory_order_release);
    vg_etcd_push_want(e, atomic_load_explicit(&e->rev, memory_order_acquire));
}

/* Thread: any. */
void vg_etcd_push_hurry(struct vg_watch_host *h)
{
    struct vg_etcd_engine *e = VG_CONTAINER_OF(h, struct vg_etcd_engine, host);
    if (!atomic_exchange_explicit(&e->push.is_posted, true, memory_order_acq_rel))
        (void)!vg_etcd_post(e, &e->push.mail);
}

void vg_etcd_push_init(struct vg_etcd_engine *e)
{
    e->push.mail.run = on_hurry;
}

/* ---- how new ---- */

static void ask_fresh(struct vg_etcd_engine *e);

static void answer_all(struct vg_mail *list, int err, vg_rev rev, const struct vg_status *status)
{
    while (list) {
        struct vg_store_req *req = VG_CONTAINER_OF(list, struct vg_store_req, mail);
        list = list->next;
        req->rev = rev;
        if (status)
            req->status = *status;
        vg_storage_answer(req, err);
    }
}

static void on_fresh(struct vg_grpc_call *call)
{
    struct vg_etcd_engine *e = VG_CONTAINER_OF(call, struct vg_etcd_engine, fresh.call);
    VG_AUTO(arena) arena = {0};
    Etcd__RangeResponse *res = NULL;
    struct vg_status status = {0};
    int err = vg_etcd_error(&call->status, false, &status);
    if (err == 0)
        err = vg_etcd_answer(call, &vg_etcd_range, &arena, &res);
    vg_buf_done(&call->answer);
    vg_rev rev = err == 0 && res->header ? (vg_rev)res->header->revision : 0;
    vg_etcd_saw_rev(e, (int64_t)rev);
    e->fresh.is_up = false;
    if (err == 0)
        vg_etcd_push_want(e, rev);
    answer_all(vg_steal(e->fresh.flying), err, rev, err < 0 ? &status : NULL);
    if (e->fresh.waiting)
        ask_fresh(e);
}

static void ask_fresh(struct vg_etcd_engine *e)
{
    Etcd__RangeRequest req = ETCD__RANGE_REQUEST__INIT;
    req.key = vg_etcd_data(e->space.prefix_s);
    req.count_only = true;
    e->fresh.flying = vg_steal(e->fresh.waiting);
    e->fresh.call = (struct vg_grpc_call){.on_end = on_fresh};
    int r = vg_etcd_start(e, &vg_etcd_range, &req.base, &e->fresh.call);
    e->fresh.is_up = r == 0;
    if (r < 0)
        answer_all(vg_steal(e->fresh.flying), r, 0, NULL);
}

static void run_fresh(struct vg_mail *mail)
{
    struct vg_store_req *req = VG_CONTAINER_OF(mail, struct vg_store_req, mail);
    struct vg_etcd_engine *e = req->engine;
    if (e->is_draining) {
        vg_storage_answer(req, VIGIL_E_CLOSED);
        return;
    }
    mail->next = e->fresh.waiting;
    e->fresh.waiting = mail;
    if (!e->fresh.is_up)
        ask_fresh(e);
}

int vg_etcd_submit_fresh(struct vg_storage *s, struct vg_store_req *req)
{
    struct vg_etcd_engine *e = vg_etcd_engine_of(s);
    if (!req->loop || !req->done)
        return VIGIL_E_INVALID;
    req->engine = e;
    req->mail.run = run_fresh;
    int r = vg_etcd_post(e, &req->mail);
    if (r < 0)
        req->err = vg_fail(&req->status, r, "%s", vg_err_text(r));
    return r;
}

void vg_etcd_push_stop(struct vg_etcd_engine *e)
{
    vg_timer_stop(e->loop, &e->push.timer);
    vg_grpc_cancel(&e->push.barrier);
    vg_buf_done(&e->push.barrier.answer);
    e->push.barrier_is_up = false;
    vg_grpc_cancel(&e->fresh.call);
    vg_buf_done(&e->fresh.call.answer);
    e->fresh.is_up = false;
    answer_all(vg_steal(e->fresh.flying), VIGIL_E_CLOSED, 0, NULL);
    answer_all(vg_steal(e->fresh.waiting), VIGIL_E_CLOSED, 0, NULL);
}
