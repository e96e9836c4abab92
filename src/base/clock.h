/* clock.h - the time, real or driven by a test.
 * Whoever needs the time holds a const struct vg_clock * given at its creation, so that a test can
 * give it a fake one. Monotonic time orders and times out; wall time is only ever shown to people.
 * Thread: any, for every function but init and done. */
#ifndef VG_BASE_CLOCK_H
#define VG_BASE_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "lock.h"
#include "macros.h"

#define VG_NS_PER_US UINT64_C(1000)
#define VG_NS_PER_MS UINT64_C(1000000)
#define VG_NS_PER_S UINT64_C(1000000000)

struct vg_clock {
    bool is_fake; /* then it is the first member of a struct vg_fake_clock */
};

/* The real one, CLOCK_MONOTONIC and CLOCK_REALTIME; static. */
const struct vg_clock *vg_clock_system(void);

uint64_t vg_clock_mono_ns(const struct vg_clock *clock); /* never falls */
int64_t vg_clock_wall_ms(const struct vg_clock *clock);  /* since 1970; may jump */
bool vg_clock_is_fake(const struct vg_clock *clock);

/* Runs on the thread that moved the clock, after it moved. Must not call _on_advance or
 * _off_advance; may take locks (all rank after CLOCK) and read the clock. */
typedef void vg_clock_hook_fn(void *arg);

/* Call fn(arg) after every move of a fake clock; real clocks accept and never call. A pair may be
 * registered once. 0, or -ENOSPC: VG_CLOCK_HOOKS_MAX hooks are there. */
VG_CHECK int vg_clock_on_advance(const struct vg_clock *clock, vg_clock_hook_fn *fn, void *arg);
/* Undo; unknown pairs are ignored. When it returns, fn(arg) does not run and will not. */
void vg_clock_off_advance(const struct vg_clock *clock, vg_clock_hook_fn *fn, void *arg);

/* 64: a test drives a few dozen loops and threads at most. */
#define VG_CLOCK_HOOKS_MAX 64

struct vg_clock_hook {
    vg_clock_hook_fn *fn;
    void *arg;
};

/* Stands still until it is moved. Give &fake.clock to the code under test. */
struct vg_fake_clock {
    struct vg_clock clock;
    _Atomic uint64_t mono_ns;
    _Atomic int64_t wall_ns;
    struct vg_mutex mu; /* rank CLOCK */
    struct vg_clock_hook hooks[VG_CLOCK_HOOKS_MAX] VG_GUARDED_BY(mu);
    size_t hook_count VG_GUARDED_BY(mu);
};

/* Starts at one second of monotonic time and 2024-01-01T00:00:00Z of wall time. */
void vg_fake_clock_init(struct vg_fake_clock *fake);
void vg_fake_clock_done(struct vg_fake_clock *fake);
/* Both times go forward, then the hooks run. */
void vg_fake_clock_advance(struct vg_fake_clock *fake, uint64_t ns);
/* Wall time jumps, forward or back; monotonic time does not move. Then the hooks run. */
void vg_fake_clock_set_wall(struct vg_fake_clock *fake, int64_t ms);

#endif
