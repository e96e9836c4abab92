/* compact.c - the history below: forgetting it, together with other servers, and knowing where it
 * begins.
 *
 * Servers agree as kube-apiserver's do, and with them: every compact_ms each tries to raise the
 * version of one key from what it saw last. Who succeeds compacts to the revision that it noted a
 * turn before, so at least that long is kept; the others note the new version and wait.
 *
 * etcd says that a revision is compacted but not below what, except to watches. It is found by
 * halving: a read of a revision fails exactly below it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "engine.h"

static const char agreed_key[] = "compact_rev_key"; /* kube-apiserver's */

/* ---- where it begins ---- */

static void probe(struct vg_etcd_engine *e);

static void answer_all(struct vg_etcd_engine *e, struct vg_mail *list)
{
    while (list) {
        struct vg_store_req *req = VG_CONTAINER_OF(list, struct vg_store_req, mail);
        list = list->next;
        req->compact_rev = atomic_load_explicit(&e->compacted, memory_order_acquire);
        vg_storage_answer(req, VIGIL_E_COMPACTED);
    }
}

static void found(struct vg_etcd_engine *e, vg_rev compacted)
{
    struct vg_etcd_compactor *c = &e->compactor;
    c->is_searching = false;
    if (compacted > 1)
        vg_etcd_saw_compacted(e, compacted);
    answer_all(e, vg_steal(c->flying));
    if (c->waiting && !e->is_draining)
        vg_etcd_find_compacted(e);
}

static void on_probe(struct vg_grpc_call *call)
{
    struct vg_etcd_engine *e = VG_CONTAINER_OF(call, struct vg_etcd_engine, compactor.search);
    struct vg_etcd_compactor *c = &e->compactor;
    int err = vg_etcd_error(&call->status, false, NULL);
    vg_buf_done(&call->answer);
    if (err == VIGIL_E_COMPACTED)
        c->low = c->mid + 1;
    else if (err == 0)
        c->high = c->mid;
    else
        c->high = c->low; /* what is known has to do */
    probe(e);
}

static void probe(struct vg_etcd_engine *e)
{
    Etcd__RangeRequest req = ETCD__RANGE_REQUEST__INIT;
    struct vg_etcd_compactor *c = &e->compactor;
    if (c->low >= c->high) {
        found(e, c->low);
        return;
    }
    /* The first guess is that nothing has changed. */
    c->mid = c->high == VG_REV_MAX ? c->low : c->low + (c->high - c->low) / 2;
    if (c->high == VG_REV_MAX)
        c->high = VG_MAX(atomic_load_explicit(&e->rev, memory_order_acquire), c->low + 1);
    req.key = vg_etcd_data(e->space.prefix_s);
    req.revision = (int64_t)c->mid;
    req.count_only = true;
    c->search = (struct vg_grpc_call){.on_end = on_probe};
    if (vg_etcd_start(e, &vg_etcd_range, &req.base, &c->search) < 0)
        found(e, c->low);
}

void vg_etcd_find_compacted(struct vg_etcd_engine *e)
{
    struct vg_etcd_compactor *c = &e->compactor;
    if (c->is_searching)
        return;
    c->is_searching = true;
    c->flying = vg_steal(c->waiting);
    c->low = VG_MAX(atomic_load_explicit(&e->compacted, memory_order_acquire), (vg_rev)1);
    c->high = VG_REV_MAX;
    probe(e);
}

void vg_etcd_answer_compacted(struct vg_etcd_engine *e, struct vg_store_req *req)
{
    vg_fail(&req->status, VIGIL_E_COMPACTED, "%s", vg_err_text(VIGIL_E_COMPACTED));
    if (e->is_draining) {
        vg_storage_answer(req, VIGIL_E_COMPACTED);
        return;
    }
    req->mail.next = e->compactor.waiting;
    e->compactor.waiting = &req->mail;
    vg_etcd_find_compacted(e);
}

/* ---- when asked ---- */

struct compact_job {
    struct vg_etcd_job job;
    struct vg_compact *compact;
};

static void finish(struct compact_job *j, int err)
{
    struct vg_etcd_engine *e = j->job.e;
    struct vg_store_req *req = &j->compact->req;
    vg_etcd_job_end(&j->job);
    req->rev = atomic_load_explicit(&e->rev, memory_order_acquire);
    if (err == 0)
        vg_etcd_saw_compacted(e, j->compact->at);
    if (err == VIGIL_E_COMPACTED)
        vg_etcd_answer_compacted(e, req);
    else
        vg_storage_answer(req, err);
    vg_etcd_job_done(&j->job);
    vg_free(j);
}

static void on_compacted(struct vg_grpc_call *call)
{
    struct compact_job *j = VG_CONTAINER_OF(call, struct compact_job, job.call);
    finish(j, vg_etcd_error(&call->status, false, &j->compact->req.status));
}

static void run(struct vg_mail *mail)
{
    struct compact_job *j = VG_CONTAINER_OF(mail, struct compact_job, job.mail);
    Etcd__CompactionRequest req = ETCD__COMPACTION_REQUEST__INIT;
    vg_etcd_job_begin(&j->job);
    req.revision = (int64_t)j->compact->at;
    j->job.call.on_end = on_compacted;
    int r = j->job.e->is_draining
                ? VIGIL_E_CLOSED
                : vg_etcd_start(j->job.e, &vg_etcd_compact, &req.base, &j->job.call);
    if (r < 0)
        finish(j, r);
}

static bool abandon(struct vg_etcd_job *job, bool now)
{
    (void)now;
    vg_grpc_cancel(&job->call);
    finish(VG_CONTAINER_OF(job, struct compact_job, job), VIGIL_E_CLOSED);
    return true;
}

int vg_etcd_submit_compact(struct vg_storage *s, struct vg_compact *compact)
{
    struct vg_etcd_engine *e = vg_etcd_engine_of(s);
    if (!compact->req.loop || !compact->req.done)
        return VIGIL_E_INVALID;
    struct compact_job *j = vg_new(struct compact_job);
    if (!j)
        return -ENOMEM;
    vg_etcd_job_init(e, &j->job);
    j->job.mail.run = run;
    j->job.abandon = abandon;
    j->compact = compact;
    int r = vg_etcd_job_post(&j->job);
    if (r == 0)
        return 0;
    vg_etcd_job_done(&j->job);
    vg_free(j);
    compact->req.err = r;
    return vg_fail(&compact->req.status, r, "%s", vg_err_text(r));
}

/* ---- by itself ---- */

static void wait(struct vg_etcd_engine *e);

static void on_turn_compacted(struct vg_grpc_call *call)
{
    struct vg_etcd_engine *e = VG_CONTAINER_OF(call, struct vg_etcd_engine, compactor.call);
    struct vg_etcd_compactor *c = &e->compactor;
    struct vg_status status = {0};
    int err = vg_etcd_error(&call->status, false, &status);
    vg_buf_done(&call->answer);
    if (err == 0) {
        vg_etcd_saw_compacted(e, c->target);
        vg_debug(e->opts.log, "compacted", "revision=%" PRIu64, c->target);
    } else if (err != VIGIL_E_COMPACTED) {
        vg_warn(e->opts.log, "compaction_failed", "revision=%" PRIu64 " why=%s", c->target,
                status.message);
    }
    wait(e);
}

static void compact_to(struct vg_etcd_engine *e, vg_rev rev)
{
    Etcd__CompactionRequest req = ETCD__COMPACTION_REQUEST__INIT;
    struct vg_etcd_compactor *c = &e->compactor;
    c->target = rev;
    req.revision = (int64_t)rev;
    c->call = (struct vg_grpc_call){.on_end = on_turn_compacted};
    c->is_up = vg_etcd_start(e, &vg_etcd_compact, &req.base, &c->call) == 0;
    if (!c->is_up)
        wait(e);
}

static const Etcd__KeyValue *seen(const Etcd__TxnResponse *res)
{
    const Etcd__ResponseOp *r = res->n_responses ? res->responses[0] : NULL;
    bool is_range = r && r->response_case == ETCD__RESPONSE_OP__RESPONSE_RESPONSE_RANGE;
    return is_range && r->response_range->n_kvs ? r->response_range->kvs[0] : NULL;
}

/* Another server's turn: it compacts to what the key says. */
static void note_other(struct vg_etcd_engine *e, const Etcd__KeyValue *kv)
{
    char digits[24] = "";
    if (!kv)
        return;
    e->compactor.version = kv->version;
    if (kv->value.len)
        memcpy(digits, kv->value.data, VG_MIN(kv->value.len, sizeof digits - 1));
    vg_rev rev = (vg_rev)strtoull(digits, NULL, 10);
    if (rev > 1 && rev <= atomic_load_explicit(&e->rev, memory_order_acquire))
        vg_etcd_saw_compacted(e, rev);
}

static void on_turn(struct vg_grpc_call *call)
{
    struct vg_etcd_engine *e = VG_CONTAINER_OF(call, struct vg_etcd_engine, compactor.call);
    struct vg_etcd_compactor *c = &e->compactor;
    VG_AUTO(arena) arena = {0};
    Etcd__TxnResponse *res = NULL;
    int r = call->status.code == VG_GRPC_OK ? vg_etcd_answer(call, &vg_etcd_txn, &arena, &res)
                                            : VIGIL_E_NETWORK;
    vg_buf_done(&call->answer);
    c->is_up = false;
    if (r < 0 || !res->header) {
        wait(e);
        return;
    }
    vg_rev target = c->next;
    c->next = (vg_rev)res->header->revision;
    vg_etcd_saw_rev(e, res->header->revision);
    if (!res->succeeded) {
        note_other(e, seen(res));
        wait(e);
        return;
    }
    c->version++;
    if (target)
        compact_to(e, target);
    else
        wait(e); /* the first turn only notes where it is */
}

static void take_turn(struct vg_timer *t)
{
    struct vg_etcd_engine *e = VG_CONTAINER_OF(t, struct vg_etcd_engine, compactor.timer);
    struct vg_etcd_compactor *c = &e->compactor;
    struct vg_slice key = VG_SLICE_LIT(agreed_key);
    char digits[24];
    Etcd__Compare compare = ETCD__COMPARE__INIT, *compares[] = {&compare};
    Etcd__PutRequest put = ETCD__PUT_REQUEST__INIT;
    Etcd__RangeRequest get = ETCD__RANGE_REQUEST__INIT;
    Etcd__RequestOp then = ETCD__REQUEST_OP__INIT, *thens[] = {&then};
    Etcd__RequestOp otherwise = ETCD__REQUEST_OP__INIT, *otherwises[] = {&otherwise};
    Etcd__TxnRequest req = ETCD__TXN_REQUEST__INIT;
    snprintf(digits, sizeof digits, "%" PRIu64, c->next);
    compare.target = ETCD__COMPARE__COMPARE_TARGET__VERSION;
    compare.key = vg_etcd_data(key);
    compare.target_union_case = ETCD__COMPARE__TARGET_UNION_VERSION;
    compare.version = c->version;
    put.key = get.key = vg_etcd_data(key);
    put.value = vg_etcd_data(vg_slice_str(digits));
    then.request_case = ETCD__REQUEST_OP__REQUEST_REQUEST_PUT;
    then.request_put = &put;
    otherwise.request_case = ETCD__REQUEST_OP__REQUEST_REQUEST_RANGE;
    otherwise.request_range = &get;
    req.n_compare = req.n_success = req.n_failure = 1;
    req.compare = compares;
    req.success = thens;
    req.failure = otherwises;
    c->call = (struct vg_grpc_call){.on_end = on_turn};
    c->is_up = vg_etcd_start(e, &vg_etcd_txn, &req.base, &c->call) == 0;
    if (!c->is_up)
        wait(e);
}

static void wait(struct vg_etcd_engine *e)
{
    e->compactor.is_up = false;
    if (e->eo.compact_ms && !e->is_draining)
        vg_timer_start(e->loop, &e->compactor.timer, e->eo.compact_ms * VG_NS_PER_MS, take_turn);
}

void vg_etcd_compactor_start(struct vg_etcd_engine *e)
{
    wait(e);
}

void vg_etcd_compactor_stop(struct vg_etcd_engine *e)
{
    struct vg_etcd_compactor *c = &e->compactor;
    vg_timer_stop(e->loop, &c->timer);
    vg_grpc_cancel(&c->call);
    vg_buf_done(&c->call.answer);
    vg_grpc_cancel(&c->search);
    vg_buf_done(&c->search.answer);
    found(e, 0);
    answer_all(e, vg_steal(c->waiting));
}
