/* files.c - see files.h. Every file is made 0600 whatever the umask says. */
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/storage/storage.h"

static int sync_parent(const char *path)
{
    char parent[4096];
    int n = snprintf(parent, sizeof parent, "%s/..", path);
    if (n < 0 || (size_t)n >= sizeof parent)
        return -ENAMETOOLONG;
    int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = vg_sync_dir(fd);
    close(fd);
    return r;
}

static int make_dir(const char *path, struct vg_status *reterr_status)
{
    int err = mkdir(path, 0700) < 0 ? -errno : 0;
    bool was_there = err == -EEXIST;
    if (err == 0 || was_there) {
        /* Also of one that is there: whoever made it may have been cut short. A parent that we may
         * not read was made by others, and with care. */
        err = sync_parent(path);
        if (err == 0 || (was_there && (err == -EACCES || err == -ENOTDIR)))
            return 0;
    }
    return vg_fail(reterr_status, err, "cannot make the directory %s: %s", path, vg_err_text(err));
}

int vg_dir_open(const char *path, int *ret_dirfd, struct vg_status *reterr_status)
{
    int r = make_dir(path, reterr_status);
    if (r < 0)
        return r;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        r = -errno;
        return vg_fail(reterr_status, r, "cannot open the directory %s: %s", path, vg_err_text(r));
    }
    *ret_dirfd = fd;
    return 0;
}

/* Every file of a store, in whatever state it is. */
static const char *const store_files[] = {VG_FILE_DATA,
                                          VG_FILE_DATA_NEW,
                                          VG_FILE_DATA "-lock",
                                          VG_FILE_DATA_NEW "-lock",
                                          VG_FILE_CEILING,
                                          VG_FILE_CEILING ".new",
                                          VG_FILE_RESERVE,
                                          "wal-0",
                                          "wal-1",
                                          VG_FILE_DURABLE,
                                          VG_FILE_DURABLE ".new",
                                          VG_SWAP_MARKER,
                                          VG_SWAP_MARKER ".new",
                                          VG_FILE_LOCK};

static bool is_ours(const char *name)
{
    static const char *const folders[] = {VG_SWAP_NEW, ".", "..", "lost+found"};
    for (size_t i = 0; i < VG_ARRAY_LEN(store_files); i++) {
        if (strcmp(name, store_files[i]) == 0)
            return true;
    }
    for (size_t i = 0; i < VG_ARRAY_LEN(folders); i++) {
        if (strcmp(name, folders[i]) == 0)
            return true;
    }
    return strncmp(name, VG_SWAP_KEPT, strlen(VG_SWAP_KEPT)) == 0;
}

int vg_storage_remove_lmdb(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    for (size_t i = 0; i < VG_ARRAY_LEN(store_files); i++)
        unlinkat(fd, store_files[i], 0);
    close(fd);
    return rmdir(dir) < 0 ? -errno : 0;
}

/* A store is there when its data file is: that is renamed into place last. Log files without it are
 * what is left of a creation that did not finish, if the data file in the making is there too. */
int vg_dir_look(int dirfd, enum vg_dir_content *ret_content, char *ret_name, size_t name_size)
{
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        int err = -errno;
        if (fd >= 0)
            close(fd);
        return err;
    }
    bool has_data = false, has_new = false, has_wal = false, has_foreign = false;
    bool is_repairing = false;
    for (struct dirent *e; (e = readdir(dir));) {
        has_data |= strcmp(e->d_name, VG_FILE_DATA) == 0;
        is_repairing |= strcmp(e->d_name, VG_SWAP_MARKER) == 0;
        has_new |= strcmp(e->d_name, VG_FILE_DATA_NEW) == 0;
        has_wal |= strncmp(e->d_name, "wal-", 4) == 0 || strcmp(e->d_name, VG_FILE_DURABLE) == 0;
        if (!has_foreign && !is_ours(e->d_name)) {
            has_foreign = true;
            snprintf(ret_name, name_size, "%s", e->d_name);
        }
    }
    closedir(dir);
    if (is_repairing)
        *ret_content = VG_DIR_REPAIRING;
    else if (has_data)
        *ret_content = VG_DIR_STORE;
    else if (has_foreign)
        *ret_content = VG_DIR_FOREIGN;
    else
        *ret_content = has_wal && !has_new ? VG_DIR_HALF_STORE : VG_DIR_EMPTY;
    return 0;
}

int vg_dir_must_be_empty(int dirfd, const char *path, struct vg_status *reterr_status)
{
    enum vg_dir_content content = VG_DIR_FOREIGN;
    char name[256] = "";
    int r = vg_dir_look(dirfd, &content, name, sizeof name);
    if (r < 0)
        return vg_fail(reterr_status, r, "cannot read %s: %s", path, vg_err_text(r));
    if (content == VG_DIR_EMPTY)
        return 0;
    if (content == VG_DIR_FOREIGN)
        return vg_fail(reterr_status, VIGIL_E_STORE_FOREIGN,
                       "%s holds %s, which is not vigil's: give it an empty directory", path, name);
    return vg_fail(reterr_status, VIGIL_E_EXISTS,
                   "%s holds a store already: give an empty directory, or move the store away",
                   path);
}

static int lock_holder(int fd)
{
    char text[32] = {0};
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    return n > 0 ? (int)strtol(text, NULL, 10) : 0;
}

int vg_dir_lock(int dirfd, const char *path, int *ret_lockfd, struct vg_status *reterr_status)
{
    int fd = openat(dirfd, VG_FILE_LOCK, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        int err = -errno;
        return vg_fail(reterr_status, err, "cannot open %s/%s: %s", path, VG_FILE_LOCK,
                       vg_err_text(err));
    }
    /* A lock of the open file, not of the process: a second opener in this process is refused too.
     */
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
        int holder = lock_holder(fd);
        close(fd);
        return vg_fail(reterr_status, VIGIL_E_STORE_LOCKED,
                       "the store in %s is in use by process %d: stop that one first, or give this "
                       "one a directory of its own",
                       path, holder);
    }
    char text[32];
    int n = snprintf(text, sizeof text, "%d\n", (int)getpid());
    /* The number is for people alone: failing to write it is no reason not to start. */
    if (fchmod(fd, 0600) == 0 && ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)n, 0) < 0)
        errno = 0;
    *ret_lockfd = fd;
    return 0;
}

int vg_write_some_at(int fd, const void *p, size_t n, off_t at, size_t *ret_done)
{
    const char *from = p;
    *ret_done = 0;
    while (*ret_done < n) {
        ssize_t w = pwrite(fd, from + *ret_done, n - *ret_done, at + (off_t)*ret_done);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return w < 0 ? -errno : -EIO;
        *ret_done += (size_t)w;
    }
    return 0;
}

int vg_write_at(int fd, const void *p, size_t n, off_t at)
{
    size_t done;
    return vg_write_some_at(fd, p, n, at, &done);
}

ssize_t vg_read_at(int fd, void *p, size_t n, off_t at)
{
    char *to = p;
    size_t got = 0;
    while (got < n) {
        ssize_t r = pread(fd, to + got, n - got, at + (off_t)got);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -errno;
        if (r == 0)
            break;
        got += (size_t)r;
    }
    return (ssize_t)got;
}

int vg_sync_dir(int dirfd)
{
    return fsync(dirfd) < 0 ? -errno : 0;
}

int vg_dir_begin_store(int dirfd)
{
    int fd = openat(dirfd, VG_FILE_DATA_NEW, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int r = fchmod(fd, 0600) < 0 ? -errno : 0;
    close(fd);
    return r < 0 ? r : vg_sync_dir(dirfd);
}

void vg_dir_drop_store(int dirfd)
{
    unlinkat(dirfd, VG_FILE_DATA_NEW "-lock", 0);
    unlinkat(dirfd, "wal-0", 0);
    unlinkat(dirfd, "wal-1", 0);
    unlinkat(dirfd, VG_FILE_DURABLE, 0);
    if (vg_sync_dir(dirfd) == 0)
        unlinkat(dirfd, VG_FILE_DATA_NEW, 0);
}

int vg_write_file(int dirfd, const char *name, const void *p, size_t n)
{
    char beside[64];
    snprintf(beside, sizeof beside, "%s.new", name);
    int fd = openat(dirfd, beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int r = fchmod(fd, 0600) < 0 ? -errno : vg_write_at(fd, p, n, 0);
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    close(fd);
    if (r == 0 && renameat(dirfd, beside, dirfd, name) < 0)
        r = -errno;
    if (r < 0)
        unlinkat(dirfd, beside, 0);
    return r < 0 ? r : vg_sync_dir(dirfd);
}
