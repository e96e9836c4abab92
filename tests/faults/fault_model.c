/* fault_model.c - see fault_model.h: transactions by number, and what became of them. */
#include "fault_model_int.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "test_support.h"

/* ---- specs ---- */

static struct vg_rng rng_of(const struct fm *m, uint64_t id, uint64_t part)
{
    struct vg_rng rng;
    vg_rng_seed(&rng, m->seed ^ (id * UINT64_C(0x9e3779b97f4a7c15)) ^ (part << 56));
    return rng;
}

static size_t draw_length(struct vg_rng *rng)
{
    uint64_t dice = vg_rng_below(rng, 100);
    if (dice < 80)
        return (size_t)vg_rng_below(rng, 400);
    return (size_t)vg_rng_below(rng, dice < 97 ? 5000 : FM_VALUE_MAX);
}

/* Of several operations the first is a put: its value names the transaction. A delete that stands
 * alone leaves no name in the log, but any two of the same key are alike. */
static void draw_op(struct vg_rng *rng, struct fm_op *op, uint32_t i, uint32_t n)
{
    uint64_t dice = vg_rng_below(rng, 100);
    op->type = dice < 65 ? VG_OP_PUT : dice < 92 || n == 1 ? VG_OP_DELETE : VG_OP_CHECK;
    if (i == 0 && n > 1)
        op->type = VG_OP_PUT;
    op->expect = vg_rng_below(rng, 25) == 0 ? 0 : VG_EXPECT_ANY;
    if (op->type != VG_OP_PUT)
        return;
    op->value_len = draw_length(rng);
    if (vg_rng_below(rng, 8) == 0)
        op->ttl_ms = 1 + vg_rng_below(rng, 3000);
}

static bool has_key(const struct fm_spec *spec, unsigned key)
{
    for (uint32_t i = 0; i < spec->n; i++)
        if (spec->ops[i].key == key)
            return true;
    return false;
}

void fm_spec(const struct fm *m, uint64_t id, struct fm_spec *ret_spec)
{
    struct vg_rng rng = rng_of(m, id, 0);
    struct fm_spec spec = {0};
    uint32_t n = vg_rng_below(&rng, 3) ? 1 : 1 + (uint32_t)vg_rng_below(&rng, FM_OPS_MAX);
    while (spec.n < n) {
        unsigned key = (unsigned)vg_rng_below(&rng, FM_KEYS);
        if (has_key(&spec, key))
            continue;
        struct fm_op *op = &spec.ops[spec.n++];
        op->key = key;
        draw_op(&rng, op, spec.n - 1, n);
    }
    *ret_spec = spec;
}

struct vg_slice fm_key(unsigned key, char room[16])
{
    return vg_slice(room, (size_t)snprintf(room, 16, "k/%03u", key));
}

/* ---- records ---- */

void fm_content(const struct fm *m, uint64_t id, uint32_t i, size_t len, struct fm_content *c)
{
    struct vg_rng rng = rng_of(m, id, i + 1);
    c->head_len = snprintf(c->head, sizeof c->head, "%llu.%u", (unsigned long long)id, i);
    vg_rng_bytes(&rng, c->value, len);
}

bool fm_build(const struct fm *m, uint64_t id, struct vg_txn *txn)
{
    struct fm_spec spec;
    struct fm_content c;
    fm_spec(m, id, &spec);
    txn->n_ops = 0;
    for (uint32_t i = 0; i < spec.n; i++) {
        char room[16];
        const struct fm_op *op = &spec.ops[i];
        bool is_put = op->type == VG_OP_PUT;
        fm_content(m, id, i, op->value_len, &c);
        txn->ops[i] = (struct vg_op){.type = op->type, .expect = op->expect, .ttl_ms = op->ttl_ms};
        if (vg_rec_new(is_put ? VG_REC_PUT : VG_REC_DELETE, fm_key(op->key, room),
                       vg_slice(c.head, is_put ? (size_t)c.head_len : 0),
                       vg_slice(c.value, op->value_len), &txn->ops[i].rec) < 0) {
            vg_txn_done(txn);
            return false;
        }
        txn->n_ops++;
    }
    return true;
}

/* ---- fates ---- */

void *fm_alloc(void *old, size_t count, size_t size)
{
    void *p = reallocarray(old, count ? count : 1, size);
    if (!p)
        exit(2);
    return p;
}

void fm_init(struct fm *m, uint64_t seed, uint64_t max_txns)
{
    *m = (struct fm){.seed = seed, .cap = max_txns, .first = 1, .rev = VG_REV_EMPTY};
    pthread_mutex_init(&m->mu, NULL);
    m->txns = calloc(max_txns + 1, sizeof *m->txns);
    m->index = fm_alloc(NULL, 2, sizeof *m->index);
    m->index[0] = m->index[1] = 0; /* nothing before or at VG_REV_EMPTY */
    if (!m->txns)
        exit(2);
}

void fm_done(struct fm *m)
{
    for (size_t i = 0; i < m->n_log; i++)
        vg_rec_unref(m->log[i]);
    free(m->log);
    free(m->index);
    free(m->txns);
    pthread_mutex_destroy(&m->mu);
}

void fm_rewind(struct fm *m, vg_rev rev, vg_rev compacted)
{
    assert_true(rev <= m->rev);
    for (size_t i = m->index[rev]; i < m->n_log; i++)
        vg_rec_unref(m->log[i]);
    m->n_log = m->index[rev];
    m->rev = rev;
    m->seen = rev;
    m->first = m->last + 1;
    m->compact_done = m->compact_asked = compacted;
    for (uint64_t id = 1; id <= m->last; id++)
        if (m->txns[id].rev > rev)
            m->txns[id] = (struct fm_txn){.fate = FM_REFUSED};
}

uint64_t fm_send(struct fm *m)
{
    pthread_mutex_lock(&m->mu);
    uint64_t id = m->last < m->cap ? ++m->last : 0;
    if (id)
        m->txns[id].fate = FM_SENT;
    pthread_mutex_unlock(&m->mu);
    return id;
}

static bool changed_something(const struct vg_txn *txn)
{
    for (uint32_t i = 0; i < txn->n_ops; i++) {
        const struct vg_op *op = &txn->ops[i];
        if (op->type == VG_OP_PUT || (op->type == VG_OP_DELETE && op->prev))
            return true;
    }
    return false;
}

enum fm_fate fm_fate_of(const struct vg_txn *txn)
{
    if (txn->req.err == VIGIL_E_UNKNOWN_OUTCOME)
        return FM_UNKNOWN;
    if (txn->req.err < 0)
        return FM_REFUSED;
    return changed_something(txn) ? FM_DONE : FM_SAME;
}

void fm_answer(struct fm *m, uint64_t id, enum fm_fate fate, vg_rev rev)
{
    pthread_mutex_lock(&m->mu);
    m->txns[id] = (struct fm_txn){fate, fate == FM_DONE ? rev : 0, ++m->order};
    pthread_mutex_unlock(&m->mu);
}

void fm_saw(struct fm *m, vg_rev rev)
{
    pthread_mutex_lock(&m->mu);
    m->seen = VG_MAX(m->seen, rev);
    pthread_mutex_unlock(&m->mu);
}

void fm_compacting(struct fm *m, vg_rev rev, bool is_done)
{
    pthread_mutex_lock(&m->mu);
    m->compact_asked = VG_MAX(m->compact_asked, rev);
    if (is_done)
        m->compact_done = VG_MAX(m->compact_done, rev);
    pthread_mutex_unlock(&m->mu);
}

struct fm_cut fm_cut_now(struct fm *m)
{
    pthread_mutex_lock(&m->mu);
    struct fm_cut cut = {m->order, m->seen, m->compact_done, m->compact_asked};
    pthread_mutex_unlock(&m->mu);
    return cut;
}

vg_rev fm_cut_must_have(const struct fm *m, const struct fm_cut *cut)
{
    vg_rev rev = VG_MAX(cut->seen, VG_REV_EMPTY);
    for (uint64_t id = m->first; id <= m->last; id++)
        if (m->txns[id].fate == FM_DONE && m->txns[id].order <= cut->order)
            rev = VG_MAX(rev, m->txns[id].rev);
    return rev;
}

void fm_check_acknowledged(const struct fm *m)
{
    for (uint64_t id = m->first; id <= m->last; id++)
        if (m->txns[id].fate == FM_DONE && m->txns[id].rev > m->rev)
            fail_msg("transaction %llu was acknowledged with revision %llu and is not there: the "
                     "log ends at %llu",
                     (unsigned long long)id, (unsigned long long)m->txns[id].rev,
                     (unsigned long long)m->rev);
}
