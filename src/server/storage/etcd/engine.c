/* engine.c - see engine.h: the way in, opening and closing.
 *
 * Closing: from then on nobody can post (mu stands between the flag and the last mail). The thread
 * answers everything that can be answered at once, waits a moment for transactions that were sent,
 * says of the rest that their outcome is not known, and ends. */
#include "engine.h"

#include <errno.h>

#include "base/alloc.h"

#define OPEN_MS_DEFAULT 20000u
#define REQUEST_MS_DEFAULT 10000u
#define HEALTH_MS_DEFAULT 2000u
/* 128 MiB: a page of a range that is longer is asked for in smaller ones (range.c); what else etcd
 * says is a few megabytes. */
#define ANSWER_MAX ((size_t)128 << 20)
/* 5 s: a transaction takes milliseconds; a cluster that has lost its leader needs about a second.
 */
#define DRAIN_NS (5 * VG_NS_PER_S)

/* ---- revisions ---- */

static void raise_rev(_Atomic vg_rev *at, vg_rev rev)
{
    vg_rev was = atomic_load_explicit(at, memory_order_relaxed);
    while (was < rev && !atomic_compare_exchange_weak_explicit(at, &was, rev, memory_order_release,
                                                               memory_order_relaxed))
        ;
}

void vg_etcd_saw_rev(struct vg_etcd_engine *e, int64_t rev)
{
    if (rev > 0)
        raise_rev(&e->rev, (vg_rev)rev);
}

void vg_etcd_saw_compacted(struct vg_etcd_engine *e, vg_rev rev)
{
    raise_rev(&e->compacted, rev);
}

static vg_rev engine_revision(struct vg_storage *s)
{
    return atomic_load_explicit(&vg_etcd_engine_of(s)->rev, memory_order_acquire);
}

static vg_rev engine_compacted(struct vg_storage *s)
{
    return atomic_load_explicit(&vg_etcd_engine_of(s)->compacted, memory_order_acquire);
}

/* ---- jobs ---- */

int vg_etcd_post(struct vg_etcd_engine *e, struct vg_mail *mail)
{
    int r = VIGIL_E_CLOSED;
    vg_mutex_lock(&e->mu);
    if (!atomic_load(&e->closing)) {
        vg_loop_post(e->loop, mail);
        r = 0;
    }
    vg_mutex_unlock(&e->mu);
    return r;
}

void vg_etcd_job_init(struct vg_etcd_engine *e, struct vg_etcd_job *job)
{
    job->e = vg_etcd_engine_ref(e);
    vg_list_init(&job->link);
}

int vg_etcd_job_post(struct vg_etcd_job *job)
{
    return vg_etcd_post(job->e, &job->mail);
}

void vg_etcd_job_begin(struct vg_etcd_job *job)
{
    job->number = job->e->n_jobs++;
    vg_list_push_back(&job->e->calls, &job->link);
}

static void end_if_drained(struct vg_etcd_engine *e)
{
    if (!e->is_draining || !vg_list_is_empty(&e->calls))
        return;
    vg_timer_stop(e->loop, &e->close_timer);
    atomic_store(&e->is_over, true);
    vg_waker_wake(&e->over);
}

void vg_etcd_job_end(struct vg_etcd_job *job)
{
    vg_list_remove(&job->link);
    end_if_drained(job->e);
}

void vg_etcd_job_done(struct vg_etcd_job *job)
{
    vg_buf_done(&job->call.answer);
    vg_etcd_engine_unref(vg_steal(job->e));
}

int vg_etcd_start(struct vg_etcd_engine *e, const struct vg_etcd_method *method,
                  const ProtobufCMessage *request, struct vg_grpc_call *call)
{
    call->flags |= VG_GRPC_WAIT;
    if (!call->timeout_ms)
        call->timeout_ms = vg_etcd_request_ms(e);
    return vg_etcd_call(e->client, method, request, call);
}

/* ---- life ---- */

struct vg_etcd_engine *vg_etcd_engine_ref(struct vg_etcd_engine *e)
{
    atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
    return e;
}

/* What was opened has ended with close; what is left is what watches and late answers look at. */
void vg_etcd_engine_unref(struct vg_etcd_engine *e)
{
    if (atomic_fetch_sub_explicit(&e->refs, 1, memory_order_release) != 1)
        return;
    (void)atomic_load_explicit(&e->refs, memory_order_acquire); /* as a fence; TSan sees it */
    vg_tail_done(&e->tail);
    vg_etcd_space_done(&e->space);
    vg_mutex_done(&e->health.mu);
    vg_mutex_done(&e->mu);
    vg_free(e);
}

static void abandon_all(struct vg_etcd_engine *e, bool now)
{
    VG_LIST_FOREACH_SAFE (n, &e->calls) {
        struct vg_etcd_job *job = VG_CONTAINER_OF(n, struct vg_etcd_job, link);
        (void)job->abandon(job, now);
    }
}

static void on_drain_over(struct vg_timer *t)
{
    struct vg_etcd_engine *e = VG_CONTAINER_OF(t, struct vg_etcd_engine, close_timer);
    abandon_all(e, true);
}

static void on_close(struct vg_mail *mail)
{
    struct vg_etcd_engine *e = VG_CONTAINER_OF(mail, struct vg_etcd_engine, close_mail);
    e->is_draining = true;
    vg_etcd_health_stop(e);
    vg_etcd_compactor_stop(e);
    vg_etcd_push_stop(e);
    vg_etcd_history_stop(e);
    vg_etcd_feed_stop(e);
    vg_timer_start(e->loop, &e->close_timer, DRAIN_NS, on_drain_over);
    abandon_all(e, false);
    end_if_drained(e);
}

static void stop_thread(struct vg_etcd_engine *e)
{
    vg_mutex_lock(&e->mu);
    atomic_store(&e->closing, true);
    vg_mutex_unlock(&e->mu);
    e->close_mail.run = on_close;
    if (!e->is_running) {
        on_close(&e->close_mail);
        return;
    }
    vg_loop_post(e->loop, &e->close_mail);
    while (!atomic_load(&e->is_over))
        vg_waker_wait(&e->over, VG_WAIT_FOREVER);
    vg_loop_stop(e->loop);
}

static void engine_close(struct vg_storage *s)
{
    struct vg_etcd_engine *e = vg_etcd_engine_of(s);
    if (e->client)
        stop_thread(e);
    atomic_store(&e->closing, true);
    vg_watch_wake_all(&e->host);
    vg_etcd_own_stop(e);
    vg_map_done(&e->own.by_key);
    vg_etcd_client_free(e->client);
    vg_loop_free(e->loop);
    e->client = NULL;
    e->loop = NULL;
    vg_etcd_engine_unref(e);
}

/* ---- the way in ---- */

static int engine_watch(struct vg_storage *s, const struct vg_watch_opts *opts,
                        struct vg_watch **ret_watch)
{
    return vg_watch_open(&vg_etcd_engine_of(s)->host, opts, ret_watch);
}

static int engine_backup(struct vg_storage *s, struct vg_backup *backup)
{
    (void)s;
    return vg_fail(&backup->req.status, VIGIL_E_UNSUPPORTED,
                   "etcd keeps its own backups: etcdctl snapshot save");
}

static uint64_t read_count(_Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void engine_stats(struct vg_storage *s, struct vg_storage_stats *ret_stats)
{
    struct vg_etcd_engine *e = vg_etcd_engine_of(s);
    uint64_t changes = read_count(&e->n_puts) + read_count(&e->n_deletes);
    *ret_stats = (struct vg_storage_stats){
        .txns = read_count(&e->n_txns),
        .conflicts = read_count(&e->n_conflicts),
        .puts = read_count(&e->n_puts),
        .deletes = read_count(&e->n_deletes),
        .commits = changes,
        .disk_bytes = read_count(&e->db_bytes),
        .pending = atomic_load_explicit(&e->n_txns_waiting, memory_order_relaxed),
        .progress_requests = read_count(&e->n_progress),
        .barriers = read_count(&e->n_barriers),
        .watch_restarts = read_count(&e->n_restarts),
        .past_watches = read_count(&e->n_past_watches),
        .unknown_outcomes = read_count(&e->n_unknown),
        .resolved_outcomes = read_count(&e->n_resolved),
    };
}

static const struct vg_storage_ops engine_ops = {
    .txn = vg_etcd_submit_txn,
    .range = vg_etcd_submit_range,
    .watch = engine_watch,
    .compact = vg_etcd_submit_compact,
    .backup = engine_backup,
    .revision = engine_revision,
    .compacted = engine_compacted,
    .fresh = vg_etcd_submit_fresh,
    .health = vg_etcd_health_ask,
    .stats = engine_stats,
    .close = engine_close,
};

/* ---- opening ---- */

static void host_ref(struct vg_watch_host *h)
{
    vg_etcd_engine_ref(VG_CONTAINER_OF(h, struct vg_etcd_engine, host));
}

static void host_unref(struct vg_watch_host *h)
{
    vg_etcd_engine_unref(VG_CONTAINER_OF(h, struct vg_etcd_engine, host));
}

static void init_parts(struct vg_etcd_engine *e)
{
    e->storage.ops = &engine_ops;
    e->host = (struct vg_watch_host){
        .tail = &e->tail,
        .rev = &e->rev,
        .closing = &e->closing,
        .prev_watches = &e->prev_watches,
        .read = vg_etcd_history_read,
        .hurry = vg_etcd_push_hurry,
        .ref = host_ref,
        .unref = host_unref,
    };
    atomic_init(&e->refs, 1);
    vg_mutex_init(&e->mu, VG_RANK_STORE_STATE);
    vg_mutex_init(&e->health.mu, VG_RANK_STORE_TABLE);
    vg_list_init(&e->calls);
    vg_list_init(&e->pasts);
    vg_list_init(&e->own.answered);
    vg_map_init(&e->own.by_key, VG_MAP_BORROWS_KEYS);
    vg_waker_init(&e->over, vg_clock_system());
    vg_etcd_push_init(e);
}

static void fill_opts(struct vg_etcd_engine *e, const struct vg_storage_opts *opts)
{
    e->opts = *opts;
    e->eo = *opts->etcd;
    if (!e->eo.open_ms)
        e->eo.open_ms = OPEN_MS_DEFAULT;
    if (!e->eo.request_ms)
        e->eo.request_ms = REQUEST_MS_DEFAULT;
    if (!e->eo.health_ms)
        e->eo.health_ms = HEALTH_MS_DEFAULT;
}

/* What of the options is the caller's only for the call. */
static void forget_opts(struct vg_etcd_engine *e)
{
    struct vg_stored_form form = e->eo.form;
    e->eo = (struct vg_etcd_opts){
        .form = form,
        .request_ms = e->eo.request_ms,
        .health_ms = e->eo.health_ms,
        .compact_ms = e->eo.compact_ms,
    };
    e->opts.etcd = NULL;
    e->opts.dir = NULL;
}

static int open_client(struct vg_etcd_engine *e, struct vg_status *reterr_status)
{
    const struct vg_etcd_opts *o = &e->eo;
    struct vg_etcd_client_opts c = {
        .pool = {.loop = e->loop,
                 .log = e->opts.log,
                 .endpoints = o->servers,
                 .n_endpoints = o->n_servers,
                 .message_max = ANSWER_MAX,
                 .tls = {.ca_file = o->ca_file,
                         .cert_file = o->cert_file,
                         .key_file = o->key_file}},
        .username = o->username,
        .password = o->password,
    };
    return vg_etcd_client_new(&c, &e->client, reterr_status);
}

static int init_tail(struct vg_etcd_engine *e)
{
    struct vg_commit_batch *first = vg_new(struct vg_commit_batch);
    if (!first)
        return -ENOMEM;
    first->tail.free = vg_commit_batch_free;
    vg_tail_init(&e->tail, &first->tail);
    return 0;
}

/* The tail begins at the revision of the first contact. */
static int begin(struct vg_etcd_engine *e)
{
    vg_rev rev = atomic_load_explicit(&e->rev, memory_order_relaxed);
    struct vg_commit_batch *b = vg_new(struct vg_commit_batch);
    if (!b)
        return -ENOMEM;
    b->tail.free = vg_commit_batch_free;
    b->last = rev;
    vg_tail_publish(&e->tail, &b->tail);
    e->feed.told = rev;
    e->feed.newest_event = rev > VG_REV_EMPTY ? rev : 0;
    e->feed.is_certain = rev <= VG_REV_EMPTY;
    vg_etcd_feed_start(e);
    vg_etcd_compactor_start(e);
    vg_etcd_health_start(e);
    int r = vg_loop_start(e->loop, "vg-etcd");
    e->is_running = r == 0;
    return r;
}

int vg_storage_open_etcd(const struct vg_storage_opts *opts, struct vg_storage **ret_storage,
                         struct vg_status *reterr_status)
{
    struct vg_storage_opts o = vg_storage_opts_filled(opts);
    struct vg_etcd_engine *e = o.etcd ? vg_new(struct vg_etcd_engine) : NULL;
    if (!e)
        return o.etcd ? -ENOMEM : VIGIL_E_INVALID;
    if (init_tail(e) < 0) {
        vg_free(e);
        return -ENOMEM;
    }
    init_parts(e);
    fill_opts(e, &o);
    int r = vg_etcd_space_init(&e->space, e->eo.root ? e->eo.root : "", e->eo.prefix);
    if (r == VIGIL_E_INVALID)
        vg_fail(reterr_status, r, "a prefix of etcd's keys has 1 to %d bytes",
                VG_ETCD_PREFIX_MAX - 16);
    if (r == 0)
        r = vg_loop_new(vg_clock_system(), &e->loop);
    if (r == 0)
        r = open_client(e, reterr_status);
    if (r == 0)
        r = vg_etcd_first_contact(e, reterr_status);
    forget_opts(e);
    if (r == 0)
        r = begin(e);
    if (r < 0) {
        engine_close(&e->storage);
        return r;
    }
    *ret_storage = &e->storage;
    return 0;
}
