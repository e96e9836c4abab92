/* wait.c - waiting for an informer: on a condition, or, where the program turns the client's loop
 * itself and this is its thread, by turning it. */
#include <inttypes.h>
#include <stdio.h>

#include "informer_int.h"

struct wait {
    bool (*is_over)(struct vigil_informer *i, const struct wait *w);
    const struct vg_handler *r;
    struct vg_slice version;
    bool ends_with_stop; /* VIGIL_E_CLOSED when the informer is stopped */
};

/* 1: go on waiting. */
static int look(struct vigil_informer *i, const struct wait *w) VG_REQUIRES(i->mu)
{
    if (w->is_over(i, w))
        return 0;
    return w->ends_with_stop && i->is_stopped ? VIGIL_E_CLOSED : 1;
}

static int look_now(struct vigil_informer *i, const struct wait *w)
{
    vg_mutex_lock(&i->mu);
    int r = look(i, w);
    vg_mutex_unlock(&i->mu);
    return r;
}

struct deadline {
    struct vg_timer timer;
    bool has_passed;
};

static void on_deadline(struct vg_timer *t)
{
    VG_CONTAINER_OF(t, struct deadline, timer)->has_passed = true;
}

static int wait_on_loop(struct vigil_informer *i, const struct wait *w, uint64_t timeout_ms)
{
    struct deadline d = {.has_passed = false};
    int r;
    if (timeout_ms)
        vg_timer_start(i->loop, &d.timer, timeout_ms * VG_NS_PER_MS, on_deadline);
    while ((r = look_now(i, w)) == 1) {
        if (d.has_passed)
            r = VIGIL_E_TIMEOUT;
        else if (!vg_client_turn(i->c))
            r = VIGIL_E_INVALID;
        if (r < 0)
            break;
    }
    vg_timer_stop(i->loop, &d.timer);
    return r;
}

static int wait_elsewhere(struct vigil_informer *i, const struct wait *w, uint64_t timeout_ms)
{
    uint64_t until = vg_clock_mono_ns(vg_clock_system()) + timeout_ms * VG_NS_PER_MS;
    int r;
    vg_mutex_lock(&i->mu);
    i->n_waiting++;
    while ((r = look(i, w)) == 1) {
        if (!timeout_ms) {
            vg_cond_wait(&i->changed, &i->mu);
        } else if (!vg_cond_wait_until_ns(&i->changed, &i->mu, until)) {
            r = look(i, w);
            r = r == 1 ? VIGIL_E_TIMEOUT : r;
            break;
        }
    }
    i->n_waiting--;
    vg_mutex_unlock(&i->mu);
    return r;
}

/* Longer is as good as for ever, and fits in nanoseconds. */
#define TIMEOUT_MAX_MS UINT64_C(3155760000000)

static int wait_for(struct vigil_informer *i, const struct wait *w, uint64_t timeout_ms)
{
    timeout_ms = VG_MIN(timeout_ms, TIMEOUT_MAX_MS);
    return vg_loop_is_current(i->loop) ? wait_on_loop(i, w, timeout_ms)
                                       : wait_elsewhere(i, w, timeout_ms);
}

/* ---- for what ---- */

static bool is_synced(struct vigil_informer *i, const struct wait *w)
{
    (void)w;
    return atomic_load(&i->has_synced);
}

int vigil_informer_wait_sync(struct vigil_informer *i, uint64_t timeout_ms)
{
    return wait_for(i, &(struct wait){.is_over = is_synced, .ends_with_stop = true}, timeout_ms);
}

static bool is_number(struct vg_slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    }
    return s.n > 0;
}

/* Versions are opaque, but since Kubernetes 1.35 numbers of them may be compared. */
static bool is_at_least(struct vg_slice version, struct vg_slice wanted)
{
    if (!is_number(version) || !is_number(wanted))
        return vg_slice_eq(version, wanted);
    return version.n != wanted.n ? version.n > wanted.n : vg_slice_cmp(version, wanted) >= 0;
}

static bool is_reached(struct vigil_informer *i, const struct wait *w)
{
    char version[VG_OBJECT_VERSION_MAX + 1];
    if (!i->is_by_key) { /* in the order of the server: the last write tells */
        size_t n = vigil_store_resource_version(i->store, version, sizeof(version));
        return is_at_least(vg_slice(version, VG_MIN(n, sizeof(version) - 1)), w->version);
    }
    int n = snprintf(version, sizeof(version), "%" PRIu64, atomic_load(&i->reached));
    return is_at_least(vg_slice(version, (size_t)n), w->version);
}

int vigil_informer_wait_for(struct vigil_informer *i, struct vigil_text resource_version,
                            uint64_t timeout_ms)
{
    struct wait w = {
        .is_over = is_reached, .version = vg_slice_of(resource_version), .ends_with_stop = true};
    return wait_for(i, &w, timeout_ms);
}

static bool has_ended(struct vigil_informer *i, const struct wait *w)
{
    return w->r ? w->r->has_ended : i->n_threads == (vg_handler_current(i) ? 1u : 0u);
}

bool vg_wait_is_possible(struct vigil_informer *i)
{
    return !vg_loop_is_current(i->loop) || vg_client_may_turn(i->c);
}

void vg_wait_ended(struct vigil_informer *i, const struct vg_handler *r)
{
    int e = wait_for(i, &(struct wait){.is_over = has_ended, .r = r}, 0);
    assert(e == 0);
    (void)e;
}
