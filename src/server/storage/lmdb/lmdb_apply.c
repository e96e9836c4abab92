/* lmdb_apply.c - writing the base: one synced transaction per call, made by the flusher.
 * Compaction follows the log, not the keys: a change at or before the compacted revision frees the
 * version that it replaced, and itself when it is a delete. So it costs what happened, not what is
 * stored, and can stop after any change. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "files.h"
#include "lmdb_int.h"

/* Changes and deadlines that one transaction cleans up: bounds how long it holds the disk. */
#define COMPACT_SLICE 5000
#define TTL_SLICE 2000
/* 2 MiB of kept pages are what steady work needs again and again; more is given back. */
#define KEPT_BYTES_MAX ((size_t)2 << 20)

struct apply {
    struct vg_lmdb *l;
    MDB_txn *txn;
    struct store_meta state;
};

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
static int lengthen_file(struct vg_lmdb *l, const struct vg_base_apply *apply)
{
    int fd;
    uint64_t pages;
    unsigned page_size;
    int rc = file_pages(l, &fd, &pages, &page_size);
    if (rc)
        return rc;
    pages += 1024 + 8 * (uint64_t)COMPACT_SLICE;
    for (size_t i = 0; i < apply->n; i++)
        pages += 16 + vg_rec_encoded_size(apply->recs[i]) / page_size;
    struct stat st;
    if (fstat(fd, &st) < 0)
        return errno;
    uint64_t need = pages * page_size;
    return (uint64_t)st.st_size < need && ftruncate(fd, (off_t)need) < 0 ? errno : 0;
}

/* And cut the rest of the hole off again once it is known how far the pages go. */
static void trim_file(struct vg_lmdb *l)
{
    int fd;
    uint64_t pages;
    unsigned page_size;
    if (file_pages(l, &fd, &pages, &page_size) == 0 &&
        ftruncate(fd, (off_t)(pages * page_size)) < 0)
        return; /* a file with a hole at its end does no harm */
}

/* ---- records ---- */

static int put_log(MDB_cursor *log, const struct vg_rec *rec)
{
    char buf[LOG_KEY_SIZE];
    vg_log_key_encode(rec->rev, rec->sub, buf);
    MDB_val key = {sizeof buf, buf};
    MDB_val val = {vg_rec_encoded_size(rec), NULL};
    int rc = mdb_cursor_put(log, &key, &val, MDB_APPEND | MDB_RESERVE);
    if (!rc)
        vg_rec_encode(rec, val.mv_data);
    return rc;
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

static int put_version(MDB_cursor *keys, const struct vg_rec *rec)
{
    char buf[KEY_VERSION_SIZE];
    struct key_version kv = version_of(rec);
    vg_key_version_encode(&kv, buf);
    MDB_val key = {rec->key_len, (void *)rec->bytes}, val = {sizeof buf, buf};
    return mdb_cursor_put(keys, &key, &val, 0);
}

static int put_deadline(struct apply *a, const struct vg_rec *rec)
{
    if (!rec->expires_ms)
        return 0;
    char buf[TTL_KEY_SIZE];
    vg_ttl_key_encode(rec->expires_ms, rec->rev, rec->sub, buf);
    MDB_val key = {sizeof buf, buf}, val = {rec->key_len, (void *)rec->bytes};
    return mdb_put(a->txn, a->l->ttl, &key, &val, 0);
}

/* Through one cursor, which remembers where it was. */
static int put_all(struct apply *a, MDB_dbi dbi, struct vg_rec *const *recs, size_t n,
                   int (*put)(MDB_cursor *cursor, const struct vg_rec *rec))
{
    MDB_cursor *cursor;
    int rc = mdb_cursor_open(a->txn, dbi, &cursor);
    if (rc)
        return rc;
    for (size_t i = 0; i < n && !rc; i++)
        rc = put(cursor, recs[i]);
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
    if (!apply->applied)
        return 0; /* nothing is frozen, and the log may well move on */
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

/* ---- compaction ---- */

/* Remove one version of a key: its record from the log, its entry from keys. A record that is gone
 * already was compacted before. */
static int forget(struct apply *a, const struct vg_rec *of, const struct key_version *kv)
{
    char log_buf[LOG_KEY_SIZE], val_buf[KEY_VERSION_SIZE];
    vg_log_key_encode(kv->rev, kv->sub, log_buf);
    MDB_val log_key = {sizeof log_buf, log_buf};
    int rc = mdb_del(a->txn, a->l->log, &log_key, NULL);
    if (rc && rc != MDB_NOTFOUND)
        return rc;
    vg_key_version_encode(kv, val_buf);
    MDB_val key = {of->key_len, (void *)of->bytes}, val = {sizeof val_buf, val_buf};
    rc = mdb_del(a->txn, a->l->keys, &key, &val);
    return rc == MDB_NOTFOUND ? 0 : rc;
}

/* What `rec` replaced, as keys has it. 1, 0 when there is nothing, or an error as its negative. */
static int replaced_version(struct apply *a, const struct vg_rec *rec, struct key_version *ret)
{
    if (!rec->prev_rev)
        return 0;
    char buf[LOG_KEY_SIZE];
    vg_log_key_encode(rec->prev_rev, rec->prev_sub, buf);
    MDB_val key = {sizeof buf, buf}, val;
    int rc = mdb_get(a->txn, a->l->log, &key, &val);
    if (rc == MDB_NOTFOUND)
        return 0;
    if (rc)
        return vg_lmdb_err(rc);
    struct vg_rec *prev;
    size_t used;
    int r = vg_rec_decode(vg_slice(val.mv_data, val.mv_size), &used, &prev);
    if (r < 0)
        return r;
    *ret = version_of(prev);
    vg_rec_unref(prev);
    return 1;
}

static int compact_change(struct apply *a, const struct vg_rec *rec)
{
    struct key_version kv = {0};
    int r = replaced_version(a, rec, &kv);
    if (r > 0)
        r = vg_lmdb_err(forget(a, rec, &kv));
    if (r == 0 && vg_rec_is_delete(rec)) {
        kv = version_of(rec);
        r = vg_lmdb_err(forget(a, rec, &kv));
    }
    return r;
}

/* The first change with a revision of at least `from`. 1, 0 when there is none, negative. */
static int first_change(MDB_cursor *cursor, vg_rev from, uint32_t sub, struct vg_rec **ret_rec)
{
    char buf[LOG_KEY_SIZE];
    vg_log_key_encode(from, sub, buf);
    MDB_val key = {sizeof buf, buf}, val;
    size_t used;
    int rc = mdb_cursor_get(cursor, &key, &val, MDB_SET_RANGE);
    if (rc == MDB_NOTFOUND)
        return 0;
    if (rc)
        return vg_lmdb_err(rc);
    int r = vg_rec_decode(vg_slice(val.mv_data, val.mv_size), &used, ret_rec);
    return r < 0 ? r : 1;
}

/* Changes above compact_done up to what is compacted and applied, about COMPACT_SLICE of them; a
 * revision is done whole, because compact_done counts revisions. */
static int compact(struct apply *a, bool *ret_more)
{
    vg_rev upto = VG_MIN(a->state.compact_rev, a->state.applied_rev);
    vg_rev at = a->state.compact_done + 1;
    uint32_t sub = 0;
    MDB_cursor *cursor;
    *ret_more = false;
    if (at > upto)
        return 0;
    int rc = mdb_cursor_open(a->txn, a->l->log, &cursor);
    if (rc)
        return vg_lmdb_err(rc);
    int r = 0;
    struct vg_rec *rec = NULL;
    /* The cursor is sought anew for each change: deleting moves it. */
    for (size_t n = 0; (r = first_change(cursor, at, sub, &rec)) > 0; n++) {
        assert(rec);
        bool is_end = rec->rev > upto;
        *ret_more = !is_end && n >= COMPACT_SLICE && rec->rev > at;
        if (!is_end && !*ret_more) {
            r = compact_change(a, rec);
            at = rec->rev;
            sub = rec->sub + 1;
        }
        vg_rec_unref(rec);
        if (r < 0 || is_end || *ret_more)
            break;
    }
    mdb_cursor_close(cursor);
    if (r >= 0)
        a->state.compact_done = *ret_more ? at : upto;
    return r < 0 ? r : 0;
}

/* ---- deadlines ---- */

/* Does the deadline still belong to the newest version of its key? */
static int is_stale(struct apply *a, const MDB_val *ttl_key, MDB_val *key, bool *ret_stale)
{
    int64_t expires;
    vg_rev rev;
    uint32_t sub;
    struct key_version kv;
    MDB_val val;
    vg_ttl_key_decode(ttl_key->mv_data, &expires, &rev, &sub);
    int rc = mdb_get(a->txn, a->l->keys, key, &val); /* the first duplicate: the newest */
    if (rc == MDB_NOTFOUND) {
        *ret_stale = true;
        return 0;
    }
    if (rc)
        return vg_lmdb_err(rc);
    int r = vg_key_version_decode(&val, &kv);
    *ret_stale = r == 0 && (kv.rev != rev || kv.is_delete);
    return r;
}

static int drop_stale_deadlines(struct apply *a, int64_t now_ms)
{
    MDB_cursor *cursor;
    MDB_val key, val;
    int rc = mdb_cursor_open(a->txn, a->l->ttl, &cursor);
    if (rc)
        return vg_lmdb_err(rc);
    int r = 0;
    rc = mdb_cursor_get(cursor, &key, &val, MDB_FIRST);
    for (size_t n = 0; !rc && r == 0 && n < TTL_SLICE; n++) {
        int64_t expires;
        vg_rev rev;
        uint32_t sub;
        vg_ttl_key_decode(key.mv_data, &expires, &rev, &sub);
        if (expires > now_ms)
            break;
        bool stale = false;
        r = is_stale(a, &key, &val, &stale);
        if (r == 0 && stale)
            r = vg_lmdb_err(mdb_cursor_del(cursor, 0));
        if (r == 0)
            rc = mdb_cursor_get(cursor, &key, &val, stale ? MDB_GET_CURRENT : MDB_NEXT);
    }
    mdb_cursor_close(cursor);
    /* After a delete at the end there is no current entry: EINVAL is LMDB's word for that. */
    if (r == 0 && rc && rc != MDB_NOTFOUND && rc != EINVAL)
        r = vg_lmdb_err(rc);
    return r;
}

/* ---- the transaction ---- */

/* LMDB keeps the memory of every page that a transaction wrote, for the next one: after a large
 * checkpoint as much as was checkpointed. Only closing the environment gives it back. Who reads
 * goes first: then it waits for the next time. */
static void give_back_pages(struct vg_lmdb *l, const struct vg_base_apply *apply)
{
    size_t bytes = 0;
    for (size_t i = 0; i < apply->n; i++)
        bytes += vg_rec_encoded_size(apply->recs[i]);
    l->kept_bytes = VG_MAX(l->kept_bytes, bytes);
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

static int run(struct apply *a, struct vg_base_apply *apply)
{
    a->state.compact_rev = VG_MAX(a->state.compact_rev, apply->compact_rev);
    int r = vg_lmdb_err(put_recs(a, apply));
    if (r == 0)
        r = compact(a, &apply->more);
    if (r == 0)
        r = drop_stale_deadlines(a, apply->now_ms);
    if (r == 0)
        r = vg_lmdb_err(vg_lmdb_put_meta(a->txn, a->l->meta, &a->state));
    return r;
}

int vg_lmdb_apply(struct vg_base *b, struct vg_base_apply *apply)
{
    struct vg_lmdb *l = VG_CONTAINER_OF(b, struct vg_lmdb, base);
    struct apply a = {.l = l, .state = l->state};
    if (!l->env)
        return -EIO;
    int rc = lengthen_file(l, apply);
    if (!rc)
        rc = mdb_txn_begin(l->env, NULL, 0, &a.txn);
    if (rc)
        return vg_lmdb_err(rc);
    int r = run(&a, apply);
    if (r < 0) {
        mdb_txn_abort(a.txn);
        return r;
    }
    rc = mdb_txn_commit(a.txn);
    if (rc == 0) {
        l->state = a.state;
        trim_file(l);
        give_back_pages(l, apply);
    }
    return vg_lmdb_err(rc);
}
