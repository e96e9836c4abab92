/* storage_model.c - see storage_model.h. Out of memory ends the test. */
#include "storage_model.h"

#include <stdlib.h>

static void *must_alloc(void *p)
{
    if (!p)
        abort();
    return p;
}

static struct vg_slice copy(struct vg_slice s)
{
    char *p = must_alloc(malloc(s.n + 1));
    for (size_t i = 0; i < s.n; i++)
        p[i] = s.p[i];
    return vg_slice(p, s.n);
}

/* Bytes as numbers from 0 to 255; a prefix comes first. */
static int compare(struct vg_slice a, struct vg_slice b)
{
    for (size_t i = 0; i < a.n && i < b.n; i++)
        if (a.p[i] != b.p[i])
            return (unsigned char)a.p[i] < (unsigned char)b.p[i] ? -1 : 1;
    return a.n == b.n ? 0 : a.n < b.n ? -1 : 1;
}

void model_init(struct model *m, const struct vg_slice *keys, unsigned n_keys)
{
    *m = (struct model){.keys = keys, .n_keys = n_keys, .rev = 1};
}

void model_done(struct model *m)
{
    for (size_t i = 0; i < m->n; i++) {
        free((char *)m->changes[i].header.p);
        free((char *)m->changes[i].value.p);
    }
    free(m->changes);
    *m = (struct model){0};
}

size_t model_find(const struct model *m, unsigned key, vg_rev at)
{
    for (size_t i = m->n; i-- > 0;) {
        const struct model_change *c = &m->changes[i];
        if (c->key == key && c->rev <= at)
            return c->is_delete ? MODEL_NONE : i;
    }
    return MODEL_NONE;
}

vg_rev model_key_rev(const struct model *m, unsigned key)
{
    size_t now = model_find(m, key, m->rev);
    return now == MODEL_NONE ? 0 : m->changes[now].rev;
}

static void append(struct model *m, struct model_change c)
{
    if (m->n == m->cap) {
        m->cap = m->cap ? m->cap * 2 : 1024;
        m->changes = must_alloc(realloc(m->changes, m->cap * sizeof *m->changes));
    }
    assert(m->changes);
    m->changes[m->n++] = c;
}

static void append_delete(struct model *m, unsigned key, vg_rev rev, uint32_t sub, int64_t now_ms)
{
    size_t prev = model_find(m, key, VG_REV_MAX);
    append(m, (struct model_change){
                  .rev = rev,
                  .sub = sub,
                  .key = key,
                  .is_delete = true,
                  .time_ms = now_ms,
                  .prev = prev,
                  .prev_rev = m->changes[prev].rev,
                  .header = copy(vg_slice(NULL, 0)),
                  .value = copy(vg_slice(NULL, 0)),
              });
}

static void append_put(struct model *m, const struct model_op *op, vg_rev rev, uint32_t sub,
                       int64_t now_ms)
{
    size_t prev = model_find(m, op->key, VG_REV_MAX);
    const struct model_change *p = prev == MODEL_NONE ? NULL : &m->changes[prev];
    append(m, (struct model_change){
                  .rev = rev,
                  .sub = sub,
                  .key = op->key,
                  .create_rev = p ? p->create_rev : rev,
                  .version = p ? p->version + 1 : 1,
                  .time_ms = now_ms,
                  .expires_ms = op->ttl_ms ? now_ms + (int64_t)op->ttl_ms : 0,
                  .prev = prev,
                  .prev_rev = p ? p->rev : 0,
                  .header = copy(op->header),
                  .value = copy(op->value),
              });
}

int model_txn(struct model *m, const struct model_op *ops, unsigned n, int64_t now_ms,
              unsigned *ret_failed)
{
    for (unsigned i = 0; i < n; i++) {
        if (ops[i].expect != VG_EXPECT_ANY && ops[i].expect != model_key_rev(m, ops[i].key)) {
            *ret_failed = i;
            return VIGIL_E_CONFLICT;
        }
    }
    uint32_t sub = 0;
    for (unsigned i = 0; i < n; i++) {
        if (ops[i].type == VG_OP_PUT)
            append_put(m, &ops[i], m->rev + 1, sub++, now_ms);
        else if (ops[i].type == VG_OP_DELETE && model_key_rev(m, ops[i].key) != 0)
            append_delete(m, ops[i].key, m->rev + 1, sub++, now_ms);
    }
    if (sub > 0)
        m->rev++;
    return 0;
}

bool model_is_due(const struct model *m, unsigned key, int64_t now_ms)
{
    size_t now = model_find(m, key, m->rev);
    return now != MODEL_NONE && m->changes[now].expires_ms != 0 &&
           m->changes[now].expires_ms <= now_ms;
}

void model_expire(struct model *m, const unsigned *keys, unsigned n, int64_t now_ms)
{
    for (unsigned i = 0; i < n; i++)
        append_delete(m, keys[i], m->rev + 1, i, now_ms);
    m->rev++;
}

bool model_keys_contain(const struct vg_keys *keys, struct vg_slice key)
{
    if (keys->kind == VG_KEYS_ONE)
        return compare(key, keys->start) == 0;
    if (compare(key, keys->start) < 0)
        return false;
    return keys->kind == VG_KEYS_FROM || compare(key, keys->end) < 0;
}
