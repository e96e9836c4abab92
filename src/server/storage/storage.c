/* storage.c - what is the same for every engine: checking requests, and the way to the engine.
 * Nothing that fails here has reached an engine. */
#include "storage_int.h"

#include "base/alloc.h"

#define QUEUE_MAX_DEFAULT 4096
#define MAP_SIZE_DEFAULT ((size_t)256 << 30)
/* 64 MiB: large enough that a checkpoint rewrites each page of the index once for many changes;
 * what is in memory goes after checkpoint_ms anyway, so this is what a burst may hold. Replaying as
 * much takes half a second. Measured by bench_storage at 512 writers: a sixth faster than 16 MiB.
 */
#define CHECKPOINT_BYTES_DEFAULT ((size_t)64 << 20)
/* 16: handing a group to the syncer costs two wakes, some 20 us; a sync costs 100 and more. */
#define FLIGHT_MIN_DEFAULT 16
#define CHECKPOINT_MS_DEFAULT 5000

struct vg_storage_opts vg_storage_opts_filled(const struct vg_storage_opts *opts)
{
    struct vg_storage_opts o = {.size = sizeof o};
    if (opts)
        memcpy(&o, opts, VG_MIN(opts->size, sizeof o));
    o.size = sizeof o;
    if (!o.clock)
        o.clock = vg_clock_system();
    if (!o.queue_max)
        o.queue_max = QUEUE_MAX_DEFAULT;
    if (!o.map_size)
        o.map_size = MAP_SIZE_DEFAULT;
    if (!o.checkpoint_bytes)
        o.checkpoint_bytes = CHECKPOINT_BYTES_DEFAULT;
    if (!o.flight_min)
        o.flight_min = FLIGHT_MIN_DEFAULT;
    if (!o.checkpoint_ms)
        o.checkpoint_ms = CHECKPOINT_MS_DEFAULT;
    return o;
}

bool vg_keys_contain(const struct vg_keys *keys, struct vg_slice key)
{
    switch (keys->kind) {
    case VG_KEYS_ONE:
        return vg_slice_eq(key, keys->start);
    case VG_KEYS_SPAN:
        return vg_slice_cmp(key, keys->start) >= 0 && vg_slice_cmp(key, keys->end) < 0;
    case VG_KEYS_FROM:
        return vg_slice_cmp(key, keys->start) >= 0;
    }
    return false;
}

/* ---- requests ---- */

static void run_done(struct vg_mail *mail)
{
    struct vg_store_req *req = VG_CONTAINER_OF(mail, struct vg_store_req, mail);
    req->done(req);
}

void vg_storage_answer(struct vg_store_req *req, int err)
{
    req->err = err;
    if (err < 0 && req->status.err != err)
        vg_fail(&req->status, err, "%s", vg_err_text(err));
    req->mail.run = run_done;
    vg_loop_post(req->loop, &req->mail);
}

static int refuse(struct vg_store_req *req, int err, const char *why)
{
    req->err = err;
    return vg_fail(&req->status, err, "%s", why);
}

static void reset(struct vg_store_req *req)
{
    req->err = 0;
    req->status.err = 0;
    req->status.message[0] = '\0';
    req->rev = req->compact_rev = 0;
}

static int check_op(struct vg_txn *txn, const struct vg_op *op)
{
    if (!op->rec || op->type < VG_OP_PUT || op->type > VG_OP_CHECK)
        return refuse(&txn->req, VIGIL_E_INVALID,
                      "an operation without a record or of no known type");
    if (op->type == VG_OP_PUT && op->rec->op != VG_REC_PUT)
        return refuse(&txn->req, VIGIL_E_INVALID, "a put takes a record made as a put");
    struct vg_slice key = vg_rec_key(op->rec);
    if (key.n == 0 || key.n > VG_STORAGE_KEY_MAX) {
        txn->req.err = VIGIL_E_KEY_INVALID;
        return vg_fail(&txn->req.status, VIGIL_E_KEY_INVALID,
                       "the key has %zu bytes; storage takes 1 to %d", key.n, VG_STORAGE_KEY_MAX);
    }
    return 0;
}

static int check_sizes(struct vg_txn *txn)
{
    size_t total = 0;
    for (uint32_t i = 0; i < txn->n_ops; i++) {
        size_t size = (size_t)txn->ops[i].rec->header_len + txn->ops[i].rec->value_len;
        total += size;
        if (size > VG_STORAGE_VALUE_MAX || total > VG_STORAGE_TXN_BYTES_MAX) {
            txn->req.err = VIGIL_E_VALUE_TOO_LARGE;
            return vg_fail(
                &txn->req.status, VIGIL_E_VALUE_TOO_LARGE,
                "operation %u makes %zu bytes; storage takes %zu in a value and %zu in a "
                "transaction",
                i, VG_MAX(size, total), VG_STORAGE_VALUE_MAX, VG_STORAGE_TXN_BYTES_MAX);
        }
    }
    return 0;
}

/* Quadratic, on at most 128 keys. */
static bool has_duplicate_key(const struct vg_txn *txn)
{
    for (uint32_t i = 1; i < txn->n_ops; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (vg_slice_eq(vg_rec_key(txn->ops[i].rec), vg_rec_key(txn->ops[j].rec)))
                return true;
        }
    }
    return false;
}

int vg_storage_txn(struct vg_storage *s, struct vg_txn *txn)
{
    reset(&txn->req);
    txn->failed_op = 0;
    txn->is_again = false;
    if (txn->n_ops == 0 || txn->n_ops > VG_STORAGE_TXN_OPS_MAX)
        return refuse(&txn->req, VIGIL_E_INVALID, "a transaction takes 1 to 128 operations");
    for (uint32_t i = 0; i < txn->n_ops; i++) {
        int r = check_op(txn, &txn->ops[i]);
        if (r < 0)
            return r;
    }
    int r = check_sizes(txn);
    if (r < 0)
        return r;
    if (has_duplicate_key(txn))
        return refuse(&txn->req, VIGIL_E_INVALID, "a transaction names a key once");
    return s->ops->txn(s, txn);
}

void vg_txn_done(struct vg_txn *txn)
{
    for (uint32_t i = 0; i < txn->n_ops; i++) {
        txn->ops[i].rec = vg_rec_unref(txn->ops[i].rec);
        txn->ops[i].prev = vg_rec_unref(txn->ops[i].prev);
    }
}

static bool keys_are_valid(const struct vg_keys *keys)
{
    if (keys->kind > VG_KEYS_FROM)
        return false;
    return keys->kind != VG_KEYS_ONE || keys->start.n > 0;
}

int vg_storage_range(struct vg_storage *s, struct vg_range *range)
{
    reset(&range->req);
    range->recs = NULL;
    range->n_recs = 0;
    range->count = 0;
    range->more = false;
    if (!keys_are_valid(&range->keys))
        return refuse(&range->req, VIGIL_E_INVALID, "a range needs a key, a span or a start");
    return s->ops->range(s, range);
}

void vg_range_done(struct vg_range *range)
{
    for (size_t i = 0; i < range->n_recs; i++)
        vg_rec_unref(range->recs[i]);
    vg_free(range->recs);
    range->recs = NULL;
    range->n_recs = 0;
}

int vg_storage_watch(struct vg_storage *s, const struct vg_watch_opts *opts,
                     struct vg_watch **ret_watch)
{
    if (!opts->loop || !opts->on_batch || !opts->on_end || !keys_are_valid(&opts->keys))
        return VIGIL_E_INVALID;
    return s->ops->watch(s, opts, ret_watch);
}

void vg_watch_cancel(struct vg_watch *w)
{
    w->ops->cancel(w);
}

void vg_watch_pause(struct vg_watch *w)
{
    w->ops->pause(w);
}

void vg_watch_resume(struct vg_watch *w)
{
    w->ops->resume(w);
}

void vg_watch_progress(struct vg_watch *w)
{
    w->ops->progress(w);
}

int vg_storage_compact(struct vg_storage *s, struct vg_compact *compact)
{
    reset(&compact->req);
    return s->ops->compact(s, compact);
}

int vg_storage_backup(struct vg_storage *s, struct vg_backup *backup)
{
    reset(&backup->req);
    backup->bytes = 0;
    return s->ops->backup(s, backup);
}

vg_rev vg_storage_revision(struct vg_storage *s)
{
    return s->ops->revision(s);
}

vg_rev vg_storage_compacted(struct vg_storage *s)
{
    return s->ops->compacted(s);
}

bool vg_storage_is_shared(struct vg_storage *s)
{
    return s->ops->fresh != NULL;
}

int vg_storage_fresh(struct vg_storage *s, struct vg_store_req *req)
{
    reset(req);
    if (s->ops->fresh)
        return s->ops->fresh(s, req);
    req->rev = s->ops->revision(s);
    vg_storage_answer(req, 0);
    return 0;
}

int vg_storage_health(struct vg_storage *s, struct vg_status *reterr_status)
{
    return s->ops->health ? s->ops->health(s, reterr_status) : 0;
}

bool vg_storage_is_full(struct vg_storage *s)
{
    return s->ops->is_full && s->ops->is_full(s);
}

void vg_storage_stats(struct vg_storage *s, struct vg_storage_stats *ret_stats)
{
    s->ops->stats(s, ret_stats);
}

void vg_storage_close(struct vg_storage *s)
{
    if (s)
        s->ops->close(s);
}
