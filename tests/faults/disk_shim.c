/* disk_shim.c - see disk_shim.h: counting, failing and recording; disk_calls.c is what catches the
 * calls. Files are known by device and inode, so descriptors need no book-keeping. One long
 * file, because every part works on the one table of files under the one lock. */
#include "disk_shim_int.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/slice.h"
#include "disk_shadow.h"

#define PATH_SIZE 4096
#define DIRECT_ALIGN ((size_t)4096)

static _Atomic bool active;
static _Thread_local bool
    inside; /* this thread is in the shim: its own calls go straight through */

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER; /* all below */
static struct vg_shadow *shadow;
static struct vg_rng rng;
static bool lying;
static unsigned lacks; /* VG_DISK_NO_ */
static uint64_t n_direct, n_dsync;
static uint64_t counts[VG_DISK_CLASSES];
static struct vg_disk_fault fault; /* times == 0: none */
static uint64_t struck;
static vg_disk_point_fn *point_fn;
static void *point_arg;
static uint64_t point_in; /* points until point_fn is called; 0: never */

static void enter(void)
{
    pthread_mutex_lock(&mu);
    inside = true;
}

static void leave(void)
{
    int err = errno;
    inside = false;
    pthread_mutex_unlock(&mu);
    errno = err;
}

static bool is_watched(void)
{
    return !inside && atomic_load_explicit(&active, memory_order_acquire);
}

/* ---- what a test calls ---- */

void vg_disk_attach(const char *dir, uint64_t seed)
{
    enter();
    vg_shadow_free(shadow);
    shadow = vg_shadow_new(dir);
    vg_rng_seed(&rng, seed);
    memset(counts, 0, sizeof counts);
    fault = (struct vg_disk_fault){0};
    struck = 0;
    lying = false;
    lacks = 0;
    n_direct = n_dsync = 0;
    point_in = 0;
    leave();
    atomic_store_explicit(&active, true, memory_order_release);
}

void vg_disk_detach(void)
{
    atomic_store_explicit(&active, false, memory_order_release);
    enter();
    vg_shadow_free(shadow);
    shadow = NULL;
    leave();
}

static uint64_t read_count(const uint64_t *count)
{
    enter();
    uint64_t n = *count;
    leave();
    return n;
}

uint64_t vg_disk_count(enum vg_disk_class class)
{
    return read_count(&counts[class]);
}

void vg_disk_fail(const struct vg_disk_fault *f)
{
    enter();
    fault = *f;
    struck = 0;
    leave();
}

void vg_disk_heal(void)
{
    enter();
    fault.times = 0;
    leave();
}

uint64_t vg_disk_struck(void)
{
    return read_count(&struck);
}

void vg_disk_lie(bool lie)
{
    enter();
    lying = lie;
    leave();
}

void vg_disk_lacks(unsigned what)
{
    enter();
    lacks = what;
    leave();
}

uint64_t vg_disk_count_direct(void)
{
    return read_count(&n_direct);
}

uint64_t vg_disk_count_dsync(void)
{
    return read_count(&n_dsync);
}

void vg_disk_on_point(uint64_t first, vg_disk_point_fn *fn, void *arg)
{
    enter();
    point_in = first;
    point_fn = fn;
    point_arg = arg;
    leave();
}

void vg_disk_image(const char *to)
{
    bool own = !inside; /* not from a point */
    if (own)
        enter();
    vg_shadow_image(shadow, &rng, to);
    if (own)
        leave();
}

/* ---- points and faults; the lock is held ---- */

static void pass_point(void)
{
    if (point_in > 0 && --point_in == 0)
        point_in = point_fn(point_arg);
}

/* Does the fault strike this call? */
static bool strikes(enum vg_disk_class class, bool grows)
{
    counts[class]++;
    if (fault.times && fault.dead && struck > 0) {
        struck++;
        return true;
    }
    if (fault.times == 0 || fault.class != class || (fault.growing && !grows))
        return false;
    if (fault.at > 1) {
        fault.at--;
        return false;
    }
    if (fault.times != UINT64_MAX)
        fault.times--;
    struck++;
    return true;
}

static int fail_with(int err)
{
    errno = err;
    return -1;
}

/* ---- writes ---- */

static struct vg_shadow_file *file_of(int fd)
{
    struct stat st;
    if (!shadow || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return NULL;
    return vg_shadow_find(shadow, st.st_dev, st.st_ino);
}

/* Pipes, sockets and event descriptors never wait for the lock. */
static bool is_regular(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

static size_t iov_bytes(const struct iovec *iov, int n)
{
    size_t total = 0;
    for (int i = 0; i < n; i++)
        total += iov[i].iov_len;
    return total;
}

static char *flatten(const struct iovec *iov, int n, size_t total)
{
    char *p = malloc(total ? total : 1), *at = p;
    if (!p)
        exit(2);
    for (int i = 0; i < n; i++) {
        if (iov[i].iov_len)
            memcpy(at, iov[i].iov_base, iov[i].iov_len);
        at += iov[i].iov_len;
    }
    return p;
}

/* A write that fails with `part` set puts some bytes there and says so; the next call fails. What
 * is too short for that fails at once, or is written if nothing was to fail. */
static ssize_t struck_length(size_t n, size_t unit)
{
    if (fault.err == 0 && n < 2 * unit)
        return (ssize_t)n;
    if (!fault.part || n < 2 * unit) {
        errno = fault.err;
        return -1;
    }
    fault.part = false;
    fault.times += fault.err != 0 && fault.times != UINT64_MAX;
    return (ssize_t)((1 + vg_rng_below(&rng, n / unit - 1)) * unit);
}

static bool is_direct(int fd)
{
    return (fcntl(fd, F_GETFL) & O_DIRECT) != 0;
}

/* As the strictest device has it. */
static bool is_aligned(const struct iovec *iov, int n, off_t off)
{
    uintptr_t bits = (uintptr_t)off;
    for (int i = 0; i < n; i++)
        bits |= (uintptr_t)iov[i].iov_base | iov[i].iov_len;
    return bits % DIRECT_ALIGN == 0;
}

/* Through the page cache, whatever the descriptor is: only the shadow tells what is durable. */
static ssize_t put_cached(int fd, const char *p, size_t n, uint64_t off)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags & O_DIRECT)
        fcntl(fd, F_SETFL, flags & ~O_DIRECT);
    ssize_t len = (ssize_t)syscall(SYS_pwrite64, fd, p, n, (off_t)off);
    if (flags & O_DIRECT)
        fcntl(fd, F_SETFL, flags);
    return len;
}

/* The sync that is part of an O_DSYNC write: when it fails, the bytes are in the cache all the
 * same.
 */
static ssize_t sync_write(struct vg_shadow_file *f, ssize_t len)
{
    bool fails = strikes(VG_DISK_SYNC, false);
    if (fails || !lying)
        vg_shadow_sync_newest(f, fails ? &rng : NULL);
    return fails ? fail_with(fault.err) : len;
}

static ssize_t put_bytes(struct vg_shadow_file *f, int fd, struct vg_slice in, uint64_t off,
                         int flags)
{
    bool grows = off + in.n > vg_shadow_size(f);
    size_t unit = is_direct(fd) ? DIRECT_ALIGN : 1; /* a short write is one of whole blocks */
    ssize_t len = strikes(VG_DISK_WRITE, grows) ? struck_length(in.n, unit) : (ssize_t)in.n;
    if (len > 0)
        len = put_cached(fd, in.p, (size_t)len, off);
    if (len <= 0)
        return len;
    vg_shadow_write(shadow, f, off, in.p, (size_t)len);
    pass_point(); /* inside */
    bool syncs = (flags & RWF_DSYNC) || (fcntl(fd, F_GETFL) & O_DSYNC);
    return syncs ? sync_write(f, len) : len;
}

/* off < 0: at the descriptor's own position, which moves. */
static ssize_t put_iov(struct vg_shadow_file *f, int fd, const struct iovec *iov, int n, off_t off,
                       int flags)
{
    if ((lacks & VG_DISK_NO_DSYNC) && (flags & RWF_DSYNC))
        return fail_with(EOPNOTSUPP);
    if (is_direct(fd) && ((lacks & VG_DISK_NO_DIRECT_WRITE) || !is_aligned(iov, n, off)))
        return fail_with(EINVAL);
    n_direct += is_direct(fd);
    n_dsync += (flags & RWF_DSYNC) != 0;
    size_t total = iov_bytes(iov, n);
    char *flat = flatten(iov, n, total);
    off_t at = off;
    if (off < 0)
        at = (fcntl(fd, F_GETFL) & O_APPEND) ? (off_t)vg_shadow_size(f) : lseek(fd, 0, SEEK_CUR);
    pass_point();
    ssize_t len = put_bytes(f, fd, vg_slice(flat, total), (uint64_t)at, flags);
    if (len > 0 && off < 0)
        lseek(fd, at + len, SEEK_SET);
    pass_point();
    free(flat);
    return len;
}

/* False: not one of ours, let the kernel do it. */
bool vg_shim_write(int fd, const struct iovec *iov, int n, off_t off, int flags, ssize_t *ret_len)
{
    if (!is_watched() || !is_regular(fd))
        return false;
    enter();
    struct vg_shadow_file *f = file_of(fd);
    if (f)
        *ret_len = put_iov(f, fd, iov, n, off, flags);
    leave();
    return f != NULL;
}

static int resize_locked(struct vg_shadow_file *f, int fd, uint64_t size)
{
    pass_point();
    if (strikes(VG_DISK_WRITE, size > vg_shadow_size(f)) && fault.err)
        return fail_with(fault.err);
    if (syscall(SYS_ftruncate, fd, (off_t)size) < 0)
        return -1;
    vg_shadow_resize(shadow, f, size);
    pass_point();
    return 0;
}

int vg_shim_resize(int fd, off_t size, bool only_grow)
{
    int r = 0;
    if (!is_watched() || !is_regular(fd))
        return (int)syscall(SYS_ftruncate, fd, size);
    enter();
    struct vg_shadow_file *f = file_of(fd);
    if (f && !(only_grow && (uint64_t)size <= vg_shadow_size(f)))
        r = resize_locked(f, fd, (uint64_t)size);
    leave();
    return f ? r : (int)syscall(SYS_ftruncate, fd, size);
}

bool vg_shim_has(int fd)
{
    if (!is_watched() || !is_regular(fd))
        return false;
    enter();
    bool has = file_of(fd) != NULL;
    leave();
    return has;
}

/* ---- syncs ---- */

/* What a descriptor stands for. */
struct target {
    struct vg_shadow_file *file;
    bool is_dir, is_parent;
};

static bool find_target(int fd, struct target *ret_target)
{
    struct stat st;
    struct target t = {0};
    if (!shadow || fstat(fd, &st) < 0)
        return false;
    t.is_dir = vg_shadow_has_dir(shadow, st.st_dev, st.st_ino);
    t.is_parent = vg_shadow_has_parent(shadow, st.st_dev, st.st_ino);
    t.file = vg_shadow_find(shadow, st.st_dev, st.st_ino);
    *ret_target = t;
    return t.is_dir || t.is_parent || t.file;
}

static void finish_sync(const struct target *t, uint64_t mark)
{
    if (lying)
        return;
    if (t->file)
        vg_shadow_sync(t->file, mark);
    if (t->is_dir)
        vg_shadow_sync_names(shadow);
    if (t->is_parent)
        vg_shadow_sync_parent(shadow);
}

static int fail_sync(const struct target *t, uint64_t mark)
{
    if (t->file)
        vg_shadow_sync_failed(t->file, mark, &rng);
    return fail_with(fault.err);
}

/* The lock is let go in the middle, so that other threads write while this one syncs. */
static int sync_target(const struct target *t)
{
    uint64_t mark = vg_shadow_mark(shadow);
    pass_point();
    if (strikes(VG_DISK_SYNC, false))
        return fail_sync(t, mark);
    bool yields = vg_rng_below(&rng, 16) == 0; /* seldom: on a busy machine it takes long */
    leave();
    if (yields)
        sched_yield();
    enter();
    pass_point(); /* inside: everything is still open */
    if (shadow)
        finish_sync(t, mark);
    pass_point();
    return 0;
}

int vg_shim_sync(int fd, long number)
{
    struct target t;
    int r = 0;
    if (!is_watched())
        return (int)syscall(number, fd);
    enter();
    bool ours = find_target(fd, &t);
    if (ours)
        r = sync_target(&t);
    leave();
    return ours ? r : (int)syscall(number, fd);
}

/* ---- names ---- */

/* The last part of a path that lies in the directory; NULL: it does not. */
static const char *name_in_dir(int dir_fd, const char *path)
{
    char parent[PATH_SIZE];
    struct stat st;
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (n >= sizeof parent)
        return NULL;
    memcpy(parent, path, n);
    parent[n] = '\0';
    if (slash && n == 0)
        memcpy(parent, "/", 2);
    if (fstatat(dir_fd, slash ? parent : ".", &st, 0) < 0 || !shadow)
        return NULL;
    /* without a slash "." of dir_fd is the directory itself */
    return vg_shadow_has_dir(shadow, st.st_dev, st.st_ino) ? (slash ? slash + 1 : path) : NULL;
}

static void note_open(const char *name, int fd, int flags)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    struct vg_shadow_file *f = vg_shadow_created(shadow, name, st.st_dev, st.st_ino);
    if ((flags & O_TRUNC) && vg_shadow_size(f) > 0)
        vg_shadow_resize(shadow, f, 0);
}

static int open_name(int dir_fd, const char *path, const char *name, int flags, mode_t mode)
{
    pass_point();
    if (strikes(VG_DISK_NAME, true))
        return fail_with(fault.err);
    int fd = (int)syscall(SYS_openat, dir_fd, path, flags, mode);
    if (fd >= 0) {
        note_open(name, fd, flags);
        pass_point();
    }
    return fd;
}

static bool lacks_direct_open(void)
{
    enter();
    bool is_lacking = (lacks & VG_DISK_NO_DIRECT_OPEN) != 0;
    leave();
    return is_lacking;
}

int vg_shim_open(int dir_fd, const char *path, int flags, mode_t mode)
{
    if (is_watched() && (flags & O_DIRECT) && lacks_direct_open())
        return fail_with(EINVAL);
    if (!is_watched() || !(flags & (O_CREAT | O_TRUNC)))
        return (int)syscall(SYS_openat, dir_fd, path, flags, mode);
    enter();
    const char *name = name_in_dir(dir_fd, path);
    int fd = name ? open_name(dir_fd, path, name, flags, mode)
                  : (int)syscall(SYS_openat, dir_fd, path, flags, mode);
    leave();
    return fd;
}

/* A file that comes from elsewhere: all its bytes count as not synced. */
static struct vg_shadow_file *adopt(const char *name, int dir_fd, const char *path)
{
    char page[PATH_SIZE];
    struct stat st;
    uint64_t off = 0;
    ssize_t n;
    int fd = (int)syscall(SYS_openat, dir_fd, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0 || fstat(fd, &st) < 0)
        return NULL;
    struct vg_shadow_file *f = vg_shadow_created(shadow, name, st.st_dev, st.st_ino);
    for (; (n = pread(fd, page, sizeof page, (off_t)off)) > 0; off += (uint64_t)n)
        vg_shadow_write(shadow, f, off, page, (size_t)n);
    syscall(SYS_close, fd);
    return f;
}

static void note_rename(const char *from, const char *to, int to_fd, const char *to_path)
{
    if (from)
        vg_shadow_renamed(shadow, from, to, NULL);
    else
        adopt(to, to_fd, to_path);
}

int vg_shim_rename(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    if (!is_watched())
        return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
    enter();
    const char *old = name_in_dir(from_fd, from), *new = name_in_dir(to_fd, to);
    int r = -1;
    if (old || new)
        pass_point();
    if ((old || new) && strikes(VG_DISK_NAME, true))
        fail_with(fault.err);
    else
        r = (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
    if (r == 0 && (old || new)) {
        note_rename(old, new, to_fd, to);
        pass_point();
    }
    leave();
    return r;
}

int vg_shim_unlink(int dir_fd, const char *path, int flags)
{
    if (!is_watched())
        return (int)syscall(SYS_unlinkat, dir_fd, path, flags);
    enter();
    const char *name = name_in_dir(dir_fd, path);
    int r = -1;
    if (name)
        pass_point();
    if (name && strikes(VG_DISK_NAME, false))
        fail_with(fault.err);
    else
        r = (int)syscall(SYS_unlinkat, dir_fd, path, flags);
    if (r == 0 && name) {
        vg_shadow_unlinked(shadow, name);
        pass_point();
    }
    leave();
    return r;
}

/* The new name of a linked file; the old one stays. */
int vg_shim_link(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    int r = (int)syscall(SYS_linkat, from_fd, from, to_fd, to, flags);
    if (r < 0 || !is_watched())
        return r;
    enter();
    struct stat st;
    const char *name = name_in_dir(to_fd, to);
    if (name && fstatat(to_fd, to, &st, 0) == 0)
        vg_shadow_created(shadow, name, st.st_dev, st.st_ino);
    leave();
    return r;
}

int vg_shim_mkdir(int dir_fd, const char *path, mode_t mode)
{
    int r = (int)syscall(SYS_mkdirat, dir_fd, path, mode);
    if (r < 0 || !is_watched())
        return r;
    enter();
    vg_shadow_made_dir(shadow);
    pass_point();
    leave();
    return r;
}
