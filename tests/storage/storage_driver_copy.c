/* storage_driver_copy.c - see storage_driver.h: copying the files of a store. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "storage_driver_int.h"

static int must(const char *what, int result)
{
    if (result < 0)
        vg_drv_die(what, -errno);
    return result;
}

/* Holes are skipped: an engine may reserve far more than it has written. */
static void copy_data(int in, int out, off_t size)
{
    char bytes[65536];
    for (off_t at = 0; (at = lseek(in, at, SEEK_DATA)) >= 0;) {
        ssize_t n = pread(in, bytes, sizeof bytes, at);
        must("reading a file of the store", (int)n);
        if (n == 0 || pwrite(out, bytes, (size_t)n, at) != n)
            break;
        at += n;
    }
    must("ending a copy", ftruncate(out, size));
}

static void copy_file(int from_dir, int to_dir, const char *name)
{
    struct stat st;
    int in = must(name, openat(from_dir, name, O_RDONLY | O_CLOEXEC));
    must(name, fstat(in, &st));
    int out = must(name, openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    copy_data(in, out, st.st_size);
    close(in);
    close(out);
}

void vg_drv_copy_files(const char *from, const char *to)
{
    int to_dir = must(to, open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    DIR *dir = opendir(from);
    must(from, dir ? 0 : -1);
    for (struct dirent *e; (e = readdir(dir));)
        if (e->d_name[0] != '.')
            copy_file(dirfd(dir), to_dir, e->d_name);
    closedir(dir);
    close(to_dir);
}
