/* txn.c - judging and staging transactions: what a group will change, before anything is written.
 * A transaction sees the changes of those before it, also of the group that is still on its way to
 * the disk (C1 of commit.c). Everything that publishing will need is taken here. */
#include <errno.h>

#include "base/alloc.h"
#include "engine.h"

/* ---- the group under construction ---- */

static int group_reserve(struct vg_engine *e)
{
    if (e->group && e->group->n < e->group_cap)
        return 0;
    size_t cap = e->group ? e->group_cap * 2 : 16;
    struct vg_commit_batch *g = vg_realloc(e->group, sizeof *g + cap * sizeof(struct vg_event));
    if (!g)
        return -ENOMEM;
    if (!e->group) {
        memset(g, 0, sizeof *g);
        g->tail.free = vg_commit_batch_free;
    }
    e->group = g;
    e->group_cap = cap;
    return 0;
}

/* Undo what this group staged beyond `keep` changes. */
static void group_trim(struct vg_engine *e, size_t keep)
{
    size_t below = e->flight.group ? e->flight.group->n : 0;
    vg_table_unstage(e->active, below + keep);
    while (e->group && e->group->n > keep) {
        struct vg_event *ev = &e->group->events[--e->group->n];
        e->group->bytes -= vg_rec_size(ev->rec);
        vg_rec_unref(ev->rec);
        vg_rec_unref(ev->prev);
    }
}

static void stamp(struct vg_engine *e, struct vg_rec *rec, const struct vg_version *was, vg_rev rev,
                  uint32_t sub)
{
    rec->rev = rev;
    rec->sub = sub;
    rec->time_ms = vg_clock_wall_ms(e->opts.clock);
    rec->prev_rev = was->rev;
    rec->prev_sub = was->sub;
    rec->create_rev = rec->version = 0;
    if (!vg_rec_is_delete(rec)) {
        rec->create_rev = was->rev ? was->create_rev : rev;
        rec->version = was->rev ? was->version + 1 : 1;
    }
}

int vg_commit_stage(struct vg_engine *e, struct vg_rec *take_rec, const struct vg_current *was,
                    vg_rev rev, uint32_t sub)
{
    stamp(e, take_rec, &was->version, rev, sub);
    int r = group_reserve(e);
    if (r < 0) {
        vg_rec_unref(take_rec);
        return r;
    }
    struct vg_rec *rec = vg_rec_ref(take_rec);
    r = vg_table_stage(e->active, take_rec);
    if (r < 0) {
        vg_rec_unref(rec);
        return r;
    }
    e->group->events[e->group->n++] =
        (struct vg_event){.rec = rec, .prev = was->rec ? vg_rec_ref(was->rec) : NULL};
    e->group->bytes += vg_rec_size(rec);
    e->group->lacks_prev |= was->version.rev && !was->rec;
    return 0;
}

/* In the tables the record is at hand; of the base its version alone is much cheaper to get. */
int vg_commit_current(struct vg_engine *e, struct vg_slice key, bool want_rec,
                      struct vg_current *ret)
{
    const struct vg_rec *newest = vg_table_newest(e->active, key);
    struct vg_rec *rec = newest ? vg_rec_ref(newest) : NULL;
    *ret = (struct vg_current){0};
    if (!rec && e->group_frozen)
        rec = vg_table_get(e->group_frozen, key, VG_REV_MAX);
    if (!rec && e->base && !want_rec) {
        int r = e->base->ops->peek(e->commit_view, key, &ret->version);
        return r < 0 ? r : 0;
    }
    if (!rec && e->base) {
        int r = e->base->ops->get(e->commit_view, key, VG_REV_MAX, &rec);
        if (r < 0)
            return r;
        rec = r > 0 ? rec : NULL;
    }
    if (rec && vg_rec_is_delete(rec))
        rec = vg_rec_unref(rec);
    if (rec)
        ret->version = vg_version_of(rec);
    ret->rec = rec;
    return 0;
}

/* ---- transactions ---- */

void vg_commit_drop_prevs(struct vg_txn *txn)
{
    for (uint32_t i = 0; i < txn->n_ops; i++)
        txn->ops[i].prev = vg_rec_unref(txn->ops[i].prev);
}

/* The record that is in the way is brought in any case. */
static int fail_conflict(struct vg_engine *e, struct vg_txn *txn, uint32_t failed)
{
    struct vg_op *op = &txn->ops[failed];
    struct vg_current now;
    vg_commit_drop_prevs(txn);
    int r = vg_commit_current(e, vg_rec_key(op->rec), true, &now);
    if (r < 0)
        return r;
    op->prev = now.rec;
    txn->failed_op = failed;
    atomic_fetch_add_explicit(&e->n_conflicts, 1, memory_order_relaxed);
    struct vg_slice key = vg_rec_key(op->rec);
    return vg_fail(&txn->req.status, VIGIL_E_CONFLICT,
                   "key %.*s is at revision %llu, the transaction expects %llu", VG_SLICE_ARG(key),
                   (unsigned long long)now.version.rev, (unsigned long long)op->expect);
}

/* Fills was[], whose records belong to op->prev. */
static int compare_all(struct vg_engine *e, struct vg_txn *txn, struct vg_current *was)
{
    bool want_rec = !txn->no_prev || vg_engine_wants_prev(e);
    for (uint32_t i = 0; i < txn->n_ops; i++) {
        struct vg_op *op = &txn->ops[i];
        op->prev = vg_rec_unref(op->prev);
        int r = vg_commit_current(e, vg_rec_key(op->rec), want_rec, &was[i]);
        if (r < 0)
            return r;
        op->prev = was[i].rec;
        if (op->expect != VG_EXPECT_ANY && op->expect != was[i].version.rev)
            return fail_conflict(e, txn, i);
    }
    return 0;
}

/* The record that an operation writes, or NULL when it changes nothing. A put record that is still
 * shared cannot be stamped: copy it (a caller that kept a reference, or submits twice). */
static int record_of(struct vg_engine *e, struct vg_op *op, const struct vg_current *was,
                     struct vg_rec **ret_rec)
{
    *ret_rec = NULL;
    if (op->type == VG_OP_CHECK || (op->type == VG_OP_DELETE && !was->version.rev))
        return 0;
    if (op->type == VG_OP_DELETE)
        return vg_rec_new(VG_REC_DELETE, vg_rec_key(op->rec), vg_slice(NULL, 0), vg_slice(NULL, 0),
                          ret_rec);
    struct vg_rec *rec = op->rec;
    if (atomic_load_explicit(&rec->refs, memory_order_acquire) == 1 && rec->rev == 0) {
        *ret_rec = vg_rec_ref(rec);
    } else {
        int r =
            vg_rec_new(VG_REC_PUT, vg_rec_key(rec), vg_rec_header(rec), vg_rec_value(rec), ret_rec);
        if (r < 0)
            return r;
    }
    (*ret_rec)->expires_ms =
        op->ttl_ms ? vg_clock_wall_ms(e->opts.clock) + (int64_t)VG_MIN(op->ttl_ms, VG_TTL_MAX_MS)
                   : 0;
    return 0;
}

/* Stage the changes of a transaction at *rev + 1. On success *rev moves when there was a change. */
static int stage_all(struct vg_engine *e, struct vg_txn *txn, const struct vg_current *was,
                     vg_rev *rev)
{
    uint32_t sub = 0;
    for (uint32_t i = 0; i < txn->n_ops; i++) {
        struct vg_op *op = &txn->ops[i];
        struct vg_rec *rec;
        int r = record_of(e, op, &was[i], &rec);
        if (r < 0)
            return r;
        if (!rec)
            continue;
        r = vg_commit_stage(e, rec, &was[i], *rev + 1, sub++);
        if (r < 0)
            return r;
    }
    if (sub)
        (*rev)++;
    return 0;
}

/* A conflict is told before: it is no write. */
static int check_room(struct vg_engine *e, struct vg_txn *txn)
{
    if (VG_LIKELY(!vg_room_is_full(e)) || txn->frees_space)
        return 0;
    return vg_fail(&txn->req.status, VIGIL_E_STORE_FULL,
                   "the disk of the store is full: free some space, or delete objects; reads and "
                   "deletions go on, other writes resume by themselves");
}

int vg_commit_run_txn(struct vg_engine *e, struct vg_txn *txn, vg_rev *rev)
{
    atomic_fetch_add_explicit(&e->n_txns, 1, memory_order_relaxed);
    size_t keep = e->group ? e->group->n : 0;
    struct vg_current was[VG_STORAGE_TXN_OPS_MAX];
    int r = compare_all(e, txn, was);
    if (r == 0)
        r = check_room(e, txn);
    if (r == 0)
        r = stage_all(e, txn, was, rev);
    if (r < 0)
        group_trim(e, keep);
    if (r == VIGIL_E_STORE_DAMAGED)
        vg_fail(&txn->req.status, r, "%s", e->base->ops->damage(e->commit_view));
    if (r != VIGIL_E_CONFLICT && (r < 0 || txn->no_prev))
        vg_commit_drop_prevs(txn); /* the group has references of its own */
    txn->req.rev = *rev;
    return r;
}

void vg_commit_drop_group(struct vg_engine *e)
{
    group_trim(e, 0);
    vg_free(e->group);
    e->group = NULL;
}
