/* lmdb_view.c - reading the base. A view is a read transaction with its cursors, made once and
 * renewed for each use. */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/alloc.h"
#include "lmdb_int.h"

/* So many records in one piece are the beginning of more. */
#define TOUCH_AFTER 64

struct vg_base_view {
    struct vg_lmdb *l;
    struct vg_list link;
    MDB_txn *txn; /* NULL: to be made */
    MDB_cursor *keys, *log, *ttl;
    char damage[VG_STATUS_MESSAGE_MAX]; /* what was found, for a person */
};

/* ---- life ---- */

int vg_lmdb_view_open(struct vg_base *b, struct vg_base_view **ret_view)
{
    struct vg_base_view *v = vg_new(struct vg_base_view);
    if (!v)
        return -ENOMEM;
    v->l = VG_CONTAINER_OF(b, struct vg_lmdb, base);
    pthread_rwlock_wrlock(&v->l->env_lock);
    vg_list_push_back(&v->l->views, &v->link);
    pthread_rwlock_unlock(&v->l->env_lock);
    *ret_view = v;
    return 0;
}

/* Cursors of a read transaction are ours to close, before it or after. */
static void drop_txn(struct vg_base_view *v)
{
    if (v->keys)
        mdb_cursor_close(v->keys);
    if (v->log)
        mdb_cursor_close(v->log);
    if (v->ttl)
        mdb_cursor_close(v->ttl);
    if (v->txn)
        mdb_txn_abort(v->txn);
    v->keys = v->log = v->ttl = NULL;
    v->txn = NULL;
}

void vg_lmdb_drop_views(struct vg_lmdb *l)
{
    VG_LIST_FOREACH (n, &l->views)
        drop_txn(VG_CONTAINER_OF(n, struct vg_base_view, link));
}

void vg_lmdb_view_close(struct vg_base_view *v)
{
    if (!v)
        return;
    pthread_rwlock_wrlock(&v->l->env_lock);
    drop_txn(v);
    vg_list_remove(&v->link);
    pthread_rwlock_unlock(&v->l->env_lock);
    vg_free(v);
}

static int make_txn(struct vg_base_view *v)
{
    int rc = mdb_txn_begin(v->l->env, NULL, MDB_RDONLY, &v->txn);
    if (!rc)
        rc = mdb_cursor_open(v->txn, v->l->keys, &v->keys);
    if (!rc)
        rc = mdb_cursor_open(v->txn, v->l->log, &v->log);
    if (!rc)
        rc = mdb_cursor_open(v->txn, v->l->ttl, &v->ttl);
    if (rc)
        drop_txn(v);
    return rc;
}

static int renew_txn(struct vg_base_view *v)
{
    int rc = mdb_txn_renew(v->txn);
    if (!rc)
        rc = mdb_cursor_renew(v->txn, v->keys);
    if (!rc)
        rc = mdb_cursor_renew(v->txn, v->log);
    if (!rc)
        rc = mdb_cursor_renew(v->txn, v->ttl);
    if (rc)
        drop_txn(v);
    return rc;
}

static int begin_once(struct vg_base_view *v)
{
    int rc;
    pthread_rwlock_rdlock(&v->l->env_lock);
    if (!v->l->env)
        rc = EIO; /* reopening failed: the flusher keeps trying */
    else
        rc = v->txn ? renew_txn(v) : make_txn(v);
    if (rc)
        pthread_rwlock_unlock(&v->l->env_lock);
    return rc;
}

/* After a failed checkpoint LMDB refuses everybody until the flusher has opened the environment
 * anew, which it does at once: wait for it, at most a second. */
int vg_lmdb_view_begin(struct vg_base_view *v)
{
    static const struct timespec nap = {.tv_nsec = 1000000};
    snprintf(v->damage, sizeof v->damage, "%s", vg_err_text(VIGIL_E_STORE_DAMAGED));
    int rc = begin_once(v);
    for (int i = 0; rc == MDB_PANIC && i < 1000; i++) {
        nanosleep(&nap, NULL);
        rc = begin_once(v);
    }
    return vg_lmdb_err(rc == MDB_PANIC ? EIO : rc);
}

void vg_lmdb_view_end(struct vg_base_view *v)
{
    mdb_txn_reset(v->txn);
    pthread_rwlock_unlock(&v->l->env_lock);
}

/* ---- one record ---- */

const char *vg_lmdb_damage(struct vg_base_view *v)
{
    return v->damage;
}

static int fail_record(struct vg_base_view *v, struct vg_slice key, vg_rev rev)
{
    snprintf(v->damage, sizeof v->damage,
             "the stored data is damaged: the record of key %.*s at revision %llu does not read "
             "back; restore from a backup",
             VG_SLICE_ARG(key), (unsigned long long)rev);
    return VIGIL_E_STORE_DAMAGED;
}

static int fail_entry(struct vg_base_view *v, struct vg_slice key)
{
    snprintf(v->damage, sizeof v->damage,
             "the stored data is damaged: the index entry of key %.*s does not read back; restore "
             "from a backup",
             VG_SLICE_ARG(key));
    return VIGIL_E_STORE_DAMAGED;
}

/* The record must be the one that was looked for, whole: index entries have no checksum. */
static bool is_record(const struct vg_rec *rec, struct vg_slice key, const struct key_version *kv)
{
    return rec->rev == kv->rev && rec->sub == kv->sub && vg_slice_eq(vg_rec_key(rec), key) &&
           rec->create_rev == kv->create_rev && rec->version == kv->version &&
           !vg_rec_is_delete(rec);
}

static int read_rec(struct vg_base_view *v, struct vg_slice of, const struct key_version *kv,
                    struct vg_rec **ret_rec)
{
    char buf[LOG_KEY_SIZE];
    vg_log_key_encode(kv->rev, kv->sub, buf);
    MDB_val key = {sizeof buf, buf}, val;
    int rc = mdb_cursor_get(v->log, &key, &val, MDB_SET_KEY);
    if (rc == MDB_NOTFOUND)
        return fail_record(v, of, kv->rev); /* E3 */
    if (rc)
        return vg_lmdb_err(rc);
    size_t used;
    int r = vg_rec_decode(vg_slice(val.mv_data, val.mv_size), &used, ret_rec);
    if (r == VIGIL_E_STORE_DAMAGED)
        return fail_record(v, of, kv->rev);
    if (r < 0)
        return r;
    if (is_record(*ret_rec, of, kv) && used == val.mv_size)
        return 0;
    *ret_rec = vg_rec_unref(*ret_rec);
    return fail_record(v, of, kv->rev);
}

/* A record that says no more than what `keys` knows. */
static int make_key_rec(const MDB_val *key, const struct key_version *kv, struct vg_rec **ret_rec)
{
    struct vg_rec *rec;
    int r =
        vg_rec_new(kv->is_delete ? VG_REC_DELETE : VG_REC_PUT, vg_slice(key->mv_data, key->mv_size),
                   vg_slice(NULL, 0), vg_slice(NULL, 0), &rec);
    if (r < 0)
        return r;
    rec->rev = kv->rev;
    rec->sub = kv->sub;
    rec->create_rev = kv->create_rev;
    rec->version = kv->version;
    *ret_rec = rec;
    return 0;
}

/* The newest version at or before `at` of the key under the cursor. 1 found, 0 not. */
static int version_at(struct vg_base_view *v, MDB_val *key, vg_rev at, struct key_version *ret)
{
    struct key_version bound = {.rev = at};
    char buf[KEY_VERSION_SIZE];
    vg_key_version_encode(&bound, buf);
    MDB_val val = {sizeof buf, buf};
    int rc = mdb_cursor_get(v->keys, key, &val, MDB_GET_BOTH_RANGE);
    if (rc == MDB_NOTFOUND)
        return 0;
    if (rc)
        return vg_lmdb_err(rc);
    int r = vg_key_version_decode(&val, ret);
    return r < 0 ? fail_entry(v, vg_slice(key->mv_data, key->mv_size)) : 1;
}

int vg_lmdb_get(struct vg_base_view *v, struct vg_slice key, vg_rev at, struct vg_rec **ret_rec)
{
    struct key_version kv = {0};
    if (key.n == 0 || key.n > VG_STORAGE_KEY_MAX)
        return 0;
    MDB_val k = {key.n, (void *)key.p};
    int r = version_at(v, &k, at, &kv);
    if (r <= 0)
        return r;
    r = kv.is_delete ? make_key_rec(&k, &kv, ret_rec) : read_rec(v, key, &kv, ret_rec);
    return r < 0 ? r : 1;
}

/* The first duplicate is the newest version. */
int vg_lmdb_peek(struct vg_base_view *v, struct vg_slice key, struct vg_version *ret_version)
{
    struct key_version kv;
    MDB_val k = {key.n, (void *)key.p}, val;
    int rc = mdb_cursor_get(v->keys, &k, &val, MDB_SET_KEY);
    if (rc == MDB_NOTFOUND)
        return 0;
    if (rc)
        return vg_lmdb_err(rc);
    int r = vg_key_version_decode(&val, &kv);
    if (r < 0)
        return fail_entry(v, key);
    if (kv.is_delete)
        return 0;
    *ret_version = (struct vg_version){kv.rev, kv.sub, kv.create_rev, kv.version};
    return 1;
}

/* ---- ranges ---- */

/* Move the keys cursor to the first key of the range above `after`. 1 there, 0 none. */
static int seek_first(struct vg_base_view *v, const struct vg_keys *keys, struct vg_slice after,
                      MDB_val *ret_key, MDB_val *ret_val)
{
    struct vg_slice from = after.p ? after : keys->start;
    int rc;
    if (from.n == 0) { /* LMDB has no empty keys */
        rc = mdb_cursor_get(v->keys, ret_key, ret_val, MDB_FIRST);
    } else {
        from.n = VG_MIN(from.n, (size_t)mdb_env_get_maxkeysize(v->l->env));
        *ret_key = (MDB_val){from.n, (void *)from.p};
        rc = mdb_cursor_get(v->keys, ret_key, ret_val, MDB_SET_RANGE);
        if (!rc && after.p && ret_key->mv_size == after.n &&
            memcmp(ret_key->mv_data, after.p, after.n) == 0)
            rc = mdb_cursor_get(v->keys, ret_key, ret_val, MDB_NEXT_NODUP);
    }
    return rc == MDB_NOTFOUND ? 0 : rc ? vg_lmdb_err(rc) : 1;
}

/* A start longer than any key was cut to look for it: skip what lies below it after all. */
static bool is_below_start(const struct vg_keys *keys, struct vg_slice key)
{
    return vg_slice_cmp(key, keys->start) < 0;
}

/* The record of the key under the cursor; its newest version is in `val`. 1, 0 none at `at`. */
static int collect_one(struct vg_base_view *v, MDB_val *key, const MDB_val *val, vg_rev at,
                       bool keys_only, struct vg_rec **ret_rec)
{
    struct key_version kv = {0};
    struct vg_slice of = vg_slice(key->mv_data, key->mv_size);
    int r = vg_key_version_decode(val, &kv);
    if (r < 0)
        return fail_entry(v, of);
    if (kv.rev > at) {
        r = version_at(v, key, at, &kv);
        if (r <= 0)
            return r;
    }
    r = keys_only || kv.is_delete ? make_key_rec(key, &kv, ret_rec) : read_rec(v, of, &kv, ret_rec);
    return r < 0 ? r : 1;
}

static void drop_recs(struct vg_rec **recs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        vg_rec_unref(recs[i]);
}

int vg_lmdb_collect(struct vg_base_view *v, const struct vg_keys *keys, struct vg_slice after,
                    vg_rev at, bool keys_only, struct vg_rec **ret_recs, size_t max, size_t *ret_n)
{
    MDB_val key, val;
    size_t n = 0;
    int r = seek_first(v, keys, after, &key, &val);
    while (r > 0 && n < max) {
        struct vg_slice k = vg_slice(key.mv_data, key.mv_size);
        if (!vg_keys_contain(keys, k) && !is_below_start(keys, k))
            break;
        r = is_below_start(keys, k) ? 0 : collect_one(v, &key, &val, at, keys_only, &ret_recs[n]);
        if (r < 0)
            break;
        if (r > 0 && n >= TOUCH_AFTER)
            vg_alloc_touch_ahead(ret_recs[n]);
        n += (size_t)r;
        int rc = mdb_cursor_get(v->keys, &key, &val, MDB_NEXT_NODUP);
        r = rc == MDB_NOTFOUND ? 0 : rc ? vg_lmdb_err(rc) : 1;
    }
    if (r < 0) {
        drop_recs(ret_recs, n);
        return r;
    }
    *ret_n = n;
    return 0;
}

/* The end of a walk: by an error r of ours, or by what the cursor said. All or nothing. */
static int finish_walk(int r, int rc, struct vg_rec **recs, size_t n, size_t *ret_n)
{
    if (r == 0 && rc && rc != MDB_NOTFOUND)
        r = vg_lmdb_err(rc);
    if (r < 0) {
        drop_recs(recs, n);
        return r;
    }
    *ret_n = n;
    return 0;
}

/* ---- the log ---- */

int vg_lmdb_log_read(struct vg_base_view *v, vg_rev from, vg_rev to, struct vg_rec **ret_recs,
                     size_t max, size_t *ret_n)
{
    char buf[LOG_KEY_SIZE];
    vg_log_key_encode(from, 0, buf);
    MDB_val key = {sizeof buf, buf}, val;
    size_t n = 0;
    int rc = mdb_cursor_get(v->log, &key, &val, MDB_SET_RANGE);
    int r = 0;
    while (!rc && n < max) {
        size_t used;
        r = vg_rec_decode(vg_slice(val.mv_data, val.mv_size), &used, &ret_recs[n]);
        if (r < 0)
            break;
        if (ret_recs[n]->rev > to) {
            vg_rec_unref(ret_recs[n]);
            break;
        }
        if (n >= TOUCH_AFTER)
            vg_alloc_touch_ahead(ret_recs[n]);
        n++;
        rc = mdb_cursor_get(v->log, &key, &val, MDB_NEXT);
    }
    return finish_walk(r, rc, ret_recs, n, ret_n);
}

/* ---- deadlines ---- */

static int make_deadline(const MDB_val *key, const MDB_val *val, struct vg_rec **ret_rec)
{
    struct vg_rec *rec;
    if (key->mv_size != TTL_KEY_SIZE)
        return VIGIL_E_STORE_DAMAGED;
    int r = vg_rec_new(VG_REC_PUT, vg_slice(val->mv_data, val->mv_size), vg_slice(NULL, 0),
                       vg_slice(NULL, 0), &rec);
    if (r < 0)
        return r;
    vg_ttl_key_decode(key->mv_data, &rec->expires_ms, &rec->rev, &rec->sub);
    *ret_rec = rec;
    return 0;
}

int vg_lmdb_deadlines(struct vg_base_view *v, const struct vg_deadline *after,
                      struct vg_rec **ret_recs, size_t max, size_t *ret_n)
{
    char buf[TTL_KEY_SIZE];
    vg_ttl_key_encode(after->ms, after->rev, after->sub, buf);
    MDB_val key = {sizeof buf, buf}, val;
    size_t n = 0;
    int r = 0;
    int rc = mdb_cursor_get(v->ttl, &key, &val, MDB_SET_RANGE);
    if (!rc && key.mv_size == sizeof buf && memcmp(key.mv_data, buf, sizeof buf) == 0)
        rc = mdb_cursor_get(v->ttl, &key, &val, MDB_NEXT);
    while (!rc && n < max) {
        r = make_deadline(&key, &val, &ret_recs[n]);
        if (r < 0)
            break;
        n++;
        rc = mdb_cursor_get(v->ttl, &key, &val, MDB_NEXT);
    }
    return finish_walk(r, rc, ret_recs, n, ret_n);
}
