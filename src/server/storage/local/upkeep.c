/* upkeep.c - what the commit thread does besides committing: deadlines and compaction.
 * A deadline is checked against the newest change of its key when it is due: one that was
 * overwritten or renewed meanwhile is simply dropped, so that writing never has to look deadlines
 * up. */
#include "engine.h"

#include <errno.h>

#include "base/alloc.h"

/* Keys that expire together share one revision, up to this many. */
#define EXPIRE_BATCH VG_STORAGE_TXN_OPS_MAX
/* Log entries that the mem engine compacts under one hold of the table's lock. */
#define COMPACT_SLICE 1000
#define EXPIRE_RETRY_NS (1 * VG_NS_PER_S)
#define UPKEEP_INTERVAL_MIN_NS (100 * VG_NS_PER_MS)
#define UPKEEP_INTERVAL_MAX_NS (30 * VG_NS_PER_S)

/* ---- deadlines ---- */

/* Stage the delete that a deadline asks for, unless its record is no longer the newest. */
static int expire(struct vg_engine *e, const struct vg_rec *due, vg_rev rev, uint32_t *sub)
{
    struct vg_rec *gone;
    struct vg_current now;
    int r = vg_commit_current(e, vg_rec_key(due), vg_engine_wants_prev(e), &now);
    if (r < 0)
        return r;
    if (now.version.rev != due->rev) {
        vg_rec_unref(now.rec);
        return 0;
    }
    r = vg_rec_new(VG_REC_DELETE, vg_rec_key(due), vg_slice(NULL, 0), vg_slice(NULL, 0), &gone);
    if (r == 0)
        r = vg_commit_stage(e, gone, &now, rev, *sub);
    if (r == 0)
        (*sub)++;
    vg_rec_unref(now.rec);
    return r;
}

static int expire_table(struct vg_engine *e, struct vg_table *t, int64_t now_ms, vg_rev rev,
                        uint32_t *sub)
{
    const struct vg_rec *due;
    while (t && *sub < EXPIRE_BATCH && (due = vg_table_first_deadline(t)) &&
           due->expires_ms <= now_ms) {
        int r = expire(e, due, rev, sub);
        if (r < 0)
            return r;
        vg_table_pop_deadline(t);
    }
    return 0;
}

/* One look at the deadlines of the base, going on where the last one stopped. */
static int expire_base(struct vg_engine *e, int64_t now_ms, vg_rev rev, uint32_t *sub)
{
    if (!e->base || e->base_deadline_ms > now_ms || *sub >= EXPIRE_BATCH)
        return 0;
    struct vg_rec *due[EXPIRE_BATCH];
    size_t n = 0, i = 0, room = EXPIRE_BATCH - *sub;
    int r = e->base->ops->deadlines(e->commit_view, &e->deadlines_done, due, room, &n);
    for (; r == 0 && i < n && due[i]->expires_ms <= now_ms; i++) {
        r = expire(e, due[i], rev, sub);
        e->deadlines_done = vg_deadline_of(due[i]);
    }
    if (r == 0) /* the next is one that is not due, or unknown, or there is none */
        e->base_deadline_ms = i < n ? due[i]->expires_ms : n == room ? 0 : INT64_MAX;
    for (i = 0; i < n; i++)
        vg_rec_unref(due[i]);
    return r;
}

/* Look at all deadlines of the base again. */
static void forget_deadlines(struct vg_engine *e)
{
    e->deadlines_done = (struct vg_deadline){.ms = INT64_MIN};
    e->base_deadline_ms = e->base ? INT64_MIN : INT64_MAX;
}

void vg_upkeep_notice(struct vg_engine *e)
{
    if (atomic_exchange(&e->deadlines_changed, false))
        forget_deadlines(e);
}

bool vg_upkeep_is_expiry_due(struct vg_engine *e)
{
    return vg_clock_mono_ns(e->opts.clock) >= e->next_expire_ns &&
           vg_upkeep_next_deadline(e) <= vg_clock_wall_ms(e->opts.clock);
}

void vg_upkeep_expire_again(struct vg_engine *e)
{
    /* Those of the tables come back with the next checkpoint, which puts them into the base. */
    forget_deadlines(e);
    e->next_expire_ns = vg_clock_mono_ns(e->opts.clock) + EXPIRE_RETRY_NS;
}

int vg_upkeep_stage_expired(struct vg_engine *e, vg_rev *rev)
{
    if (!vg_upkeep_is_expiry_due(e))
        return 0;
    int64_t now_ms = vg_clock_wall_ms(e->opts.clock);
    uint32_t sub = 0;
    int r = expire_base(e, now_ms, *rev + 1, &sub);
    if (r == 0)
        r = expire_table(e, e->group_frozen, now_ms, *rev + 1, &sub);
    if (r == 0)
        r = expire_table(e, e->active, now_ms, *rev + 1, &sub);
    if (sub)
        (*rev)++;
    atomic_fetch_add_explicit(&e->n_expired, sub, memory_order_relaxed);
    if (r < 0)
        vg_upkeep_expire_again(e);
    return r;
}

int64_t vg_upkeep_next_deadline(struct vg_engine *e)
{
    int64_t at = atomic_load(&e->deadlines_changed) ? INT64_MIN : e->base_deadline_ms;
    const struct vg_rec *first = vg_table_first_deadline(e->active);
    if (first)
        at = VG_MIN(at, first->expires_ms);
    vg_mutex_lock(&e->mu);
    first = e->frozen ? vg_table_first_deadline(e->frozen) : NULL;
    if (first)
        at = VG_MIN(at, first->expires_ms);
    vg_mutex_unlock(&e->mu);
    return at;
}

/* ---- compaction ---- */

void vg_upkeep_compact(struct vg_engine *e, vg_rev target)
{
    atomic_store_explicit(&e->compacted, target, memory_order_release);
    if (e->base) {
        vg_waker_wake(&e->flusher.waker);
        return;
    }
    while (vg_table_compact(e->active, target, COMPACT_SLICE))
        ;
}

/* The first change of the base at or after a revision that says when it was made. */
static int first_dated(struct vg_engine *e, vg_rev rev, struct vg_rec **ret_rec, size_t *ret_n)
{
    for (;;) {
        int r = e->base->ops->log_read(e->commit_view, rev, VG_REV_MAX, ret_rec, 1, ret_n);
        if (r < 0 || *ret_n == 0 || (*ret_rec)->time_ms)
            return r;
        rev = (*ret_rec)->rev + 1; /* it does not read back */
        *ret_rec = vg_rec_unref(*ret_rec);
        *ret_n = 0;
    }
}

/* When was this revision written? The first change at or after it tells. */
static int64_t time_of(struct vg_engine *e, vg_rev rev)
{
    struct vg_rec *rec = NULL;
    size_t n = 0;
    if (e->base && first_dated(e, rev, &rec, &n) < 0)
        return INT64_MAX;
    if (n == 0 && e->group_frozen)
        n = vg_table_log(e->group_frozen, rev, VG_REV_MAX, &rec, 1);
    if (n == 0)
        n = vg_table_log(e->active, rev, VG_REV_MAX, &rec, 1);
    int64_t at = n ? rec->time_ms : INT64_MAX;
    if (n)
        vg_rec_unref(rec);
    return at;
}

/* The newest revision that is older than the age to keep; `lo` when none is. */
static vg_rev oldest_to_keep(struct vg_engine *e, vg_rev lo, vg_rev hi)
{
    int64_t limit = vg_clock_wall_ms(e->opts.clock) - (int64_t)e->opts.compact_age_ms;
    while (lo < hi) {
        vg_rev mid = lo + (hi - lo + 1) / 2;
        if (time_of(e, mid) < limit)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

static vg_rev auto_target(struct vg_engine *e)
{
    vg_rev rev = atomic_load_explicit(&e->rev, memory_order_relaxed);
    vg_rev target = atomic_load_explicit(&e->compacted, memory_order_relaxed);
    struct vg_table *frozen = NULL;
    vg_mutex_lock(&e->mu);
    frozen = e->frozen ? vg_table_ref(e->frozen) : NULL;
    vg_mutex_unlock(&e->mu);
    e->group_frozen = frozen;
    if (e->opts.compact_age_ms && (!e->base || e->base->ops->view_begin(e->commit_view) == 0)) {
        target = oldest_to_keep(e, target, rev);
        if (e->base)
            e->base->ops->view_end(e->commit_view);
    }
    e->group_frozen = NULL;
    vg_table_unref(frozen);
    if (e->opts.compact_count && rev > e->opts.compact_count)
        target = VG_MAX(target, rev - e->opts.compact_count);
    return target;
}

void vg_upkeep_auto_compact(struct vg_engine *e)
{
    uint64_t now = vg_clock_mono_ns(e->opts.clock);
    if (now < e->next_upkeep_ns)
        return;
    if (!e->opts.compact_age_ms && !e->opts.compact_count) {
        e->next_upkeep_ns = VG_WAIT_FOREVER;
        return;
    }
    uint64_t interval = e->opts.compact_age_ms ? e->opts.compact_age_ms * VG_NS_PER_MS / 10
                                               : UPKEEP_INTERVAL_MAX_NS / 10;
    interval = VG_MAX(interval, UPKEEP_INTERVAL_MIN_NS);
    e->next_upkeep_ns = now + VG_MIN(interval, UPKEEP_INTERVAL_MAX_NS);
    vg_rev target = auto_target(e);
    if (target > atomic_load_explicit(&e->compacted, memory_order_relaxed))
        vg_upkeep_compact(e, target);
}
