/* files.h - the directory of a store: creating, locking and writing files in it. */
#ifndef VG_STORAGE_FILES_H
#define VG_STORAGE_FILES_H

#include "base/err.h"

#include <sys/types.h>

#define VG_FILE_DATA "data.mdb"
#define VG_FILE_DATA_NEW "data.mdb.new"
#define VG_FILE_LOCK "lock"
#define VG_FILE_CEILING "ceiling"
#define VG_FILE_DURABLE "durable" /* durable.h */
/* repair_swap.h: the new store, what says that it is being put in place, and where the old one goes
 */
#define VG_SWAP_NEW "repair.new"
#define VG_SWAP_MARKER "repairing"
#define VG_SWAP_KEPT "damaged-"
#define VG_FILE_RESERVE "reserve"

/* Open the directory, made 0700 if it is not there. A directory that others may read is narrowed.
 */
VG_CHECK int vg_dir_open(const char *path, int *ret_dirfd, struct vg_status *reterr_status);
/* What is in it? */
enum vg_dir_content {
    VG_DIR_EMPTY,
    VG_DIR_STORE,
    VG_DIR_HALF_STORE,
    VG_DIR_FOREIGN,
    VG_DIR_REPAIRING, /* a repair was cut short */
};
VG_CHECK int vg_dir_look(int dirfd, enum vg_dir_content *ret_content, char *ret_name,
                         size_t name_size);
/* VIGIL_E_EXISTS: there is a store; VIGIL_E_STORE_FOREIGN: there is something else. */
VG_CHECK int vg_dir_must_be_empty(int dirfd, const char *path, struct vg_status *reterr_status);
/* One process at a time. VIGIL_E_STORE_LOCKED names the holder. The lock ends with the descriptor.
 */
VG_CHECK int vg_dir_lock(int dirfd, const char *path, int *ret_lockfd,
                         struct vg_status *reterr_status);

/* All or an error; -EIO for a write that makes no progress. *ret_done, set in either case: how many
 * bytes were written. */
VG_CHECK int vg_write_some_at(int fd, const void *p, size_t n, off_t at, size_t *ret_done);
VG_CHECK int vg_write_at(int fd, const void *p, size_t n, off_t at);
/* Reads up to n bytes; how many there were. */
VG_CHECK ssize_t vg_read_at(int fd, void *p, size_t n, off_t at);
VG_CHECK int vg_sync_dir(int dirfd);
/* The data file in the making, empty and with a durable name. Log files come only after it and go
 * before it: so log files that are alone have lost their store, and are not of one in the making.
 */
VG_CHECK int vg_dir_begin_store(int dirfd);
void vg_dir_drop_store(int dirfd); /* what vg_dir_begin_store began */
/* A small file that is there whole or not at all, and durable: written beside, synced, renamed. */
VG_CHECK int vg_write_file(int dirfd, const char *name, const void *p, size_t n);

#endif
