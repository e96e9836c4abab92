/* repair_swap.h - puts a repaired store into the place of the damaged one.
 *   W1 the marker VG_SWAP_MARKER is there from before the first file moves until the last has
 * moved; whoever finds it must finish the swap and may not open the store. W2 when the marker
 * appears, the new store in VG_SWAP_NEW is whole and on the disk. */
#ifndef VG_STORAGE_REPAIR_SWAP_H
#define VG_STORAGE_REPAIR_SWAP_H

#include "base/err.h"

/* An empty directory for the new store. */
VG_CHECK int vg_swap_begin(int dirfd, int *ret_newfd);
bool vg_swap_is_under_way(int dirfd);
/* Moves the old files away and the new ones in; also goes on with a swap that was cut short. The
 * name of the directory that holds the old ones. */
VG_CHECK int vg_swap_finish(int dirfd, char *ret_kept, size_t size);

#endif
