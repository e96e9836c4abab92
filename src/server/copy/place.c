/* place.c - see place.h. */
#include "place.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

#define UNFINISHED ".copying"
#define SERVERS_MAX 64 /* as vigild takes */

bool vg_place_is_etcd(const char *text)
{
    return strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
}

static int join(char out[VG_PLACE_PATH_MAX], const char *a, const char *b,
                struct vg_status *reterr_status)
{
    int n = snprintf(out, VG_PLACE_PATH_MAX, "%s%s", a, b);
    if (n < 0 || n >= VG_PLACE_PATH_MAX)
        return vg_fail(reterr_status, -ENAMETOOLONG, "the path %s is too long", a);
    return 0;
}

int vg_place_store_dir(const char *text, char ret_dir[VG_PLACE_PATH_MAX],
                       struct vg_status *reterr_status)
{
    int r = join(ret_dir, text, "/data.mdb", reterr_status);
    if (r < 0)
        return r;
    return join(ret_dir, text, access(ret_dir, F_OK) == 0 ? "" : "/store", reterr_status);
}

/* Servers parted by commas, as vigild's flag has them. */
static int open_cluster(struct vg_place *p, const struct vg_etcd_opts *etcd,
                        struct vg_status *reterr_status)
{
    const char *servers[SERVERS_MAX];
    struct vg_etcd_opts opts = *etcd;
    char *texts = vg_strdup(p->text), *next = texts;
    if (!texts)
        return vg_fail(reterr_status, -ENOMEM, "%s", vg_err_text(-ENOMEM));
    opts.servers = servers;
    for (char *one; next && opts.n_servers < SERVERS_MAX;) {
        one = strsep(&next, ",");
        if (*one)
            servers[opts.n_servers++] = one;
    }
    p->is_etcd = true;
    int r = next ? vg_fail(reterr_status, VIGIL_E_INVALID, "more than %d servers are named",
                           SERVERS_MAX)
                 : vg_session_open(&p->s, &(struct vg_session_opts){.etcd = &opts}, reterr_status);
    vg_free(texts);
    return r;
}

int vg_place_open(struct vg_place *p, const char *text, const struct vg_etcd_opts *etcd,
                  struct vg_status *reterr_status)
{
    *p = (struct vg_place){.text = text};
    if (vg_place_is_etcd(text))
        return open_cluster(p, etcd, reterr_status);
    int r = vg_place_store_dir(text, p->dir, reterr_status);
    if (r < 0)
        return r;
    if (access(p->dir, F_OK) < 0)
        return vg_fail(reterr_status, VIGIL_E_NOT_FOUND,
                       "there is no store in %s: name the --data-dir of a vigild", text);
    return vg_session_open(&p->s, &(struct vg_session_opts){.dir = p->dir}, reterr_status);
}

/* ---- a new directory ---- */

static int remove_store(const char *dir, struct vg_status *reterr_status)
{
    int r = vg_storage_remove_lmdb(dir);
    return r < 0 ? vg_fail(reterr_status, r, "cannot remove %s, which a copy left: %s", dir,
                           vg_err_text(r))
                 : 0;
}

/* Is there anything in it? A directory that is not there is empty. */
static int must_be_empty(const char *dir, const char *text, struct vg_status *reterr_status)
{
    DIR *d = opendir(dir);
    struct dirent *e = NULL;
    if (!d)
        return errno == ENOENT
                   ? 0
                   : vg_fail(reterr_status, -errno, "cannot open %s: %s", dir, strerror(errno));
    do
        e = readdir(d);
    while (e && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0));
    int r = e ? vg_fail(reterr_status, VIGIL_E_EXISTS,
                        "%s has a store already, or something else: choose another directory, or "
                        "move %s away",
                        text, dir)
              : 0;
    closedir(d);
    return r;
}

static int make_dir(const char *dir, struct vg_status *reterr_status)
{
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return vg_fail(reterr_status, -errno, "cannot make the directory %s: %s", dir,
                       strerror(errno));
    return 0;
}

int vg_place_prepare(const char *text, char ret_dir[VG_PLACE_PATH_MAX],
                     struct vg_status *reterr_status)
{
    int r = vg_place_store_dir(text, ret_dir, reterr_status);
    if (r == 0)
        r = must_be_empty(ret_dir, text, reterr_status);
    return r < 0 ? r : make_dir(text, reterr_status);
}

int vg_place_make(struct vg_place *p, const char *text, vg_rev rev, struct vg_status *reterr_status)
{
    *p = (struct vg_place){.text = text};
    int r = vg_place_prepare(text, p->final, reterr_status);
    if (r == 0)
        r = join(p->dir, p->final, UNFINISHED, reterr_status);
    if (r == 0)
        r = remove_store(p->dir, reterr_status);
    struct vg_session_opts opts = {.dir = p->dir, .may_create = true, .first_above = rev};
    return r < 0 ? r : vg_session_open(&p->s, &opts, reterr_status);
}

static int sync_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = fsync(fd) < 0 ? -errno : 0;
    close(fd);
    return r;
}

int vg_place_finish(struct vg_place *p, struct vg_status *reterr_status)
{
    if (!p->final[0])
        return 0;
    vg_session_close(&p->s);
    /* Over an empty directory this works, over one that is in use it does not. */
    int r = rename(p->dir, p->final) < 0 ? -errno : sync_dir(p->text);
    if (r < 0)
        return vg_fail(reterr_status, r, "cannot rename %s to %s: %s", p->dir, p->final,
                       vg_err_text(r));
    p->final[0] = '\0';
    return 0;
}

void vg_place_close(struct vg_place *p)
{
    vg_session_close(&p->s);
    if (p->final[0] && p->dir[0])
        (void)remove_store(p->dir, NULL); /* what is left the next run removes, or names */
}
