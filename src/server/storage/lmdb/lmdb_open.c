/* lmdb_open.c - opening the lmdb engine.
 * In this order, so that a directory that is not fit is left as it was: look, lock, inspect the
 * data file without writing, open it, replay the log. A new store is made under another name and
 * renamed when it is whole: a data file that is there is complete. */
#include "lmdb_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "files.h"
#include "lmdb_scrub.h"
#include "lmdb_verify.h"
#include "server/storage/local/engine.h"

/* Revisions reserved at a time when the log is not synced. */
#define CEILING_STEP 1000000

/* ---- the base as an engine sees it ---- */

static struct vg_lmdb *lmdb_of(struct vg_base *b)
{
    return VG_CONTAINER_OF(b, struct vg_lmdb, base);
}

/* Without syncs a power loss may lose revisions that clients have seen: what is given out is
 * reserved on the disk first, so that it is never given out again. */
static int reserve_revisions(struct vg_lmdb *l, vg_rev upto)
{
    if (!l->no_sync || upto <= l->ceiling)
        return 0;
    uint64_t ceiling = upto + CEILING_STEP;
    int r = vg_write_file(l->dirfd, VG_FILE_CEILING, &ceiling, sizeof ceiling);
    if (r == 0)
        l->ceiling = ceiling;
    return r;
}

/* The commit thread looks at it while the syncer writes. */
static void note_used(struct vg_lmdb *l)
{
    atomic_store_explicit(&l->log_used, l->wal.offset - VG_WAL_PAGE, memory_order_relaxed);
}

static int log_append(struct vg_base *b, const struct vg_event *events, size_t n)
{
    struct vg_lmdb *l = lmdb_of(b);
    if (reserve_revisions(l, events[n - 1].rec->rev) < 0)
        return VIGIL_E_STORE_FULL;
    int r = vg_wal_append(&l->wal, events, n);
    note_used(l);
    return r == 0 && vg_wal_is_removed(&l->wal) ? VIGIL_E_READ_ONLY : r;
}

static int log_repair(struct vg_base *b)
{
    struct vg_lmdb *l = lmdb_of(b);
    if (vg_wal_is_removed(&l->wal) || vg_lmdb_is_removed(b))
        return -ENOENT;
    return vg_wal_repair(&l->wal);
}

static int log_switch(struct vg_base *b, vg_rev last)
{
    int r = vg_wal_switch(&lmdb_of(b)->wal, last, last);
    note_used(lmdb_of(b));
    return r;
}

static uint64_t log_used(struct vg_base *b)
{
    return atomic_load_explicit(&lmdb_of(b)->log_used, memory_order_relaxed);
}

static int reopen(struct vg_base *b)
{
    struct vg_lmdb *l = lmdb_of(b);
    vg_lmdb_lock_env(l);
    vg_lmdb_env_close(l);
    int r = vg_lmdb_env_open(l);
    pthread_rwlock_unlock(&l->env_lock);
    return r;
}

/* What the files take on the disk; holes do not count. */
static uint64_t disk_bytes(struct vg_base *b)
{
    static const char *const names[] = {VG_FILE_DATA, "wal-0", "wal-1", VG_FILE_DURABLE};
    uint64_t total = 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(names); i++) {
        struct stat st;
        if (fstatat(lmdb_of(b)->dirfd, names[i], &st, 0) == 0)
            total += (uint64_t)st.st_blocks * 512;
    }
    return total;
}

/* A clean end without syncs: now there is one, and no revision needs to be skipped. */
static void settle(struct vg_lmdb *l, vg_rev last)
{
    if (!l->no_sync || !l->env || l->wal.fd[0] < 0)
        return;
    if (mdb_env_sync(l->env, 1) == 0 && fdatasync(l->wal.fd[0]) == 0 &&
        fdatasync(l->wal.fd[1]) == 0 &&
        vg_write_file(l->dirfd, VG_FILE_CEILING, &last, sizeof last) < 0)
        return; /* then the next start skips some: harmless */
}

static void close_base(struct vg_base *b, vg_rev last)
{
    if (!b)
        return;
    vg_scrub_stop(lmdb_of(b));
    settle(lmdb_of(b), last);
    vg_lmdb_free(lmdb_of(b));
}

static const struct vg_base_ops lmdb_ops = {
    .log_append = log_append,
    .log_repair = log_repair,
    .log_switch = log_switch,
    .log_used = log_used,
    .view_open = vg_lmdb_view_open,
    .view_close = vg_lmdb_view_close,
    .view_begin = vg_lmdb_view_begin,
    .view_end = vg_lmdb_view_end,
    .damage = vg_lmdb_damage,
    .get = vg_lmdb_get,
    .peek = vg_lmdb_peek,
    .collect = vg_lmdb_collect,
    .log_read = vg_lmdb_log_read,
    .deadlines = vg_lmdb_deadlines,
    .apply = vg_lmdb_apply,
    .compact = vg_lmdb_compact,
    .reopen = reopen,
    .backup = vg_lmdb_backup,
    .disk_bytes = disk_bytes,
    .room = vg_lmdb_room,
    .take_reserve = vg_lmdb_take_reserve,
    .release_reserve = vg_lmdb_release_reserve,
    .count_free = vg_lmdb_count_free,
    .is_removed = vg_lmdb_is_removed,
    .close = close_base,
};

/* ---- life ---- */

int vg_lmdb_new(const char *path, size_t map_size, struct vg_lmdb **ret_lmdb)
{
    struct vg_lmdb *l = vg_new(struct vg_lmdb);
    if (!l)
        return -ENOMEM;
    l->path = vg_strdup(path);
    if (!l->path) {
        vg_free(l);
        return -ENOMEM;
    }
    l->base.ops = &lmdb_ops;
    l->map_size = map_size;
    l->dirfd = l->lockfd = l->wal.fd[0] = l->wal.fd[1] = l->wal.durable.fd = -1;
    l->wal.syncs = &l->base.syncs;
    l->wal.bytes = &l->base.log_bytes;
    vg_list_init(&l->views);
    vg_mutex_init(&l->damaged_mu, VG_RANK_STORE_BASE);
    pthread_rwlockattr_t attr;
    pthread_rwlockattr_init(&attr);
    /* Reopening must get its turn between readers. */
    pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&l->env_lock, &attr);
    pthread_rwlockattr_destroy(&attr);
    *ret_lmdb = l;
    return 0;
}

void vg_lmdb_free(struct vg_lmdb *l)
{
    if (!l)
        return;
    vg_scrub_stop(l);
    vg_lmdb_env_close(l);
    vg_wal_close(&l->wal);
    if (l->dirfd >= 0)
        close(l->dirfd);
    if (l->lockfd >= 0)
        close(l->lockfd); /* last: ends the lock */
    pthread_rwlock_destroy(&l->env_lock);
    vg_mutex_done(&l->damaged_mu);
    vg_free(l->path);
    vg_free(l);
}

/* ---- a new store ---- */

/* A store that begins above a revision counts everything before as compacted. */
static int create_store(struct vg_lmdb *l, vg_rev above, int64_t now_ms)
{
    struct store_meta meta = {
        .magic = STORE_MAGIC,
        .format = STORE_FORMAT,
        .applied_rev = VG_REV_EMPTY,
        .compact_rev = above > VG_REV_EMPTY ? above : 0,
        .created_ms = now_ms,
    };
    char path[4096];
    int n = snprintf(path, sizeof path, "%s.new", l->path);
    if (n < 0 || (size_t)n >= sizeof path)
        return -ENAMETOOLONG;
    int r = vg_random_bytes(&meta.salt, sizeof meta.salt);
    if (r == 0)
        r = vg_dir_begin_store(l->dirfd);
    if (r == 0)
        r = vg_lmdb_env_create(path, &meta);
    if (r == 0)
        r = vg_wal_create(l->dirfd, meta.salt, VG_REV_EMPTY, VG_MAX(above, VG_REV_EMPTY));
    if (r == 0 && renameat(l->dirfd, VG_FILE_DATA_NEW, l->dirfd, VG_FILE_DATA) < 0)
        r = -errno;
    return r < 0 ? r : vg_sync_dir(l->dirfd);
}

/* ---- an old one ---- */

static int look(struct vg_lmdb *l, const char *dir, enum vg_dir_content *ret_content,
                struct vg_status *reterr_status)
{
    char name[256];
    int r = vg_dir_look(l->dirfd, ret_content, name, sizeof name);
    if (r < 0)
        return vg_fail(reterr_status, r, "cannot read %s: %s", dir, vg_err_text(r));
    if (*ret_content == VG_DIR_FOREIGN)
        return vg_fail(reterr_status, VIGIL_E_STORE_FOREIGN,
                       "%s holds %s, which is not vigil's: give vigil a directory of its own", dir,
                       name);
    if (*ret_content == VG_DIR_REPAIRING)
        return vg_fail(reterr_status, VIGIL_E_STORE_DAMAGED,
                       "a repair of the store in %s was cut short: run vigil-store repair again to "
                       "finish it",
                       dir);
    if (*ret_content == VG_DIR_HALF_STORE)
        return vg_fail(reterr_status, VIGIL_E_STORE_DAMAGED,
                       "%s holds a write-ahead log but no " VG_FILE_DATA
                       ": put it back, restore from a backup, or give vigil an empty directory",
                       dir);
    return 0;
}

/* The tables that the replayed generations fill: the first found is to be frozen if there are two.
 */
struct replay {
    struct vg_table *tables[2];
    uint64_t gens[2];
    size_t n;
};

static int on_rec(void *arg, uint64_t gen, struct vg_rec *take_rec)
{
    struct replay *rp = arg;
    if (rp->n == 0 || rp->gens[rp->n - 1] != gen) {
        int r = rp->n < 2 ? vg_table_new(&rp->tables[rp->n]) : VIGIL_E_STORE_DAMAGED;
        if (r < 0) {
            vg_rec_unref(take_rec);
            return r;
        }
        rp->gens[rp->n++] = gen;
    }
    struct vg_table *t = rp->tables[rp->n - 1];
    int r = vg_table_stage(t, take_rec);
    if (r == 0)
        vg_table_publish(t, 1);
    return r;
}

static int read_ceiling(struct vg_lmdb *l, uint64_t *ret_ceiling)
{
    *ret_ceiling = 0;
    int fd = openat(l->dirfd, VG_FILE_CEILING, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    ssize_t n = vg_read_at(fd, ret_ceiling, sizeof *ret_ceiling, 0);
    close(fd);
    return n == sizeof *ret_ceiling ? 0 : n < 0 ? (int)n : VIGIL_E_STORE_DAMAGED;
}

/* The store ran without syncs and did not end cleanly: go on above everything that may have been
 * given out. Whoever has seen what is now lost must list anew. */
static int skip_revisions(struct vg_lmdb *l, struct vg_engine_start *s, uint64_t ceiling)
{
    if (s->take_frozen) {
        struct vg_base_apply apply = {.applied = s->frozen_last};
        apply.recs = vg_table_frozen_log(s->take_frozen, &apply.n);
        int r = vg_lmdb_apply(&l->base, &apply);
        if (r < 0)
            return r;
        vg_table_unref(s->take_frozen);
    }
    s->take_frozen = s->take_active;
    s->frozen_last = l->wal.last;
    s->take_active = NULL;
    int r = vg_table_new(&s->take_active);
    if (r == 0)
        r = vg_wal_switch(&l->wal, s->frozen_last, ceiling);
    s->rev = s->compacted = ceiling;
    return r;
}

static int settle_ceiling(struct vg_lmdb *l, struct vg_engine_start *s)
{
    uint64_t ceiling;
    int r = read_ceiling(l, &ceiling);
    if (r == 0 && ceiling > s->rev)
        r = skip_revisions(l, s, ceiling);
    if (r < 0 || l->no_sync)
        return r < 0 ? r : reserve_revisions(l, s->rev + 1);
    if (ceiling && unlinkat(l->dirfd, VG_FILE_CEILING, 0) < 0)
        return -errno;
    return 0;
}

/* Where each generation belongs. A generation without a record left no table. */
static int arrange(struct vg_lmdb *l, struct replay *rp, struct vg_engine_start *s)
{
    bool has_two = l->wal.gen == l->state.applied_gen + 2;
    for (size_t i = 0; i < rp->n; i++) {
        bool is_active = rp->gens[i] == l->wal.gen;
        *(is_active ? &s->take_active : &s->take_frozen) = vg_steal(rp->tables[i]);
    }
    int r = 0;
    if (!s->take_active)
        r = vg_table_new(&s->take_active);
    if (r == 0 && has_two && !s->take_frozen)
        r = vg_table_new(&s->take_frozen);
    s->frozen_last = l->wal.frozen_last;
    return r;
}

static int replay_log(struct vg_lmdb *l, struct vg_engine_start *s, struct vg_status *reterr_status)
{
    struct replay rp = {0};
    struct vg_wal_replay replay = {.on_rec = on_rec, .arg = &rp};
    int r = vg_wal_open(&l->wal, l->dirfd, l->state.salt, l->state.applied_gen,
                        l->state.applied_rev, l->no_sync, &replay, reterr_status);
    if (r == 0)
        r = arrange(l, &rp, s);
    vg_table_unref(rp.tables[0]);
    vg_table_unref(rp.tables[1]);
    s->rev = l->wal.last;
    s->compacted = l->state.compact_rev;
    return r;
}

/* ---- opening ---- */

static int open_dir(struct vg_lmdb *l, const struct vg_storage_opts *o,
                    struct vg_status *reterr_status)
{
    enum vg_dir_content content = VG_DIR_FOREIGN;
    int r = vg_dir_open(o->dir, &l->dirfd, reterr_status);
    if (r == 0)
        r = look(l, o->dir, &content, reterr_status);
    if (r == 0)
        r = vg_dir_lock(l->dirfd, o->dir, &l->lockfd, reterr_status);
    if (r == 0)
        r = look(l, o->dir, &content, reterr_status); /* again: it may have been made meanwhile */
    if (r < 0)
        return r;
    if (content == VG_DIR_EMPTY) {
        r = create_store(l, o->first_above, vg_clock_wall_ms(o->clock));
        if (r < 0)
            return vg_fail(reterr_status, r, "cannot make a store in %s: %s", o->dir,
                           vg_err_text(r));
    }
    struct vg_data_facts facts;
    r = vg_lmdb_inspect(l->path, &facts, reterr_status);
    if (r < 0)
        return r;
    l->state = facts.meta;
    l->sums = facts.sums;
    l->has_sums = true;
    return 0;
}

static int open_store(struct vg_lmdb *l, const struct vg_storage_opts *o, struct vg_engine_start *s,
                      struct vg_status *reterr_status)
{
    int r = open_dir(l, o, reterr_status);
    if (r < 0)
        return r;
    /* A start that was cut short may have given names without making them durable. */
    r = vg_sync_dir(l->dirfd);
    if (r < 0)
        return vg_fail(reterr_status, r, "cannot sync %s: %s", o->dir, vg_err_text(r));
    /* The log first: what is wrong with it is told before LMDB makes a file of its own. */
    r = replay_log(l, s, reterr_status);
    if (r < 0)
        return r;
    bool is_clean = !s->take_frozen && vg_table_log_count(s->take_active) == 0;
    r = vg_lmdb_env_open(l);
    if (r < 0)
        return vg_fail(reterr_status, r, "cannot open %s: %s", l->path, vg_err_text(r));
    r = settle_ceiling(l, s);
    note_used(l);
    vg_lmdb_allocate_logs(l);
    /* Others must not read what is in there: narrow what an earlier umask or hand left wide. */
    if (r == 0 && (fchmod(l->dirfd, 0700) < 0 || fchmodat(l->dirfd, VG_FILE_DATA, 0600, 0) < 0 ||
                   fchmodat(l->dirfd, VG_FILE_DATA "-lock", 0600, 0) < 0))
        r = -errno;
    if (r == 0 && o->scrub_ms)
        r = vg_scrub_start(l, o->scrub_ms, is_clean);
    return r;
}

int vg_storage_open_lmdb(const struct vg_storage_opts *opts, struct vg_storage **ret_storage,
                         struct vg_status *reterr_status)
{
    struct vg_storage_opts o = vg_storage_opts_filled(opts);
    struct vg_engine_start s = {0};
    struct vg_lmdb *l = NULL;
    char path[4096];
    struct vg_status status = {0};
    if (!o.dir)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "the lmdb engine needs a directory");
    int n = snprintf(path, sizeof path, "%s/%s", o.dir, VG_FILE_DATA);
    int r = n < 0 || (size_t)n >= sizeof path ? -ENAMETOOLONG : 0;
    if (r == 0)
        r = vg_lmdb_new(path, o.map_size, &l);
    if (r == 0) {
        l->no_sync = o.unsafe_no_fsync;
        l->logger = o.log;
        l->reserve_bytes = o.reserve_bytes;
        r = open_store(l, &o, &s, &status);
    }
    if (r < 0) {
        vg_table_unref(s.take_active);
        vg_table_unref(s.take_frozen);
        vg_lmdb_free(l);
    } else {
        s.take_base = &l->base;
        r = vg_engine_open(&o, &s, ret_storage);
    }
    if (r < 0 && status.err != r)
        vg_fail(&status, r, "cannot open the store in %s: %s", o.dir, vg_err_text(r));
    if (r < 0)
        vg_fail(reterr_status, r, "%s", status.message);
    return r;
}
