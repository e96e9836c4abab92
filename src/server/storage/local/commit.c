/* commit.c - the commit thread: everything that changes the store goes through here, one at a time.
 * It takes what waits, compares and stages each transaction, makes the whole group durable with one
 * sync, and only then shows and acknowledges it (S1).
 *   C1 a transaction sees the changes of those before it in the same group.
 *   C2 nothing of a group is visible, and nothing of it is answered, before log_append returned.
 *   C3 after a failed log_append the tables are as they were and every transaction of the group,
 * and of the one staged on top of it, is answered with the failure: also those that failed by
 * themselves, since they may have been judged by changes that now did not happen. */
#include "engine.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"

/* A group ends when it holds this much: a bound on memory and on the time of one sync. */
#define GROUP_BYTES_MAX ((size_t)16 << 20)
#define GROUP_TXNS_MAX 4096
/* The overlay may grow to this many checkpoints' worth while one is under way; then writes wait for
 * it, or are refused when it has failed. */
#define OVERLAY_LIMIT_FACTOR 2
#define REPAIR_INTERVAL_NS (1 * VG_NS_PER_S)
/* The flusher wakes us when it is done: this is in case it does not. */
#define FLUSHER_WAIT_NS (100 * VG_NS_PER_MS)

/* ---- a group ---- */

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
}

static bool is_overlay_full(struct vg_engine *e)
{
    uint64_t most = OVERLAY_LIMIT_FACTOR * e->opts.checkpoint_bytes;
    if (!vg_room_is_full(e)) /* then what comes is small, and the reserve is there for it */
        most = VG_MIN(most, e->log_max);
    return e->base && e->base->ops->log_used(e->base) > most;
}

/* Is the log fit to take a group? Tries to repair it when that is due. */
static int check_log(struct vg_engine *e)
{
    if (!e->base)
        return 0;
    uint64_t now = vg_clock_mono_ns(e->opts.clock);
    if (e->log_broken && now >= e->next_repair_ns && !e->flight.group) {
        e->next_repair_ns = now + REPAIR_INTERVAL_NS;
        vg_commit_set_broken(e, e->base->ops->log_repair(e->base) < 0, 0);
        if (!e->log_broken)
            e->next_freeze_ns = 0;
    }
    vg_room_look(e, now);
    vg_room_help_flusher(e);
    if (e->log_broken)
        return VIGIL_E_READ_ONLY;
    if (!is_overlay_full(e))
        return 0;
    int err = atomic_load(&e->flusher_err);
    if (err == 0)
        return VIGIL_E_BUSY;
    return err == VIGIL_E_STORE_FULL ? err : VIGIL_E_READ_ONLY;
}

/* A group while it is being put together. */
struct building {
    struct vg_mail *txns, **end;
    size_t n;
    vg_rev rev;
    bool is_begun;
};

/* Judge and stage from *list until it is empty, the group is full, or something else comes. */
static void stage_list(struct vg_engine *e, struct vg_mail **list, struct building *b)
{
    while (*list && b->n < GROUP_TXNS_MAX) {
        if (e->group && e->group->bytes > GROUP_BYTES_MAX)
            return;
        struct vg_store_req *req = VG_CONTAINER_OF(*list, struct vg_store_req, mail);
        if (req->type != REQ_TXN)
            return;
        *list = req->mail.next;
        req->mail.next = NULL;
        if (b->is_begun)
            req->err = vg_commit_run_txn(e, VG_CONTAINER_OF(req, struct vg_txn, req), &b->rev);
        *b->end = &req->mail;
        b->end = &req->mail.next;
        b->n++;
    }
}

/* As long as the group before is on its way, what comes joins this one. */
static void stage_group(struct vg_engine *e, struct vg_mail **list, struct building *b)
{
    stage_list(e, list, b);
    while (!*list && vg_flight_is_up(e) && !atomic_load(&e->closing)) {
        vg_waker_wait(&e->commit.waker, VG_WAIT_FOREVER); /* for the flight, or for mail */
        *list = vg_mailbox_take_all(&e->commit.box);
        stage_list(e, list, b);
    }
}

/* Put a group together and send it off; it is answered when it has landed. */
static void run_group(struct vg_engine *e, struct vg_mail **list)
{
    struct building b = {.rev = vg_engine_staged_rev(e)};
    b.end = &b.txns;
    int err = check_log(e);
    vg_upkeep_notice(e);
    if (err == 0)
        err = group_begin(e);
    b.is_begun = err == 0;
    if (b.is_begun)
        (void)vg_upkeep_stage_expired(e, &b.rev); /* what does not fit in memory expires later */
    stage_group(e, list, &b);
    if (b.is_begun)
        group_end(e);
    int landed = vg_flight_land(e, true);
    if (err == 0)
        err = landed;
    if (err == 0 && e->group && e->group->n) {
        vg_flight_launch(e, b.txns, b.n, b.rev);
        return;
    }
    vg_commit_drop_group(e);
    vg_commit_answer(e, b.txns, err);
}

/* ---- compaction requests ---- */

static void run_compact(struct vg_engine *e, struct vg_compact *c)
{
    c->req.rev = atomic_load_explicit(&e->rev, memory_order_relaxed);
    c->req.compact_rev = atomic_load_explicit(&e->compacted, memory_order_relaxed);
    if (c->at <= c->req.compact_rev) {
        vg_storage_answer(&c->req, VIGIL_E_COMPACTED);
        return;
    }
    if (c->at > c->req.rev) {
        vg_storage_answer(&c->req, VIGIL_E_FUTURE);
        return;
    }
    vg_upkeep_compact(e, c->at);
    c->req.compact_rev = c->at;
    if (!e->base) {
        vg_storage_answer(&c->req, 0);
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
        vg_commit_set_broken(e, true, r);
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
    if (e->flight.group) /* its records belong to this table and this generation of the log */
        return;
    uint64_t now = vg_clock_mono_ns(e->opts.clock);
    bool is_large = e->base->ops->log_used(e->base) >= vg_room_checkpoint_bytes(e);
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
    if (!e->wanted_backups || vg_table_log_count(e->active) > 0 || e->flight.group)
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
    while (is_overlay_full(e) && !e->log_broken && !atomic_load(&e->flusher_err) &&
           !atomic_load(&e->closing)) {
        (void)vg_flight_land(e, true);
        freeze_if_due(e);
        if (!is_checkpoint_running(e)) /* nothing to wait for: it could not be frozen */
            return;
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
    struct vg_mail *list = NULL;
    vg_room_help_flusher(e);
    if (e->log_broken || vg_upkeep_is_expiry_due(e))
        run_group(e, &list);
    if (list) /* came while the group waited for the one before, and is not for it */
        serve(e, list);
    vg_upkeep_auto_compact(e);
    freeze_if_due(e);
    hand_over_backups(e);
}

/* Deletions that found no room get another try, in the other log file if that is free: there are
 * blocks for them. */
static void serve_again(struct vg_engine *e)
{
    struct vg_mail *list = vg_steal(e->again);
    while (is_checkpoint_running(e) && !atomic_load(&e->flusher_err) && !atomic_load(&e->closing))
        vg_waker_wait(&e->commit.waker, vg_clock_mono_ns(e->opts.clock) + FLUSHER_WAIT_NS);
    if (!is_checkpoint_running(e) && vg_table_log_count(e->active) > 0 && !e->log_broken)
        (void)vg_commit_freeze(e);
    serve(e, list);
}

void *vg_commit_main(void *engine)
{
    struct vg_engine *e = engine;
    while (!atomic_load(&e->closing)) {
        (void)vg_flight_land(e, false);
        if (e->again && !e->flight.group)
            serve_again(e);
        struct vg_mail *list = vg_mailbox_take_all(&e->commit.box);
        if (list)
            serve(e, list);
        idle(e);
        if (vg_mailbox_count(&e->commit.box) == 0 && !e->again && !atomic_load(&e->closing))
            vg_waker_wait(&e->commit.waker, next_wake(e));
    }
    (void)vg_flight_land(e, true);
    serve(e, vg_mailbox_close(&e->commit.box));
    vg_engine_answer_all(vg_steal(e->again), VIGIL_E_CLOSED);
    vg_engine_answer_all(vg_steal(e->wanted_backups), VIGIL_E_CLOSED);
    return NULL;
}
