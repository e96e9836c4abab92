/* lmdb_apply.c - writing a frozen generation into the base, in one synced transaction made by the
 * flusher. Nothing that lies in the base is read for it: what is damaged there does not keep new
 * changes out. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "files.h"
#include "lmdb_int.h"

/* 2 MiB of kept pages are what steady work needs again and again; more is given back. */
#define KEPT_BYTES_MAX ((size_t)2 << 20)

struct apply {
    struct vg_lmdb *l;
    MDB_txn *txn;
    struct store_meta state;
    struct vg_sums sums; /* as they will be after it */
};

static struct vg_slice slice_of(const MDB_val *v)
{
    return vg_slice(v->mv_data, v->mv_size);
}

/* ---- E4 ---- */

static int file_pages(struct vg_lmdb *l, int *ret_fd, uint64_t *ret_pages, unsigned *ret_size)
{
    MDB_envinfo info;
    MDB_stat stat;
    int rc = mdb_env_info(l->env, &info);
    if (!rc)
        rc = mdb_env_stat(l->env, &stat);
    if (!rc)
        rc = mdb_env_get_fd(l->env, ret_fd);
    if (rc)
        return rc;
    *ret_pages = info.me_last_pgno + 1;
    *ret_size = stat.ms_psize;
    return 0;
}

/* LMDB counts pages that it took in a transaction even when it gave them up before writing them, so
 * a healthy file may end before the pages that it counts. Make it long enough first, as a hole: at
 * most every record, and every page of log and index on the way to it, becomes a page. */
int vg_lmdb_lengthen_file(struct vg_lmdb *l, uint64_t more_pages, uint64_t more_bytes)
{
    int fd;
    uint64_t pages;
    unsigned page_size;
    int rc = file_pages(l, &fd, &pages, &page_size);
    if (rc)
        return rc;
    struct stat st;
    if (fstat(fd, &st) < 0)
        return errno;
    uint64_t need = (pages + 1024 + more_pages) * page_size + more_bytes;
    return (uint64_t)st.st_size < need && ftruncate(fd, (off_t)need) < 0 ? errno : 0;
}

static uint64_t bytes_of(const struct vg_base_apply *apply)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < apply->n; i++)
        bytes += vg_rec_encoded_size(apply->recs[i]);
    return bytes;
}

static void note_largest(struct vg_lmdb *l, const struct vg_base_apply *apply)
{
    l->largest[1] = l->largest[0];
    l->largest[0] = 0;
    for (size_t i = 0; i < apply->n; i++)
        l->largest[0] = VG_MAX(l->largest[0], vg_rec_encoded_size(apply->recs[i]));
}

/* And cut the rest of the hole off again once it is known how far the pages go. */
void vg_lmdb_trim_file(struct vg_lmdb *l)
{
    int fd;
    uint64_t pages;
    unsigned page_size;
    if (file_pages(l, &fd, &pages, &page_size) == 0 &&
        ftruncate(fd, (off_t)(pages * page_size)) < 0)
        return; /* a file with a hole at its end does no harm */
}

/* ---- records ---- */

static int put_log(struct apply *a, MDB_cursor *log, const struct vg_rec *rec)
{
    char buf[LOG_KEY_SIZE];
    vg_log_key_encode(rec->rev, rec->sub, buf);
    MDB_val key = {sizeof buf, buf};
    MDB_val val = {vg_rec_encoded_size(rec), NULL};
    int rc = mdb_cursor_put(log, &key, &val, MDB_APPEND | MDB_RESERVE);
    if (rc)
        return rc;
    vg_rec_encode(rec, val.mv_data);
    vg_sums_add(&a->sums, VG_SUM_LOG, slice_of(&key), vg_slice(NULL, 0));
    return 0;
}

static struct key_version version_of(const struct vg_rec *rec)
{
    return (struct key_version){
        .rev = rec->rev,
        .sub = rec->sub,
        .is_delete = vg_rec_is_delete(rec),
        .create_rev = rec->create_rev,
        .version = rec->version,
    };
}

static int put_version(struct apply *a, MDB_cursor *keys, const struct vg_rec *rec)
{
    char buf[KEY_VERSION_SIZE];
    struct key_version kv = version_of(rec);
    vg_key_version_encode(&kv, buf);
    MDB_val key = {rec->key_len, (void *)rec->bytes}, val = {sizeof buf, buf};
    int rc = mdb_cursor_put(keys, &key, &val, 0);
    if (!rc)
        vg_sums_add(&a->sums, VG_SUM_KEYS, slice_of(&key), slice_of(&val));
    return rc;
}

static int put_deadline(struct apply *a, const struct vg_rec *rec)
{
    if (!rec->expires_ms)
        return 0;
    char buf[TTL_KEY_SIZE];
    vg_ttl_key_encode(rec->expires_ms, rec->rev, rec->sub, buf);
    MDB_val key = {sizeof buf, buf}, val = {rec->key_len, (void *)rec->bytes};
    int rc = mdb_put(a->txn, a->l->ttl, &key, &val, 0);
    if (!rc)
        vg_sums_add(&a->sums, VG_SUM_TTL, slice_of(&key), slice_of(&val));
    return rc;
}

/* Through one cursor, which remembers where it was. */
static int put_all(struct apply *a, MDB_dbi dbi, struct vg_rec *const *recs, size_t n,
                   int (*put)(struct apply *a, MDB_cursor *cursor, const struct vg_rec *rec))
{
    MDB_cursor *cursor;
    int rc = mdb_cursor_open(a->txn, dbi, &cursor);
    if (rc)
        return rc;
    for (size_t i = 0; i < n && !rc; i++)
        rc = put(a, cursor, recs[i]);
    mdb_cursor_close(cursor);
    return rc;
}

static int compare_keys(const void *a, const void *b)
{
    const struct vg_rec *x = *(struct vg_rec *const *)a, *y = *(struct vg_rec *const *)b;
    int c = vg_slice_cmp(vg_rec_key(x), vg_rec_key(y));
    return c ? c : (x->rev > y->rev) - (x->rev < y->rev);
}

/* In the order of keys: neighbours then share the search and the page. In the order of the log each
 * would be a descent of its own, to a page that is not in the processor's cache. */
static int put_versions(struct apply *a, const struct vg_base_apply *apply)
{
    struct vg_rec **sorted = vg_reallocarray(NULL, apply->n, sizeof *sorted);
    if (!sorted)
        return ENOMEM;
    memcpy(sorted, apply->recs, apply->n * sizeof *sorted);
    qsort(sorted, apply->n, sizeof *sorted, compare_keys);
    int rc = put_all(a, a->l->keys, sorted, apply->n, put_version);
    vg_free(sorted);
    return rc;
}

/* The frozen generation is the one before the log's, which cannot move on meanwhile. After a reopen
 * it may be there already. */
static int put_recs(struct apply *a, const struct vg_base_apply *apply)
{
    uint64_t gen = a->l->wal.gen - 1;
    if (gen <= a->state.applied_gen)
        return 0;
    int rc = put_all(a, a->l->log, apply->recs, apply->n, put_log);
    if (!rc && apply->n)
        rc = put_versions(a, apply);
    for (size_t i = 0; i < apply->n && !rc; i++)
        rc = put_deadline(a, apply->recs[i]);
    if (rc)
        return rc;
    a->state.applied_rev = apply->applied;
    a->state.applied_gen = gen;
    return 0;
}

/* ---- the transaction ---- */

/* LMDB keeps the memory of every page that a transaction wrote, for the next one: after a large
 * checkpoint as much as was checkpointed. Only closing the environment gives it back. Who reads
 * goes first: then it waits for the next time. */
static void give_back_pages(struct vg_lmdb *l, const struct vg_base_apply *apply)
{
    l->kept_bytes = VG_MAX(l->kept_bytes, (size_t)bytes_of(apply));
    if (l->kept_bytes < KEPT_BYTES_MAX || pthread_rwlock_trywrlock(&l->env_lock) != 0)
        return;
    vg_lmdb_env_close(l);
    int r = vg_lmdb_env_open(l);
    pthread_rwlock_unlock(&l->env_lock);
    if (r < 0)
        return; /* the next apply finds out, and the flusher goes on trying */
    l->kept_bytes = 0;
    malloc_trim(0);
}

int vg_lmdb_apply(struct vg_base *b, const struct vg_base_apply *apply)
{
    struct vg_lmdb *l = VG_CONTAINER_OF(b, struct vg_lmdb, base);
    struct apply a = {.l = l, .state = l->state, .sums = l->sums};
    if (!l->env)
        return -EIO;
    note_largest(l, apply);
    int rc = vg_lmdb_lengthen_file(l, 17 * (uint64_t)apply->n, bytes_of(apply));
    if (!rc)
        rc = mdb_txn_begin(l->env, NULL, 0, &a.txn);
    if (rc)
        return vg_lmdb_err(rc);
    rc = put_recs(&a, apply);
    if (!rc)
        rc = vg_lmdb_put_state(a.txn, l, &a.state, &a.sums);
    if (rc) {
        mdb_txn_abort(a.txn);
        return vg_lmdb_err(rc);
    }
    int r = vg_lmdb_commit(l, a.txn);
    if (r == 0) {
        l->state = a.state;
        l->sums = a.sums;
        vg_lmdb_trim_file(l);
        give_back_pages(l, apply);
    }
    return r;
}
