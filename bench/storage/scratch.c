/* scratch.c - the directory that is measured in, and what lies in it; see measure.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "measure.h"

static char *scratch;
static pid_t scratch_owner; /* a child that exits must not take the directory along */

static void remove_scratch(void)
{
    if (scratch && getpid() == scratch_owner)
        bench_remove_tree(scratch);
}

static void warn_if_memory(const char *path)
{
    struct statfs fs;
    if (statfs(path, &fs) < 0)
        return;
    if (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
        fprintf(stderr,
                "%s: %s is in memory: syncing is free there, the rates say nothing about a disk "
                "(--dir chooses another place)\n",
                program_invocation_short_name, path);
}

const char *bench_default_dir(void)
{
    struct stat st;
    return stat("build", &st) == 0 && S_ISDIR(st.st_mode) ? "build" : ".";
}

const char *bench_scratch(const char *parent)
{
    scratch = bench_path(parent, "bench-scratch.XXXXXX");
    if (!mkdtemp(scratch))
        bench_die("cannot make a directory in %s: %s", parent, strerror(errno));
    scratch_owner = getpid();
    atexit(remove_scratch);
    warn_if_memory(scratch);
    return scratch;
}

char *bench_path(const char *dir, const char *name)
{
    size_t n = strlen(dir) + strlen(name) + 2;
    char *path = bench_alloc(n, 1);
    snprintf(path, n, "%s/%s", dir, name);
    return path;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

void bench_remove_tree(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Calls fn for every file of a directory, which has no deeper levels that matter here. */
static uint64_t each_file(const char *dir, uint64_t (*fn)(const char *path))
{
    DIR *d = opendir(dir);
    if (!d)
        return 0;
    uint64_t sum = 0;
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (e->d_name[0] == '.')
            continue;
        char *path = bench_path(dir, e->d_name);
        sum += fn(path);
        free(path);
    }
    closedir(d);
    return sum;
}

/* Blocks in use, not length: a file may have holes or reserved space at its end. */
static uint64_t file_bytes(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return 0;
    return S_ISDIR(st.st_mode) ? bench_tree_bytes(path) : (uint64_t)st.st_blocks * 512;
}

uint64_t bench_tree_bytes(const char *path)
{
    return each_file(path, file_bytes);
}

static uint64_t file_forget(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    if (fdatasync(fd) == 0)
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    return 1;
}

void bench_tree_forget(const char *path)
{
    each_file(path, file_forget);
}

static uint64_t file_warm(const char *path)
{
    static char page[1 << 16];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint64_t bytes = 0;
    for (ssize_t n = 1; fd >= 0 && n > 0; bytes += n > 0 ? (uint64_t)n : 0)
        n = read(fd, page, sizeof page);
    if (fd >= 0)
        close(fd);
    return bytes;
}

void bench_tree_warm(const char *path)
{
    each_file(path, file_warm);
}

void bench_settle(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    syncfs(fd);
    close(fd);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}
