/* flight.c - a group on its way to the disk.
 * A large group is written and synced by a thread of its own, the syncer, while the commit thread
 * stages the next one; a small group is written by the commit thread itself, since handing it over
 * would cost more than it saves. There is at most one flight: groups reach the disk one after the
 * other, each only after the one before (L1, L2 of wal.h).
 *
 * NONE --vg_flight_launch()--> UP --syncer: log_append returned--> DOWN --vg_flight_land()--> NONE
 *
 * Landing shows and acknowledges, or undoes: when a group did not reach the disk, the one that was
 * staged on top of it did not happen either (C3 of commit.c). Threads: everything is the commit
 * thread's but for the append while the flight is UP. */
#include <errno.h>

#include "base/log.h"
#include "engine.h"

enum { FLIGHT_NONE, FLIGHT_UP, FLIGHT_DOWN };

/* The log has failed, or works again: the one place where that changes. */
void vg_commit_set_broken(struct vg_engine *e, bool is_broken, int err)
{
    if (atomic_exchange(&e->log_broken, is_broken) == is_broken)
        return;
    if (is_broken)
        vg_error(e->opts.log, "log_failed", "err=%s state=read_only", vg_err_name(err));
    else
        vg_warn(e->opts.log, "log_repaired", "state=writable");
    if (!is_broken)
        atomic_store(&e->is_removed, false);
}

static void count_changes(struct vg_engine *e, const struct vg_commit_batch *group)
{
    uint64_t deletes = 0;
    for (size_t i = 0; i < group->n; i++)
        deletes += vg_rec_is_delete(group->events[i].rec);
    atomic_fetch_add_explicit(&e->n_deletes, deletes, memory_order_relaxed);
    atomic_fetch_add_explicit(&e->n_puts, group->n - deletes, memory_order_relaxed);
    atomic_fetch_add_explicit(&e->n_commits, 1, memory_order_relaxed);
}

void vg_commit_set_removed(struct vg_engine *e)
{
    if (!atomic_exchange(&e->is_removed, true))
        vg_error(
            e->opts.log, "store_removed",
            "do=\"the files of the store were removed or replaced while vigild runs, and writes "
            "are refused since they would be lost: put them back, or stop vigild and restore "
            "from a backup\"");
    vg_commit_set_broken(e, true, VIGIL_E_READ_ONLY);
}

static const char *failure_text(const struct vg_engine *e, int err)
{
    if (err == VIGIL_E_READ_ONLY && atomic_load(&e->is_removed))
        return "the files of the store were removed or replaced while vigild runs: nothing that is "
               "written now would be kept";
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

/* A deletion that found no room: the reserve has been released meanwhile. */
static bool goes_again(struct vg_engine *e, struct vg_txn *txn, int err)
{
    if (err != VIGIL_E_STORE_FULL || !txn->frees_space || txn->is_again || !vg_room_is_full(e))
        return false;
    struct vg_mail **end = &e->again;
    while (*end)
        end = &(*end)->next;
    txn->is_again = true;
    txn->req.mail.next = NULL;
    *end = &txn->req.mail;
    return true;
}

void vg_commit_answer(struct vg_engine *e, struct vg_mail *list, int err)
{
    while (list) {
        struct vg_store_req *req = VG_CONTAINER_OF(list, struct vg_store_req, mail);
        struct vg_txn *txn = VG_CONTAINER_OF(req, struct vg_txn, req);
        list = list->next;
        if (err < 0) {
            vg_commit_drop_prevs(txn);
            req->err = vg_fail(&req->status, err, "%s", failure_text(e, err));
            if (goes_again(e, txn, err))
                continue;
        }
        vg_storage_answer(req, req->err);
    }
}

/* ---- flying ---- */

static int append(struct vg_engine *e, const struct vg_commit_batch *group)
{
    return e->base ? e->base->ops->log_append(e->base, group->events, group->n) : 0;
}

void *vg_syncer_main(void *engine)
{
    struct vg_engine *e = engine;
    while (!atomic_load(&e->syncer_ends)) {
        if (atomic_load_explicit(&e->flight.state, memory_order_acquire) == FLIGHT_UP) {
            e->flight.result = append(e, e->flight.group);
            atomic_store_explicit(&e->flight.state, FLIGHT_DOWN, memory_order_release);
            vg_waker_wake(&e->commit.waker);
        }
        vg_waker_wait(&e->syncer.waker, VG_WAIT_FOREVER);
    }
    return NULL;
}

bool vg_flight_is_up(struct vg_engine *e)
{
    return atomic_load_explicit(&e->flight.state, memory_order_acquire) == FLIGHT_UP;
}

void vg_flight_launch(struct vg_engine *e, struct vg_mail *txns, size_t n_txns, vg_rev last)
{
    e->flight.group = vg_steal(e->group);
    e->flight.txns = txns;
    e->flight.last = last;
    if (e->base && n_txns >= e->opts.flight_min) {
        atomic_store_explicit(&e->flight.state, FLIGHT_UP, memory_order_release);
        vg_waker_wake(&e->syncer.waker);
        return;
    }
    e->flight.result = append(e, e->flight.group);
    atomic_store_explicit(&e->flight.state, FLIGHT_DOWN, memory_order_relaxed);
    (void)vg_flight_land(e, false);
}

/* Durable: now it becomes visible. */
static void show(struct vg_engine *e, struct vg_commit_batch *group)
{
    if (vg_table_log_count(e->active) == 0)
        e->active_since_ns = vg_clock_mono_ns(e->opts.clock);
    count_changes(e, group);
    vg_table_publish(e->active, group->n);
    group->last = e->flight.last;
    atomic_store_explicit(&e->rev, group->last, memory_order_release);
}

/* It did not reach the disk, as far as anybody can say: the tables are as they were before it. */
static void undo(struct vg_engine *e, struct vg_commit_batch *group, int err)
{
    if (err == VIGIL_E_STORE_FULL && e->opts.reserve_bytes)
        vg_room_enter_full(e);
    if (err == VIGIL_E_READ_ONLY)
        vg_commit_set_removed(e);
    else
        vg_commit_set_broken(e, err != VIGIL_E_STORE_FULL && err != -ENOMEM, err);
    vg_commit_drop_group(e); /* what was staged on top of it goes first */
    vg_table_unstage(e->active, 0);
    vg_commit_batch_free(&group->tail);
    vg_upkeep_expire_again(e);
}

int vg_flight_land(struct vg_engine *e, bool wait)
{
    while (wait && vg_flight_is_up(e))
        vg_waker_wait(&e->commit.waker, VG_WAIT_FOREVER);
    if (atomic_load_explicit(&e->flight.state, memory_order_acquire) != FLIGHT_DOWN)
        return 0;
    int r = e->flight.result;
    struct vg_commit_batch *group = e->flight.group;
    if (r < 0)
        undo(e, group, r);
    else
        show(e, group);
    e->flight.group = NULL;
    atomic_store_explicit(&e->flight.state, FLIGHT_NONE, memory_order_relaxed);
    /* Answers before events: a loop that has a thousand watchers to tell answers first. */
    vg_commit_answer(e, vg_steal(e->flight.txns), r);
    if (r >= 0)
        vg_tail_publish(&e->tail, &group->tail);
    return r;
}
