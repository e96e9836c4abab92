/* txn.c - a transaction: made into etcd's on the caller's thread, sent once, judged by its answer.
 *
 * Each operation with an expectation becomes a comparison of the key's mod_revision (0: absent); if
 * any fails, etcd reads those keys instead, so that a conflict says what is there. A time to live
 * is a lease of its own, granted first under a number that we draw; it goes with the key, or by
 * itself when nothing comes to be attached to it. */
#include <errno.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "engine.h"

/* Beside the values themselves: all that is packed of a transaction. */
#define ARENA_FIRST ((size_t)4096)

struct txn_job {
    struct vg_etcd_job job;
    struct vg_txn *txn;
    struct vg_grpc_msg *msg;
    struct vg_etcd_doubt *doubt;
    struct vg_arena arena; /* leases; the answer */
    int64_t *leases;       /* of the operations with a time to live */
    int64_t *ttls;
    size_t n_leases, n_granted;
    struct vg_buf bytes; /* of a lone put, as it is stored */
    struct vg_etcd_own *own;
    bool is_sent;
};

static struct txn_job *txn_job_of(struct vg_etcd_job *job)
{
    return VG_CONTAINER_OF(job, struct txn_job, job);
}

static bool has_expectation(const struct vg_op *op)
{
    return op->expect != VG_EXPECT_ANY;
}

/* ---- packing ---- */

/* What is packed, all of it in one arena. */
struct packing {
    struct vg_etcd_engine *e;
    struct txn_job *t;
    struct vg_arena arena;
    Etcd__TxnRequest req;
    size_t n; /* operations */
};

static int pack_key(struct packing *p, const struct vg_op *op, ProtobufCBinaryData *ret)
{
    struct vg_etcd_key key;
    int r = vg_etcd_key_make(&p->e->space, vg_rec_key(op->rec), &key);
    char *copy = r == 0 ? vg_arena_copy(&p->arena, key.bytes, key.n) : NULL;
    if (r == 0 && !copy)
        return -ENOMEM;
    if (r == 0)
        *ret = vg_etcd_data(vg_slice(copy, key.n));
    return r;
}

static int pack_value(struct packing *p, const struct vg_op *op, ProtobufCBinaryData *ret)
{
    VG_AUTO(buf) bytes = {0};
    int r = vg_etcd_stored_bytes(p->e, op->rec, &bytes);
    if (r == 0 && p->t->txn->n_ops == 1) {
        p->t->bytes = bytes;
        bytes = (struct vg_buf){0};
        *ret = vg_etcd_data(vg_buf_slice(&p->t->bytes));
        return 0;
    }
    char *copy = r == 0 ? vg_arena_copy(&p->arena, bytes.p, bytes.n) : NULL;
    if (r == 0 && !copy)
        return -ENOMEM;
    if (r == 0)
        *ret = vg_etcd_data(vg_slice(copy, bytes.n));
    return r;
}

static int draw_lease(struct packing *p, const struct vg_op *op, int64_t *ret_lease)
{
    struct txn_job *t = p->t;
    uint64_t id = 0;
    int r = vg_random_bytes(&id, sizeof id);
    if (r < 0)
        return r;
    uint64_t ttl_ms = VG_MIN(op->ttl_ms, VG_TTL_MAX_MS);
    t->ttls[t->n_leases] = (int64_t)((ttl_ms + 999) / 1000);
    *ret_lease = t->leases[t->n_leases] = (int64_t)(id >> 1 | 1);
    t->n_leases++;
    return 0;
}

static int pack_put(struct packing *p, const struct vg_op *op, ProtobufCBinaryData key,
                    Etcd__RequestOp *ret)
{
    Etcd__PutRequest *put = vg_arena_new(&p->arena, Etcd__PutRequest);
    if (!put)
        return -ENOMEM;
    etcd__put_request__init(put);
    put->key = key;
    put->prev_kv = !p->t->txn->no_prev;
    ret->request_case = ETCD__REQUEST_OP__REQUEST_REQUEST_PUT;
    ret->request_put = put;
    int r = pack_value(p, op, &put->value);
    return r == 0 && op->ttl_ms ? draw_lease(p, op, &put->lease) : r;
}

static int pack_delete(struct packing *p, ProtobufCBinaryData key, Etcd__RequestOp *ret)
{
    Etcd__DeleteRangeRequest *del = vg_arena_new(&p->arena, Etcd__DeleteRangeRequest);
    if (!del)
        return -ENOMEM;
    etcd__delete_range_request__init(del);
    del->key = key;
    del->prev_kv = !p->t->txn->no_prev;
    ret->request_case = ETCD__REQUEST_OP__REQUEST_REQUEST_DELETE_RANGE;
    ret->request_delete_range = del;
    return 0;
}

static int pack_get(struct packing *p, ProtobufCBinaryData key, Etcd__RequestOp *ret)
{
    Etcd__RangeRequest *get = vg_arena_new(&p->arena, Etcd__RangeRequest);
    if (!get)
        return -ENOMEM;
    etcd__range_request__init(get);
    get->key = key;
    ret->request_case = ETCD__REQUEST_OP__REQUEST_REQUEST_RANGE;
    ret->request_range = get;
    return 0;
}

/* mod_revision of an absent key counts as 0. */
static int pack_compare(struct packing *p, const struct vg_op *op, ProtobufCBinaryData key)
{
    Etcd__Compare *c = vg_arena_new(&p->arena, Etcd__Compare);
    if (!c)
        return -ENOMEM;
    etcd__compare__init(c);
    c->result = ETCD__COMPARE__COMPARE_RESULT__EQUAL;
    c->target = ETCD__COMPARE__COMPARE_TARGET__MOD;
    c->key = key;
    c->target_union_case = ETCD__COMPARE__TARGET_UNION_MOD_REVISION;
    c->mod_revision = (int64_t)op->expect;
    p->req.compare[p->req.n_compare++] = c;
    return 0;
}

static Etcd__RequestOp *new_op(struct packing *p)
{
    Etcd__RequestOp *op = vg_arena_new(&p->arena, Etcd__RequestOp);
    if (op)
        etcd__request_op__init(op);
    return op;
}

static int pack_op(struct packing *p, const struct vg_op *op)
{
    Etcd__RequestOp *then = new_op(p), *otherwise = new_op(p);
    ProtobufCBinaryData key = {0};
    if (!then || !otherwise)
        return -ENOMEM;
    int r = pack_key(p, op, &key);
    if (r == 0)
        r = op->type == VG_OP_PUT      ? pack_put(p, op, key, then)
            : op->type == VG_OP_DELETE ? pack_delete(p, key, then)
                                       : pack_get(p, key, then);
    if (r < 0)
        return r;
    p->req.success[p->req.n_success++] = then;
    if (!has_expectation(op))
        return 0;
    r = pack_compare(p, op, key);
    if (r == 0)
        r = pack_get(p, key, otherwise);
    p->req.failure[p->req.n_failure++] = otherwise;
    return r;
}

static int pack_all(struct packing *p)
{
    const struct vg_txn *txn = p->t->txn;
    size_t n = txn->n_ops;
    etcd__txn_request__init(&p->req);
    p->req.compare = vg_arena_array(&p->arena, Etcd__Compare *, n);
    p->req.success = vg_arena_array(&p->arena, Etcd__RequestOp *, n);
    p->req.failure = vg_arena_array(&p->arena, Etcd__RequestOp *, n);
    p->t->leases = vg_arena_array(&p->t->arena, int64_t, n);
    p->t->ttls = vg_arena_array(&p->t->arena, int64_t, n);
    if (!p->req.compare || !p->req.success || !p->req.failure || !p->t->leases || !p->t->ttls)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        int r = pack_op(p, &txn->ops[i]);
        if (r < 0)
            return r;
    }
    p->t->msg = vg_etcd_pack(&p->req.base);
    return p->t->msg ? 0 : -ENOMEM;
}

static int pack(struct vg_etcd_engine *e, struct txn_job *t)
{
    struct packing p = {.e = e, .t = t};
    vg_arena_init(&p.arena, ARENA_FIRST, 0);
    vg_arena_init(&t->arena, ARENA_FIRST, 0);
    int r = pack_all(&p);
    vg_arena_done(&p.arena);
    return r;
}

/* ---- the end ---- */

static void free_job(struct txn_job *t)
{
    vg_buf_done(&t->bytes);
    vg_grpc_msg_unref(t->msg);
    vg_etcd_doubt_free(t->doubt);
    vg_arena_done(&t->arena);
    vg_etcd_job_done(&t->job);
    vg_free(t);
}

static void answer(struct txn_job *t, int err)
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

static void fail(struct txn_job *t, int err)
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

static int take_prev(struct txn_job *t, struct vg_op *op, const Etcd__KeyValue *kv)
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
    rec->prev_rev = has_expectation(op) ? op->expect : 0;
    if (op->type == VG_OP_PUT && op->expect == 0) {
        rec->create_rev = rev;
        rec->version = 1;
    }
}

/* It happened, whatever fails from here on: without memory, what was there before is left out. */
static int judge_success(struct txn_job *t, const Etcd__TxnResponse *res)
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

static int judge_failure(struct txn_job *t, const Etcd__TxnResponse *res)
{
    struct vg_txn *txn = t->txn;
    size_t at = 0;
    for (uint32_t i = 0; i < txn->n_ops; i++) {
        struct vg_op *op = &txn->ops[i];
        if (!has_expectation(op))
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

static int judge(struct txn_job *t)
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
    struct txn_job *t = arg;
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

static void resolve(struct txn_job *t)
{
    char why[VG_STATUS_MESSAGE_MAX];
    memcpy(why, t->txn->req.status.message, sizeof why);
    int r = vg_etcd_doubt_start(t->job.e, t->txn, why, on_resolved, t, &t->doubt);
    if (r < 0)
        on_resolved(t, VIGIL_E_UNKNOWN_OUTCOME);
}

static void on_txn(struct vg_grpc_call *call)
{
    struct txn_job *t = VG_CONTAINER_OF(call, struct txn_job, job.call);
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

static void send_txn(struct txn_job *t)
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

static void grant(struct txn_job *t);

static void on_granted(struct vg_grpc_call *call)
{
    struct txn_job *t = VG_CONTAINER_OF(call, struct txn_job, job.call);
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

static void grant(struct txn_job *t)
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
    struct txn_job *t = VG_CONTAINER_OF(mail, struct txn_job, job.mail);
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
    struct txn_job *t = txn_job_of(job);
    if (t->is_sent && !now)
        return false;
    vg_grpc_cancel(&job->call);
    answer(t, t->is_sent ? VIGIL_E_UNKNOWN_OUTCOME : VIGIL_E_CLOSED);
    return true;
}

/* ---- the way in ---- */

static int refuse(struct txn_job *t, int err)
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
    struct txn_job *t = vg_new(struct txn_job);
    if (!t)
        return -ENOMEM;
    vg_etcd_job_init(e, &t->job);
    t->job.mail.run = run;
    t->job.abandon = abandon;
    t->job.is_write = true;
    t->txn = txn;
    size_t ahead = atomic_fetch_add_explicit(&e->n_txns_waiting, 1, memory_order_relaxed);
    int r = ahead >= e->opts.queue_max ? VIGIL_E_BUSY : pack(e, t);
    if (r == 0)
        r = vg_etcd_job_post(&t->job);
    return r < 0 ? refuse(t, r) : 0;
}
