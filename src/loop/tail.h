/* tail.h - the published tail: one writer appends batches, every reader pulls at its own pace.
 * A reader is a cursor that holds the batch it consumed last; the batch after it is reached by one
 * acquire load. Nothing is queued per reader and nothing is dropped: a batch lives until the
 * slowest cursor has moved past it, then goes by itself. Invariants: T1 batches are linked in the
 * order of publishing; `next` is stored once, with release. T2 a batch is referenced by its
 * predecessor's link, by the tail while it is the newest, and by each cursor that stands on it; it
 * is freed when none of these is left, once, by whichever thread let go last. T3 listeners are
 * woken only after the batch is linked. Whoever holds a cursor for long pins what was published
 * since: a slow reader must let go of its cursor and come back by other means (a storage watch
 * reads the log instead). */
#ifndef VG_LOOP_TAIL_H
#define VG_LOOP_TAIL_H

#include <stdatomic.h>

#include "base/list.h"
#include "base/lock.h"

/* Embedded first in what the writer publishes. */
struct vg_tail_batch {
    _Atomic(struct vg_tail_batch *) next;
    _Atomic uint32_t refs;
    void (*free)(struct vg_tail_batch *batch); /* thread: any; no lock of the tail is held */
};

struct vg_tail_listener {
    struct vg_list link;
    void (*wake)(void *arg); /* called by the writer under mu: must not block or call the tail */
    void *arg;
};

struct vg_tail {
    struct vg_mutex mu; /* rank TAIL: newest and listeners */
    struct vg_tail_batch *newest;
    struct vg_list listeners;
};

struct vg_tail_cursor {
    struct vg_tail_batch *at; /* consumed; NULL when the cursor is closed */
};

/* `take_first` stands for everything before the tail began. */
void vg_tail_init(struct vg_tail *t, struct vg_tail_batch *take_first);
void vg_tail_done(struct vg_tail *t); /* cursors may outlive it, listeners may not */

/* Thread: the one writer. Consumes take_batch. */
void vg_tail_publish(struct vg_tail *t, struct vg_tail_batch *take_batch);

/* Stand on the newest batch: what is published from now on will be read. Thread: any.
 * Returns that batch, borrowed while the cursor stays on it. */
const struct vg_tail_batch *vg_tail_open(struct vg_tail *t, struct vg_tail_cursor *ret_cursor);
/* Move to the next batch and return it, borrowed until the next call; NULL: nothing new.
 * Thread: the cursor's owner. No lock. */
const struct vg_tail_batch *vg_tail_next(struct vg_tail_cursor *c);
/* The cursor is open. */
static inline bool vg_tail_has_next(const struct vg_tail_cursor *c)
{
    return atomic_load_explicit(&c->at->next, memory_order_acquire) != NULL;
}
/* Harmless on a closed cursor. Frees at once all that this cursor alone still held: a loop that is
 * far behind goes forward by vg_tail_next in slices first. */
void vg_tail_close(struct vg_tail_cursor *c);

/* Listen first and open then, or look once more after listening: a batch published between open and
 * listen wakes nobody. After unlisten returns, wake is not called any more. Thread: any. */
void vg_tail_listen(struct vg_tail *t, struct vg_tail_listener *l);
void vg_tail_unlisten(struct vg_tail *t, struct vg_tail_listener *l);

#endif
