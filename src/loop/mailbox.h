/* mailbox.h - mail from many threads to one.
 * A mail is embedded in whatever travels, so posting allocates nothing. A bounded mailbox answers
 * VIGIL_E_BUSY when it is full: full is an answer, never a wait. The receiver takes everything that
 * is there at once, which is what makes group commit fall out of the queue by itself.
 * Invariants:
 *   M1 mails of one sender arrive in the order in which that sender posted them.
 *   M2 the receiver is woken at least once after the box turned from empty to non-empty.
 *   M3 a mail is in at most one box; it belongs to the receiver once post returned 0.
 *   M4 a box never holds more than cap mails, and refuses only while cap mails are in it, on their
 *      way in, or being taken out.
 * The box, and what wake needs, must live until every post has returned: the receiver may have a
 * mail in its hands while the sender of that mail is still about to wake it. */
#ifndef VG_LOOP_MAILBOX_H
#define VG_LOOP_MAILBOX_H

#include <stdatomic.h>

#include "base/err.h"

struct vg_mail {
    struct vg_mail *next;
    void (*run)(struct vg_mail *mail); /* what a loop does with it; threads may read it otherwise */
};

struct vg_mailbox {
    _Atomic(struct vg_mail *) newest;
    _Atomic size_t count;
    size_t cap;              /* 0 = unbounded */
    void (*wake)(void *arg); /* thread: any; must be sticky (an event descriptor, uv_async) */
    void *wake_arg;
};

void vg_mailbox_init(struct vg_mailbox *box, size_t cap, void (*wake)(void *arg), void *wake_arg);

/* Thread: any. 0, or VIGIL_E_BUSY: full, VIGIL_E_CLOSED; then the mail still belongs to the caller.
 */
VG_CHECK int vg_mailbox_post(struct vg_mailbox *box, struct vg_mail *mail);
/* The same, but who posts wakes the receiver itself, soon (vg_loop_wake_soon). */
VG_CHECK int vg_mailbox_put(struct vg_mailbox *box, struct vg_mail *mail);

/* Thread: the receiver. All mails, oldest first, linked by next; NULL when there are none. */
struct vg_mail *vg_mailbox_take_all(struct vg_mailbox *box);

/* Thread: the receiver, once, as the last thing it does. From now on posting fails with
 * VIGIL_E_CLOSED; what was posted before is returned as by take_all: no mail falls between. */
struct vg_mail *vg_mailbox_close(struct vg_mailbox *box);

/* A snapshot, for metrics. Thread: any. */
static inline size_t vg_mailbox_count(struct vg_mailbox *box)
{
    return atomic_load_explicit(&box->count, memory_order_relaxed);
}

#endif
