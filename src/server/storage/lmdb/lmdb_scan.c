/* lmdb_scan.c - reading many records of the base: ranges, pieces of the log, deadlines. A cursor
 * finds where the records lie, which touches none of them; then they are decoded, two at a time
 * (decode.h). They stay where they are as long as the view's transaction does. */
#include <errno.h>

#include "base/alloc.h"
#include "lmdb_int.h"

/* Found before they are decoded: enough to keep two threads busy for a millisecond. */
#define PIECE_MAX 512

static bool is_worth_offering(size_t n)
{
    return n && n % VG_DECODE_OFFER == 0;
}

static void drop_items(struct vg_decode_item *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        items[i].rec = vg_rec_unref(items[i].rec);
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

/* Part of a range, found and then decoded. */
struct piece {
    size_t n, n_unread;
    struct vg_decode_item items[PIECE_MAX];
    struct vg_slice keys[PIECE_MAX];
    struct key_version versions[PIECE_MAX];
    const struct vg_rec *known[PIECE_MAX]; /* NULL: it is read; else perhaps the record */
};

struct scan {
    const struct vg_keys *keys;
    vg_rev at;
    bool keys_only;
    const struct vg_known *known;
    MDB_val key, val; /* under the cursor */
};

/* What is known lies all over the memory: it is asked for here, and looked at when all are found.
 */
static int find_item(struct vg_base_view *v, const struct scan *s, struct vg_slice key,
                     struct piece *p)
{
    const struct key_version *kv = &p->versions[p->n];
    const struct vg_rec *rec = vg_known_at(s->known, kv->rev);
    p->known[p->n] = rec;
    if (!rec) {
        struct vg_decode_item *item = &p->items[p->n];
        p->n_unread++;
        int r = vg_lmdb_find_rec(v, kv, &item->in);
        return r == 0 && !item->in.p ? vg_lmdb_make_unreadable(v->l, key, kv, &item->rec) : r;
    }
    __builtin_prefetch(rec, 1);
    __builtin_prefetch((const char *)rec + 64);
    return 0;
}

/* Add the key under the cursor; its newest version is in `val`. Nothing at `at`: nothing is added.
 */
static int add_key(struct vg_base_view *v, struct scan *s, struct piece *p)
{
    MDB_val *key = &s->key;
    struct key_version *kv = &p->versions[p->n];
    struct vg_decode_item *item = &p->items[p->n];
    struct vg_slice of = vg_slice(key->mv_data, key->mv_size);
    *item = (struct vg_decode_item){0};
    int r = vg_key_version_decode(&s->val, kv);
    if (r < 0)
        return vg_lmdb_fail_entry(v, of);
    if (kv->rev > s->at) {
        r = vg_lmdb_version_at(v, key, s->at, kv);
        if (r <= 0)
            return r;
    }
    p->known[p->n] = NULL;
    r = s->keys_only || kv->is_delete ? vg_lmdb_make_key_rec(key, kv, &item->rec)
                                      : find_item(v, s, of, p);
    if (r < 0)
        return r;
    p->keys[p->n++] = of;
    return 0;
}

/* Find the next `max` of the range. 1: there may be more, 0: that was the last, negative. */
static int find_piece(struct vg_base_view *v, struct scan *s, struct piece *p, size_t max)
{
    while (p->n < max) {
        struct vg_slice k = vg_slice(s->key.mv_data, s->key.mv_size);
        bool is_below = is_below_start(s->keys, k);
        if (!is_below && !vg_keys_contain(s->keys, k))
            return 0;
        size_t unread_before = p->n_unread;
        int r = is_below ? 0 : add_key(v, s, p);
        if (r < 0)
            return r;
        if (p->n_unread > unread_before && is_worth_offering(p->n_unread))
            vg_decode_offer(&v->decoder, p->n);
        int rc = mdb_cursor_get(v->keys, &s->key, &s->val, MDB_NEXT_NODUP);
        if (rc)
            return rc == MDB_NOTFOUND ? 0 : vg_lmdb_err(rc);
    }
    return 1;
}

/* Those that are known; what turns out to be another one is read after all. */
static int take_known(struct vg_base_view *v, struct piece *p)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < p->n; i++) {
        const struct vg_rec *rec = p->known[i];
        if (rec && vg_lmdb_is_record(rec, p->keys[i], &p->versions[i]))
            p->items[i].rec = vg_rec_ref(rec);
        else if (rec)
            r = vg_lmdb_read_rec(v, p->keys[i], &p->versions[i], &p->items[i].rec);
    }
    return r;
}

/* Each must be the record that was looked for; found: what finding them came to. */
static int decode_piece(struct vg_base_view *v, struct piece *p, int found)
{
    size_t failed = 0;
    int r = vg_decode_finish(&v->decoder, p->n, &failed);
    if (found < 0)
        return found;
    for (size_t i = 0; i < p->n; i++) {
        struct vg_decode_item *item = &p->items[i];
        if (!item->in.p || (item->rec && vg_lmdb_is_record(item->rec, p->keys[i], &p->versions[i])))
            continue;
        if (item->err < 0 && item->err != VIGIL_E_STORE_DAMAGED)
            return item->err;
        item->rec = vg_rec_unref(item->rec);
        r = vg_lmdb_make_unreadable(v->l, p->keys[i], &p->versions[i], &item->rec);
        if (r < 0)
            return r;
    }
    return take_known(v, p);
}

static void drop_recs(struct vg_rec **recs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        vg_rec_unref(recs[i]);
}

int vg_lmdb_collect(struct vg_base_view *v, const struct vg_keys *keys, struct vg_slice after,
                    vg_rev at, bool keys_only, const struct vg_known *known,
                    struct vg_rec **ret_recs, size_t max, size_t *ret_n)
{
    struct scan s = {.keys = keys, .at = at, .keys_only = keys_only, .known = known};
    struct piece p;
    size_t n = 0;
    int more = seek_first(v, keys, after, &s.key, &s.val);
    while (more > 0 && n < max) {
        p.n = p.n_unread = 0;
        vg_decode_begin(&v->decoder, p.items);
        more = find_piece(v, &s, &p, VG_MIN(max - n, (size_t)PIECE_MAX));
        int r = decode_piece(v, &p, more);
        if (r < 0) {
            drop_items(p.items, p.n);
            more = r;
            break;
        }
        for (size_t i = 0; i < p.n; i++)
            ret_recs[n++] = p.items[i].rec;
    }
    if (more < 0) {
        drop_recs(ret_recs, n);
        return more;
    }
    *ret_n = n;
    return 0;
}

/* ---- the log ---- */

struct log_piece {
    size_t n;
    struct vg_decode_item items[PIECE_MAX];
    struct vg_log_at at[PIECE_MAX];
};

/* Find what lies under the cursor and behind it, up to revision `to`. 1: there may be more, 0: that
 * was the last, negative. */
static int find_log(struct vg_base_view *v, MDB_val *key, MDB_val *val, vg_rev to,
                    struct log_piece *p, size_t max)
{
    while (p->n < max) {
        if (key->mv_size != LOG_KEY_SIZE)
            return VIGIL_E_STORE_DAMAGED;
        p->at[p->n] = vg_log_key_decode(key->mv_data);
        if (p->at[p->n].rev > to)
            return 0;
        p->items[p->n++] = (struct vg_decode_item){.in = vg_slice(val->mv_data, val->mv_size)};
        if (is_worth_offering(p->n))
            vg_decode_offer(&v->decoder, p->n);
        int rc = mdb_cursor_get(v->log, key, val, MDB_NEXT);
        if (rc)
            return rc == MDB_NOTFOUND ? 0 : vg_lmdb_err(rc);
    }
    return 1;
}

/* A record must be the one that its place in the log promises; found as above. */
static int decode_log(struct vg_base_view *v, struct log_piece *p, int found)
{
    size_t failed = 0;
    int r = vg_decode_finish(&v->decoder, p->n, &failed);
    if (found < 0)
        return found;
    for (size_t i = 0; i < p->n; i++) {
        struct vg_decode_item *item = &p->items[i];
        if (item->rec && item->rec->rev == p->at[i].rev && item->rec->sub == p->at[i].sub)
            continue;
        if (item->err < 0 && item->err != VIGIL_E_STORE_DAMAGED)
            return item->err;
        item->rec = vg_rec_unref(item->rec);
        r = vg_lmdb_make_lost(v, p->at[i], item->in, &item->rec);
        if (r < 0)
            return r;
    }
    return 0;
}

int vg_lmdb_log_read(struct vg_base_view *v, vg_rev from, vg_rev to, struct vg_rec **ret_recs,
                     size_t max, size_t *ret_n)
{
    char buf[LOG_KEY_SIZE];
    struct log_piece p;
    vg_log_key_encode(from, 0, buf);
    MDB_val key = {sizeof buf, buf}, val;
    size_t n = 0;
    int rc = mdb_cursor_get(v->log, &key, &val, MDB_SET_RANGE);
    int more = rc == MDB_NOTFOUND ? 0 : rc ? vg_lmdb_err(rc) : 1;
    while (more > 0 && n < max) {
        p.n = 0;
        vg_decode_begin(&v->decoder, p.items);
        more = find_log(v, &key, &val, to, &p, VG_MIN(max - n, (size_t)PIECE_MAX));
        int r = decode_log(v, &p, more);
        if (r < 0) {
            drop_items(p.items, p.n);
            drop_recs(ret_recs, n);
            return r;
        }
        for (size_t i = 0; i < p.n; i++)
            ret_recs[n++] = p.items[i].rec;
    }
    if (more < 0)
        return more;
    *ret_n = n;
    return 0;
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
