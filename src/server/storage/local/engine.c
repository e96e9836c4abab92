/* engine.c - opening, closing and the way in. See engine.h for the whole. */
#include "engine.h"

#include <errno.h>

#include "base/alloc.h"
#include "flusher.h"

/* ---- answers and layers ---- */

void vg_engine_answer_all(struct vg_mail *list, int err)
{
    while (list) {
        struct vg_store_req *req = VG_CONTAINER_OF(list, struct vg_store_req, mail);
        list = list->next;
        vg_storage_answer(req, err);
    }
}

struct vg_layers vg_engine_layers(struct vg_engine *e)
{
    struct vg_layers l;
    vg_mutex_lock(&e->mu);
    l.active = vg_table_ref(e->active);
    l.frozen = e->frozen ? vg_table_ref(e->frozen) : NULL;
    vg_mutex_unlock(&e->mu);
    return l;
}

void vg_layers_done(struct vg_layers *l)
{
    vg_table_unref(l->active);
    vg_table_unref(l->frozen);
    l->active = l->frozen = NULL;
}

int vg_layers_get(struct vg_engine *e, const struct vg_layers *l, struct vg_base_view *v,
                  struct vg_slice key, vg_rev at, struct vg_rec **ret_rec)
{
    struct vg_rec *rec = l->active ? vg_table_get(l->active, key, at) : NULL;
    if (!rec && l->frozen)
        rec = vg_table_get(l->frozen, key, at);
    if (rec) {
        *ret_rec = rec;
        return 1;
    }
    return e->base ? e->base->ops->get(v, key, at, ret_rec) : 0;
}

/* ---- requests ---- */

static struct vg_engine *engine_of(struct vg_storage *s)
{
    return VG_CONTAINER_OF(s, struct vg_engine, storage);
}

static int submit(struct vg_engine *e, struct vg_server_thread *to, struct vg_store_req *req,
                  enum req_type type)
{
    if (!req->loop || !req->done)
        return VIGIL_E_INVALID;
    int r = VIGIL_E_CLOSED;
    struct vg_loop *loop = req->loop;
    req->type = (uint8_t)type;
    if (!atomic_load(&e->closing))
        r = vg_mailbox_put(&to->box, &req->mail);
    if (r == 0) /* req may be answered already */
        vg_loop_wake_soon(loop, &to->waker);
    else
        req->err = vg_fail(&req->status, r, "%s", vg_err_text(r));
    return r;
}

static int engine_txn(struct vg_storage *s, struct vg_txn *txn)
{
    return submit(engine_of(s), &engine_of(s)->commit, &txn->req, REQ_TXN);
}

static int engine_range(struct vg_storage *s, struct vg_range *range)
{
    return submit(engine_of(s), &engine_of(s)->reader, &range->req, REQ_RANGE);
}

static int engine_watch(struct vg_storage *s, const struct vg_watch_opts *opts,
                        struct vg_watch **ret_watch)
{
    return vg_watch_open(&engine_of(s)->host, opts, ret_watch);
}

static int engine_compact(struct vg_storage *s, struct vg_compact *compact)
{
    return submit(engine_of(s), &engine_of(s)->commit, &compact->req, REQ_COMPACT);
}

static int engine_backup(struct vg_storage *s, struct vg_backup *backup)
{
    struct vg_engine *e = engine_of(s);
    if (!e->base)
        return vg_fail(&backup->req.status, VIGIL_E_UNSUPPORTED,
                       "a store in memory cannot be backed up; use the lmdb engine");
    return submit(e, &e->commit, &backup->req, REQ_BACKUP);
}

static vg_rev engine_revision(struct vg_storage *s)
{
    return atomic_load_explicit(&engine_of(s)->rev, memory_order_acquire);
}

static vg_rev engine_compacted(struct vg_storage *s)
{
    return atomic_load_explicit(&engine_of(s)->compacted, memory_order_acquire);
}

static uint64_t read_count(_Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void engine_stats(struct vg_storage *s, struct vg_storage_stats *ret_stats)
{
    struct vg_engine *e = engine_of(s);
    struct vg_layers l = vg_engine_layers(e);
    *ret_stats = (struct vg_storage_stats){
        .txns = read_count(&e->n_txns),
        .conflicts = read_count(&e->n_conflicts),
        .puts = read_count(&e->n_puts),
        .deletes = read_count(&e->n_deletes),
        .expired = read_count(&e->n_expired),
        .commits = read_count(&e->n_commits),
        .checkpoints = read_count(&e->n_checkpoints),
        .checkpoint_failures = read_count(&e->n_checkpoint_failures),
        .compaction_failures = read_count(&e->n_compaction_failures),
        .pending = vg_mailbox_count(&e->commit.box),
        .overlay_bytes = vg_table_bytes(l.active) + (l.frozen ? vg_table_bytes(l.frozen) : 0),
        .read_only = atomic_load_explicit(&e->log_broken, memory_order_relaxed),
    };
    if (e->base) {
        ret_stats->syncs = read_count(&e->base->syncs);
        ret_stats->wal_bytes = read_count(&e->base->log_bytes);
        ret_stats->reserve_bytes = read_count(&e->base->reserve_held);
        ret_stats->full = vg_room_is_full(e);
        ret_stats->damaged_records = read_count(&e->base->damaged);
        ret_stats->scrub_passes = read_count(&e->base->scrub_passes);
        ret_stats->scrub_bytes = read_count(&e->base->scrub_bytes);
        ret_stats->scrub_damages = read_count(&e->base->scrub_damages);
        ret_stats->disk_bytes = e->base->ops->disk_bytes(e->base);
    }
    vg_layers_done(&l);
}

/* A disk that takes no checkpoint, or a base that cannot be compacted, is told here before the log
 * is full and writes are refused. */
static int engine_health(struct vg_storage *s, struct vg_status *reterr_status)
{
    struct vg_engine *e = engine_of(s);
    if (atomic_load(&e->is_removed))
        return vg_fail(reterr_status, VIGIL_E_READ_ONLY,
                       "the files of the store were removed or replaced: writes are refused");
    int err = atomic_load(&e->flusher_err);
    if (err < 0 && !vg_room_is_full(e)) /* a full store takes deletions: it shall be found */
        return vg_fail(reterr_status, err,
                       "checkpoints fail (%s): what is written goes to the log alone, until that "
                       "is full; see the log of vigild",
                       vg_err_text(err));
    err = atomic_load(&e->compact_err);
    if (err < 0 && !vg_room_is_full(e))
        return vg_fail(reterr_status, err,
                       "compaction fails (%s): the store grows; see the log of vigild",
                       vg_err_text(err));
    return 0;
}

static bool engine_is_full(struct vg_storage *s)
{
    return vg_room_is_full(engine_of(s));
}

/* ---- threads ---- */

static int server_init(struct vg_server_thread *t, const struct vg_clock *clock, size_t cap)
{
    vg_waker_init(&t->waker, clock);
    vg_mailbox_init(&t->box, cap, vg_waker_wake_cb, &t->waker);
    return vg_clock_on_advance(clock, vg_waker_wake_cb, &t->waker);
}

static int server_start(struct vg_server_thread *t, void *(*main)(void *), void *arg,
                        const char *name)
{
    int r = pthread_create(&t->thread, NULL, main, arg);
    if (r != 0)
        return -r;
    t->started = true;
    pthread_setname_np(t->thread, name);
    return 0;
}

static void server_stop(struct vg_server_thread *t)
{
    if (!t->started)
        return;
    vg_waker_wake(&t->waker);
    pthread_join(t->thread, NULL);
    t->started = false;
}

static void server_done(struct vg_server_thread *t, const struct vg_clock *clock)
{
    vg_clock_off_advance(clock, vg_waker_wake_cb, &t->waker);
}

/* ---- life ---- */

struct vg_engine *vg_engine_ref(struct vg_engine *e)
{
    atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
    return e;
}

/* The threads and the base have ended with close; what is left is what watches look at. */
void vg_engine_unref(struct vg_engine *e)
{
    if (atomic_fetch_sub_explicit(&e->refs, 1, memory_order_release) != 1)
        return;
    (void)atomic_load_explicit(&e->refs, memory_order_acquire); /* as a fence; TSan sees it */
    vg_tail_done(&e->tail);
    server_done(&e->commit, e->opts.clock);
    server_done(&e->reader, e->opts.clock);
    server_done(&e->flusher, e->opts.clock);
    server_done(&e->syncer, e->opts.clock);
    vg_mutex_done(&e->mu);
    vg_free(e);
}

/* Leave nothing in the log, so that the next start has nothing to replay. If it cannot be done, the
 * log still has everything. */
static void flush_all(struct vg_engine *e)
{
    bool more;
    if (e->frozen && vg_flusher_step(e, &more) < 0)
        return;
    if (e->log_broken || vg_table_log_count(e->active) == 0)
        return;
    if (vg_commit_freeze(e) == 0)
        (void)vg_flusher_step(e, &more);
}

static void close_base(struct vg_engine *e)
{
    if (!e->base)
        return;
    const struct vg_base_ops *ops = e->base->ops;
    ops->view_close(e->commit_view);
    ops->view_close(e->reader_view);
    ops->close(e->base, atomic_load(&e->rev));
    e->base = NULL;
}

static void engine_close(struct vg_storage *s)
{
    struct vg_engine *e = engine_of(s);
    bool was_running = e->flusher.started || e->reader.started;
    atomic_store(&e->closing, true);
    server_stop(&e->commit);
    atomic_store(&e->syncer_ends, true);
    server_stop(&e->syncer);
    server_stop(&e->reader);
    server_stop(&e->flusher);
    if (e->base && was_running)
        flush_all(e);
    close_base(e);
    vg_watch_wake_all(&e->host);
    vg_table_unref(e->active);
    vg_table_unref(e->frozen);
    e->active = e->frozen = NULL;
    vg_engine_unref(e);
}

static const struct vg_storage_ops engine_ops = {
    .txn = engine_txn,
    .range = engine_range,
    .watch = engine_watch,
    .compact = engine_compact,
    .backup = engine_backup,
    .revision = engine_revision,
    .compacted = engine_compacted,
    .health = engine_health,
    .is_full = engine_is_full,
    .stats = engine_stats,
    .close = engine_close,
};

/* ---- watches ---- */

static struct vg_engine *engine_of_host(struct vg_watch_host *h)
{
    return VG_CONTAINER_OF(h, struct vg_engine, host);
}

static int host_read(struct vg_watch_host *h, struct vg_log_read *read)
{
    read->req.type = REQ_LOG_READ;
    return vg_mailbox_post(&engine_of_host(h)->reader.box, &read->req.mail);
}

static void host_ref(struct vg_watch_host *h)
{
    vg_engine_ref(engine_of_host(h));
}

static void host_unref(struct vg_watch_host *h)
{
    vg_engine_unref(engine_of_host(h));
}

static void init_host(struct vg_engine *e)
{
    e->host = (struct vg_watch_host){
        .tail = &e->tail,
        .rev = &e->rev,
        .closing = &e->closing,
        .prev_watches = &e->prev_watches,
        .read = host_read,
        .ref = host_ref,
        .unref = host_unref,
    };
}

static int open_views(struct vg_engine *e)
{
    if (!e->base)
        return 0;
    int r = e->base->ops->view_open(e->base, &e->commit_view);
    if (r == 0)
        r = e->base->ops->view_open(e->base, &e->reader_view);
    return r;
}

static int start_threads(struct vg_engine *e)
{
    int r = e->base ? server_start(&e->syncer, vg_syncer_main, e, "vg-syncer") : 0;
    if (r == 0)
        r = server_start(&e->commit, vg_commit_main, e, "vg-commit");
    if (r == 0)
        r = server_start(&e->reader, vg_reader_main, e, "vg-reader");
    if (r == 0 && e->base)
        r = server_start(&e->flusher, vg_flusher_main, e, "vg-flusher");
    return r;
}

static int init_engine(struct vg_engine *e, const struct vg_engine_start *start)
{
    struct vg_commit_batch *first = vg_new(struct vg_commit_batch);
    if (!first)
        return -ENOMEM;
    first->tail.free = vg_commit_batch_free;
    first->last = start->rev;
    init_host(e);
    vg_tail_init(&e->tail, &first->tail);
    vg_mutex_init(&e->mu, VG_RANK_STORE_STATE);
    atomic_init(&e->refs, 1);
    atomic_init(&e->rev, start->rev);
    atomic_init(&e->compacted, start->compacted);
    atomic_init(&e->deadlines_changed, start->take_base != NULL);
    e->base_deadline_ms = INT64_MAX;
    e->active = start->take_active;
    e->frozen = start->take_frozen;
    e->frozen_last = start->frozen_last;
    e->base = start->take_base;
    e->active_since_ns = vg_clock_mono_ns(e->opts.clock);
    return 0;
}

static void drop_start(const struct vg_engine_start *start)
{
    vg_table_unref(start->take_active);
    vg_table_unref(start->take_frozen);
    if (start->take_base)
        start->take_base->ops->close(start->take_base, start->rev);
}

int vg_engine_open(const struct vg_storage_opts *opts, const struct vg_engine_start *start,
                   struct vg_storage **ret_storage)
{
    struct vg_engine *e = vg_new(struct vg_engine);
    int r = -ENOMEM;
    if (e) {
        e->storage.ops = &engine_ops;
        e->opts = *opts;
        e->opts.dir = NULL; /* the caller's */
        r = init_engine(e, start);
    }
    if (r < 0) {
        vg_free(e);
        drop_start(start);
        return r;
    }
    r = server_init(&e->commit, opts->clock, opts->queue_max);
    if (r == 0)
        r = server_init(&e->reader, opts->clock, opts->queue_max);
    if (r == 0)
        r = server_init(&e->flusher, opts->clock, 1);
    if (r == 0)
        r = server_init(&e->syncer, opts->clock, 1);
    if (r == 0)
        r = open_views(e);
    if (r == 0)
        vg_room_start(e);
    if (r == 0)
        r = start_threads(e);
    if (r < 0) {
        engine_close(&e->storage);
        return r;
    }
    *ret_storage = &e->storage;
    return 0;
}
