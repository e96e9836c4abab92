/* repair_swap.c - see repair_swap.h. */
#include "repair_swap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"

/* The data file last: a directory without one is not taken for a store. */
static const char *const names[] = {"wal-0", "wal-1", VG_FILE_DURABLE, VG_FILE_CEILING,
                                    VG_FILE_DATA};
#define KEPT_MAX 1000
#define KEPT_NAME_MAX 32

static bool is_there(int dirfd, const char *name)
{
    return faccessat(dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int open_sub(int dirfd, const char *name, int *ret_fd)
{
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

int vg_swap_begin(int dirfd, int *ret_newfd)
{
    int r = mkdirat(dirfd, VG_SWAP_NEW, 0700) < 0 && errno != EEXIST ? -errno : 0;
    if (r == 0)
        r = open_sub(dirfd, VG_SWAP_NEW, ret_newfd);
    for (size_t i = 0; r == 0 && i < VG_ARRAY_LEN(names); i++)
        unlinkat(*ret_newfd, names[i], 0); /* of an attempt before */
    return r;
}

bool vg_swap_is_under_way(int dirfd)
{
    return is_there(dirfd, VG_SWAP_MARKER);
}

/* The first name that is free; the marker remembers it. */
static int choose_kept(int dirfd, char *kept, size_t size)
{
    for (unsigned i = 1; i <= KEPT_MAX; i++) {
        snprintf(kept, size, VG_SWAP_KEPT "%u", i);
        if (mkdirat(dirfd, kept, 0700) == 0) {
            /* Both folders must be there whenever the marker is. */
            int r = vg_sync_dir(dirfd);
            return r < 0 ? r : vg_write_file(dirfd, VG_SWAP_MARKER, kept, strlen(kept));
        }
        if (errno != EEXIST)
            return -errno;
    }
    return -EEXIST;
}

static int read_kept(int dirfd, char *kept, size_t size)
{
    int fd = openat(dirfd, VG_SWAP_MARKER, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = vg_read_at(fd, kept, size - 1, 0);
    close(fd);
    if (n < 0)
        return (int)n;
    kept[n] = '\0';
    return strncmp(kept, VG_SWAP_KEPT, strlen(VG_SWAP_KEPT)) == 0 && !strchr(kept, '/')
               ? 0
               : VIGIL_E_STORE_DAMAGED;
}

/* A file that has a new one is old; without a new one it is in its place already, unless the new
 * store has no such file at all. */
static int move_one(int dirfd, int newfd, int keptfd, const char *name)
{
    bool has_new = is_there(newfd, name);
    bool is_extra = strcmp(name, VG_FILE_CEILING) == 0;
    if ((has_new || is_extra) && is_there(dirfd, name) && !is_there(keptfd, name) &&
        renameat(dirfd, name, keptfd, name) < 0)
        return -errno;
    return has_new && renameat(newfd, name, dirfd, name) < 0 ? -errno : 0;
}

static int move_all(int dirfd, int newfd, int keptfd)
{
    int r = 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(names) && r == 0; i++)
        r = move_one(dirfd, newfd, keptfd, names[i]);
    if (r == 0)
        r = vg_sync_dir(keptfd);
    return r;
}

int vg_swap_finish(int dirfd, char *ret_kept, size_t size)
{
    char kept[KEPT_NAME_MAX];
    int newfd = -1, keptfd = -1;
    int r = vg_swap_is_under_way(dirfd) ? read_kept(dirfd, kept, sizeof kept)
                                        : choose_kept(dirfd, kept, sizeof kept);
    if (r == 0)
        r = open_sub(dirfd, kept, &keptfd);
    if (r == 0)
        r = open_sub(dirfd, VG_SWAP_NEW, &newfd);
    if (r == 0)
        r = move_all(dirfd, newfd, keptfd);
    else if (r == -ENOENT && keptfd >= 0)
        r = 0; /* all was moved, and only the marker was left */
    if (newfd >= 0)
        close(newfd);
    if (keptfd >= 0)
        close(keptfd);
    if (r < 0)
        return r;
    unlinkat(dirfd, VG_FILE_DATA "-lock", 0);
    if (unlinkat(dirfd, VG_SWAP_NEW, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return -errno;
    r = vg_sync_dir(dirfd);
    if (r == 0 && unlinkat(dirfd, VG_SWAP_MARKER, 0) < 0)
        r = -errno;
    snprintf(ret_kept, size, "%s", kept);
    return r < 0 ? r : vg_sync_dir(dirfd);
}
