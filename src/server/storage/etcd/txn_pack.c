/* txn_pack.c - a transaction as etcd's: comparisons, what is done when they hold, and what is read
 * when one does not. All of it lies in one arena until it is packed. */
#include <errno.h>

#include "base/rng.h"
#include "txn_int.h"

/* Beside the values themselves: all that is packed of a transaction. */
#define ARENA_FIRST ((size_t)4096)

/* What is packed, all of it in one arena. */
struct packing {
    struct vg_etcd_engine *e;
    struct vg_etcd_txn_job *t;
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
    struct vg_etcd_txn_job *t = p->t;
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
    if (!vg_etcd_has_expectation(op))
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

int vg_etcd_txn_pack(struct vg_etcd_engine *e, struct vg_etcd_txn_job *t)
{
    struct packing p = {.e = e, .t = t};
    vg_arena_init(&p.arena, ARENA_FIRST, 0);
    vg_arena_init(&t->arena, ARENA_FIRST, 0);
    int r = pack_all(&p);
    vg_arena_done(&p.arena);
    return r;
}
