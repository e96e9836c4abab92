/* lmdb_view.c - views of the base, and reading one record. */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/alloc.h"
#include "lmdb_int.h"
#include "lmdb_scrub.h"

/* ---- life ---- */

int vg_lmdb_view_open(struct vg_base *b, struct vg_base_view **ret_view)
{
    struct vg_base_view *v = vg_new(struct vg_base_view);
    if (!v)
        return -ENOMEM;
    v->l = VG_CONTAINER_OF(b, struct vg_lmdb, base);
    vg_decoder_init(&v->decoder);
    vg_lmdb_lock_env(v->l);
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
    vg_lmdb_lock_env(v->l);
    drop_txn(v);
    vg_list_remove(&v->link);
    pthread_rwlock_unlock(&v->l->env_lock);
    vg_decoder_done(&v->decoder);
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

int vg_lmdb_fail_entry(struct vg_base_view *v, struct vg_slice key)
{
    snprintf(v->damage, sizeof v->damage,
             "the stored data is damaged: the index entry of key %.*s does not read back; restore "
             "from a backup",
             VG_SLICE_ARG(key));
    return VIGIL_E_STORE_DAMAGED;
}

bool vg_lmdb_is_record(const struct vg_rec *rec, struct vg_slice key, const struct key_version *kv)
{
    return rec->rev == kv->rev && rec->sub == kv->sub && vg_slice_eq(vg_rec_key(rec), key) &&
           rec->create_rev == kv->create_rev && rec->version == kv->version &&
           !vg_rec_is_delete(rec);
}

int vg_lmdb_find_rec(struct vg_base_view *v, const struct key_version *kv,
                     struct vg_slice *ret_encoded)
{
    char buf[LOG_KEY_SIZE];
    vg_log_key_encode(kv->rev, kv->sub, buf);
    MDB_val key = {sizeof buf, buf}, val;
    int rc = mdb_cursor_get(v->log, &key, &val, MDB_SET_KEY);
    if (rc && rc != MDB_NOTFOUND)
        return vg_lmdb_err(rc);
    *ret_encoded = rc ? vg_slice(NULL, 0) : vg_slice(val.mv_data, val.mv_size);
    return 0;
}

int vg_lmdb_read_rec(struct vg_base_view *v, struct vg_slice of, const struct key_version *kv,
                     struct vg_rec **ret_rec)
{
    struct vg_slice encoded = {NULL, 0};
    size_t used;
    int r = vg_lmdb_find_rec(v, kv, &encoded);
    if (r < 0)
        return r;
    r = vg_rec_decode(encoded, &used, ret_rec);
    if (r < 0 && r != VIGIL_E_STORE_DAMAGED)
        return r;
    if (r == 0 && vg_lmdb_is_record(*ret_rec, of, kv) && used == encoded.n)
        return 0;
    if (r == 0)
        *ret_rec = vg_rec_unref(*ret_rec);
    return vg_lmdb_make_unreadable(v->l, of, kv, ret_rec);
}

int vg_lmdb_make_key_rec(const MDB_val *key, const struct key_version *kv, struct vg_rec **ret_rec)
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

int vg_lmdb_version_at(struct vg_base_view *v, MDB_val *key, vg_rev at, struct key_version *ret)
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
    return r < 0 ? vg_lmdb_fail_entry(v, vg_slice(key->mv_data, key->mv_size)) : 1;
}

int vg_lmdb_get(struct vg_base_view *v, struct vg_slice key, vg_rev at, struct vg_rec **ret_rec)
{
    struct key_version kv = {0};
    if (key.n == 0 || key.n > VG_STORAGE_KEY_MAX)
        return 0;
    MDB_val k = {key.n, (void *)key.p};
    int r = vg_lmdb_version_at(v, &k, at, &kv);
    if (r <= 0)
        return r;
    r = kv.is_delete ? vg_lmdb_make_key_rec(&k, &kv, ret_rec)
                     : vg_lmdb_read_rec(v, key, &kv, ret_rec);
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
        return vg_lmdb_fail_entry(v, key);
    if (kv.is_delete)
        return 0;
    *ret_version = (struct vg_version){kv.rev, kv.sub, kv.create_rev, kv.version};
    return 1;
}
