/* loop.h - a libuv loop that knows its thread, its clock and its mail.
 * Everything that belongs to a loop is touched by its thread alone; other threads reach it only by
 * vg_loop_post. A turn: mail in order of posting, then timers that are due, then descriptors.
 * Timers are ours rather than libuv's so that a test can drive them by a fake clock. */
#ifndef VG_LOOP_LOOP_H
#define VG_LOOP_LOOP_H

#include <uv.h>

#include "base/clock.h"
#include "mailbox.h"

struct vg_loop;

struct vg_timer {
    uint64_t due_ns;
    uint64_t order; /* timers of one instant fire in the order in which they were started */
    void (*fire)(struct vg_timer *t);
    struct vg_timer *child, *sibling, *prev; /* pairing heap; prev = parent or left sibling */
    bool armed;
};

/* 0 or -errno. The clock must outlive the loop. */
VG_CHECK int vg_loop_new(const struct vg_clock *clock, struct vg_loop **ret_loop);
/* Not while it runs. Mail that was never run is dropped: senders end first. */
void vg_loop_free(struct vg_loop *loop);
static inline void vg_loop_freep(struct vg_loop **loop)
{
    vg_loop_free(*loop);
}

/* Run on a thread of its own until vg_loop_stop; stop waits for the thread. */
VG_CHECK int vg_loop_start(struct vg_loop *loop, const char *name);
void vg_loop_stop(struct vg_loop *loop);

/* Or by hand, on the calling thread: one turn. With wait, sleeps until there is something to do.
 * Returns true when anything ran. */
bool vg_loop_turn(struct vg_loop *loop, bool wait);
/* Turn until *flag is set by something that ran on the loop. */
void vg_loop_turn_until(struct vg_loop *loop, const bool *flag);

/* Thread: any. Never fails; mail->run is called on the loop. */
void vg_loop_post(struct vg_loop *loop, struct vg_mail *mail);

/* Thread: the loop's. */
void vg_timer_start(struct vg_loop *loop, struct vg_timer *t, uint64_t delay_ns,
                    void (*fire)(struct vg_timer *t));        /* restarts an armed timer */
void vg_timer_stop(struct vg_loop *loop, struct vg_timer *t); /* harmless when not armed */
bool vg_loop_is_current(const struct vg_loop *loop);
const struct vg_clock *vg_loop_clock(const struct vg_loop *loop);
uv_loop_t *vg_loop_uv(struct vg_loop *loop);

#endif
