/* lmdb_room.c - room on the disk: how much there is, the reserve, and whether the store is still
 * where it was opened.
 * The reserve is a file of blocks that nobody uses. When the disk is full it is cut to nothing, and
 * what it held is there for deletions, the checkpoints that follow them, and compaction. The log
 * files have blocks of their own beyond their ends, so that a generation can always begin. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "files.h"
#include "lmdb_int.h"

/* Of each log file, if the reserve is not smaller: enough for a thousand deletions. */
#define LOG_BLOCKS ((uint64_t)4 << 20)
/* Free space in smaller pieces is not counted on. */
#define FREE_RUN_MIN ((size_t)60 << 10)
/* A small disk is not given away for the reserve. */
#define RESERVE_SHARE 16

/* ---- the reserve ---- */

static uint64_t wanted_reserve(struct vg_lmdb *l)
{
    struct statvfs fs;
    if (l->reserve_bytes == 0 || fstatvfs(l->dirfd, &fs) < 0)
        return 0;
    uint64_t share = (uint64_t)fs.f_blocks * fs.f_frsize / RESERVE_SHARE;
    return VG_MIN(l->reserve_bytes, share - share % 4096);
}

/* A file system that cannot give blocks ahead has no reserve; that is no error. */
static int allocate(int fd, uint64_t bytes)
{
    if (fallocate(fd, 0, 0, (off_t)bytes) == 0)
        return 0;
    int err = -errno;
    if (ftruncate(fd, 0) < 0) /* what it got goes back */
        return -errno;
    return err == -EOPNOTSUPP || err == -ENOSYS ? 0 : err;
}

int vg_lmdb_take_reserve(struct vg_base *b, uint64_t bytes)
{
    struct vg_lmdb *l = VG_CONTAINER_OF(b, struct vg_lmdb, base);
    if (bytes == 0)
        return 0;
    int fd = openat(l->dirfd, VG_FILE_RESERVE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno == ENOSPC ? VIGIL_E_STORE_FULL : -errno;
    int err = allocate(fd, bytes);
    close(fd);
    atomic_store_explicit(&b->reserve_held, err == 0 ? bytes : 0, memory_order_relaxed);
    return err == -ENOSPC || err == -EDQUOT ? VIGIL_E_STORE_FULL : err;
}

void vg_lmdb_release_reserve(struct vg_base *b)
{
    struct vg_lmdb *l = VG_CONTAINER_OF(b, struct vg_lmdb, base);
    int fd = openat(l->dirfd, VG_FILE_RESERVE, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    if (ftruncate(fd, 0) == 0)
        atomic_store_explicit(&b->reserve_held, 0, memory_order_relaxed);
    close(fd);
}

void vg_lmdb_allocate_logs(struct vg_lmdb *l)
{
    uint64_t bytes = VG_MIN(wanted_reserve(l) / 2, LOG_BLOCKS);
    for (size_t i = 0; bytes && i < VG_ARRAY_LEN(l->wal.fd); i++) {
        if (fallocate(l->wal.fd[i], FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) < 0)
            return; /* then the log needs room when it grows, as it does beyond these */
    }
}

/* ---- looking ---- */

/* A bit for each page of the base that nobody uses. */
static int mark_free(MDB_txn *txn, uint8_t *is_free, uint64_t last_pgno)
{
    MDB_cursor *cursor;
    MDB_val key, val;
    int rc = mdb_cursor_open(txn, 0, &cursor); /* 0: LMDB's own table of them */
    if (rc)
        return rc;
    while (!(rc = mdb_cursor_get(cursor, &key, &val, MDB_NEXT))) {
        const char *p = val.mv_data; /* how many, then their numbers */
        for (size_t i = 1; i < val.mv_size / sizeof(uint64_t); i++) {
            uint64_t n, pgno;
            memcpy(&n, p, sizeof n);
            memcpy(&pgno, p + i * sizeof pgno, sizeof pgno);
            if (i <= n && pgno <= last_pgno)
                is_free[pgno / 8] |= (uint8_t)(1u << pgno % 8);
        }
    }
    mdb_cursor_close(cursor);
    return rc == MDB_NOTFOUND ? 0 : rc;
}

/* Pages in runs that are long enough for a record of `run` pages. */
static uint64_t count_runs(const uint8_t *is_free, uint64_t last_pgno, uint64_t run)
{
    uint64_t pages = 0, length = 0;
    for (uint64_t i = 0; i <= last_pgno + 1; i++) {
        if (i <= last_pgno && (is_free[i / 8] & (1u << i % 8))) {
            length++;
            continue;
        }
        pages += length / run * run;
        length = 0;
        if (i < last_pgno && i % 8 == 0 && is_free[i / 8] == 0)
            i += 7; /* none of these eight */
    }
    return pages;
}

/* LMDB writes to free pages before it lets the file grow, but a large record needs pages that lie
 * side by side: what is in pieces that are too small for those that came last does not count. */
static uint64_t free_bytes(struct vg_lmdb *l)
{
    MDB_txn *txn;
    MDB_stat stat = {0};
    MDB_envinfo info = {0};
    if (!l->env || mdb_env_stat(l->env, &stat) || mdb_env_info(l->env, &info) ||
        mdb_txn_begin(l->env, NULL, MDB_RDONLY, &txn))
        return 0;
    size_t largest = VG_MAX(VG_MAX(l->largest[0], l->largest[1]), FREE_RUN_MIN);
    uint64_t pages = 0;
    uint8_t *is_free = vg_calloc(1, info.me_last_pgno / 8 + 1);
    if (is_free && mark_free(txn, is_free, info.me_last_pgno) == 0)
        pages = count_runs(is_free, info.me_last_pgno, largest / stat.ms_psize + 1);
    vg_free(is_free);
    mdb_txn_abort(txn);
    return pages * stat.ms_psize;
}

void vg_lmdb_count_free(struct vg_base *b)
{
    struct vg_lmdb *l = VG_CONTAINER_OF(b, struct vg_lmdb, base);
    atomic_store_explicit(&b->free_bytes, free_bytes(l), memory_order_relaxed);
}

int vg_lmdb_room(struct vg_base *b, struct vg_room *ret)
{
    struct vg_lmdb *l = VG_CONTAINER_OF(b, struct vg_lmdb, base);
    struct statvfs fs;
    if (fstatvfs(l->dirfd, &fs) < 0)
        return -errno;
    *ret = (struct vg_room){
        .available = (uint64_t)fs.f_bavail * fs.f_frsize,
        .reserve = wanted_reserve(l),
    };
    return 0;
}

/* LMDB calls a write that was cut short EIO, whatever the reason. */
#define NO_ROOM_BYTES ((uint64_t)1 << 20)

int vg_lmdb_commit(struct vg_lmdb *l, MDB_txn *take_txn)
{
    struct vg_room room = {0};
    int r = vg_lmdb_err(mdb_txn_commit(take_txn));
    if (r == -EIO && vg_lmdb_room(&l->base, &room) == 0 && room.available < NO_ROOM_BYTES)
        return VIGIL_E_STORE_FULL;
    return r;
}

/* ---- is it still there? ---- */

bool vg_lmdb_is_removed(struct vg_base *b)
{
    struct vg_lmdb *l = VG_CONTAINER_OF(b, struct vg_lmdb, base);
    struct stat ours, there;
    if (fstatat(l->dirfd, VG_FILE_DATA, &ours, 0) < 0)
        return errno == ENOENT;
    if (stat(l->path, &there) < 0)
        return errno == ENOENT || errno == ENOTDIR;
    return ours.st_dev != there.st_dev || ours.st_ino != there.st_ino;
}

/* A write into a file without a name succeeds, and is lost with the descriptor. */
bool vg_wal_is_removed(const struct vg_wal *w)
{
    struct stat st;
    return fstat(w->fd[w->gen & 1], &st) == 0 && st.st_nlink == 0;
}
