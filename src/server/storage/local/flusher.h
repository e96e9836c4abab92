/* flusher.h - one step of the flusher, which closing an engine takes too. */
#ifndef VG_STORAGE_FLUSHER_H
#define VG_STORAGE_FLUSHER_H

#include "engine.h"

/* Write out the frozen table if there is one, compact a slice: two transactions, neither of which
 * keeps the other from happening. Thread: the flusher, or whoever
 * closes the engine once the flusher has ended. */
int vg_flusher_step(struct vg_engine *e, bool *ret_more);

#endif
