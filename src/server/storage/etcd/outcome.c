/* outcome.c - what became of a transaction whose answer was lost?
 *
 * The connection broke, or time ran out, after the request had left. It may have been carried out,
 * may never be, or may be still under way inside the cluster and be carried out later. Reading can
 * prove some of this, and only what is proven is said. All operations of a transaction happen or
 * none does, so one operation that proves something decides:
 *
 *   D1 A unique put of an absent key (vg_op.is_unique): the key was made of our bytes. Nobody else
 *      makes it of them, so the transaction happened, at that revision. Anything else under the key
 *      proves nothing: ours may have been made, deleted and replaced, or may be made later.
 *   D2 A put of a key at revision N: the first change after N put other bytes. Ours would have been
 *      that change, so it did not happen, and the comparison never holds again: CONFLICT. Our own
 *      bytes there prove nothing, for another may put the same: a counter that two clients raise
 *      from 5 to 6 must not be 6 for both. Nor do several changes of which the first is not known.
 *   D3 A delete of a key at revision N: the key was changed since, and lives: CONFLICT, as in D2.
 *   D4 A check of a key, a put of any revision, and a key that is still as expected prove nothing:
 *      the transaction may have happened before the key moved, and may happen yet.
 *
 * If no operation proves anything the outcome is UNKNOWN. One read brings the keys as they are;
 * then one for each operation that D1 or D2 may decide brings its key as it was earlier. */
#include <errno.h>

#include "base/alloc.h"
#include "engine.h"

struct vg_etcd_doubt {
    struct vg_etcd_engine *e;
    struct vg_txn *txn;
    struct vg_grpc_call call;
    struct vg_arena arena;
    char why[VG_STATUS_MESSAGE_MAX];
    void (*done)(void *arg, int err);
    void *arg;
    const Etcd__TxnResponse *keys; /* what the keys of all operations hold; in the arena */
    uint32_t op;                   /* that is looked at */
    const Etcd__KeyValue *now;     /* what its key holds; NULL: nothing */
};

static void unknown(struct vg_etcd_doubt *d)
{
    vg_fail(&d->txn->req.status, VIGIL_E_UNKNOWN_OUTCOME,
            "the write may or may not have happened, and reading it back does not tell; read the "
            "object before trying again (%s)",
            d->why);
    d->done(d->arg, VIGIL_E_UNKNOWN_OUTCOME);
}

static void conflict(struct vg_etcd_doubt *d)
{
    struct vg_op *op = &d->txn->ops[d->op];
    d->txn->failed_op = d->op;
    if (d->now && vg_etcd_record(d->e, d->now, false, &op->prev) < 0) {
        unknown(d);
        return;
    }
    vg_fail(&d->txn->req.status, VIGIL_E_CONFLICT, "%s", vg_err_text(VIGIL_E_CONFLICT));
    d->done(d->arg, VIGIL_E_CONFLICT);
}

static void happened(struct vg_etcd_doubt *d, int64_t rev)
{
    d->txn->req.rev = (vg_rev)rev;
    d->txn->req.status.err = 0;
    d->txn->req.status.message[0] = '\0';
    d->done(d->arg, 0);
}

/* Does a value hold what the operation puts? */
static bool is_ours(struct vg_etcd_doubt *d, const Etcd__KeyValue *kv)
{
    VG_AUTO(buf) bytes = {0};
    const struct vg_op *op = &d->txn->ops[d->op];
    return op->type == VG_OP_PUT && vg_etcd_stored_bytes(d->e, op->rec, &bytes) == 0 &&
           vg_slice_eq(vg_buf_slice(&bytes), vg_etcd_bytes(kv->value));
}

static void judge_from(struct vg_etcd_doubt *d, uint32_t op);

/* ---- the second read: what a key held at another revision ---- */

static const Etcd__KeyValue *read_one(struct vg_etcd_doubt *d)
{
    Etcd__RangeResponse *res;
    int r = d->call.status.code == VG_GRPC_OK
                ? vg_etcd_answer(&d->call, &vg_etcd_range, &d->arena, &res)
                : -1;
    vg_buf_done(&d->call.answer);
    return r == 0 && res->n_kvs ? res->kvs[0] : NULL;
}

static void ask_at(struct vg_etcd_doubt *d, int64_t rev, void (*on_end)(struct vg_grpc_call *call))
{
    Etcd__RangeRequest req = ETCD__RANGE_REQUEST__INIT;
    req.key = d->now->key;
    req.revision = rev;
    d->call = (struct vg_grpc_call){.on_end = on_end};
    if (vg_etcd_start(d->e, &vg_etcd_range, &req.base, &d->call) < 0)
        unknown(d);
}

/* D2: was the expected revision replaced by what is there now? */
static void on_before(struct vg_grpc_call *call)
{
    struct vg_etcd_doubt *d = VG_CONTAINER_OF(call, struct vg_etcd_doubt, call);
    const Etcd__KeyValue *before = read_one(d);
    bool is_next = before && (vg_rev)before->mod_revision == d->txn->ops[d->op].expect;
    if (is_next && !is_ours(d, d->now))
        conflict(d);
    else
        judge_from(d, d->op + 1);
}

/* D1: what was put when the key was made? */
static void on_made(struct vg_grpc_call *call)
{
    struct vg_etcd_doubt *d = VG_CONTAINER_OF(call, struct vg_etcd_doubt, call);
    const Etcd__KeyValue *made = read_one(d);
    if (made && is_ours(d, made))
        happened(d, made->mod_revision);
    else
        judge_from(d, d->op + 1);
}

/* ---- the first read ---- */

static const Etcd__KeyValue *held(const Etcd__TxnResponse *res, uint32_t op)
{
    const Etcd__ResponseOp *r = op < res->n_responses ? res->responses[op] : NULL;
    bool is_range = r && r->response_case == ETCD__RESPONSE_OP__RESPONSE_RESPONSE_RANGE;
    return is_range && r->response_range->n_kvs ? r->response_range->kvs[0] : NULL;
}

/* Has the key been replaced since the revision that the operation expects? Not if it was deleted
 * and made anew: whose delete that was is not known. */
static bool has_moved(const struct vg_op *op, const Etcd__KeyValue *now)
{
    return (vg_rev)now->mod_revision != op->expect && (vg_rev)now->create_revision <= op->expect;
}

/* The operation at hand, whose key holds d->now. False: it proves nothing (D4). */
static bool judge(struct vg_etcd_doubt *d)
{
    const struct vg_op *op = &d->txn->ops[d->op];
    if (!d->now || op->expect == VG_EXPECT_ANY || op->type == VG_OP_CHECK)
        return false;
    if (op->expect == 0) {
        if (op->type != VG_OP_PUT || !op->is_unique)
            return false;
        ask_at(d, d->now->create_revision, on_made);
        return true;
    }
    if (!has_moved(op, d->now))
        return false;
    if (op->type == VG_OP_PUT)
        ask_at(d, d->now->mod_revision - 1, on_before);
    else
        conflict(d); /* D3 */
    return true;
}

static void judge_from(struct vg_etcd_doubt *d, uint32_t op)
{
    for (d->op = op; d->op < d->txn->n_ops; d->op++) {
        d->now = held(d->keys, d->op);
        if (judge(d))
            return;
    }
    unknown(d);
}

static void on_keys(struct vg_grpc_call *call)
{
    struct vg_etcd_doubt *d = VG_CONTAINER_OF(call, struct vg_etcd_doubt, call);
    Etcd__TxnResponse *res;
    if (call->status.code != VG_GRPC_OK ||
        vg_etcd_answer(call, &vg_etcd_txn, &d->arena, &res) < 0) {
        unknown(d);
        return;
    }
    vg_buf_done(&call->answer);
    if (res->header)
        vg_etcd_saw_rev(d->e, res->header->revision);
    d->keys = res;
    judge_from(d, 0);
}

static int ask_keys(struct vg_etcd_doubt *d)
{
    Etcd__TxnRequest req = ETCD__TXN_REQUEST__INIT;
    size_t n = d->txn->n_ops;
    Etcd__RequestOp *ops = vg_arena_array(&d->arena, Etcd__RequestOp, n);
    Etcd__RangeRequest *gets = vg_arena_array(&d->arena, Etcd__RangeRequest, n);
    struct vg_etcd_key *keys = vg_arena_array(&d->arena, struct vg_etcd_key, n);
    req.success = vg_arena_array(&d->arena, Etcd__RequestOp *, n);
    if (!ops || !gets || !keys || !req.success)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        int r = vg_etcd_key_make(&d->e->space, vg_rec_key(d->txn->ops[i].rec), &keys[i]);
        if (r < 0)
            return r;
        etcd__request_op__init(&ops[i]);
        etcd__range_request__init(&gets[i]);
        gets[i].key = vg_etcd_data(vg_etcd_key_slice(&keys[i]));
        ops[i].request_case = ETCD__REQUEST_OP__REQUEST_REQUEST_RANGE;
        ops[i].request_range = &gets[i];
        req.success[req.n_success++] = &ops[i];
    }
    d->call = (struct vg_grpc_call){.on_end = on_keys, .flags = VG_GRPC_REPEATABLE};
    return vg_etcd_start(d->e, &vg_etcd_txn, &req.base, &d->call);
}

int vg_etcd_doubt_start(struct vg_etcd_engine *e, struct vg_txn *txn, const char *why,
                        void (*done)(void *arg, int err), void *arg,
                        struct vg_etcd_doubt **ret_doubt)
{
    struct vg_etcd_doubt *d = vg_new(struct vg_etcd_doubt);
    if (!d)
        return -ENOMEM;
    *d = (struct vg_etcd_doubt){.e = e, .txn = txn, .done = done, .arg = arg};
    strncpy(d->why, why, sizeof d->why - 1);
    int r = ask_keys(d);
    if (r < 0)
        vg_etcd_doubt_free(d);
    else
        *ret_doubt = d;
    return r;
}

void vg_etcd_doubt_free(struct vg_etcd_doubt *d)
{
    if (!d)
        return;
    vg_grpc_cancel(&d->call);
    vg_buf_done(&d->call.answer);
    vg_arena_done(&d->arena);
    vg_free(d);
}
