/* flusher.c - the flusher thread: moves the frozen table into the base, and compacts there.
 * A generation is either wholly in the base, or wholly in the log still: nothing is lost if it
 * fails at any point, it is done again. */
#include "flusher.h"

#include "base/log.h"

#define RETRY_NS (1 * VG_NS_PER_S)

static void note_checkpoint(struct vg_engine *e, int r)
{
    if ((atomic_exchange(&e->flusher_err, r) < 0) == (r < 0))
        return;
    if (r < 0)
        vg_error(e->opts.log, "checkpoint_failed", "err=%s retry_s=1", vg_err_name(r));
    else
        vg_warn(e->opts.log, "checkpoint_works_again");
    vg_waker_wake(&e->commit.waker); /* it may be waiting for room */
}

static void note_compaction(struct vg_engine *e, int r)
{
    if ((atomic_exchange(&e->compact_err, r) < 0) == (r < 0))
        return;
    if (r < 0)
        vg_error(e->opts.log, "compaction_failed", "err=%s retry_s=1", vg_err_name(r));
    else
        vg_warn(e->opts.log, "compaction_works_again");
}

static int checkpoint(struct vg_engine *e, struct vg_table *frozen)
{
    struct vg_base_apply apply = {.applied = e->frozen_last}; /* stands while frozen does */
    apply.recs = vg_table_frozen_log(frozen, &apply.n);
    int r = e->base->ops->apply(e->base, &apply);
    note_checkpoint(e, r);
    if (r < 0) {
        atomic_fetch_add_explicit(&e->n_checkpoint_failures, 1, memory_order_relaxed);
        (void)e->base->ops->reopen(e->base); /* the next apply tells when it did not help */
    }
    return r;
}

static int compact(struct vg_engine *e, bool *ret_more)
{
    struct vg_base_compact c = {
        .compact_rev = atomic_load_explicit(&e->compacted, memory_order_acquire),
        .now_ms = vg_clock_wall_ms(e->opts.clock),
        .max = vg_room_slice(e),
    };
    int r = e->base->ops->compact(e->base, &c);
    note_compaction(e, r);
    if (r < 0) {
        atomic_fetch_add_explicit(&e->n_compaction_failures, 1, memory_order_relaxed);
        (void)e->base->ops->reopen(e->base);
    }
    *ret_more = c.more;
    return r;
}

/* Everything of the frozen table is in the base: let go of it. */
static void thaw(struct vg_engine *e, struct vg_table *frozen)
{
    atomic_store(&e->deadlines_changed, true); /* its deadlines are the base's now */
    vg_mutex_lock(&e->mu);
    e->frozen = NULL;
    vg_mutex_unlock(&e->mu);
    vg_table_unref(frozen);
    atomic_fetch_add_explicit(&e->n_checkpoints, 1, memory_order_relaxed);
    vg_waker_wake(&e->commit.waker);
}

int vg_flusher_step(struct vg_engine *e, bool *ret_more)
{
    vg_mutex_lock(&e->mu);
    struct vg_table *frozen = e->frozen;
    struct vg_mail *compactions = e->compactions;
    e->compactions = NULL;
    vg_mutex_unlock(&e->mu);
    int r = frozen ? checkpoint(e, frozen) : 0;
    if (r == 0 && frozen)
        thaw(e, frozen);
    int compacted = compact(e, ret_more); /* also when there was no room: it makes some */
    if (atomic_load_explicit(&e->is_short, memory_order_relaxed))
        e->base->ops->count_free(e->base);
    vg_engine_answer_all(compactions, compacted);
    *ret_more |= r < 0 || compacted < 0;
    return r < 0 ? r : compacted;
}

static bool has_work(struct vg_engine *e, vg_rev done_compact)
{
    vg_mutex_lock(&e->mu);
    bool work = e->frozen || e->compactions;
    vg_mutex_unlock(&e->mu);
    return work || atomic_load_explicit(&e->compacted, memory_order_acquire) > done_compact;
}

/* ---- backups, on a thread of their own: one may take minutes, and checkpoints go on ---- */

static void *backup_main(void *engine)
{
    struct vg_engine *e = engine;
    vg_mutex_lock(&e->mu);
    struct vg_mail *list = vg_steal(e->backups);
    vg_mutex_unlock(&e->mu);
    while (list) {
        struct vg_store_req *req = VG_CONTAINER_OF(list, struct vg_store_req, mail);
        list = list->next;
        bool is_closing = atomic_load(&e->closing);
        vg_storage_answer(
            req, is_closing
                     ? VIGIL_E_CLOSED
                     : e->base->ops->backup(e->base, VG_CONTAINER_OF(req, struct vg_backup, req)));
    }
    vg_mutex_lock(&e->mu);
    e->backup_ended = true;
    vg_mutex_unlock(&e->mu);
    vg_waker_wake(&e->flusher.waker);
    return NULL;
}

static void join_backup(struct vg_engine *e)
{
    pthread_join(e->backup_thread, NULL);
    e->backup_running = e->backup_ended = false;
}

/* What they must hold is in the base once nothing is frozen. */
static void run_backups(struct vg_engine *e)
{
    vg_mutex_lock(&e->mu);
    bool has_ended = e->backup_running && e->backup_ended;
    vg_mutex_unlock(&e->mu);
    if (has_ended)
        join_backup(e);
    vg_mutex_lock(&e->mu);
    bool is_wanted = e->backups && !e->frozen && !e->backup_running;
    vg_mutex_unlock(&e->mu);
    if (!is_wanted)
        return;
    int r = pthread_create(&e->backup_thread, NULL, backup_main, e);
    e->backup_running = r == 0;
    if (r != 0) {
        vg_mutex_lock(&e->mu);
        struct vg_mail *list = vg_steal(e->backups);
        vg_mutex_unlock(&e->mu);
        vg_engine_answer_all(list, -r);
    }
}

static void end_work(struct vg_engine *e)
{
    if (e->backup_running)
        join_backup(e);
    vg_mutex_lock(&e->mu);
    struct vg_mail *compactions = vg_steal(e->compactions), *backups = vg_steal(e->backups);
    vg_mutex_unlock(&e->mu);
    vg_engine_answer_all(compactions, VIGIL_E_CLOSED);
    vg_engine_answer_all(backups, VIGIL_E_CLOSED);
}

void *vg_flusher_main(void *engine)
{
    struct vg_engine *e = engine;
    vg_rev done_compact = atomic_load(&e->compacted);
    uint64_t retry_at = VG_WAIT_FOREVER;
    while (!atomic_load(&e->closing)) {
        bool more = false;
        uint64_t now = vg_clock_mono_ns(e->opts.clock);
        /* After a failure the base may be closed: it is opened by the next step, work or not. */
        if (retry_at == VG_WAIT_FOREVER ? has_work(e, done_compact) : now >= retry_at) {
            vg_rev compact = atomic_load_explicit(&e->compacted, memory_order_acquire);
            int r = vg_flusher_step(e, &more);
            retry_at = r < 0 ? now + RETRY_NS : VG_WAIT_FOREVER;
            if (r == 0 && !more)
                done_compact = compact;
        }
        run_backups(e);
        if (!more || retry_at != VG_WAIT_FOREVER)
            vg_waker_wait(&e->flusher.waker, retry_at);
    }
    end_work(e);
    return NULL;
}
