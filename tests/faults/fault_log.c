/* fault_log.c - see fault_model.h: which transaction made a piece of the log, and is it whole? */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "fault_model_int.h"
#include "test_support.h"

/* The changes of one revision. */
struct group {
    const struct vg_event *events;
    size_t n;
    vg_rev rev;
};

static unsigned key_number(const struct vg_rec *rec)
{
    char text[16] = {0};
    struct vg_slice key = vg_rec_key(rec);
    unsigned number = FM_KEYS;
    memcpy(text, key.p, VG_MIN(key.n, sizeof text - 1));
    if (sscanf(text, "k/%3u", &number) != 1 || number >= FM_KEYS)
        fail_msg("the log names a key that nobody wrote: %s", text);
    return number;
}

bool fm_rec_equal(const struct vg_rec *a, const struct vg_rec *b)
{
    size_t n = vg_rec_encoded_size(a);
    if (n != vg_rec_encoded_size(b))
        return false;
    char *x = fm_alloc(NULL, 2, n), *y = x + n;
    vg_rec_encode(a, x);
    vg_rec_encode(b, y);
    bool equal = memcmp(x, y, n) == 0;
    free(x);
    return equal;
}

/* ---- states ---- */

void fm_state_apply(struct fm_state *state, const struct vg_rec *rec)
{
    state->at[key_number(rec)] = vg_rec_is_delete(rec) ? NULL : rec;
}

void fm_state_at(const struct fm *m, vg_rev rev, struct fm_state *ret_state)
{
    *ret_state = (struct fm_state){0};
    for (size_t i = 0; i < m->index[rev]; i++)
        fm_state_apply(ret_state, m->log[i]);
}

/* ---- is this group that transaction? ---- */

static bool is_content(const struct fm *m, uint64_t id, uint32_t i, const struct fm_op *op,
                       const struct vg_rec *rec)
{
    static _Thread_local struct fm_content c;
    if (rec->value_len != op->value_len || (rec->expires_ms != 0) != (op->ttl_ms != 0))
        return false;
    fm_content(m, id, i, op->value_len, &c);
    return vg_slice_eq(vg_rec_header(rec), vg_slice(c.head, (size_t)c.head_len)) &&
           vg_slice_eq(vg_rec_value(rec), vg_slice(c.value, op->value_len));
}

static bool is_op(const struct fm *m, uint64_t id, uint32_t i, const struct fm_op *op,
                  const struct vg_rec *rec)
{
    if (key_number(rec) != op->key || vg_rec_is_delete(rec) != (op->type == VG_OP_DELETE))
        return false;
    return vg_rec_is_delete(rec) || is_content(m, id, i, op, rec);
}

static bool is_txn(const struct fm *m, uint64_t id, const struct fm_state *before,
                   const struct group *g)
{
    struct fm_spec spec;
    size_t at = 0;
    fm_spec(m, id, &spec);
    for (uint32_t i = 0; i < spec.n; i++) {
        const struct fm_op *op = &spec.ops[i];
        bool is_there = before->at[op->key] != NULL;
        if (op->expect == 0 && is_there)
            return false;
        if (op->type == VG_OP_CHECK || (op->type == VG_OP_DELETE && !is_there))
            continue; /* leaves nothing in the log */
        if (at == g->n || !is_op(m, id, i, op, g->events[at++].rec))
            return false;
    }
    return at > 0 && at == g->n;
}

/* Keys whose time was over, deleted by the store itself. */
static bool is_expiry(const struct fm_state *before, const struct group *g)
{
    for (size_t i = 0; i < g->n; i++) {
        const struct vg_rec *rec = g->events[i].rec;
        const struct vg_rec *old = before->at[key_number(rec)];
        if (!vg_rec_is_delete(rec) || !old || !old->expires_ms || old->expires_ms > rec->time_ms)
            return false;
    }
    return true;
}

/* ---- does it fit what was there before? ---- */

static void check_link(const struct fm_state *before, const struct vg_event *e, uint32_t sub)
{
    const struct vg_rec *rec = e->rec, *old = before->at[key_number(rec)];
    bool is_put = !vg_rec_is_delete(rec);
    assert_int_equal(rec->sub, sub);
    assert_int_equal(rec->prev_rev, old ? old->rev : 0);
    assert_int_equal(rec->prev_sub, old ? old->sub : 0);
    assert_int_equal(rec->create_rev, !is_put ? 0 : old ? old->create_rev : rec->rev);
    assert_int_equal(rec->version, !is_put ? 0 : old ? old->version + 1 : 1);
    assert_int_equal(e->prev != NULL, old != NULL);
    if (old)
        assert_true(fm_rec_equal(e->prev, old));
}

static void check_links(const struct fm_state *before, const struct group *g)
{
    for (size_t i = 0; i < g->n; i++)
        check_link(before, &g->events[i], (uint32_t)i);
}

/* ---- the truth grows ---- */

static uint64_t acknowledged_with(const struct fm *m, vg_rev rev)
{
    uint64_t found = 0;
    for (uint64_t id = m->first; id <= m->last; id++) {
        if (m->txns[id].fate != FM_DONE || m->txns[id].rev != rev)
            continue;
        if (found)
            fail_msg("revision %llu was given to transactions %llu and %llu",
                     (unsigned long long)rev, (unsigned long long)found, (unsigned long long)id);
        found = id;
    }
    return found;
}

static uint64_t find_unanswered(const struct fm *m, const struct fm_state *before,
                                const struct group *g)
{
    for (uint64_t id = m->first; id <= m->last; id++) {
        enum fm_fate fate = m->txns[id].fate;
        if ((fate == FM_SENT || fate == FM_UNKNOWN) && is_txn(m, id, before, g))
            return id;
    }
    return 0;
}

/* What was sent about the same key: one of these should have been it. */
static void print_suspects(const struct fm *m, unsigned key, vg_rev rev)
{
    for (uint64_t id = m->first; id <= m->last; id++) {
        struct fm_spec spec;
        fm_spec(m, id, &spec);
        for (uint32_t i = 0; i < spec.n; i++)
            if (spec.ops[i].key == key && (m->txns[id].rev == 0 || m->txns[id].rev + 20 > rev))
                print_error("  transaction %llu.%u of %u: type %d, expect %llx, fate %d at %llu\n",
                            (unsigned long long)id, i, spec.n, (int)spec.ops[i].type,
                            (unsigned long long)spec.ops[i].expect, (int)m->txns[id].fate,
                            (unsigned long long)m->txns[id].rev);
    }
}

static void fail_group(const struct fm *m, const struct group *g, uint64_t id)
{
    for (size_t i = 0; i < g->n; i++) {
        const struct vg_rec *r = g->events[i].rec;
        struct vg_slice key = vg_rec_key(r), head = vg_rec_header(r);
        print_error("  %llu.%u %s %.*s, made by %.*s, %u bytes, at %lld; before: %llu until %lld\n",
                    (unsigned long long)r->rev, r->sub, vg_rec_is_delete(r) ? "delete" : "put",
                    VG_SLICE_ARG(key), VG_SLICE_ARG(head), r->value_len, (long long)r->time_ms,
                    (unsigned long long)r->prev_rev,
                    g->events[i].prev ? (long long)g->events[i].prev->expires_ms : 0);
    }
    print_suspects(m, key_number(g->events[0].rec), g->rev);
    if (id)
        fail_msg("revision %llu was acknowledged to transaction %llu, and this is not it",
                 (unsigned long long)g->rev, (unsigned long long)id);
    fail_msg("revision %llu is no whole transaction that was sent", (unsigned long long)g->rev);
}

static void check_group(struct fm *m, const struct fm_state *before, const struct group *g)
{
    uint64_t id = acknowledged_with(m, g->rev);
    if (id) {
        if (!is_txn(m, id, before, g))
            fail_group(m, g, id);
    } else if (!is_expiry(before, g)) { /* first: a delete that is under way would fit as well */
        id = find_unanswered(m, before, g);
        if (!id)
            fail_group(m, g, 0);
        m->txns[id].fate = FM_FOUND;
        m->txns[id].rev = g->rev;
    }
    check_links(before, g);
}

static void append_group(struct fm *m, const struct group *g, struct fm_state *state)
{
    m->log = fm_alloc(m->log, m->n_log + g->n, sizeof *m->log);
    for (size_t i = 0; i < g->n; i++) {
        m->log[m->n_log++] = vg_rec_ref(g->events[i].rec);
        fm_state_apply(state, g->events[i].rec);
    }
    m->rev = g->rev;
    m->index = fm_alloc(m->index, m->rev + 1, sizeof *m->index);
    m->index[m->rev] = m->n_log;
}

void fm_extend(struct fm *m, const struct vg_event *events, size_t n)
{
    struct fm_state state;
    fm_state_at(m, m->rev, &state);
    for (size_t i = 0; i < n;) {
        struct group g = {&events[i], 0, events[i].rec->rev};
        while (i < n && events[i].rec->rev == g.rev)
            i++, g.n++;
        if (g.rev != m->rev + 1)
            fail_msg("the log goes from revision %llu to %llu", (unsigned long long)m->rev,
                     (unsigned long long)g.rev);
        check_group(m, &state, &g);
        append_group(m, &g, &state);
    }
}
