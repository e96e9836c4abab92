/* txn.c - a transaction: made into etcd's on the caller's thread, sent once, judged by its answer.
 *
 * Each operation with an expectation becomes a comparison of the key's mod_revision (0: absent); if
 * any fails, etcd reads those keys instead, so that a conflict says what is there. A time to live
 * is a lease of its own, granted first under a number that we draw; it goes with the key, or by
 * itself when nothing comes to be attached to it. */
#include <errno.h>

#include "base/alloc.h"
#include "txn_int.h"

static struct vg_etcd_txn_job *txn_job_of(struct vg_etcd_job *job)
{
    return VG_CONTAINER_OF(job, struct vg_etcd_txn_job, job);
}

/* ---- the end ---- */

static void free_job(struct vg_etcd_txn_job *t)
{
    vg_buf_done(&t->bytes);
    vg_grpc_msg_unref(t->msg);
    vg_etcd_doubt_free(t->doubt);
    vg_arena_done(&t->arena);
    vg_etcd_job_done(&t->job);
    vg_free(t);
}

static void answer(struct vg_etcd_txn_job *t, int err)
{
    struct vg_etcd_engine *e = t->job.e;
    vg_etcd_job_end(&t->job);
    vg_etcd_own_answered(e, vg_steal(t->own), err == 0 ? t->txn->req.rev : 0);
    atomic_fetch_sub_explicit(&e->n_txns_waiting, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&e->n_txns, 1, memory_order_relaxed);
    if (err == VIGIL_E_CONFLICT)
        atomic_fetch_add_explicit(&e->n_conflicts, 1, memory_order_relaxed);
    vg_storage_answer(&t->txn->req, err);
    free_job(t);
}

/* A lease to which nothing came to be attached. */
struct revocation {
    struct vg_etcd_job job;
};

static void on_revoked(struct vg_grpc_call *call)
{
    struct revocation *v = VG_CONTAINER_OF(call, struct revocation, job.call);
    vg_etcd_job_end(&v->job);
    vg_etcd_job_done(&v->job);
    vg_free(v);
}

static bool abandon_revocation(struct vg_etcd_job *job, bool now)
{
    (void)now;
    vg_grpc_cancel(&job->call);
    on_revoked(&job->call);
    return true;
}

/* As far as it is easily done: leases end by themselves. */
static void revoke_lease(struct vg_etcd_engine *e, int64_t lease)
{
    Etcd__LeaseRevokeRequest req = ETCD__LEASE_REVOKE_REQUEST__INIT;
    struct revocation *v = vg_new(struct revocation);
    if (!v)
        return;
    req.id = lease;
    vg_etcd_job_init(e, &v->job);
    v->job.abandon = abandon_revocation;
    v->job.call.on_end = on_revoked;
    vg_etcd_job_begin(&v->job);
    if (vg_etcd_start(e, &vg_etcd_lease_revoke, &req.base, &v->job.call) < 0)
        on_revoked(&v->job.call);
}

static void fail(struct vg_etcd_txn_job *t, int err)
{
    for (size_t i = 0; i < t->n_granted && err != VIGIL_E_UNKNOWN_OUTCOME; i++)
        revoke_lease(t->job.e, t->leases[i]);
    answer(t, err);
}

/* ---- judging ---- */

static const Etcd__KeyValue *prev_of(const Etcd__ResponseOp *op)
{
    switch (op->response_case) {
    case ETCD__RESPONSE_OP__RESPONSE_RESPONSE_PUT:
        return op->response_put->prev_kv;
    case ETCD__RESPONSE_OP__RESPONSE_RESPONSE_DELETE_RANGE:
        return op->response_delete_range->n_prev_kvs ? op->response_delete_range->prev_kvs[0]
                                                     : NULL;
    case ETCD__RESPONSE_OP__RESPONSE_RESPONSE_RANGE:
        return op->response_range->n_kvs ? op->response_range->kvs[0] : NULL;
    default:
        return NULL;
    }
}

static int take_prev(struct vg_etcd_txn_job *t, struct vg_op *op, const Etcd__KeyValue *kv)
{
    return kv ? vg_etcd_record(t->job.e, kv, false, &op->prev) : 0;
}

static bool has_changed(const struct vg_op *op, const Etcd__ResponseOp *r)
{
    return op->type == VG_OP_PUT ||
           (op->type == VG_OP_DELETE && r->response_delete_range &&
            r->response_case == ETCD__RESPONSE_OP__RESPONSE_RESPONSE_DELETE_RANGE &&
            r->response_delete_range->deleted > 0);
}

/* The caller's record is what the key holds now, as far as it is known. */
static void stamp(struct vg_op *op, vg_rev rev, uint32_t sub)
{
    struct vg_rec *rec = op->rec;
    rec->rev = rev;
    rec->sub = sub;
    rec->prev_rev = vg_etcd_has_expectation(op) ? op->expect : 0;
    if (op->type == VG_OP_PUT && op->expect == 0) {
        rec->create_rev = rev;
        rec->version = 1;
    }
}

/* It happened, whatever fails from here on: without memory, what was there before is left out. */
static int judge_success(struct vg_etcd_txn_job *t, const Etcd__TxnResponse *res)
{
    struct vg_etcd_engine *e = t->job.e;
    struct vg_txn *txn = t->txn;
    uint32_t n_changed = 0;
    if (res->n_responses != txn->n_ops)
        return VIGIL_E_UNKNOWN_OUTCOME;
    for (uint32_t i = 0; i < txn->n_ops; i++) {
        struct vg_op *op = &txn->ops[i];
        if (has_changed(op, res->responses[i])) {
            stamp(op, txn->req.rev, n_changed++);
            atomic_fetch_add_explicit(op->type == VG_OP_PUT ? &e->n_puts : &e->n_deletes, 1,
                                      memory_order_relaxed);
        }
        if (!txn->no_prev && take_prev(t, op, prev_of(res->responses[i])) < 0)
            op->prev = NULL;
    }
    if (n_changed)
        e->push.own = VG_MAX(e->push.own, txn->req.rev);
    return 0;
}

static int judge_failure(struct vg_etcd_txn_job *t, const Etcd__TxnResponse *res)
{
    struct vg_txn *txn = t->txn;
    size_t at = 0;
    for (uint32_t i = 0; i < txn->n_ops; i++) {
        struct vg_op *op = &txn->ops[i];
        if (!vg_etcd_has_expectation(op))
            continue;
        const Etcd__KeyValue *kv = at < res->n_responses ? prev_of(res->responses[at]) : NULL;
        at++;
        if ((kv ? (vg_rev)kv->mod_revision : 0) == op->expect)
            continue;
        txn->failed_op = i;
        int r = take_prev(t, op, kv);
        return r < 0 ? r
                     : vg_fail(&txn->req.status, VIGIL_E_CONFLICT, "%s",
                               vg_err_text(VIGIL_E_CONFLICT));
    }
    return vg_fail(&txn->req.status, VIGIL_E_INTERNAL,
                   "etcd says that a comparison failed, and none did");
}

static int judge(struct vg_etcd_txn_job *t)
{
    Etcd__TxnResponse *res;
    int r = vg_etcd_answer(&t->job.call, &vg_etcd_txn, &t->arena, &res);
    if (r < 0 || !res->header)
        return vg_fail(&t->txn->req.status, VIGIL_E_UNKNOWN_OUTCOME,
                       "etcd's answer to a transaction cannot be read: %s", vg_err_text(r));
    t->txn->req.rev = (vg_rev)res->header->revision;
    vg_etcd_saw_rev(t->job.e, res->header->revision);
    return res->succeeded ? judge_success(t, res) : judge_failure(t, res);
}

/* ---- sending ---- */

static void on_resolved(void *arg, int err)
{
    struct vg_etcd_txn_job *t = arg;
    if (err == VIGIL_E_UNKNOWN_OUTCOME)
        atomic_fetch_add_explicit(&t->job.e->n_unknown, 1, memory_order_relaxed);
    else
        atomic_fetch_add_explicit(&t->job.e->n_resolved, 1, memory_order_relaxed);
    for (uint32_t i = 0; i < t->txn->n_ops && err == 0; i++)
        stamp(&t->txn->ops[i], t->txn->req.rev, i);
    if (err < 0)
        fail(t, err);
    else
        answer(t, 0);
}

static void resolve(struct vg_etcd_txn_job *t)
{
    char why[VG_STATUS_MESSAGE_MAX];
    memcpy(why, t->txn->req.status.message, sizeof why);
    int r = vg_etcd_doubt_start(t->job.e, t->txn, why, on_resolved, t, &t->doubt);
    if (r < 0)
        on_resolved(t, VIGIL_E_UNKNOWN_OUTCOME);
}

static void on_txn(struct vg_grpc_call *call)
{
    struct vg_etcd_txn_job *t = VG_CONTAINER_OF(call, struct vg_etcd_txn_job, job.call);
    int err = vg_etcd_error(&call->status, true, &t->txn->req.status);
    if (err == VIGIL_E_TOO_LARGE)
        err = t->txn->req.status.err = VIGIL_E_VALUE_TOO_LARGE;
    if (err == 0)
        err = judge(t);
    if (err == VIGIL_E_UNKNOWN_OUTCOME)
        resolve(t);
    else if (err < 0)
        fail(t, err);
    else
        answer(t, 0);
}

static void send_txn(struct vg_etcd_txn_job *t)
{
    struct vg_etcd_engine *e = t->job.e;
    vg_buf_done(&t->job.call.answer);
    t->job.call = (struct vg_grpc_call){
        .path = vg_etcd_txn.path,
        .msg = vg_steal(t->msg),
        .timeout_ms = vg_etcd_request_ms(e),
        .flags = vg_etcd_txn.flags | VG_GRPC_WAIT,
        .on_end = on_txn,
    };
    int r = vg_grpc_start(vg_etcd_client_pool(e->client), &t->job.call);
    t->is_sent = r == 0;
    if (r == 0 && t->bytes.n)
        t->own = vg_etcd_own_add(e, t->txn->ops[0].rec, &t->bytes);
    if (r < 0)
        fail(t, r);
}

static void grant(struct vg_etcd_txn_job *t);

static void on_granted(struct vg_grpc_call *call)
{
    struct vg_etcd_txn_job *t = VG_CONTAINER_OF(call, struct vg_etcd_txn_job, job.call);
    int err = vg_etcd_error(&call->status, false, &t->txn->req.status);
    vg_buf_done(&call->answer);
    if (err < 0) {
        fail(t, err);
        return;
    }
    t->n_granted++;
    if (t->n_granted < t->n_leases)
        grant(t);
    else
        send_txn(t);
}

static void grant(struct vg_etcd_txn_job *t)
{
    Etcd__LeaseGrantRequest req = ETCD__LEASE_GRANT_REQUEST__INIT;
    req.id = t->leases[t->n_granted];
    req.ttl = t->ttls[t->n_granted];
    t->job.call = (struct vg_grpc_call){.on_end = on_granted};
    int r = vg_etcd_start(t->job.e, &vg_etcd_lease_grant, &req.base, &t->job.call);
    if (r < 0)
        fail(t, r);
}

static void run(struct vg_mail *mail)
{
    struct vg_etcd_txn_job *t = VG_CONTAINER_OF(mail, struct vg_etcd_txn_job, job.mail);
    vg_etcd_job_begin(&t->job);
    if (t->job.e->is_draining)
        answer(t, VIGIL_E_CLOSED);
    else if (t->n_leases)
        grant(t);
    else
        send_txn(t);
}

/* What was sent is waited for, as long as that may take. */
static bool abandon(struct vg_etcd_job *job, bool now)
{
    struct vg_etcd_txn_job *t = txn_job_of(job);
    if (t->is_sent && !now)
        return false;
    vg_grpc_cancel(&job->call);
    answer(t, t->is_sent ? VIGIL_E_UNKNOWN_OUTCOME : VIGIL_E_CLOSED);
    return true;
}

/* ---- the way in ---- */

static int refuse(struct vg_etcd_txn_job *t, int err)
{
    struct vg_etcd_engine *e = t->job.e;
    struct vg_txn *txn = t->txn;
    atomic_fetch_sub_explicit(&e->n_txns_waiting, 1, memory_order_relaxed);
    free_job(t);
    txn->req.err = err;
    return vg_fail(&txn->req.status, err, "%s", vg_err_text(err));
}

int vg_etcd_submit_txn(struct vg_storage *s, struct vg_txn *txn)
{
    struct vg_etcd_engine *e = vg_etcd_engine_of(s);
    if (!txn->req.loop || !txn->req.done)
        return VIGIL_E_INVALID;
    for (uint32_t i = 0; i < txn->n_ops; i++)
        txn->ops[i].prev = vg_rec_unref(txn->ops[i].prev);
    struct vg_etcd_txn_job *t = vg_new(struct vg_etcd_txn_job);
    if (!t)
        return -ENOMEM;
    vg_etcd_job_init(e, &t->job);
    t->job.mail.run = run;
    t->job.abandon = abandon;
    t->job.is_write = true;
    t->txn = txn;
    size_t ahead = atomic_fetch_add_explicit(&e->n_txns_waiting, 1, memory_order_relaxed);
    int r = ahead >= e->opts.queue_max ? VIGIL_E_BUSY : vg_etcd_txn_pack(e, t);
    if (r == 0)
        r = vg_etcd_job_post(&t->job);
    return r < 0 ? refuse(t, r) : 0;
}
