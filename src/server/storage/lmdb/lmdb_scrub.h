/* lmdb_scrub.h - reads the base from the disk again, slowly, all the time that a store is open.
 * Damage on the disk shows only when a page is read again, which may be months later, and what the
 * page cache has looks well until then. A pass pins one snapshot, reads its pages past the page
 * cache where the file system can do that, and checks all that opening checks and every record.
 * What it finds is logged and counted; the store goes on. Thread: one of its own. */
#ifndef VG_STORAGE_LMDB_SCRUB_H
#define VG_STORAGE_LMDB_SCRUB_H

#include "lmdb_int.h"

/* Begin, with a pass every `interval_ms`; the first one is at once if the store did not end
 * cleanly.
 */
VG_CHECK int vg_scrub_start(struct vg_lmdb *l, uint64_t interval_ms, bool is_clean);
/* Before the environment is closed; harmless when it was never started. */
void vg_scrub_stop(struct vg_lmdb *l);
/* Who needs the environment for himself: a pass that is under way gives it up, and begins again
 * later. Ends like pthread_rwlock_wrlock. */
void vg_lmdb_lock_env(struct vg_lmdb *l);

#endif
