/* work.h - keys that need work, each at most once in line and never twice at a time.
 *   add --> waiting --> run(item) ... done, failed or later --> gone, or again after a while
 * A key that is added while it is being worked on is worked on once more. A failure is tried again
 * later and later, from 50 ms up to a minute. Thread: the loop's. */
#ifndef VG_CONTROL_WORK_H
#define VG_CONTROL_WORK_H

#include "base/list.h"
#include "base/map.h"
#include "loop/loop.h"

/* Keys under way at a time, of one queue. */
#define VG_WORK_RUNNING_MAX 8u

struct vg_work;
struct vg_work_item {
    struct vg_list link; /* waiting, or asleep by due_ns */
    struct vg_work *work;
    uint64_t due_ns; /* while asleep */
    uint32_t failures;
    bool is_running, is_again, is_asleep;
    struct vg_slice key; /* the bytes follow the item */
};

struct vg_work {
    struct vg_loop *loop;
    struct vg_map items; /* by key */
    struct vg_list waiting, asleep;
    struct vg_timer timer;
    size_t running;
    bool is_closed, is_paused;
    /* Begins to work on item->key, and says how it ended, now or later. */
    void (*run)(struct vg_work_item *item);
    void *arg;
};

void vg_work_init(struct vg_work *w, struct vg_loop *loop, void (*run)(struct vg_work_item *item),
                  void *arg);
/* Begin no more runs until it is said again with false. */
void vg_work_pause(struct vg_work *w, bool is_paused);
/* No more runs; items that run are the caller's until they end, which may come after. */
void vg_work_close(struct vg_work *w);
/* Nothing runs any more. */
void vg_work_free_all(struct vg_work *w);

/* Never calls run from within. 0, -ENOMEM. */
VG_CHECK int vg_work_add(struct vg_work *w, struct vg_slice key);
/* How a run ends, each once. The item may be gone afterwards. */
void vg_work_done(struct vg_work_item *item);
void vg_work_failed(struct vg_work_item *item);                   /* once more, later and later */
void vg_work_later(struct vg_work_item *item, uint64_t delay_ms); /* once more, as agreed */

#endif
