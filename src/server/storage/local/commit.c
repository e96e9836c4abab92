/* commit.c - the commit thread: everything that changes the store goes through here, one at a time.
 * It takes what waits, compares and stages each transaction, makes the whole group durable with one
 * sync, and only then shows and acknowledges it (S1).
 *   C1 a transaction sees the changes of those before it in the same group.
 *   C2 nothing of a group is visible, and nothing of it is answered, before log_append returned.
 *   C3 after a failed log_append the tables are as they were and every transaction of the group is
 *      answered with the failure: also those that failed by themselves, since they may have been
 *      judged by changes that now did not happen. */
#include "engine.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"

/* A group ends when it holds this much: a bound on memory and on the time of one sync. */
#define GROUP_BYTES_MAX ((size_t)16 << 20)
#define GROUP_TXNS_MAX 4096
/* The overlay may grow to this many checkpoints' worth while one is under way; then writes wait for
 * it, or are refused when it has failed. */
#define OVERLAY_LIMIT_FACTOR 4
#define REPAIR_INTERVAL_NS (1 * VG_NS_PER_S)
/* The flusher wakes us when it is done: this is in case it does not. */
#define FLUSHER_WAIT_NS (100 * VG_NS_PER_MS)

void vg_commit_batch_free(struct vg_tail_batch *batch)
{
    struct vg_commit_batch *b = VG_CONTAINER_OF(batch, struct vg_commit_batch, tail);
    for (size_t i = 0; i < b->n; i++) {
        vg_rec_unref(b->events[i].rec);
        vg_rec_unref(b->events[i].prev);
    }
    vg_free(b);
}

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

/* Undo what was staged beyond `keep` changes. */
static void group_trim(struct vg_engine *e, size_t keep)
{
    vg_table_unstage(e->active, keep);
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

static void drop_prevs(struct vg_txn *txn)
{
    for (uint32_t i = 0; i < txn->n_ops; i++)
        txn->ops[i].prev = vg_rec_unref(txn->ops[i].prev);
}

/* The record that is in the way is brought in any case. */
static int fail_conflict(struct vg_engine *e, struct vg_txn *txn, uint32_t failed)
{
    struct vg_op *op = &txn->ops[failed];
    struct vg_current now;
    drop_prevs(txn);
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

static int run_txn(struct vg_engine *e, struct vg_txn *txn, vg_rev *rev)
{
    atomic_fetch_add_explicit(&e->n_txns, 1, memory_order_relaxed);
    size_t keep = vg_table_staged(e->active);
    struct vg_current was[VG_STORAGE_TXN_OPS_MAX];
    int r = compare_all(e, txn, was);
    if (r == 0)
        r = stage_all(e, txn, was, rev);
    if (r < 0)
        group_trim(e, keep);
    if (r == VIGIL_E_STORE_DAMAGED)
        vg_fail(&txn->req.status, r, "%s", e->base->ops->damage(e->commit_view));
    if (r < 0 && r != VIGIL_E_CONFLICT)
        drop_prevs(txn);
    txn->req.rev = *rev;
    return r;
}

/* ---- committing a group ---- */

/* The log has failed, or works again: the one place where that changes. */
static void set_log_broken(struct vg_engine *e, bool is_broken, int err)
{
    if (atomic_exchange(&e->log_broken, is_broken) == is_broken)
        return;
    if (is_broken)
        vg_error(e->opts.log, "log_failed", "err=%s state=read_only", vg_err_name(err));
    else
        vg_warn(e->opts.log, "log_repaired", "state=writable");
}

static void count_changes(struct vg_engine *e)
{
    uint64_t deletes = 0;
    for (size_t i = 0; i < e->group->n; i++)
        deletes += vg_rec_is_delete(e->group->events[i].rec);
    atomic_fetch_add_explicit(&e->n_deletes, deletes, memory_order_relaxed);
    atomic_fetch_add_explicit(&e->n_puts, e->group->n - deletes, memory_order_relaxed);
    atomic_fetch_add_explicit(&e->n_commits, 1, memory_order_relaxed);
}

/* Durable, then visible. */
static int commit_group(struct vg_engine *e, vg_rev last)
{
    size_t n = vg_table_staged(e->active);
    assert(e->group && e->group->n == n);
    if (e->base) {
        int r = e->base->ops->log_append(e->base, vg_table_staged_recs(e->active), n);
        if (r < 0) {
            set_log_broken(e, r != VIGIL_E_STORE_FULL && r != -ENOMEM, r);
            group_trim(e, 0);
            vg_upkeep_expire_again(e);
            return r;
        }
    }
    if (vg_table_log_count(e->active) == 0)
        e->active_since_ns = vg_clock_mono_ns(e->opts.clock);
    vg_table_publish(e->active);
    count_changes(e);
    e->group->last = last;
    atomic_store_explicit(&e->rev, last, memory_order_release);
    vg_tail_publish(&e->tail, &e->group->tail);
    e->group = NULL;
    return 0;
}

static const char *failure_text(int err)
{
    switch (err) {
    case VIGIL_E_STORE_FULL:
        return "the disk or the store is full: free some space; reads go on, writes resume by "
               "themselves";
    case VIGIL_E_UNKNOWN_OUTCOME:
        return "writing to the disk failed: this write may or may not have happened; read before "
               "you try again";
    case VIGIL_E_READ_ONLY:
        return "the store takes no writes since writing to the disk failed; it tries again every "
               "second";
    default:
        return vg_err_text(err);
    }
}

/* Answer a group. With err, all of it failed (C3). */
static void answer_group(struct vg_mail *list, int err)
{
    while (list) {
        struct vg_store_req *req = VG_CONTAINER_OF(list, struct vg_store_req, mail);
        list = list->next;
        if (err < 0) {
            struct vg_txn *txn = VG_CONTAINER_OF(req, struct vg_txn, req);
            drop_prevs(txn);
            req->err = vg_fail(&req->status, err, "%s", failure_text(err));
        }
        vg_engine_answer(req, req->err);
    }
}

static int group_begin(struct vg_engine *e)
{
    vg_mutex_lock(&e->mu);
    e->group_frozen = e->frozen ? vg_table_ref(e->frozen) : NULL;
    vg_mutex_unlock(&e->mu);
    int r = e->base ? e->base->ops->view_begin(e->commit_view) : 0;
    if (r < 0) {
        vg_table_unref(e->group_frozen);
        e->group_frozen = NULL;
    }
    return r;
}

static void group_end(struct vg_engine *e)
{
    if (e->base)
        e->base->ops->view_end(e->commit_view);
    vg_table_unref(e->group_frozen);
    e->group_frozen = NULL;
    vg_free(e->group); /* of a group that staged nothing or failed */
    e->group = NULL;
}

static bool is_overlay_full(struct vg_engine *e)
{
    return e->base &&
           e->base->ops->log_used(e->base) > OVERLAY_LIMIT_FACTOR * e->opts.checkpoint_bytes;
}

/* Is the log fit to take a group? Tries to repair it when that is due. */
static int check_log(struct vg_engine *e)
{
    if (!e->base)
        return 0;
    uint64_t now = vg_clock_mono_ns(e->opts.clock);
    if (e->log_broken && now >= e->next_repair_ns) {
        e->next_repair_ns = now + REPAIR_INTERVAL_NS;
        set_log_broken(e, e->base->ops->log_repair(e->base) < 0, 0);
    }
    if (e->log_broken)
        return VIGIL_E_READ_ONLY;
    if (!is_overlay_full(e))
        return 0;
    return atomic_load(&e->is_flusher_failing) ? VIGIL_E_STORE_FULL : VIGIL_E_BUSY;
}

/* Run transactions from *list until it is empty or the group is full. */
static void run_group(struct vg_engine *e, struct vg_mail **list)
{
    struct vg_mail *done = NULL, **end = &done;
    vg_rev rev = atomic_load_explicit(&e->rev, memory_order_relaxed);
    int err = check_log(e);
    vg_upkeep_notice(e);
    if (err == 0)
        err = group_begin(e);
    bool begun = err == 0;
    if (begun)
        (void)vg_upkeep_stage_expired(e, &rev); /* what does not fit in memory now expires later */
    for (size_t n = 0; *list && n < GROUP_TXNS_MAX; n++) {
        if (e->group && e->group->bytes > GROUP_BYTES_MAX)
            break;
        struct vg_store_req *req = VG_CONTAINER_OF(*list, struct vg_store_req, mail);
        if (req->type != REQ_TXN)
            break;
        *list = req->mail.next;
        req->mail.next = NULL;
        if (begun)
            req->err = run_txn(e, VG_CONTAINER_OF(req, struct vg_txn, req), &rev);
        *end = &req->mail;
        end = &req->mail.next;
    }
    if (begun && vg_table_staged(e->active))
        err = commit_group(e, rev);
    if (begun)
        group_end(e);
    answer_group(done, err);
}

/* ---- compaction requests ---- */

static void run_compact(struct vg_engine *e, struct vg_compact *c)
{
    c->req.rev = atomic_load_explicit(&e->rev, memory_order_relaxed);
    c->req.compact_rev = atomic_load_explicit(&e->compacted, memory_order_relaxed);
    if (c->at <= c->req.compact_rev) {
        vg_engine_answer(&c->req, VIGIL_E_COMPACTED);
        return;
    }
    if (c->at > c->req.rev) {
        vg_engine_answer(&c->req, VIGIL_E_FUTURE);
        return;
    }
    vg_upkeep_compact(e, c->at);
    c->req.compact_rev = c->at;
    if (!e->base) {
        vg_engine_answer(&c->req, 0);
        return;
    }
    vg_mutex_lock(&e->mu); /* durable first: the flusher answers */
    c->req.mail.next = e->compactions;
    e->compactions = &c->req.mail;
    vg_mutex_unlock(&e->mu);
    vg_waker_wake(&e->flusher.waker);
}

/* ---- freezing ---- */

static bool is_checkpoint_running(struct vg_engine *e)
{
    vg_mutex_lock(&e->mu);
    bool is_running = e->frozen != NULL;
    vg_mutex_unlock(&e->mu);
    return is_running;
}

int vg_commit_freeze(struct vg_engine *e)
{
    struct vg_table *fresh;
    int r = vg_table_new(&fresh);
    if (r < 0)
        return r;
    vg_rev last = atomic_load_explicit(&e->rev, memory_order_relaxed);
    r = e->base->ops->log_switch(e->base, last);
    if (r < 0) {
        set_log_broken(e, true, r);
        vg_table_unref(fresh);
        return r;
    }
    vg_mutex_lock(&e->mu);
    e->frozen = e->active;
    e->frozen_last = last;
    e->active = fresh;
    vg_mutex_unlock(&e->mu);
    vg_waker_wake(&e->flusher.waker);
    return 0;
}

/* Hand the active table to the flusher when it is large or old enough, or a backup wants it. */
static void freeze_if_due(struct vg_engine *e)
{
    if (!e->base || e->log_broken || vg_table_log_count(e->active) == 0)
        return;
    uint64_t now = vg_clock_mono_ns(e->opts.clock);
    bool is_large = e->base->ops->log_used(e->base) >= e->opts.checkpoint_bytes;
    bool is_old = now - e->active_since_ns >= e->opts.checkpoint_ms * VG_NS_PER_MS;
    if ((!is_large && !is_old && !e->wanted_backups) || now < e->next_freeze_ns)
        return;
    if (!is_checkpoint_running(e) && vg_commit_freeze(e) < 0)
        e->next_freeze_ns = now + REPAIR_INTERVAL_NS;
}

/* A backup must hold what is visible now: once the active table is empty, all of it is in the
 * frozen one or in the base, and the flusher can take over. */
static void hand_over_backups(struct vg_engine *e)
{
    if (!e->wanted_backups || vg_table_log_count(e->active) > 0)
        return;
    vg_mutex_lock(&e->mu);
    struct vg_mail **end = &e->backups;
    while (*end)
        end = &(*end)->next;
    *end = vg_steal(e->wanted_backups);
    vg_mutex_unlock(&e->mu);
    vg_waker_wake(&e->flusher.waker);
}

/* ---- the thread ---- */

static void want_backup(struct vg_engine *e, struct vg_store_req *req)
{
    req->mail.next = e->wanted_backups;
    e->wanted_backups = &req->mail;
}

/* A burst that the flusher cannot follow slows down to its pace: what waits here fills the mailbox,
 * and a full mailbox answers BUSY. A flusher that fails is another matter (check_log). */
static void wait_for_flusher(struct vg_engine *e)
{
    while (is_overlay_full(e) && !e->log_broken && !atomic_load(&e->is_flusher_failing) &&
           !atomic_load(&e->closing)) {
        freeze_if_due(e);
        if (is_overlay_full(e))
            vg_waker_wait(&e->commit.waker, vg_clock_mono_ns(e->opts.clock) + FLUSHER_WAIT_NS);
    }
}

static void serve(struct vg_engine *e, struct vg_mail *list)
{
    while (list && !atomic_load(&e->closing)) {
        struct vg_store_req *req = VG_CONTAINER_OF(list, struct vg_store_req, mail);
        if (req->type == REQ_TXN) {
            wait_for_flusher(e);
            run_group(e, &list);
        } else {
            list = list->next;
            if (req->type == REQ_COMPACT)
                run_compact(e, VG_CONTAINER_OF(req, struct vg_compact, req));
            else
                want_backup(e, req);
        }
        freeze_if_due(e);
        hand_over_backups(e);
    }
    vg_engine_answer_all(list, VIGIL_E_CLOSED);
}

/* A deadline in wall-clock time, as a time to wake up at. */
static uint64_t wall_to_mono(struct vg_engine *e, int64_t wall_ms)
{
    int64_t now_ms = vg_clock_wall_ms(e->opts.clock);
    uint64_t now = vg_clock_mono_ns(e->opts.clock);
    if (wall_ms <= now_ms)
        return now;
    uint64_t left = (uint64_t)(wall_ms - now_ms);
    return left > VG_TTL_MAX_MS ? VG_WAIT_FOREVER : now + left * VG_NS_PER_MS;
}

static uint64_t next_wake(struct vg_engine *e)
{
    /* A wall clock that jumps is noticed within a minute. */
    uint64_t at = vg_clock_mono_ns(e->opts.clock) + 60 * VG_NS_PER_S;
    uint64_t deadline = wall_to_mono(e, vg_upkeep_next_deadline(e));
    at = VG_MIN(at, VG_MAX(deadline, e->next_expire_ns));
    at = VG_MIN(at, e->next_upkeep_ns);
    if (e->base && vg_table_log_count(e->active) > 0) {
        uint64_t age = e->active_since_ns + e->opts.checkpoint_ms * VG_NS_PER_MS;
        if (!is_checkpoint_running(e)) /* else the flusher wakes us when it is done */
            at = VG_MIN(at, VG_MAX(age, e->next_freeze_ns));
    }
    if (e->log_broken)
        at = VG_MIN(at, e->next_repair_ns);
    return at;
}

/* Nothing waits: see to deadlines, repair, auto-compaction and age. */
static void idle(struct vg_engine *e)
{
    struct vg_mail *none = NULL;
    if (e->log_broken || vg_upkeep_is_expiry_due(e))
        run_group(e, &none);
    vg_upkeep_auto_compact(e);
    freeze_if_due(e);
    hand_over_backups(e);
}

void *vg_commit_main(void *engine)
{
    struct vg_engine *e = engine;
    while (!atomic_load(&e->closing)) {
        struct vg_mail *list = vg_mailbox_take_all(&e->commit.box);
        if (list)
            serve(e, list);
        idle(e);
        if (vg_mailbox_count(&e->commit.box) == 0 && !atomic_load(&e->closing))
            vg_waker_wait(&e->commit.waker, next_wake(e));
    }
    serve(e, vg_mailbox_close(&e->commit.box));
    vg_engine_answer_all(vg_steal(e->wanted_backups), VIGIL_E_CLOSED);
    return NULL;
}
