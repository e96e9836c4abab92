/* lmdb_damage.c - records of the log that do not read back.
 * One of them costs its object, never the range or the piece of history that it is part of: it is
 * handed out as a record of which only what the index knows is filled (is_unreadable). A range has
 * its key from the index. The log has its revision alone, and the key that the damaged bytes claim
 * may be wrong: it counts when the index has that revision under it; otherwise the whole index is
 * searched for the revision. That is slow, so what was found is remembered. */
#include <stdio.h>

#include "base/log.h"
#include "lmdb_int.h"

/* ---- telling ---- */

static struct vg_damaged *find_kept(struct vg_lmdb *l, struct vg_log_at at)
{
    for (size_t i = 0; i < VG_MIN(l->n_damaged, (size_t)VG_DAMAGED_KEPT); i++) {
        if (l->damaged[i].at.rev == at.rev && l->damaged[i].at.sub == at.sub)
            return &l->damaged[i];
    }
    return NULL;
}

/* True: it was not known before. */
static bool keep(struct vg_lmdb *l, struct vg_slice key, struct vg_log_at at)
{
    vg_mutex_lock(&l->damaged_mu);
    bool is_new = !find_kept(l, at);
    if (is_new) {
        struct vg_damaged *d = &l->damaged[l->n_damaged++ % VG_DAMAGED_KEPT];
        d->at = at;
        d->key_len = VG_MIN(key.n, sizeof d->key);
        memcpy(d->key, key.p, d->key_len);
    }
    vg_mutex_unlock(&l->damaged_mu);
    return is_new;
}

void vg_lmdb_note_damage(struct vg_lmdb *l, struct vg_slice key, struct vg_log_at at)
{
    if (!keep(l, key, at))
        return;
    atomic_fetch_add_explicit(&l->base.damaged, 1, memory_order_relaxed);
    vg_error(l->logger, "record_damaged",
             "key=%.*s rev=%llu do=\"if this is what the object holds now, its reads fail: delete "
             "it with the option ignoreStoreReadErrorWithClusterBreakingPotential, or restore from "
             "a backup; and look at the disk\"",
             VG_SLICE_ARG(key), (unsigned long long)at.rev);
}

/* ---- what is known of a change without its record ---- */

/* The version that a change of this key made. 1, with the cursor on it; 0: there is none. */
static int find_version(MDB_cursor *keys, struct vg_slice key, struct vg_log_at at,
                        struct key_version *ret)
{
    struct key_version bound = {.rev = at.rev};
    char buf[KEY_VERSION_SIZE];
    vg_key_version_encode(&bound, buf);
    MDB_val k = {key.n, (void *)key.p}, val = {sizeof buf, buf};
    int rc = mdb_cursor_get(keys, &k, &val, MDB_GET_BOTH_RANGE);
    if (rc)
        return rc == MDB_NOTFOUND ? 0 : vg_lmdb_err(rc);
    return vg_key_version_decode(&val, ret) == 0 && ret->rev == at.rev && ret->sub == at.sub;
}

/* The same, of any key. */
static int search_version(MDB_cursor *keys, struct vg_log_at at, struct vg_slice *ret_key,
                          struct key_version *ret)
{
    MDB_val k, val;
    int rc = mdb_cursor_get(keys, &k, &val, MDB_FIRST);
    for (; !rc; rc = mdb_cursor_get(keys, &k, &val, MDB_NEXT)) {
        if (vg_key_version_decode(&val, ret) < 0 || ret->rev != at.rev || ret->sub != at.sub)
            continue;
        *ret_key = vg_slice(k.mv_data, k.mv_size);
        return 1;
    }
    return rc == MDB_NOTFOUND ? 0 : vg_lmdb_err(rc);
}

static void set_key(struct vg_lost_change *c, struct vg_slice key)
{
    c->key_len = VG_MIN(key.n, sizeof c->key);
    memcpy(c->key, key.p, c->key_len);
}

static bool recall_key(struct vg_lmdb *l, struct vg_log_at at, struct vg_lost_change *ret)
{
    vg_mutex_lock(&l->damaged_mu);
    const struct vg_damaged *d = find_kept(l, at);
    if (d)
        set_key(ret, vg_slice(d->key, d->key_len));
    vg_mutex_unlock(&l->damaged_mu);
    return d != NULL;
}

static int find_key(struct vg_lmdb *l, MDB_cursor *keys, struct vg_log_at at,
                    struct vg_slice encoded, struct vg_lost_change *ret)
{
    struct vg_slice key = vg_rec_claimed_key(encoded);
    int r = 0;
    if (key.n > 0 && key.n <= sizeof ret->key) {
        set_key(ret, key);
        r = find_version(keys, key, at, &ret->kv);
    }
    if (r == 0 && recall_key(l, at, ret))
        r = find_version(keys, vg_slice(ret->key, ret->key_len), at, &ret->kv);
    if (r == 0 && (r = search_version(keys, at, &key, &ret->kv)) > 0)
        set_key(ret, key);
    return r;
}

int vg_lmdb_find_lost(struct vg_lmdb *l, MDB_cursor *keys, struct vg_log_at at,
                      struct vg_slice encoded, struct vg_lost_change *ret)
{
    MDB_val k, val;
    ret->prev = (struct key_version){0};
    int r = find_key(l, keys, at, encoded, ret);
    if (r <= 0)
        return r;
    vg_lmdb_note_damage(l, vg_slice(ret->key, ret->key_len), at);
    /* Versions lie newest first: behind it is what it replaced, unless that was a delete. */
    int rc = mdb_cursor_get(keys, &k, &val, MDB_NEXT_DUP);
    if (rc)
        return rc == MDB_NOTFOUND ? 1 : vg_lmdb_err(rc);
    if (vg_key_version_decode(&val, &ret->prev) < 0 || ret->prev.is_delete)
        ret->prev = (struct key_version){0};
    return 1;
}

/* ---- handing it out ---- */

int vg_lmdb_make_unreadable(struct vg_lmdb *l, struct vg_slice key, const struct key_version *kv,
                            struct vg_rec **ret_rec)
{
    MDB_val k = {key.n, (void *)key.p};
    int r = vg_lmdb_make_key_rec(&k, kv, ret_rec);
    if (r < 0)
        return r;
    (*ret_rec)->is_unreadable = !kv->is_delete; /* of a delete there is no more to be known */
    vg_lmdb_note_damage(l, key, (struct vg_log_at){kv->rev, kv->sub});
    return 0;
}

int vg_lmdb_make_lost(struct vg_base_view *v, struct vg_log_at at, struct vg_slice encoded,
                      struct vg_rec **ret_rec)
{
    struct vg_lost_change c;
    int r = vg_lmdb_find_lost(v->l, v->keys, at, encoded, &c);
    if (r < 0)
        return r;
    if (r == 0) {
        snprintf(v->damage, sizeof v->damage,
                 "the stored data is damaged: the change of revision %llu does not read back, and "
                 "no key has it; restore from a backup",
                 (unsigned long long)at.rev);
        return VIGIL_E_STORE_DAMAGED;
    }
    r = vg_lmdb_make_unreadable(v->l, vg_slice(c.key, c.key_len), &c.kv, ret_rec);
    if (r < 0)
        return r;
    (*ret_rec)->prev_rev = c.prev.rev;
    (*ret_rec)->prev_sub = c.prev.sub;
    return 0;
}
