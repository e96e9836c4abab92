/* repair.h - a store in a directory that may be damaged: say what is wrong with it, and make a
 * store again of what can be read. A repair brings back no change that was superseded: a key whose
 * newest change cannot be read is lost, even when an older one can. It builds the new store beside
 * the old one, moves the old files into a directory of their own, and puts the new ones in their
 * place; a repair that is cut short is finished by the next one. When a change was lost, revisions
 * go on `bump` later and everything before counts as compacted, so that every watcher lists anew.
 */
#ifndef VG_STORAGE_REPAIR_H
#define VG_STORAGE_REPAIR_H

#include "storage.h"

#define VG_REPAIR_NAME_MAX 32

struct vg_repair {
    /* One line for each thing that is wrong. */
    void (*on_damage)(void *arg, const char *text);
    /* What is lost. `key` empty: whose change it was is not known; the revisions are those from
     * `from` to `to`. */
    void (*on_lost)(void *arg, struct vg_slice key, vg_rev from, vg_rev to);
    void *arg;
    vg_rev bump;
    /* Results. */
    uint64_t n_damages;
    uint64_t n_records;   /* of the base, whose checksums are right */
    uint64_t n_keys;      /* in the repaired store */
    uint64_t n_lost_keys; /* by name */
    uint64_t n_lost_revs; /* revisions of which not all changes are there */
    bool has_history;     /* nothing is lost: revisions and history go on as they were */
    bool is_finished;     /* a repair that was cut short has been finished, and nothing else done */
    vg_rev rev;           /* of the repaired store */
    char kept[VG_REPAIR_NAME_MAX]; /* where the old files are, below the directory */
};

/* Look for damage; nothing is changed but the file "lock". 0: done, n_damages says what was found.
 * VIGIL_E_STORE_LOCKED, _STORE_FOREIGN, _STORE_VERSION, _NOT_FOUND, -errno. */
VG_CHECK int vg_storage_examine_lmdb(const char *dir, struct vg_repair *repair,
                                     struct vg_status *reterr_status);
/* The same, and then repair what was found; without damage nothing is done. VIGIL_E_STORE_DAMAGED:
 * nothing can be saved. */
VG_CHECK int vg_storage_repair_lmdb(const char *dir, struct vg_repair *repair,
                                    struct vg_status *reterr_status);

#endif
