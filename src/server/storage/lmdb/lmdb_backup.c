/* lmdb_backup.c - a copy of the base in one file, and a store made from such a copy.
 * The copy is LMDB's own compacting copy of one snapshot: it has the form of a data file. Every
 * record in it carries a checksum, and restoring reads them all. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "files.h"
#include "lmdb_open.h"
#include "lmdb_verify.h"

/* ---- backup ---- */

static int copy_env(struct vg_lmdb *l, int fd)
{
    pthread_rwlock_rdlock(&l->env_lock);
    int rc = l->env ? mdb_env_copyfd2(l->env, fd, MDB_CP_COMPACT) : EIO;
    pthread_rwlock_unlock(&l->env_lock);
    int r = vg_lmdb_err(rc);
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    return r;
}

static int sync_dir_of(const char *path)
{
    char dir[4096];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (n >= sizeof dir - 1)
        return -ENAMETOOLONG;
    snprintf(dir, sizeof dir, "%.*s", (int)(slash ? VG_MAX(n, (size_t)1) : 1), slash ? path : ".");
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = vg_sync_dir(fd);
    close(fd);
    return r;
}

/* Written beside the path, then linked to it: a path that exists is never replaced. */
static int publish(const char *beside, const char *path)
{
    if (link(beside, path) < 0)
        return errno == EEXIST ? VIGIL_E_EXISTS : -errno;
    unlink(beside);
    return sync_dir_of(path);
}

static int finish_backup(struct vg_backup *b, int fd, const char *beside)
{
    struct stat st;
    struct vg_data_facts facts;
    int r = fstat(fd, &st) < 0 ? -errno : 0;
    if (r == 0)
        r = vg_lmdb_inspect(beside, &facts, &b->req.status);
    if (r == 0)
        r = publish(beside, b->path);
    if (r < 0)
        return r;
    b->bytes = (uint64_t)st.st_size;
    b->req.rev = facts.meta.applied_rev;
    return 0;
}

int vg_lmdb_backup(struct vg_base *base, struct vg_backup *b)
{
    struct vg_lmdb *l = VG_CONTAINER_OF(base, struct vg_lmdb, base);
    size_t size = strlen(b->path) + sizeof ".partial";
    char *beside = vg_malloc(size);
    if (!beside)
        return -ENOMEM;
    snprintf(beside, size, "%s.partial", b->path);
    int r = 0;
    int fd = -1;
    if (access(b->path, F_OK) == 0)
        r = VIGIL_E_EXISTS;
    if (r == 0) {
        fd = open(beside, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        r = fd < 0 || fchmod(fd, 0600) < 0 ? -errno : 0;
    }
    if (r == 0)
        r = copy_env(l, fd);
    if (r == 0)
        r = finish_backup(b, fd, beside);
    if (fd >= 0) {
        close(fd);
        unlink(beside);
    }
    if (r < 0 && b->req.status.err != r)
        vg_fail(&b->req.status, r, "cannot write the backup %s: %s", b->path, vg_err_text(r));
    vg_free(beside);
    return r;
}

/* ---- restore ---- */

static int copy_file(const char *from, int dirfd, const char *name)
{
    int in = open(from, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return -errno;
    int out = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int r = out < 0 || fchmod(out, 0600) < 0 ? -errno : 0;
    char buf[64 * 1024];
    for (off_t at = 0; r == 0;) {
        ssize_t n = vg_read_at(in, buf, sizeof buf, at);
        if (n <= 0) {
            r = (int)n;
            break;
        }
        r = vg_write_at(out, buf, (size_t)n, at);
        at += n;
    }
    if (r == 0 && fsync(out) < 0)
        r = -errno;
    close(in);
    if (out >= 0)
        close(out);
    return r;
}

/* Forgets them. */
static int check_readable(struct vg_rec **recs, size_t n, struct vg_status *reterr_status)
{
    int r = 0;
    for (size_t i = 0; i < n; i++) {
        if (recs[i]->is_unreadable && r == 0)
            r = vg_fail(reterr_status, VIGIL_E_STORE_DAMAGED,
                        "the record of key %.*s does not read back: delete it where the backup was "
                        "made, and make another",
                        VG_SLICE_ARG(vg_rec_key(recs[i])));
        vg_rec_unref(recs[i]);
    }
    return r;
}

/* Read everything through the checksums: every key must have its newest record. */
static int check_all(struct vg_base_view *v, struct vg_status *reterr_status)
{
    struct vg_rec *recs[64];
    struct vg_keys all = {.kind = VG_KEYS_FROM};
    struct vg_rec *last = NULL;
    size_t n = VG_ARRAY_LEN(recs);
    int r = 0;
    while (r == 0 && n == VG_ARRAY_LEN(recs)) {
        struct vg_slice after = last ? vg_rec_key(last) : vg_slice(NULL, 0);
        r = vg_lmdb_collect(v, &all, after, VG_REV_MAX, false, NULL, recs, VG_ARRAY_LEN(recs), &n);
        if (r < 0)
            break;
        vg_rec_unref(last);
        last = n ? vg_rec_ref(recs[n - 1]) : NULL;
        r = check_readable(recs, n, reterr_status);
    }
    vg_rec_unref(last);
    return r;
}

static int check_records(struct vg_lmdb *l, struct vg_status *reterr_status)
{
    struct vg_base_view *v;
    int r = vg_lmdb_view_open(&l->base, &v);
    if (r < 0)
        return r;
    r = vg_lmdb_view_begin(v);
    if (r == 0) {
        r = check_all(v, reterr_status);
        vg_lmdb_view_end(v);
    }
    vg_lmdb_view_close(v);
    return r;
}

/* Let the copy begin a life of its own: a new salt, a log of its own, and revisions that nobody has
 * seen. History from before cannot be continued across the gap, so it counts as compacted. */
static int adopt(struct vg_lmdb *l, vg_rev bump, struct store_meta *ret_state)
{
    MDB_txn *txn;
    struct store_meta state = l->state;
    int r = vg_random_bytes(&state.salt, sizeof state.salt);
    if (r < 0)
        return r;
    state.applied_gen = 0;
    if (bump)
        state.compact_rev = state.applied_rev + bump;
    int rc = mdb_txn_begin(l->env, NULL, 0, &txn);
    if (rc)
        return vg_lmdb_err(rc);
    rc = vg_lmdb_put_meta(txn, l->meta, &state);
    if (!rc && l->has_sums)
        rc = vg_lmdb_put_sums(txn, l->meta, &l->sums, &state);
    if (rc)
        mdb_txn_abort(txn);
    else
        rc = mdb_txn_commit(txn);
    *ret_state = state;
    return vg_lmdb_err(rc);
}

static int check_and_adopt(const char *path, vg_rev bump, struct store_meta *ret_state,
                           struct vg_status *reterr_status)
{
    struct vg_lmdb *l;
    int r = vg_lmdb_new(path, VG_RESTORE_MAP_SIZE, &l);
    if (r < 0)
        return r;
    r = vg_lmdb_env_open(l);
    if (r == 0)
        r = check_records(l, reterr_status);
    if (r == 0)
        r = adopt(l, bump, ret_state);
    vg_lmdb_env_close(l);
    vg_lmdb_free(l);
    return r;
}

static int fill_dir(const char *backup, const char *dir, int dirfd, vg_rev bump,
                    struct vg_status *reterr_status)
{
    struct store_meta state = {0};
    struct vg_status damage = {0};
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", dir, VG_FILE_DATA_NEW);
    if (n < 0 || (size_t)n >= sizeof path)
        return vg_fail(reterr_status, -ENAMETOOLONG, "the path %s is too long", dir);
    int r = vg_dir_begin_store(dirfd);
    if (r == 0)
        r = copy_file(backup, dirfd, VG_FILE_DATA_NEW);
    if (r == 0)
        r = check_and_adopt(path, bump, &state, &damage);
    if (r == VIGIL_E_STORE_DAMAGED)
        return vg_fail(reterr_status, r, "the backup %s is damaged: %s", backup,
                       damage.err == r ? damage.message : "a record does not read back");
    unlinkat(dirfd, VG_FILE_DATA_NEW "-lock", 0);
    if (r == 0)
        r = vg_wal_create(dirfd, state.salt, state.applied_rev, state.applied_rev + bump);
    if (r == 0 && renameat(dirfd, VG_FILE_DATA_NEW, dirfd, VG_FILE_DATA) < 0)
        r = -errno;
    if (r == 0)
        r = vg_sync_dir(dirfd);
    if (r < 0)
        return vg_fail(reterr_status, r, "cannot restore into %s: %s", dir, vg_err_text(r));
    return 0;
}

int vg_storage_restore_lmdb(const char *backup, const char *dir, vg_rev bump,
                            struct vg_status *reterr_status)
{
    struct vg_data_facts facts;
    int dirfd = -1, lockfd = -1;
    int r = vg_lmdb_inspect(backup, &facts, reterr_status);
    if (r == 0)
        r = vg_dir_open(dir, &dirfd, reterr_status);
    if (r < 0)
        return r;
    r = vg_dir_must_be_empty(dirfd, dir, reterr_status);
    if (r == 0)
        r = vg_dir_lock(dirfd, dir, &lockfd, reterr_status);
    if (r < 0) {
        close(dirfd);
        return r;
    }
    r = fill_dir(backup, dir, dirfd, bump, reterr_status);
    if (r < 0) {
        vg_dir_drop_store(dirfd);
        unlinkat(dirfd, VG_FILE_LOCK, 0);
    }
    close(lockfd);
    close(dirfd);
    return r;
}
