/* disk_calls.c - the calls that the shim catches, in the place of the C library's.
 * They are visible in the test's executable, which comes first in the search for symbols, so
 * liblmdb finds them too; what is not the shim's business goes to the kernel. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "disk_shim_int.h"

#define SHIM __attribute__((visibility("default")))

SHIM ssize_t pwrite(int fd, const void *p, size_t n, off_t off)
{
    struct iovec iov = {(void *)p, n};
    ssize_t len;
    return vg_shim_write(fd, &iov, 1, off, 0, &len) ? len : syscall(SYS_pwrite64, fd, p, n, off);
}

SHIM ssize_t pwrite64(int fd, const void *p, size_t n, off64_t off)
{
    return pwrite(fd, p, n, off);
}

SHIM ssize_t pwritev(int fd, const struct iovec *iov, int n, off_t off)
{
    ssize_t len;
    return vg_shim_write(fd, iov, n, off, 0, &len) ? len : syscall(SYS_pwritev, fd, iov, n, off, 0);
}

SHIM ssize_t pwritev64(int fd, const struct iovec *iov, int n, off64_t off)
{
    return pwritev(fd, iov, n, off);
}

SHIM ssize_t pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
    ssize_t len;
    if ((flags & ~RWF_DSYNC) == 0 && vg_shim_write(fd, iov, n, off, flags, &len))
        return len;
    return syscall(SYS_pwritev2, fd, iov, n, off, 0, flags);
}

/* A sanitizer learns from write() on pipes and event descriptors who waited for whom: pass through
 * its own version when there is one. */
ssize_t sanitizers_write(int fd, const void *p, size_t n) __asm__("__interceptor_write")
    __attribute__((weak));

SHIM ssize_t write(int fd, const void *p, size_t n)
{
    struct iovec iov = {(void *)p, n};
    ssize_t len;
    if (vg_shim_write(fd, &iov, 1, -1, 0, &len))
        return len;
    return sanitizers_write ? sanitizers_write(fd, p, n) : syscall(SYS_write, fd, p, n);
}

/* ThreadSanitizer sees neither openat nor libuv's own way to close: a number that is given again is
 * to it the descriptor that it was before, and a race. What is done to files and directories goes
 * past it; nobody waits for anybody there. */
SHIM int fstat(int fd, struct stat *st)
{
    return (int)syscall(SYS_newfstatat, fd, "", st, AT_EMPTY_PATH);
}

SHIM ssize_t pread(int fd, void *p, size_t n, off_t off)
{
    return syscall(SYS_pread64, fd, p, n, off);
}

SHIM ssize_t pread64(int fd, void *p, size_t n, off64_t off)
{
    return pread(fd, p, n, off);
}

/* ThreadSanitizer's own mmap looks at descriptors too, and cannot be replaced. */
SHIM const char *__tsan_default_suppressions(void);
SHIM const char *__tsan_default_suppressions(void)
{
    return "race:mmap\n";
}

int sanitizers_close(int fd) __asm__("__interceptor_close") __attribute__((weak));

SHIM int close(int fd)
{
    struct stat st;
    bool is_file = fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
    return sanitizers_close && !is_file ? sanitizers_close(fd) : (int)syscall(SYS_close, fd);
}

SHIM ssize_t writev(int fd, const struct iovec *iov, int n)
{
    ssize_t len;
    return vg_shim_write(fd, iov, n, -1, 0, &len) ? len : syscall(SYS_writev, fd, iov, n);
}

SHIM int ftruncate(int fd, off_t size)
{
    return vg_shim_resize(fd, size, false);
}

SHIM int ftruncate64(int fd, off64_t size)
{
    return ftruncate(fd, size);
}

SHIM int fallocate(int fd, int mode, off_t off, off_t n)
{
    if (mode != 0 || !vg_shim_has(fd))
        return (int)syscall(SYS_fallocate, fd, mode, off, n);
    return vg_shim_resize(fd, off + n, true);
}

SHIM int fallocate64(int fd, int mode, off64_t off, off64_t n)
{
    return fallocate(fd, mode, off, n);
}

/* Returns its error. */
SHIM int posix_fallocate(int fd, off_t off, off_t n)
{
    return fallocate(fd, 0, off, n) < 0 ? errno : 0;
}

SHIM int posix_fallocate64(int fd, off64_t off, off64_t n)
{
    return posix_fallocate(fd, off, n);
}

SHIM int fsync(int fd)
{
    return vg_shim_sync(fd, SYS_fsync);
}

SHIM int fdatasync(int fd)
{
    return vg_shim_sync(fd, SYS_fdatasync);
}

/* The mode counts only with O_CREAT or O_TMPFILE; without, reading it from the list is undefined.
 */
#define OPEN_BODY(dir_fd)                                                                          \
    va_list ap;                                                                                    \
    va_start(ap, flags);                                                                           \
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(ap, mode_t) : 0;                        \
    va_end(ap);                                                                                    \
    return vg_shim_open(dir_fd, path, flags, mode)

SHIM int open(const char *path, int flags, ...)
{
    OPEN_BODY(AT_FDCWD); /* NOLINT: the analyzer takes no note of va_start in a function it knows */
}

SHIM int open64(const char *path, int flags, ...)
{
    OPEN_BODY(AT_FDCWD); /* NOLINT */
}

SHIM int openat(int dir_fd, const char *path, int flags, ...)
{
    OPEN_BODY(dir_fd); /* NOLINT */
}

SHIM int openat64(int dir_fd, const char *path, int flags, ...)
{
    OPEN_BODY(dir_fd); /* NOLINT */
}

SHIM int rename(const char *from, const char *to)
{
    return vg_shim_rename(AT_FDCWD, from, AT_FDCWD, to, 0);
}

SHIM int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    return vg_shim_rename(from_fd, from, to_fd, to, 0);
}

SHIM int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    return vg_shim_rename(from_fd, from, to_fd, to, flags);
}

SHIM int unlink(const char *path)
{
    return vg_shim_unlink(AT_FDCWD, path, 0);
}

SHIM int unlinkat(int dir_fd, const char *path, int flags)
{
    return vg_shim_unlink(dir_fd, path, flags);
}

SHIM int link(const char *from, const char *to)
{
    return vg_shim_link(AT_FDCWD, from, AT_FDCWD, to, 0);
}

SHIM int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    return vg_shim_link(from_fd, from, to_fd, to, flags);
}

SHIM int mkdir(const char *path, mode_t mode)
{
    return vg_shim_mkdir(AT_FDCWD, path, mode);
}

SHIM int mkdirat(int dir_fd, const char *path, mode_t mode)
{
    return vg_shim_mkdir(dir_fd, path, mode);
}
