/* range.c - reads. The engine's thread asks for pages, all of one revision; the reader's loop makes
 * records of them, so that nobody waits while a large answer is taken apart. */
#include <errno.h>

#include "base/alloc.h"
#include "engine.h"

/* What one answer may hold: a few megabytes of usual objects. Not less than what the cache asks for
 * at once: each of its pages would cost a second call, for a few. */
#define PAGE_MAX ((size_t)2048)
/* In expires_ms, until it is known: prev_rev, which a range does not tell, has the lease. */
#define LEASE_TO_ASK (-1)

struct range_job {
    struct vg_etcd_job job;
    struct vg_range *range;
    struct vg_etcd_key start, end; /* of what has not been read */
    bool is_empty;                 /* no key can be in it: only the revision is asked for */
    bool has_count;
    vg_rev at;
    size_t page; /* records to ask for at once */
    size_t cap;
    size_t next_lease; /* records before it have their time */
};

static size_t limit_of(const struct vg_range *r)
{
    return r->limit ? VG_MIN(r->limit, (size_t)VG_STORAGE_RANGE_MAX) : VG_STORAGE_RANGE_MAX;
}

static bool counts_only(const struct vg_range *r)
{
    return (r->flags & VG_RANGE_COUNT_ONLY) == VG_RANGE_COUNT_ONLY;
}

static void free_job(struct range_job *j)
{
    vg_etcd_job_done(&j->job);
    vg_free(j);
}

/* Thread: the engine's. */
static void fail(struct range_job *j, int err)
{
    struct vg_range *range = j->range;
    struct vg_etcd_engine *e = j->job.e;
    vg_etcd_job_end(&j->job);
    range->req.rev = atomic_load_explicit(&e->rev, memory_order_acquire);
    if (err == VIGIL_E_COMPACTED)
        vg_etcd_answer_compacted(e, &range->req);
    else
        vg_storage_answer(&range->req, err);
    free_job(j);
}

/* ---- on the reader's loop ---- */

static void finish(struct range_job *j, int err)
{
    struct vg_range *range = j->range;
    free_job(j);
    if (err < 0)
        vg_range_done(range);
    range->req.err = err;
    if (err < 0 && range->req.status.err != err)
        vg_fail(&range->req.status, err, "%s", vg_err_text(err));
    range->req.done(&range->req);
}

static int keep(struct range_job *j, const Etcd__KeyValue *kv)
{
    struct vg_range *range = j->range;
    if (range->n_recs == j->cap) {
        size_t cap = j->cap ? j->cap * 2 : 16;
        struct vg_rec **v = vg_reallocarray(range->recs, cap, sizeof *v);
        if (!v)
            return -ENOMEM;
        range->recs = v;
        j->cap = cap;
    }
    int r = vg_etcd_record(j->job.e, kv, range->flags & VG_RANGE_KEYS_ONLY,
                           &range->recs[range->n_recs]);
    if (r == VIGIL_E_KEY_INVALID)
        return 0; /* none of ours */
    if (r == 0 && kv->lease && (range->flags & VG_RANGE_EXPIRES)) {
        range->recs[range->n_recs]->expires_ms = LEASE_TO_ASK;
        range->recs[range->n_recs]->prev_rev = (vg_rev)kv->lease;
    }
    range->n_recs += r == 0;
    return r;
}

static int keep_page(struct range_job *j, const Etcd__RangeResponse *res)
{
    struct vg_range *range = j->range;
    if (!j->has_count)
        range->count = j->is_empty ? 0 : (uint64_t)res->count;
    j->has_count = true;
    vg_etcd_saw_rev(j->job.e, res->header->revision); /* before anybody is told of it (E2) */
    if (!j->at)
        j->at = (vg_rev)res->header->revision;
    range->req.rev = j->at;
    for (size_t i = 0; i < res->n_kvs && !j->is_empty; i++) {
        int r = keep(j, res->kvs[i]);
        if (r < 0)
            return r;
    }
    range->more = res->more && !j->is_empty;
    return 0;
}

/* Behind the last key of the page. */
static bool go_behind(struct range_job *j, const Etcd__RangeResponse *res)
{
    struct vg_slice last =
        res->n_kvs ? vg_etcd_bytes(res->kvs[res->n_kvs - 1]->key) : vg_slice(NULL, 0);
    if (last.n == 0 || last.n + 1 > sizeof j->start.bytes)
        return false;
    memcpy(j->start.bytes, last.p, last.n);
    j->start.bytes[last.n] = '\0';
    j->start.n = last.n + 1;
    return true;
}

/* ---- times to live: one lease after the other ---- */

static void run_lease(struct vg_mail *mail);

/* The next record whose time is not known. 1: it is asked for; 0: there is none. */
static int ask_lease(struct range_job *j)
{
    const struct vg_range *range = j->range;
    while (j->next_lease < range->n_recs && range->recs[j->next_lease]->expires_ms != LEASE_TO_ASK)
        j->next_lease++;
    if (j->next_lease == range->n_recs)
        return 0;
    j->job.mail.run = run_lease;
    int r = vg_etcd_job_post(&j->job);
    return r < 0 ? r : 1;
}

/* Keys may share a lease. */
static void set_expiry(struct range_job *j, vg_rev lease, int64_t seconds)
{
    int64_t now = vg_clock_wall_ms(vg_clock_system());
    for (size_t i = j->next_lease; i < j->range->n_recs; i++) {
        struct vg_rec *rec = j->range->recs[i];
        if (rec->expires_ms != LEASE_TO_ASK || rec->prev_rev != lease)
            continue;
        rec->expires_ms = now + VG_MAX(seconds, 0) * 1000;
        rec->prev_rev = 0;
    }
}

static void on_lease(struct vg_mail *mail)
{
    struct range_job *j = VG_CONTAINER_OF(mail, struct range_job, job.mail);
    VG_AUTO(arena) arena = {0};
    Etcd__LeaseTimeToLiveResponse *res;
    int r = vg_etcd_answer(&j->job.call, &vg_etcd_lease_time_to_live, &arena, &res);
    vg_buf_done(&j->job.call.answer);
    if (r == 0)
        set_expiry(j, j->range->recs[j->next_lease]->prev_rev, res->ttl);
    if (r == 0)
        r = ask_lease(j);
    if (r <= 0)
        finish(j, r);
}

static void run(struct vg_mail *mail);

/* The part of the range that is behind this page. */
static int ask_next(struct range_job *j, const Etcd__RangeResponse *res)
{
    if (!go_behind(j, res))
        return VIGIL_E_INTERNAL;
    j->job.mail.run = run;
    return vg_etcd_job_post(&j->job);
}

static void on_page(struct vg_mail *mail)
{
    struct range_job *j = VG_CONTAINER_OF(mail, struct range_job, job.mail);
    struct vg_range *range = j->range;
    VG_AUTO(arena) arena = {0};
    Etcd__RangeResponse *res;
    int r = vg_etcd_answer(&j->job.call, &vg_etcd_range, &arena, &res);
    if (r == 0 && !res->header)
        r = VIGIL_E_INTERNAL;
    if (r == 0)
        r = keep_page(j, res);
    vg_buf_done(&j->job.call.answer);
    bool is_done = r < 0 || !range->more || range->n_recs >= limit_of(range);
    if (!is_done)
        r = ask_next(j, res);
    if (!is_done && r == 0)
        return;
    if (r == 0 && range->more && !range->limit && !counts_only(range))
        r = vg_fail(&range->req.status, VIGIL_E_TOO_LARGE,
                    "more than %d records; read them in pages", VG_STORAGE_RANGE_MAX);
    if (r == 0)
        r = ask_lease(j);
    if (r <= 0)
        finish(j, r);
}

/* ---- on the engine's thread ---- */

/* The page was larger than what is taken of an answer: a smaller one. */
static bool try_less(struct range_job *j)
{
    const struct vg_grpc_status *status = &j->job.call.status;
    if (status->code != VG_GRPC_RESOURCE_EXHAUSTED || status->fate != VG_GRPC_MAYBE || j->page == 1)
        return false;
    j->page = VG_MAX(j->page / 8, (size_t)1);
    vg_etcd_job_end(&j->job);
    run(&j->job.mail);
    return true;
}

static void on_end(struct vg_grpc_call *call)
{
    struct range_job *j = VG_CONTAINER_OF(call, struct range_job, job.call);
    if (try_less(j))
        return;
    int err = vg_etcd_error(&call->status, false, &j->range->req.status);
    if (err < 0) {
        vg_range_done(j->range);
        fail(j, err);
        return;
    }
    vg_etcd_job_end(&j->job);
    j->job.mail.run = on_page;
    vg_loop_post(j->range->req.loop, &j->job.mail);
}

static void run(struct vg_mail *mail)
{
    struct range_job *j = VG_CONTAINER_OF(mail, struct range_job, job.mail);
    const struct vg_range *range = j->range;
    Etcd__RangeRequest req = ETCD__RANGE_REQUEST__INIT;
    j->job.mail.run = run;
    vg_etcd_job_begin(&j->job);
    if (j->job.e->is_draining) {
        vg_range_done(j->range);
        fail(j, VIGIL_E_CLOSED);
        return;
    }
    req.key = vg_etcd_data(vg_etcd_key_slice(&j->start));
    if (j->end.n)
        req.range_end = vg_etcd_data(vg_etcd_key_slice(&j->end));
    req.revision = (int64_t)j->at;
    req.limit = (int64_t)VG_MIN(limit_of(range) - range->n_recs, j->page);
    req.keys_only = range->flags & VG_RANGE_KEYS_ONLY;
    req.count_only = j->is_empty || counts_only(range);
    if (req.count_only)
        req.limit = 0;
    j->job.call = (struct vg_grpc_call){.on_end = on_end};
    int r = vg_etcd_start(j->job.e, &vg_etcd_range, &req.base, &j->job.call);
    if (r < 0)
        fail(j, r);
}

static void on_lease_end(struct vg_grpc_call *call)
{
    struct range_job *j = VG_CONTAINER_OF(call, struct range_job, job.call);
    int err = vg_etcd_error(&call->status, false, &j->range->req.status);
    if (err < 0) {
        vg_range_done(j->range);
        fail(j, err);
        return;
    }
    vg_etcd_job_end(&j->job);
    j->job.mail.run = on_lease;
    vg_loop_post(j->range->req.loop, &j->job.mail);
}

static void run_lease(struct vg_mail *mail)
{
    struct range_job *j = VG_CONTAINER_OF(mail, struct range_job, job.mail);
    Etcd__LeaseTimeToLiveRequest req = ETCD__LEASE_TIME_TO_LIVE_REQUEST__INIT;
    vg_etcd_job_begin(&j->job);
    if (j->job.e->is_draining) {
        vg_range_done(j->range);
        fail(j, VIGIL_E_CLOSED);
        return;
    }
    req.id = (int64_t)j->range->recs[j->next_lease]->prev_rev;
    j->job.call = (struct vg_grpc_call){.on_end = on_lease_end};
    int r = vg_etcd_start(j->job.e, &vg_etcd_lease_time_to_live, &req.base, &j->job.call);
    if (r < 0) {
        vg_range_done(j->range);
        fail(j, r);
    }
}

static bool abandon(struct vg_etcd_job *job, bool now)
{
    struct range_job *j = VG_CONTAINER_OF(job, struct range_job, job);
    (void)now;
    vg_grpc_cancel(&job->call);
    vg_range_done(j->range);
    fail(j, VIGIL_E_CLOSED);
    return true;
}

int vg_etcd_submit_range(struct vg_storage *s, struct vg_range *range)
{
    struct vg_etcd_engine *e = vg_etcd_engine_of(s);
    if (!range->req.loop || !range->req.done)
        return VIGIL_E_INVALID;
    struct range_job *j = vg_new(struct range_job);
    if (!j)
        return -ENOMEM;
    vg_etcd_job_init(e, &j->job);
    j->job.mail.run = run;
    j->job.abandon = abandon;
    j->range = range;
    j->at = range->at;
    j->page = PAGE_MAX;
    j->is_empty = !vg_etcd_key_span(&e->space, &range->keys, &j->start, &j->end);
    if (j->is_empty) {
        memcpy(j->start.bytes, e->space.prefix_s.p, e->space.prefix_s.n);
        j->start.n = e->space.prefix_s.n;
        j->end.n = 0;
    }
    int r = vg_etcd_job_post(&j->job);
    if (r == 0)
        return 0;
    free_job(j);
    range->req.err = r;
    return vg_fail(&range->req.status, r, "%s", vg_err_text(r));
}
