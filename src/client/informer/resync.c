/* resync.c - telling handlers of all objects again, from the store, each at its own pace.
 * The informer looks every check_ms, the shortest period asked for before the start; a look marks
 * the handlers whose time has come, and only they are told of updates that change nothing. Handlers
 * are marked until the first look, so without any look they hear of a new list's equal objects. */
#include "informer_int.h"

/* 100 years: nanoseconds fit. */
#define PERIOD_MAX_MS UINT64_C(3155760000000)

uint64_t vg_resync_period(uint64_t ms)
{
    if (ms == 0 || ms == VIGIL_NO_RESYNC)
        return 0;
    return VG_MIN(VG_MAX(ms, VG_RESYNC_MIN_MS), PERIOD_MAX_MS);
}

static uint64_t now_ns(const struct vigil_informer *i)
{
    return vg_clock_mono_ns(vg_loop_clock(i->loop));
}

/* What a handler gets of what it asked for: never more often than the informer looks. */
static uint64_t period_of(const struct vigil_informer *i, uint64_t asked_ms)
{
    return asked_ms == 0 || i->check_ms == 0 ? 0 : VG_MAX(asked_ms, i->check_ms);
}

static void check_every(struct vigil_informer *i, uint64_t ms)
{
    i->check_ms = ms;
    VG_LIST_FOREACH (n, &i->handlers) {
        struct vg_handler *r = VG_CONTAINER_OF(n, struct vg_handler, link);
        r->period_ms = period_of(i, r->asked_ms);
    }
}

void vg_resync_join(struct vigil_informer *i, struct vg_handler *r)
{
    uint64_t ms = r->h.resync_ms == 0 ? i->default_ms : r->h.resync_ms;
    r->asked_ms = vg_resync_period(ms);
    if (r->asked_ms > 0 && r->asked_ms < i->check_ms && !i->is_started)
        check_every(i, r->asked_ms);
    r->period_ms = period_of(i, r->asked_ms);
    r->next_ns = now_ns(i) + r->period_ms * VG_NS_PER_MS;
    r->is_syncing = true;
}

/* Mark those whose time has come; is there one? */
static bool mark_due(struct vigil_informer *i)
{
    uint64_t now = now_ns(i);
    bool any = false;
    VG_LIST_FOREACH (n, &i->handlers) {
        struct vg_handler *r = VG_CONTAINER_OF(n, struct vg_handler, link);
        r->is_syncing = r->period_ms > 0 && now >= r->next_ns;
        if (r->is_syncing)
            r->next_ns = now + r->period_ms * VG_NS_PER_MS;
        any = any || r->is_syncing;
    }
    return any;
}

void vg_resync_start(struct vigil_informer *i)
{
    if (i->check_ms > 0)
        vg_timer_start(i->loop, &i->resync, i->check_ms * VG_NS_PER_MS, vg_resync_on_timer);
}

void vg_resync_on_timer(struct vg_timer *t)
{
    struct vigil_informer *i = VG_CONTAINER_OF(t, struct vigil_informer, resync);
    vg_resync_start(i);
    if (!atomic_load(&i->has_synced) || !mark_due(i))
        return;
    if (vg_fifo_resync(i->fifo) == 0) /* else the next time */
        vg_informer_work_soon(i);
}
