/* lmdb_compact.c - forgetting what was superseded, in a transaction of its own.
 * Compaction follows the log, not the keys: a change at or before the compacted revision frees the
 * version that it replaced, and itself when it is a delete. So it costs what happened, not what is
 * stored, and can stop after any change. What was replaced is found by the index and never decoded.
 * A change that does not read back is passed over: what it was, and what it replaced, the index
 * still knows. All older versions of its key go with it, since a version that nobody forgets would
 * come back to life when the newer ones are gone. */
#include <errno.h>

#include "lmdb_int.h"

/* Changes and deadlines that one transaction cleans up: bounds how long it holds the disk. */
#define COMPACT_SLICE 5000
#define TTL_SLICE 2000

struct compaction {
    struct vg_lmdb *l;
    MDB_txn *txn;
    MDB_cursor *log, *keys;
    struct store_meta state;
    struct vg_sums sums; /* as they will be after it */
    bool is_changed;
};

static struct vg_slice slice_of(const MDB_val *v)
{
    return vg_slice(v->mv_data, v->mv_size);
}

/* ---- one version ---- */

static int forget_record(struct compaction *c, struct vg_log_at at)
{
    char buf[LOG_KEY_SIZE];
    vg_log_key_encode(at.rev, at.sub, buf);
    MDB_val key = {sizeof buf, buf};
    int rc = mdb_del(c->txn, c->l->log, &key, NULL);
    if (!rc)
        vg_sums_remove(&c->sums, VG_SUM_LOG, slice_of(&key), vg_slice(NULL, 0));
    return rc == MDB_NOTFOUND ? 0 : rc; /* it was compacted before */
}

/* The version under the cursor; `of` is its key. */
static int forget_version(struct compaction *c, struct vg_slice of, const MDB_val *val)
{
    vg_sums_remove(&c->sums, VG_SUM_KEYS, of, slice_of(val));
    return mdb_cursor_del(c->keys, 0);
}

/* Remove one version of a key: its record from the log, its entry from keys. */
static int forget(struct compaction *c, struct vg_slice of, struct vg_log_at at)
{
    struct key_version kv = {.rev = at.rev};
    char buf[KEY_VERSION_SIZE];
    int rc = forget_record(c, at);
    if (rc)
        return rc;
    vg_key_version_encode(&kv, buf);
    MDB_val key = {of.n, (void *)of.p}, val = {sizeof buf, buf};
    rc = mdb_cursor_get(c->keys, &key, &val, MDB_GET_BOTH_RANGE);
    if (rc == MDB_NOTFOUND)
        return 0;
    if (rc || vg_key_version_decode(&val, &kv) < 0 || kv.rev != at.rev || kv.sub != at.sub)
        return rc;
    return forget_version(c, of, &val);
}

/* ---- changes ---- */

static int forget_replaced(struct compaction *c, const struct vg_rec *rec)
{
    int rc = 0;
    if (rec->prev_rev)
        rc = forget(c, vg_rec_key(rec), (struct vg_log_at){rec->prev_rev, rec->prev_sub});
    if (!rc && vg_rec_is_delete(rec))
        rc = forget(c, vg_rec_key(rec), (struct vg_log_at){rec->rev, rec->sub});
    return vg_lmdb_err(rc);
}

/* Every version of the key below `at`. */
static int forget_older(struct compaction *c, struct vg_slice key, struct vg_log_at at)
{
    for (;;) {
        struct key_version kv = {.rev = at.rev - 1};
        char buf[KEY_VERSION_SIZE];
        vg_key_version_encode(&kv, buf);
        MDB_val k = {key.n, (void *)key.p}, val = {sizeof buf, buf};
        int rc = mdb_cursor_get(c->keys, &k, &val, MDB_GET_BOTH_RANGE);
        if (rc)
            return rc == MDB_NOTFOUND ? 0 : rc;
        if (vg_key_version_decode(&val, &kv) == 0)
            rc = forget_record(c, (struct vg_log_at){kv.rev, kv.sub});
        if (!rc)
            rc = forget_version(c, key, &val);
        if (rc)
            return rc;
    }
}

static int pass_over(struct compaction *c, struct vg_log_at at, struct vg_slice encoded)
{
    struct vg_lost_change lost;
    int r = vg_lmdb_find_lost(c->l, c->keys, at, encoded, &lost);
    if (r < 0)
        return r;
    if (r == 0) { /* the index does not know it: nobody will ever read it */
        vg_lmdb_note_damage(c->l, VG_SLICE_LIT("?"), at);
        return 0;
    }
    struct vg_slice key = vg_slice(lost.key, lost.key_len);
    int rc = forget_older(c, key, at);
    if (!rc && lost.kv.is_delete)
        rc = forget(c, key, at);
    return vg_lmdb_err(rc);
}

/* `encoded` lies in the transaction's pages, and is not looked at after the first change of them.
 */
static int compact_change(struct compaction *c, struct vg_log_at at, struct vg_slice encoded)
{
    struct vg_rec *rec;
    size_t used;
    int r = vg_rec_decode(encoded, &used, &rec);
    if (r == VIGIL_E_STORE_DAMAGED)
        return pass_over(c, at, encoded);
    if (r < 0)
        return r;
    r = rec->rev == at.rev && rec->sub == at.sub ? forget_replaced(c, rec)
                                                 : pass_over(c, at, encoded);
    vg_rec_unref(rec);
    return r;
}

/* The first change at or after a place in the log. 1, 0 when there is none, negative. */
static int first_change(struct compaction *c, struct vg_log_at *at, struct vg_slice *ret_encoded)
{
    char buf[LOG_KEY_SIZE];
    vg_log_key_encode(at->rev, at->sub, buf);
    MDB_val key = {sizeof buf, buf}, val;
    int rc = mdb_cursor_get(c->log, &key, &val, MDB_SET_RANGE);
    if (rc)
        return rc == MDB_NOTFOUND ? 0 : vg_lmdb_err(rc);
    if (key.mv_size != LOG_KEY_SIZE)
        return VIGIL_E_STORE_DAMAGED;
    *at = vg_log_key_decode(key.mv_data);
    *ret_encoded = vg_slice(val.mv_data, val.mv_size);
    return 1;
}

/* Changes above compact_done up to what is compacted and applied, about `max` of them; a revision
 * is done whole, because compact_done counts revisions. */
static int compact_log(struct compaction *c, size_t max, bool *ret_more)
{
    vg_rev upto = VG_MIN(c->state.compact_rev, c->state.applied_rev);
    vg_rev done = c->state.compact_done;
    struct vg_log_at at = {.rev = done + 1};
    struct vg_slice encoded;
    int r = 0;
    if (at.rev > upto)
        return 0;
    /* The cursor is sought anew for each change: deleting moves it. */
    for (size_t n = 0; (r = first_change(c, &at, &encoded)) > 0 && at.rev <= upto; n++) {
        *ret_more = n >= max && at.rev > done;
        if (*ret_more)
            break;
        r = compact_change(c, at, encoded);
        if (r < 0)
            break;
        done = at.rev;
        at.rev += ++at.sub == 0; /* a hostile file has the last one there is */
    }
    if (r < 0)
        return r;
    c->state.compact_done = *ret_more ? done : upto;
    c->is_changed = true;
    return 0;
}

/* ---- deadlines ---- */

/* Does the deadline still belong to the newest version of its key? */
static int is_stale(struct compaction *c, const MDB_val *ttl_key, MDB_val *key, bool *ret_stale)
{
    int64_t expires;
    vg_rev rev;
    uint32_t sub;
    struct key_version kv;
    MDB_val val;
    vg_ttl_key_decode(ttl_key->mv_data, &expires, &rev, &sub);
    int rc = mdb_get(c->txn, c->l->keys, key, &val); /* the first duplicate: the newest */
    if (rc && rc != MDB_NOTFOUND)
        return vg_lmdb_err(rc);
    *ret_stale = rc || (vg_key_version_decode(&val, &kv) == 0 && (kv.rev != rev || kv.is_delete));
    return 0;
}

static bool is_due(const MDB_val *ttl_key, int64_t now_ms)
{
    int64_t expires = INT64_MAX;
    vg_rev rev;
    uint32_t sub;
    if (ttl_key->mv_size == TTL_KEY_SIZE)
        vg_ttl_key_decode(ttl_key->mv_data, &expires, &rev, &sub);
    return expires <= now_ms;
}

static int drop_stale_deadlines(struct compaction *c, int64_t now_ms)
{
    MDB_cursor *cursor;
    MDB_val key, val;
    int rc = mdb_cursor_open(c->txn, c->l->ttl, &cursor);
    if (rc)
        return vg_lmdb_err(rc);
    int r = 0;
    rc = mdb_cursor_get(cursor, &key, &val, MDB_FIRST);
    for (size_t n = 0; !rc && r == 0 && n < TTL_SLICE && is_due(&key, now_ms); n++) {
        bool stale = false;
        r = is_stale(c, &key, &val, &stale);
        if (r == 0 && stale) {
            vg_sums_remove(&c->sums, VG_SUM_TTL, slice_of(&key), slice_of(&val));
            r = vg_lmdb_err(mdb_cursor_del(cursor, 0));
        }
        c->is_changed |= stale;
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

static int run(struct compaction *c, struct vg_base_compact *compact)
{
    if (compact->compact_rev > c->state.compact_rev) {
        c->state.compact_rev = compact->compact_rev;
        c->is_changed = true;
    }
    int rc = mdb_cursor_open(c->txn, c->l->log, &c->log);
    if (!rc)
        rc = mdb_cursor_open(c->txn, c->l->keys, &c->keys);
    int r = vg_lmdb_err(rc);
    if (r == 0)
        r = compact_log(c, compact->max ? compact->max : COMPACT_SLICE, &compact->more);
    if (r == 0)
        r = drop_stale_deadlines(c, compact->now_ms);
    if (c->log)
        mdb_cursor_close(c->log);
    if (c->keys)
        mdb_cursor_close(c->keys);
    if (r == 0 && c->is_changed)
        r = vg_lmdb_err(vg_lmdb_put_state(c->txn, c->l, &c->state, &c->sums));
    return r;
}

int vg_lmdb_compact(struct vg_base *b, struct vg_base_compact *compact)
{
    struct vg_lmdb *l = VG_CONTAINER_OF(b, struct vg_lmdb, base);
    struct compaction c = {.l = l, .state = l->state, .sums = l->sums};
    compact->more = false;
    if (!l->env)
        return -EIO;
    size_t max = compact->max ? compact->max : COMPACT_SLICE;
    int rc = vg_lmdb_lengthen_file(l, 8 * (uint64_t)max, 0);
    if (!rc)
        rc = mdb_txn_begin(l->env, NULL, 0, &c.txn);
    if (rc)
        return vg_lmdb_err(rc);
    int r = run(&c, compact);
    if (r < 0 || !c.is_changed)
        mdb_txn_abort(c.txn);
    else
        r = vg_lmdb_commit(l, c.txn);
    if (r == 0) {
        l->state = c.state;
        l->sums = c.sums;
        vg_lmdb_trim_file(l);
    }
    return r;
}
