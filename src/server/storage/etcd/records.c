/* records.c - records of what etcd holds, and what etcd shall hold of records.
 * Without a form of the caller's own (storage.h), header and value are stored as they are: four
 * bytes with the header's length, the header, the value. What etcd does not say stays 0: when a
 * change was made, when it will expire, and, of what a range returns, which revision it replaced.
 */
#include <endian.h>
#include <errno.h>

#include "engine.h"

#define RAW_HEAD sizeof(uint32_t)

static int raw_to_bytes(const struct vg_rec *rec, struct vg_buf *out)
{
    uint32_t n = htole32(rec->header_len);
    int r = vg_buf_append(out, &n, sizeof n);
    if (r == 0)
        r = vg_buf_append_slice(out, vg_rec_header(rec));
    return r == 0 ? vg_buf_append_slice(out, vg_rec_value(rec)) : r;
}

static int raw_from_bytes(struct vg_slice bytes, struct vg_buf *header, struct vg_buf *value)
{
    uint32_t n = 0;
    if (bytes.n >= RAW_HEAD)
        memcpy(&n, bytes.p, sizeof n);
    n = le32toh(n);
    if (bytes.n < RAW_HEAD || n > bytes.n - RAW_HEAD)
        return vg_buf_append_slice(value, bytes); /* somebody else's */
    int r = vg_buf_append(header, bytes.p + RAW_HEAD, n);
    return r == 0 ? vg_buf_append(value, bytes.p + RAW_HEAD + n, bytes.n - RAW_HEAD - n) : r;
}

int vg_etcd_stored_bytes(struct vg_etcd_engine *e, const struct vg_rec *rec, struct vg_buf *out)
{
    const struct vg_stored_form *f = &e->eo.form;
    return f->to_bytes ? f->to_bytes(f->arg, rec, out) : raw_to_bytes(rec, out);
}

static void stamp(struct vg_rec *rec, const Etcd__KeyValue *kv)
{
    rec->rev = (vg_rev)kv->mod_revision;
    rec->create_rev = (vg_rev)kv->create_revision;
    rec->version = (uint64_t)kv->version;
}

int vg_etcd_record(struct vg_etcd_engine *e, const Etcd__KeyValue *kv, bool keys_only,
                   struct vg_rec **ret_rec)
{
    const struct vg_stored_form *f = &e->eo.form;
    VG_AUTO(buf) header = {0}, value = {0};
    struct vg_slice bytes = vg_etcd_bytes(kv->value);
    struct vg_etcd_key key;
    struct vg_rec *rec = NULL;
    int r = vg_etcd_key_read(&e->space, vg_etcd_bytes(kv->key), &key);
    if (r == 0 && !keys_only)
        r = f->from_bytes ? f->from_bytes(f->arg, vg_etcd_key_slice(&key), bytes, &header, &value)
                          : raw_from_bytes(bytes, &header, &value);
    if (r == 0)
        r = vg_rec_new(VG_REC_PUT, vg_etcd_key_slice(&key), vg_buf_slice(&header),
                       vg_buf_slice(&value), &rec);
    if (r < 0 || VG_NEVER(!rec))
        return r;
    stamp(rec, kv);
    *ret_rec = rec;
    return 0;
}

static int deletion(struct vg_etcd_engine *e, const Etcd__KeyValue *kv, struct vg_rec **ret_rec)
{
    struct vg_etcd_key key;
    struct vg_rec *rec = NULL;
    int r = vg_etcd_key_read(&e->space, vg_etcd_bytes(kv->key), &key);
    if (r == 0)
        r = vg_rec_new(VG_REC_DELETE, vg_etcd_key_slice(&key), vg_slice(NULL, 0), vg_slice(NULL, 0),
                       &rec);
    if (r < 0 || VG_NEVER(!rec))
        return r;
    rec->rev = (vg_rev)kv->mod_revision;
    *ret_rec = rec;
    return 0;
}

/* etcd reads what was there before when it sends: compaction may have been faster. */
static bool lacks_prev(const Etcd__Event *ev)
{
    bool is_put = ev->type == ETCD__EVENT__EVENT_TYPE__PUT;
    return !ev->prev_kv && !(is_put && ev->kv->create_revision == ev->kv->mod_revision);
}

/* A copy of the record that we put, if this is one. 0 without a record: it is not. */
static int own_record(struct vg_etcd_engine *e, const Etcd__KeyValue *kv, struct vg_rec **ret_rec)
{
    struct vg_etcd_key key;
    int r = vg_etcd_key_read(&e->space, vg_etcd_bytes(kv->key), &key);
    if (r < 0)
        return r;
    const struct vg_rec *put =
        vg_etcd_own_find(e, vg_etcd_key_slice(&key), vg_etcd_bytes(kv->value));
    if (!put)
        return 0;
    r = vg_rec_new(VG_REC_PUT, vg_rec_key(put), vg_rec_header(put), vg_rec_value(put), ret_rec);
    if (r == 0)
        stamp(*ret_rec, kv);
    return r;
}

static int make_event(struct vg_etcd_engine *e, const Etcd__Event *ev, uint32_t sub, bool want_prev,
                      bool may_be_own, struct vg_event *ret_event)
{
    struct vg_rec *rec = NULL, *prev = NULL;
    bool is_delete = ev->type == ETCD__EVENT__EVENT_TYPE__DELETE;
    if (!ev->kv)
        return VIGIL_E_KEY_INVALID;
    if (want_prev && lacks_prev(ev))
        return VIGIL_E_COMPACTED;
    int r = may_be_own && !is_delete ? own_record(e, ev->kv, &rec) : 0;
    if (r == 0 && !rec)
        r = is_delete ? deletion(e, ev->kv, &rec) : vg_etcd_record(e, ev->kv, false, &rec);
    if (r == 0 && ev->prev_kv && want_prev)
        r = vg_etcd_record(e, ev->prev_kv, false, &prev);
    if (r < 0) {
        vg_rec_unref(rec);
        return r;
    }
    rec->sub = sub;
    rec->prev_rev = ev->prev_kv ? (vg_rev)ev->prev_kv->mod_revision : 0;
    *ret_event = (struct vg_event){.rec = rec, .prev = prev};
    return 0;
}

int vg_etcd_event(struct vg_etcd_engine *e, const Etcd__Event *ev, uint32_t sub, bool want_prev,
                  struct vg_event *ret_event)
{
    return make_event(e, ev, sub, want_prev, false, ret_event);
}

int vg_etcd_feed_event(struct vg_etcd_engine *e, const Etcd__Event *ev, uint32_t sub,
                       bool want_prev, struct vg_event *ret_event)
{
    return make_event(e, ev, sub, want_prev, true, ret_event);
}
