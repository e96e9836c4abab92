/* timer_int.h - the heap under a loop's timers: intrusive, so starting a timer cannot fail. */
#ifndef VG_LOOP_TIMER_INT_H
#define VG_LOOP_TIMER_INT_H

#include "loop.h"

void vg_timer_heap_insert(struct vg_timer **root, struct vg_timer *t);
void vg_timer_heap_remove(struct vg_timer **root, struct vg_timer *t);

#endif
