/* disk_shim_int.h - from the caught calls (disk_calls.c) to the shim (disk_shim.c). */
#ifndef VG_TESTS_DISK_SHIM_INT_H
#define VG_TESTS_DISK_SHIM_INT_H

#include <sys/types.h>
#include <sys/uio.h>

#include "disk_shim.h"

/* False: not a file of the shim's, and nothing was done. off < 0: where the descriptor stands.
 * flags: RWF_DSYNC or 0. */
bool vg_shim_write(int fd, const struct iovec *iov, int n, off_t off, int flags, ssize_t *ret_len);
bool vg_shim_has(int fd);
/* These do the call in either case, as the C library would. */
int vg_shim_resize(int fd, off_t size, bool only_grow);
int vg_shim_sync(int fd, long number);
int vg_shim_open(int dir_fd, const char *path, int flags, mode_t mode);
int vg_shim_rename(int from_fd, const char *from, int to_fd, const char *to, unsigned flags);
int vg_shim_unlink(int dir_fd, const char *path, int flags);
int vg_shim_link(int from_fd, const char *from, int to_fd, const char *to, int flags);
int vg_shim_mkdir(int dir_fd, const char *path, mode_t mode);

#endif
