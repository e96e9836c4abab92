/* waker.c - one word and a futex.
 *
 *   IDLE --wait--> SLEEPING --wake--> WOKEN --wait--> IDLE
 *     \-------------wake----------------^      (a wake that nobody waited for is remembered)
 *
 * A wake costs a system call only when somebody sleeps, and a sleep is one call: no descriptor is
 * polled and then read. */
#include "waker.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { IDLE, WOKEN, SLEEPING };

void vg_waker_init(struct vg_waker *w, const struct vg_clock *clock)
{
    w->clock = clock;
    atomic_init(&w->state, IDLE);
}

void vg_waker_wake(struct vg_waker *w)
{
    if (atomic_exchange(&w->state, WOKEN) == SLEEPING)
        syscall(SYS_futex, &w->state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void vg_waker_wake_cb(void *w)
{
    vg_waker_wake(w);
}

/* The deadline is the monotonic clock's, which is the futex's own. False: it has passed. */
static bool sleep_once(struct vg_waker *w, uint64_t deadline_ns)
{
    bool is_timed = deadline_ns != VG_WAIT_FOREVER && !vg_clock_is_fake(w->clock);
    struct timespec until = {.tv_sec = (time_t)(deadline_ns / VG_NS_PER_S),
                             .tv_nsec = (long)(deadline_ns % VG_NS_PER_S)};
    long r = syscall(SYS_futex, &w->state, FUTEX_WAIT_BITSET_PRIVATE, SLEEPING,
                     is_timed ? &until : NULL, NULL, FUTEX_BITSET_MATCH_ANY);
    return r == 0 || errno != ETIMEDOUT;
}

void vg_waker_wait(struct vg_waker *w, uint64_t deadline_ns)
{
    uint32_t idle = IDLE;
    bool is_due = deadline_ns != VG_WAIT_FOREVER && vg_clock_mono_ns(w->clock) >= deadline_ns;
    if (!is_due && atomic_compare_exchange_strong(&w->state, &idle, SLEEPING)) {
        while (atomic_load(&w->state) == SLEEPING && sleep_once(w, deadline_ns))
            ; /* a signal, or a wake of the word that was here before */
    }
    (void)atomic_exchange(&w->state, IDLE); /* and see what was done before that wake */
}
