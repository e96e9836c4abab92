/* clock.c - see clock.h.
 * The lock is held while hooks run: that is what makes vg_clock_off_advance final, and why CLOCK is
 * the first rank. */
#include "clock.h"

#include <errno.h>
#include <time.h>

#define FAKE_MONO_START VG_NS_PER_S
#define FAKE_WALL_START_MS INT64_C(1704067200000) /* 2024-01-01T00:00:00Z */

static const struct vg_clock system_clock = {.is_fake = false};

static struct vg_fake_clock *fake_of(const struct vg_clock *clock)
{
    return VG_CONTAINER_OF(clock, struct vg_fake_clock, clock);
}

const struct vg_clock *vg_clock_system(void)
{
    return &system_clock;
}

uint64_t vg_clock_mono_ns(const struct vg_clock *clock)
{
    if (clock->is_fake)
        return atomic_load(&fake_of(clock)->mono_ns);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * VG_NS_PER_S + (uint64_t)now.tv_nsec;
}

static int64_t ms_of_ns(int64_t ns)
{
    const int64_t per_ms = (int64_t)VG_NS_PER_MS;
    return ns / per_ms - (ns % per_ms < 0);
}

int64_t vg_clock_wall_ms(const struct vg_clock *clock)
{
    if (clock->is_fake)
        return ms_of_ns(atomic_load(&fake_of(clock)->wall_ns));
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / (int64_t)VG_NS_PER_MS;
}

bool vg_clock_is_fake(const struct vg_clock *clock)
{
    return clock->is_fake;
}

static size_t find_hook(const struct vg_fake_clock *fake, vg_clock_hook_fn *fn, const void *arg)
{
    vg_mutex_assert_held(&fake->mu);
    size_t i = 0;
    while (i < fake->hook_count && (fake->hooks[i].fn != fn || fake->hooks[i].arg != arg))
        i++;
    return i;
}

int vg_clock_on_advance(const struct vg_clock *clock, vg_clock_hook_fn *fn, void *arg)
{
    if (!clock->is_fake)
        return 0;
    struct vg_fake_clock *fake = fake_of(clock);
    int r = 0;
    vg_mutex_lock(&fake->mu);
    assert(find_hook(fake, fn, arg) == fake->hook_count);
    if (fake->hook_count < VG_CLOCK_HOOKS_MAX)
        fake->hooks[fake->hook_count++] = (struct vg_clock_hook){fn, arg};
    else
        r = -ENOSPC;
    vg_mutex_unlock(&fake->mu);
    return r;
}

void vg_clock_off_advance(const struct vg_clock *clock, vg_clock_hook_fn *fn, void *arg)
{
    if (!clock->is_fake)
        return;
    struct vg_fake_clock *fake = fake_of(clock);
    vg_mutex_lock(&fake->mu);
    size_t i = find_hook(fake, fn, arg);
    if (i < fake->hook_count)
        fake->hooks[i] = fake->hooks[--fake->hook_count];
    vg_mutex_unlock(&fake->mu);
}

void vg_fake_clock_init(struct vg_fake_clock *fake)
{
    fake->clock.is_fake = true;
    atomic_init(&fake->mono_ns, FAKE_MONO_START);
    atomic_init(&fake->wall_ns, FAKE_WALL_START_MS * (int64_t)VG_NS_PER_MS);
    vg_mutex_init(&fake->mu, VG_RANK_CLOCK);
    fake->hook_count = 0;
}

void vg_fake_clock_done(struct vg_fake_clock *fake)
{
    vg_mutex_done(&fake->mu);
}

static void run_hooks(struct vg_fake_clock *fake)
{
    vg_mutex_lock(&fake->mu);
    for (size_t i = 0; i < fake->hook_count; i++)
        fake->hooks[i].fn(fake->hooks[i].arg);
    vg_mutex_unlock(&fake->mu);
}

void vg_fake_clock_advance(struct vg_fake_clock *fake, uint64_t ns)
{
    atomic_fetch_add(&fake->mono_ns, ns);
    atomic_fetch_add(&fake->wall_ns, (int64_t)ns);
    run_hooks(fake);
}

void vg_fake_clock_set_wall(struct vg_fake_clock *fake, int64_t ms)
{
    atomic_store(&fake->wall_ns, ms * (int64_t)VG_NS_PER_MS);
    run_hooks(fake);
}
