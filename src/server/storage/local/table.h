/* table.h - recent changes in memory: every version of every key, ordered by key and by revision.
 * The mem engine keeps everything in one table. The lmdb engine keeps in tables what is in the
 * write-ahead log but not yet in the base: the active one, which grows, and a frozen one, which a
 * checkpoint is writing out.
 *
 * Changing it takes two steps, because memory may run out and a change that is durable must become
 * visible: vg_table_stage takes all memory that is needed and shows nothing to readers;
 * vg_table_publish or vg_table_unstage then cannot fail.
 * Invariants, checked by vg_table_check():
 *   B1 the versions of a key strictly increase in revision; readers see published ones only.
 *   B2 the log strictly increases in (revision, sub).
 *   B3 a node without versions and without staged change does not exist between batches.
 * Threads: one writer (the commit thread) stages, publishes and compacts; readers are many. The
 * mutex guards structure and versions; a frozen table does not change and is read without it. */
#ifndef VG_STORAGE_TABLE_H
#define VG_STORAGE_TABLE_H

#include "base/lock.h"
#include "server/storage/storage.h"

struct vg_table;

VG_CHECK int vg_table_new(struct vg_table **ret_table);
struct vg_table *vg_table_ref(struct vg_table *t);
void vg_table_unref(struct vg_table *t); /* Thread: any; NULL allowed */

/* ---- the writer ---- */

/* The newest change of a key, staged ones of this batch included; NULL: the table knows nothing of
 * it. Borrowed. */
const struct vg_rec *vg_table_newest(struct vg_table *t, struct vg_slice key);

/* Take memory for one change and remember it as staged; take_rec must have rev and sub stamped.
 * -ENOMEM: nothing happened but that take_rec is dropped. */
VG_CHECK int vg_table_stage(struct vg_table *t, struct vg_rec *take_rec);
/* Undo the newest staged changes down to `keep` of them. */
void vg_table_unstage(struct vg_table *t, size_t keep);
/* Show the oldest n of them. */
void vg_table_publish(struct vg_table *t, size_t n);

/* The earliest deadline and its record (borrowed); NULL: none. Deadlines of superseded records are
 * still there: the caller compares with the newest change and pops. */
const struct vg_rec *vg_table_first_deadline(struct vg_table *t);
void vg_table_pop_deadline(struct vg_table *t);

/* Forget versions superseded at or before `rev`, `max_steps` log entries at the most.
 * True: there is more to do. mem engine only. */
bool vg_table_compact(struct vg_table *t, vg_rev rev, size_t max_steps);

/* ---- readers ---- */

/* The newest published change of a key at or before `at`, deletes included, with a reference. */
struct vg_rec *vg_table_get(struct vg_table *t, struct vg_slice key, vg_rev at);

/* Changes that are the newest at or before `at` of their key, deletes included, in key order, for
 * keys within `keys` and above `after` (from the start when after.p is NULL). Fills at most max
 * entries with references; returns how many; fewer than max: the end was reached. */
size_t vg_table_collect(struct vg_table *t, const struct vg_keys *keys, struct vg_slice after,
                        vg_rev at, struct vg_rec **ret_recs, size_t max);

/* Log entries with revision in [from, to], with references, at most max. */
size_t vg_table_log(struct vg_table *t, vg_rev from, vg_rev to, struct vg_rec **ret_recs,
                    size_t max);
/* Without references, for a frozen table: everything, in order. */
struct vg_rec *const *vg_table_frozen_log(const struct vg_table *t, size_t *ret_n);

size_t vg_table_bytes(struct vg_table *t); /* of records in the log */
size_t vg_table_log_count(struct vg_table *t);
void vg_table_check(struct vg_table *t); /* aborts when an invariant is broken */

#endif
