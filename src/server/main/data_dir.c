/* data_dir.c - see data_dir.h. */
#include "data_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"

#define LOCK_NAME "vigild.lock"
#define NAME_LEN_MAX 128

/* ---- opening ---- */

/* Is there anything in it that is not ours? */
static bool has_foreign(int dir_fd)
{
    static const char *const ours[] = {".",   "..",    "lost+found", "admin.kubeconfig",
                                       "pki", "store", LOCK_NAME};
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    bool found = false;
    if (!d) {
        if (fd >= 0)
            close(fd);
        return true;
    }
    for (struct dirent *e; !found && (e = readdir(d));) {
        found = true;
        for (size_t i = 0; i < VG_ARRAY_LEN(ours); i++)
            found = found && strcmp(e->d_name, ours[i]) != 0;
    }
    closedir(d);
    return found;
}

/* Keys and Secrets lie here. A directory of ours is closed to others; one that holds other things
 * is not ours to change. */
static int make_private(const char *path, int fd, struct vg_status *reterr_status)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return vg_fail(reterr_status, -errno, "cannot look at %s: %s", path, strerror(errno));
    if (!(st.st_mode & 077))
        return 0;
    if (has_foreign(fd))
        return vg_fail(reterr_status, -EPERM,
                       "the data directory %s holds other files and is open to other users: name a "
                       "new directory with --data-dir, or run chmod 700 on this one",
                       path);
    if (fchmod(fd, 0700) < 0)
        return vg_fail(reterr_status, -errno,
                       "the data directory %s is open to other users and cannot be closed: %s",
                       path, strerror(errno));
    return 0;
}

static int make_parents(const char *path)
{
    char part[PATH_MAX];
    size_t n = strlen(path);
    if (n >= sizeof part)
        return -ENAMETOOLONG;
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != 0)
            continue;
        memcpy(part, path, i);
        part[i] = 0;
        if (mkdir(part, 0700) < 0 && errno != EEXIST)
            return -errno;
    }
    return 0;
}

/* A process that was killed a moment ago may still be dying, and holds its lock until it is gone:
 * whoever is started right after it waits a little. */
#define LOCK_TRIES 100
#define LOCK_NAP_NS 30000000L /* 3 s in all */

static bool try_lock(int fd)
{
    static const struct timespec nap = {.tv_nsec = LOCK_NAP_NS};
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return true;
        nanosleep(&nap, NULL);
    }
    return false;
}

/* The lock goes with the process, however it ends. */
static int take_lock(struct vg_data_dir *d, const char *path, struct vg_status *reterr_status)
{
    char pid[32] = "";
    d->lock_fd = openat(d->fd, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (d->lock_fd < 0)
        return vg_fail(reterr_status, -errno, "cannot make %s/%s: %s", path, LOCK_NAME,
                       strerror(errno));
    if (!try_lock(d->lock_fd)) {
        ssize_t n = pread(d->lock_fd, pid, sizeof pid - 1, 0);
        size_t digits = n > 0 ? strspn(pid, "0123456789") : 0;
        pid[digits] = 0;
        return vg_fail(reterr_status, VIGIL_E_STORE_LOCKED,
                       "the data directory %s is in use by another vigild%s%s: end that one, or "
                       "name another directory with --data-dir",
                       path, digits ? ", process " : "", pid);
    }
    int n = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    if (ftruncate(d->lock_fd, 0) < 0 || pwrite(d->lock_fd, pid, (size_t)n, 0) != n)
        return vg_fail(reterr_status, -EIO, "cannot write %s/%s", path, LOCK_NAME);
    return 0;
}

/* A copy that was interrupted left its store under another name: starting with an empty one would
 * look as if everything were lost. */
static int refuse_unfinished(const struct vg_data_dir *d, const char *path,
                             struct vg_status *reterr_status)
{
    if (faccessat(d->fd, "store", F_OK, 0) == 0 || faccessat(d->fd, "store.copying", F_OK, 0) < 0)
        return 0;
    return vg_fail(reterr_status, VIGIL_E_STORE_DAMAGED,
                   "a copy into %s was interrupted, or is under way: run vigil restore or vigil "
                   "migrate again; or remove %s/store.copying to begin with nothing",
                   path, path);
}

int vg_data_dir_open(const char *path, struct vg_data_dir *ret_dir, struct vg_status *reterr_status)
{
    struct vg_data_dir d = {.fd = -1, .lock_fd = -1};
    char real[PATH_MAX];
    int r = make_parents(path);
    if (r == 0 && !realpath(path, real))
        r = -errno;
    if (r == 0 && !(d.path = vg_strdup(real)))
        r = -ENOMEM;
    if (r == 0 && (d.fd = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        r = -errno;
    if (r < 0)
        vg_fail(reterr_status, r, "cannot make the data directory %s: %s", path, vg_err_text(r));
    if (r == 0)
        r = make_private(real, d.fd, reterr_status);
    if (r == 0)
        r = take_lock(&d, real, reterr_status);
    if (r == 0)
        r = refuse_unfinished(&d, real, reterr_status);
    if (r < 0) {
        vg_data_dir_close(&d);
        return r;
    }
    *ret_dir = d;
    return 0;
}

bool vg_data_dir_is_there(const struct vg_data_dir *d, const char *name)
{
    struct stat held, found;
    if (fstatat(d->fd, name, &found, 0) < 0 && errno == ENOENT)
        return false;
    if (fstat(d->lock_fd, &held) < 0)
        return true; /* it cannot be told */
    if (fstatat(d->fd, LOCK_NAME, &found, 0) < 0)
        return errno != ENOENT;
    return held.st_ino == found.st_ino && held.st_dev == found.st_dev;
}

void vg_data_dir_close(struct vg_data_dir *d)
{
    if (d->fd >= 0)
        close(d->fd);
    if (d->lock_fd >= 0)
        close(d->lock_fd);
    vg_free(d->path);
    *d = (struct vg_data_dir){.fd = -1, .lock_fd = -1};
}

/* ---- files ---- */

char *vg_data_dir_path(const struct vg_data_dir *d, const char *name)
{
    size_t size = strlen(d->path) + strlen(name) + 2;
    char *path = vg_malloc(size);
    if (path)
        snprintf(path, size, "%s/%s", d->path, name);
    return path;
}

int vg_data_dir_make(const struct vg_data_dir *d, const char *name, struct vg_status *reterr_status)
{
    if (mkdirat(d->fd, name, 0700) < 0 && errno != EEXIST)
        return vg_fail(reterr_status, -errno, "cannot make the directory %s/%s: %s", d->path, name,
                       strerror(errno));
    return 0;
}

static int write_all(int fd, struct vg_slice s, enum vg_durability durability)
{
    while (s.n) {
        ssize_t n = write(fd, s.p, s.n);
        if (n < 0)
            return -errno;
        s = vg_slice(s.p + n, s.n - (size_t)n);
    }
    return durability == VG_DURABLE && fdatasync(fd) < 0 ? -errno : 0;
}

int vg_data_dir_write(const struct vg_data_dir *d, const char *name, struct vg_slice content,
                      enum vg_durability durability, struct vg_status *reterr_status)
{
    char fresh[NAME_LEN_MAX];
    snprintf(fresh, sizeof fresh, "%s.new", name);
    (void)unlinkat(d->fd, fresh, 0);
    int fd = openat(d->fd, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r = fd < 0 ? -errno : write_all(fd, content, durability);
    if (fd >= 0)
        close(fd);
    if (r == 0 && renameat(d->fd, fresh, d->fd, name) < 0)
        r = -errno;
    if (r < 0)
        return vg_fail(reterr_status, r, "cannot write %s/%s: %s", d->path, name, vg_err_text(r));
    return 0;
}

static int read_fd(int fd, struct vg_buf *out)
{
    for (;;) {
        int r = vg_buf_reserve(out, 4096);
        ssize_t n = r < 0 ? 0 : read(fd, out->p + out->n, out->cap - out->n);
        if (r < 0 || n <= 0)
            return r < 0 ? r : n < 0 ? -errno : 0;
        out->n += (size_t)n;
    }
}

static int read_at(int dir_fd, const char *path, struct vg_buf *out,
                   struct vg_status *reterr_status)
{
    int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
    int r = fd < 0 ? -errno : read_fd(fd, out);
    if (fd >= 0)
        close(fd);
    return r < 0 ? vg_fail(reterr_status, r, "cannot read %s: %s", path, vg_err_text(r)) : 0;
}

int vg_data_dir_read(const struct vg_data_dir *d, const char *name, struct vg_buf *out,
                     struct vg_status *reterr_status)
{
    return read_at(d->fd, name, out, reterr_status);
}

int vg_data_dir_replace(const struct vg_data_dir *d, const char *name, struct vg_slice content,
                        enum vg_durability durability, struct vg_status *reterr_status)
{
    char old[NAME_LEN_MAX];
    VG_AUTO(buf) found = {0};
    snprintf(old, sizeof old, "%s.old", name);
    int r = vg_data_dir_read(d, name, &found, reterr_status);
    bool is_there = r == 0;
    if (is_there && vg_slice_eq(vg_buf_slice(&found), content))
        goto out;
    if (is_there)
        r = vg_data_dir_write(d, old, vg_buf_slice(&found), durability, reterr_status);
    if (r == 0 || r == -ENOENT)
        r = vg_data_dir_write(d, name, content, durability, reterr_status);
out:
    if (found.n)
        explicit_bzero(found.p, found.n);
    return r;
}

int vg_read_file(const char *path, struct vg_buf *out, struct vg_status *reterr_status)
{
    return read_at(AT_FDCWD, path, out, reterr_status);
}
