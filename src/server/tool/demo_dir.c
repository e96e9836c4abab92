/* demo_dir.c - the demo's directory.
 * It holds a store, a backup and a restored store, and a mark that says that a demo made it. Only a
 * directory with that mark is emptied, only of files, and only when nobody uses its stores. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "demo.h"

#define MARK "made-by-vigil-store-demo"
#define MARK_TEXT "vigil-store demo made this directory and empties it whenever it runs.\n"

static bool is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int fill_paths(struct vg_demo *d, struct vg_status *reterr_status)
{
    const char *dir = d->o->dir         ? d->o->dir
                      : is_dir("build") ? "build/vigil-store-demo"
                                        : "vigil-store-demo";
    int n = snprintf(d->dir, sizeof d->dir, "%s", dir);
    if (n < 0 || (size_t)n >= sizeof d->dir)
        return vg_fail(reterr_status, -ENAMETOOLONG, "the path %s is too long", dir);
    snprintf(d->store, sizeof d->store, "%s/store", d->dir);
    snprintf(d->backup, sizeof d->backup, "%s/backup", d->dir);
    snprintf(d->restored, sizeof d->restored, "%s/restored", d->dir);
    return 0;
}

/* ---- the mark ---- */

static bool is_empty(const char *dir)
{
    DIR *d = opendir(dir);
    size_t n = 0;
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n <= 2;
}

static int fail_dir(const struct vg_demo *d, struct vg_status *status, const char *what)
{
    int err = -errno;
    return vg_fail(status, err, "cannot %s %s: %s", what, d->dir, vg_err_text(err));
}

/* Open the mark, or make it in a directory that has nothing else. */
static int open_mark(struct vg_demo *d, struct vg_status *reterr_status)
{
    char path[VG_DEMO_PATH_MAX];
    snprintf(path, sizeof path, "%s/" MARK, d->dir);
    d->lock_fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (d->lock_fd >= 0)
        return 0;
    if (errno != ENOENT)
        return fail_dir(d, reterr_status, "look into");
    if (!is_empty(d->dir))
        return vg_fail(reterr_status, VIGIL_E_EXISTS,
                       "%s holds something that no demo made: give the demo a new directory",
                       d->dir);
    d->lock_fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (d->lock_fd < 0 || write(d->lock_fd, MARK_TEXT, strlen(MARK_TEXT)) < 0)
        return fail_dir(d, reterr_status, "write to");
    return 0;
}

static int take_mark(struct vg_demo *d, struct vg_status *reterr_status)
{
    if (mkdir(d->dir, 0700) < 0 && errno != EEXIST)
        return fail_dir(d, reterr_status, "make the directory");
    int r = open_mark(d, reterr_status);
    if (r == 0 && flock(d->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return vg_fail(reterr_status, VIGIL_E_STORE_LOCKED,
                       "another demo runs in %s: wait for it, or give this one a --dir of its own",
                       d->dir);
    return r;
}

/* ---- emptying ---- */

/* Opening tells whether somebody uses it; in what state it is does not matter here. */
static int check_unused(const char *store, struct vg_status *reterr_status)
{
    struct vg_session s;
    struct vg_session_opts opts = {.dir = store};
    int r = vg_session_open(&s, &opts, reterr_status);
    if (r == 0)
        vg_session_close(&s);
    return r == VIGIL_E_STORE_LOCKED ? r : 0;
}

/* The files of a directory, then itself. What is not a file stays, and with it the directory. */
static int remove_store(struct vg_demo *d, const char *store, struct vg_status *reterr_status)
{
    if (!is_dir(store))
        return 0;
    int r = check_unused(store, reterr_status);
    DIR *dir = r == 0 ? opendir(store) : NULL;
    if (!dir)
        return r < 0 ? r : fail_dir(d, reterr_status, "empty");
    for (struct dirent *e; (e = readdir(dir));)
        (void)unlinkat(dirfd(dir), e->d_name, 0);
    closedir(dir);
    return rmdir(store) < 0 ? fail_dir(d, reterr_status, "empty") : 0;
}

int vg_demo_dir_take(struct vg_demo *d, struct vg_status *reterr_status)
{
    d->lock_fd = -1;
    int r = fill_paths(d, reterr_status);
    if (r == 0)
        r = take_mark(d, reterr_status);
    if (r == 0)
        r = remove_store(d, d->store, reterr_status);
    if (r == 0)
        r = remove_store(d, d->restored, reterr_status);
    if (r == 0 && unlink(d->backup) < 0 && errno != ENOENT)
        r = fail_dir(d, reterr_status, "empty");
    return r;
}

void vg_demo_dir_release(struct vg_demo *d)
{
    if (d->lock_fd >= 0)
        close(d->lock_fd);
    d->lock_fd = -1;
}
