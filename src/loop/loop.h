/* loop.h - a libuv loop that knows its thread, its clock and its mail.
 * Everything that belongs to a loop is touched by its thread alone; other threads reach it only by
 * vg_loop_post. A turn: descriptors that are ready, then mail in order of posting, then timers that
 * are due; each once, so data that is there beats the timeout that waits for it. Timers are ours
 * rather than libuv's so that a test can drive them by a fake clock. */
#ifndef VG_LOOP_LOOP_H
#define VG_LOOP_LOOP_H

#include <uv.h>

#include "base/clock.h"
#include "mailbox.h"
#include "waker.h"

struct vg_loop;

/* Zeroed before its first start; must not move or go away while it is armed. */
struct vg_timer {
    uint64_t due_ns;
    uint64_t order; /* timers of one instant fire in the order in which they were started */
    void (*fire)(struct vg_timer *t);
    struct vg_timer *child, *sibling, *prev; /* pairing heap; prev = parent or left sibling */
    bool armed;
};

/* 0 or -errno. The clock must outlive the loop. libuv aborts when it lacks memory for its table of
 * descriptors. */
VG_CHECK int vg_loop_new(const struct vg_clock *clock, struct vg_loop **ret_loop);
/* Not while it runs, and with every handle that others put on it closed (a close just before is
 * fine: its callback runs here). Mail that was never run is dropped and armed timers never fire.
 * A sender whose mail has run may still be on its way out of vg_loop_post: that is waited for. */
void vg_loop_free(struct vg_loop *loop);
static inline void vg_loop_freep(struct vg_loop **loop)
{
    vg_loop_free(*loop);
}

/* Run on a thread of its own until vg_loop_stop; stop waits for the thread, so it must not be
 * called on it. Mail posted before the stop still runs. Afterwards the loop belongs to the caller
 * of stop and may be turned by hand, started again or freed. Names show 15 characters. */
VG_CHECK int vg_loop_start(struct vg_loop *loop, const char *name);
void vg_loop_stop(struct vg_loop *loop);

/* Or by hand, on the calling thread: one turn, never from within one. With wait, sleeps until there
 * is something to do. True when mail or a timer ran; libuv does not tell whether a descriptor did.
 * Mail posted by mail or by a timer, and a timer started by a timer, wait for the next turn. */
bool vg_loop_turn(struct vg_loop *loop, bool wait);
/* How long a caller who polls uv_backend_fd himself may sleep before the next turn; -1: until the
 * descriptor is readable. Thread: the loop's, between turns. */
int vg_loop_timeout_ms(struct vg_loop *loop);
/* Turn until *flag is set by something that ran on the loop. */
void vg_loop_turn_until(struct vg_loop *loop, const bool *flag);

/* Thread: any. Never fails; mail->run is called on the loop and may free or post the mail again. */
void vg_loop_post(struct vg_loop *loop, struct vg_mail *mail);

/* Wake a thread that something was left for (vg_mailbox_put): when the step of the turn is over
 * (descriptors, mail, timers), or when it has been said so often that it pays to begin. So many
 * requests that came together cost one switch of threads. From elsewhere it is woken at once.
 * Thread: any; the waker must outlive the turn. */
void vg_loop_wake_soon(struct vg_loop *loop, struct vg_waker *waker);

/* Thread: the loop's. A timer fires at the first turn that is not before its time, never early; on
 * the real clock up to a millisecond or so late. A delay past the end of time means never. fire may
 * free, start or stop any timer, its own too. */
void vg_timer_start(struct vg_loop *loop, struct vg_timer *t, uint64_t delay_ns,
                    void (*fire)(struct vg_timer *t));        /* restarts an armed timer */
void vg_timer_stop(struct vg_loop *loop, struct vg_timer *t); /* harmless when not armed */
/* Is it the calling thread's: the one that turns it, or made or stopped it if nobody does. */
bool vg_loop_is_current(const struct vg_loop *loop);
const struct vg_clock *vg_loop_clock(const struct vg_loop *loop);
uv_loop_t *vg_loop_uv(struct vg_loop *loop);

#endif
