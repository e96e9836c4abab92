/* waker.h - a thread that is not a loop sleeps here until it is woken or a deadline passes.
 * A wake is sticky: one that comes before the sleep ends that sleep at once. */
#ifndef VG_LOOP_WAKER_H
#define VG_LOOP_WAKER_H

#include <stdatomic.h>

#include "base/clock.h"

#define VG_WAIT_FOREVER UINT64_MAX

struct vg_waker {
    _Atomic uint32_t state; /* waker.c */
    const struct vg_clock *clock;
};

/* With a fake clock a sleep ends by vg_waker_wake alone: whoever advances the clock wakes the
 * sleepers (vg_clock_on_advance). There is nothing to be undone. */
void vg_waker_init(struct vg_waker *w, const struct vg_clock *clock);

void vg_waker_wake(struct vg_waker *w); /* Thread: any. */
void vg_waker_wake_cb(void *w);         /* the same, as a mailbox's wake */
/* Sleep until woken or until the clock's monotonic time reaches deadline_ns. Thread: the owner. */
void vg_waker_wait(struct vg_waker *w, uint64_t deadline_ns);

#endif
