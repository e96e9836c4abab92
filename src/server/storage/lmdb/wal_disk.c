/* wal_disk.c - how the log's bytes reach the disk. See wal.h.
 * The best way is past the page cache and durable with the call that writes (O_DIRECT, RWF_DSYNC):
 * no copy, no dirty page, no second call, and for pages that were written ahead one write with FUA
 * instead of a write and a flush. Not every file system or kernel can do either: what it cannot do
 * is found out when the log is opened, by writing a header page again with the bytes that it has,
 * which L1 can bear. Which of the two a descriptor does is asked of the descriptor itself. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "files.h"
#include "wal_int.h"

_Alignas(VG_WAL_PAGE) const char vg_wal_zeros[WAL_ZEROS];

int vg_wal_open_file(int dirfd, unsigned which, int flags, int *ret_fd)
{
    char name[16];
    snprintf(name, sizeof name, "wal-%u", which & 1);
    int fd = openat(dirfd, name, O_RDWR | O_CLOEXEC | flags, 0600);
    if (fd < 0)
        return -errno;
    if ((flags & O_CREAT) && fchmod(fd, 0600) < 0) {
        int err = -errno;
        close(fd);
        return err;
    }
    *ret_fd = fd;
    return 0;
}

static int put_durable(int fd, const char *p, size_t n, off_t at, size_t *ret_done)
{
    *ret_done = 0;
    while (*ret_done < n) {
        struct iovec iov = {(void *)(p + *ret_done), n - *ret_done};
        ssize_t w = pwritev2(fd, &iov, 1, at + (off_t)*ret_done, RWF_DSYNC);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return w < 0 ? -errno : -EIO;
        *ret_done += (size_t)w;
    }
    return 0;
}

int vg_wal_put(int fd, enum vg_wal_manner manner, const void *p, size_t n, off_t at,
               size_t *ret_done)
{
    if (manner == VG_WAL_DSYNC)
        return put_durable(fd, p, n, at, ret_done);
    int r = vg_write_some_at(fd, p, n, at, ret_done);
    return r == 0 && manner == VG_WAL_FDATASYNC && fdatasync(fd) < 0 ? -errno : r;
}

bool vg_wal_is_direct(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_DIRECT);
}

/* ---- what can the file system do? ---- */

/* 1: it can; 0: it cannot. */
static int try_put(int fd, enum vg_wal_manner manner, const char *page)
{
    size_t done;
    int r = vg_wal_put(fd, manner, page, VG_WAL_PAGE, 0, &done);
    if (r == -EINVAL || r == -EOPNOTSUPP || r == -ENOSYS)
        return 0;
    return r < 0 ? r : 1;
}

/* The same file, past the page cache, if that works. */
static int try_direct(struct vg_wal *w, unsigned which, const char *page)
{
    int fd = -1;
    int r = vg_wal_open_file(w->dirfd, which, O_DIRECT, &fd);
    if (r < 0)
        return r == -EINVAL || r == -EOPNOTSUPP ? 0 : r;
    r = try_put(fd, w->manner, page);
    if (r <= 0) {
        close(fd);
        return r;
    }
    close(w->fd[which]);
    w->fd[which] = fd;
    return 1;
}

int vg_wal_choose_manner(struct vg_wal *w, unsigned which, const char page[static VG_WAL_PAGE])
{
    if (w->manner == VG_WAL_NO_SYNC)
        return 0;
    int r = try_put(w->fd[which], VG_WAL_DSYNC, page);
    if (r < 0)
        return r;
    w->manner = r ? VG_WAL_DSYNC : VG_WAL_FDATASYNC;
    r = try_direct(w, which, page);
    return VG_MIN(r, 0);
}
