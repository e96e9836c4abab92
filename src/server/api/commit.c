/* commit.c - the round trip of one change to storage and back.
 *
 *   start --> look in the cache --> make --> txn --> done
 *               | absent, or not        ^     | conflict: storage says what is there
 *               v surely the newest     |     v
 *             read storage -------------+-----+
 *
 * The cache may be a moment behind storage. That never hurts a write, which names the revision that
 * it replaces; but a refusal must not rest on old news (W1), so make is asked again with what
 * storage has before one goes out. The call outlives its requests: when the exchange is gone, done
 * comes as soon as storage has answered, and touches nothing of the request (W2). */
#include <errno.h>

#include "admission.h"
#include "claims.h"
#include "status_int.h"
#include "write.h"

/* Room for a parsed object of average size, and what a loop keeps of it at most. */
#define SCRATCH_FIRST ((size_t)16 << 10)
#define SCRATCH_KEEP ((size_t)256 << 10)

static void decide(struct vg_change *c);

static void hold(struct vg_change *c, const struct vg_rec *rec, bool is_current)
{
    struct vg_rec *next = rec ? vg_rec_ref(rec) : NULL;
    vg_rec_unref(c->cur);
    c->cur = next;
    c->is_current = is_current;
}

static void finish(struct vg_change *c, enum vg_verdict verdict)
{
    c->verdict = verdict;
    c->done(c);
}

static void fail(struct vg_change *c, int err, const char *message)
{
    vg_status_from_err(&c->call->ask->arena, &c->status, err, message);
    finish(c, VG_CHANGE_FAIL);
}

/* ---- what the key holds ---- */

static void ask(struct vg_change *c)
{
    c->is_in_flight = true;
    c->asked_ns = vg_clock_mono_ns(c->call->loop->api->clock);
}

/* Storage has come back. A conflict is an answer. */
static void answered(struct vg_change *c, enum vg_storage_op op, int err)
{
    const struct vg_api *api = c->call->loop->api;
    c->is_in_flight = false;
    vg_api_count_storage(api->counters, vg_kind_index(c->kind), op,
                         vg_clock_mono_ns(api->clock) - c->asked_ns,
                         err < 0 && err != VIGIL_E_CONFLICT);
}

static void on_range(struct vg_store_req *req)
{
    struct vg_change *c = VG_CONTAINER_OF(req, struct vg_change, range.req);
    answered(c, VG_STORAGE_GET, req->err);
    int err = req->err;
    if (err == 0)
        hold(c, c->range.n_recs ? c->range.recs[0] : NULL, true);
    vg_range_done(&c->range);
    if (err < 0)
        fail(c, err, req->status.message);
    else
        decide(c);
}

static void read_storage(struct vg_change *c)
{
    c->range = (struct vg_range){
        .req = {.loop = c->call->loop->loop, .done = on_range},
        .keys = {.kind = VG_KEYS_ONE, .start = vg_obj_key_slice(&c->key)},
        .limit = 1,
        .flags = VG_RANGE_UNREADABLE,
    };
    ask(c);
    int err = vg_storage_range(c->call->loop->api->storage, &c->range);
    if (err < 0) {
        c->is_in_flight = false;
        fail(c, err, c->range.req.status.message);
    }
}

/* The newest of the cache. False: it does not know. Where others write too it is never surely the
 * newest: a write finds out by what it expects, and a refusal looks into storage first. */
static bool look_in_cache(struct vg_change *c)
{
    struct vg_api *api = c->call->loop->api;
    struct vg_cache_snapshot snap;
    vg_rev newest;
    bool is_known = vg_cache_knows_newest(api->cacher, &newest);
    size_t index = vg_kind_index(c->kind);
    if (vg_cache_key_is_unreadable(api->cacher, index, vg_obj_key_slice(&c->key)))
        return false; /* it is there, and no tree has it */
    if (vg_cache_newest(api->cacher, index, &snap) < 0)
        return false;
    struct vg_tree_key key = {.minor = vg_obj_key_slice(&c->key)};
    hold(c, vg_root_get(snap.root, key), is_known && snap.rev >= newest);
    vg_cache_snapshot_done(&snap);
    return c->cur || c->is_current;
}

/* ---- the transaction ---- */

/* Before anybody is told of it: admissions shall know (admit.c). */
static void note_namespace(const struct vg_change *c)
{
    _Atomic uint64_t *last = &c->call->loop->api->namespaces_rev;
    uint64_t seen = atomic_load_explicit(last, memory_order_relaxed);
    while (seen < c->rev && !atomic_compare_exchange_weak_explicit(
                                last, &seen, c->rev, memory_order_release, memory_order_relaxed))
        ;
}

/* Something was not as we saw it: once more with what is there. */
static void on_conflict(struct vg_change *c)
{
    const struct vg_op *op = &c->txn.ops[c->txn.failed_op];
    uint32_t most = c->tries_max ? c->tries_max : VG_CHANGE_TRIES_MAX;
    bool may_try = true;
    if (c->txn.failed_op == 0) {
        hold(c, c->op.prev, true);
        c->is_current = true;
        may_try = ++c->tries < most;
    } else if (op->expect != 0) { /* a quota: whoever moved it got through */
        may_try = vg_quota_moved(c, op);
    } else { /* another has what we chose for the object */
        vg_change_claim_refused(c, op);
        may_try = ++c->tries < most;
    }
    /* A conflict at a later operation says nothing about the object itself: storage may have found
     * it by reading, long after the comparison (storage/etcd/outcome.c). */
    vg_txn_done(&c->txn);
    if (may_try) {
        decide(c);
        return;
    }
    vg_status_modified(&c->call->ask->arena, &c->status, c->kind, c->name);
    finish(c, VG_CHANGE_FAIL);
}

static void on_txn(struct vg_store_req *req)
{
    struct vg_change *c = VG_CONTAINER_OF(req, struct vg_change, txn.req);
    answered(c,
             c->verdict == VG_CHANGE_DELETE ? VG_STORAGE_DELETE
             : c->op.expect == 0            ? VG_STORAGE_CREATE
                                            : VG_STORAGE_UPDATE,
             req->err);
    c->op = c->txn.ops[0];
    c->n_claims = 0; /* the transaction's now */
    if (req->err == VIGIL_E_CONFLICT) {
        on_conflict(c);
        return;
    }
    if (req->err < 0) {
        vg_txn_done(&c->txn);
        fail(c, req->err, req->status.message);
        return;
    }
    c->rev = req->rev;
    if (vg_kind_is(c->kind, VG_KIND_FINALIZED_BY_SPEC))
        note_namespace(c);
    vg_admission_note(c->call->loop->api->admission, c->kind, c->rev);
    if (c->verdict == VG_CHANGE_PUT)
        hold(c, c->op.rec, true);
    c->out = c->cur;
    vg_txn_done(&c->txn);
    finish(c, c->verdict);
}

static uint64_t ttl_of(const struct vg_change *c)
{
    uint64_t wanted = c->call->loop->api->opts.event_ttl_ms;
    if (c->verdict != VG_CHANGE_PUT || c->kind->ttl_s == 0)
        return 0;
    return wanted ? wanted : c->kind->ttl_s * 1000;
}

/* All in one transaction, the object first. */
static int add_claims(struct vg_change *c)
{
    struct vg_op *ops = vg_arena_array(&c->call->ask->arena, struct vg_op, c->n_claims + 1u);
    if (!ops)
        return -ENOMEM;
    ops[0] = c->op;
    memcpy(ops + 1, c->claims, c->n_claims * sizeof *ops);
    c->txn.ops = ops;
    c->txn.n_ops = c->n_claims + 1;
    c->n_claims = 0;
    return 0;
}

/* Deletions go on when the disk is full: what marks an object for it, what takes its finalizers
 * away, and what drops it. */
static bool frees_space(const struct vg_change *c)
{
    struct vg_obj_header h;
    if (c->verdict == VG_CHANGE_DELETE || c->is_deletion)
        return true;
    if (!c->cur || !c->cur->header_len || !vg_storage_is_full(c->call->loop->api->storage))
        return false;
    vg_obj_header_read(vg_rec_header(c->cur), vg_rec_value(c->cur), &h);
    return vg_obj_is_deleting(&h);
}

static void submit(struct vg_change *c, struct vg_rec *take_rec)
{
    c->op = (struct vg_op){
        .type = c->verdict == VG_CHANGE_PUT ? VG_OP_PUT : VG_OP_DELETE,
        .rec = take_rec,
        .expect = c->cur ? c->cur->rev : 0,
        .ttl_ms = ttl_of(c),
        .is_unique = !c->cur && c->verdict == VG_CHANGE_PUT, /* by its uid */
    };
    c->txn = (struct vg_txn){
        .req = {.loop = c->call->loop->loop, .done = on_txn},
        .ops = &c->op,
        .n_ops = 1,
        .no_prev = true,
        .frees_space = frees_space(c),
    };
    int err = c->n_claims ? add_claims(c) : 0;
    if (err == 0) {
        ask(c);
        err = vg_storage_txn(c->call->loop->api->storage, &c->txn);
    }
    if (err == 0)
        return;
    c->is_in_flight = false;
    vg_txn_done(&c->txn);
    fail(c, err, c->txn.req.status.message);
}

static void put(struct vg_change *c)
{
    const struct vg_obj_sealed *s = &c->call->loop->sealed;
    struct vg_rec *rec = NULL;
    int err = vg_rec_new(VG_REC_PUT, vg_obj_key_slice(&c->key), vg_buf_slice(&s->header),
                         vg_buf_slice(&s->value), &rec);
    if (err < 0)
        fail(c, err, vg_err_text(err));
    else
        submit(c, rec);
}

static void drop(struct vg_change *c)
{
    struct vg_rec *rec = NULL;
    int err = vg_change_unclaim(c);
    if (err == 0)
        err = vg_rec_new(VG_REC_DELETE, vg_obj_key_slice(&c->key), VG_SLICE_LIT(""),
                         VG_SLICE_LIT(""), &rec);
    if (err < 0)
        fail(c, err, vg_err_text(err));
    else
        submit(c, rec);
}

/* What would have been written is in the sealed buffers. */
static void pretend(struct vg_change *c)
{
    c->rev = c->cur ? c->cur->rev : 0;
    c->out = c->verdict == VG_CHANGE_PUT ? NULL : c->cur;
    finish(c, c->verdict);
}

/* ---- deciding ---- */

/* A try has the loop's memory while make runs; what then waits for storage holds none of it. A
 * refusal may point into it and keeps it until it is told. Debug builds give it back at once, so
 * that who holds on to a part of it is caught. */
static enum vg_verdict try_once(struct vg_change *c)
{
    struct vg_arena *kept = &c->call->loop->trial;
    vg_arena_done(&c->scratch);
    c->scratch = *kept;
    c->scratch.first = SCRATCH_FIRST;
    c->scratch.max = VG_API_ARENA_MAX;
    vg_arena_init(kept, 0, 0);
    vg_change_forget_claims(c);
    enum vg_verdict verdict = c->make(c);
    if (verdict != VG_CHANGE_PUT && verdict != VG_CHANGE_DELETE)
        return verdict;
    vg_arena_reset(&c->scratch);
#ifdef VG_DEBUG_CHECKS
    vg_arena_done(&c->scratch);
#endif
    if (c->scratch.used > SCRATCH_KEEP)
        vg_arena_done(&c->scratch);
    *kept = c->scratch;
    vg_arena_init(&c->scratch, 0, 0);
    return verdict;
}

static void decide(struct vg_change *c)
{
    if (c->call->is_closed) {
        finish(c, VG_CHANGE_FAIL);
        return;
    }
    if (c->cur && c->cur->header_len == 0 && !c->takes_unreadable) {
        vg_status_unreadable(&c->call->ask->arena, &c->status, vg_obj_key_slice(&c->key));
        finish(c, VG_CHANGE_FAIL);
        return;
    }
    c->verdict = try_once(c);
    bool is_final = c->verdict == VG_CHANGE_PUT || c->verdict == VG_CHANGE_DELETE;
    if (!c->is_current && (!is_final || c->is_dry_run)) {
        read_storage(c);
        return;
    }
    if (is_final && c->is_dry_run) {
        pretend(c);
        return;
    }
    switch (c->verdict) {
    case VG_CHANGE_PUT:
        put(c);
        return;
    case VG_CHANGE_DELETE:
        drop(c);
        return;
    case VG_CHANGE_NONE:
        c->out = c->cur;
        c->rev = c->cur ? c->cur->rev : 0;
        break;
    case VG_CHANGE_FAIL:
        break;
    }
    finish(c, c->verdict);
}

/* A key that cannot be stored: nothing is there, and nothing can be put there. */
static void bad_key(struct vg_change *c)
{
    if (c->is_create)
        vg_status_bad_request(&c->call->ask->arena, &c->status,
                              "the name of the object does not fit into a storage key");
    else
        vg_status_not_found(&c->call->ask->arena, &c->status, c->kind, c->name);
    finish(c, VG_CHANGE_FAIL);
}

void vg_change_start(struct vg_change *c)
{
    /* A create makes its key when it has its name, and holds that nothing is there. */
    if (c->is_create) {
        c->is_current = !c->is_dry_run;
        decide(c);
        return;
    }
    if (vg_obj_key_make(vg_slice_str(c->kind->prefix), c->ns, c->name, &c->key) < 0)
        bad_key(c);
    else if (look_in_cache(c))
        decide(c);
    else
        read_storage(c);
}

void vg_change_drop(struct vg_change *c)
{
    c->verdict = VG_CHANGE_DELETE;
    c->tries = 0;
    drop(c);
}

void vg_change_release(struct vg_change *c)
{
    vg_change_forget_claims(c);
    vg_quota_forget(c);
    c->cur = vg_rec_unref(c->cur);
    c->out = NULL;
    vg_arena_done(&c->scratch);
}

void vg_change_answer(struct vg_change *c, int code)
{
    struct vg_api_call *call = c->call;
    if (call->is_closed) {
        vg_change_release(c);
        vg_call_finish(call);
        return;
    }
    if (c->verdict == VG_CHANGE_FAIL)
        vg_respond_status(call, &c->status);
    else if (c->out)
        vg_respond_object(call, code, c->out, c->rev);
    else
        vg_respond_sealed(call, code, &call->loop->sealed, c->rev);
    vg_change_release(c);
}

static void on_closed(struct vg_api_call *call, int err)
{
    const struct vg_change *c = call->state;
    (void)err;
    if (!c->is_in_flight)
        vg_call_finish(call);
}

const struct vg_api_op vg_change_op = {.closed = on_closed};
